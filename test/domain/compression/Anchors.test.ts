import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  agentTexts,
  type AnchorKind,
  anchorsOf,
  eachAnchor,
  anchorKindOf,
  toolTexts
} from "../../../src/domain/compression/Anchors.ts"
import { call, response, text } from "../../../src/domain/content/Content.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const found = (of: string): Array<string> => [...anchorsOf(of)].map(([name, kind]) => `${kind} ${name}`)

const kinds: ReadonlyArray<readonly [kind: AnchorKind, words: ReadonlyArray<string>]> = [
  [
    "path",
    [
      "src/a.ts",
      "README.md",
      "/etc/hosts",
      "/tmp",
      "./x/y",
      "../x",
      "package.json",
      "@effect/vitest",
      "a/b/c.d",
      "~/notes.md",
      "~/.bashrc",
      ".gitignore"
    ]
  ],
  ["url", ["https://example.com", "http://localhost:8080/a?b=1&c=2", "https://github.com/a/b/issues/1343"]],
  [
    "symbol",
    [
      "parseDate",
      "ChatBusy",
      "SCREAMING_CASE",
      "snake_case",
      "Effect.gen",
      "String.replace/4",
      "--max-old-space-size",
      "TypeError",
      "iPhone"
    ]
  ],
  [
    "id",
    [
      "#123",
      "PROJ-42",
      "spotter-dov.3",
      "29b3aa8",
      "d703a1a9-1b7b-4fb1-b512-c9738b1fe617",
      "toolu_016i8caCv6EqBx4nQUJmnEvU"
    ]
  ],
  ["number", ["128", "3.14", "1.2.3", "v1.2.3", "1763681581544"]]
]

describe("kinds", () => {
  it.each(kinds.flatMap(([kind, words]) => words.map((word) => [kind, word] as const)))("%s: %s", (kind, word) => {
    assert.strictEqual(anchorKindOf(word), kind)
    assert.deepStrictEqual(found(`See ${word} there`), [`${kind} ${word}`])
  })

  it.each([
    "hello",
    "The",
    "a",
    "is",
    "HTTP",
    "it's",
    "12",
    "7",
    "-v",
    "e.g",
    "...",
    "--",
    "/",
    "well-known",
    "foo.bar",
    "decade",
    "feed"
  ])("%j is none", (word) => {
    assert.isUndefined(anchorKindOf(word))
    assert.deepStrictEqual(found(`so ${word} then`), [])
  })

  it("a word of more than 200 characters is no anchor", () => {
    assert.isUndefined(anchorKindOf(`src/${"a".repeat(200)}.ts`))
  })
})

describe("in a sentence", () => {
  const cases: ReadonlyArray<readonly [sentence: string, anchors: ReadonlyArray<string>]> = [
    ["Look at src/a.ts.", ["path src/a.ts"]],
    ["(see README.md), please!", ["path README.md"]],
    ["`parseDate` and 'ChatBusy': both", ["symbol parseDate", "symbol ChatBusy"]],
    ["src/a.ts:12:3 - error", ["path src/a.ts"]],
    ['"src/a.ts"', ["path src/a.ts"]],
    ["path=src/a.ts", ["path src/a.ts"]],
    ["Elixir has Enum.empty? and String.length/1", ["symbol Enum.empty?", "symbol String.length/1"]],
    ["It took 128 ms.", ["number 128"]],
    ["**src/b.ts**", ["path src/b.ts"]],
    ["https://example.com/a.", ["url https://example.com/a"]],
    ["a 4,096 token window", []],
    ["Look at C:\\w\\scratch\\review-notes.txt.", ["path C:\\w\\scratch\\review-notes.txt"]],
    ['{"path": "C:\\\\new\\\\table.gd", "x": 1}', ["path C:\\new\\table.gd"]],
    ["then C:/w/a.txt", ["path C:/w/a.txt"]],
    ["in C:\\Program Files (x86)\\Git\\bin now", ["path C:\\Program Files (x86)\\Git\\bin"]],
    ["C:w\\nodes.gd is on the drive", ["path C:w\\nodes.gd"]],
    ["\\\\host\\share\\new.txt", ["path \\\\host\\share\\new.txt"]],
    ['"\\\\\\\\host\\\\share\\\\new.txt"', ["path \\\\host\\share\\new.txt"]],
    ["Set-Content -Path src\\new.ts -Value x", ["path src\\new.ts"]],
    ["\\\\?\\C:\\w\\a.txt", ["path C:\\w\\a.txt"]],
    ["src\\tests\\notes.txt\nsrc\\b.gd", ["path src\\tests\\notes.txt", "path src\\b.gd"]],
    ["run .\\tools\\build.ps1 or ..\\x.gd", ["path .\\tools\\build.ps1", "path ..\\x.gd"]],
    ["see src\\app.ts there", ["path src\\app.ts"]],
    ["C:\\w has \\w\\ledger.gd and src\\new.gd", ["path C:\\w", "path \\w\\ledger.gd", "path src\\new.gd"]],
    ['"one\\nsrc/a.ts\\ttwo.ts"', ["path src/a.ts", "path two.ts"]],
    ["a line\\nREADME.md and \\bparseDate\\b", ["path README.md", "symbol parseDate"]]
  ]
  it.each(cases)("%j", (sentence, anchors) => {
    assert.deepStrictEqual(found(sentence), anchors)
  })

  it("reports every occurrence with its position", () => {
    const seen: Array<readonly [string, number]> = []
    eachAnchor("src/a.ts x src/a.ts", (anchor, _, at) => seen.push([anchor, at]))
    assert.deepStrictEqual(seen, [
      ["src/a.ts", 0],
      ["src/a.ts", 11]
    ])
  })

  it("can be searched recursively", () => {
    const seen: Array<string> = []
    eachAnchor("src/a.ts then src/b.ts then parseDate", (anchor) => {
      eachAnchor(anchor, (inner) => seen.push(inner))
      // A search that begins again and again would never end.
      assert.isBelow(seen.length, 10)
    })
    assert.deepStrictEqual(seen, ["src/a.ts", "src/b.ts", "parseDate"])
  })
})

const Text = Schema.Array(
  Schema.Union([
    Schema.String,
    Schema.Literals([
      "src/a.ts",
      "parseDate",
      "#12",
      "128",
      " ",
      " ",
      ":",
      "=",
      "/",
      ".",
      "https://x.y/z",
      "v1.2",
      "29b3aa8",
      "\n",
      "é",
      "(",
      ")."
    ])
  ])
)

describe("stability", () => {
  it.prop(
    "an anchor is a part of the text and by itself an anchor of the same kind",
    [Text],
    ([pieces]) => {
      const whole = pieces.join("")
      for (const [anchor, kind] of anchorsOf(whole)) {
        assert.isTrue(whole.includes(anchor))
        assert.strictEqual(anchorKindOf(anchor), kind)
        assert.strictEqual(anchorsOf(anchor).get(anchor), kind)
      }
    },
    { arbitrary: { runs: runsOf(1_000), seed: "anchors" } }
  )

  it.prop(
    "the same text has the same anchors, whatever was scanned before",
    [Text, Text],
    ([a, b]) => {
      const before = found(a.join(""))
      found(b.join(""))
      assert.deepStrictEqual(found(a.join("")), before)
    },
    { arbitrary: { runs: runsOf(500), seed: "again" } }
  )

  it.prop(
    "words on different lines do not affect each other",
    [Text, Text],
    ([a, b]) => {
      assert.deepStrictEqual(
        new Set(found(`${a.join("")}\n${b.join("")}`)),
        new Set([...found(a.join("")), ...found(b.join(""))])
      )
    },
    { arbitrary: { runs: runsOf(500), seed: "apart" } }
  )

  it("patterns do not backtrack: quadratic time would exceed the test's limit", () => {
    for (const trap of ["a.", "/", "a-", "a/", "=", "A"])
      assert.isAtLeast(anchorsOf(trap.repeat(sizeOf(2_000_000, 200_000))).size, 0)
  })
})

describe("origin of the words", () => {
  const texts = (visit: (push: (text: string) => void) => void): Array<string> => {
    const all: Array<string> = []
    visit((one) => all.push(one))
    return all
  }
  it("the agent's: its texts, thoughts and all call arguments", () => {
    assert.deepStrictEqual(
      texts((push) =>
        agentTexts(call("edit", { path: "a.ts", edits: [{ old: "x", line: 128 }], dry: true, none: null }), push)
      ),
      ["a.ts", "x", "128"]
    )
    assert.deepStrictEqual(
      texts((push) => agentTexts(text("said"), push)),
      ["said"]
    )
    assert.deepStrictEqual(
      texts((push) => agentTexts({ text: "hm", thought: true }, push)),
      ["hm"]
    )
    assert.deepStrictEqual(
      texts((push) => agentTexts(response("read", { output: "no" }), push)),
      []
    )
  })
  it("the tool's: all values of its response", () => {
    assert.deepStrictEqual(
      texts((push) => toolTexts(response("read", { output: "yes", n: [1] }), push)),
      ["yes", "1"]
    )
    assert.deepStrictEqual(
      texts((push) => toolTexts(text("said"), push)),
      []
    )
  })
})

it("the colours of a terminal belong to no name", () => {
  assert.deepStrictEqual(found("\u001b[0;32mAdded \u001b[1mmain.py\u001b[0m \u001b[31mstate_file.ts\u001b[0m"), [
    "path main.py",
    "path state_file.ts"
  ])
})
