/** How a person names a session: by its id, its title, its number in the list, or as the latest one. */

/** What has to be known of a session to name it. */
export interface Nameable {
  readonly id: string
  readonly title: string | undefined
  /** Whose agent's work it is; undefined: a person began it. */
  readonly parent?: string | undefined
}

/** The sessions that a person began, in their order: what a list shows and numbers count. */
export const begun = <S extends Nameable>(sessions: ReadonlyArray<S>): ReadonlyArray<S> =>
  sessions.filter(({ parent }) => parent === undefined)

/** What a name stands for. */
export type Named<S> =
  | { readonly _tag: "Found"; readonly session: S }
  | { readonly _tag: "Ambiguous"; readonly ids: ReadonlyArray<string> }
  | { readonly _tag: "Unknown" }

/** The name of the session that was written last (spec 11). */
export const latest = "latest"

const one = <S extends Nameable>(found: ReadonlyArray<S>): Named<S> | undefined => {
  const [session] = found
  if (session === undefined) return undefined
  return found.length === 1 ? { _tag: "Found", session } : { _tag: "Ambiguous", ids: found.map(({ id }) => id) }
}

/**
 * The session that a name stands for; `sessions` are all there are, of which those that a person began are numbered from 1. An exact id is looked for first, then
 * an exact title, `latest`, a number of the list, and last the beginning of an id.
 */
export const named = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): Named<S> => {
  const wanted = name.trim()
  if (wanted === "") return { _tag: "Unknown" }
  const exact = exactly(wanted, sessions)
  if (exact._tag !== "Unknown") return exact
  const place = wanted === latest ? 0 : /^[1-9]\d*$/.test(wanted) ? Number(wanted) - 1 : undefined
  const numbered = place === undefined ? undefined : begun(sessions)[place]
  if (numbered !== undefined) return { _tag: "Found", session: numbered }
  return one(sessions.filter(({ id }) => id.startsWith(wanted))) ?? { _tag: "Unknown" }
}

/** The session with exactly this id, else with exactly this title. */
export const exactly = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): Named<S> =>
  one(sessions.filter(({ id }) => id === name)) ??
  one(sessions.filter(({ title }) => title === name)) ?? { _tag: "Unknown" }
