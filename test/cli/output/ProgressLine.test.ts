import { Deferred, Effect, Fiber, Sink, Stdio } from "effect"
import { TestClock } from "effect/testing"
import * as Output from "../../../src/cli/output/Output.ts"
import { progressLine, type ProgressState } from "../../../src/cli/output/Output.ts"
import { decode } from "../../../src/domain/text/Bytes.ts"
import { ReportProgress } from "../../../src/services/platform/Progress.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("the line of progress", () => {
  const state = { label: "reading a.jsonl", frame: 0, millis: 4_000, advance: undefined }
  const rows: ReadonlyArray<readonly [change: Partial<ProgressState>, line: string]> = [
    [{ millis: 500 }, "⠋ reading a.jsonl"],
    [{ frame: 11, millis: 9_900 }, "⠙ reading a.jsonl 9 s"],
    [{ advance: { done: 1_200, total: undefined, unit: "sessions" } }, "⠋ 1,200 sessions 4 s, reading a.jsonl"],
    [{ advance: { done: 0, total: 0, unit: "bytes" } }, "⠋ 0.0 MB 4 s, reading a.jsonl"],
    [
      { advance: { done: 25e6, total: 100e6, unit: "bytes" } },
      "⠋ █████░░░░░░░░░░░░░░░ 25 %, 25.0 of 100.0 MB, 12 s left: reading a.jsonl"
    ],
    [
      { millis: 60_000, advance: { done: 100, total: 1_000, unit: "turns" } },
      "⠋ ██░░░░░░░░░░░░░░░░░░ 10 %, 100 of 1,000 turns, 9 min left: reading a.jsonl"
    ],
    // Too early to guess, or nothing left.
    [
      { millis: 1_000, advance: { done: 5, total: 10, unit: "turns" } },
      "⠋ ██████████░░░░░░░░░░ 50 %, 5 of 10 turns: reading a.jsonl"
    ],
    [{ advance: { done: 0, total: 10, unit: "turns" } }, "⠋ ░░░░░░░░░░░░░░░░░░░░ 0 %, 0 of 10 turns: reading a.jsonl"],
    [
      { advance: { done: 12, total: 10, unit: "turns" } },
      "⠋ ████████████████████ 100 %, 12 of 10 turns: reading a.jsonl"
    ]
  ]
  for (const [change, line] of rows) it(line, () => assert.strictEqual(progressLine({ ...state, ...change }), line))
})

/** A terminal, or a pipe, that keeps what is written to stderr. */
const screen = (isTerminal: boolean) => {
  const written: Array<string> = []
  const keep = () =>
    Sink.forEach((chunk: string | Uint8Array) =>
      Effect.sync(() => void written.push(typeof chunk === "string" ? chunk : decode(chunk).text))
    )
  return {
    written,
    layer: Stdio.layerTest({ stderrIsTerminal: Effect.succeed(isTerminal), stderr: keep, stdout: keep })
  }
}

const wipe = "\r\u001b[K"

describe("progress on a terminal", () => {
  /** Work that reports, notices, and then waits until it is told to end. */
  const working = Effect.fnUntraced(function* (isTerminal: boolean, end: "done" | "failed" | "interrupted") {
    const { layer, written } = screen(isTerminal)
    const gate = yield* Deferred.make<void, string>()
    const fiber = yield* Effect.gen(function* () {
      const report = yield* ReportProgress
      report({ done: 1, total: 4, unit: "turns" })
      yield* Effect.sleep("750 millis")
      yield* Output.notice("something happened")
      yield* Deferred.await(gate)
    }).pipe(Output.progress("playing"), Effect.provide(layer), Effect.forkChild)
    yield* TestClock.adjust("2 seconds")
    if (end === "interrupted") yield* Fiber.interrupt(fiber)
    else if (end === "failed") yield* Deferred.fail(gate, "no")
    else yield* Deferred.succeed(gate, undefined)
    yield* Fiber.await(fiber)
    return written
  })

  it.effect.each(["done", "failed", "interrupted"] as const)(
    "%s: draws how far the work is, makes room for a notice, and wipes its line",
    function* (end) {
      const written = yield* working(true, end)
      const bar = `█████${"░".repeat(15)} 25 %, 1 of 4 turns: playing`
      assert.strictEqual(written[0], `\r\u001b[?7l⠋ ${bar}\u001b[K\u001b[?7h`)
      const notice = written.indexOf("palimpsest: something happened\n")
      assert.deepStrictEqual([written[notice - 1], written.at(-1)], [wipe, wipe])
      assert.isAbove(written.length, notice + 3)
    }
  )

  it.effect("a pipe gets the notice and nothing else", function* () {
    assert.deepStrictEqual(yield* working(false, "done"), ["palimpsest: something happened\n"])
  })
})
