/** Chooses a session by the path of its file or by its id. */

import { Effect, FileSystem, Path } from "effect"
import { packedProblem, detectFormat } from "../../domain/transcripts/facts/DetectFormat.ts"
import type { SessionFile } from "./AgentSessions.ts"
import { type FoundSession, listSessions, type SessionList, sessionOf } from "./FindSessions.ts"
import { inUtf8, lineText } from "./LineSplitter.ts"
import { transcriptError, type TranscriptError, unreadable } from "./TranscriptError.ts"

/** Ids are chosen by at least this many characters of their beginning. */
const minIdChars = 4

const fileOf = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<SessionFile | undefined, TranscriptError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const info = yield* Effect.option(fs.stat(path))
  if (info._tag === "None") return undefined
  if (info.value.type === "Directory") return yield* transcriptError(path, 0, "is a directory; expected a file")
  if (info.value.type !== "File") return undefined
  const head = yield* Effect.scoped(
    Effect.flatMap(fs.open(path, { flag: "r" }), (file) => {
      const bytes = new Uint8Array(64 * 1024)
      return Effect.map(file.read(bytes), (size) => inUtf8()(bytes.subarray(0, Number(size))))
    })
  ).pipe(Effect.mapError((error) => unreadable(path, error)))
  const packed = packedProblem(head)
  if (packed !== undefined) return yield* transcriptError(path, 0, packed)
  if (head.length === 0) return yield* transcriptError(path, 0, "is empty")
  const format = detectFormat(lineText(head, 1))
  if (format === undefined) {
    const problem = head.includes(0) ? "is binary; expected a session of an agent" : "is not a session of a known agent"
    return yield* transcriptError(path, 0, problem)
  }
  if (format === "contents") {
    const what = "is a history for the Gemini API; expected a session of an agent"
    return yield* transcriptError(path, 0, what, "NotASession")
  }
  const name = path.split(/[\\/]/).at(-1) ?? path
  return {
    agent: format,
    id: name.replace(/\.\w+$/, ""),
    parent: undefined,
    kind: "session",
    path,
    bytes: Number(info.value.size),
    updatedAt: info.value.mtime._tag === "Some" ? info.value.mtime.value.getTime() : 0,
    folder: undefined
  }
})

/**
 * Returns the session with this path, id or beginning of an id. A file that lies elsewhere is a session of its own. Fails when
 * there is none, or several; for a session in a database that cannot be read, with the reason.
 */
export const chooseSession = Effect.fn("ChooseSession.chooseSession")(function* (
  name: string,
  { problems, sessions }: Pick<SessionList, "problems" | "sessions">
): Effect.fn.Return<FoundSession, TranscriptError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const place = path.resolve(name)
  const listed = sessions.find((session) => session.files.some((file) => file.path === place || file.path === name))
  if (listed !== undefined) return listed
  const file = yield* fileOf(name)
  if (file !== undefined) return sessionOf([file], new Map())
  const matches =
    name.length < minIdChars
      ? []
      : sessions.filter(({ files, id }) => id.startsWith(name) || files[0]?.id.startsWith(name))
  const [first] = matches
  if (matches.length === 1 && first !== undefined) return first
  const problem = problems.find(({ path }) => place === path || place.startsWith(`${path}#`))
  if (problem !== undefined) return yield* transcriptError(problem.path, 0, problem.message)
  return yield* matches.length > 1
    ? transcriptError(name, 0, `${matches.length} sessions have an id that begins with this; give more of it`)
    : transcriptError(name, 0, "no such file or session", "UnknownSession")
})

/** Returns the session of this machine with this path, id or beginning of an id. */
export const locateSession = Effect.fn("ChooseSession.locateSession")((name: string) =>
  Effect.flatMap(listSessions(), (list) => chooseSession(name, list))
)
