import { Cause, Clock, Duration, Effect, type Semaphore } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import { redact } from "../domain/Redaction.ts"
import { messageInBrief, wireResponse } from "../domain/ToolResult.ts"
import { Approval } from "./Approval.ts"
import type { Hooked } from "./Hooked.ts"
import { after, before, type Tail, withAddition } from "./HookedCall.ts"
import { type Call, type CallContext, type Question, type Tool, ToolFailure } from "./Tool.ts"
import { type Answered, type Asking, closed, failed, givenUp } from "./ToolAnswer.ts"

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
  readonly hooked: Hooked
  /** Runs what nobody waits for, until the agent's run ends. */
  readonly aside: (work: Effect.Effect<unknown>) => Effect.Effect<void>
  /** A tool that reads takes one of these while it runs, any other all: it runs alone. */
  readonly gate: Semaphore.Semaphore
}

/** Calls that only read and run at the same time, at most. */
export const atOnce = 8

/** Tools that hooks may have run one after the other for one call. */
const mostTails = 8

/** A call that was carried out, and the tool that a hook wants to run after it. */
interface Performed {
  readonly answer: Answered
  readonly tail?: Tail | undefined
}

const unknownTool = (name: string, tools: ReadonlyArray<Tool>): Answered =>
  failed(
    "error",
    tools.length === 0
      ? `there is no tool ${name}: no tools may be used here`
      : `there is no tool ${name}; there are: ${tools.map((tool) => tool.name).join(", ")}`
  )

/** Whatever happens is an answer. */
const settled = <A, R>(
  tool: Tool,
  work: Effect.Effect<A, ToolFailure, R>,
  as: (answer: Answered) => A
): Effect.Effect<A, never, R> =>
  work.pipe(
    Effect.catchTag("ToolFailure", ({ message }) => Effect.succeed(as(failed("error", message)))),
    // An interruption from outside does not come by here: what does is the tool's own end.
    Effect.catchCause((cause) =>
      Effect.as(
        // What it was at work on stands in the cause.
        Effect.logError(`the tool ${tool.name} failed unexpectedly: ${redact(Cause.pretty(cause))}`),
        as(
          failed(
            "error",
            Cause.hasInterruptsOnly(cause)
              ? `${tool.name} gave up by itself`
              : `${tool.name} failed unexpectedly: ${Cause.pretty(cause).split("\n")[0] ?? "it died"}`
          )
        )
      )
    )
  )

/** What a person is asked where a hook wants them to look: what the tool itself asks, and each time anew. */
const doubted = (question: Question | undefined, args: unknown): Question => ({
  covers: "nothing else",
  detail: JSON.stringify(args, null, 2) ?? "",
  ...question,
  grants: []
})

/** One call, from its arguments to its answer. Never fails: whatever happens is the answer. */
export const carryOutOne = Effect.fnUntraced(function* (
  { call, id }: Asking,
  { agent, aside, emit, gate, hooked, stop, tools, waiting }: ToolRunOptions,
  /** Is told the answer where the run is closed meanwhile: with what there was until then. */
  interrupted: (answer: Answered) => void
): Effect.fn.Return<Answered, never, Approval> {
  const approval = yield* Approval
  let partial: string | undefined
  /** Tools that have run, while hooks are told of it or had another one run. */
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
      { ...question, agent, tool: tool.name, kind: tool.kind, title, ...(asks ? { isDoubted: true } : {}) },
      (asking) =>
        Effect.gen(function* () {
          yield* emit({ _tag: "ToolCallConfirmation", id: at, name: tool.name, title, detail })
          if (hooked.has("Notification")) yield* aside(hooked.fire(notification))
          return yield* waiting(asking)
        })
    )
    if (decision._tag === "Allowed") return undefined
    if (decision._tag === "Refused") return failed("denied", decision.why)
    const { otherwise } = question
    const word =
      decision.words === ""
        ? (otherwise ?? "do without it, or ask what to do")
        : `${otherwise === undefined ? "" : `${otherwise}; `}they say: ${decision.words}`
    return failed("denied", `the person did not allow this call of ${tool.name}; ${word}`)
  })

  const running = Effect.fnUntraced(function* (
    tool: Tool,
    at: string,
    made: Call
  ): Effect.fn.Return<Answered, ToolFailure> {
    yield* emit({ _tag: "ToolCallStarted", id: at, name: tool.name, title: made.title })
    const { timeout } = tool
    const result = yield* Duration.isFinite(timeout) ? Effect.timeoutOption(made.run, timeout) : Effect.asSome(made.run)
    if (result._tag === "None") {
      const what = `${tool.name} did not end within ${Duration.format(timeout)} and was stopped`
      return failed("timeout", partial === undefined ? what : `${what}. What there was until then:\n${partial}`)
    }
    return { status: "success", response: wireResponse(result.value.value), result: result.value }
  })

  /** One tool, with what hooks make of it before and after. */
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
      // From here on the result is the hooks': what a cancel leaves of the call must not go round them.
      ran.push(tool.name)
      partial = undefined
      return yield* after(hooked, { tool: tool.name, args: given.args, instead }, answer)
    })
    return yield* gate.withPermits(tool.kind === "read" ? 1 : atOnce)(
      settled(tool, work, (answer): Performed => ({ answer }))
    )
  })

  const work = Effect.gen(function* () {
    let done = yield* performed(call.name, call.args, id)
    for (let count = 1; done.tail !== undefined; count += 1) {
      const { args, name } = done.tail
      if (count > mostTails) {
        yield* hooked.say(`hooks wanted ${name} to run after ${mostTails} others for one call; it was not run`)
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
        // The call that it stands in for shows the rest.
        display: null,
        message:
          typeof response["error"] === "string" && status !== "success" ? messageInBrief(response["error"]) : null,
        duration: (yield* Clock.currentTimeMillis) - begun
      })
    }
    return done.answer
  })
  const left = (why: string) =>
    givenUp(
      ran.length === 0 ? why : `${why}; ${ran.join(" and ")} had run, but the result was not passed on yet`,
      partial
    )
  // The stop comes first: what did not begin before it is not begun.
  return yield* Effect.raceFirst(Effect.map(stop, left), work).pipe(
    Effect.onInterrupt(() => Effect.sync(() => interrupted(left(closed))))
  )
})
