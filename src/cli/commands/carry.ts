/** Writes a session so that an agent can continue it: `rescue` for the same agent, `resume` for another one. */

import { Effect, FileSystem, Path, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { applyEvent, emptySession } from "../../domain/session/Session.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { WritableAgent } from "../../domain/transcripts/CarriedSession.ts"
import { AgentSessions } from "../../services/transcripts/AgentSessions.ts"
import { type Carried, carryOver } from "../../services/transcripts/CarryOver.ts"
import { secretsOf } from "../../services/transcripts/FindSecrets.ts"
import { type FoundSession, listSessions } from "../../services/transcripts/FindSessions.ts"
import type { Loaded } from "../../services/transcripts/LoadedTranscript.ts"
import { inputName } from "../../services/transcripts/TranscriptError.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as FileWindow from "../flags/FileWindow.ts"
import * as RedactionFlags from "../flags/RedactionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import { orNull } from "../output/JsonFields.ts"
import * as Output from "../output/Output.ts"
import { tellUnreadable } from "../output/RedactionNotices.ts"
import { kindsText, redactedCopy } from "../output/WrittenExport.ts"

/** The agents for which a session can be written. */
const agents: ReadonlyArray<WritableAgent> = ["claude", "codex", "gemini", "pi", "opencode"]

/** The share of the model's window that the messages may take. The rest is for the agent's instructions, tools and the work. */
const defaultShare = 0.4

const session = Input.argument(
  "session",
  'Session file, the beginning of a session\'s id ("palimpsest find" lists them), or - for standard input'
)
const below = Input.size("below", `Limit the messages to this many tokens (default: 40 % of the model's window)`)
const folder = Input.text("folder", "folder", "Folder to continue in (default: the session's folder)")

const redact = Input.flag("redact", "Replace secrets and personal data with placeholders")

/** The arguments and flags of both. */
const flags = { session, below, folder, redact, json: Input.json }

/** The output of `--json`. */
const Report = Schema.Struct({
  file: Schema.String,
  id: Schema.String,
  command: Schema.String,
  original: Schema.String,
  status: orNull(Schema.String),
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural }),
  messages: Schema.Struct({ before: Schema.Natural, after: Schema.Natural }),
  bytes: Schema.Struct({ before: Schema.Natural, after: Schema.Natural }),
  /** What was not read, by kind: records that are no part of the conversation, and lines that are broken. */
  skipped: Schema.Record(Schema.String, Schema.Natural),
  /** What the agent's format cannot hold, by kind. It stays recallable. */
  unheld: Schema.Record(Schema.String, Schema.Natural)
})

/** Finds the session. For a path and for standard input, sessions are listed only with `redact`, because its secrets may be in files beside it. */
const sessionOf = Effect.fnUntraced(function* (name: string, redact: boolean) {
  const isFile = yield* FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.exists(name), () => false))
  const list =
    (isFile || name === "-") && !redact
      ? { problems: [], sessions: [] }
      : yield* Output.progress("reading the sessions of your agents")(listSessions())
  return yield* ConversationInput.choose(name, list)
})

/** Returns the conversation without its secrets. */
const redacted = Effect.fnUntraced(function* (loaded: Loaded, session: FoundSession) {
  const { problems, secrets } = yield* Output.progress("searching for secrets")(
    Effect.flatMap(RedactionFlags.searchOf(undefined), (search) => secretsOf(session, search))
  )
  yield* tellUnreadable(problems)
  const { copy, replaced } = yield* redactedCopy(loaded.events, secrets)
  yield* Output.notice(`replaced ${Output.plural(replaced, "secret")} in the copy`)
  return { ...loaded, events: copy, session: copy.reduce(applyEvent, emptySession) }
})

/** Returns the folder of a session by the place of its file: Gemini CLI does not record it. */
const folderOf = Effect.fnUntraced(function* (file: string, agent: WritableAgent | undefined) {
  if (agent === undefined) return undefined
  const { files } = yield* AgentSessions.use((sessions) => sessions.files([agent]))
  return files.find(({ path }) => path === file)?.folder
})

const text = (carried: Carried, { skipped, torn }: Loaded, original: string): string => {
  const { bytes, command, file, messages, status, tokens, unheld } = carried
  const left = { ...skipped, ...(torn === undefined ? {} : { "incomplete last line": 1 }) }
  const rows = [
    [
      "size",
      `${Output.number(tokens.before)} → ${Output.number(tokens.after)} tokens, ${Output.number(messages.before)} → ${Output.number(messages.after)} messages, ${Output.sizeText(bytes.before)} → ${Output.sizeText(bytes.after)}`
    ],
    ["written", printableLine(file)],
    ...(original === "-" ? [] : [["original", `${printableLine(original)} (unchanged)`]]),
    ...(Object.keys(left).length === 0 ? [] : [["skipped", kindsText(left)]]),
    ...(Object.keys(unheld).length === 0
      ? []
      : [["not shown", `${kindsText(unheld)}; recallable from the written file`]]),
    ["continue", printableLine(command)]
  ]
  const done =
    status === undefined
      ? "Repaired and copied; it needed no compression"
      : "Compressed without a model; all of it can be recalled"
  return `${done}\n${Output.table(rows.map((row) => ["", ...row]))}`
}

/** Writes the session for an agent, its own when absent, and prints what it did. `-` is standard input. */
const run = Effect.fnUntraced(function* (input: {
  readonly session: string
  readonly agent: WritableAgent | undefined
  readonly below: number | undefined
  readonly folder: string | undefined
  readonly redact: boolean
  readonly json: boolean
}) {
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const found = yield* sessionOf(input.session, input.redact)
  const file = path.resolve(found.path)
  const original = input.session === "-" ? "-" : file
  const withName = ConversationInput.naming(input.session, file)
  const whole = yield* withName(ConversationInput.load({ file, from: undefined, lenient: true }))
  const loaded = input.redact ? yield* redacted(whole, found) : whole
  const from = agents.find((agent) => agent === loaded.format)
  const agent = input.agent ?? from
  if (agent === undefined) {
    return yield* badInput(
      `${printableLine(inputName(original))} is not a session of ${agents.join(", ")}; name the agent with resume --in AGENT`
    )
  }
  const cameFrom = loaded.session.started?.cwd ?? (yield* folderOf(file, from))
  const own = input.folder === undefined ? cameFrom : path.resolve(input.folder)
  if (own === undefined) return yield* badInput(`the session names no folder; give one with --folder`)
  if (!(yield* Effect.orElseSucceed(fs.exists(own), () => false))) {
    if (input.folder !== undefined) return yield* badInput(`--folder ${printableLine(own)}: no such folder`)
    yield* Output.notice(`${printableLine(own)} does not exist on this machine; --folder FOLDER names another`)
  }
  const window =
    input.below ??
    (yield* FileWindow.windowOf(loaded, yield* FileWindow.settings, { asks: false, hint: "; --below sets the size" }))
  const carried = yield* carryOver({
    loaded,
    file,
    agent,
    from,
    cameFrom,
    below: input.below ?? Math.floor(window * defaultShare),
    folder: own
  }).pipe(
    Output.progress("writing the session"),
    Effect.mapError(({ _tag, message }) =>
      failed(_tag === "SessionTooLarge" ? `${message}; allow more with --below` : message)
    ),
    withName
  )
  if (!input.json) {
    // The last line is a command, which is copied.
    const [, report = "", command = ""] = /^([^]*)\n(.+)\n?$/.exec(text(carried, loaded, original)) ?? []
    return yield* Effect.andThen(Output.text(report), Output.unwrapped(command))
  }
  yield* Output.json(Report, {
    ...carried,
    original,
    skipped: { ...loaded.skipped, ...(loaded.torn === undefined ? {} : { "incomplete last line": 1 }) }
  })
}, Effect.scoped)

/** The command `palimpsest rescue SESSION`. */
export const rescue = Command.make(
  "rescue",
  flags,
  Effect.fn("cli.rescue")((input) => run({ ...input, agent: undefined }))
).pipe(
  Input.withExamples({
    "palimpsest rescue 1f0c2d1a": "Write a session that opens again, and print the command that opens it",
    "palimpsest rescue session.jsonl --below 60k": "Limit its messages to 60,000 tokens"
  })
)

/** The command `palimpsest resume SESSION --in AGENT`. */
export const resume = Command.make(
  "resume",
  {
    ...flags,
    in: Flag.Literals("in", agents).pipe(Flag.withDescription("Agent to continue the session in"))
  },
  Effect.fn("cli.resume")(({ in: agent, ...input }) => run({ ...input, agent }))
).pipe(Input.withExamples({ "palimpsest resume 1f0c2d1a --in codex": "Continue a session of any agent in Codex" }))
