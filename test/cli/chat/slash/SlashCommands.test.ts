import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import type { SlashCommand } from "../../../../src/cli/chat/slash/ChatSession.ts"
import {
  completeCommand,
  helpText,
  slashCommands,
  type ParsedLine,
  parseLine
} from "../../../../src/cli/chat/slash/SlashCommands.ts"
import { columnsOf } from "../../../../src/cli/output/Output.ts"

/** A parsed line with the name of its command in place of the command. */
type Expected =
  | Exclude<ParsedLine, { readonly _tag: "Command" }>
  | { readonly _tag: "Command"; readonly name: string; readonly argument: string }

const parsed = (line: string): Expected => {
  const result = parseLine(line)
  return result._tag === "Command" ? { _tag: "Command", name: result.command.name, argument: result.argument } : result
}

const message = (text: string): Expected => ({ _tag: "Message", text })

const cases: ReadonlyArray<readonly [rule: string, line: string, parsed: Expected]> = [
  ["a message", "how are you?", message("how are you?")],
  ["a command", "/context", { _tag: "Command", name: "context", argument: "" }],
  [
    "a command in any case, with an argument",
    "/Compress  the names ",
    { _tag: "Command", name: "compress", argument: "the names" }
  ],
  ["an argument of several lines", "/pin one\ntwo", { _tag: "Command", name: "pin", argument: "one\ntwo" }],
  ...Object.entries({
    compact: "compress",
    exit: "quit",
    new: "clear",
    permissions: "approvals",
    save: "export",
    summarize: "compress",
    "?": "help"
  }).map(([alias, name]) => [`/${alias}`, `/${alias} all`, { _tag: "Command", name, argument: "all" }] as const),
  ["two slashes: a message that begins with a slash", "//help", message("/help")],
  ["a path", "/usr/bin is where it lies", message("/usr/bin is where it lies")],
  ["a path of one name with a dot", "/etc.d", message("/etc.d")],
  ["a slash alone", "/ is a slash", message("/ is a slash")],
  ["an extra letter", "/contextt", { _tag: "Unknown", name: "contextt", nearest: "context" }],
  ["swapped letters", "/rseume", { _tag: "Unknown", name: "rseume", nearest: "resume" }],
  ["the beginning of a name", "/comp", { _tag: "Unknown", name: "comp", nearest: "compress" }],
  ["a command of the shell", "! git status", { _tag: "Shell", command: "git status" }],
  ["an exclamation mark alone", "!", { _tag: "Message", text: "!" }],
  ["three other letters", "/redoxyz", { _tag: "Unknown", name: "redoxyz", nearest: undefined }]
]

describe("parseLine", () => {
  for (const [rule, line, expected] of cases) it(rule, () => assert.deepStrictEqual(parsed(line), expected))

  it("completes letters of a name to every matching command, the likeliest first", () => {
    const { about = {}, candidates, replaced } = completeCommand("/re")
    assert.deepStrictEqual(candidates.slice(0, 4), ["/redo", "/recall ", "/rewind", "/resume"])
    assert.include(candidates, "/tree")
    assert.strictEqual(about["/redo"], "Redo the compression that /undo reversed")
    assert.strictEqual(replaced, "/re")
    assert.lengthOf(completeCommand("/").candidates, slashCommands.length)
  })
})

describe("/help", () => {
  it.each([40, 80, 120])("lists every command in lines of at most %s columns", (columns) => {
    const lines = helpText(columns).split("\n")
    for (const line of lines) assert.isAtMost(columnsOf(line), columns)
    for (const { name } of slashCommands)
      assert.isTrue(
        lines.some((line) => line.startsWith(`  /${name}`)),
        name
      )
  })
})

describe("the type of a command", () => {
  const named = { name: "x", usage: "", help: "" }

  it("tells commands that stay from those that leave", () => {
    const stays: SlashCommand = { ...named, run: ({ prefill }) => Ref.set(prefill, "") }
    // @ts-expect-error -- what leaves returns a session or undefined, and no stray value
    const stray: SlashCommand = { ...named, leave: ({ prefill }) => Ref.set(prefill, "") }
    // @ts-expect-error -- the session that `run` returns would be ignored
    const ignored: SlashCommand = { ...named, run: () => Effect.succeed({ _tag: "Switch", resume: undefined }) }
    assert.lengthOf([stays, stray, ignored], 3)
  })
})
