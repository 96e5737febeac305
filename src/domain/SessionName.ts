/** How a person names a session: by its id, its title, its number in the list, or as the latest one. */

/** What has to be known of a session to name it. */
export interface Nameable {
  readonly id: string
  readonly title: string | undefined
}

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
 * The session that a name stands for; `sessions` is the list as it is shown, from 1. An exact id is looked for first, then
 * an exact title, `latest`, a number of the list, and last the beginning of an id.
 */
export const named = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): Named<S> => {
  const wanted = name.trim()
  if (wanted === "") return { _tag: "Unknown" }
  const exact = exactly(wanted, sessions)
  if (exact._tag !== "Unknown") return exact
  const numbered =
    wanted === latest ? sessions[0] : /^[1-9]\d*$/.test(wanted) ? sessions[Number(wanted) - 1] : undefined
  if (numbered !== undefined) return { _tag: "Found", session: numbered }
  return one(sessions.filter(({ id }) => id.startsWith(wanted))) ?? { _tag: "Unknown" }
}

/** The session with exactly this id, else with exactly this title. */
export const exactly = <S extends Nameable>(name: string, sessions: ReadonlyArray<S>): Named<S> =>
  one(sessions.filter(({ id }) => id === name)) ??
  one(sessions.filter(({ title }) => title === name)) ?? { _tag: "Unknown" }
