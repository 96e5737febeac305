import type { CodexRecord } from "./Record.ts"

/** Finds where a fork's own records begin (Codex before 0.149): it repeats the records of the session that it comes from. */

/** What is known of a file so far. It is plain data, so that a scan can continue when the file has grown. */
export interface CopiesState {
  /** The session of the file, and the one whose records are read: it, or one that the file repeats. */
  session?: string
  family?: string
  /** When the file began, and the latest time in it. */
  began?: string
  latest?: string
  copies?: string
}

/**
 * Pauses that end the copies where no turn tells when it began: copies are written at once. No model answers within the shorter one, which
 * decides where nothing names an origin.
 */
const pauseMillis = { named: 1_000, unnamed: 200 }

/** The beginning of 2020: Codex is younger. */
const earliest = Date.UTC(2020, 0)

/** Returns the time in an id of version 7, in milliseconds since 1970. */
const timeIn = (id = ""): number | undefined => {
  const time = /^[\da-f]{8}-[\da-f]{4}-7/i.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : 0
  return time < earliest ? undefined : time
}

const isFirstOwn = (state: CopiesState, record: CodexRecord): boolean => {
  const { at } = record
  if (state.copies === "ended" || at === undefined) return false
  if (state.began === undefined) {
    if (record._tag !== "Session") return false
    // The file can be younger than the first turn.
    state.began = String(Math.min(at, timeIn(record.id) ?? at))
    state.latest = String(at)
    return false
  }
  const turn = record._tag === "Turn" ? timeIn(record.turn) : undefined
  const isOwnSession = record._tag === "Session" && record.id === state.session
  const pause = state.family === state.session ? pauseMillis.unnamed : pauseMillis.named
  const hasPaused = state.copies === undefined && at - Number(state.latest) >= pause
  if (turn !== undefined) state.copies = turn < Number(state.began) ? "of turns" : "ended"
  else if (isOwnSession || hasPaused) state.copies = "ended"
  state.latest = String(Math.max(Number(state.latest), at))
  return state.copies === "ended"
}

/**
 * Reads the next record, and tells whether those before it are copies that it ends. Copies have the time of the fork or their own, which is
 * earlier, and their turns began before it. The first own record is the session's, once more, a turn of its own, or comes after a pause.
 * Of a file without copies, only what stands before its first turn is taken for one.
 */
export const endsCopies = (state: CopiesState, record: CodexRecord): boolean => {
  const isEnd = isFirstOwn(state, record)
  if (record._tag === "Session") {
    // A fork repeats the records of the session that it comes from, and those of that session's own origin.
    if (state.session !== record.id) state.family = record.forkedFrom ?? record.id
    state.session ??= record.id
  }
  return isEnd
}
