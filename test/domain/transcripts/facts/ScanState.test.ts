import { assert, describe, it } from "@effect/vitest"
import { addChange, addRequest, newScan, noteTime } from "../../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../../src/domain/transcripts/facts/SessionScan.ts"

const request = (id: string, answer: number, more: { readonly model?: string; readonly thread?: string } = {}) => ({
  id,
  at: 1,
  model: "m",
  usage: { prompt: 10, cached: 0, answer, thoughts: 1 },
  ...more
})

const orders = [
  [1, 5, 3],
  [1, 3, 5],
  [3, 1, 5],
  [3, 5, 1],
  [5, 1, 3],
  [5, 3, 1]
]

describe("the facts of a session", () => {
  it.each(orders)("an answer in several records counts once, with its whole: %i, %i, %i", (...answers) => {
    const state = newScan()
    addRequest(state, request("before", 2))
    for (const answer of answers) addRequest(state, request("one", answer))
    addRequest(state, request("after", 2))
    assert.deepStrictEqual(
      state.requests.map(({ id, usage }) => [id, usage.answer]),
      [
        ["before", 2],
        ["one", 5],
        ["after", 2]
      ]
    )
  })

  it.each(orders)("it lasts from the first time to the last, whatever their order: %i, %i, %i", (...times) => {
    const state = newScan()
    for (const at of [...times, undefined]) noteTime(state, at)
    assert.deepInclude(state.facts, { startedAt: 1, updatedAt: 5 })
  })

  it("has the model that answered it last, and a subagent's only while none did", () => {
    const models = [
      request("a", 1, { model: "side", thread: "t" }),
      request("b", 1, { model: "first" }),
      request("c", 1, { model: "side", thread: "t" }),
      request("d", 1, { model: "last" })
    ].map((_, at, all) => {
      const state = newScan()
      for (const each of all.slice(0, at + 1)) addRequest(state, each)
      return state.facts.model
    })
    assert.deepStrictEqual(models, ["side", "first", "first", "last"])
  })

  it("a change belongs to the next request of its own conversation, once", () => {
    const state = newScan()
    addChange(state, "tools")
    addChange(state, "tools")
    addChange(state, "compaction", "t")
    for (const one of [request("a", 1, { thread: "t" }), request("b", 1), request("c", 1)]) addRequest(state, one)
    assert.deepStrictEqual(
      state.requests.map(({ changes }) => changes),
      [["compaction"], ["tools"], undefined]
    )
  })

  it("a request that has no time was made when the record before it was", () => {
    const state = newScan()
    noteTime(state, 5)
    addRequest(state, { ...request("a", 1), at: undefined })
    assert.deepStrictEqual(
      state.requests.map(({ at }) => at),
      [5]
    )
  })

  it("a request without tokens counts where it cost something", () => {
    const state = newScan()
    const usage = { prompt: 0, cached: 0, answer: 0, thoughts: 0 }
    addRequest(state, { ...request("a", 1), usage })
    addRequest(state, { ...request("b", 1), usage: { ...usage, cost: 0.1 } })
    assert.deepStrictEqual(
      state.requests.map(({ id }) => id),
      ["b"]
    )
  })
})

it("every model call of one compression counts, and none of them is the session's model", () => {
  const state = newScan()
  const usage = { prompt: 9, cached: 0, answer: 1, thoughts: 0 }
  const calls = ["a", "b", "b"].map((model) => ({ model, usage }))
  scanRecord(state, "palimpsest", { _tag: "Started", session: "s", at: 1, model: "m" })
  for (const at of [2, 3]) scanRecord(state, "palimpsest", { _tag: "CompressionFailed", at, calls })
  assert.deepStrictEqual(
    state.requests.map(({ at, model, thread }) => [at, model, thread]),
    [2, 3].flatMap((at) => ["a", "b", "b"].map((model) => [at, model, "compression"]))
  )
  assert.strictEqual(state.facts.model, "m")
})

it.each([
  [{ total: 0 }, 0],
  [{ total: 0.5 }, 0.5],
  [undefined, undefined]
])("an answer of Pi that cost %j costs %s dollars", (cost, dollars) => {
  const state = newScan()
  const message = { role: "assistant", model: "m", usage: { input: 1, output: 1, ...(cost && { cost }) } }
  scanRecord(state, "pi", { type: "message", id: "a", message })
  assert.deepStrictEqual(
    state.requests.map(({ usage }) => usage.cost),
    [dollars]
  )
})
