import { assert, describe, it } from "@effect/vitest"
import { call, model, text } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { groundedActions, needsOf } from "../../../src/domain/evaluation/GroundedActions.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { asks, compactionOf, measured, ran, replacementOf, says } from "../../support/compactions.ts"

type Contents = Parameters<typeof compactionOf>[0]

const namesIn = (before: Contents, after: Contents) => {
  const { actions, facts } = runSync(needsOf(compactionOf(before, after)))
  return { actions: actions.map((names) => names.map(([name]) => name)), facts: facts.map(([name]) => name) }
}

const opened = ran("read_file", { file_path: "/work/project/src/parse.ts" }, "export const parseLine = 1")

const rules: ReadonlyArray<
  readonly [rule: string, before: Contents, after: Contents, actions: ReadonlyArray<ReadonlyArray<string>>]
> = [
  ["a path from before", opened, ran("edit", { file_path: "src/parse.ts" }, "ok"), [["src/parse.ts"]]],
  ["names in a command", opened, ran("bash", { command: "rg parseLine src" }, ""), [["parseLine"]]],
  ["nothing that did not occur before", opened, ran("bash", { command: "rg writeLine" }, ""), []],
  ["nothing in bodies", opened, ran("edit", { file_path: "a.ts", new_string: "parseLine()" }, "ok"), []],
  ["no numbers", [asks("the port is 8443")], ran("bash", { command: "curl localhost:8443" }, ""), []],
  [
    "nothing that a message has shown since",
    opened,
    [asks("see src/parse.ts"), ...ran("read_file", { file_path: "src/parse.ts" }, "")],
    []
  ],
  [
    "the agent's own words in the same answer are no showing",
    opened,
    [model(text("I read src/parse.ts."), call("read_file", { file_path: "src/parse.ts" }))],
    [["src/parse.ts"]]
  ],
  [
    "each name once",
    opened,
    [...ran("read_file", { file_path: "src/parse.ts" }, ""), ...ran("read_file", { file_path: "src/parse.ts" }, "")],
    [["src/parse.ts"]]
  ],
  [
    "no name of a tool or parameter",
    [asks("use file_path with read_file")],
    ran("read_file", { file_path: "x" }, ""),
    []
  ],
  [
    "programs that not every machine has",
    ran("bash", { command: "cd lib && mix test | tail -3" }, ""),
    ran("bash", { command: "ls; mix credo" }, ""),
    [["mix"]]
  ],
  [
    "of a member what it says beyond its variable",
    [asks("state.filesTouched is wrong")],
    ran("grep", { pattern: "next.filesTouched" }, ""),
    [["filesTouched"]]
  ],
  ["no name that comes with a language", [asks("uses fmt.Sprintf")], ran("grep", { pattern: "fmt.Sprintf" }, ""), []],
  [
    "names after an escape in a command are decoded",
    ran("bash", { command: "ls" }, "TabName"),
    ran("bash", { command: "printf '\tTabName'" }, ""),
    [["TabName"]]
  ]
]

describe("what the next actions need", () => {
  it.each(rules)("%s", (_, before, after, actions) => {
    assert.deepStrictEqual(namesIn(before, after).actions, actions)
  })

  it("ends with the fortieth action that needs something", () => {
    const names = Array.from({ length: 60 }, (_, n) => `theName${n}`)
    const before = [asks(names.join(" "))]
    const after = names.flatMap((name) => ran("grep", { pattern: name }, ""))
    assert.strictEqual(namesIn(before, after).actions.length, 40)
    assert.strictEqual(namesIn(before, after).facts.length, 40)
  })

  it("counts as facts what the agent says, thinks and writes, without bare numbers", () => {
    const before = [asks("parseLine fails at 120 since 2.4.1, in src/parse.ts")]
    const after = [says("parseLine is at 120."), ...ran("edit", { new_string: "// since 2.4.1" }, "")]
    assert.deepStrictEqual(namesIn(before, after).facts, ["parseLine", "2.4.1"])
  })
})

const handle = Handle.make("h_abcdefghij")

describe("grounded actions", () => {
  const before = [
    asks("Mend the parser."),
    ...ran("bash", { command: "rg parseLine" }, "src/parse.ts: parseLine calls skipBlank\nsrc/other.ts: nothing"),
    ...ran("bash", { command: "cat far.txt" }, "one\ntwo\nfarAway\nthree\nfour")
  ]
  const after = [
    ...ran("grep", { pattern: "parseLine" }, ""),
    ...ran("grep", { pattern: "skipBlank" }, ""),
    ...ran("grep", { pattern: "farAway" }, "")
  ]
  const figures = (context: string, behind?: string) => {
    const { actionsGrounded, actionsReachable } = measured(
      groundedActions,
      compactionOf(before, after),
      replacementOf(context, (name) => (name === handle ? behind : undefined))
    )
    return [actionsGrounded?.part, actionsReachable?.part, actionsGrounded?.whole]
  }
  const table: ReadonlyArray<readonly [context: string, behind: string | undefined, expected: Array<number>]> = [
    ["", undefined, [0, 0, 3]],
    ["parseLine, skipBlank and farAway", undefined, [3, 3, 3]],
    ["parseLineTwice", undefined, [0, 0, 3]],
    // A pattern of `parseLine` shows the line that has `skipBlank` too.
    ["parseLine", undefined, [1, 2, 3]],
    [`the output is ${handle}`, "three farAway", [0, 1, 3]],
    ["the output is elsewhere", "three farAway", [0, 0, 3]]
  ]
  it.each(table)("with %j in the context and %j behind its handle", (context, behind, expected) => {
    assert.deepStrictEqual(figures(context, behind), expected)
  })

  const found = (messages: ReadonlyArray<ReadonlyArray<string>>) => {
    const before = messages.flatMap((lines) => ran("bash", { command: "ls" }, lines.join("\n")))
    const compaction = compactionOf(before, ran("grep", { pattern: "item2Name" }, ""))
    return measured(groundedActions, compaction, replacementOf("common")).actionsReachable?.part === 1
  }
  const lines = (count: number) => Array.from({ length: count }, (_, n) => `common item${n}Name`)

  it("takes no word for a pattern of which an answer would leave out lines", () => {
    assert.isTrue(found([lines(3)]))
    assert.isFalse(found([lines(4)]))
    assert.isTrue(found([lines(3), ...Array.from({ length: 8 }, () => ["common", "common"])]))
    assert.isFalse(found([lines(3), ...Array.from({ length: 9 }, () => ["common", "common"])]))
  })
})
