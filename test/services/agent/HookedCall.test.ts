import { Effect } from "effect"
import { emptyOutcome, type HookEvent, type HookOutcome } from "../../../src/domain/hooks/Hook.ts"
import { after, before, withAddition } from "../../../src/services/agent/HookedCall.ts"
import type { CallAnswer } from "../../../src/services/agent/ToolAnswer.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const hooked = (outcome: Partial<HookOutcome> | undefined, told: Array<HookEvent> = []) => ({
  has: (name: string) => outcome !== undefined && name === "BeforeTool",
  fire: (event: HookEvent) => {
    told.push(event)
    return Effect.succeed({ ...emptyOutcome, ...outcome })
  },
  fireAside: () => Effect.void,
  say: () => Effect.void
})
const args = { a: 1, b: { c: [2] } }
const many = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`k${at} \n${"x".repeat(50)}`, at]))

const unchanged = { args, note: undefined, asks: false }
/** The arguments, what the note names, and whether the user is asked; else the status, the answer, and why the run stops. */
const cases: ReadonlyArray<readonly [what: string, outcome: Partial<HookOutcome> | undefined, expected: object]> = [
  ["no hooks", undefined, unchanged],
  ["nothing changed", { specific: { tool_input: { b: { c: [2] } } } }, unchanged],
  ["no object", { specific: { tool_input: "a" } }, unchanged],
  ["a question", { asks: true }, { ...unchanged, asks: true }],
  [
    "a change, an addition and a question",
    { asks: true, specific: { tool_input: { a: 1, b: 3, d: 4 } } },
    { args: { a: 1, b: 3, d: 4 }, note: "b, d", asks: true }
  ],
  [
    "many",
    { specific: { tool_input: many } },
    {
      args: { ...args, ...many },
      note: `${Array.from({ length: 10 }, (_, at) => `k${at} ${"x".repeat(37 - (at > 9 ? 1 : 0))}`).join(", ")} and 2 more`,
      asks: false
    }
  ],
  ["a block", { blocked: "why1" }, { status: "error", error: "why1", stops: undefined }],
  ["a stop before a block", { blocked: "why1", stopped: "why2" }, { status: "error", error: "why2", stops: "why2" }]
]
it.effect.each(cases)("before a call %s", function* ([, outcome, expected]) {
  const told: Array<HookEvent> = []
  const found = yield* before(hooked(outcome, told), { tool: "f", args, instead: "g" })
  const note = "answer" in found ? undefined : /: (.*)\]$/s.exec(found.note ?? "")?.[1]
  assert.deepStrictEqual(
    "answer" in found
      ? {
          status: found.answer.status,
          error: /\w+$/.exec(String(found.answer.response["error"]))?.[0],
          stops: found.answer.stops
        }
      : { ...found, note },
    expected
  )
  assert.deepStrictEqual(
    told,
    outcome === undefined ? [] : [{ _tag: "BeforeTool", tool: "f", input: args, asked: "g" }]
  )
})

describe("after a call", () => {
  const result = { value: "v", display: "d" }
  const answer: CallAnswer = { status: "success", response: { output: "v" }, result } as unknown as CallAnswer
  const tail = { name: "h", args: { i: 1 } }
  it.effect("hooks add, withhold, stop, and have another tool run", function* () {
    const told: Array<HookEvent> = []
    const of = (outcome: Partial<HookOutcome>, given = answer) =>
      after(hooked(outcome, told), { tool: "f", args, instead: undefined }, given)
    assert.deepStrictEqual(yield* of({}), { answer, tail: undefined })
    assert.deepStrictEqual(told, [{ _tag: "AfterTool", tool: "f", input: args, response: { output: "v" } }])
    assert.deepStrictEqual(yield* of({ specific: { tailToolCallRequest: { ...tail, more: 1 } } }), { answer, tail })
    for (const other of ["h", { name: 1 }, null]) {
      assert.isUndefined((yield* of({ specific: { tailToolCallRequest: other } })).tail)
    }
    const added = (yield* of({ context: "said", specific: { tailToolCallRequest: tail } })).answer
    assert.match(String(added.response["output"]), /^v\n\n[^]*said/)
    const withheld = yield* of({ blocked: "why1", context: "said" })
    assert.strictEqual(withheld.answer.status, "error")
    assert.match(String(withheld.answer.response["error"]), / f: why1$/)
    assert.deepStrictEqual(withheld.answer.result, {
      value: String(withheld.answer.response["error"]),
      display: "d"
    } as unknown as CallAnswer["result"])
    assert.isUndefined(withheld.answer.stops)
    const stop = yield* of({ stopped: "why2", blocked: "why1" }, { ...answer, result: undefined })
    assert.deepStrictEqual([stop.answer.stops, stop.answer.result, stop.tail], ["why2", undefined, undefined])
  })

  it("an addition stands where the answer's own text does, and is kept apart", () => {
    const plus = (response: object, added?: string) => {
      const found = withAddition({ ...answer, response: { ...response }, added }, "more")
      return [found.response, found.added]
    }
    assert.deepStrictEqual(plus({ output: "o", error: "e" }), [{ output: "o\n\nmore", error: "e" }, "more"])
    assert.deepStrictEqual(plus({ output: 1, error: "e" }, "first"), [
      { output: 1, error: "e\n\nmore" },
      "first\n\nmore"
    ])
    assert.deepStrictEqual(plus({ x: 1 }), [{ x: 1, hooks: "more" }, "more"])
    assert.deepStrictEqual(plus({ hooks: 1 }), [{ output: '{"hooks":1}\n\nmore' }, "more"])
  })
})
