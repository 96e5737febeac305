import { Effect, Layer } from "effect"
import { builtInPrices } from "../../../src/domain/tokens/Prices.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { listSessions, spentBy } from "../../../src/services/transcripts/FindSessions.ts"
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

const sessionsOf = (files: ReadonlyArray<SessionFile>, recordsOf: (id: string) => ReadonlyArray<object>) =>
  SessionIndex.layerReading.pipe(
    Layer.provideMerge(
      Layer.mock(AgentSessions, {
        files: () => Effect.succeed({ files, problems: [] }),
        records: (file, _range, visit) =>
          Effect.sync(() => {
            for (const [at, record] of recordsOf(file.id).entries())
              visit(record, { from: at, to: at + 1, line: at + 1 })
            return { end: 1, line: 1, broken: 0 }
          })
      })
    )
  )
const sessions = sessionsOf(files, (id) => records[id] ?? [])

/** Checks how many requests of a session of Codex count, when it is chosen alone, in its account and in a search. */
const countsOf = Effect.fnUntraced(function* (recorded: ReadonlyArray<object>, expected: number) {
  const counted = Effect.gen(function* () {
    const { sessions } = yield* listSessions({ agents: undefined, folder: undefined, since: undefined })
    const { total } = yield* accountsOf(sessions, builtInPrices, { day: () => "today", since: undefined })
    const spent = yield* Effect.forEach(sessions, (session) => spentBy(session, builtInPrices))
    return [total.requests, ...spent.map(({ requests }) => requests)]
  })
  const requests = yield* Effect.provide(
    counted,
    sessionsOf(files.slice(0, 1), () => recorded)
  )
  assert.deepStrictEqual(requests, [expected, expected])
})

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

/** A record at a time of the morning, in milliseconds after nine o'clock. */
const at = (millis: number, record: object) => ({
  ...record,
  timestamp: new Date(Date.UTC(2026, 0, 1, 9) + millis).toISOString()
})
/** An id of version 7 of the same time. */
const idAt = (millis: number, end = 0): string =>
  `${(Date.UTC(2026, 0, 1, 9) + millis)
    .toString(16)
    .padStart(12, "0")
    .replace(/^.{8}/, "$&-")}-7000-8000-${String(end).padStart(12, "0")}`
const turn = (millis: number) => ({ type: "turn_context", payload: { cwd: "/w", model: "m", turn_id: idAt(millis) } })
const copiedFirst = count(110, first)
const copiedSecond = count(220, first)
const own = count(330, first)

it.effect.each<readonly [what: string, own: number, records: ReadonlyArray<object>]>([
  [
    "names its origin, and has its records at the time of the fork",
    1,
    [
      at(9_000, meta("b")),
      ...[meta("a"), copiedFirst, copiedSecond].map((record) => at(9_004, record)),
      at(30_000, own)
    ]
  ],
  [
    "names nothing, and has copies at the time of the fork",
    1,
    [at(9_000, meta("b")), ...[copiedFirst, copiedSecond].map((record) => at(9_004, record)), at(9_900, own)]
  ],
  [
    "has copies at their own times",
    1,
    [at(9_000, meta("b")), at(1_000, copiedFirst), at(4_000, copiedSecond), at(30_000, own)]
  ],
  [
    "has its own record again after the copies, and goes on at once",
    1,
    [
      ...[meta("b", "a"), meta("a"), copiedFirst, copiedSecond, meta("b")].map((record) => at(9_004, record)),
      at(9_300, own)
    ]
  ],
  [
    "has turns that tell when they began, and copies that took long",
    1,
    [
      at(9_000, meta(idAt(8_990))),
      at(9_004, turn(1_000)),
      at(9_005, copiedFirst),
      at(14_000, copiedSecond),
      at(14_001, turn(14_000)),
      at(14_300, own)
    ]
  ]
])("of a session that %s, its own requests count alone", ([, expected, recorded]) => countsOf(recorded, expected))

it.effect.each<readonly [what: string, records: ReadonlyArray<object>]>([
  ["answers within a second", [at(0, meta("b")), ...[400, 800, 9_000].map((time) => at(time, count(time, first)))]],
  [
    "was written after its first turn began",
    [at(40, meta(idAt(0))), at(41, turn(10)), ...[200, 300, 9_000].map((time) => at(time, count(time, first)))]
  ],
  ["has one time for all", [meta("b"), ...[1, 2, 3].map((total) => count(total, first))].map((record) => at(0, record))]
])("of a session that %s, all count", ([, recorded]) => countsOf(recorded, 3))

it.effect(
  "requests of two agents with the same id count both, and of a repeated answer the whole one, where it was first",
  () =>
    Effect.gen(function* () {
      const answer = (output_tokens: number) => ({
        type: "assistant",
        uuid: `u${output_tokens}`,
        timestamp: first,
        message: { id: "same", role: "assistant", model: "m", content: [], usage: { input_tokens: 1, output_tokens } }
      })
      const pi = { input: 1, output: 7 }
      const list: Readonly<Record<string, readonly [agent: SessionFile["agent"], records: ReadonlyArray<object>]>> = {
        one: ["claude", [{ ...answer(3), cwd: "/one" }]],
        two: ["claude", [{ ...answer(5), cwd: "/two", timestamp: later }]],
        three: [
          "pi",
          [{ type: "message", id: "same", timestamp: second, message: { role: "assistant", model: "m", usage: pi } }]
        ]
      }
      const agents = Layer.mock(AgentSessions, {
        files: () =>
          Effect.succeed({
            files: Object.entries(list).map(([id, [agent]], at): SessionFile => ({
              agent,
              id,
              parent: undefined,
              kind: "session",
              path: `/${id}.jsonl`,
              bytes: 1,
              updatedAt: at,
              folder: `/${id}`
            })),
            problems: []
          }),
        records: (file, _range, visit) =>
          Effect.sync(() => {
            for (const [at, record] of (list[file.id]?.[1] ?? []).entries())
              visit(record, { from: at, to: at + 1, line: at + 1 })
            return { end: 1, line: 1, broken: 0 }
          })
      })
      const accounts = yield* Effect.gen(function* () {
        const { sessions: found } = yield* listSessions({ agents: undefined, folder: undefined, since: undefined })
        return yield* accountsOf(found, builtInPrices, { day: () => "today", since: undefined })
      }).pipe(Effect.provide(SessionIndex.layerReading.pipe(Layer.provideMerge(agents))))
      assert.deepStrictEqual([accounts.total.requests, accounts.repeated], [2, 1])
      assert.deepStrictEqual(accounts.by.folder.map(({ answered, name }) => [name, answered]).toSorted(), [
        ["/one", 5],
        ["/three", 7]
      ])
      assert.deepStrictEqual(accounts.by.agent.map(({ name, requests }) => [name, requests]).toSorted(), [
        ["claude", 1],
        ["pi", 1]
      ])
    })
)

it.effect("a session that went back is one session with all its requests, whose counts begin again", () => {
  const used = (response_id: string, total: number, timestamp: string) => [
    {
      timestamp,
      type: "token_usage_record",
      payload: { response_id, usage: { input_tokens: 100, output_tokens: 10 } }
    },
    count(total, timestamp)
  ]
  const said = (text: string, timestamp: string) => ({
    timestamp,
    type: "response_item",
    payload: { type: "message", role: "user", content: [{ type: "input_text", text }] }
  })
  const rollouts: Readonly<Record<string, ReadonlyArray<object>>> = {
    "/rollout-1-a.jsonl": [meta("a"), said("first", first), ...used("r1", 110, first), ...used("r2", 220, second)],
    // The second request was taken back, and another one has the same totals.
    "/rollout-2-a_b.jsonl": [meta("a"), said("other", later), ...used("r3", 220, later)]
  }
  const place = { agent: "codex", id: "a", parent: undefined, kind: "session", bytes: 1, folder: "/w" } as const
  const agents = Layer.mock(AgentSessions, {
    // Whichever changed last: the later name goes on.
    files: () =>
      Effect.succeed({
        files: Object.keys(rollouts).map((path, at): SessionFile => ({ ...place, path, updatedAt: 9 - at })),
        problems: []
      }),
    records: (file, _range, visit) =>
      Effect.sync(() => {
        for (const [at, record] of (rollouts[file.path] ?? []).entries())
          visit(record, { from: at, to: at + 1, line: at + 1 })
        return { end: 1, line: 1, broken: 0 }
      })
  })
  return Effect.gen(function* () {
    const { sessions: found } = yield* listSessions()
    assert.deepStrictEqual(
      found.map(({ files: all, id, path, prompts, subagents, title }) => [
        id,
        path,
        title,
        prompts,
        all.length,
        subagents
      ]),
      [["a", "/rollout-2-a_b.jsonl", "first", 2, 2, 0]]
    )
    const { total } = yield* accountsOf(found, builtInPrices, { day: () => "today", since: undefined })
    assert.deepStrictEqual([total.requests, total.sent, total.breaks, total.breakCost], [3, 300, 0, 0])
  }).pipe(Effect.provide(SessionIndex.layerReading.pipe(Layer.provideMerge(agents))))
})

it.effect("files of another agent with one id are copies of one session, and its prompts count once", () => {
  const said = { type: "user", sessionId: "a", message: { role: "user", content: "hello" } }
  const place = { agent: "claude", id: "a", parent: undefined, bytes: 1, updatedAt: 1, folder: "/w" } as const
  const files: ReadonlyArray<SessionFile> = [
    { ...place, kind: "session", path: "/one/a.jsonl" },
    { ...place, kind: "session", path: "/two/a.jsonl" },
    { ...place, kind: "subagent", path: "/two/a/agent-b.jsonl" }
  ]
  const agents = Layer.mock(AgentSessions, {
    files: () => Effect.succeed({ files, problems: [] }),
    records: (_file, _range, visit) =>
      Effect.sync(() => {
        visit(said, { from: 0, to: 1, line: 1 })
        return { end: 1, line: 1, broken: 0 }
      })
  })
  return Effect.gen(function* () {
    const { sessions: found } = yield* listSessions()
    assert.deepStrictEqual(
      found.map(({ files: all, path, prompts, subagents }) => [path, prompts, all.length, subagents]),
      [["/one/a.jsonl", 1, 3, 1]]
    )
  }).pipe(Effect.provide(SessionIndex.layerReading.pipe(Layer.provideMerge(agents))))
})
