/**
 * A session store over a backing: it encodes events as lines, folds lines to sessions, makes checkpoints and stores large parts
 * as blobs. A checkpoint's ranges count lines here, where those of a file count bytes.
 */

import { Clock, Effect, Layer } from "effect"
import { type Checkpoint, LogLines, type LogState, replacesView } from "../../domain/session/Checkpoint.ts"
import { encodeLine } from "../../domain/session/LogFormat.ts"
import { applyEvent, emptySession, entriesOf, logVersion, type SessionEvent } from "../../domain/session/Session.ts"
import { headOf, type SessionHead, titleOf } from "../../domain/session/SessionHead.ts"
import { lastWrittenFirst } from "../../domain/session/SessionOrder.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import {
  type BackedLine,
  type BackedRow,
  SessionBacking,
  type SessionOwner
} from "../../services/session/SessionBacking.ts"
import {
  allOrNothing,
  badSessionId,
  headlessLog,
  isSessionId,
  sessionError,
  SessionNotFound,
  SessionStore,
  type SessionStoreError,
  type SessionSummary,
  SessionTooNew,
  sessionUnavailable
} from "../../services/session/SessionStore.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import { blobsOf, readEvents, readLog, readWhole, type Source } from "./BackedLogReader.ts"
import type { ReadLog } from "./LogReading.ts"
import { type LogSink, openWriter } from "./LogWriter.ts"
import { spillParts } from "./SpilledParts.ts"

type Backing = SessionBacking["Service"]

const notFound = (id: string) => sessionError(new SessionNotFound({ id }))

// Lines.

/** Names the line of an event: after the first message that it adds, or after its place. */
const lineId = (event: SessionEvent, sequence: number): string => {
  const [first] = event._tag === "Appended" || event._tag === "Answered" ? entriesOf(event) : []
  return first?.id ?? `#${sequence}`
}

/** Encodes the event at a position, and stores its large parts. */
const encodeEvent = Effect.fnUntraced(function* (
  blobs: TempStore["Service"],
  event: SessionEvent,
  sequence: number,
  checkpoint: Checkpoint | undefined
) {
  const spilled = yield* spillParts(blobs, event)
  return {
    sequence,
    id: lineId(event, sequence),
    text: encodeLine(event, spilled, checkpoint),
    isCheckpoint: checkpoint !== undefined,
    at: yield* Clock.currentTimeMillis
  } satisfies BackedLine
})

/** Encodes the events of a new session. A name that an earlier line has is replaced by the place. */
const encodeAll = Effect.fnUntraced(function* (blobs: TempStore["Service"], events: ReadonlyArray<SessionEvent>) {
  const lines = new LogLines()
  const encoded: Array<BackedLine> = []
  const ids = new Set<string>()
  let after = emptySession
  for (const [index, event] of events.entries()) {
    after = applyEvent(after, event)
    const checkpoint = replacesView(event) ? lines.checkpoint(after, event) : undefined
    const line = yield* encodeEvent(blobs, event, index + 1, checkpoint)
    encoded.push(ids.has(line.id) ? { ...line, id: `#${index + 1}` } : line)
    ids.add(line.id)
    lines.add(event, index, index + 1)
  }
  return { encoded, state: { session: after, lines, complete: true } satisfies LogState }
})

// Heads.

interface StoredHead extends SessionHead {
  readonly version: number
}

const headText = (head: StoredHead): string => JSON.stringify(head)

const textOr = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** Reads a head; undefined when it is not one. */
const headFrom = (text: string): StoredHead | undefined => {
  const value = parsedOrUndefined(text)
  if (typeof value !== "object" || value === null || !("version" in value)) return undefined
  const { cwd, firstPrompt, model, parent, startedAt, version }: Partial<Record<keyof StoredHead, unknown>> = value
  return {
    version: typeof version === "number" ? version : 0,
    firstPrompt: textOr(firstPrompt),
    model: textOr(model),
    cwd: textOr(cwd),
    parent: textOr(parent),
    startedAt: typeof startedAt === "number" ? startedAt : undefined
  }
}

const headAfter = (events: ReadonlyArray<SessionEvent>): StoredHead => ({
  ...headOf(events),
  version: events[0]?._tag === "Started" ? events[0].version : logVersion
})

const summaryOf = ({ bytes, head, holder, id, title, updatedAt }: BackedRow): SessionSummary => {
  const found = headFrom(head)
  const isTooNew = found !== undefined && found.version > logVersion
  return {
    id,
    title,
    firstPrompt: found?.firstPrompt,
    model: found?.model,
    cwd: found?.cwd,
    parent: found?.parent,
    startedAt: found?.startedAt ?? updatedAt,
    updatedAt,
    bytes,
    holder,
    problem:
      found === undefined
        ? headlessLog(id).message
        : isTooNew
          ? new SessionTooNew({ id, version: found.version }).message
          : undefined
  }
}

// Writing.

/** A line, and the head of its session where the line changes it. */
interface HeadedLine {
  readonly line: BackedLine
  readonly head: StoredHead | undefined
}

/** A head that a later first prompt changes. */
const openHead = (head: StoredHead | undefined) => (head?.firstPrompt === undefined ? head : undefined)

/** The head to store with an event: only the first message of the user changes it. */
const headWith = (head: StoredHead | undefined, event: SessionEvent): StoredHead | undefined => {
  if (head === undefined) return undefined
  const { firstPrompt } = headOf([event])
  return firstPrompt === undefined ? undefined : { ...head, firstPrompt }
}

const sinkOf = (source: Source, owner: SessionOwner, opened: StoredHead | undefined): LogSink<HeadedLine> => {
  const { backing, blobs, id } = source
  // The head of the session while it has no first prompt; later appends do not change it.
  let current = openHead(opened)
  const readHead = Effect.map(backing.list(id), ([row]) => {
    current = openHead(row && headFrom(row.head))
  })
  return {
    id,
    blobs,
    encode: (event, position, checkpoint) =>
      Effect.map(encodeEvent(blobs, event, position + 1, checkpoint), (line) => ({
        line,
        head: headWith(current, event)
      })),
    write: ({ head, line }, position) =>
      backing.append(owner, line, head === undefined ? undefined : headText(head)).pipe(
        Effect.map(() => {
          if (head !== undefined) current = undefined
          return position + 1
        }),
        Effect.tapError(({ reason }) => (reason._tag === "SessionChanged" ? Effect.ignore(readHead) : Effect.void))
      ),
    readWhole: () => readWhole(source)
  }
}

/** Opens the writer of a log in this state, until the scope closes. */
const openLog = (source: Source, owner: SessionOwner, state: ReadLog, head: StoredHead | undefined) =>
  Effect.map(openWriter(sinkOf(source, owner, head), state), (log) => ({
    ...log,
    checkWritable: source.backing.checkWritable?.(source.id)
  }))

// The store.

const sourceOf = (backing: Backing, id: string): Source => ({ backing, id, blobs: blobsOf(backing, id) })

const createSession = Effect.fnUntraced(function* (backing: Backing, events: ReadonlyArray<SessionEvent>, id: string) {
  const source = sourceOf(backing, id)
  const { encoded, state } = yield* encodeAll(source.blobs, events)
  const head = headAfter(events)
  const owner = yield* backing.create(id, headText(head), encoded)
  return yield* openLog(source, owner, { ...state, good: encoded.length, torn: 0 }, head)
})

const openSession = Effect.fnUntraced(function* (backing: Backing, id: string, takeOver: boolean) {
  const source = sourceOf(backing, id)
  const owner = yield* backing.own(id, takeOver)
  const state = yield* readLog(source)
  const [row] = yield* backing.list(id)
  const log = yield* openLog(source, owner, state, row === undefined ? undefined : headFrom(row.head))
  return { session: state.session, complete: state.complete, torn: 0, log }
})

/**
 * Reads a whole session, page by page. Another process may delete it meanwhile, and store a new one under its id: then the new one is read, or the
 * session is missing. Its first line tells.
 */
const eventsOf = (backing: Backing, id: string): Effect.Effect<ReadonlyArray<SessionEvent>, SessionStoreError> =>
  Effect.gen(function* () {
    const firstLine = Effect.map(backing.read(id, 1, 2), ([line]) => line?.text)
    const first = yield* firstLine
    const read = yield* Effect.exit(readEvents(sourceOf(backing, id)))
    const now = yield* firstLine
    if (now === undefined) return yield* notFound(id)
    return yield* now === first ? read : eventsOf(backing, id)
  })

const make = (backing: Backing): SessionStore["Service"] => {
  const rows = (id?: string) => Effect.map(backing.list(id), (found) => found.toSorted(lastWrittenFirst))
  const withValidId = <A, E, R>(id: string, use: Effect.Effect<A, E, R>) =>
    isSessionId(id) ? use : Effect.fail(notFound(id))
  return {
    create: Effect.fn("SessionStore.create")((started) =>
      isSessionId(started.session)
        ? allOrNothing(createSession(backing, [started], started.session))
        : Effect.fail(badSessionId())
    ),
    add: Effect.fn("SessionStore.add")((events) => {
      const [started] = events
      return started?._tag === "Started" && isSessionId(started.session)
        ? Effect.scoped(createSession(backing, events, started.session))
        : Effect.fail(badSessionId())
    }),
    blobs: Effect.fn("SessionStore.blobs")((id) =>
      withValidId(
        id,
        Effect.gen(function* () {
          if ((yield* backing.list(id)).length === 0) return yield* notFound(id)
          const hashes = yield* backing.findBlobs(id, "")
          const { get } = blobsOf(backing, id)
          return hashes.map((hash) => ({
            hash,
            bytes: Effect.mapError(get(hash), (error) => sessionUnavailable("read", error.message, error))
          }))
        })
      )
    ),
    events: Effect.fn("SessionStore.events")((id) => withValidId(id, eventsOf(backing, id))),
    open: Effect.fn("SessionStore.open")((id, options) =>
      withValidId(id, allOrNothing(openSession(backing, id, options?.takeOver ?? false)))
    ),
    list: Effect.map(backing.ids, (ids) => ids.toSorted().reverse()).pipe(Effect.withSpan("SessionStore.list")),
    summaries: Effect.map(rows(), (found) => found.map(summaryOf)).pipe(Effect.withSpan("SessionStore.summaries")),
    summary: Effect.fn("SessionStore.summary")((id) =>
      withValidId(
        id,
        Effect.flatMap(rows(id), ([row]) =>
          row === undefined ? Effect.fail(notFound(id)) : Effect.succeed(summaryOf(row))
        )
      )
    ),
    rename: Effect.fn("SessionStore.rename")((id, title) =>
      withValidId(id, backing.rename(id, titleOf(title) || undefined))
    ),
    remove: Effect.fn("SessionStore.remove")((id) => withValidId(id, backing.remove(id)))
  }
}

/** A session store over a backing. */
export const over = <E, R>(backing: Layer.Layer<SessionBacking, E, R>): Layer.Layer<SessionStore, E, R> =>
  Layer.provide(Layer.effect(SessionStore, Effect.map(SessionBacking, make)), backing)
