import { assert, it } from "@effect/vitest"
import { webAddresses } from "../../../../src/services/tools/builtin/WebFetch.ts"

const cases: ReadonlyArray<readonly [rule: string, text: string, addresses: ReadonlyArray<string>]> = [
  ["are none where there is none", "see example.com or file:///etc/passwd or ftp://x.y", []],
  [
    "stand anywhere in it",
    "Compare http://a.example/x with https://b.example.",
    ["http://a.example/x", "https://b.example/"]
  ],
  [
    "end where the sentence does",
    "(see https://a.example/x), 'https://b.example/y'; <https://c.example/z>!",
    ["https://a.example/x", "https://b.example/y", "https://c.example/z"]
  ],
  [
    "keep a bracket that they open",
    "https://a.example/x_(y) and (https://a.example/z)",
    ["https://a.example/x_(y)", "https://a.example/z"]
  ],
  [
    "keep their queries and lose their fragments",
    "https://a.example/?q=a%20b&c=d#e",
    ["https://a.example/?q=a%20b&c=d"]
  ],
  ["are told once", "https://a.example https://a.example/ https://A.example#x", ["https://a.example/"]],
  ["must be ones", "http:// https://[ https://a..b:99999", []],
  [
    "of a file on GitHub are those of the file itself",
    "https://github.com/o/r/blob/main/src/a.ts https://github.com/o/r/tree/main",
    ["https://raw.githubusercontent.com/o/r/main/src/a.ts", "https://github.com/o/r/tree/main"]
  ],
  [
    "of what only looks like one stay",
    "https://gitlab.com/o/r/blob/main/a.ts http://github.com/o/r/blob/main/a.ts https://github.com/o/r/blob/main",
    [
      "https://gitlab.com/o/r/blob/main/a.ts",
      "http://github.com/o/r/blob/main/a.ts",
      "https://github.com/o/r/blob/main"
    ]
  ]
]
it.each(cases)("the web addresses of a text %s", (_rule, text, addresses) =>
  assert.deepStrictEqual(
    webAddresses(text).map(({ href }) => href),
    addresses
  )
)
