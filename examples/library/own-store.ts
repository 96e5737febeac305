/**
 * Your own store for sessions, tested with the contract suite.
 *
 *   node own-store.ts        (or: node --test own-store.ts)
 *
 * A backing keeps lines, heads and blobs, and knows nothing of conversations; the rows here stand for tables of your database. Two
 * processes are kept apart by the epoch, which is checked together with the write. A store of keys and values needs even less:
 * `KeyValueSessionStore` of `palimpsest/node` takes any `KeyValueStore` of `effect`. It prints:
 *
 *   ▶ rows by themselves
 *     ✔ keeps the lines of a session in order, each character of them …
 */
import { Clock, Effect, Layer } from "effect"
import { describe, it } from "node:test"
import { Content, Session } from "palimpsest"
import { BackedSessionStore } from "palimpsest/node"
import { SessionBackingContract, SessionStoreContract } from "palimpsest/testing"

interface Row {
  head: string
  title?: string | undefined
  epoch: number
  owned?: { readonly pid: number; readonly since: number } | undefined
  readonly lines: Array<Session.BackedLine>
}

const fail = (reason: Session.SessionStoreError["reason"]) => Effect.fail(new Session.SessionStoreError({ reason }))

/** The backing over rows. Each function would be a statement or a transaction. */
const backing = (rows: Map<string, Row>, blobs: Map<string, Uint8Array>) => {
  const find = (id: string) =>
    Effect.suspend(() => {
      const row = rows.get(id)
      return row === undefined ? fail(new Session.SessionNotFound({ id })) : Effect.succeed(row)
    })
  const refuseOwned = (id: string, { owned }: Row) =>
    owned === undefined ? Effect.void : fail(new Session.SessionLocked({ id, ...owned }))
  const own = (id: string, row: Row) =>
    Effect.acquireRelease(
      Effect.map(Clock.currentTimeMillis, (since) => {
        row.owned = { pid: process.pid, since }
        return { session: id, epoch: (row.epoch += 1) }
      }),
      ({ epoch }) =>
        Effect.sync(() => {
          if (row.epoch === epoch) row.owned = undefined
        })
    )
  const blobKeys = (id: string) => [...blobs.keys()].filter((key) => key.startsWith(`${id}/`))

  return Layer.succeed(Session.SessionBacking, {
    create: (id, head, lines) =>
      Effect.suspend(() => {
        if (rows.has(id)) return fail(new Session.SessionExists({ id }))
        const row: Row = { head, epoch: 0, lines: [...lines] }
        rows.set(id, row)
        return own(id, row)
      }),
    own: (id, takeOver) =>
      Effect.flatMap(find(id), (row) => Effect.andThen(takeOver ? Effect.void : refuseOwned(id, row), own(id, row))),
    append: ({ epoch, session: id }, line, head) =>
      Effect.flatMap(find(id), (row) => {
        const there = row.lines[line.sequence - 1]
        if (there?.text === line.text) return Effect.void
        if (row.epoch !== epoch) return fail(new Session.SessionTaken({ id }))
        const [expected, found] = [line.sequence - 1, row.lines.length]
        if (expected !== found) return fail(new Session.SessionChanged({ id, expected, found, unit: "lines" }))
        row.lines.push(line)
        row.head = head ?? row.head
        return Effect.void
      }),
    read: (id, from, to) => Effect.sync(() => rows.get(id)?.lines.slice(from - 1, to - 1) ?? []),
    lastCheckpoint: (id) => Effect.sync(() => rows.get(id)?.lines.findLast((line) => line.isCheckpoint)?.sequence),
    ids: Effect.sync(() => [...rows.keys()]),
    list: (only) =>
      Effect.sync(() =>
        [...rows]
          .filter(([id]) => only === undefined || id === only)
          .map(([id, { head, lines, owned, title }]) => {
            const bytes = lines.reduce((sum, { text }) => sum + text.length, 0)
            return { id, head, title, bytes, updatedAt: lines.at(-1)?.at ?? 0, holder: owned }
          })
      ),
    rename: (id, title) =>
      Effect.map(find(id), (row) => {
        row.title = title
      }),
    remove: (id) =>
      Effect.gen(function* () {
        const row = rows.get(id)
        if (row !== undefined) yield* refuseOwned(id, row)
        // Also those of a session that was about to be created.
        for (const key of blobKeys(id)) blobs.delete(key)
        rows.delete(id)
        if (row === undefined) return yield* fail(new Session.SessionNotFound({ id }))
      }),
    putBlob: (id, hash, bytes) => Effect.sync(() => void blobs.set(`${id}/${hash}`, Uint8Array.from(bytes))),
    getBlob: (id, hash) => Effect.sync(() => blobs.get(`${id}/${hash}`)),
    findBlobs: (id, prefix) =>
      Effect.sync(() =>
        blobKeys(id)
          .map((key) => Content.Hash.make(key.slice(id.length + 1)))
          .filter((hash) => hash.startsWith(prefix))
      )
  })
}

SessionBackingContract.sessionBackingContract(
  { describe, it },
  { name: "rows by themselves", make: Effect.sync(() => backing(new Map(), new Map())) }
)

SessionStoreContract.sessionStoreContract(
  { describe, it },
  {
    name: "rows",
    make: Effect.sync(() => BackedSessionStore.over(backing(new Map(), new Map()))),
    takesOver: true,
    runs: 20
  }
)
