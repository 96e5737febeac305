import { Clock, Effect, Layer, Option, Schema, type Scope, Semaphore } from "effect"
import { KeyValueStore } from "effect/persistence"
import { pid } from "node:process"
import { Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { Processes } from "../../services/platform/ProcessIdentity.ts"
import {
  type BackedLine,
  type BackedRow,
  SessionBacking,
  type SessionOwner
} from "../../services/session/SessionBacking.ts"
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
import * as ThisProcess from "../platform/ThisProcess.ts"
import { failureOf } from "./SessionStoreErrors.ts"

/**
 * Sessions in a store of keys and values, of which only single writes are a unit. A session has these keys, and is there when its
 * first one is:
 *
 * - `ID`: what is known of it, and the name of its log
 * - `ID/epoch`: its last owner; `ID/title`
 * - `ID/LOG/1`, `ID/LOG/2`, …: its lines. A line that is no whole JSON was cut short by a crash: it is not there
 * - `ID/blob/HASH`
 *
 * What an interrupted `create` or `remove` leaves belongs to a log that nothing names.
 */

/** Options of sessions in a store of keys and values. */
export interface KeyValueSessionOptions {
  /** Begins every key. Default: `palimpsest/`. */
  readonly prefix?: string | undefined
}

const Known = fromJson(
  Schema.Struct({
    /** The part of the keys of its lines that no earlier session with this id had. */
    log: Schema.String,
    head: Schema.String,
    /** Another head, which counts as soon as the line `from` is there. */
    nextHead: Schema.optionalKey(Schema.Struct({ from: Schema.Natural, head: Schema.String })),
    /** Positions of the last checkpoints. The last one may be of a line that was never written. */
    checkpoints: Schema.Array(Schema.Natural)
  })
)
type Known = typeof Known.Type

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

const knownFrom = Schema.decodeUnknownOption(Known)
const lineFrom = Schema.decodeUnknownOption(Line)
const isHash = Schema.is(Hash)

/** Lines and sessions read at once. */
const readsAtOnce = 16

const sizeOf = (text: string): number => Bytes.encode(text).length + 1

const withStoreErrors =
  (operation: string) =>
  <A, R>(
    effect: Effect.Effect<A, SessionStoreError | KeyValueStore.KeyValueStoreError, R>
  ): Effect.Effect<A, SessionStoreError, R> =>
    Effect.mapError(effect, (error) =>
      error._tag === "KeyValueStoreError"
        ? sessionUnavailable(operation, `${failureOf(operation)}: ${error.message}`, error)
        : error
    )

const makeBacking = Effect.fnUntraced(function* ({ prefix = "palimpsest/" }: KeyValueSessionOptions) {
  const store = KeyValueStore.prefix(yield* KeyValueStore.KeyValueStore, prefix)
  /** The sessions that this process owns, and since when. */
  const owners = new Map<string, { readonly epoch: number; readonly since: number }>()
  const changing = new Map<string, { readonly turn: Semaphore.Semaphore; users: number }>()
  /** What changes one session runs one after the other. */
  const alone =
    (id: string) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const held = changing.get(id) ?? { turn: Semaphore.makeUnsafe(1), users: 0 }
        changing.set(id, held)
        held.users += 1
        const leave = Effect.sync(() => {
          held.users -= 1
          if (held.users === 0) changing.delete(id)
        })
        return Effect.ensuring(held.turn.withPermit(effect), leave)
      })

  const known = Effect.fnUntraced(function* (id: string) {
    const text = yield* store.get(id)
    if (text === undefined) return yield* sessionError(new SessionNotFound({ id }))
    const found = knownFrom(text)
    return Option.isSome(found)
      ? found.value
      : yield* corruptLine(id, 1, `the value of the key ${prefix}${id} is damaged`)
  })
  const keep = (id: string, now: Known) => store.set(id, JSON.stringify(now))
  const keyOf = (id: string, { log }: Known, sequence: number) => `${id}/${log}/${sequence}`
  const lineAt = (id: string, of: Known, sequence: number) =>
    Effect.map(store.get(keyOf(id, of, sequence)), (text) => Option.getOrUndefined(lineFrom(text)))
  const epochOf = (id: string) => Effect.map(store.get(`${id}/epoch`), (text) => Number(text ?? 0))

  /** Owns a session until the scope closes: every owner writes a higher epoch than the one before. */
  const owned = (
    id: string,
    take: Effect.Effect<void, SessionStoreError | KeyValueStore.KeyValueStoreError>
  ): Effect.Effect<SessionOwner, SessionStoreError | KeyValueStore.KeyValueStoreError, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.gen(function* () {
        yield* take
        const epoch = (yield* epochOf(id)) + 1
        yield* store.set(`${id}/epoch`, String(epoch))
        owners.set(id, { epoch, since: yield* Clock.currentTimeMillis })
        return { session: id, epoch } satisfies SessionOwner
      }).pipe(alone(id)),
      ({ epoch }) =>
        Effect.sync(() => {
          if (owners.get(id)?.epoch === epoch) owners.delete(id)
        })
    )

  const refuseOwned = (id: string): Effect.Effect<void, SessionStoreError> =>
    Effect.suspend(() => {
      const owner = owners.get(id)
      return owner === undefined
        ? Effect.void
        : Effect.fail(sessionError(new SessionLocked({ id, pid, since: owner.since })))
    })

  const create = Effect.fnUntraced(function* (id: string, head: string, lines: ReadonlyArray<BackedLine>) {
    if ((yield* store.get(id)) !== undefined) return yield* sessionError(new SessionExists({ id }))
    const of: Known = {
      log: yield* ThisProcess.provide(Effect.flatMap(Processes, ({ unique }) => unique)),
      head,
      checkpoints: lines
        .filter(({ isCheckpoint }) => isCheckpoint)
        .map(({ sequence }) => sequence)
        .slice(-1)
    }
    let size = 0
    const sized = lines.map((line) => [line, (size += sizeOf(line.text))] as const)
    yield* Effect.forEach(sized, ([line, end]) => writeLine(id, of, line, end), {
      concurrency: readsAtOnce,
      discard: true
    })
    yield* store.remove(`${id}/title`)
    yield* keep(id, of)
  })

  const writeLine = (id: string, of: Known, { at, id: name, isCheckpoint, sequence, text }: BackedLine, size: number) =>
    store.set(keyOf(id, of, sequence), JSON.stringify({ id: name, text, isCheckpoint, at, size } satisfies Line))

  const append = Effect.fnUntraced(function* (owner: SessionOwner, line: BackedLine, head: string | undefined) {
    const { epoch, session: id } = owner
    const { sequence } = line
    const of = yield* known(id)
    const [there, before, latest] = yield* Effect.all(
      [lineAt(id, of, sequence), lineAt(id, of, sequence - 1), epochOf(id)],
      { concurrency: "unbounded" }
    )
    if (there?.id === line.id && there.text === line.text) return
    if (latest !== epoch) return yield* sessionError(new SessionTaken({ id }))
    if (there !== undefined || before === undefined) {
      const found = there === undefined ? Math.max(0, sequence - 2) : sequence
      return yield* sessionError(new SessionChanged({ id, expected: sequence - 1, found, unit: "lines" }))
    }
    if (head !== undefined || line.isCheckpoint) {
      const { nextHead } = of
      const isPast = nextHead !== undefined && nextHead.from < sequence
      yield* keep(id, {
        ...of,
        ...(isPast ? { head: nextHead.head } : {}),
        ...(head === undefined ? {} : { nextHead: { from: sequence, head } }),
        checkpoints: line.isCheckpoint
          ? [...of.checkpoints.filter((at) => at < sequence).slice(-1), sequence]
          : of.checkpoints
      })
    }
    yield* writeLine(id, of, line, before.size + sizeOf(line.text))
  })

  /** The sessions, each with the position of its last line. */
  const lastLines = Effect.fnUntraced(function* () {
    const sessions = new Map<string, number>()
    const last = new Map<string, number>()
    for (const key of yield* store.keys) {
      const [id = "", log, sequence, ...more] = key.split("/")
      if (log === undefined) sessions.set(id, 0)
      else if (more.length === 0)
        last.set(`${id}/${log}`, Math.max(last.get(`${id}/${log}`) ?? 0, Number(sequence) || 0))
    }
    return { ids: [...sessions.keys()], lastOf: (id: string, { log }: Known) => last.get(`${id}/${log}`) ?? 0 }
  })

  /** One session, with the position of its last line, found without the keys of others: no line is missing between two. */
  const lastLine = Effect.fnUntraced(function* (id: string) {
    const text = yield* store.get(id)
    const of = knownFrom(text)
    let there = 0
    if (Option.isSome(of)) {
      const isThere = (sequence: number) => store.has(keyOf(id, of.value, sequence))
      let missing = 1
      while (yield* isThere(missing)) {
        there = missing
        missing *= 2
      }
      while (missing - there > 1) {
        const middle = Math.floor((there + missing) / 2)
        if (yield* isThere(middle)) there = middle
        else missing = middle
      }
    }
    return { ids: text === undefined ? [] : [id], lastOf: () => there }
  })

  const list = Effect.fnUntraced(function* (only: string | undefined) {
    const { ids, lastOf } = only === undefined ? yield* lastLines() : yield* lastLine(only)
    const rows = yield* Effect.forEach(
      ids,
      Effect.fnUntraced(function* (id): Effect.fn.Return<
        ReadonlyArray<BackedRow>,
        SessionStoreError | KeyValueStore.KeyValueStoreError
      > {
        const of = knownFrom(yield* store.get(id))
        if (Option.isNone(of)) return [{ id, head: "", title: undefined, updatedAt: 0, bytes: 0, holder: undefined }]
        const { head, nextHead } = of.value
        let last = lastOf(id, of.value)
        let line = yield* lineAt(id, of.value, last)
        if (line === undefined && last > 1) line = yield* lineAt(id, of.value, (last -= 1))
        const owner = owners.get(id)
        return [
          {
            id,
            head: nextHead !== undefined && nextHead.from <= last ? nextHead.head : head,
            title: yield* store.get(`${id}/title`),
            updatedAt: line?.at ?? 0,
            bytes: line?.size ?? 0,
            holder: owner === undefined ? undefined : { pid, since: owner.since }
          }
        ]
      }),
      { concurrency: readsAtOnce }
    )
    return rows.flat()
  })

  /** Lines up to the first that is not there. One that is damaged, with another after it, is returned as it is. */
  const read = Effect.fnUntraced(function* (id: string, from: number, to: number) {
    const of = yield* Effect.option(known(id))
    if (Option.isNone(of)) return []
    const lines: Array<BackedLine> = []
    for (let at = from; at < to; at += readsAtOnce) {
      const sequences = Array.from({ length: Math.min(readsAtOnce, to - at) }, (_, index) => at + index)
      const texts = yield* Effect.forEach(sequences, (sequence) => store.get(keyOf(id, of.value, sequence)), {
        concurrency: "unbounded"
      })
      for (const [index, text] of texts.entries()) {
        if (text === undefined) return lines
        const sequence = at + index
        const line = lineFrom(text)
        if (Option.isSome(line)) lines.push({ ...line.value, sequence })
        else if ((yield* store.get(keyOf(id, of.value, sequence + 1))) === undefined) return lines
        else lines.push({ sequence, id: `#${sequence}`, text, isCheckpoint: false, at: 0 })
      }
    }
    return lines
  })

  const lastCheckpoint = Effect.fnUntraced(function* (id: string) {
    const of = yield* Effect.option(known(id))
    if (Option.isNone(of)) return undefined
    for (const at of of.value.checkpoints.toReversed()) {
      if ((yield* lineAt(id, of.value, at))?.isCheckpoint === true) return at
    }
    return undefined
  })

  return SessionBacking.of({
    create: (id, head, lines) => withStoreErrors("create")(owned(id, create(id, head, lines))),
    own: (id, takeOver) =>
      withStoreErrors("open")(owned(id, Effect.andThen(known(id), takeOver ? Effect.void : refuseOwned(id)))),
    append: (owner, line, head) => withStoreErrors("append")(alone(owner.session)(append(owner, line, head))),
    read: (id, from, to) => withStoreErrors("read")(read(id, from, to)),
    lastCheckpoint: (id) => withStoreErrors("read")(lastCheckpoint(id)),
    list: (id) => withStoreErrors("list")(list(id)),
    rename: (id, title) =>
      known(id).pipe(
        Effect.andThen(title === undefined ? store.remove(`${id}/title`) : store.set(`${id}/title`, title)),
        withStoreErrors("rename")
      ),
    remove: (id) =>
      Effect.gen(function* () {
        yield* refuseOwned(id)
        const isThere = (yield* store.get(id)) !== undefined
        yield* store.remove(id)
        yield* store.clearPrefix(`${id}/`)
        if (!isThere) return yield* sessionError(new SessionNotFound({ id }))
      }).pipe(alone(id), withStoreErrors("remove")),
    putBlob: (id, hash, bytes) => withStoreErrors("append")(store.set(`${id}/blob/${hash}`, bytes)),
    getBlob: (id, hash) => withStoreErrors("read")(store.getUint8Array(`${id}/blob/${hash}`)),
    findBlobs: (id, prefix) => {
      const start = `${id}/blob/`
      return Effect.map(store.keys, (keys) =>
        keys.flatMap((key) => {
          const hash = key.slice(start.length)
          return key.startsWith(`${start}${prefix}`) && isHash(hash) ? [hash] : []
        })
      ).pipe(withStoreErrors("read"))
    }
  })
})

/** Sessions in the store of keys and values of the context. One process at a time writes a session. */
export const make = (
  options: KeyValueSessionOptions = {}
): Layer.Layer<SessionBacking, never, KeyValueStore.KeyValueStore> => Layer.effect(SessionBacking, makeBacking(options))
