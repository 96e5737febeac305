/** The contract of the index of all agents' sessions, and what it reads of a file. */

import { Context, Effect, Layer } from "effect"
import {
  newScan,
  type RecordedRequest,
  type ScanState,
  type SessionFacts
} from "../../domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../domain/transcripts/facts/SessionScan.ts"
import { AgentSessions, type RecordRange, type SessionFile, type SessionProblem } from "./AgentSessions.ts"

/** Reads what lists and accounts need of a file, or of a part of it. `state` holds what was read also where the file cannot be read to its end. */
export const scanFile = Effect.fnUntraced(function* (
  { records }: AgentSessions["Service"],
  file: SessionFile,
  range: RecordRange = { from: 0, line: 1 },
  state: ScanState = newScan()
) {
  const { broken } = yield* records(file, range, (record) => scanRecord(state, file.agent, record))
  return { ...state, broken }
})

/** What was read of a session file. */
export interface IndexedSession {
  readonly facts: SessionFacts
  /** Lines that are no JSON. */
  readonly broken: number
}

/**
 * Knows what the session files of the agents hold, as of the last `update`. An index on the disk reads only what is new since
 * then; without one, everything is read again.
 */
export class SessionIndex extends Context.Service<
  SessionIndex,
  {
    /** Whether the index is kept on the disk. */
    readonly isKept: boolean
    /**
     * Reads the files that are new or changed, and forgets those of `all` that are gone. A file that cannot be read is a problem;
     * the others go on.
     */
    readonly update: (all: ReadonlyArray<SessionFile>) => Effect.Effect<ReadonlyArray<SessionProblem>>
    /** Returns what is known of files, by path. */
    readonly sessions: (files: ReadonlyArray<SessionFile>) => Effect.Effect<ReadonlyMap<string, IndexedSession>>
    /** Returns the requests that files record, by path. A file that it does not know is absent. */
    readonly requests: (
      files: ReadonlyArray<SessionFile>
    ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<RecordedRequest>>>
    /** Returns the parts of files where a message may have words that begin so, by path; undefined when that is not known. */
    readonly ranges: (
      tokens: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<RecordRange>> | undefined>
  }
>()("palimpsest/services/transcripts/SessionIndex") {
  /** For a Node without SQLite: keeps nothing, and reads each file when it is asked for. */
  static readonly layerReading: Layer.Layer<SessionIndex, never, AgentSessions> = Layer.effect(
    SessionIndex,
    Effect.gen(function* () {
      const agents = yield* AgentSessions
      const held = new Map<string, ScanState & IndexedSession>()
      const read = Effect.fnUntraced(function* (files: ReadonlyArray<SessionFile>) {
        const found = new Map<string, ScanState & IndexedSession>()
        for (const file of files) {
          if (file.kind === "text") continue
          const one = held.get(file.path) ?? (yield* Effect.orElseSucceed(scanFile(agents, file), () => undefined))
          if (one === undefined) continue
          held.set(file.path, one)
          found.set(file.path, one)
        }
        return found
      })
      return {
        isKept: false,
        update: () => Effect.succeed([]),
        sessions: read,
        requests: (files) =>
          Effect.map(read(files), (found) => new Map(Array.from(found, ([path, { requests }]) => [path, requests]))),
        ranges: () => Effect.undefined
      }
    })
  )
}
