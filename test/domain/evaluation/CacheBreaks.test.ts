import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { type BreakCause, cacheBreaks } from "../../../src/domain/evaluation/CacheBreaks.ts"
import { costOfRequest, spentOn } from "../../../src/domain/evaluation/SessionCost.ts"
import { builtInPrices } from "../../../src/domain/tokens/Prices.ts"
import type { AgentName } from "../../../src/domain/transcripts/AgentFolders.ts"
import { newScan, type RecordedRequest } from "../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../src/domain/transcripts/facts/SessionScan.ts"
import { root } from "../../support/paths.ts"

const day = (at: number) => new Date(at).toISOString().slice(0, 10)
const start = Date.parse("2026-02-03T10:00:00Z")
const minute = 60_000

const request = (
  id: string,
  minutes: number,
  cached: number,
  cacheWrite: number,
  more: Partial<RecordedRequest> = {}
): RecordedRequest => ({
  id,
  at: start + minutes * minute,
  model: "claude-sonnet-4-5",
  usage: { prompt: cached + cacheWrite + 10, answer: 5, thoughts: 0, cached, cacheWrite },
  ...more
})

const breaksIn = (requests: ReadonlyArray<RecordedRequest>) =>
  cacheBreaks(requests, builtInPrices, day).map(({ cause, cost, expected, request, served }) => ({
    request,
    cause,
    expected,
    served,
    cost: cost === undefined ? undefined : Math.round(cost * 1e6) / 1e6
  }))

const scan = (agent: AgentName, text: string) => {
  const state = newScan()
  for (const line of text.split("\n")) if (line !== "") scanRecord(state, agent, JSON.parse(line))
  return state.requests
}

describe("CacheBreaks", () => {
  it("names what was recorded before a break, and the price of what was sent again", () => {
    const first = request("a", 0, 0, 100_000)
    const next = (more: Partial<RecordedRequest>, minutes = 1, cached = 0) =>
      breaksIn([first, request("b", minutes, cached, 100_000 - cached, more)])
    const lost = (cause: BreakCause, served = 0): ReturnType<typeof breaksIn> => [
      { request: "b", cause, expected: 100_000, served, cost: Math.round((100_000 - served) * (3.75 - 0.3)) / 1e6 }
    ]
    assert.deepStrictEqual(next({}, 6), lost("pause"))
    assert.deepStrictEqual(next({ changes: ["tools"] }), lost("tools"))
    assert.deepStrictEqual(next({ changes: ["version", "compaction"] }, 90), lost("compaction"))
    assert.deepStrictEqual(next({ changes: ["rewind"] }, 1, 40_000), lost("rewind", 40_000))
    assert.deepStrictEqual(next({}), lost("system"))
    assert.deepStrictEqual(next({}, 1, 16_000), lost("message", 16_000))
    assert.deepStrictEqual(
      next({ model: "claude-haiku-4-5" }).map(({ cause, cost }) => [cause, cost]),
      [["model", 0.115]]
    )
    assert.deepStrictEqual(
      next({ model: "unknown-model" }).map(({ cost }) => cost),
      [undefined]
    )
    assert.deepStrictEqual(next({ thread: "subagent" }), [])
    const [compaction, other] = ["compression", "subagent"].map((thread) =>
      breaksIn([request("a", 0, 0, 100_000, { thread }), request("b", 1, 0, 100_000, { thread })])
    )
    assert.deepStrictEqual([compaction, other], [[], lost("system")])
  })

  it("takes the life of a cache from what was paid for, and the day from where the agent ran", () => {
    const hour = { prompt: 50_010, answer: 5, thoughts: 0, cached: 0, cacheWrite: 50_000, cacheWriteHour: 50_000 }
    const causes = (minutes: number) =>
      breaksIn([request("a", 0, 0, 0, { usage: hour }), request("b", minutes, 0, 0, { usage: hour })])
    assert.deepStrictEqual(
      causes(59).map(({ cause, cost }) => [cause, cost]),
      [["system", 0.285]]
    )
    assert.deepStrictEqual(
      causes(61).map(({ cause }) => cause),
      ["pause"]
    )
    assert.deepStrictEqual(
      breaksIn([request("a", 839, 0, 50_000), request("b", 841, 0, 50_000)]).map(({ cause }) => cause),
      ["date"]
    )
  })

  it("adds up to what Pi recorded, to the cent, by the built-in prices as well", () => {
    const requests = scan(
      "pi",
      String(gunzipSync(readFileSync(path.join(root, "test/fixtures/sessions/pi-1019-lines.jsonl.gz"))))
    )
    const { cost, recorded } = spentOn(requests, builtInPrices)
    assert.strictEqual(recorded, 439)
    assert.strictEqual(cost.toFixed(2), "30.33")
    const byTable = requests.reduce(
      (sum, { usage: { cost: _cost, ...usage }, ...rest }) =>
        sum + (costOfRequest({ ...rest, usage }, builtInPrices) ?? 0),
      0
    )
    assert.strictEqual(byTable.toFixed(2), "30.33")
  })

  it("counts each answer of Claude Code once, and adds up to Codex's own total", () => {
    const claude = scan("claude", readFileSync(path.join(root, "examples/claude-code-subagent.jsonl"), "utf8"))
    assert.strictEqual(new Set(claude.map(({ id }) => id)).size, claude.length)
    assert.deepStrictEqual(
      [...new Set(claude.map(({ model }) => model))],
      ["claude-opus-4-6", "claude-haiku-4-5-20251001"]
    )
    const text = readFileSync(path.join(root, "test/fixtures/codex/codex-today.jsonl"), "utf8")
    const totals = [...text.matchAll(/"total_token_usage":(\{[^}]+\})/g)].map(([, json = ""]) => JSON.parse(json))
    const { answered, sent } = spentOn(scan("codex", text), builtInPrices)
    assert.deepStrictEqual([sent, answered], [totals.at(-1).input_tokens, totals.at(-1).output_tokens])
  })
})
