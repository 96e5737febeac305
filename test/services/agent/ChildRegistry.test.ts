import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import type { AgentResult, Running } from "../../../src/services/agent/AgentRunner.ts"
import {
  busyChildren,
  countReply,
  emptyRegistry,
  expendable,
  maxEndedAgents,
  type Registry,
  reserve,
  withChild,
  withEnd,
  withoutChild
} from "../../../src/services/agent/ChildRegistry.ts"

const scope = Scope.makeUnsafe()
const agent = { name: "scout", description: "", runner: { start: () => Effect.never } }
const running: Running = { id: "r", result: Effect.never, send: () => Effect.never }
const result: AgentResult = { text: "", reason: "GOAL", turns: 1, duration: 0, session: undefined }

const start = (before: Registry, max = Infinity): Registry =>
  reserve({ agent, scope, started: 0, task: "look" }, max)(before)[1]
const started = (count: number): Registry =>
  Array.from({ length: count }).reduce<Registry>((before) => start(before), emptyRegistry)
const end = (before: Registry, id: string): Registry => withEnd(before, id, { _tag: "Ended", running, result })
const owing = (before: Registry, id: string): Registry =>
  withChild(before, id, (child) => ({ ...child, due: child.due + 1 }))
const ids = (children: Iterable<{ readonly id: string }>): string =>
  [...children].map(({ id }) => id.slice(6)).join(" ")

describe("started agents", () => {
  const cases: ReadonlyArray<readonly [rule: string, registry: Registry, all: string, busy: string]> = [
    ["have numbers in starting order", started(3), "1 2 3", "1 2 3"],
    ["are no more than may be at work", start(started(2), 2), "1 2", "1 2"],
    ["make room when they end", start(end(started(2), "scout-1"), 2), "2 1 3", "2 3"],
    [
      "make no room for a reply that they owe",
      start(owing(end(started(2), "scout-1"), "scout-1"), 2),
      "2 1 3",
      "1 2 3"
    ],
    ["get no number twice", start(withoutChild(started(2), "scout-2")), "1 3", "1 3"],
    ["that are not there do not change", end(owing(started(1), "scout-9"), "scout-9"), "1", "1"]
  ]
  for (const [rule, registry, all, busy] of cases) {
    it(rule, () => assert.deepStrictEqual([ids(registry.children.values()), ids(busyChildren(registry))], [all, busy]))
  }

  it("are forgotten in the order in which they ended, unless they owe a reply", () => {
    const all = Array.from({ length: maxEndedAgents + 2 }, (_, index) => `scout-${maxEndedAgents + 2 - index}`)
    const ended = all.reduce(end, started(all.length + 1))
    assert.strictEqual(ids(expendable(ended)), "66 65")
    assert.strictEqual(ids(expendable(owing(ended, "scout-66"))), "65")
  })
})

it("five replies in a row are messages, then one is only stored, and the count begins anew", () => {
  const numbers: Array<number | undefined> = []
  let registry = started(1)
  for (let count = 0; count < 8; count += 1) {
    const [number, next] = countReply("scout-1")(registry)
    numbers.push(number)
    registry = next
  }
  assert.deepStrictEqual(numbers, [1, 2, 3, 4, 5, undefined, 1, 2])
  assert.deepStrictEqual(countReply("scout-2")(registry), [undefined, registry])
})
