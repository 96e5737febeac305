import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  canonical,
  defaultThresholds,
  isCheckDue,
  LoopDetector,
  newSchedule,
  nextInterval,
  RepeatedCalls
} from "../../../src/domain/agent/LoopDetection.ts"
import { runsOf } from "../../support/runs.ts"

/** A call in a line: its name and what it is called with, what it is answered behind an equals sign. */
const feed = (calls: string, detector = new LoopDetector()): number => {
  const all = calls.split(" ").filter((one) => one !== "")
  for (const [index, one] of all.entries()) {
    const [call = "", output] = one.split("=")
    const [name = "", path] = call.split(":")
    if (detector.call(name, { path }) !== undefined) return index + 1
    if (output !== undefined) detector.result(name, { path }, output)
  }
  return 0
}

const five = (calls: string) => Array.from({ length: 5 }, () => calls).join(" ")

describe("repeated calls", () => {
  const cases: ReadonlyArray<readonly [rule: string, calls: string, at: number]> = [
    ["the fifth of five same calls in a row is a loop", five("read:a"), 5],
    ["four are none", "read:a read:a read:a read:a", 0],
    ["another call between begins anew", "read:a read:a read:a read:a read:b read:a read:a read:a read:a", 0],
    [
      "the same tool with other arguments is none: batch work",
      Array.from({ length: 200 }, (_, n) => `edit:${n}`).join(" "),
      0
    ],
    ["another tool with the same arguments is none", "read:a edit:a read:a edit:b read:a", 0],
    ["a cycle of two calls, five times", five("read:a edit:a"), 10],
    ["a cycle of five calls, five times", five("a b c d e"), 25],
    ["a cycle of six calls is none", five("a b c d e f"), 0],
    ["a cycle counts wherever it begins", `x y z ${five("a b c")}`, 18],
    ["a cycle that is broken once is none", "a b a b a b a c a b a b a b a b", 0],
    ["the same call whose answers are the same is a loop", five("status:ci=waiting"), 5],
    [
      "the same call whose answers differ is none: it polls",
      Array.from({ length: 50 }, (_, n) => `status:ci=${n}%`).join(" "),
      0
    ],
    ["a polled call whose answers stop changing is a loop", `status:ci=1% ${five("status:ci=2%")}`, 6],
    [
      "a cycle of an edit and a test that fails differently is none",
      "edit:a=ok test=1 edit:a=ok test=2 edit:a=ok test=3 edit:a=ok test=4 edit:a=ok test=5",
      0
    ],
    ["a cycle of an edit and a test that fails the same way is a loop", five("edit:a=ok test=1"), 10],
    ["calls at once, before any of them is answered, count", five("read:a"), 5]
  ]
  it.each(cases)("%s", (_, calls, at) => assert.strictEqual(feed(calls), at))

  it("treats arguments with reordered keys as equal", () => {
    const detector = new LoopDetector()
    const args = [
      { a: 1, b: { c: [1, 2], d: null } },
      { b: { d: null, c: [1, 2] }, a: 1 }
    ]
    for (let n = 0; n < 4; n += 1) assert.isUndefined(detector.call("tool", args[n % 2]))
    assert.strictEqual(detector.call("tool", args[0])?.kind, "calls")
  })

  it.each([
    ["lists in another order", { a: [1, 2] }, { a: [2, 1] }],
    ["a number and its text", { a: 1 }, { a: "1" }],
    ["a key within another", { a: { b: 1 } }, { a: {}, b: 1 }],
    ["nothing and null", {}, { a: null }]
  ] as const)("treats other arguments as different: %s", (_, one, other) =>
    assert.notStrictEqual(canonical(one), canonical(other))
  )

  it.each([
    ["no arguments", undefined],
    ["null", null],
    ["a text", "text"],
    ["a big number", 10n],
    ["arguments nested without end", Array.from({ length: 5_000 }).reduce<unknown>((inner) => ({ inner }), 1)]
  ] as const)("compares arguments of any shape: %s", (_, args) => {
    const detector = new LoopDetector()
    for (let n = 0; n < 4; n += 1) assert.isUndefined(detector.call("tool", args))
    assert.isDefined(detector.call("tool", args))
  })

  it("ignores calls of an exempt tool, which also hide no others", () => {
    const thresholds = { ...defaultThresholds, exempt: ["wait"] }
    assert.strictEqual(feed(five("wait"), new LoopDetector(thresholds)), 0)
    assert.strictEqual(feed(five("wait read:a"), new LoopDetector(thresholds)), 10)
  })

  it("ignores waiting for one agent after the other", () => {
    assert.strictEqual(feed(five("sessions_yield")), 0)
    assert.strictEqual(feed(five("sessions_yield sessions_list")), 0)
    assert.strictEqual(feed(five("sessions_history:scout-1")), 5)
  })

  it("so can those of a passage, its length and the history", () => {
    const words = (thresholds: Partial<typeof defaultThresholds>, text: string) =>
      new LoopDetector({ ...defaultThresholds, ...thresholds }).content(text)?.kind
    const ten = "0123456789"
    const far = `${ten}abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN`.repeat(3)
    assert.isUndefined(words({}, ten.repeat(9)))
    assert.strictEqual(words({ content: 3, chunk: 10 }, ten.repeat(3)), "content")
    assert.isUndefined(words({ content: 3, chunk: 11 }, ten.repeat(3)))
    assert.strictEqual(words({ content: 3, chunk: 10 }, far), "content")
    assert.isUndefined(words({ content: 3, chunk: 10, history: 109 }, far))
  })

  it("compares answers of any size by length and both ends", () => {
    const calls = new RepeatedCalls()
    const huge = (n: number) => `${"x".repeat(1_000_000)}${n}`
    for (let n = 0; n < 20; n += 1) {
      assert.isUndefined(calls.call("cat", {}))
      calls.result("cat", {}, huge(n % 10))
    }
  })

  it("names the repeated call", () => {
    const detector = new LoopDetector()
    assert.strictEqual(feed(five("read:a edit\u001b[31m:a"), detector), 10)
    assert.deepStrictEqual(detector.loop, {
      kind: "calls",
      detail: "the same 2 calls were made 5 times in a row: read, edit"
    })
  })

  const names = Schema.Array(Schema.Literals(["a", "b", "c"]))
  it.effect.prop(
    "reports a loop exactly when the last calls are five equal rounds",
    [names],
    ([calls]) =>
      Effect.sync(() => {
        const seen: Array<string> = []
        const detector = new RepeatedCalls()
        for (const name of calls) {
          seen.push(name)
          const isLoop = [1, 2, 3, 4, 5].some((length) => {
            const tail = seen.slice(-5 * length)
            return tail.length === 5 * length && tail.every((one, at) => one === tail[at % length])
          })
          assert.strictEqual(detector.call(name, {}) !== undefined, isLoop)
        }
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )
})

describe("a loop", () => {
  const words = "The very same words, over and over, and over again. "

  it("is reported until the detector is reset", () => {
    const detector = new LoopDetector()
    assert.strictEqual(feed(five("read:a"), detector), 5)
    assert.deepStrictEqual(detector.call("other", {}), detector.loop)
    assert.deepStrictEqual(detector.content("words"), detector.loop)
    detector.reset()
    assert.isUndefined(detector.loop)
    assert.strictEqual(feed(five("read:a"), detector), 5)
  })

  it("of words is quoted", () => {
    const loop = new LoopDetector().content(words.repeat(20))
    assert.strictEqual(loop?.kind, "content")
    assert.include(loop?.detail, "The very same words")
  })

  it("of words ends with a call", () => {
    const detector = new LoopDetector()
    for (let n = 0; n < 10; n += 1) {
      assert.isUndefined(detector.content(words.repeat(9)))
      assert.isUndefined(detector.call("read", { n }))
    }
  })
})

describe("the turns before the model checks again", () => {
  for (const [confidence, interval] of [
    [0, 15],
    [0.5, 10],
    [0.89, 6],
    [1, 5],
    [-3, 15],
    [7, 5]
  ] as const) {
    it(`are ${interval} at confidence ${confidence}`, () => assert.strictEqual(nextInterval(confidence), interval))
  }
})

describe("a model checks", () => {
  it.each([
    ["not before its first turn", { turns: 29 }, false],
    ["in its first turn", { turns: 30 }, true],
    ["in a later turn, when it has not checked", { turns: 31 }, true],
    ["not before the interval is over", { turns: 39, lastCheck: 30 }, false],
    ["when the interval is over", { turns: 40, lastCheck: 30 }, true],
    ["sooner after a confident verdict", { turns: 36, lastCheck: 30, interval: 6 }, true]
  ])("%s", (_rule, schedule, isDue) => assert.strictEqual(isCheckDue({ ...newSchedule, ...schedule }, 30), isDue))
})
