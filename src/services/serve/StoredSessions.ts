/** The stored sessions of tenants: what can be read and written without opening a conversation. */

import { Cache, Clock, Duration, Effect, Exit, Option, Schedule } from "effect"
import { text } from "../../domain/content/Content.ts"
import { allEntries } from "../../domain/conversation/Branches.ts"
import type { Entry } from "../../domain/conversation/Conversation.ts"
import { changeHeading, isEnvironmentChange } from "../../domain/prompt/EnvironmentChange.ts"
import { beforeEvents } from "../../domain/serve/EventBuffer.ts"
import { localTenant } from "../../domain/serve/ServeSettings.ts"
import {
  answerTo,
  ledgerOf,
  type LedgerSettings,
  type LedgerTotals,
  ledgerTotals,
  shownMessages
} from "../../domain/serve/SessionLedger.ts"
import { changed, type SessionRecord } from "../../domain/serve/SessionRecord.ts"
import { applyEvent, emptySession, type SessionEvent, startedWith } from "../../domain/session/Session.ts"
import { userSessions } from "../../domain/session/SessionName.ts"
import { lastWrittenFirst, type OrderedSession } from "../../domain/session/SessionOrder.ts"
import type { FormatName } from "../../domain/transcripts/Transcript.ts"
import { ChatDefaults } from "../chat/ChatSettings.ts"
import { Model } from "../model/Model.ts"
import { newId } from "../platform/NewId.ts"
import * as SessionRetention from "../session/SessionRetention.ts"
import { SessionStore, type SessionStoreError, type SessionSummary } from "../session/SessionStore.ts"
import { Settings } from "../settings/Settings.ts"
import * as TranscriptExport from "../transcripts/TranscriptExport.ts"
import { internal, noSession, storeError } from "./Failures.ts"
import type { CompressionDone, SessionRow } from "./ServeApi.ts"
import type { ServedSessions } from "./ServedSessions.ts"
import { BadRequest, NotFound, type ServeError, TooMany } from "./ServeErrors.ts"
import { readable, SessionRecords, type StoredRecord } from "./SessionRecords.ts"
import { TenantLimiter } from "./TenantLimiter.ts"
import { TenantRuntimes, type TenantServices } from "./TenantRuntimes.ts"
import { openQuestions } from "./TurnQuestions.ts"

/** What clients read of a session with a broken log. */
export const unreadable = "it cannot be read"

/** A session as its summary shows it. */
type Row = Omit<SessionRow, "metadata">

/**
 * Returns a session as a list shows it. `running`: the message that is being answered here; `isOpen`: whether it is
 * open here.
 */
export const rowOf = (summary: SessionSummary, running: string | null, isOpen: boolean): Row => ({
  id: summary.id,
  title: summary.title ?? null,
  firstPrompt: summary.firstPrompt ?? null,
  model: summary.model ?? null,
  startedAt: summary.startedAt,
  updatedAt: summary.updatedAt,
  bytes: summary.bytes,
  running,
  isHeld: summary.holder !== undefined && !isOpen,
  problem: summary.problem === undefined ? null : unreadable
})

const withRecord = (row: Row, { metadata = {}, model }: SessionRecord): SessionRow => ({
  ...row,
  metadata,
  model: model ?? row.model
})

/** What a list shows of a record. */
const readableOf = (record: StoredRecord = Option.none()): SessionRecord => Option.getOrElse(record, () => ({}))

/** Maximum number of cached totals, so that a list does not read each log again. */
const maxTotals = 1_000

/** Maximum number of sessions whose totals a list shows. */
const maxSummed = 100

/** The log of a session whose totals are shown, and the settings for them. */
interface Summed extends Pick<SessionSummary, "bytes" | "id" | "updatedAt"> {
  readonly tenant: string
  readonly settings: LedgerSettings
}

/** The state of stored sessions. */
export interface StoredSessions {
  readonly runtimes: TenantRuntimes["Service"]
  readonly limiter: TenantLimiter["Service"]
  /** Overrides the model of the settings for new sessions. */
  readonly model: string | undefined
  /** The totals of sessions, as long as their logs and the settings are unchanged. */
  readonly totals: Cache.Cache<Summed, LedgerTotals, ServeError>
  /** The sessions of tenants in the order of lists, as the first page read them: the pages after it are of the same list. */
  readonly lists: Cache.Cache<string, ReadonlyArray<SessionSummary>, ServeError>
}

/** How long the pages of a list are of what its first page read. */
const listLifetime = "10 seconds"
/** Tenants whose lists are kept. */
const maxLists = 8

/** Makes the state of stored sessions. */
export const make = Effect.fnUntraced(function* (model: string | undefined) {
  const runtimes = yield* TenantRuntimes
  const listed = (tenant: string) => store({ runtimes }, tenant, ({ summaries }) => Effect.map(summaries, userSessions))
  const stored: StoredSessions = {
    runtimes,
    limiter: yield* TenantLimiter,
    model,
    totals: yield* Cache.makeWith(
      ({ id, settings, tenant }: Summed) =>
        Effect.map(load({ runtimes }, tenant, id), ({ events, session }) => ledgerTotals(session, events, settings)),
      { capacity: maxTotals, timeToLive: (read) => (Exit.isSuccess(read) ? Duration.infinity : Duration.zero) }
    ),
    lists: yield* Cache.makeWith(listed, {
      capacity: maxLists,
      timeToLive: (read) => (Exit.isSuccess(read) ? listLifetime : Duration.zero)
    })
  }
  return stored
})

/** Runs work with the services of a tenant. */
export const inTenant = <A, E, R>(
  { runtimes }: Pick<StoredSessions, "runtimes">,
  tenant: string,
  work: Effect.Effect<A, E, R | TenantServices>
) =>
  Effect.flatMap(Effect.catchTag(runtimes.of(tenant), "TenantUnavailable", internal), (services) =>
    Effect.provideContext(work, services)
  )

/** Uses the store of a tenant. */
export const store = <A>(
  stored: Pick<StoredSessions, "runtimes">,
  tenant: string,
  use: (sessions: SessionStore["Service"]) => Effect.Effect<A, SessionStoreError>
) => inTenant(stored, tenant, SessionStore.use(use)).pipe(Effect.catchTag("SessionStoreError", storeError))

/** Fails for a session that the tenant does not have, before anything is opened, because opening would create it. */
export const existing = (stored: StoredSessions, tenant: string, id: string) =>
  store(stored, tenant, ({ summary }) => summary(id))

/** Returns the events of a stored session. */
export const load = (stored: Pick<StoredSessions, "runtimes">, tenant: string, id: string) =>
  Effect.map(
    store(stored, tenant, ({ events }) => events(id)),
    (events) => ({ events, session: events.reduce(applyEvent, emptySession) })
  )

/** Uses the records of a tenant. */
export const records = <A>(
  stored: StoredSessions,
  tenant: string,
  use: (records: SessionRecords["Service"]) => Effect.Effect<A, SessionStoreError>
) => inTenant(stored, tenant, SessionRecords.use(use)).pipe(Effect.catchTag("SessionStoreError", storeError))

/** Returns what a client set for a session. */
export const recordOf = (stored: StoredSessions, tenant: string, id: string) =>
  records(stored, tenant, ({ get }) => Effect.flatMap(get([id]), (found) => readable(id, found.get(id))))

/** Fails for a model of no known provider. */
export const checkModel = (stored: StoredSessions, tenant: string, model: string | null = null) =>
  Effect.flatMap(inTenant(stored, tenant, Model), ({ access }) => {
    const reached = model === null ? undefined : access?.reach(model)
    return reached?._tag === "NoModel" ? new BadRequest({ message: reached.text }) : Effect.void
  })

/** Returns a message of a stored session with its answers; undefined when the session does not hold it. */
export const messageOf = (stored: StoredSessions, tenant: string, id: string, message: string) =>
  Effect.map(load(stored, tenant, id), ({ session }) => answerTo(session, message))

/** Whether the turn of a session waits for a client. */
export const isWaiting = (stored: StoredSessions, tenant: string, id: string) =>
  Effect.map(load(stored, tenant, id), ({ session }) => openQuestions(session).length > 0)

/** Returns what a compression did that this request asked for earlier; undefined if it was not carried out. */
export const compressionBy = Effect.fnUntraced(function* (
  stored: StoredSessions,
  tenant: string,
  id: string,
  request: string
) {
  const { events } = yield* load(stored, tenant, id)
  const event = events.findLast((each) => each._tag === "Compressed" && each.request === request)
  if (event?._tag !== "Compressed") return undefined
  const { after, before, status } = event
  return { status, outcome: "Compressed", before, after, reason: null, snapshot: null } satisfies CompressionDone
})

const settingsOf = (stored: StoredSessions, tenant: string) =>
  inTenant(
    stored,
    tenant,
    Settings.use(({ read }) => read)
  ).pipe(Effect.catchTag("SettingsError", internal))

/** The user's windows and prices. */
const ledgerSettings = (stored: StoredSessions, tenant: string) =>
  Effect.map(settingsOf(stored, tenant), ({ settings: { models, window } }): LedgerSettings => ({ models, window }))

/** Fails when the tenant has reached its limit of sessions. */
const checkRoom = Effect.fnUntraced(function* (stored: StoredSessions, tenant: string) {
  const limit = stored.limiter.limits(tenant).sessions
  const count = (yield* store(stored, tenant, ({ list }) => list)).length
  if (count >= limit) {
    return yield* new TooMany({ message: `the limit of ${limit} stored sessions is reached; delete one first` })
  }
})

/** Sets the record of a new session. Most have none. */
const set = (kept: SessionRecords["Service"], id: string, record: SessionRecord) =>
  Effect.andThen(kept.remove(id), Object.keys(record).length === 0 ? Effect.void : kept.change(id, () => record))

const cursorOf = ({ id, updatedAt }: OrderedSession): string => `${String(updatedAt).padStart(15, "0")}-${id}`
const placeIn = (cursor: string): OrderedSession => ({ updatedAt: Number(cursor.slice(0, 15)), id: cursor.slice(16) })

/** What differs between the servers that store sessions. */
interface Serving {
  /** A session as a list shows it. */
  readonly row: (tenant: string, summary: SessionSummary) => Row
  /** The event after which the stream of a session continues; undefined when no events are kept. */
  readonly lastEvent: (tenant: string, id: string) => Effect.Effect<string | undefined>
  /** Fails if the server is stopping. */
  readonly accepting: Effect.Effect<void, ServeError>
  /** Goes back to a message. */
  readonly branch: ServedSessions["Service"]["branch"]
}

type Served = ServedSessions["Service"]

/** Whether a session contains all words of a search, which are in lower case. */
const containsWords = (
  words: ReadonlyArray<string>,
  { firstPrompt = "", id, title = "" }: SessionSummary,
  { metadata = {} }: SessionRecord
) => {
  const text = [title, firstPrompt, id, ...Object.values(metadata)].join("\n").toLowerCase()
  return words.every((word) => text.includes(word))
}

/** The row of a listed session. `settings`: those of its totals, if they are shown. */
const listedRow = Effect.fnUntraced(function* (
  stored: StoredSessions,
  { row }: Serving,
  tenant: string,
  summary: SessionSummary,
  record: StoredRecord | undefined,
  settings: LedgerSettings | undefined
) {
  const isBroken = record !== undefined && Option.isNone(record)
  const plain = withRecord(row(tenant, isBroken ? { ...summary, problem: unreadable } : summary), readableOf(record))
  if (settings === undefined || summary.problem !== undefined) return plain
  const { bytes, id, updatedAt } = summary
  const sums = yield* Effect.option(Cache.get(stored.totals, { tenant, id, bytes, updatedAt, settings }))
  return Option.isSome(sums) ? { ...plain, totals: sums.value } : plain
})

const list = (stored: StoredSessions, serving: Serving): Served["list"] =>
  Effect.fnUntraced(function* (tenant, { cursor, limit, search = "", totals: isSummed }) {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean)
    const searched = words.length === 0 ? undefined : yield* records(stored, tenant, ({ get }) => get())
    const last = cursor === undefined ? undefined : placeIn(cursor)
    const listed = yield* last === undefined ? Cache.refresh(stored.lists, tenant) : Cache.get(stored.lists, tenant)
    const all = listed.filter(
      (summary) =>
        (last === undefined || lastWrittenFirst(last, summary) < 0) &&
        (searched === undefined || containsWords(words, summary, readableOf(searched.get(summary.id))))
    )
    const shown = all.slice(0, limit)
    const settings = isSummed ? yield* ledgerSettings(stored, tenant) : undefined
    const ids = shown.map(({ id }) => id)
    const kept = searched ?? (yield* records(stored, tenant, ({ get }) => get(ids)))
    const sessions = yield* Effect.forEach(shown, (summary, index) =>
      listedRow(stored, serving, tenant, summary, kept.get(summary.id), index < maxSummed ? settings : undefined)
    )
    const more = all.length - shown.length
    const end = shown.at(-1)
    return { sessions, more, next: more === 0 || end === undefined ? null : cursorOf(end) }
  })

/** Reads sessions, which no conversation has to be opened for. */
const reading = (stored: StoredSessions, serving: Serving): Pick<Served, "exported" | "ledger" | "list" | "read"> => ({
  list: list(stored, serving),
  read: Effect.fnUntraced(function* (tenant, id, { chars, messages }) {
    // Read before the messages: a turn that ends in between is then in the stream, if not in the messages.
    const last = yield* serving.lastEvent(tenant, id)
    const { events, session } = yield* load(stored, tenant, id)
    const shown = shownMessages(session, messages, chars)
    const record = yield* recordOf(stored, tenant, id)
    return {
      ...withRecord(serving.row(tenant, yield* existing(stored, tenant, id)), record),
      totals: ledgerTotals(session, events, yield* ledgerSettings(stored, tenant)),
      messages: shown,
      earlier: Math.max(0, shownMessages(session, Infinity, 0).length - shown.length),
      lastEvent: last ?? beforeEvents(session.conversation.version),
      record,
      questions: openQuestions(session)
    }
  }),
  ledger: Effect.fnUntraced(function* (tenant, id) {
    const { events, session } = yield* load(stored, tenant, id)
    return ledgerOf(session, events, yield* ledgerSettings(stored, tenant))
  }),
  exported: (tenant, id, format) =>
    load(stored, tenant, id).pipe(
      Effect.flatMap(({ events }) => exportedLines(tenant, format, events)),
      Effect.map((lines) => `${lines.join("\n")}\n`)
    )
})

/** Stores sessions. */
const writing = (
  stored: StoredSessions,
  { accepting, branch, row }: Serving
): Pick<Served, "branch" | "change" | "create" | "fork"> => {
  const shownRow = Effect.fnUntraced(function* (tenant: string, id: string) {
    const record = yield* recordOf(stored, tenant, id)
    return withRecord(row(tenant, yield* existing(stored, tenant, id)), record)
  })
  return {
    branch,
    create: Effect.fnUntraced(function* (tenant, created) {
      yield* accepting
      yield* checkModel(stored, tenant, created.model)
      yield* checkRoom(stored, tenant)
      const id = created.id ?? (yield* newId)
      const chat = yield* inTenant(stored, tenant, ChatDefaults)
      const { settings } = yield* settingsOf(stored, tenant)
      // The model that the client sets is in the record: once it is removed there, this one answers.
      const defaults = { ...chat, model: stored.model ?? settings.model ?? chat.model }
      const started = startedWith(defaults, id, yield* Clock.currentTimeMillis)
      const { id: _, title, ...record } = created
      // Set first: the session is never without it. What a session left that had this id is replaced.
      yield* Effect.catchTag(Effect.asVoid(existing(stored, tenant, id)), "NotFound", () =>
        records(stored, tenant, (kept) => set(kept, id, record))
      )
      yield* store(stored, tenant, ({ add }) => add([started]))
      if (title !== undefined) yield* store(stored, tenant, ({ rename }) => rename(id, title))
      return yield* shownRow(tenant, id)
    }),
    fork: Effect.fnUntraced(function* (tenant, id, { at, id: copied }) {
      yield* accepting
      yield* checkRoom(stored, tenant)
      const { events, session } = yield* load(stored, tenant, id)
      const [started, ...rest] = events
      if (started?._tag !== "Started") return yield* noSession(id)
      if (at !== undefined && !allEntries(session.conversation).some((entry) => entry.id === at)) {
        return yield* new NotFound({ message: `session ${id} has no message ${at}; its ledger lists the messages` })
      }
      const copy = copied ?? (yield* newId)
      const first = { ...started, session: copy, at: yield* Clock.currentTimeMillis }
      const record = yield* recordOf(stored, tenant, id)
      yield* store(stored, tenant, ({ add }) => add([first, ...rest]))
      yield* records(stored, tenant, (kept) => set(kept, copy, record))
      if (at !== undefined) yield* branch(tenant, copy, at)
      return yield* shownRow(tenant, copy)
    }),
    change: Effect.fnUntraced(function* (tenant, id, { title, ...change }) {
      yield* checkModel(stored, tenant, change.model)
      if (title === undefined) yield* existing(stored, tenant, id)
      else yield* store(stored, tenant, ({ rename }) => rename(id, title))
      if (Object.keys(change).length > 0) {
        yield* records(stored, tenant, (kept) => kept.change(id, (record) => changed(record, change)))
      }
      yield* Cache.invalidate(stored.lists, tenant)
      return yield* shownRow(tenant, id)
    })
  }
}

/** Stores and reads sessions, which no conversation has to be opened for. */
export const storing = (stored: StoredSessions, serving: Serving) => ({
  ...reading(stored, serving),
  ...writing(stored, serving)
})

/** A message of the program without what it says of the folders of this machine. */
const withoutFolder = (entry: Entry): Entry => {
  const [first, ...rest] = entry.content.parts
  return entry.author === "program" && isEnvironmentChange(first?.text ?? "")
    ? { ...entry, content: { ...entry.content, parts: [text(changeHeading), ...rest] } }
    : entry
}

/** What clients get of an event: not in which folders of this machine its agent works. */
const withoutFolders = (event: SessionEvent): ReadonlyArray<SessionEvent> => {
  switch (event._tag) {
    case "Started": {
      const { cwd: _cwd, ...started } = event
      return [started]
    }
    case "EnvironmentSent":
      return []
    case "Appended":
      return [{ ...event, entry: withoutFolder(event.entry) }]
    case "Answered":
      return event.attached === undefined ? [event] : [{ ...event, attached: event.attached.map(withoutFolder) }]
    default:
      return [event]
  }
}

/** The lines of an export. The tenant `local` is the user of this machine, and gets everything. */
export const exportedLines = (tenant: string, format: FormatName, events: ReadonlyArray<SessionEvent>) =>
  TranscriptExport.lines(format, tenant === localTenant ? events : events.flatMap(withoutFolders))

/**
 * Deletes a session that `close` closes. Tries both again while it is in use: streams that are reading the session end
 * soon, and a request that came meanwhile opens it again.
 */
export const remove = (stored: StoredSessions, tenant: string, id: string, close: Effect.Effect<void, ServeError>) =>
  Effect.andThen(close, inTenant(stored, tenant, SessionRetention.remove(id))).pipe(
    Effect.retry({
      schedule: Schedule.spaced("50 millis").pipe(Schedule.upTo({ times: 40 })),
      while: (error) =>
        error._tag === "SessionStoreError" && ["SessionLocked", "SessionTaken"].includes(error.reason._tag)
    }),
    Effect.ensuring(Cache.invalidate(stored.lists, tenant))
  )
