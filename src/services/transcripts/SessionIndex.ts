import { Context, Effect, Layer } from "effect"
import {
  newScan,
  type RecordedRequest,
  type ScanState,
  type SessionFacts
} from "../../domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../domain/transcripts/facts/SessionScan.ts"
import { AgentSessions, type RecordRange, type SessionFile, type SessionProblem } from "./AgentSessions.ts"

/** The contract of the index of all agents' sessions, and what it reads of a file. */

/** Reads what lists and accounts need of a file, or of a part of it. `state` holds what was read also where the file cannot be read to its end. */
export const scanFile = Effect.fnUntraced(function* (
  { records }: AgentSessions["Service"],
  file: SessionFile,
  range: RecordRange = { from: 0, line: 1 },
  state: ScanState = newScan()
) {
  const { broken } = yield* records(file, range, (record) => scanRecord(state, file.agent, record))
  return { state, broken }
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
      const held = new Map<string, { readonly state: ScanState; readonly broken: number }>()
      const read = Effect.fnUntraced(function* (file: SessionFile) {
        const known = held.get(file.path)
        if (known !== undefined || file.kind === "text") return known
        const one = yield* scanFile(agents, file)
        held.set(file.path, one)
        return one
      })
      const collected = <A>(files: ReadonlyArray<SessionFile>, of: (one: { state: ScanState; broken: number }) => A) =>
        Effect.map(
          Effect.forEach(files, (file) =>
            Effect.map(
              Effect.orElseSucceed(read(file), () => undefined),
              (one) => (one === undefined ? [] : [[file.path, of(one)] as const])
            )
          ),
          (pairs) => new Map(pairs.flat())
        )
      return {
        isKept: false,
        update: () => Effect.succeed([]),
        sessions: (files) => collected(files, ({ broken, state }): IndexedSession => ({ facts: state.facts, broken })),
        requests: (files) => collected(files, ({ state }) => state.requests),
        ranges: () => Effect.undefined
      }
    })
  )
}
