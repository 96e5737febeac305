/** The `memory` command: shows the memory and adds to it. */

import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { MemoryBlock, MemoryScope } from "../../domain/memory/MemoryText.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { Memory } from "../../services/memory/Memory.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import { withTokens, printableLines, listText, noMemoryText, showText, totalLine } from "../output/MemoryReport.ts"
import * as Output from "../output/Output.ts"
import { memoryErrorLine } from "../output/RuntimeText.ts"

/** A file in the output of `show --json`. */
const Shown = Schema.Struct({ ...MemoryBlock.fields, tokens: Schema.Natural })

/** The output of `show --json`. */
const Memories = Schema.Struct({
  blocks: Schema.Array(Shown),
  tokens: Schema.Natural,
  problems: Schema.Array(Schema.String)
})

/** The output of `list --json`. */
const Files = Schema.Struct({
  files: Schema.Array(
    Schema.Struct({
      source: MemoryBlock.fields.source,
      file: Schema.String,
      imports: Schema.Array(Schema.String),
      tokens: Schema.Natural
    })
  ),
  tokens: Schema.Natural,
  problems: Schema.Array(Schema.String)
})

/** The output of `add --json`. */
const Added = Schema.Struct({ scope: MemoryScope, file: Schema.String, diff: Schema.String })

/** Prints the problem of each file on one line. */
const printProblems = (problems: ReadonlyArray<string>) => Effect.forEach(problems, Output.notice, { discard: true })

const loaded = Effect.flatMap(Memory, ({ load }) => Effect.flatMap(load, withTokens))

const show = Command.make(
  "show",
  { json: Input.json },
  Effect.fn("cli.memory.show")(function* ({ json }) {
    const memory = yield* loaded
    if (json) return yield* Output.json(Memories, memory)
    yield* Output.text(showText(memory, yield* Output.style))
    yield* printProblems(memory.problems)
  })
).pipe(Command.withDescription("Show the text of all memory files that load here"))

const list = Command.make(
  "list",
  { json: Input.json },
  Effect.fn("cli.memory.list")(function* ({ json }) {
    const memory = yield* loaded
    if (json) {
      const files = memory.blocks.map(({ file, imports, source, tokens }) => ({ source, file, imports, tokens }))
      return yield* Output.json(Files, { ...memory, files })
    }
    yield* Output.text(listText(memory, yield* Output.style))
    yield* printProblems(memory.problems)
  })
).pipe(Command.withDescription("List memory files and their tokens"))

const refresh = Command.make(
  "refresh",
  { json: Input.json },
  Effect.fn("cli.memory.refresh")(function* ({ json }) {
    const memory = yield* Effect.flatMap(
      Memory.use((_) => _.refresh),
      withTokens
    )
    if (json) return yield* Output.json(Memories, memory)
    yield* Output.text(memory.blocks.length === 0 ? noMemoryText : totalLine(memory))
    yield* printProblems(memory.problems)
  })
).pipe(Command.withDescription("Reload memory files and report problems"))

/** The error when no scope is given. */
const whichScope = "give a scope: --scope project (this folder) or --scope global (everywhere)"

const add = Command.make(
  "add",
  {
    text: Input.argument("text", "Fact, in one sentence"),
    scope: Input.choice(
      "scope",
      MemoryScope.literals,
      "Where it applies: project (this folder) or global (everywhere)"
    ),
    json: Input.json
  },
  Effect.fn("cli.memory.add")(function* ({ json, scope, text }) {
    if (text.trim() === "") return yield* badInput("the fact is empty; give it in one sentence")
    if (scope === undefined) return yield* badInput(whichScope)
    const memory = yield* Memory
    const change = yield* memory.plan(text, scope).pipe(Effect.mapError((error) => failed(memoryErrorLine(error))))
    const { diff, file, shown } = yield* memory
      .save(change)
      .pipe(Effect.mapError((error) => failed(memoryErrorLine(error))))
    if (json) return yield* Output.json(Added, { scope, file, diff: diff.diff })
    yield* Output.text(
      diff.diff === "" ? `${printableLine(shown)} already contains this fact` : printableLines(diff.diff)
    )
    if (diff.diff !== "") yield* Output.notice(`saved to ${shown}`)
  })
).pipe(
  Command.withDescription("Add a fact to memory"),
  Input.withExamples({
    'palimpsest memory add "Tests run with make check" --scope project': "Add a fact for this folder",
    'palimpsest memory add "I write British English" --scope global': "Add a fact for every folder"
  })
)

/** The command `palimpsest memory …`. */
export const memory = Command.make("memory").pipe(Command.withSubcommands([show, list, add, refresh]))
