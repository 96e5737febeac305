import { assert, describe, it } from "@effect/vitest"
import { completions, help, slashCommands, type Typed, typed } from "../../../src/cli/chat/SlashCommand.ts"
import { columnsOf } from "../../../src/cli/Output.ts"

const message = (text: string): Typed => ({ _tag: "Message", text })

const cases: ReadonlyArray<readonly [rule: string, line: string, typed: Typed]> = [
  ["a message", "how are you?", message("how are you?")],
  ["a command", "/context", { _tag: "Command", name: "context", rest: "" }],
  [
    "in any case, with what follows it",
    "/Compress  the names ",
    { _tag: "Command", name: "compress", rest: "the names" }
  ],
  ["what follows may have lines", "/pin one\ntwo", { _tag: "Command", name: "pin", rest: "one\ntwo" }],
  ["other names for it (spec 11)", "/summarize all", { _tag: "Command", name: "compress", rest: "all" }],
  ["a question mark", "/?", { _tag: "Command", name: "help", rest: "" }],
  ["two slashes: a message that begins with one", "//help", message("/help")],
  ["a path", "/usr/bin is where it lies", message("/usr/bin is where it lies")],
  ["a path of one name with a dot", "/etc.d", message("/etc.d")],
  ["a slash alone", "/ is a slash", message("/ is a slash")],
  ["letters that are too many", "/contextt", { _tag: "Unknown", name: "contextt", nearest: "context" }],
  ["letters that are swapped", "/rseume", { _tag: "Unknown", name: "rseume", nearest: "resume" }],
  ["the beginning of one command", "/comp", { _tag: "Unknown", name: "comp", nearest: "compress" }],
  ["nothing near", "/deploy", { _tag: "Unknown", name: "deploy", nearest: undefined }]
]

describe("what is typed", () => {
  for (const [rule, line, expected] of cases) it(rule, () => assert.deepStrictEqual(typed(line), expected))

  it("a name is completed to all it may be", () => {
    assert.deepStrictEqual(completions("/re"), ["/redo ", "/resume "])
    assert.lengthOf(completions("/"), slashCommands.length)
  })
})

describe("/help", () => {
  for (const columns of [40, 80, 120]) {
    it(`names every command in lines of at most ${columns} columns`, () => {
      const lines = help(columns).split("\n")
      for (const line of lines) assert.isAtMost(columnsOf(line), columns)
      for (const { name } of slashCommands)
        assert.isTrue(
          lines.some((line) => line.startsWith(`  /${name}`)),
          name
        )
    })
  }
})
