/** Copies sessions from one store to another. */

import { Effect } from "effect"
import { encodeLine } from "../../domain/session/LogFormat.ts"
import { type SessionStore, type SessionStoreError, sessionUnavailable } from "./SessionStore.ts"

type Store = SessionStore["Service"]

/** What a copy did. */
export type Copied =
  /** The other store did not have the session. */
  | { readonly _tag: "Added"; readonly events: number }
  /** The other store had an earlier state of it. */
  | { readonly _tag: "Continued"; readonly events: number }
  | { readonly _tag: "Same" }

/** The number of events at the beginning that both lists have. */
const commonLength = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): number => {
  const differing = some.findIndex((line, index) => line !== others[index])
  return differing < 0 ? some.length : differing
}

/** Stores the blobs that the other store lacks: outputs that a program stored beside the log. */
const copyBlobs = Effect.fnUntraced(function* (from: Store, to: Store, id: string) {
  const there = new Set((yield* to.blobs(id)).map(({ hash }) => hash))
  const missing = (yield* from.blobs(id)).filter(({ hash }) => !there.has(hash))
  if (missing.length === 0) return
  const { log } = yield* to.open(id)
  for (const { bytes } of missing) {
    yield* Effect.mapError(log.blobs.put(yield* bytes), (error) => sessionUnavailable("copy", error.message, error))
  }
}, Effect.scoped)

const copyEvents = Effect.fnUntraced(function* (
  from: Store,
  to: Store,
  id: string
): Effect.fn.Return<Copied, SessionStoreError> {
  const events = yield* from.events(id)
  const isAdded = yield* Effect.as(to.add(events), true).pipe(
    Effect.catchReason("SessionStoreError", "SessionExists", () => Effect.succeed(false))
  )
  if (isAdded) return { _tag: "Added", events: events.length }
  const own = events.map((event) => encodeLine(event))
  const others = (yield* to.events(id)).map((event) => encodeLine(event))
  const common = commonLength(others, own)
  if (common < others.length) {
    return yield* sessionUnavailable(
      "copy",
      `the other store has another one with this id, or it went on there; nothing was copied`
    )
  }
  if (common === own.length) return { _tag: "Same" }
  yield* Effect.scoped(
    Effect.flatMap(to.open(id), ({ log }) => Effect.forEach(events.slice(common), log.append, { discard: true }))
  )
  return { _tag: "Continued", events: events.length - common }
})

/**
 * Copies a session with its log, blobs and title. Done again, it copies what was added since; a session that went on in the other
 * store fails. Both stores may be in use, but not the session in the other one.
 */
export const copy = Effect.fn("SessionCopy.copy")(function* (
  from: Store,
  to: Store,
  id: string
): Effect.fn.Return<Copied, SessionStoreError> {
  const copied = yield* copyEvents(from, to, id)
  yield* copyBlobs(from, to, id)
  const { title } = yield* from.summary(id)
  if (title !== undefined && title !== (yield* to.summary(id)).title) yield* to.rename(id, title)
  return copied
})
