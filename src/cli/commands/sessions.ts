/**
 * Manages saved sessions.
 *
 * One file: the subcommands share how a session is named, read and shown.
 */

import { Clock, Effect, Option, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { plainText } from "../../domain/content/Content.ts"
import { entries, type Entry, EntryId, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { applyEvent, emptySession } from "../../domain/session/Session.ts"
import { matchName, userSessions } from "../../domain/session/SessionName.ts"
import { sessionTree } from "../../domain/session/SessionTree.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { formatFor } from "../../domain/transcripts/FileExtension.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import { typedText } from "../../domain/transcripts/voice/Voice.ts"
import { findSession, orSelectionError } from "../../services/runtime/SessionOpening.ts"
import * as SessionCopy from "../../services/session/SessionCopy.ts"
import { locateLogs } from "../../services/session/SessionFiles.ts"
import * as SessionRetention from "../../services/session/SessionRetention.ts"
import { SessionStore, type SessionSummary, StoreOpener } from "../../services/session/SessionStore.ts"
import { secretsOfEvents } from "../../services/transcripts/FindSecrets.ts"
import { loadedFrom } from "../../services/transcripts/LoadedTranscript.ts"
import { SessionLocator } from "../../services/transcripts/SessionLocator.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import { addUnderFreeId } from "../flags/ImportedSession.ts"
import { inspected, writePage } from "../flags/InspectedFile.ts"
import * as RedactionFlags from "../flags/RedactionFlags.ts"
import * as ReportFlags from "../flags/ReportFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { confirmOrFail } from "../output/Confirm.ts"
import { badInput, failed } from "../output/ExitError.ts"
import { orNull, Time } from "../output/JsonFields.ts"
import * as Output from "../output/Output.ts"
import { orExit } from "../output/RuntimeText.ts"
import { headingOf, sessionTable } from "../output/SessionTable.ts"
import { ago, iso } from "../output/TimeText.ts"
import { treeText } from "../output/TreeText.ts"
import { checkPlace, redactedCopy, writeExport } from "../output/WrittenExport.ts"

/** A session in the output of `--json`. */
const Row = Schema.Struct({
  /** The position in the list, from 1, as `--resume` accepts it. */
  number: Schema.Natural,
  id: Schema.String,
  title: orNull(Schema.String),
  firstPrompt: orNull(Schema.String),
  model: orNull(Schema.String),
  cwd: orNull(Schema.String),
  startedAt: Time,
  updatedAt: Time,
  bytes: Schema.Natural,
  inUse: orNull(Schema.Struct({ pid: Schema.Int, since: Time })),
  /** Why the session cannot be opened. */
  problem: orNull(Schema.String)
})

const MessageExcerpt = Schema.Struct({ id: Schema.String, role: Schema.String, text: Schema.String })

/** The output of `show --json`. */
const Shown = Schema.Struct({
  ...Row.fields,
  messages: Schema.Natural,
  compressions: Schema.Natural,
  /** Tokens of the context that would be sent to the model. */
  tokens: Schema.Natural,
  importedFrom: orNull(Schema.String),
  first: Schema.Array(MessageExcerpt),
  last: Schema.Array(MessageExcerpt)
})

const rowOf = (session: SessionSummary, index: number) => ({ ...session, number: index + 1, inUse: session.holder })

const summaries = orExit(SessionStore.use((store) => store.summaries))

const name = Input.argument("session", `Number, title, beginning of the id, or latest`)

const list = Command.make(
  "list",
  {
    limit: Input.size("limit", "Show only the newest N sessions"),
    json: Input.json
  },
  Effect.fn("cli.sessions.list")(function* ({ json, limit }) {
    const all = userSessions(yield* summaries)
    const shown = all.slice(0, limit ?? all.length)
    if (json) return yield* Output.json(Schema.Array(Row), shown.map(rowOf))
    if (all.length === 0) return yield* Output.notice("no sessions yet")
    yield* Output.text(yield* sessionTable(shown, yield* Output.tableColumns(Infinity), yield* Output.style))
    if (shown.length < all.length) yield* Output.notice(`${all.length - shown.length} older sessions not shown`)
  })
).pipe(
  Command.withDescription("List saved sessions, newest first"),
  Input.withExamples({
    "palimpsest sessions list --limit 10": "Show the ten newest"
  })
)

/** Reads the summary and the log of a session, also while another process writes to it. */
const read = Effect.fnUntraced(function* (sessionName: string) {
  const summary = yield* orExit(findSession(sessionName))
  const events = yield* orExit(SessionStore.use((store) => store.events(summary.id)))
  return { summary, loaded: { events, session: events.reduce(applyEvent, emptySession) } }
})

/** Columns of a tree, which may also be read by a program. */
const treeColumns = 120

const excerptText = (text: string): string => truncate(printableLine(text), 500)

const excerptOf = ({ content, id }: Entry): typeof MessageExcerpt.Type => ({
  id,
  role: content.role,
  text: excerptText(plainText(content))
})

/** Returns the first two messages with text and the last two of the others. */
const ends = (all: ReadonlyArray<Entry>) => {
  const messages = all.filter(({ author, content }) => author === undefined && plainText(content).trim() !== "")
  return { first: messages.slice(0, 2), last: messages.slice(2).slice(-2) }
}

const show = Command.make(
  "show",
  { session: name, json: Input.json },
  Effect.fn("cli.sessions.show")(function* ({ json, session: sessionName }) {
    const { loaded, summary } = yield* read(sessionName)
    const { conversation, started } = loaded.session
    const all = entries(conversation)
    const { first, last } = ends(all)
    const compressions = loaded.events.filter(({ _tag }) => _tag === "Compressed").length
    const tokens = viewTokens(conversation)
    if (json) {
      const place = userSessions(yield* summaries).findIndex(({ id }) => id === summary.id)
      return yield* Output.json(Shown, {
        ...rowOf(summary, Math.max(0, place)),
        messages: all.length,
        compressions,
        tokens: Math.ceil(tokens),
        importedFrom: started?.importedFrom?.format,
        first: first.map(excerptOf),
        last: last.map(excerptOf)
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
      ["Model", printableLine(loaded.session.model ?? "unknown")],
      ["Folder", printableLine(summary.cwd ?? "unknown")],
      ["Started", when(summary.startedAt)],
      ["Updated", when(summary.updatedAt)],
      [
        "Contains",
        `${Output.plural(all.length, "message")}, ${Output.plural(compressions, "compression")}, ${Output.sizeText(summary.bytes)}`
      ],
      ["Context", `${Output.plural(view(conversation).length, "message")}, ${Output.number(Math.ceil(tokens))} tokens`],
      ...(started?.importedFrom === undefined ? [] : [["From", started.importedFrom.format]]),
      ...(summary.holder === undefined ? [] : [["In use", `by process ${summary.holder.pid}`]])
    ]
    const excerptLine = ({ content }: Entry) => {
      const text = plainText(content)
      return `${dim(content.role)}  ${excerptText(content.role === "user" ? typedText(text) : text)}`
    }
    yield* Output.text(
      [
        bold(truncate(headingOf(summary), 100)),
        Output.table(facts),
        ...(first.length === 0 ? [] : ["", ...first.map(excerptLine)]),
        ...(last.length === 0 ? [] : [dim("…"), ...last.map(excerptLine)])
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Show a session's details, first and last messages"))

/** The output of `tree --json`. */
const Tree = Schema.Struct({
  session: Schema.String,
  /** The entry at the end of the current path. */
  current: Schema.NullOr(EntryId),
  entries: Schema.Array(
    Schema.Struct({
      id: EntryId,
      parent: Schema.NullOr(EntryId),
      children: Schema.Array(EntryId),
      kind: Schema.String,
      text: Schema.String,
      at: orNull(Time),
      label: orNull(Schema.String),
      /** Whether the current path leads over it. */
      isOnPath: Schema.Boolean
    })
  )
})

const tree = Command.make(
  "tree",
  {
    session: name,
    all: Input.flag("all", "Show every message, not only yours, summaries, and where branches begin and end"),
    json: Input.json
  },
  Effect.fn("cli.sessions.tree")(function* ({ all, json, session: sessionName }) {
    const { loaded, summary } = yield* read(sessionName)
    const found = sessionTree(loaded.session)
    if (json) {
      return yield* Output.json(Tree, { session: summary.id, current: found.tip, entries: [...found.nodes.values()] })
    }
    if (found.nodes.size === 0) return yield* Output.notice("the session has no messages")
    const style = yield* Output.style
    yield* Output.text(
      treeText(found, {
        columns: yield* Output.tableColumns(treeColumns),
        now: yield* Clock.currentTimeMillis,
        style,
        all
      })
    )
  })
).pipe(
  Command.withDescription("Show a session as a tree: its messages, compressions and branches"),
  Input.withExamples({
    "palimpsest sessions tree latest": "Show the last session"
  })
)

const rename = Command.make(
  "rename",
  { session: name, title: Input.argument("title", "New title") },
  Effect.fn("cli.sessions.rename")(function* ({ session: sessionName, title }) {
    if (printableLine(title) === "") return yield* badInput("the title is empty")
    const { id } = yield* orExit(findSession(sessionName))
    yield* orExit(SessionStore.use((store) => store.rename(id, title)))
    yield* Output.notice(`session ${id} is now called "${printableLine(title)}"`)
  })
).pipe(Command.withDescription("Rename a session"))

const exported = Command.make(
  "export",
  {
    session: name,
    file: Input.argument("file", "File to write; large outputs go to a folder beside it"),
    to: Input.choice(
      "to",
      FormatName.literals,
      "Format (default: Markdown for .md, a page for .html, contents for .json, else palimpsest)"
    ),
    redact: Input.flag("redact", "Replace secrets and personal data with placeholders")
  },
  Effect.fn("cli.sessions.export")(function* ({ file, redact, session: sessionName, to }) {
    yield* checkPlace(file)
    const { loaded, summary } = yield* read(sessionName)
    if (to === undefined && /\.html?$/i.test(file)) {
      const sharing = yield* RedactionFlags.sharingOf({ share: false, redact, redactTexts: false, html: undefined })
      const cleaned = yield* sharing.clean(loadedFrom(loaded.events), headingOf(summary))
      const log = redact ? undefined : (yield* locateLogs)(summary.id)
      const about = { file: log ?? "session.jsonl", prices: yield* ReportFlags.readPrices(undefined) }
      const one = yield* inspected(cleaned.loaded, about)
      yield* writePage(file, cleaned.loaded, one, { title: cleaned.name })
      return yield* sharing.tell
    }
    const secrets = redact
      ? (yield* secretsOfEvents(loaded.events, "", yield* RedactionFlags.sharedSearchOf(undefined))).secrets
      : undefined
    const { copy, replaced } = yield* redactedCopy(loaded.events, secrets)
    if (redact) yield* Output.notice(`replaced ${Output.plural(replaced, "secret")} in the copy`)
    const byEnding = Result.getOrElse(formatFor(file, undefined), () => "palimpsest" as const)
    yield* writeExport(file, to ?? byEnding, copy, headingOf(summary), secrets)
  })
).pipe(
  Command.withDescription("Export a session to a file, in any format"),
  Input.withExamples({
    "palimpsest sessions export latest talk.jsonl": "Export with everything that can be recalled",
    "palimpsest sessions export latest talk.html": "Export a page for a browser",
    "palimpsest sessions export 3 talk.jsonl --to claude": "Export for Claude Code"
  })
)

/** The title that an agent gave to a session. */
const agentsTitle = Effect.fnUntraced(function* (file: string) {
  const find = yield* SessionLocator
  if (file === "-") return undefined
  const found = yield* Effect.option(find(file)).pipe(Output.progress("reading the sessions of your agents"))
  return Option.getOrUndefined(found)?.title
})

const imported = Command.make(
  "import",
  {
    ...Input.conversation,
    title: Input.text("title", "title", "Title of the new session")
  },
  Effect.fn("cli.sessions.import")(function* (input) {
    const loaded = yield* ConversationInput.load(input)
    if (entries(loaded.session.conversation).length === 0) {
      return yield* badInput(`${printableLine(input.file)} holds no messages; nothing was imported`)
    }
    const id = yield* addUnderFreeId(loaded.events).pipe(Output.progress("writing the session"))
    const title = input.title ?? (yield* agentsTitle(input.file))
    if (title !== undefined) yield* orExit(SessionStore.use((store) => store.rename(id, title)))
    yield* Output.text(id)
  })
).pipe(
  Command.withDescription("Import a conversation as a new session and print its id"),
  Input.withExamples({
    "palimpsest chat --resume $(palimpsest sessions import talk.jsonl)": "Continue a conversation of another agent"
  })
)

/** Resolves the named sessions without duplicates. */
const resolveAll = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const all = yield* summaries
  const sessions = yield* Effect.forEach(names, (one) => orExit(orSelectionError(one, matchName(one, all))))
  return [...new Set(sessions)]
})

const copiedText = (copied: SessionCopy.Copied): string =>
  copied._tag === "Same"
    ? "was there already"
    : copied._tag === "Added"
      ? `was copied (${Output.plural(copied.events, "event")})`
      : `was continued (${Output.plural(copied.events, "event")})`

/** The command `palimpsest sessions copy --to STORE [SESSION…]`. */
const copy = Command.make(
  "copy",
  {
    sessions: Input.argument(
      "session",
      "Number, title, beginning of the id, or latest; without any, all sessions"
    ).pipe(Argument.variadic()),
    to: Flag.String("to").pipe(
      Flag.withMetavar("store"),
      Flag.withDescription("Store to copy to: files, files:FOLDER, sqlite:FILE or postgres://USER@HOST/DATABASE")
    )
  },
  Effect.fn("cli.sessions.copy")(function* ({ sessions: names, to: address }) {
    const from = yield* SessionStore
    const sessions = names.length === 0 ? yield* orExit(from.summaries) : yield* resolveAll(names)
    const to = yield* orExit(StoreOpener.use((opener) => opener.open(address)))
    let failures = 0
    // The oldest first, so that the lists of both stores have the same order.
    for (const { id } of sessions.toReversed()) {
      const copied = yield* Effect.result(orExit(SessionCopy.copy(from, to, id)))
      if (Result.isFailure(copied)) failures += 1
      yield* Output.notice(
        Result.isFailure(copied)
          ? `session ${id} was not copied: ${copied.failure.message}`
          : `session ${id} ${copiedText(copied.success)}`
      )
    }
    if (sessions.length === 0) yield* Output.notice("no sessions yet")
    if (failures > 0) {
      const others = failures === sessions.length ? "" : "; the others are"
      return yield* failed(`${Output.plural(failures, "session")} not copied${others}`)
    }
  }, Effect.scoped)
).pipe(
  Command.withDescription("Copy sessions to another store, or what was added since the last copy"),
  Input.withExamples({
    "palimpsest sessions copy --to sqlite:sessions.db": "Copy all sessions to a database"
  })
)

const confirmDelete = (sessions: ReadonlyArray<SessionSummary>) => {
  const [first] = sessions
  const what =
    sessions.length === 1 && first !== undefined
      ? `"${truncate(headingOf(first), 48)}"`
      : Output.plural(sessions.length, "session")
  return confirmOrFail(`Delete ${what} for good?`, "delete")
}

const remove = Command.make(
  "delete",
  {
    sessions: name.pipe(Argument.variadic({ min: 1 })),
    yes: Input.flag("yes", "Delete without asking").pipe(Flag.withAlias("y"))
  },
  Effect.fn("cli.sessions.delete")(function* ({ sessions: names, yes }) {
    const sessions = yield* resolveAll(names)
    const held = sessions.find(({ holder }) => holder !== undefined)
    if (held?.holder !== undefined) {
      return yield* failed(`session ${held.id} is in use by process ${held.holder.pid}; nothing was deleted`)
    }
    if (!yes && !(yield* confirmDelete(sessions))) return yield* Output.notice("nothing was deleted")
    for (const { id } of sessions) {
      yield* orExit(SessionRetention.remove(id))
      yield* Output.notice(`session ${id} was deleted`)
    }
  })
).pipe(Command.withDescription("Delete sessions and everything recallable from them"))

/**
 * The command `palimpsest sessions …`. `resume` continues a session by name, as `chat --resume` does. It is a parameter so that
 * this file does not import the chat.
 */
export const sessions = <E, R>(resume: (name: string) => Effect.Effect<void, E, R>) =>
  Command.make("sessions").pipe(
    Command.withSubcommands([
      list,
      show,
      tree,
      Command.make("resume", { session: Argument.optional(name) }, ({ session }) =>
        resume(Option.getOrElse(session, () => "latest"))
      ).pipe(Command.withDescription("Resume a session; the same as chat --resume")),
      rename,
      exported,
      imported,
      copy,
      remove
    ])
  )
