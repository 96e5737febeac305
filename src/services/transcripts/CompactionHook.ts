/**
 * What agents get from us around a compaction: a focus before it, afterwards what the summary lost, or the summary itself. The
 * input is that of the hooks of Claude Code, Codex and Gemini CLI; the extensions in `integrations` send it in the same form.
 */

import { Effect, Predicate, Schema } from "effect"
import { gatherEvidence } from "../../domain/compression/evidence/Evidence.ts"
import { handoverOf } from "../../domain/compression/handover/Extractive.ts"
import { isText } from "../../domain/content/Content.ts"
import { compressions, entries, itemParts, view } from "../../domain/conversation/Conversation.ts"
import type { Session } from "../../domain/session/Session.ts"
import { clipped, encode, firstUnits } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { untrustedLine } from "../../domain/text/UntrustedText.ts"
import { piReader } from "../../domain/transcripts/pi/PiReader.ts"
import { isProblem } from "../../domain/transcripts/Problem.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { AgentSessions } from "./AgentSessions.ts"
import { importWithSession } from "./ImportTranscript.ts"
import type { TranscriptError } from "./TranscriptError.ts"
import { Transcripts } from "./Transcripts.ts"

/** What a hook reads from its standard input. */
const HookInput = Schema.Struct({
  hook_event_name: Schema.String,
  /** The session's file. Codex and Pi can run without one. */
  transcript_path: Schema.NullOr(Schema.String).pipe(Schema.optionalKey),
  /** How a session started: `compact` after a compaction. */
  source: Schema.optionalKey(Schema.String),
  /** Of Pi: the entries of the current branch, and the first one that stays. */
  entries: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  first_kept_entry_id: Schema.optionalKey(Schema.String),
  cwd: Schema.optionalKey(Schema.String),
  /** Of opencode, whose sessions have no files. */
  session_id: Schema.optionalKey(Schema.String)
})
type HookInput = typeof HookInput.Type

/** The input is not that of a hook. */
export class HookInputError extends Schema.TaggedError<HookInputError>()("HookInputError", {
  message: Schema.String
}) {}

const decode = Schema.decodeUnknownEffect(fromJson(HookInput))

/** Claude Code passes on at most 10,000 characters of a hook; Codex puts more than about 10,000 bytes into a file. */
const maxBytes = 9_800
/** Tokens of the handover: with its heading it stays within the bytes. */
const contextTokens = 2_300
/** Tokens of a text that takes the place of a summary. */
const summaryTokens = 6_000

const saidIn = ({ conversation }: Session) => entries(conversation).filter(({ author }) => author !== "environment")

const maxItems = 12
const maxLineChars = 160

const list = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0
    ? []
    : [`${title}:`, ...lines.slice(-maxItems).map((line) => `- ${clipped(untrustedLine(line), maxLineChars)}`)]

/** Returns what a summary has to keep, as instructions for who writes it; empty when there is nothing. */
const focusOf = Effect.fn("CompactionHook.focusOf")(function* (session: Session) {
  const { constraints, failures, files } = yield* Work.run(
    gatherEvidence(saidIn(session), { cwd: session.started?.cwd })
  )
  const changed = [...files].filter(([, { state }]) => state !== "read").map(([path]) => path)
  const lines = [
    ...list(
      "Keep what the user ordered, word for word",
      constraints.map(({ text }) => text)
    ),
    ...list("Say of each of these files what was changed and why", changed),
    ...list("Say that these failures are still open", [...failures.keys()])
  ]
  return lines.join("\n")
})

/** By these words a handover is known again. */
const origin = "Taken from the record of this conversation by a program, without a model"

const headingOf = (role: string, file: string | undefined): string => {
  const recall = file === undefined ? "" : `palimpsest recall ${file} HANDLE, or `
  return `${origin}; ${role} What is quoted as user_words was written by the user. The exact text behind a handle (h_…): ${recall}the tool recall of the MCP server palimpsest.`
}

const addition = "it adds to the summary above and overrides it where exact words or values differ."

/** The beginning of a text that has at most this many bytes in UTF-8. */
const firstBytes = (text: string, bytes: number): string => {
  const size = encode(text).length
  return size <= bytes ? text : firstUnits(text, Math.floor(text.length * (bytes / size)))
}

/** The texts that an agent sees after its last compaction. */
const seenIn = ({ conversation }: Session): ReadonlyArray<string> =>
  view(conversation).flatMap((item) => itemParts(item).flatMap((part) => (isText(part) ? [part.text ?? ""] : [])))

const handover = (session: Session, budget: number, kept: ReadonlyArray<string>) =>
  Work.run(handoverOf(saidIn(session), { budget, kept, cwd: session.started?.cwd }))

/** Returns what a compaction dropped and its summary does not say: a handover with handles. */
const lostBy = Effect.fn("CompactionHook.lostBy")(function* (session: Session, file: string) {
  const text = yield* handover(session, contextTokens, seenIn(session))
  return firstBytes(`${headingOf(addition, file)}\n${text}`, maxBytes)
})

/** Whether the last compaction of a session is one after which no handover was given yet. */
const isOwed = ({ conversation }: Session): boolean => {
  const last = compressions(conversation).at(-1)
  if (last === undefined) return false
  return !entries(conversation)
    .slice(last.entries)
    .some(({ content }) => content.parts.some(({ text }) => text?.includes(origin) === true))
}

/** The session of Pi as it is after a compaction that has no summary yet. */
const piSession = Effect.fnUntraced(function* ({ cwd = "", entries = [], first_kept_entry_id: kept }: HookInput) {
  const lines: ReadonlyArray<unknown> = [
    { type: "session", version: 3, id: "compaction", timestamp: new Date(0).toISOString(), cwd },
    ...entries,
    {
      type: "compaction",
      id: "palimpsest",
      parentId: lastId(entries),
      timestamp: new Date(0).toISOString(),
      summary: "",
      ...(kept === undefined ? {} : { firstKeptEntryId: kept }),
      tokensBefore: 0
    }
  ]
  const reader = piReader()
  for (const [at, line] of lines.entries()) reader.line(line, JSON.stringify(line), at + 1)
  const read = yield* Work.run(reader.end())
  if (isProblem(read)) return yield* new HookInputError({ message: `the session cannot be read: ${read.detail}` })
  const { session } = yield* Effect.mapError(importWithSession(read), ({ message }) => new HookInputError({ message }))
  return session
})

const lastId = (entries: ReadonlyArray<unknown>): string | null => {
  const last = entries.at(-1)
  return Predicate.hasProperty(last, "id") && typeof last.id === "string" ? last.id : null
}

const contextFor = (hookEventName: string, additionalContext: string): string =>
  JSON.stringify({ hookSpecificOutput: { hookEventName, additionalContext } })

/** Answers a hook with what it prints; empty for an event that is none of ours. */
export const answerHook = Effect.fn("CompactionHook.answerHook")(function* (
  text: string
): Effect.fn.Return<string, HookInputError | TranscriptError, AgentSessions | Transcripts | TokenCounter | TempStore> {
  const input = yield* Effect.mapError(
    decode(text),
    () => new HookInputError({ message: "standard input is not the JSON that an agent sends to a hook" })
  )
  const file = input.transcript_path ?? undefined
  const loaded = (file: string) =>
    Transcripts.use(({ load }) => Effect.map(load(file, { lenient: true }), ({ session }) => session))
  switch (input.hook_event_name) {
    case "PreCompact":
      return file === undefined ? "" : yield* focusOf(yield* loaded(file))
    case "SessionStart":
      if (file === undefined || input.source !== "compact") return ""
      return contextFor("SessionStart", yield* lostBy(yield* loaded(file), file))
    case "BeforeAgent": {
      // The first prompt of a session has no file yet.
      const session = file === undefined ? undefined : yield* Effect.orElseSucceed(loaded(file), () => undefined)
      if (file === undefined || session === undefined || !isOwed(session)) return ""
      return contextFor("BeforeAgent", yield* lostBy(session, file))
    }
    case "session_before_compact": {
      const session = yield* piSession(input)
      const snapshot = yield* handover(session, summaryTokens, seenIn(session))
      return JSON.stringify({ summary: `${headingOf("the messages that follow were kept.", file)}\n${snapshot}` })
    }
    case "experimental.session.compacting": {
      const { files } = yield* AgentSessions.use((sessions) => sessions.files(["opencode"]))
      const path = files.find(({ id }) => id === input.session_id)?.path
      if (path === undefined) return yield* new HookInputError({ message: "opencode's database has no such session" })
      const session = yield* loaded(path)
      const snapshot = yield* handover(session, contextTokens, [])
      return JSON.stringify({
        focus: yield* focusOf(session),
        handover: firstBytes(`${headingOf(addition, path)}\n${snapshot}`, maxBytes)
      })
    }
    default:
      return ""
  }
})
