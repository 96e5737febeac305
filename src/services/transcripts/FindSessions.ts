/** Lists and searches the sessions of every agent on this machine. */

import { Effect } from "effect"
import { spentOn } from "../../domain/evaluation/SessionCost.ts"
import type { SlicedWork } from "../../domain/text/SlicedWork.ts"
import type { Prices } from "../../domain/tokens/Prices.ts"
import { type AgentName, isInFolder } from "../../domain/transcripts/AgentFolders.ts"
import {
  type Match,
  searchedTexts,
  sessionMatcher,
  type SessionQuery,
  speakerOfMatch
} from "../../domain/transcripts/facts/SessionSearch.ts"
import * as Patterns from "../platform/Patterns.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { AgentSessions, problemOf, type RecordRange, type SessionFile, type SessionProblem } from "./AgentSessions.ts"
import { type IndexedSession, SessionIndex } from "./SessionIndex.ts"

/** Which sessions are listed. What is absent does not count. */
export interface SessionFilter {
  readonly agents?: ReadonlyArray<AgentName> | undefined
  /** Sessions of this folder and of those below it. */
  readonly folder?: string | undefined
  /** Sessions that changed at this time or later, in milliseconds since 1970. */
  readonly since?: number | undefined
}

/** A session with its subagents and the large texts beside it. */
export interface FoundSession {
  readonly agent: AgentName
  readonly id: string
  /** The session's file. */
  readonly path: string
  readonly folder: string | undefined
  readonly title: string | undefined
  readonly model: string | undefined
  readonly startedAt: number | undefined
  /** Milliseconds since 1970. */
  readonly updatedAt: number
  readonly bytes: number
  readonly prompts: number
  readonly subagents: number
  /** All files of the session, its own first. */
  readonly files: ReadonlyArray<SessionFile>
  /** Lines of its files that are no JSON. */
  readonly broken: number
}

/** All sessions that match a filter, newest first. */
export interface SessionList {
  readonly sessions: ReadonlyArray<FoundSession>
  readonly problems: ReadonlyArray<SessionProblem>
  /** Whether an index is kept; without one, everything is read. */
  readonly isIndexed: boolean
}

/** Returns the session that files belong to. A session of Codex that went back has several files; the newest goes on. */
export const sessionOf = (
  files: readonly [SessionFile, ...ReadonlyArray<SessionFile>],
  known: ReadonlyMap<string, IndexedSession>
): FoundSession => {
  const isStarted = ({ path }: SessionFile) => known.get(path)?.facts.parent !== undefined
  const own = files.filter((file) => file.kind === "session" && !isStarted(file))
  // Another agent's files of one id are copies. The names of Codex's begin with their time.
  const parts = own[0]?.agent === "codex" ? own.sort((a, b) => (a.path < b.path ? -1 : 1)) : own.slice(0, 1)
  const main = parts.at(-1) ?? files.find(({ kind }) => kind === "session") ?? files[0]
  const facts = known.get(main.path)?.facts
  const all = (parts.length === 0 ? [main] : parts).flatMap(({ path }) => known.get(path)?.facts ?? [])
  return {
    agent: main.agent,
    id: facts?.session ?? main.id,
    path: main.path,
    folder: facts?.folder ?? main.folder,
    title: all[0]?.title ?? facts?.title,
    model: facts?.model,
    startedAt: all[0]?.startedAt ?? facts?.startedAt,
    updatedAt: files.reduce((latest, { updatedAt }) => Math.max(latest, updatedAt), 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    prompts: all.reduce((sum, one) => sum + one.prompts, 0),
    subagents: files.filter((file) => file.kind === "subagent" || (file !== main && isStarted(file))).length,
    files: [main, ...files.filter((file) => file !== main)],
    broken: files.reduce((sum, { path }) => sum + (known.get(path)?.broken ?? 0), 0)
  }
}

/** Groups files by session. What a subagent's file says about its parent counts where its place does not. */
const grouped = (files: ReadonlyArray<SessionFile>, known: ReadonlyMap<string, IndexedSession>) => {
  const groups = new Map<string, [SessionFile, ...Array<SessionFile>]>()
  const names = new Map<string, string>()
  for (const file of files) {
    if (file.kind === "session") names.set(`${file.agent} ${known.get(file.path)?.facts.session ?? file.id}`, file.id)
  }
  for (const file of files) {
    const facts = known.get(file.path)?.facts
    // Older subagents of Claude Code record the id of their parent as their own.
    const claimed = facts?.parent ?? (file.kind === "subagent" ? facts?.session : undefined)
    const parent =
      file.parent ?? (claimed === undefined ? undefined : (names.get(`${file.agent} ${claimed}`) ?? claimed))
    const key = `${file.agent} ${parent ?? file.id}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [file])
    else group.push(file)
  }
  return groups
}

/** Lists the sessions that match a filter. */
export const listSessions = Effect.fn("FindSessions.listSessions")(function* ({
  agents,
  folder,
  since
}: SessionFilter = {}) {
  const index = yield* SessionIndex
  const all = yield* AgentSessions.use((sessions) => sessions.files())
  const problems = yield* index.update(all.files)
  const isOfAgents = ({ agent }: SessionFile) => agents === undefined || agents.includes(agent)
  const files = all.files.filter(isOfAgents)
  const known = yield* index.sessions(files)
  const sessions = [...grouped(files, known).values()]
    .map((group) => sessionOf(group, known))
    .filter(
      (session) =>
        (since === undefined || session.updatedAt >= since) &&
        (folder === undefined || (session.folder !== undefined && isInFolder(session.folder, folder)))
    )
    .sort((a, b) => b.updatedAt - a.updatedAt || (a.path < b.path ? -1 : 1))
  return { sessions, problems: [...all.problems, ...problems], isIndexed: index.isKept }
})

/** What a session took and cost, its subagents included. An answer that several files repeat counts once, a copy from another session not. */
export const spentBy = Effect.fnUntraced(function* (session: FoundSession, prices: Prices) {
  const requests = yield* SessionIndex.use((index) => index.requests(session.files))
  const own = [...requests.values()].flat().filter(({ isCopied }) => isCopied !== true)
  const once = new Map(own.map((request) => [request.id, request]))
  return spentOn(once.values(), prices)
})

/** A place where a session matches. */
export interface Hit extends Match {
  readonly path: string
  /** The line of the record in its file, from 1. */
  readonly line: number
  /** Who said it: user, model, tool, or the kind of record. */
  readonly speaker: string
}

/** The matches of one session. */
export interface FoundHits {
  readonly session: FoundSession
  /** The first matches. */
  readonly hits: ReadonlyArray<Hit>
  /** All matches that were counted. */
  readonly matches: number
}

const wholeFile: ReadonlyArray<RecordRange> = [{ from: 0, line: 1 }]

/**
 * Searches sessions in order, and stops after `maxSessions` with a match. A file that cannot be read is a problem; the others go
 * on.
 */
export const searchSessions = Effect.fn("FindSessions.searchSessions")(function* (
  sessions: ReadonlyArray<FoundSession>,
  query: SessionQuery,
  limits: { readonly sessions: number; readonly hits: number }
) {
  const agents = yield* AgentSessions
  const index = yield* SessionIndex
  const ranges = query._tag === "Words" ? yield* index.ranges(query.tokens) : undefined
  const matcher = sessionMatcher(query)
  const found: Array<FoundHits> = []
  const problems: Array<SessionProblem> = []
  const report = yield* ReportProgress
  for (const [at, session] of sessions.entries()) {
    if (found.length === limits.sessions) break
    report({ done: at, total: sessions.length, unit: "sessions" })
    const hits: Array<Hit> = []
    const seen = new Set<string>()
    let matches = 0
    for (const file of session.files) {
      const waiting: Array<{ readonly record: unknown; readonly line: number }> = []
      const searched = function* (): SlicedWork<void> {
        for (const { line, record } of waiting.splice(0)) {
          const match = yield* matcher(searchedTexts(record))
          if (match === undefined) continue
          matches += 1
          // Agents record some texts twice.
          if (hits.length === limits.hits || seen.has(match.text)) continue
          seen.add(match.text)
          hits.push({
            ...match,
            path: file.path,
            line,
            speaker: file.kind === "text" ? "tool" : speakerOfMatch(record, match)
          })
        }
      }
      const search = Effect.suspend(() => Patterns.run(searched()))
      for (const range of ranges === undefined ? wholeFile : (ranges.get(file.path) ?? [])) {
        yield* agents
          .records(file, range, (record, { line }) => void waiting.push({ record, line }), search)
          .pipe(
            Effect.catchTag("TranscriptError", ({ message }) =>
              Effect.sync(() => void problems.push(problemOf(file.path, message)))
            )
          )
        yield* search
      }
    }
    if (hits.length > 0) found.push({ session, hits, matches })
  }
  return { found, problems }
})
