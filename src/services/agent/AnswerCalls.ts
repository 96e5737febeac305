/** Answers the calls of a turn, and records one answer per call whatever happens. */

import { Clock, Effect, Exit, Semaphore } from "effect"
import type { Loop } from "../../domain/agent/LoopDetection.ts"
import { type Part, response } from "../../domain/content/Content.ts"
import { type Tool, toolsByName } from "../tools/Tool.ts"
import { append, callsOf, intentOf } from "./AgentConversation.ts"
import type { AgentRun, LastingCalls, Profile } from "./AgentRun.ts"
import { stopText, stopwatch } from "./RunBounds.ts"
import {
  type CallAnswer,
  type PendingCall,
  abandonedAnswer,
  failedAnswer,
  responseEvent,
  stoppedReason
} from "./ToolAnswer.ts"
import { type ToolRunOptions, maxParallelCalls, runToolCall } from "./ToolCall.ts"

/** Groups the calls in execution order: consecutive read-only calls together, consecutive agents together, every other call alone. */
export const groupsOf = <Asking extends PendingCall>(
  calls: ReadonlyArray<Asking>,
  tools: ReadonlyArray<Tool>
): ReadonlyArray<ReadonlyArray<Asking>> => {
  const byName = toolsByName(tools)
  const groups: Array<Array<Asking>> = []
  /** The kinds of calls that may join the last group. */
  let open: ReadonlyArray<string> = []
  for (const asking of calls) {
    const tool = byName.get(asking.call.name)
    const own = [...(tool?.kind === "read" ? ["read"] : []), ...(tool?.isAgent ? ["agent"] : [])]
    const common = open.filter((kind) => own.includes(kind))
    open = common.length > 0 ? common : own
    if (common.length > 0) groups.at(-1)?.push(asking)
    else groups.push([asking])
  }
  return groups
}

/**
 * Runs the calls of one answer and fills `answers` with one answer per call, in their order. Those with an answer already do not run. Calls that only read run
 * in parallel, and so do agents; any other call runs alone, after all calls before it. However the run ends, `answers`
 * holds the finished work.
 */
const runToolCalls = Effect.fn("AnswerCalls.runToolCalls")(function* (
  calls: ReadonlyArray<PendingCall>,
  answers: Array<CallAnswer | undefined>,
  options: Omit<ToolRunOptions, "elapsed" | "gate">,
  ended: LastingCalls["ended"]
) {
  const { emit, tools } = options
  const whole = { ...options, gate: yield* Semaphore.make(maxParallelCalls) }
  const byName = toolsByName(tools)
  /** Why a hook stopped the run. Calls that have not begun do not begin. */
  let stops: string | undefined
  const one = Effect.fnUntraced(function* ({ index, ...asking }: PendingCall & { readonly index: number }) {
    const watch = stopwatch(yield* Clock.currentTimeMillis)
    const waiting: ToolRunOptions["waiting"] = (work) => watch.waiting(options.waiting(work))
    const answer =
      answers[index] ??
      (stops === undefined
        ? yield* runToolCall(asking, { ...whole, elapsed: watch.elapsed, waiting }, (partial) => {
            answers[index] = partial
          })
        : abandonedAnswer(`a hook stopped the run: ${stops}`))
    const isReading = byName.get(asking.call.name)?.kind === "read"
    if (answers[index] === undefined && calls.length > 1 && !isReading) yield* ended(asking, answer)
    answers[index] = answer
    stops ??= answer.stops
    const duration = watch.elapsed(yield* Clock.currentTimeMillis)
    yield* emit(responseEvent(asking.id, asking.call.name, answer, duration, answer.result?.display))
  })
  for (const group of groupsOf(
    calls.map((asking, index) => ({ ...asking, index })),
    tools
  )) {
    yield* Effect.forEach(group, one, { concurrency: maxParallelCalls, discard: true })
  }
})

/** The text of an answer: its output, or its JSON. */
export const outputOf = ({ response: fields }: CallAnswer): string =>
  typeof fields["output"] === "string" && Object.keys(fields).length === 1 ? fields["output"] : JSON.stringify(fields)

/** Appends one answer per call to the conversation, in call order, each followed by its media. */
const record = Effect.fnUntraced(function* (
  { chat }: Profile,
  calls: ReadonlyArray<PendingCall>,
  answers: ReadonlyArray<CallAnswer>,
  summaries: ReadonlyMap<number, string>
) {
  const parts: Array<Part> = []
  const instead: Record<string, string> = {}
  for (const [index, { call }] of calls.entries()) {
    const answer = answers[index]
    if (answer === undefined) continue
    const summary = summaries.get(index)
    if (summary !== undefined) instead[String(parts.length)] = summary
    parts.push(response(call.name, answer.response, call.id), ...(answer.result?.media ?? []))
  }
  yield* append(chat, [{ parts, ...(summaries.size === 0 ? {} : { instead }) }])
})

/**
 * Runs the calls and records their results. An interrupted run records what was done, unless its calls stay open. `selected`: the only tools that
 * may be called; `earlier`: the answers that are known already.
 */
export const answerCalls = Effect.fnUntraced(function* (
  { bounds, emit, hooked, lasting, profile, prompt, scope }: AgentRun,
  calls: ReadonlyArray<PendingCall>,
  selected: ReadonlyArray<string> | undefined,
  earlier: ReadonlyArray<CallAnswer | undefined> = []
) {
  const { name, summarize } = profile
  const tools = selected === undefined ? profile.tools : profile.tools.filter((tool) => selected.includes(tool.name))
  const answered: Array<CallAnswer | undefined> = calls.map((_, index) => earlier[index])
  const summaries = new Map<number, string>()
  const stop = Effect.map(bounds.stopped, stopText)
  const work = Effect.gen(function* () {
    const options = {
      tools,
      followUps: profile.tools,
      agent: name,
      emit,
      waiting: bounds.waiting,
      stop,
      hooked,
      aside: (work: Effect.Effect<unknown>) => Effect.asVoid(Effect.forkIn(work, scope))
    }
    yield* runToolCalls(calls, answered, options, lasting?.ended ?? (() => Effect.void))
    if (summarize === undefined) return
    const intent = yield* intentOf(profile.chat, prompt)
    const shortened = Effect.forEach(
      calls,
      Effect.fnUntraced(function* ({ call }, index) {
        const answer = answered[index]
        if (answer?.status !== "success") return
        const summary = yield* summarize(call.name, outputOf(answer), intent)
        if (summary === undefined) return
        // Text that hooks added is never shortened.
        summaries.set(index, answer.added === undefined ? summary : `${summary}\n\n${answer.added}`)
      }),
      { concurrency: 4, discard: true }
    )
    yield* Effect.raceFirst(Effect.asVoid(stop), shortened)
  })
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(work))
      if (Exit.isFailure(exit) && lasting !== undefined && (yield* lasting.staysOpen)) {
        return yield* Effect.failCause(exit.cause)
      }
      const answers = answered.map((answer) => answer ?? abandonedAnswer(stoppedReason))
      yield* record(profile, calls, answers, summaries)
      if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
      return answers
    })
  )
})

/** Why the calls of an agent that repeats itself are refused. */
export const loopRefusal = ({ detail }: Loop): string =>
  `not carried out, because you seem to be stuck in a loop: ${detail}; try a different approach, or say what blocks you`

/** Why the calls of an answer that was cut off are refused: the last may be half of what the model meant, such as half a file. */
export const cutRefusal =
  "not carried out, because your answer was cut off at the output limit; ask for less in one answer, for example write a long file in several parts"

/** Answers all calls with the same refusal. */
export const refuseCalls = Effect.fnUntraced(function* (
  { emit, profile }: AgentRun,
  calls: ReadonlyArray<PendingCall>,
  why: string
) {
  const answer = failedAnswer("error", why)
  const answers = calls.map(() => answer)
  yield* record(profile, calls, answers, new Map())
  for (const { call, id } of calls) yield* emit(responseEvent(id, call.name, answer, 0))
  return answers
})

/** Answers the calls that an earlier run left open, if any. */
export const abandonCalls = Effect.fnUntraced(function* (profile: Profile) {
  const calls = yield* callsOf(profile.chat)
  if (calls.length === 0) return
  const answers = calls.map(() => abandonedAnswer(stoppedReason))
  yield* record(profile, calls, answers, new Map())
})
