/** Runs one tool call: its hooks, the question to the user, the tool, and the answer. */

import { Cause, Clock, Duration, Effect, type Semaphore } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { redact } from "../../domain/text/Redaction.ts"
import { denial, editedNote } from "../../domain/tools/Approval.ts"
import { wireResponse } from "../../domain/tools/ToolResult.ts"
import type { Hooked } from "../hooks/Hooked.ts"
import { Approval } from "../tools/Approval.ts"
import { type Call, type CallContext, type Question, type Tool, ToolFailure, toolsByName } from "../tools/Tool.ts"
import { after, afterEvent, before, type BeforeCall, type FollowUpCall, inputOf, withAddition } from "./HookedCall.ts"
import type { Stopwatch } from "./RunBounds.ts"
import {
  type CallAnswer,
  type PendingCall,
  stoppedReason,
  failedAnswer,
  abandonedAnswer,
  responseEvent
} from "./ToolAnswer.ts"

/** The agent that makes the calls, and its callbacks. */
export interface ToolRunOptions {
  readonly tools: ReadonlyArray<Tool>
  /** The tools that hooks may have run after a call: also those that another hook kept from the model. */
  readonly followUps: ReadonlyArray<Tool>
  readonly agent: string
  /** Receives each event as it happens; may delay the calls. */
  readonly emit: (event: ChatEvent) => Effect.Effect<unknown>
  /** Runs work that waits for the user. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Milliseconds that the call took up to a time, without those in which it waited for the user. */
  readonly elapsed: Stopwatch["elapsed"]
  /** Stops the calls when it completes: running calls are abandoned, and calls that have not begun do not begin. Its text goes to the model. */
  readonly stop: Effect.Effect<string>
  readonly hooked: Hooked
  /** Runs background work until the agent's run ends. */
  readonly aside: (work: Effect.Effect<unknown>) => Effect.Effect<void>
  /** A tool that only reads, and an agent that the model called, take one permit while they run; any other call takes all of them and runs alone. */
  readonly gate: Semaphore.Semaphore
}

/** The maximum number of calls that run at the same time. */
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
      : `there is no tool ${name}; the tools are: ${tools.map((tool) => tool.name).join(", ")}`
  )

/** Turns every outcome into an answer. */
const settled = <A, R>(tool: Tool, work: Effect.Effect<A, ToolFailure, R>, as: (answer: CallAnswer) => A) =>
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
              ? `${tool.name} interrupted itself`
              : `${tool.name} failed unexpectedly: ${Cause.pretty(cause).split("\n")[0] ?? "it died"}`
          )
        )
      )
    )
  )

/** Returns the question when a hook demands approval. It is asked every time. */
const hookQuestion = (question: Question | undefined, args: unknown): Question => ({
  covers: "nothing else",
  detail: JSON.stringify(args, null, 2) ?? "",
  ...question,
  grants: []
})

/** A call that runs, with the calls that hooks add to it. */
interface CallRun extends ToolRunOptions {
  readonly pending: PendingCall
  readonly approval: Approval["Service"]
  /** The tools that have run while AfterTool hooks are still running or had another tool run. */
  readonly ran: Array<string>
  /** Output so far. */
  partial: string | undefined
}

/** One use of a tool within the run. */
interface ToolUse {
  readonly tool: Tool
  readonly id: string
}

/** How a call continues after its question: it does not run, or it runs with an argument that the user edited. */
type Asked =
  | { readonly refusal: CallAnswer }
  | { readonly edited: { readonly argument: string; readonly text: string } }

/** The arguments with a text that the user edited. */
const withEdit = (args: unknown, { argument, text }: { readonly argument: string; readonly text: string }) => ({
  ...inputOf(args),
  [argument]: text
})

/** Asks whether a call may run. Returns what changes the call. Undefined when it runs as it is. */
const askedAbout = Effect.fnUntraced(function* (
  { agent, approval, aside, emit, hooked, waiting }: CallRun,
  { id, tool }: ToolUse,
  { question: own, title }: Call,
  { args, asks }: { readonly args: unknown; readonly asks: boolean }
): Effect.fn.Return<Asked | undefined, ToolFailure> {
  const ownQuestion = yield* own
  const question = asks ? hookQuestion(ownQuestion, args) : ownQuestion
  if (question === undefined) return undefined
  const { detail } = question
  const notification = {
    _tag: "Notification",
    kind: "ToolPermission",
    message: `${agent} wants to run ${title}`,
    details: { tool: tool.name, title, detail }
  } as const
  const decision = yield* approval.decide(
    {
      ...question,
      agent,
      call: id,
      tool: tool.name,
      args,
      kind: tool.kind,
      title,
      ...(asks ? { needsReview: true } : {})
    },
    (asking) =>
      Effect.gen(function* () {
        yield* emit({ _tag: "ToolCallConfirmation", id, name: tool.name, title, detail })
        if (hooked.has("Notification")) yield* aside(hooked.fire(notification))
        return yield* waiting(asking)
      })
  )
  if (decision._tag === "Allowed") return undefined
  if (decision._tag === "Edited") {
    const { edits } = question
    return edits === undefined ? undefined : { edited: { argument: edits.argument, text: decision.text } }
  }
  const why = decision._tag === "Refused" ? decision.why : denial(tool.name, decision.words, question.otherwise)
  return { refusal: failedAnswer("denied", why) }
})

/** Carries a call out, within its tool's time limit. */
const carryOut = Effect.fnUntraced(function* (
  run: CallRun,
  { id, tool: { name, timeout } }: ToolUse,
  made: Call
): Effect.fn.Return<CallAnswer, ToolFailure> {
  yield* run.emit({ _tag: "ToolCallStarted", id, name, title: made.title })
  const result = yield* Duration.isFinite(timeout) ? Effect.timeoutOption(made.run, timeout) : Effect.asSome(made.run)
  if (result._tag === "Some") {
    return { status: "success", response: wireResponse(result.value.value), result: result.value }
  }
  const what = `${name} did not finish within ${Duration.format(timeout)} and was stopped`
  const { partial } = run
  return failedAnswer("timeout", partial === undefined ? what : `${what}. Output until then:\n${partial}`)
})

const contextOf = (run: CallRun, id: string): CallContext => ({
  id,
  agent: run.agent,
  waiting: run.waiting,
  progress: (text) => {
    run.partial = text
    return Effect.asVoid(run.emit({ _tag: "ToolCallProgress", id, text }))
  },
  activity: (agent, activity) => Effect.asVoid(run.emit({ _tag: "SubagentActivity", id, agent, activity }))
})

/** A call in the hands of its hooks: its arguments so far, whether BeforeTool hooks refused it, and whether the tool began to work. */
interface HookedUse {
  args: unknown
  isBlocked: boolean
  hasRun: boolean
}

/**
 * Uses a tool, with its BeforeTool and AfterTool hooks. Each BeforeTool has its AfterTool, whatever becomes of the call, unless a BeforeTool hook
 * refused it, as in Gemini CLI.
 */
const useTool = Effect.fnUntraced(function* (
  run: CallRun,
  use: ToolUse,
  args: unknown
): Effect.fn.Return<Performed, ToolFailure> {
  const { hooked, pending } = run
  const { id, tool } = use
  const understood = yield* tool.call(args, contextOf(run, id))
  const instead = id === pending.id ? undefined : pending.call.name
  const state: HookedUse = { args, isBlocked: false, hasRun: false }
  const work = Effect.flatMap(before(hooked, { tool: tool.name, args, instead }), (prepared) => {
    state.isBlocked = "answer" in prepared
    return "answer" in prepared
      ? Effect.succeed(prepared.answer)
      : settled(tool, usePrepared(run, use, understood, prepared, state), (answer) => answer)
  })
  const answer = yield* Effect.onInterrupt(work, () =>
    hooked.fireAside(afterEvent({ tool: tool.name, args: state.args, instead }, abandoned(run, stoppedReason)))
  )
  if (state.isBlocked || !hooked.has("AfterTool")) return { answer }
  const call = { tool: tool.name, args: state.args, instead }
  if (!state.hasRun) {
    // Nothing ran, so there is no result that hooks could change.
    yield* hooked.fire(afterEvent(call, answer))
    return { answer }
  }
  // From here on, the hooks decide about the result: a cancelled call must not bypass them.
  run.ran.push(tool.name)
  run.partial = undefined
  return yield* after(hooked, call, answer)
})

/** Asks about a call that the BeforeTool hooks let pass, and carries it out. */
const usePrepared = Effect.fnUntraced(function* (
  run: CallRun,
  use: ToolUse,
  understood: Call,
  prepared: BeforeCall,
  state: HookedUse
): Effect.fn.Return<CallAnswer, ToolFailure> {
  const { tool } = use
  const context = contextOf(run, use.id)
  const { note } = prepared
  state.args = prepared.args
  const made =
    note === undefined
      ? understood
      : yield* Effect.mapError(
          tool.call(prepared.args, context),
          ({ message }) => new ToolFailure({ message: `${message} ${note}` })
        )
  const approval = yield* askedAbout(run, use, made, prepared)
  if (approval !== undefined && "refusal" in approval) return approval.refusal
  if (approval !== undefined) state.args = withEdit(prepared.args, approval.edited)
  const final = approval === undefined ? made : yield* tool.call(state.args, context)
  const notes = [note, approval === undefined ? undefined : editedNote(approval.edited.argument, approval.edited.text)]
  state.hasRun = true
  const own = yield* settled(tool, carryOut(run, use, final), (answer) => answer)
  return notes.reduce((all, one) => (one === undefined ? all : withAddition(all, one)), own)
})

/** Uses the tool with this name, if the running tools allow it. */
const perform = Effect.fnUntraced(function* (run: CallRun, name: string, args: unknown, id: string) {
  const { gate } = run
  const isOwn = id === run.pending.id
  const tools = isOwn ? run.tools : run.followUps
  const tool = toolsByName(tools).get(name)
  if (tool === undefined) return { answer: unknownTool(name, tools) }
  const isShared = tool.kind === "read" || (isOwn && tool.isAgent)
  return yield* gate.withPermits(isShared ? 1 : maxParallelCalls)(
    settled(tool, useTool(run, { tool, id }, args), (answer): Performed => ({ answer }))
  )
})

/** Performs the call, and then each call that hooks want after it. */
const performAll = Effect.fnUntraced(function* (run: CallRun) {
  const { emit, hooked, pending } = run
  let done: Performed = yield* perform(run, pending.call.name, pending.call.args, pending.id)
  for (let count = 1; done.tail !== undefined; count += 1) {
    const { args, name } = done.tail
    if (count > maxFollowUpCalls) {
      yield* hooked.say(`hooks asked to run ${name} after ${maxFollowUpCalls} other tools for one call; it was not run`)
      break
    }
    const id = `${pending.id}.${count}`
    const before = run.elapsed(yield* Clock.currentTimeMillis)
    done = yield* perform(run, name, args, id)
    const duration = run.elapsed(yield* Clock.currentTimeMillis) - before
    // The call that this one replaces shows the rest.
    yield* emit(responseEvent(id, name, done.answer, duration))
  }
  return done.answer
})

/** Returns the answer to a call whose run ends first. */
const abandoned = ({ partial, ran }: CallRun, why: string): CallAnswer =>
  abandonedAnswer(
    ran.length === 0 ? why : `${why}; ${ran.join(" and ")} had run, but the result was not returned yet`,
    partial
  )

/** Runs one call, from its arguments to its answer. Never fails: a failure is the answer. */
export const runToolCall = Effect.fnUntraced(function* (
  pending: PendingCall,
  options: ToolRunOptions,
  /** Receives the partial answer if the run is closed meanwhile. */
  interrupted: (answer: CallAnswer) => void
): Effect.fn.Return<CallAnswer, never, Approval> {
  const run: CallRun = { ...options, pending, approval: yield* Approval, ran: [], partial: undefined }
  // The stop comes first in the race, so work that has not begun when it completes does not begin.
  return yield* Effect.raceFirst(
    Effect.map(options.stop, (why) => abandoned(run, why)),
    performAll(run)
  ).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted(abandoned(run, stoppedReason)))))
})
