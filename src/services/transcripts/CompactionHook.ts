import { Effect, Schema } from "effect"
import { gatherEvidence } from "../../domain/compression/evidence/Evidence.ts"
import { composeSnapshot } from "../../domain/compression/handover/Extractive.ts"
import { isText } from "../../domain/content/Content.ts"
import { entries, itemParts, view } from "../../domain/conversation/Conversation.ts"
import type { Session } from "../../domain/session/Session.ts"
import { clipped, firstUnits } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { untrustedLine } from "../../domain/text/UntrustedText.ts"
import type { TranscriptError } from "./TranscriptError.ts"
import { Transcripts } from "./Transcripts.ts"

/** What Claude Code's hooks get from us around a compaction: a focus before it, and afterwards what the summary lost. */

/** What a hook reads from its standard input. */
const HookInput = Schema.Struct({
  hook_event_name: Schema.String,
  transcript_path: Schema.String,
  /** How a session started: `compact` after a compaction. */
  source: Schema.optionalKey(Schema.String)
})

/** The input is not that of a hook. */
export class HookInputError extends Schema.TaggedError<HookInputError>()("HookInputError", {
  message: Schema.String
}) {}

const decode = Schema.decodeUnknownEffect(fromJson(HookInput))

/** Claude Code passes on at most 10,000 characters of a hook. */
const maxChars = 9_800
/** Tokens of the handover: with its heading it stays within the characters. */
const budget = 2_300

const evidenceOf = ({ conversation, started }: Session) =>
  Work.run(
    gatherEvidence(
      entries(conversation).filter(({ author }) => author !== "environment"),
      { cwd: started?.cwd }
    )
  )

const maxItems = 12
const maxLineChars = 160

const list = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0
    ? []
    : [`${title}:`, ...lines.slice(-maxItems).map((line) => `- ${clipped(untrustedLine(line), maxLineChars)}`)]

/** Returns what a summary has to keep, as instructions for who writes it; empty when there is nothing. */
export const focusOf = Effect.fn("CompactionHook.focusOf")(function* (session: Session) {
  const { constraints, errors, files } = yield* evidenceOf(session)
  const changed = [...files].filter(([, { state }]) => state !== "read").map(([path]) => path)
  const lines = [
    ...list(
      "Keep what the user ordered, word for word",
      constraints.map(({ text }) => text)
    ),
    ...list("Say of each of these files what was changed and why", changed),
    ...list("Say that these failures are still open", [...errors.keys()])
  ]
  return lines.join("\n")
})

/** Returns what a compaction dropped and its summary does not say: a handover with handles. */
export const lostBy = Effect.fn("CompactionHook.lostBy")(function* (session: Session, file: string) {
  const kept = view(session.conversation).flatMap((item) =>
    itemParts(item).flatMap((part) => (isText(part) ? [part.text ?? ""] : []))
  )
  const evidence = yield* evidenceOf(session)
  const { text } = yield* Work.run(composeSnapshot(evidence, { budget, kept, cwd: session.started?.cwd }))
  const heading = `Taken from the record of this conversation by a program, without a model; it adds to the summary above and overrides it where exact words or values differ. What is quoted as user_words was written by the user. The exact text behind a handle (h_…): palimpsest recall ${file} HANDLE, or the tool recall of the MCP server palimpsest.`
  return firstUnits(`${heading}\n${text}`, maxChars)
})

/** Answers a hook of Claude Code with what it prints; empty for an event that is none of ours. */
export const answerHook = Effect.fn("CompactionHook.answerHook")(function* (
  input: string
): Effect.fn.Return<string, HookInputError | TranscriptError, Transcripts> {
  const { hook_event_name, source, transcript_path } = yield* Effect.mapError(
    decode(input),
    () => new HookInputError({ message: "standard input is not what Claude Code gives a hook" })
  )
  const isBefore = hook_event_name === "PreCompact"
  if (!isBefore && !(hook_event_name === "SessionStart" && source === "compact")) return ""
  const { session } = yield* Transcripts.use(({ load }) => load(transcript_path, { lenient: true }))
  if (isBefore) return yield* focusOf(session)
  const additionalContext = yield* lostBy(session, transcript_path)
  return JSON.stringify({ hookSpecificOutput: { hookEventName: "SessionStart", additionalContext } })
})
