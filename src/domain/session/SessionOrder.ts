/** The order in which sessions are listed. */

/** What orders a session in lists. */
export interface OrderedSession {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly updatedAt: number
}

/** The order of lists: the session that was written last comes first. */
export const lastWrittenFirst = (one: OrderedSession, other: OrderedSession): number =>
  other.updatedAt - one.updatedAt || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0)
