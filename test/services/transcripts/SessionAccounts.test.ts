import { Effect, Layer } from "effect"
import { builtInPrices } from "../../../src/domain/tokens/Prices.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { listSessions } from "../../../src/services/transcripts/FindSessions.ts"
import { accountsOf } from "../../../src/services/transcripts/SessionAccounts.ts"
import { SessionIndex } from "../../../src/services/transcripts/SessionIndex.ts"
import { assert, it } from "../../support/vitest.ts"

/** What sessions cost that repeat each other's requests. */

const meta = (id: string, forked_from_id?: string) => ({
  type: "session_meta",
  payload: { id, cwd: "/w", ...(forked_from_id === undefined ? {} : { forked_from_id }) }
})
const count = (total: number, timestamp: string) => {
  const last_token_usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110 }
  const info = { last_token_usage, total_token_usage: { total_tokens: total } }
  return { timestamp, type: "event_msg", payload: { type: "token_count", info } }
}
const [first, second, later] = ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"] as const
const origin = [count(110, first), count(220, second)]

const records: Readonly<Record<string, ReadonlyArray<object>>> = {
  origin: [meta("origin"), ...origin],
  // One fork goes on, and one does not.
  "fork-1": [meta("fork-1", "origin"), meta("origin"), ...origin, count(330, later)],
  "fork-2": [meta("fork-2", "origin"), meta("origin"), ...origin]
}

const files = Object.keys(records).map((id, at): SessionFile => ({
  agent: "codex",
  id,
  parent: undefined,
  kind: "session",
  path: `/${id}.jsonl`,
  bytes: 1,
  updatedAt: at,
  folder: "/w"
}))

const sessions = SessionIndex.layerReading.pipe(
  Layer.provideMerge(
    Layer.mock(AgentSessions, {
      files: () => Effect.succeed({ files, problems: [] }),
      records: (file, _range, visit) =>
        Effect.sync(() => {
          for (const [at, record] of (records[file.id] ?? []).entries())
            visit(record, { from: at, to: at + 1, line: at + 1 })
          return { end: 1, line: 1, broken: 0 }
        })
    })
  )
)

it.effect("a fork is a session, and its requests count once, even where all of them are repeated", () =>
  Effect.gen(function* () {
    const list = yield* listSessions({ agents: undefined, folder: undefined, since: undefined })
    const accounts = (since?: number) =>
      accountsOf(list.sessions, builtInPrices, { day: () => "today", since: since ?? undefined })
    const { repeated, sessions: withRequests, total } = yield* accounts()
    assert.deepStrictEqual([withRequests, total.requests, repeated], [3, 3, 4])
    const recent = yield* accounts(Date.parse(later))
    assert.deepStrictEqual([recent.sessions, recent.total.requests], [1, 1])
  }).pipe(Effect.provide(sessions))
)
