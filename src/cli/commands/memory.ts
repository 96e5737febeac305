import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { printable } from "../../domain/Inspection.ts"
import { type Loaded, MemoryBlock, MemoryScope } from "../../domain/MemoryText.ts"
import { Memory } from "../../services/Memory.ts"
import { TokenCounter } from "../../services/TokenCounter.ts"
import { detailLines } from "../chat/CallText.ts"
import { badInput, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

/** What is remembered, and adding to it. */

/** What `show --json` prints of a file. */
const Shown = Schema.Struct({ ...MemoryBlock.fields, tokens: Schema.Natural })

/** What `show --json` prints. */
const Memories = Schema.Struct({
  blocks: Schema.Array(Shown),
  tokens: Schema.Natural,
  problems: Schema.Array(Schema.String)
})

/** What `list --json` prints. */
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

/** What `add --json` prints. */
const Added = Schema.Struct({ scope: MemoryScope, file: Schema.String, diff: Schema.String })

/** Lines as they are, but for what would steer a terminal. */
const lines = (text: string): string => detailLines(text).join("\n")

/** What is remembered, with what each file costs. */
export const counted = Effect.fnUntraced(function* (loaded: Loaded) {
  const counter = yield* TokenCounter
  const counts = yield* counter
    .count(loaded.blocks.map(({ text }) => ({ text })))
    .pipe(Effect.mapError(({ message }) => failed(`the tokens could not be counted: ${message}`)))
  const blocks = loaded.blocks.map((block, i) => ({ ...block, tokens: Math.ceil(counts[i] ?? 0) }))
  return { blocks, tokens: blocks.reduce((sum, { tokens }) => sum + tokens, 0), problems: loaded.problems }
})
type Counted = Effect.Success<ReturnType<typeof counted>>

const total = ({ blocks, tokens }: Counted): string =>
  `${Output.plural(blocks.length, "file")}, ${Output.plural(tokens, "token")} in every request`

const nothing = 'nothing is remembered here; "palimpsest memory add" begins it'

/** The files as a table: whose each is, where it came from, and what it costs. */
export const listText = (memory: Counted, { bold, dim }: Output.Style = Output.plain): string => {
  if (memory.blocks.length === 0) return nothing
  const rows = memory.blocks.flatMap(({ imports, shown, source, tokens }) => [
    [source, bold(printable(shown)), Output.number(tokens)],
    ...imports.map((file) => ["", dim(`  imports ${printable(file)}`), ""])
  ])
  return `${Output.table([["WHOSE", "FILE", "TOKENS"], ...rows], "llr")}\n${total(memory)}`
}

/** All that is remembered, each text under the name of its file. */
export const showText = (memory: Counted, { bold, dim }: Output.Style = Output.plain): string => {
  if (memory.blocks.length === 0) return nothing
  const blocks = memory.blocks.map(
    ({ imports, shown, source, text, tokens }) =>
      `${bold(printable(shown))} ${dim(`(${source}, ${Output.plural(tokens, "token")}${imports.length === 0 ? "" : `, ${Output.plural(imports.length, "import")}`})`)}\n${lines(text.trim())}`
  )
  return `${blocks.join("\n\n")}\n\n${total(memory)}`
}

/** What is wrong with the files, one line each. */
const complain = (problems: ReadonlyArray<string>) => Effect.forEach(problems, Output.notice, { discard: true })

const loaded = Effect.flatMap(Memory, ({ load }) => Effect.flatMap(load, counted))

const show = Command.make(
  "show",
  { json: Input.json },
  Effect.fn("cli.memory.show")(function* ({ json }) {
    const memory = yield* loaded
    if (json) return yield* Output.json(Memories, memory)
    yield* Output.text(showText(memory, yield* Output.style))
    yield* complain(memory.problems)
  })
).pipe(Command.withDescription("Show all that is remembered here, file by file"))

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
    yield* complain(memory.problems)
  })
).pipe(Command.withDescription("List the files of it, and the tokens of each"))

const refresh = Command.make(
  "refresh",
  { json: Input.json },
  Effect.fn("cli.memory.refresh")(function* ({ json }) {
    const memory = yield* Effect.flatMap(
      Memory.use((_) => _.refresh),
      counted
    )
    if (json) return yield* Output.json(Memories, memory)
    yield* Output.text(memory.blocks.length === 0 ? nothing : total(memory))
    yield* complain(memory.problems)
  })
).pipe(Command.withDescription("Read it anew, and say what is wrong with it"))

/** The line for who named no scope. */
export const whichScope =
  "where does it belong? Say --scope project (this folder alone) or --scope global (all that you do)"

const add = Command.make(
  "add",
  {
    text: Argument.String("text").pipe(Argument.withDescription("The fact, in a sentence")),
    scope: Flag.Literals("scope", MemoryScope.literals).pipe(
      Flag.withDescription("Where it holds: project, in this folder alone, or global, for all that you do"),
      Flag.optional
    ),
    json: Input.json
  },
  Effect.fn("cli.memory.add")(function* ({ json, scope, text }) {
    if (text.trim() === "") return yield* badInput("there is nothing to remember; say the fact in a sentence")
    if (Option.isNone(scope)) return yield* badInput(whichScope)
    const memory = yield* Memory
    const change = yield* memory
      .plan(text, scope.value)
      .pipe(Effect.mapError(({ message }) => failed(printable(message))))
    const { diff, file, shown } = yield* memory
      .save(change)
      .pipe(Effect.mapError(({ message }) => failed(printable(message))))
    if (json) return yield* Output.json(Added, { scope: scope.value, file, diff: diff.diff })
    yield* Output.text(diff.diff === "" ? `${printable(shown)} says so already` : lines(diff.diff))
    if (diff.diff !== "") yield* Output.notice(`remembered in ${shown}`)
  })
).pipe(
  Command.withDescription("Remember a fact"),
  Command.withExamples([
    { command: 'palimpsest memory add "Tests run with make check" --scope project', description: "For this folder" },
    { command: 'palimpsest memory add "I write British English" --scope global', description: "For all that you do" }
  ])
)

/** `palimpsest memory …` */
export const memory = Command.make("memory").pipe(
  Command.withDescription(
    "What every conversation begins with: memory files of yours, of extensions and of this folder"
  ),
  Command.withSubcommands([show, list, add, refresh])
)
