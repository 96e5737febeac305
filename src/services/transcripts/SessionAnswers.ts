/** Answers an agent's questions about recorded sessions: exact texts, a search, what changed, a handover. It only reads. */

import { Clock, Effect, FileSystem, Option, Schema, Semaphore } from "effect"
import { gatherEvidence } from "../../domain/compression/evidence/Evidence.ts"
import { handoverOf } from "../../domain/compression/handover/Extractive.ts"
import { mentions, isHandle } from "../../domain/content/Handle.ts"
import { allEntries } from "../../domain/conversation/Branches.ts"
import { compressions, entries, type Entry } from "../../domain/conversation/Conversation.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { findHandle, similarHandles } from "../../domain/conversation/Recall.ts"
import { allParts } from "../../domain/conversation/RecallSearch.ts"
import { recallableOf, type Session } from "../../domain/session/Session.ts"
import { markStart, type Secret } from "../../domain/text/Redaction.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { type AgentName, isInFolder } from "../../domain/transcripts/AgentFolders.ts"
import { newScan, type SessionFacts } from "../../domain/transcripts/facts/ScanState.ts"
import type { SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import { changesText, entriesSince, parseSince } from "../../domain/transcripts/SessionChanges.ts"
import { search, select } from "../session/TempStore.ts"
import { AgentSessions, type SessionFile, hasRecordLines } from "./AgentSessions.ts"
import { secretsOfEvents } from "./FindSecrets.ts"
import { scanFile } from "./SessionIndex.ts"
import { Transcripts } from "./Transcripts.ts"

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
  /** Values that are secrets wherever they stand, such as those of environment variables. */
  readonly known?: ReadonlyArray<Secret>
}

/** A session of the folder. */
export interface ListedSession extends SessionFacts {
  readonly file: SessionFile
}

/** Bytes of a session that are read to list it. */
const headBytes = 256 * 1024
/** Files that are read, newest first, to find those of a folder. */
const maxLookedAt = 400
const maxListed = 20

const factsOf = Effect.fnUntraced(function* (file: SessionFile) {
  const range = { from: 0, line: 1, ...(hasRecordLines(file) ? { to: headBytes } : {}) }
  const state = newScan()
  // Facts of a file that cannot be read are missing in a list; the file itself says why when it is opened.
  yield* Effect.ignore(scanFile(yield* AgentSessions, file, range, state))
  return state.facts
})

/** Lists the sessions of a folder, the one that changed last first. */
const sessionsOf = Effect.fn("SessionAnswers.sessionsOf")(function* (
  { agents, folder }: SessionScope,
  count = maxListed
) {
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
interface ReadSession {
  readonly session: Session
  /** The secrets to leave out; undefined when texts keep theirs. */
  readonly secrets: SessionSecrets | undefined
  readonly bytes: bigint
  readonly changed: number
}

/** Sessions that stay in memory. */
const maxInMemory = 2

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

/** Leaves out of a text what is a secret anywhere in its session. */
function* cleaned(secrets: SessionSecrets, text: string): Work.SlicedWork<string> {
  return (yield* secrets.replace(text, false)).text
}

const shown = ({ secrets }: ReadSession, text: string) =>
  secrets === undefined ? Effect.succeed(text) : Work.run(cleaned(secrets, text))

const withNote = (text: string): string =>
  text.includes(markStart) ? `${text}\n(secrets are left out; the user reads them with palimpsest recall)` : text

const saidIn = ({ conversation }: Session): ReadonlyArray<Entry> =>
  allEntries(conversation).filter(({ author }) => author !== "environment")

const badPattern = ({ message }: { readonly message: string }) => noAnswer(`pattern: ${message}`)

/** Opens the sessions of a scope. What was read stays in memory, and is read again when its file has changed. */
export const makeSessionAnswers = Effect.fn("SessionAnswers.make")(function* (scope: SessionScope) {
  const agents = yield* AgentSessions
  const fs = yield* FileSystem.FileSystem
  const transcripts = yield* Transcripts
  const inMemory = new Map<string, ReadSession>()
  const reading = yield* Semaphore.make(1)
  const listed = (count: number) => Effect.provideService(sessionsOf(scope, count), AgentSessions, agents)

  /** The file of a session, named by the beginning of its id; without a name, of the current one. */
  const pathOf = Effect.fnUntraced(function* (name: string | undefined) {
    const prefix = name?.trim() ?? ""
    if (prefix === "") {
      if (scope.file !== undefined) return scope.file
      const [newest] = yield* listed(1)
      return newest?.file.path ?? (yield* noAnswer(`no session was started in ${scope.folder}`))
    }
    if (!scope.others) return yield* noAnswer("only the current session can be read; leave session out")
    const all = yield* listed(maxLookedAt)
    const matches = all.filter(({ file, session }) => [session, file.id].some((id) => id?.startsWith(prefix) === true))
    const exact = matches.find(({ file }) => file.id === prefix)
    if (exact === undefined && matches.length > 1) {
      return yield* noAnswer(`${prefix} is the beginning of ${matches.length} sessions; give more of it`)
    }
    const match = exact ?? matches[0]
    return match?.file.path ?? (yield* noAnswer(`this folder has no session ${prefix}; list_sessions names them`))
  })

  /** The size of a session and when it last changed. A database has both for each of its sessions. */
  const versionOf = Effect.fnUntraced(function* (file: string) {
    if (file.includes("#")) {
      const { files } = yield* agents.files(["opencode"])
      const row = files.find(({ path }) => path === file) ?? (yield* noAnswer(`${file} cannot be read`))
      return { bytes: BigInt(row.bytes), changed: row.updatedAt }
    }
    const { mtime, size } = yield* Effect.mapError(fs.stat(file), () => noAnswer(`${file} cannot be read`))
    const changed = Option.match(mtime, { onNone: () => 0, onSome: (date) => date.getTime() })
    return { bytes: BigInt(size), changed }
  })

  /** Reads a session, for all that ask for it at once, unless the one in memory is the same. */
  const read = Effect.fnUntraced(function* (file: string) {
    const before = inMemory.get(file)
    const { bytes, changed } = yield* versionOf(file)
    if (before?.bytes === bytes && before.changed === changed) return before
    const { events, session } = yield* Effect.mapError(transcripts.load(file, { lenient: true }), ({ message }) =>
      noAnswer(message)
    )
    const search = { secrets: true, personal: false, known: scope.known ?? [] }
    const secrets = scope.showsSecrets ? undefined : (yield* secretsOfEvents(events, file, search)).secrets
    const now: ReadSession = { session, secrets, bytes, changed }
    // The one read last comes last, also when it was in memory before.
    inMemory.delete(file)
    inMemory.set(file, now)
    const [oldest] = inMemory.keys()
    if (inMemory.size > maxInMemory && oldest !== undefined) inMemory.delete(oldest)
    return now
  }, reading.withPermit)

  /** Opens a session. One in memory that passes `suffices` is taken although its file may have grown. */
  const open = Effect.fnUntraced(function* (
    name: string | undefined,
    suffices: (session: Session) => boolean = () => false
  ) {
    const file = yield* pathOf(name)
    const before = inMemory.get(file)
    return before !== undefined && suffices(before.session) ? before : yield* read(file)
  })

  return {
    list: listed(maxListed),
    recall: Effect.fn("SessionAnswers.recall")(function* (reference, selection, session) {
      const trimmed = reference.trim()
      const name = isHandle(trimmed) ? trimmed : (mentions(reference)[0] ?? trimmed)
      const read = yield* open(session, (one) => findHandle(recallableOf(one), name)._tag === "Found")
      const recallable = recallableOf(read.session)
      const match = findHandle(recallable, name)
      if (match._tag === "Ambiguous") {
        return yield* noAnswer(`${name} is the beginning of ${match.handles.length} handles`)
      }
      if (match._tag === "Unknown") {
        const near = similarHandles(recallable, name)
        const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : "search_history finds handles by words"
        return yield* noAnswer(`nothing is kept under ${name}; ${hint}`)
      }
      const excerpt = yield* Effect.mapError(select(yield* shown(read, match.payload.text), selection), badPattern)
      const rest =
        excerpt.omittedLines > 0
          ? `\n(${excerpt.omittedLines} more of ${excerpt.totalLines} lines; ask for them by number or by a pattern)`
          : ""
      const lines = excerpt.text === "" ? `no line matches; the text has ${excerpt.totalLines} lines` : excerpt.text
      return withNote(`${lines}${rest}`)
    }),
    search: Effect.fn("SessionAnswers.search")(function* (pattern, maxTokens, session) {
      const read = yield* open(session)
      const { secrets } = read
      const parts = yield* Work.run(allParts(read.session.conversation))
      const options = {
        pattern,
        maxTokens,
        isWhole: true,
        isRedacted: secrets !== undefined,
        ...(secrets === undefined ? {} : { clean: (text: string) => cleaned(secrets, text) })
      }
      return withNote((yield* Effect.mapError(search(parts, options), badPattern)).text)
    }),
    changes: Effect.fn("SessionAnswers.changes")(function* (since, session) {
      const read = yield* open(session)
      const { conversation, started } = read.session
      const last = compressions(conversation).at(-1)
      const isGiven = since !== undefined && since.trim() !== ""
      const before = last && entries(conversation)[last.entries - 1]
      const afterLast = before && { _tag: "Entry" as const, entry: before.id }
      const from = isGiven ? parseSince(since, yield* Clock.currentTimeMillis) : afterLast
      if (from === undefined && isGiven) {
        return yield* noAnswer("since must be an entry (e12), a time (2026-02-03T10:00Z) or an age (30m, 2h, 1d)")
      }
      const all = saidIn(read.session)
      const later = from === undefined ? all : entriesSince(all, from)
      const evidence = yield* Work.run(gatherEvidence(later, { cwd: started?.cwd }))
      const text = yield* shown(read, changesText(evidence))
      const range = since ?? (last === undefined ? "the beginning" : "the last compaction")
      return text === "" ? `nothing changed since ${range}` : withNote(`Since ${range}:\n${text}`)
    }),
    snapshot: Effect.fn("SessionAnswers.snapshot")(function* (budget, session) {
      const read = yield* open(session)
      const cwd = read.session.started?.cwd
      return yield* shown(read, yield* Work.run(handoverOf(saidIn(read.session), { budget, cwd })))
    })
  }
})
