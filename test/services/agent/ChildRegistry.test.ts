import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import type { AgentResult, Running } from "../../../src/services/agent/AgentRunner.ts"
import { type Child, ChildRegistry, countReply, maxEndedAgents } from "../../../src/services/agent/ChildRegistry.ts"

const scope = Scope.makeUnsafe()
const agent = { name: "scout", description: "", runner: { start: () => Effect.never } }
const running: Running = { id: "r", result: Effect.never, send: () => Effect.never }
const result: AgentResult = { text: "", reason: "GOAL", turns: 1, duration: 0, session: undefined }

const registryOf = (count: number): ChildRegistry => {
  const registry = new ChildRegistry()
  for (let number = 0; number < count; number += 1) start(registry)
  return registry
}
const start = (registry: ChildRegistry, max = Infinity) =>
  registry.reserve({ agent, scope, started: 0, task: "look" }, max)
const child = ({ children }: ChildRegistry, number: number): Child => children.get(`scout-${number}`) ?? assert.fail()
const end = (registry: ChildRegistry, number: number): void =>
  registry.end(child(registry, number), { _tag: "Ended", running, result })
const owe = (registry: ChildRegistry, number: number): void => {
  child(registry, number).due += 1
}
const ids = (children: Iterable<{ readonly id: string }>): string =>
  [...children].map(({ id }) => id.slice(6)).join(" ")

describe("started agents", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, count: number, change: (registry: ChildRegistry) => void, all: string, busy: string]
  > = [
    ["have numbers in starting order", 3, () => undefined, "1 2 3", "1 2 3"],
    ["are no more than may be at work", 2, (all) => start(all, 2), "1 2", "1 2"],
    ["make room when they end", 2, (all) => (end(all, 1), start(all, 2)), "2 1 3", "2 3"],
    ["make no room for a reply that they owe", 2, (all) => (end(all, 1), owe(all, 1), start(all, 2)), "2 1 3", "1 2 3"],
    ["get no number twice", 2, (all) => (all.children.delete("scout-2"), start(all)), "1 3", "1 3"],
    [
      "that are forgotten do not come back",
      2,
      (all) => {
        const forgotten = child(all, 2)
        all.children.delete("scout-2")
        all.end(forgotten, { _tag: "Ended", running, result })
      },
      "1",
      "1"
    ]
  ]
  for (const [rule, count, change, all, busy] of cases) {
    it(rule, () => {
      const registry = registryOf(count)
      change(registry)
      assert.deepStrictEqual([ids(registry.children.values()), ids(registry.busy)], [all, busy])
    })
  }

  it("are forgotten in the order in which they ended, unless they owe a reply", () => {
    const registry = registryOf(maxEndedAgents + 3)
    for (let number = maxEndedAgents + 2; number > 0; number -= 1) end(registry, number)
    assert.strictEqual(ids(registry.expendable), "66 65")
    owe(registry, 66)
    assert.strictEqual(ids(registry.expendable), "65")
  })
})

it("five replies in a row are messages, then one is only stored, and the count begins anew", () => {
  const one = child(registryOf(1), 1)
  const numbers = Array.from({ length: 8 }, () => countReply(one))
  assert.deepStrictEqual(numbers, [1, 2, 3, 4, 5, undefined, 1, 2])
})
