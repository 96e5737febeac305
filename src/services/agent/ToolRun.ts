import { Clock, Effect, Semaphore } from "effect"
import { truncateDisplay, truncateMessage } from "../../domain/tools/ToolResult.ts"
import type { Approval } from "../tools/Approval.ts"
import type { Tool } from "../tools/Tool.ts"
import { type CallAnswer, type PendingCall, abandonedAnswer } from "./ToolAnswer.ts"
import { maxParallelCalls, runToolCall, type ToolRunOptions } from "./ToolCall.ts"

/** Runs the calls of one model answer. */

/** Groups the calls in execution order: consecutive read-only calls together, every other call alone. */
const groupsOf = (
  calls: ReadonlyArray<PendingCall>,
  tools: ReadonlyArray<Tool>
): ReadonlyArray<ReadonlyArray<number>> => {
  const reading = new Set(tools.flatMap(({ aliases, kind, name }) => (kind === "read" ? [name, ...aliases] : [])))
  const groups: Array<Array<number>> = []
  let isOpen = false
  for (const [index, { call }] of calls.entries()) {
    const reads = reading.has(call.name)
    const last = groups.at(-1)
    if (reads && isOpen && last !== undefined) last.push(index)
    else groups.push([index])
    isOpen = reads
  }
  return groups
}

/** Adds up how long work waits for the user. */
const measured = (waiting: ToolRunOptions["waiting"]): Pick<ToolRunOptions, "waited" | "waiting"> => {
  let total = 0
  return {
    waited: () => total,
    waiting: (work) =>
      Effect.flatMap(Clock.currentTimeMillis, (from) =>
        Effect.ensuring(
          waiting(work),
          Effect.map(Clock.currentTimeMillis, (now) => {
            total += now - from
          })
        )
      )
  }
}

/**
 * Runs the calls of one answer and fills `answers` with one answer per call, in their order. Calls that only read run
 * in parallel; a call that changes something runs alone, after all calls before it. However the run ends, `answers`
 * holds the finished work.
 */
export const runToolCalls = Effect.fn("ToolRun.runToolCalls")(function* (
  calls: ReadonlyArray<PendingCall>,
  answers: Array<CallAnswer | undefined>,
  options: Omit<ToolRunOptions, "gate" | "waited">
): Effect.fn.Return<void, never, Approval> {
  const { emit, tools } = options
  const whole = { ...options, gate: yield* Semaphore.make(maxParallelCalls) }
  /** Why a hook stopped the run. Calls that have not begun do not begin. */
  let stops: string | undefined
  const one = Effect.fnUntraced(function* (index: number) {
    const asking = calls[index]
    if (asking === undefined) return
    const startedAt = yield* Clock.currentTimeMillis
    const { waited, waiting } = measured(options.waiting)
    const answer =
      stops === undefined
        ? yield* runToolCall(asking, { ...whole, waited, waiting }, (partial) => {
            answers[index] = partial
          })
        : abandonedAnswer(`a hook stopped the run: ${stops}`, undefined)
    answers[index] = answer
    stops ??= answer.stops
    const { response, result, status } = answer
    yield* emit({
      _tag: "ToolCallResponse",
      id: asking.id,
      name: asking.call.name,
      status,
      display: result?.display === undefined ? null : truncateDisplay(result.display),
      message:
        typeof response["error"] === "string" && status !== "success" ? truncateMessage(response["error"]) : null,
      duration: (yield* Clock.currentTimeMillis) - startedAt - waited()
    })
  })
  for (const group of groupsOf(calls, tools)) {
    yield* Effect.forEach(group, one, { concurrency: maxParallelCalls, discard: true })
  }
})
