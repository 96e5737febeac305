/**
 * Sessions in a store of keys and values, in which only a single write is atomic. A session has these keys, and exists when its
 * first one does:
 *
 * - `ID`: its record, with the name of its log
 * - `ID/epoch`: the number of its last owner; `ID/title`
 * - `ID/LOG/1`, `ID/LOG/2`, …: its lines. A line that is no whole JSON was cut short by a crash and counts as missing
 * - `ID/blob/HASH`
 *
 * What an interrupted `create` or `remove` leaves behind belongs to a log that no record names.
 */

import { Clock, Effect, Layer, Option, RcMap, Schema, Semaphore } from "effect"
import { KeyValueStore } from "effect/persistence"
import { Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { newId } from "../../services/platform/NewId.ts"
import { type BackedLine, SessionBacking, type SessionOwner } from "../../services/session/SessionBacking.ts"
import {
  corruptLine,
  SessionChanged,
  sessionError,
  SessionExists,
  SessionLocked,
  SessionNotFound,
  type SessionStoreError,
  SessionTaken,
  sessionUnavailable
} from "../../services/session/SessionStore.ts"
import { failureOf } from "./SessionStoreErrors.ts"

/** Options of sessions in a store of keys and values. */
export interface KeyValueSessionOptions {
  /** The start of every key. Default: `palimpsest/`. */
  readonly prefix?: string | undefined
}

const SessionRecord = fromJson(
  Schema.Struct({
    /** The part of the keys of its lines that no earlier session with this id had. */
    log: Schema.String,
    head: Schema.String,
    /** A later head, which counts once the line `from` is written. */
    nextHead: Schema.optionalKey(Schema.Struct({ from: Schema.Natural, head: Schema.String })),
    /** Positions of the last checkpoints. The last one may be of a line that was never written. */
    checkpoints: Schema.Array(Schema.Natural)
  })
)
type SessionRecord = typeof SessionRecord.Type

const Line = fromJson(
  Schema.Struct({
    id: Schema.String,
    text: Schema.String,
    isCheckpoint: Schema.Boolean,
    at: Schema.Finite,
    /** Bytes of the log up to the end of this line. */
    size: Schema.Natural
  })
)
type Line = typeof Line.Type

const recordFrom = Schema.decodeUnknownOption(SessionRecord)
const lineFrom = Schema.decodeUnknownOption(Line)
const isHash = Schema.is(Hash)

/** The process, where there is one. */
const pid = globalThis.process?.pid ?? 0

/** Lines and sessions read or written at once. */
const maxConcurrent = 16

const sizeOf = (text: string): number => Bytes.encode(text).length + 1

type StoreError = SessionStoreError | KeyValueStore.KeyValueStoreError

const withStoreErrors =
  (operation: string) =>
  <A, R>(effect: Effect.Effect<A, StoreError, R>) =>
    Effect.mapError(effect, (error) =>
      error._tag === "KeyValueStoreError"
        ? sessionUnavailable(operation, `${failureOf(operation)}: ${error.message}`, error)
        : error
    )

/** The store, and the sessions in it that this process works on. */
interface State {
  readonly prefix: string
  readonly store: KeyValueStore.KeyValueStore
  /** The sessions that this process owns, and since when. */
  readonly owners: Map<string, { readonly epoch: number; readonly since: number }>
  /** The turns of the sessions that are being changed. */
  readonly changing: RcMap.RcMap<string, Semaphore.Semaphore>
}

/** Runs the changes of one session one after the other. */
const alone =
  ({ changing }: State, id: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.scoped(Effect.flatMap(RcMap.get(changing, id), (turn) => turn.withPermit(effect)))

const recordOf = Effect.fnUntraced(function* ({ prefix, store }: State, id: string) {
  const text = yield* store.get(id)
  if (text === undefined) return yield* sessionError(new SessionNotFound({ id }))
  const record = recordFrom(text)
  return Option.isSome(record)
    ? record.value
    : yield* corruptLine(id, 1, `the value of the key ${prefix}${id} is damaged`)
})

const keyOf = (id: string, { log }: SessionRecord, sequence: number) => `${id}/${log}/${sequence}`

const lineAt = ({ store }: State, id: string, record: SessionRecord, sequence: number) =>
  Effect.map(store.get(keyOf(id, record, sequence)), (text) => Option.getOrUndefined(lineFrom(text)))

const writeRecord = ({ store }: State, id: string, record: SessionRecord) => store.set(id, JSON.stringify(record))

const writeLine = (
  { store }: State,
  id: string,
  record: SessionRecord,
  { at, id: name, isCheckpoint, sequence, text }: BackedLine,
  size: number
) => store.set(keyOf(id, record, sequence), JSON.stringify({ id: name, text, isCheckpoint, at, size } satisfies Line))

const epochOf = ({ store }: State, id: string) => Effect.map(store.get(`${id}/epoch`), (text) => Number(text ?? 0))

/** Owns a session until the scope closes, after `before`. Every owner writes a higher epoch than the one before. */
const owned = (state: State, id: string, before: Effect.Effect<void, StoreError>) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      yield* before
      const epoch = (yield* epochOf(state, id)) + 1
      yield* state.store.set(`${id}/epoch`, String(epoch))
      state.owners.set(id, { epoch, since: yield* Clock.currentTimeMillis })
      return { session: id, epoch } satisfies SessionOwner
    }).pipe(alone(state, id)),
    ({ epoch }) =>
      Effect.sync(() => {
        if (state.owners.get(id)?.epoch === epoch) state.owners.delete(id)
      })
  )

const refuseOwned = ({ owners }: State, id: string) =>
  Effect.suspend(() => {
    const owner = owners.get(id)
    return owner === undefined
      ? Effect.void
      : Effect.fail(sessionError(new SessionLocked({ id, pid, since: owner.since })))
  })

const createSession = Effect.fnUntraced(function* (
  state: State,
  id: string,
  head: string,
  lines: ReadonlyArray<BackedLine>
) {
  const { store } = state
  if ((yield* store.get(id)) !== undefined) return yield* sessionError(new SessionExists({ id }))
  const record: SessionRecord = {
    log: yield* newId,
    head,
    checkpoints: lines
      .filter(({ isCheckpoint }) => isCheckpoint)
      .map(({ sequence }) => sequence)
      .slice(-1)
  }
  let size = 0
  const sized = lines.map((line) => [line, (size += sizeOf(line.text))] as const)
  yield* Effect.forEach(sized, ([line, end]) => writeLine(state, id, record, line, end), {
    concurrency: maxConcurrent,
    discard: true
  })
  yield* store.remove(`${id}/title`)
  yield* writeRecord(state, id, record)
})

/** The record before a line is written. A new head does not count before its line does. */
const recordBefore = (
  record: SessionRecord,
  { isCheckpoint, sequence }: BackedLine,
  head: string | undefined
): SessionRecord => {
  const { checkpoints, nextHead } = record
  const isPast = nextHead !== undefined && nextHead.from < sequence
  return {
    ...record,
    ...(isPast ? { head: nextHead.head } : {}),
    ...(head === undefined ? {} : { nextHead: { from: sequence, head } }),
    checkpoints: isCheckpoint ? [...checkpoints.filter((at) => at < sequence).slice(-1), sequence] : checkpoints
  }
}

const append = Effect.fnUntraced(function* (
  state: State,
  { epoch, session: id }: SessionOwner,
  line: BackedLine,
  head: string | undefined
) {
  const { sequence } = line
  const record = yield* recordOf(state, id)
  const [existing, before, lastEpoch] = yield* Effect.all(
    [lineAt(state, id, record, sequence), lineAt(state, id, record, sequence - 1), epochOf(state, id)],
    { concurrency: "unbounded" }
  )
  if (existing?.id === line.id && existing.text === line.text) return
  if (lastEpoch !== epoch) return yield* sessionError(new SessionTaken({ id }))
  if (existing !== undefined || before === undefined) {
    const found = existing === undefined ? Math.max(0, sequence - 2) : sequence
    return yield* sessionError(new SessionChanged({ id, expected: sequence - 1, found, unit: "lines" }))
  }
  if (head !== undefined || line.isCheckpoint) yield* writeRecord(state, id, recordBefore(record, line, head))
  yield* writeLine(state, id, record, line, before.size + sizeOf(line.text))
})

/** The sessions, each with the position of its last line. */
const lastLines = Effect.fnUntraced(function* ({ store }: State) {
  const sessions = new Set<string>()
  const last = new Map<string, number>()
  for (const key of yield* store.keys) {
    const [id = "", log, sequence, ...more] = key.split("/")
    if (log === undefined) sessions.add(id)
    else if (more.length === 0) last.set(`${id}/${log}`, Math.max(last.get(`${id}/${log}`) ?? 0, Number(sequence) || 0))
  }
  return { ids: [...sessions], lastOf: (id: string, { log }: SessionRecord) => last.get(`${id}/${log}`) ?? 0 }
})

/** One session, with the position of its last line. It is searched without listing all keys: the lines have no gap. */
const lastLine = Effect.fnUntraced(function* ({ store }: State, id: string) {
  const text = yield* store.get(id)
  const record = recordFrom(text)
  let last = 0
  if (Option.isSome(record)) {
    const exists = (sequence: number) => store.has(keyOf(id, record.value, sequence))
    let missing = 1
    while (yield* exists(missing)) {
      last = missing
      missing *= 2
    }
    while (missing - last > 1) {
      const middle = Math.floor((last + missing) / 2)
      if (yield* exists(middle)) last = middle
      else missing = middle
    }
  }
  return { ids: text === undefined ? [] : [id], lastOf: () => last }
})

/** The row of a session. An empty one stands for a session that was damaged or removed meanwhile. */
const rowOf = Effect.fnUntraced(function* (
  state: State,
  id: string,
  lastOf: (id: string, record: SessionRecord) => number
) {
  const { owners, store } = state
  const record = recordFrom(yield* store.get(id))
  if (Option.isNone(record)) return { id, head: "", title: undefined, updatedAt: 0, bytes: 0, holder: undefined }
  const { head, nextHead } = record.value
  let last = lastOf(id, record.value)
  let line = yield* lineAt(state, id, record.value, last)
  if (line === undefined && last > 1) line = yield* lineAt(state, id, record.value, (last -= 1))
  const owner = owners.get(id)
  return {
    id,
    head: nextHead !== undefined && nextHead.from <= last ? nextHead.head : head,
    title: yield* store.get(`${id}/title`),
    updatedAt: line?.at ?? 0,
    bytes: line?.size ?? 0,
    holder: owner === undefined ? undefined : { pid, since: owner.since }
  }
})

const list = Effect.fnUntraced(function* (state: State, only: string | undefined) {
  const { ids, lastOf } = only === undefined ? yield* lastLines(state) : yield* lastLine(state, only)
  return yield* Effect.forEach(ids, (id) => rowOf(state, id, lastOf), { concurrency: maxConcurrent })
})

/** Reads lines up to the first missing one. A damaged line that has another after it is returned as it is. */
const read = Effect.fnUntraced(function* (state: State, id: string, from: number, to: number) {
  const { store } = state
  const record = yield* Effect.option(recordOf(state, id))
  if (Option.isNone(record)) return []
  const textAt = (sequence: number) => store.get(keyOf(id, record.value, sequence))
  const lines: Array<BackedLine> = []
  for (let at = from; at < to; at += maxConcurrent) {
    const sequences = Array.from({ length: Math.min(maxConcurrent, to - at) }, (_, index) => at + index)
    const texts = yield* Effect.forEach(sequences, textAt, { concurrency: "unbounded" })
    for (const [index, text] of texts.entries()) {
      if (text === undefined) return lines
      const sequence = at + index
      const line = lineFrom(text)
      if (Option.isSome(line)) lines.push({ ...line.value, sequence })
      else if ((yield* textAt(sequence + 1)) === undefined) return lines
      else lines.push({ sequence, id: `#${sequence}`, text, isCheckpoint: false, at: 0 })
    }
  }
  return lines
})

const lastCheckpoint = Effect.fnUntraced(function* (state: State, id: string) {
  const record = yield* Effect.option(recordOf(state, id))
  if (Option.isNone(record)) return undefined
  for (const at of record.value.checkpoints.toReversed()) {
    if ((yield* lineAt(state, id, record.value, at))?.isCheckpoint === true) return at
  }
  return undefined
})

const rename = (state: State, id: string, title: string | undefined) =>
  Effect.andThen(
    recordOf(state, id),
    title === undefined ? state.store.remove(`${id}/title`) : state.store.set(`${id}/title`, title)
  )

const remove = Effect.fnUntraced(function* (state: State, id: string) {
  const { store } = state
  yield* refuseOwned(state, id)
  const exists = (yield* store.get(id)) !== undefined
  yield* store.remove(id)
  yield* store.clearPrefix(`${id}/`)
  if (!exists) return yield* sessionError(new SessionNotFound({ id }))
})

const findBlobs = ({ store }: State, id: string, prefix: string) => {
  const start = `${id}/blob/`
  return Effect.map(store.keys, (keys) =>
    keys.flatMap((key) => {
      const hash = key.slice(start.length)
      return key.startsWith(`${start}${prefix}`) && isHash(hash) ? [hash] : []
    })
  )
}

const makeBacking = Effect.fnUntraced(function* ({ prefix = "palimpsest/" }: KeyValueSessionOptions) {
  const store = KeyValueStore.prefix(yield* KeyValueStore.KeyValueStore, prefix)
  const changing = yield* RcMap.make({ lookup: (_id: string) => Semaphore.make(1) })
  const state: State = { prefix, store, owners: new Map(), changing }
  return SessionBacking.of({
    create: (id, head, lines) => withStoreErrors("create")(owned(state, id, createSession(state, id, head, lines))),
    own: (id, takesOver) =>
      withStoreErrors("open")(
        owned(state, id, Effect.andThen(recordOf(state, id), takesOver ? Effect.void : refuseOwned(state, id)))
      ),
    append: (owner, line, head) =>
      withStoreErrors("append")(alone(state, owner.session)(append(state, owner, line, head))),
    read: (id, from, to) => withStoreErrors("read")(read(state, id, from, to)),
    lastCheckpoint: (id) => withStoreErrors("read")(lastCheckpoint(state, id)),
    ids: withStoreErrors("list")(Effect.map(lastLines(state), ({ ids }) => ids)),
    list: (id) => withStoreErrors("list")(list(state, id)),
    rename: (id, title) => withStoreErrors("rename")(rename(state, id, title)),
    remove: (id) => withStoreErrors("remove")(alone(state, id)(remove(state, id))),
    // A store in memory keeps what it is given.
    putBlob: (id, hash, bytes) => withStoreErrors("append")(store.set(`${id}/blob/${hash}`, bytes.slice())),
    // A copy: callers may change theirs, and a store in memory returns its own.
    getBlob: (id, hash) =>
      withStoreErrors("read")(Effect.map(store.getUint8Array(`${id}/blob/${hash}`), (bytes) => bytes?.slice())),
    findBlobs: (id, prefix) => withStoreErrors("read")(findBlobs(state, id, prefix))
  })
})

/** Sessions in the store of keys and values of the context. One process at a time writes a session. */
export const make = (
  options: KeyValueSessionOptions = {}
): Layer.Layer<SessionBacking, never, KeyValueStore.KeyValueStore> => Layer.effect(SessionBacking, makeBacking(options))
