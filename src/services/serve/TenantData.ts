/** Everything of a tenant at once: its export and its deletion. */

import { Cache, Effect, Stream } from "effect"
import { localTenant } from "../../domain/serve/ServeSettings.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { internal, storeError } from "./Failures.ts"
import { BadRequest, Conflict, type ServeError } from "./ServeErrors.ts"
import * as StoredSessions from "./StoredSessions.ts"

const orNone = <A>(reading: Effect.Effect<A, ServeError>) => Effect.catchTag(reading, "Failed", () => Effect.undefined)

/** Streams the sessions of a tenant as JSON lines. One that is deleted meanwhile is left out, and of one what cannot be read. */
export const exportAll = Effect.fnUntraced(function* (stored: StoredSessions.StoredSessions, tenant: string) {
  const ids = yield* StoredSessions.store(stored, tenant, ({ list }) => list)
  const exported = Effect.fnUntraced(function* (id: string) {
    const { title } = yield* StoredSessions.existing(stored, tenant, id)
    const record = yield* orNone(StoredSessions.recordOf(stored, tenant, id))
    const loaded = yield* orNone(StoredSessions.load(stored, tenant, id))
    const problem = record === undefined || loaded === undefined ? { problem: StoredSessions.unreadable } : {}
    const lines = loaded === undefined ? [] : yield* StoredSessions.exportedLines(tenant, "palimpsest", loaded.events)
    const head = { _tag: "Session", id, title: title ?? null, record: record ?? null, ...problem }
    return Bytes.encode(`${[JSON.stringify(head), ...lines].join("\n")}\n`)
  })
  return Stream.fromIterable(ids).pipe(
    Stream.mapEffect((id) => Effect.catchTag(exported(id), "NotFound", () => Effect.succeed(new Uint8Array()))),
    Stream.filter((bytes) => bytes.length > 0)
  )
})

/** How often a deletion looks for sessions that were begun while it ran. */
const maxRounds = 5
/** The messages of a session, running and waiting, that a deletion ends. */
const maxEnded = 40

/** Deletes everything of a tenant. `close`: ends the turn of a session, and closes it; `forget`: deletes what the engine has of it. */
export const removeAll = Effect.fnUntraced(function* (
  stored: StoredSessions.StoredSessions,
  tenant: string,
  close: (id: string) => Effect.Effect<void, ServeError>,
  forget: (id: string) => Effect.Effect<void, ServeError> = () => Effect.void
) {
  if (tenant === localTenant) {
    return yield* new BadRequest({ message: "the tenant local is the user of this machine; delete its sessions" })
  }
  let count = 0
  for (let round = 0; round <= maxRounds; round += 1) {
    const ids = yield* StoredSessions.store(stored, tenant, ({ list }) => list)
    if (ids.length === 0) break
    if (round === maxRounds) {
      return yield* new Conflict({ message: "new sessions were started during the deletion; revoke the tokens first" })
    }
    for (const id of ids) {
      yield* StoredSessions.remove(stored, tenant, id, close(id)).pipe(
        Effect.catchTag("SessionStoreError", storeError),
        // The next message begins as soon as the one before is cancelled.
        Effect.retry({ times: maxEnded, while: ({ _tag }) => _tag === "Conflict" }),
        Effect.catchTag("NotFound", () => Effect.void)
      )
      yield* forget(id)
      count += 1
    }
  }
  // Also of sessions whose deletion was cut short.
  yield* StoredSessions.records(stored, tenant, (kept) =>
    Effect.flatMap(kept.get(), (all) => Effect.forEach(all.keys(), kept.remove, { discard: true }))
  )
  yield* Effect.catchTag(stored.runtimes.clear(tenant), "TenantUnavailable", internal)
  yield* Cache.invalidate(stored.lists, tenant)
  return count
})
