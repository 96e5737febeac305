import { Cause, Clock, Duration, Effect } from "effect"
import type { CallStatus, ChatEvent } from "../domain/ChatEvent.ts"
import type { FunctionCall } from "../domain/Content.ts"
import { redact } from "../domain/Redaction.ts"
import { errorResponse, inBrief, messageInBrief, type ToolResult, wireResponse } from "../domain/ToolResult.ts"
import { Approval } from "./Approval.ts"
import type { Call, Tool, ToolFailure } from "./Tool.ts"

/** The calls of one answer, carried out. */

/** A call that the model asks for. */
export interface Asking {
  readonly call: FunctionCall
  /** The call's own id, else one of its place in the conversation. */
  readonly id: string
}

/** What became of a call. */
export interface Answered {
  readonly status: CallStatus
  /** The `response` that the model is given. */
  readonly response: Readonly<Record<string, unknown>>
  readonly result: ToolResult | undefined
}

/** Who makes the calls, and what happens meanwhile. */
export interface ToolRunOptions {
  readonly tools: ReadonlyArray<Tool>
  readonly agent: string
  /** Is told what happens, as it happens; may make the calls wait. */
  readonly emit: (event: ChatEvent) => Effect.Effect<unknown>
  /** Runs what waits for a person. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** When this completes, what runs is given up and what did not begin is not begun; its words go to the model. */
  readonly stop: Effect.Effect<string>
}

/** Calls that only read and run at the same time, at most. */
const atOnce = 8

const failed = (status: CallStatus, message: string): Answered => ({
  status,
  response: errorResponse(message),
  result: undefined
})

/** The answer to a call that was given up, with what it had printed until then. */
export const givenUp = (why: string, partial: string | undefined): Answered =>
  failed(
    "cancelled",
    `[Operation Cancelled] ${why}${partial === undefined || partial === "" ? "" : `. What there was until then:\n${partial}`}`
  )

/** Why a call was given up whose run was closed. */
export const closed = "the program was stopped before it was done"

const unknownTool = (name: string, tools: ReadonlyArray<Tool>): Answered =>
  failed(
    "error",
    tools.length === 0
      ? `there is no tool ${name}: no tools may be used here`
      : `there is no tool ${name}; there are: ${tools.map((tool) => tool.name).join(", ")}`
  )

/** One call, from its arguments to its answer. Never fails: whatever happens is the answer. */
const carryOutOne = Effect.fnUntraced(function* (
  { call, id }: Asking,
  { agent, emit, stop, tools, waiting }: ToolRunOptions,
  /** Is told the answer where the run is closed meanwhile: with what there was until then. */
  interrupted: (answer: Answered) => void
): Effect.fn.Return<Answered, never, Approval> {
  const { name } = call
  const tool = tools.find((one) => one.name === name) ?? tools.find(({ aliases }) => aliases.includes(name))
  if (tool === undefined) return unknownTool(name, tools)
  const approval = yield* Approval
  let partial: string | undefined

  const allowed = Effect.fnUntraced(function* (made: Call) {
    const question = yield* made.question
    if (question === undefined) return undefined
    const { detail } = question
    const decision = yield* approval.decide({ ...question, agent, tool: tool.name, title: made.title }, (asking) =>
      Effect.andThen(
        emit({ _tag: "ToolCallConfirmation", id, name: tool.name, title: made.title, detail }),
        waiting(asking)
      )
    )
    if (decision._tag === "Allowed") return undefined
    const word = decision.words === "" ? "do without it, or ask what to do" : `they say: ${decision.words}`
    return failed("denied", `the person did not allow this call of ${tool.name}; ${word}`)
  })

  const running = Effect.fnUntraced(function* (made: Call): Effect.fn.Return<Answered, ToolFailure> {
    yield* emit({ _tag: "ToolCallStarted", id, name: tool.name, title: made.title })
    const { timeout } = tool
    const result = yield* Duration.isFinite(timeout) ? Effect.timeoutOption(made.run, timeout) : Effect.asSome(made.run)
    if (result._tag === "None") {
      const what = `${tool.name} did not end within ${Duration.format(timeout)} and was stopped`
      return failed("timeout", partial === undefined ? what : `${what}. What there was until then:\n${partial}`)
    }
    return { status: "success", response: wireResponse(result.value.value), result: result.value }
  })

  const work = Effect.gen(function* () {
    const made = yield* tool.call(call.args, {
      id,
      agent,
      waiting,
      progress: (shown) => {
        partial = shown
        return Effect.asVoid(emit({ _tag: "ToolCallProgress", id, text: shown }))
      },
      activity: (who, activity) => Effect.asVoid(emit({ _tag: "SubagentActivity", id, agent: who, activity }))
    })
    return (yield* allowed(made)) ?? (yield* running(made))
  }).pipe(
    Effect.catchTag("ToolFailure", ({ message }) => Effect.succeed(failed("error", message))),
    // An interruption from outside does not come by here: what does is the tool's own end.
    Effect.catchCause((cause) =>
      Effect.as(
        // What it was at work on stands in the cause.
        Effect.logError(`the tool ${tool.name} failed unexpectedly: ${redact(Cause.pretty(cause))}`),
        failed(
          "error",
          Cause.hasInterruptsOnly(cause)
            ? `${tool.name} gave up by itself`
            : `${tool.name} failed unexpectedly: ${Cause.pretty(cause).split("\n")[0] ?? "it died"}`
        )
      )
    )
  )
  // The stop comes first: what did not begin before it is not begun.
  return yield* Effect.raceFirst(
    Effect.map(stop, (why) => givenUp(why, partial)),
    work
  ).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted(givenUp(closed, partial)))))
})

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
  options: ToolRunOptions
): Effect.fn.Return<void, never, Approval> {
  const { emit, tools } = options
  const one = Effect.fnUntraced(function* (index: number) {
    const asking = calls[index]
    if (asking === undefined) return
    const begun = yield* Clock.currentTimeMillis
    const answer = yield* carryOutOne(asking, options, (given) => {
      answers[index] = given
    })
    answers[index] = answer
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
