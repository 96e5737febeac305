import { assert, describe, it } from "@effect/vitest"
import type { AgentResult } from "../../../src/domain/agent/AgentResult.ts"
import * as Children from "../../../src/domain/agent/Children.ts"

type All = Children.Children<undefined>

const result: AgentResult = { text: "", reason: "GOAL", turns: 1, duration: 0, session: undefined }

const start = (all: All, max = Infinity): All =>
  Children.reserve(all, { name: "scout", task: "look", started: 0, link: undefined }, max)[1]
const started = (count: number): All => Array.from({ length: count }).reduce<All>((all) => start(all), Children.none)
const id = (number: number): string => `scout-${number}`
const end = (all: All, number: number): All => Children.addDue(Children.setEnd(all, id(number), result), id(number), -1)
const owe = (all: All, number: number): All => Children.addDue(all, id(number), 1)
const ids = (children: ReadonlyArray<{ readonly id: string }>): string =>
  children.map((one) => one.id.slice(6)).join(" ")

describe("started agents", () => {
  const cases: ReadonlyArray<
    readonly [rule: string, count: number, change: (all: All) => All, all: string, busy: string]
  > = [
    ["have numbers in starting order", 3, (all) => all, "1 2 3", "1 2 3"],
    ["are no more than may be at work", 2, (all) => start(all, 2), "1 2", "1 2"],
    ["make room when they end", 2, (all) => start(end(all, 1), 2), "2 1 3", "2 3"],
    ["make no room for a reply that they owe", 2, (all) => start(owe(end(all, 1), 1), 2), "2 1 3", "1 2 3"],
    ["get no number twice", 2, (all) => start(Children.remove(all, id(2))), "1 3", "1 3"],
    ["that are forgotten do not come back", 2, (all) => end(Children.remove(all, id(2)), 2), "1", "1"]
  ]
  for (const [rule, count, change, all, busy] of cases) {
    it(rule, () => {
      const changed = change(started(count))
      assert.deepStrictEqual([ids(changed.all), ids(Children.busy(changed))], [all, busy])
    })
  }

  it("are forgotten in the order in which they ended, unless they owe a reply", () => {
    let all = started(Children.maxEndedAgents + 3)
    for (let number = Children.maxEndedAgents + 2; number > 0; number -= 1) all = end(all, number)
    assert.strictEqual(ids(Children.expendable(all)), "66 65")
    assert.strictEqual(ids(Children.expendable(owe(all, 66))), "65")
  })
})

it("five replies in a row are messages, then one is only stored, and the count begins anew", () => {
  let all = started(1)
  const numbers = Array.from({ length: 8 }, () => {
    const [number, next] = Children.countReply(all, id(1))
    all = next
    return number
  })
  assert.deepStrictEqual(numbers, [1, 2, 3, 4, 5, undefined, 1, 2])
})
