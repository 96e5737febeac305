import { Clock, Effect, FileSystem, Option, Result, Schema, Stdio } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { plainText } from "../../domain/Content.ts"
import { entries, type Entry, view, viewTokens } from "../../domain/Conversation.ts"
import { printable } from "../../domain/Inspection.ts"
import type { SessionEvent } from "../../domain/Session.ts"
import { begun, named } from "../../domain/SessionName.ts"
import { formatFor } from "../../domain/transcripts/FileEnding.ts"
import { writeMarkdown } from "../../domain/transcripts/MarkdownWriter.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import * as Export from "../../services/Export.ts"
import { SessionFiles } from "../../services/SessionFiles.ts"
import * as SessionRetention from "../../services/SessionRetention.ts"
import { SessionStore, type SessionSummary } from "../../services/SessionStore.ts"
import { badInput, type ExitError, failed } from "../ExitError.ts"
import { cut } from "../Columns.ts"
import * as Input from "../Input.ts"
import { found, orStoreFailure, resolve } from "../OpenChat.ts"
import * as Output from "../Output.ts"
import { headingOf, sessionTable, sizeText } from "../SessionTable.ts"
import { ago, iso } from "../When.ts"

/** What `--json` says of a session. Times as programs write them. */
const Row = Schema.Struct({
  /** Its place in the list, from 1; what `--resume` takes. */
  number: Schema.Natural,
  id: Schema.String,
  title: Schema.NullOr(Schema.String),
  firstPrompt: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  startedAt: Schema.String,
  updatedAt: Schema.String,
  bytes: Schema.Natural,
  inUse: Schema.NullOr(Schema.Struct({ pid: Schema.Int, since: Schema.String })),
  /** Why it cannot be opened. */
  problem: Schema.NullOr(Schema.String)
})
type Row = typeof Row.Type

/** One message, shortened. */
const Said = Schema.Struct({ id: Schema.String, role: Schema.String, text: Schema.String })

/** What `show --json` prints. */
const Shown = Schema.Struct({
  ...Row.fields,
  messages: Schema.Natural,
  compressions: Schema.Natural,
  /** Of what the model would be sent. */
  tokens: Schema.Natural,
  importedFrom: Schema.NullOr(Schema.String),
  first: Schema.Array(Said),
  last: Schema.Array(Said)
})

const rowOf = (session: SessionSummary, index: number): Row => ({
  number: index + 1,
  id: session.id,
  title: session.title ?? null,
  firstPrompt: session.firstPrompt ?? null,
  model: session.model ?? null,
  cwd: session.cwd ?? null,
  startedAt: iso(session.startedAt),
  updatedAt: iso(session.updatedAt),
  bytes: session.bytes,
  inUse: session.holder === undefined ? null : { pid: session.holder.pid, since: iso(session.holder.since) },
  problem: session.problem ?? null
})

const summaries = orStoreFailure(SessionStore.use((store) => store.summaries))

const name = Argument.String("session").pipe(
  Argument.withDescription(`Its number in "sessions list", its id or the beginning of it, its title, or latest`)
)

const list = Command.make(
  "list",
  {
    limit: Input.optional(Input.size("limit")).pipe(Flag.withDescription("Show so many, the newest")),
    json: Input.json
  },
  Effect.fn("cli.sessions.list")(function* ({ json, limit }) {
    const all = begun(yield* summaries)
    const shown = all.slice(0, limit ?? all.length)
    if (json) return yield* Output.json(Schema.Array(Row), shown.map(rowOf))
    if (all.length === 0) return yield* Output.notice("there are no sessions yet")
    yield* Output.text(yield* sessionTable(shown, Infinity, yield* Output.style))
    if (shown.length < all.length) yield* Output.notice(`${all.length - shown.length} older ones are not shown`)
  })
).pipe(
  Command.withDescription("List the sessions, the one written last first"),
  Command.withExamples([{ command: "palimpsest sessions list --limit 10", description: "The ten newest" }])
)

/** A session in the list, and what its log says; also of one that somebody writes at the moment. */
const read = Effect.fnUntraced(function* (wanted: string) {
  const summary = yield* resolve(wanted)
  const files = yield* SessionFiles
  const loaded = yield* Input.load({ file: files.of(summary.id), from: "palimpsest", lenient: false })
  return { summary, loaded }
})

const saidOf = ({ content, id }: Entry): typeof Said.Type => ({
  id,
  role: content.role,
  text: cut(printable(plainText(content)), 500)
})

/** The first two messages with words, and the last two that come after them. */
const ends = (all: ReadonlyArray<Entry>) => {
  const said = all.filter(({ author, content }) => author === undefined && plainText(content).trim() !== "").map(saidOf)
  return { first: said.slice(0, 2), last: said.slice(2).slice(-2) }
}

const show = Command.make(
  "show",
  { session: name, json: Input.json },
  Effect.fn("cli.sessions.show")(function* ({ json, session: wanted }) {
    const { loaded, summary } = yield* read(wanted)
    const { conversation, started } = loaded.session
    const all = entries(conversation)
    const { first, last } = ends(all)
    const compressions = loaded.events.filter(({ _tag }) => _tag === "Compressed").length
    const tokens = viewTokens(conversation)
    if (json) {
      const place = begun(yield* summaries).findIndex(({ id }) => id === summary.id)
      return yield* Output.json(Shown, {
        ...rowOf(summary, Math.max(0, place)),
        messages: all.length,
        compressions,
        tokens: Math.ceil(tokens),
        importedFrom: started?.importedFrom?.format ?? null,
        first,
        last
      })
    }
    const now = yield* Clock.currentTimeMillis
    const { bold, dim } = yield* Output.style
    const when = (at: number) => {
      const passed = ago(at, now)
      return iso(at).startsWith(passed) ? iso(at) : `${iso(at)} (${passed})`
    }
    const facts = [
      ["Id", summary.id],
      ["Model", printable(loaded.session.model ?? "unknown")],
      ["Folder", printable(summary.cwd ?? "unknown")],
      ["Begun", when(summary.startedAt)],
      ["Written", when(summary.updatedAt)],
      [
        "Holds",
        `${Output.plural(all.length, "message")}, ${Output.plural(compressions, "compression")}, ${sizeText(summary.bytes)}`
      ],
      ["Sends", `${Output.plural(view(conversation).length, "message")}, ${Output.number(Math.ceil(tokens))} tokens`],
      ...(started?.importedFrom === undefined ? [] : [["From", started.importedFrom.format]]),
      ...(summary.holder === undefined ? [] : [["In use", `by process ${summary.holder.pid}`]])
    ]
    const said = ({ role, text }: typeof Said.Type) => `${dim(role)}  ${text}`
    yield* Output.text(
      [
        bold(cut(headingOf(summary), 100)),
        Output.table(facts),
        ...(first.length === 0 ? [] : ["", ...first.map(said)]),
        ...(last.length === 0 ? [] : [dim("…"), ...last.map(said)])
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Show what a session is about and how it stands"))

const rename = Command.make(
  "rename",
  { session: name, title: Argument.String("title").pipe(Argument.withDescription("Its new title")) },
  Effect.fn("cli.sessions.rename")(function* ({ session: wanted, title }) {
    if (printable(title) === "") return yield* badInput("a title has at least one character")
    const { id } = yield* resolve(wanted)
    yield* orStoreFailure(SessionStore.use((store) => store.rename(id, title)))
    yield* Output.notice(`session ${id} is called "${printable(title)}" now`)
  })
).pipe(Command.withDescription("Give a session a title"))

const exported = Command.make(
  "export",
  {
    session: name,
    file: Argument.String("file").pipe(Argument.withDescription("Where to write it; its blobs go beside it")),
    to: Input.optional(Flag.Literals("to", FormatName.literals)).pipe(
      Flag.withDescription("The format (default: Markdown for .md, contents for .json, else palimpsest)")
    )
  },
  Effect.fn("cli.sessions.export")(function* ({ file, session: wanted, to }) {
    yield* Effect.mapError(Export.checkPlace(file), (error) => badInput(error.message))
    const { loaded, summary } = yield* read(wanted)
    const byEnding = Result.getOrElse(formatFor(file, undefined), () => "palimpsest" as const)
    const format = to ?? byEnding
    if (format === "markdown") {
      const page = writeMarkdown(loaded.session.conversation, headingOf(summary))
      return yield* Effect.mapError(Export.writeText(file, page), (error) => failed(error.message))
    }
    const unheld = yield* Export.write(file, format, loaded.events).pipe(
      Output.progress(`writing ${file}`),
      Effect.mapError((error) => failed(error.message))
    )
    const kinds = Object.entries(unheld).map(([kind, count]) => `${printable(kind)} (${Output.number(count)})`)
    if (kinds.length > 0) {
      yield* Output.notice(
        `the format ${format} has no place for: ${kinds.join(", ")}; the log beside the file keeps it`
      )
    }
  })
).pipe(
  Command.withDescription("Write a session to a file, in any format"),
  Command.withExamples([
    { command: "palimpsest sessions export latest talk.jsonl", description: "With all that can be recalled" },
    { command: "palimpsest sessions export 3 talk.jsonl --to claude", description: "For another agent" }
  ])
)

/** Ids that are tried: the file's own, and then new ones. */
const attempts = 4

/**
 * The events of a file as those of a session with an id that is free: the file's own, where it is. Until the scope closes nobody
 * else gets it.
 */
const asNew = Effect.fnUntraced(function* (events: ReadonlyArray<SessionEvent>) {
  const [started, ...rest] = events
  if (started?._tag !== "Started") return yield* badInput("the file does not say how its conversation began")
  const fresh = SecureRandom.SecureRandom.use((random) => random.uuidV7()).pipe(
    Effect.provide(SecureRandom.layerWebCrypto)
  )
  const store = yield* SessionStore
  const claimed = (id: string) =>
    store.claim(id).pipe(
      Effect.as(true),
      Effect.catchIf(
        ({ reason }) => reason._tag === "SessionExists" || reason._tag === "SessionLocked",
        () => Effect.succeed(false)
      ),
      orStoreFailure
    )
  const isFit = /^[A-Za-z0-9_-]{1,64}$/.test(started.session)
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const id = attempt === 0 && isFit ? started.session : yield* fresh
    if (!(yield* claimed(id))) continue
    const all: ReadonlyArray<SessionEvent> = [{ ...started, session: id }, ...rest]
    return { id, all }
  }
  return yield* failed("no id was free for the session; try again")
})

const imported = Command.make(
  "import",
  {
    ...Input.conversation,
    title: Input.optional(Flag.String("title")).pipe(Flag.withDescription("What to call it"))
  },
  Effect.fn("cli.sessions.import")(function* (input) {
    const loaded = yield* Input.load(input)
    if (entries(loaded.session.conversation).length === 0) {
      return yield* badInput(`${printable(input.file)} holds no messages; nothing was taken over`)
    }
    const { all, id } = yield* asNew(loaded.events)
    const files = yield* SessionFiles
    const fs = yield* FileSystem.FileSystem
    yield* fs
      .makeDirectory(files.folder, { recursive: true, mode: 0o700 })
      .pipe(Effect.mapError(() => failed(`${files.folder} cannot be made; check who owns the folder above it`)))
    yield* Export.write(files.of(id), "palimpsest", all).pipe(
      Output.progress("writing the session"),
      Effect.mapError((error) => failed(error.message))
    )
    const { title } = input
    if (title !== undefined) yield* orStoreFailure(SessionStore.use((store) => store.rename(id, title)))
    yield* Output.text(id)
  }, Effect.scoped)
).pipe(
  Command.withDescription("Take a conversation over as a new session, and print its id"),
  Command.withExamples([
    {
      command: "palimpsest chat --resume $(palimpsest sessions import talk.jsonl)",
      description: "Go on with a conversation of another agent"
    }
  ])
)

/** Every session that was named, once. */
const resolveAll = Effect.fnUntraced(function* (
  names: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<SessionSummary>, ExitError, SessionStore> {
  const all = yield* summaries
  const sessions = yield* Effect.forEach(names, (one) => found(one, named(one, all)))
  return [...new Set(sessions)]
})

const confirmed = Effect.fnUntraced(function* (sessions: ReadonlyArray<SessionSummary>) {
  const stdio = yield* Stdio.Stdio
  if (!((yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal))) {
    return yield* badInput("nobody can be asked here; say --yes to delete for good")
  }
  const [first] = sessions
  const what =
    sessions.length === 1 && first !== undefined
      ? `"${cut(headingOf(first), 48)}"`
      : Output.plural(sessions.length, "session")
  return yield* Prompt.run(Prompt.Confirm({ message: `Delete ${what} for good?` })).pipe(
    Effect.catchTag("QuitError", () => Effect.succeed(false))
  )
})

const remove = Command.make(
  "delete",
  {
    sessions: name.pipe(Argument.variadic({ min: 1 })),
    yes: Flag.Boolean("yes").pipe(Flag.withAlias("y"), Flag.withDescription("Do not ask"), Flag.withDefault(false))
  },
  Effect.fn("cli.sessions.delete")(function* ({ sessions: names, yes }) {
    const sessions = yield* resolveAll(names)
    const held = sessions.find(({ holder }) => holder !== undefined)
    if (held?.holder !== undefined) {
      return yield* failed(`session ${held.id} is in use by process ${held.holder.pid}; nothing was deleted`)
    }
    if (!yes && !(yield* confirmed(sessions))) return yield* Output.notice("nothing was deleted")
    for (const { id } of sessions) {
      yield* orStoreFailure(SessionRetention.remove(id))
      yield* Output.notice(`session ${id} was deleted`)
    }
  })
).pipe(Command.withDescription("Delete sessions for good, with all that could be recalled of them"))

/**
 * `palimpsest sessions …`. `resume` goes on with the session of a name: it is what `chat --resume` does, and given from where
 * both are put together.
 */
export const sessions = <E, R>(resume: (name: string) => Effect.Effect<void, E, R>) =>
  Command.make("sessions").pipe(
    Command.withDescription("What was kept of earlier conversations"),
    Command.withSubcommands([
      list,
      show,
      Command.make("resume", { session: Argument.optional(name) }, ({ session }) =>
        resume(Option.getOrElse(session, () => "latest"))
      ).pipe(Command.withDescription("Go on with a session: the same as chat --resume")),
      rename,
      exported,
      imported,
      remove
    ])
  )
