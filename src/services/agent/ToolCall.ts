import { Cause, Clock, Duration, Effect, type Semaphore } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { redact } from "../../domain/text/Redaction.ts"
import { truncateMessage, wireResponse } from "../../domain/tools/ToolResult.ts"
import type { Hooked } from "../hooks/Hooked.ts"
import { Approval } from "../tools/Approval.ts"
import { type Call, type CallContext, type Question, type Tool, ToolFailure } from "../tools/Tool.ts"
import { after, before, type FollowUpCall, withAddition } from "./HookedCall.ts"
import { type CallAnswer, type PendingCall, stoppedReason, failedAnswer, abandonedAnswer } from "./ToolAnswer.ts"

/** The agent that makes the calls, and its callbacks. */
export interface ToolRunOptions {
  readonly tools: ReadonlyArray<Tool>
  readonly agent: string
  /** Receives each event as it happens; may delay the calls. */
  readonly emit: (event: ChatEvent) => Effect.Effect<unknown>
  /** Runs work that waits for the user. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Stops the calls when it completes: running calls are abandoned, and calls that have not begun do not begin. Its text goes to the model. */
  readonly stop: Effect.Effect<string>
  readonly hooked: Hooked
  /** Runs background work until the agent's run ends. */
  readonly aside: (work: Effect.Effect<unknown>) => Effect.Effect<void>
  /** A tool that only reads takes one permit while it runs; any other tool takes all of them and runs alone. */
  readonly gate: Semaphore.Semaphore
}

/** The maximum number of read-only calls that run at the same time. */
export const maxParallelCalls = 8

/** The maximum number of tools that hooks may run one after the other for one call. */
const maxFollowUpCalls = 8

/** A finished call, and the tool that a hook wants to run after it. */
interface Performed {
  readonly answer: CallAnswer
  readonly tail?: FollowUpCall | undefined
}

const unknownTool = (name: string, tools: ReadonlyArray<Tool>): CallAnswer =>
  failedAnswer(
    "error",
    tools.length === 0
      ? `there is no tool ${name}: no tools may be used here`
      : `there is no tool ${name}; there are: ${tools.map((tool) => tool.name).join(", ")}`
  )

/** Turns every outcome into an answer. */
const settled = <A, R>(
  tool: Tool,
  work: Effect.Effect<A, ToolFailure, R>,
  as: (answer: CallAnswer) => A
): Effect.Effect<A, never, R> =>
  work.pipe(
    Effect.catchTag("ToolFailure", ({ message }) => Effect.succeed(as(failedAnswer("error", message)))),
    // An interruption from outside does not reach this handler; only the tool's own failure does.
    Effect.catchCause((cause) =>
      Effect.as(
        // The cause may contain the tool's data, so it is redacted.
        Effect.logError(`the tool ${tool.name} failed unexpectedly: ${redact(Cause.pretty(cause))}`),
        as(
          failedAnswer(
            "error",
            Cause.hasInterruptsOnly(cause)
              ? `${tool.name} gave up by itself`
              : `${tool.name} failed unexpectedly: ${Cause.pretty(cause).split("\n")[0] ?? "it died"}`
          )
        )
      )
    )
  )

/** The question when a hook demands approval: the tool's own question, asked every time. */
const doubted = (question: Question | undefined, args: unknown): Question => ({
  covers: "nothing else",
  detail: JSON.stringify(args, null, 2) ?? "",
  ...question,
  grants: []
})

/** Runs one call, from its arguments to its answer. Never fails: a failure is the answer. */
export const runToolCall = Effect.fnUntraced(function* (
  { call, id }: PendingCall,
  { agent, aside, emit, gate, hooked, stop, tools, waiting }: ToolRunOptions,
  /** Receives the partial answer if the run is closed meanwhile. */
  interrupted: (answer: CallAnswer) => void
): Effect.fn.Return<CallAnswer, never, Approval> {
  const approval = yield* Approval
  let partial: string | undefined
  /** The tools that have run while AfterTool hooks are still running or had another tool run. */
  const ran: Array<string> = []

  const allowed = Effect.fnUntraced(function* (tool: Tool, at: string, made: Call, args: unknown, asks: boolean) {
    const own = yield* made.question
    const question = asks ? doubted(own, args) : own
    if (question === undefined) return undefined
    const { detail } = question
    const { title } = made
    const notification = {
      _tag: "Notification",
      kind: "ToolPermission",
      message: `${agent} wants to run ${title}`,
      details: { tool: tool.name, title, detail }
    } as const
    const decision = yield* approval.decide(
      { ...question, agent, tool: tool.name, kind: tool.kind, title, ...(asks ? { needsReview: true } : {}) },
      (asking) =>
        Effect.gen(function* () {
          yield* emit({ _tag: "ToolCallConfirmation", id: at, name: tool.name, title, detail })
          if (hooked.has("Notification")) yield* aside(hooked.fire(notification))
          return yield* waiting(asking)
        })
    )
    if (decision._tag === "Allowed") return undefined
    if (decision._tag === "Refused") return failedAnswer("denied", decision.why)
    const { otherwise } = question
    const word =
      decision.words === ""
        ? (otherwise ?? "do without it, or ask what to do")
        : `${otherwise === undefined ? "" : `${otherwise}; `}they say: ${decision.words}`
    return failedAnswer("denied", `the user denied this call of ${tool.name}; ${word}`)
  })

  const running = Effect.fnUntraced(function* (
    tool: Tool,
    at: string,
    made: Call
  ): Effect.fn.Return<CallAnswer, ToolFailure> {
    yield* emit({ _tag: "ToolCallStarted", id: at, name: tool.name, title: made.title })
    const { timeout } = tool
    const result = yield* Duration.isFinite(timeout) ? Effect.timeoutOption(made.run, timeout) : Effect.asSome(made.run)
    if (result._tag === "None") {
      const what = `${tool.name} did not end within ${Duration.format(timeout)} and was stopped`
      return failedAnswer("timeout", partial === undefined ? what : `${what}. What there was until then:\n${partial}`)
    }
    return { status: "success", response: wireResponse(result.value.value), result: result.value }
  })

  /** Runs one tool, with its BeforeTool and AfterTool hooks. */
  const performed = Effect.fnUntraced(function* (
    name: string,
    args: unknown,
    at: string
  ): Effect.fn.Return<Performed, never, Approval> {
    const tool = tools.find((one) => one.name === name) ?? tools.find(({ aliases }) => aliases.includes(name))
    if (tool === undefined) return { answer: unknownTool(name, tools) }
    const context: CallContext = {
      id: at,
      agent,
      waiting,
      progress: (shown) => {
        partial = shown
        return Effect.asVoid(emit({ _tag: "ToolCallProgress", id: at, text: shown }))
      },
      activity: (who, activity) => Effect.asVoid(emit({ _tag: "SubagentActivity", id: at, agent: who, activity }))
    }
    const work = Effect.gen(function* (): Effect.fn.Return<Performed, ToolFailure, Approval> {
      const understood = yield* tool.call(args, context)
      const instead = at === id ? undefined : call.name
      const given = yield* before(hooked, { tool: tool.name, args, instead })
      if ("answer" in given) return given
      const { note } = given
      const made =
        note === undefined
          ? understood
          : yield* Effect.mapError(
              tool.call(given.args, context),
              ({ message }) => new ToolFailure({ message: `${message} ${note}` })
            )
      const refusal = yield* allowed(tool, at, made, given.args, given.asks)
      if (refusal !== undefined) return { answer: refusal }
      const own = yield* settled(tool, running(tool, at, made), (answer) => answer)
      const answer = note === undefined ? own : withAddition(own, note)
      if (!hooked.has("AfterTool")) return { answer }
      // From here on the hooks own the result: a cancelled call must not bypass them.
      ran.push(tool.name)
      partial = undefined
      return yield* after(hooked, { tool: tool.name, args: given.args, instead }, answer)
    })
    return yield* gate.withPermits(tool.kind === "read" ? 1 : maxParallelCalls)(
      settled(tool, work, (answer): Performed => ({ answer }))
    )
  })

  const work = Effect.gen(function* () {
    let done = yield* performed(call.name, call.args, id)
    for (let count = 1; done.tail !== undefined; count += 1) {
      const { args, name } = done.tail
      if (count > maxFollowUpCalls) {
        yield* hooked.say(`hooks wanted ${name} to run after ${maxFollowUpCalls} others for one call; it was not run`)
        break
      }
      const at = `${id}.${count}`
      const begun = yield* Clock.currentTimeMillis
      done = yield* performed(name, args, at)
      const { response, status } = done.answer
      yield* emit({
        _tag: "ToolCallResponse",
        id: at,
        name,
        status,
        // The call that this one replaces shows the rest.
        display: null,
        message:
          typeof response["error"] === "string" && status !== "success" ? truncateMessage(response["error"]) : null,
        duration: (yield* Clock.currentTimeMillis) - begun
      })
    }
    return done.answer
  })
  const left = (why: string) =>
    abandonedAnswer(
      ran.length === 0 ? why : `${why}; ${ran.join(" and ")} had run, but the result was not passed on yet`,
      partial
    )
  // The stop is first in the race: work that had not begun before it does not begin.
  return yield* Effect.raceFirst(Effect.map(stop, left), work).pipe(
    Effect.onInterrupt(() => Effect.sync(() => interrupted(left(stoppedReason))))
  )
})
