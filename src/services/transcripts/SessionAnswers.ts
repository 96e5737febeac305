import { Clock, Effect, FileSystem, Option, Schema } from "effect"
import { gatherEvidence } from "../../domain/compression/evidence/Evidence.ts"
import { composeSnapshot } from "../../domain/compression/handover/Extractive.ts"
import { mentions, isHandle } from "../../domain/content/Handle.ts"
import { allEntries } from "../../domain/conversation/Branches.ts"
import { type EntryId, type Entry, compressions, entryId } from "../../domain/conversation/Conversation.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { findHandle, similarHandles } from "../../domain/conversation/Recall.ts"
import { allParts } from "../../domain/conversation/RecallSearch.ts"
import { recallableOf, type Session } from "../../domain/session/Session.ts"
import { markStart, redacting } from "../../domain/text/Redaction.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { type AgentName, isInFolder } from "../../domain/transcripts/AgentFolders.ts"
import { changesText, entriesSince, parseSince } from "../../domain/transcripts/SessionChanges.ts"
import { newScan, scanRecord, type SessionFacts } from "../../domain/transcripts/SessionScan.ts"
import { search, select } from "../session/TempStore.ts"
import { AgentSessions, type SessionFile } from "./AgentSessions.ts"
import { Transcripts } from "./Transcripts.ts"

/** Answers an agent's questions about recorded sessions: exact texts, a search, what changed, a handover. It only reads. */

/** Why a question has no answer, in words for an agent. */
export class SessionAnswerError extends Schema.TaggedError<SessionAnswerError>()("SessionAnswerError", {
  message: Schema.String
}) {}

const noAnswer = (message: string): SessionAnswerError => new SessionAnswerError({ message })

/** Which sessions an agent may read. */
export interface SessionScope {
  /** The file of the one session. Absent: the session of the folder that changed last. */
  readonly file?: string | undefined
  /** The agents whose sessions count. Absent: all. */
  readonly agents?: ReadonlyArray<AgentName> | undefined
  /** The folder in which the sessions were started. */
  readonly folder: string
  /** Whether the other sessions of the folder may be read too. */
  readonly others: boolean
  /** Whether texts keep their secrets. */
  readonly showsSecrets: boolean
}

/** A session of the folder. */
export interface ListedSession extends SessionFacts {
  readonly file: SessionFile
}

/** A session is listed by what its first bytes say. */
const headBytes = 256 * 1024
/** Files that are looked at, newest first, to find those of a folder. */
const maxLookedAt = 400
const maxListed = 20

const factsOf = Effect.fnUntraced(function* (file: SessionFile) {
  const state = newScan()
  const read = (to: number | undefined) =>
    AgentSessions.use((sessions) =>
      sessions.records(file, to === undefined ? { from: 0, line: 1 } : { from: 0, to, line: 1 }, (record) =>
        scanRecord(state, file.agent, record)
      )
    )
  yield* Effect.ignore(
    read(file.bytes > headBytes && !file.path.includes("#") && file.path.endsWith("l") ? headBytes : undefined)
  )
  return state.facts
})

/** Lists the sessions of a folder, the one that changed last first. */
const sessionsOf = Effect.fn("SessionAnswers.sessionsOf")(function* (
  { agents, folder }: SessionScope,
  count = maxListed
): Effect.fn.Return<ReadonlyArray<ListedSession>, never, AgentSessions> {
  const { files } = yield* AgentSessions.use((sessions) => sessions.files(agents))
  const listed: Array<ListedSession> = []
  for (const file of files.filter(({ kind }) => kind === "session").slice(0, maxLookedAt)) {
    const facts = yield* factsOf(file)
    const own = facts.folder ?? file.folder
    if (own === undefined || !isInFolder(own, folder)) continue
    listed.push({ ...facts, folder: own, file })
    if (listed.length === count) break
  }
  return listed
})

/** A session as it was read. */
interface Held {
  readonly session: Session
  readonly bytes: bigint
  readonly changed: number
}

/** Sessions that stay in memory. */
const maxHeld = 2

/** Opens the sessions of a scope. What was read stays in memory, and is read again when its file has changed. */
export const makeSessionAnswers = Effect.fn("SessionAnswers.make")(function* (
  scope: SessionScope
): Effect.fn.Return<SessionAnswers, never, AgentSessions | Transcripts | FileSystem.FileSystem> {
  const agents = yield* AgentSessions
  const fs = yield* FileSystem.FileSystem
  const transcripts = yield* Transcripts
  const listed = (count: number) => Effect.provideService(sessionsOf(scope, count), AgentSessions, agents)
  const held = new Map<string, Held>()

  const pathOf = Effect.fnUntraced(function* (name: string | undefined) {
    if (name === undefined || name.trim() === "") {
      if (scope.file !== undefined) return scope.file
      const [newest] = yield* listed(1)
      return newest?.file.path ?? (yield* noAnswer(`no session was started in ${scope.folder}`))
    }
    if (!scope.others) return yield* noAnswer("only the current session can be read; leave session out")
    const wanted = name.trim()
    const all = yield* listed(maxLookedAt)
    const found = all.filter(({ file, session }) => [session, file.id].some((id) => id?.startsWith(wanted) === true))
    if (found.length > 1 && !found.some(({ file }) => file.id === wanted)) {
      return yield* noAnswer(`${wanted} is the beginning of ${found.length} sessions; give more of it`)
    }
    const one = found.find(({ file }) => file.id === wanted) ?? found[0]
    return one?.file.path ?? (yield* noAnswer(`this folder has no session ${wanted}; list_sessions names them`))
  })

  /** The size of a session and when it last changed. A database tells that of each of its sessions. */
  const stateOf = Effect.fnUntraced(function* (file: string) {
    if (file.includes("#")) {
      const { files } = yield* agents.files(["opencode"])
      const found = files.find(({ path }) => path === file) ?? (yield* noAnswer(`${file} cannot be read`))
      return { bytes: BigInt(found.bytes), changed: found.updatedAt }
    }
    const { mtime, size } = yield* Effect.mapError(fs.stat(file), () => noAnswer(`${file} cannot be read`))
    const changed = Option.match(mtime, { onNone: () => 0, onSome: (date) => date.getTime() })
    return { bytes: BigInt(size), changed }
  })

  /** Reads a session. With `isOldEnough`, one that was read before will do, although its file has grown. */
  const open = Effect.fnUntraced(function* (file: string, isOldEnough: (session: Session) => boolean = () => false) {
    const known = held.get(file)
    if (known !== undefined && isOldEnough(known.session)) return known.session
    const { bytes, changed } = yield* stateOf(file)
    if (known?.bytes === bytes && known.changed === changed) return known.session
    const { session } = yield* Effect.mapError(transcripts.load(file, { lenient: true }), ({ message }) =>
      noAnswer(message)
    )
    held.delete(file)
    held.set(file, { session, bytes, changed })
    const [oldest] = held.keys()
    if (held.size > maxHeld && oldest !== undefined) held.delete(oldest)
    return session
  })

  const shown = (text: string) =>
    scope.showsSecrets ? Effect.succeed(text) : Effect.map(Work.run(redacting(text)), (redacted) => redacted.text)

  const withNote = (text: string): string =>
    text.includes(markStart) ? `${text}\n(secrets are left out; the user reads them with palimpsest recall)` : text

  const entriesOf = (session: Session): ReadonlyArray<Entry> =>
    allEntries(session.conversation).filter(({ author }) => author !== "environment")

  const recall: SessionAnswers["recall"] = Effect.fn("SessionAnswers.recall")(function* (given, selection, session) {
    const name = isHandle(given.trim()) ? given.trim() : (mentions(given)[0] ?? given.trim())
    const holds = (one: Session) => findHandle(recallableOf(one), name)._tag === "Found"
    const file = yield* pathOf(session)
    const current = yield* open(file, holds)
    const match = findHandle(recallableOf(current), name)
    if (match._tag === "Ambiguous")
      return yield* noAnswer(`${name} is the beginning of ${match.handles.length} handles`)
    if (match._tag === "Unknown") {
      const near = similarHandles(recallableOf(current), name)
      return yield* noAnswer(
        `nothing is kept under ${name}${near.length > 0 ? `; did you mean ${near.join(" or ")}?` : "; search_history finds handles by words"}`
      )
    }
    const text = yield* shown(match.payload.text)
    const excerpt = yield* Effect.mapError(select(text, selection), ({ message }) => noAnswer(`pattern: ${message}`))
    const rest =
      excerpt.omittedLines > 0
        ? `\n(${excerpt.omittedLines} more of ${excerpt.totalLines} lines; ask for them by number or by a pattern)`
        : ""
    const none = excerpt.text === "" ? `no line matches; the text has ${excerpt.totalLines} lines` : excerpt.text
    return withNote(`${none}${rest}`)
  })

  const find: SessionAnswers["search"] = Effect.fn("SessionAnswers.search")(function* (pattern, maxTokens, session) {
    const current = yield* open(yield* pathOf(session))
    const parts = yield* Work.run(allParts(current.conversation))
    const found = yield* Effect.mapError(
      search(parts, { pattern, maxTokens, isRedacted: !scope.showsSecrets, isWhole: true }),
      ({ message }) => noAnswer(`pattern: ${message}`)
    )
    return withNote(found.text)
  })

  const evidenceOf = (whole: ReadonlyArray<Entry>, { started }: Session) =>
    Work.run(gatherEvidence(whole, { cwd: started?.cwd }))

  const changes: SessionAnswers["changes"] = Effect.fn("SessionAnswers.changes")(function* (since, session) {
    const current = yield* open(yield* pathOf(session))
    const all = entriesOf(current)
    const last = compressions(current.conversation).at(-1)
    const from =
      since === undefined || since.trim() === ""
        ? last === undefined
          ? undefined
          : { _tag: "Entry" as const, entry: lastBefore(all, last.entries) }
        : parseSince(since, yield* Clock.currentTimeMillis)
    if (from === undefined && since !== undefined && since.trim() !== "") {
      return yield* noAnswer("since must be an entry (e12), a time (2026-02-03T10:00Z) or an age (30m, 2h, 1d)")
    }
    const entries = from === undefined ? all : entriesSince(all, from)
    const text = changesText(yield* evidenceOf(entries, current))
    const range = since ?? (last === undefined ? "the beginning" : "the last compaction")
    return text === "" ? `nothing changed since ${range}` : withNote(`Since ${range}:\n${text}`)
  })

  const snapshot: SessionAnswers["snapshot"] = Effect.fn("SessionAnswers.snapshot")(function* (budget, session) {
    const current = yield* open(yield* pathOf(session))
    const evidence = yield* evidenceOf(entriesOf(current), current)
    const { text } = yield* Work.run(composeSnapshot(evidence, { budget, kept: [], cwd: current.started?.cwd }))
    return text
  })

  return { list: listed(maxListed), recall, search: find, changes, snapshot }
})

const lastBefore = (entries: ReadonlyArray<Entry>, count: number): EntryId =>
  entries[Math.min(count, entries.length) - 1]?.id ?? entryId(1)

/** The answers. `session`: the beginning of the id of another session of the folder; absent: the current one. */
export interface SessionAnswers {
  /** The newest sessions of the folder. */
  readonly list: Effect.Effect<ReadonlyArray<ListedSession>>
  /** The text behind a handle, or the selected part of it. */
  readonly recall: (
    handle: string,
    selection: Selection,
    session: string | undefined
  ) => Effect.Effect<string, SessionAnswerError>
  /** Where a pattern occurs in all of a session, with handles. */
  readonly search: (
    pattern: string,
    maxTokens: number,
    session: string | undefined
  ) => Effect.Effect<string, SessionAnswerError>
  /** The files, commits, checks and commands since an entry, a time or an age; absent: since the last compaction. */
  readonly changes: (
    since: string | undefined,
    session: string | undefined
  ) => Effect.Effect<string, SessionAnswerError>
  /** A handover of a session, of at most this many tokens. */
  readonly snapshot: (tokens: number, session: string | undefined) => Effect.Effect<string, SessionAnswerError>
}
