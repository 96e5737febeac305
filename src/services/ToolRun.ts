import { Clock, Effect, Semaphore } from "effect"
import { inBrief, messageInBrief } from "../domain/ToolResult.ts"
import type { Approval } from "./Approval.ts"
import type { Tool } from "./Tool.ts"
import { type Answered, type Asking, givenUp } from "./ToolAnswer.ts"
import { atOnce, carryOutOne, type ToolRunOptions } from "./ToolCall.ts"

/** The calls of one answer, carried out. */

/** Calls in the order in which they are carried out: those that only read together, each other one alone. */
const groupsOf = (calls: ReadonlyArray<Asking>, tools: ReadonlyArray<Tool>): ReadonlyArray<ReadonlyArray<number>> => {
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

/**
 * Carries out the calls of one answer and fills `answers`, one a call, in their order: those that only read run at once, one
 * that changes something runs alone and after all before it. However it ends, what was done stands in `answers`.
 */
export const carryOut = Effect.fn("ToolRun.carryOut")(function* (
  calls: ReadonlyArray<Asking>,
  answers: Array<Answered | undefined>,
  options: Omit<ToolRunOptions, "gate">
): Effect.fn.Return<void, never, Approval> {
  const { emit, tools } = options
  const whole = { ...options, gate: yield* Semaphore.make(atOnce) }
  /** Why a hook stopped the work: what did not begin by then is not begun. */
  let stops: string | undefined
  const one = Effect.fnUntraced(function* (index: number) {
    const asking = calls[index]
    if (asking === undefined) return
    const begun = yield* Clock.currentTimeMillis
    const answer =
      stops === undefined
        ? yield* carryOutOne(asking, whole, (given) => {
            answers[index] = given
          })
        : givenUp(`a hook stopped the work: ${stops}`, undefined)
    answers[index] = answer
    stops ??= answer.stops
    const { response, result, status } = answer
    yield* emit({
      _tag: "ToolCallResponse",
      id: asking.id,
      name: asking.call.name,
      status,
      display: result?.display === undefined ? null : inBrief(result.display),
      message: typeof response["error"] === "string" && status !== "success" ? messageInBrief(response["error"]) : null,
      duration: (yield* Clock.currentTimeMillis) - begun
    })
  })
  for (const group of groupsOf(calls, tools)) {
    yield* Effect.forEach(group, one, { concurrency: atOnce, discard: true })
  }
})
