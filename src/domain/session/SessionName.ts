/** Finds the session that the user named: by id, title, number in the list, or as the latest one. */

/** A session that can be found by name. */
interface Nameable {
  readonly id: string
  readonly title: string | undefined
  /** The session whose agent started this one; undefined for a session that the user started. */
  readonly parent?: string | undefined
}

/** The sessions that the user started, in their order: those that a list shows and numbers. */
export const userSessions = <S extends Nameable>(sessions: ReadonlyArray<S>): ReadonlyArray<S> =>
  sessions.filter(({ parent }) => parent === undefined)

/** The match of a name. */
export type NameMatch<S> =
  | { readonly _tag: "Found"; readonly session: S }
  | { readonly _tag: "Ambiguous"; readonly ids: ReadonlyArray<string> }
  | { readonly _tag: "Unknown" }

/** The name of the session that was written last. */
export const latestName = "latest"

const singleMatch = <S extends Nameable>(matches: ReadonlyArray<S>): NameMatch<S> | undefined => {
  const [session] = matches
  if (session === undefined) return undefined
  return matches.length === 1 ? { _tag: "Found", session } : { _tag: "Ambiguous", ids: matches.map(({ id }) => id) }
}

/**
 * Finds the session with this name among all sessions, of which those that the user started are numbered from 1. Tried in order:
 * an exact id, an exact title, `latest`, a number of the list, the beginning of an id.
 */
export const matchName = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): NameMatch<S> => {
  const trimmed = name.trim()
  if (trimmed === "") return { _tag: "Unknown" }
  const exact = matchExactName(trimmed, sessions)
  if (exact._tag !== "Unknown") return exact
  const place = trimmed === latestName ? 0 : /^[1-9]\d*$/.test(trimmed) ? Number(trimmed) - 1 : undefined
  const numbered = place === undefined ? undefined : userSessions(sessions)[place]
  if (numbered !== undefined) return { _tag: "Found", session: numbered }
  return singleMatch(sessions.filter(({ id }) => id.startsWith(trimmed))) ?? { _tag: "Unknown" }
}

/** The beginning of an id that we made: the time in milliseconds and twelve random bits. */
const madeStart = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}(?=-)/

/** A name for a session in a command that fits into a narrow terminal: the beginning of an id that we made, or the whole id. */
export const shortName = (id: string): string => madeStart.exec(id)?.[0] ?? id

/** Finds the session with exactly this id, else with exactly this title. */
export const matchExactName = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): NameMatch<S> =>
  singleMatch(sessions.filter(({ id }) => id === name)) ??
  singleMatch(sessions.filter(({ title }) => title === name)) ?? { _tag: "Unknown" }
