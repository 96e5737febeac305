/** Finds what a command works on: a session, or a conversation that is none; and reads it. */

import { Effect, FileSystem, Stdio, Stream } from "effect"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { decode, joinBytes } from "../../domain/text/Bytes.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { chooseSession } from "../../services/transcripts/ChooseSession.ts"
import { type FoundSession, listSessions, type SessionList } from "../../services/transcripts/FindSessions.ts"
import type { MemoryNeed } from "../../services/transcripts/LoadedTranscript.ts"
import { SessionLocator } from "../../services/transcripts/SessionLocator.ts"
import { inputName, type TranscriptError } from "../../services/transcripts/TranscriptError.ts"
import { Transcripts } from "../../services/transcripts/Transcripts.ts"
import { badInput, ExitError } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

const advice = ({ kind, memory = 0 }: TranscriptError): string => {
  switch (kind) {
    case "BrokenLine":
      return "; use --lenient to skip broken lines"
    case "UnknownFormat":
      return ", or name the format with --from FORMAT"
    case "TooLarge":
      return `; to read it all the same set NODE_OPTIONS=--max-old-space-size=${Math.ceil(memory / 1e6)}`
    case "UnknownSession":
      return "; palimpsest find lists the sessions"
    case "NotASession":
    case "Unusable":
      return ""
  }
}

/** Bad input: a conversation cannot be read, and which flag or command helps. */
export const unreadable = (error: TranscriptError): ExitError => badInput(`${error.message}${advice(error)}`)

/**
 * Returns the path of a conversation: a file, a session in a database, `-`, or, when there is no such file, the session of any
 * agent whose id is this or begins with it. Then the sessions are listed, as `find` does.
 */
export const locate = Effect.fn("ConversationInput.locate")(function* (name: string) {
  const file = name.replace(sessionInDatabase, "")
  const isThere = yield* FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.exists(file), () => false))
  if (name === "-" || isThere || !sessionName.test(name)) return name
  const find = yield* SessionLocator
  const { path } = yield* find(name).pipe(
    Output.progress("reading the sessions of your agents"),
    Effect.mapError(unreadable)
  )
  return path
})

/** Keeps standard input in a file as long as the scope lasts. Returns its path. */
const keptInput = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const stdio = yield* Stdio.Stdio
  const bytes = joinBytes(yield* Stream.runCollect(stdio.stdin))
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "palimpsest-" })
  const isDocument = parsedOrUndefined(decode(bytes).text) !== undefined
  const file = `${folder}/standard-input.${isDocument ? "json" : "jsonl"}`
  yield* fs.writeFile(file, bytes, { mode: 0o600 })
  return file
}).pipe(Effect.mapError(({ message }) => badInput(`standard input: ${message}`)))

/**
 * Chooses one of these sessions by the path of its file or by its id, for commands that read the files of sessions. `-` is
 * standard input, which stands in a file as long as the scope lasts.
 */
export const choose = Effect.fn("ConversationInput.choose")(function* (
  name: string,
  list: Pick<SessionList, "problems" | "sessions">
) {
  const file = name === "-" ? yield* keptInput : name
  return yield* chooseSession(file, list).pipe(Effect.mapError(unreadable), naming(name, file))
})

/** Names standard input in errors, in place of the file that it stands in. */
export const naming = (name: string, file: string) =>
  Effect.mapError(
    ({ message, status }: ExitError) =>
      new ExitError({ message: name === "-" ? message.replaceAll(file, inputName(name)) : message, status })
  )

/** What can be the id of a session, or its path in a database: no name of a file with an ending. */
export const sessionName = /^[\w-]{4,}$|#ses_[\w-]+$/
const sessionInDatabase = /#ses_[\w-]+$/

/**
 * Reads the conversation of a command. An unreadable one is bad input: status 2. Before a read that takes much memory it prints
 * how much, and after one of a file with several sessions that it read the latest. `shortens` accepts a log that is too long for memory with the beginnings of its texts.
 */
export const load = Effect.fn("ConversationInput.load")(function* (flags: {
  readonly file: string
  readonly from: SourceFormat | undefined
  readonly lenient: boolean
  readonly shortens?: boolean
}) {
  const transcripts = yield* Transcripts
  const stdio = yield* Stdio.Stdio
  const { from, lenient, shortens = false } = flags
  const file = yield* locate(flags.file)
  const warn = ({ bytes, memory }: MemoryNeed) =>
    Output.notice(
      `${file} has ${Output.sizeText(bytes)}; reading it needs about ${Output.sizeText(memory)} of memory`
    ).pipe(Effect.provideService(Stdio.Stdio, stdio))
  const loaded = yield* transcripts
    .load(file, { ...(from === undefined ? {} : { from }), lenient, shortens, warn })
    .pipe(Output.progress(`reading ${inputName(file)}`), Effect.mapError(unreadable))
  const others = loaded.skipped["another session"] ?? 0
  if (others > 0)
    yield* Output.notice(
      `${inputName(file)} holds several sessions; the latest is read, without ${Output.plural(others, "message")} of others`
    )
  return loaded
})

/** A session, or a conversation that is none. */
export type Chosen =
  | { readonly _tag: "Session"; readonly session: FoundSession }
  /** From standard input, or a history for the Gemini API. `name` is what messages call it. */
  | {
      readonly _tag: "Conversation"
      readonly name: string
      readonly format: SourceFormat
      readonly events: ReadonlyArray<SessionEvent>
    }

const conversationIn = (file: string, from: SourceFormat | undefined) =>
  Effect.map(load({ file, from, lenient: false }), ({ events, format }): Chosen => ({
    _tag: "Conversation",
    name: inputName(file),
    format,
    events
  }))

/** Finds the session that a command names, or reads the conversation, in the format `from`. Fails when there is neither. */
export const chooseAny = Effect.fn("ConversationInput.chooseAny")(function* (
  name: string,
  from: SourceFormat | undefined
) {
  if (name === "-" || from !== undefined) return yield* conversationIn(name, from)
  const list = yield* Output.progress("reading the sessions of your agents")(listSessions())
  return yield* chooseSession(name, list).pipe(
    Effect.map((session): Chosen => ({ _tag: "Session", session })),
    Effect.catchTag("TranscriptError", (error) =>
      error.kind === "NotASession" ? conversationIn(name, from) : Effect.fail(unreadable(error))
    )
  )
})
