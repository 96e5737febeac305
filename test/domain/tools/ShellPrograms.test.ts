import { assert, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import {
  fetchers,
  gitGlobals,
  runners,
  shellWords,
  usages,
  type Word
} from "../../../src/domain/tools/ShellPrograms.ts"

const digest = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16)

/** Operands, some of which are harmless for one program and not for another. */
const probes: ReadonlyArray<ReadonlyArray<Word>> = [
  ..."a|-|/|/.|//..|/a|~/a|../a|a/../b|a..b|+%F|12|1.5s|1.5x|aux|a=b|1,$p|$d|3q|1,2w|s/a/b/gip|s/a/b/e|s/a/b/w x|s/a/b|s/a\\/b/c/|s,a,b,2"
    .split("|")
    .concat(
      "s|a|b|",
      "s/a/b\nw/",
      "{ print $1, NR }",
      '{print "a b" $NF}',
      "{ print > 1 }",
      "{print system(1)}",
      "%s %5d%%",
      "%n",
      "%-3b",
      "@a"
    )
    .map((text) => [{ text }]),
  [],
  [{ text: "a" }, { text: "b" }],
  [{ text: "a", isHome: true }],
  [{ text: "a*", pattern: "prefixed" }],
  [{ text: "*a", pattern: "open" }],
  ...["%d", "%s", "1p", "s/a/b/", "{print}", "{ print $1 }", "."].flatMap((first) =>
    [
      { text: "12" },
      { text: "x" },
      { text: "a=b" },
      { text: "a", isHome: true },
      { text: "a*", pattern: "prefixed" as const },
      { text: "*a", pattern: "open" as const }
    ].map((second) => [{ text: first }, second])
  )
]

it("what a grant covers changes only on purpose, with docs/approval.md", () => {
  const table = [...usages].map(([name, { operands, options, refuses, ...rest }]) => [
    name,
    options === "any" ? options : [...options],
    String(refuses),
    Object.entries(rest).toSorted(),
    operands === undefined ? "all" : probes.map((words) => (operands(words) ? 1 : 0)).join("")
  ])
  const lists = [gitGlobals, shellWords, runners].map((names) => [...names])
  const inner = Object.entries(fetchers).map(([name, names]) => [name, [...names]])
  assert.deepStrictEqual([digest(table), digest([lists, inner])], ["0854b7a8abdadd8d", "a46eb0e196617500"])
})
