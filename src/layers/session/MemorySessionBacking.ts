import { Clock, Effect, Layer, type Scope } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import {
  type BackedLine,
  type BackedRow,
  SessionBacking,
  type SessionOwner
} from "../../services/session/SessionBacking.ts"
import {
  SessionChanged,
  sessionError,
  SessionExists,
  SessionLocked,
  SessionNotFound,
  type SessionStoreError,
  SessionTaken
} from "../../services/session/SessionStore.ts"

interface Stored {
  head: string
  title: string | undefined
  readonly lines: Array<BackedLine>
  readonly ids: Set<string>
  bytes: number
  epoch: number
  /** When its owner took it; undefined while it has none. */
  since: number | undefined
}

/** The process, where there is one. */
const pid = globalThis.process?.pid ?? 0

const fail = (reason: SessionStoreError["reason"]) => Effect.fail(sessionError(reason))

const sizeOf = (lines: ReadonlyArray<BackedLine>): number =>
  lines.reduce((size, { text }) => size + Bytes.encode(text).length + 1, 0)

type Sessions = Map<string, Stored>
type Blobs = Map<string, Map<Hash, Uint8Array>>

const find = (sessions: Sessions, id: string): Effect.Effect<Stored, SessionStoreError> =>
  Effect.suspend(() => {
    const stored = sessions.get(id)
    return stored === undefined ? fail(new SessionNotFound({ id })) : Effect.succeed(stored)
  })

const refuseOwned = (id: string, { since }: Stored): Effect.Effect<void, SessionStoreError> =>
  since === undefined ? Effect.void : fail(new SessionLocked({ id, pid, since }))

/** Owns a session until the scope closes. */
const owned = (id: string, stored: Stored): Effect.Effect<SessionOwner, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Clock.currentTimeMillis, (now) => {
      stored.since = now
      stored.epoch += 1
      return { session: id, epoch: stored.epoch }
    }),
    ({ epoch }) =>
      Effect.sync(() => {
        if (stored.epoch === epoch) stored.since = undefined
      })
  )

const create = (sessions: Sessions, id: string, head: string, lines: ReadonlyArray<BackedLine>) =>
  Effect.suspend(() => {
    if (sessions.has(id)) return fail(new SessionExists({ id }))
    const stored: Stored = {
      head,
      title: undefined,
      lines: [...lines],
      ids: new Set(lines.map((line) => line.id)),
      bytes: sizeOf(lines),
      epoch: 0,
      since: undefined
    }
    sessions.set(id, stored)
    return owned(id, stored)
  })

const append = (stored: Stored, { epoch, session: id }: SessionOwner, line: BackedLine, head: string | undefined) => {
  const { ids, lines } = stored
  const existing = lines[line.sequence - 1]
  if (existing?.id === line.id && existing.text === line.text) return Effect.void
  if (stored.epoch !== epoch) return fail(new SessionTaken({ id }))
  if (lines.length !== line.sequence - 1 || ids.has(line.id)) {
    return fail(new SessionChanged({ id, expected: line.sequence - 1, found: lines.length, unit: "lines" }))
  }
  lines.push(line)
  ids.add(line.id)
  stored.bytes += sizeOf([line])
  stored.head = head ?? stored.head
  return Effect.void
}

const rowOf = (id: string, { bytes, head, lines, since, title }: Stored): BackedRow => {
  const holder = since === undefined ? undefined : { pid, since }
  return { id, head, title, bytes, updatedAt: lines.at(-1)?.at ?? 0, holder }
}

const remove = Effect.fnUntraced(function* (sessions: Sessions, blobs: Blobs, id: string) {
  const stored = sessions.get(id)
  if (stored !== undefined) yield* refuseOwned(id, stored)
  sessions.delete(id)
  blobs.delete(id)
  if (stored === undefined) return yield* fail(new SessionNotFound({ id }))
})

const putBlob = (blobs: Blobs, id: string, hash: Hash, bytes: Uint8Array) =>
  Effect.sync(() => {
    const own = blobs.get(id) ?? new Map<Hash, Uint8Array>()
    blobs.set(id, own)
    // A copy: callers may change theirs.
    if (!own.has(hash)) own.set(hash, Uint8Array.from(bytes))
  })

/** Sessions in memory, for the lifetime of the layer. */
export const make: Layer.Layer<SessionBacking> = Layer.sync(SessionBacking, () => {
  const sessions: Sessions = new Map()
  const blobs: Blobs = new Map()
  return {
    create: (id, head, lines) => create(sessions, id, head, lines),
    own: (id, takesOver) =>
      find(sessions, id).pipe(
        Effect.tap((stored) => (takesOver ? Effect.void : refuseOwned(id, stored))),
        Effect.flatMap((stored) => owned(id, stored))
      ),
    append: (owner, line, head) =>
      Effect.flatMap(find(sessions, owner.session), (stored) => append(stored, owner, line, head)),
    read: (id, from, to) => Effect.sync(() => sessions.get(id)?.lines.slice(from - 1, to - 1) ?? []),
    // Sessions in memory are read whole.
    lastCheckpoint: () => Effect.undefined,
    ids: Effect.sync(() => [...sessions.keys()]),
    list: (only) =>
      Effect.sync(() =>
        [...sessions].flatMap(([id, stored]) => (only === undefined || only === id ? [rowOf(id, stored)] : []))
      ),
    rename: (id, title) =>
      Effect.map(find(sessions, id), (stored) => {
        stored.title = title
      }),
    remove: (id) => remove(sessions, blobs, id),
    putBlob: (id, hash, bytes) => putBlob(blobs, id, hash, bytes),
    getBlob: (id, hash) =>
      Effect.sync(() => {
        const bytes = blobs.get(id)?.get(hash)
        return bytes === undefined ? undefined : Uint8Array.from(bytes)
      }),
    findBlobs: (id, prefix) =>
      Effect.sync(() => [...(blobs.get(id)?.keys() ?? [])].filter((hash) => hash.startsWith(prefix)))
  }
})
