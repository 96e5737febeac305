import { Deferred, Effect, Exit, Option, Queue, type Scope, Semaphore, Stream } from "effect"
import type { Loop } from "../../domain/agent/LoopDetection.ts"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { isText, type Part, response, text } from "../../domain/content/Content.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { untrustedLine } from "../../domain/text/UntrustedText.ts"
import { builtInPrices, costOf } from "../../domain/tokens/Prices.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"
import { errorResponse } from "../../domain/tools/ToolResult.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import { ChatBusy } from "../chat/Commit.ts"
import { failureEvent, type TurnError } from "../chat/Turn.ts"
import * as Hooked from "../hooks/Hooked.ts"
import type { HookPlace, HookSystem } from "../hooks/HookSystem.ts"
import type { Approval } from "../tools/Approval.ts"
import type { Tool } from "../tools/Tool.ts"
import { append, callsOf, keptOf, type OutgoingMessage, recentContents, retryWhileBusy } from "./AgentConversation.ts"
import { beforeAgent, afterAgent } from "./AgentHooks.ts"
import type { LoopDetector } from "./LoopDetector.ts"
import type * as Bounds from "./RunBounds.ts"
import { watchBounds, exceededLimit, stopEvent, type Stop, stopText, type ConsumedLimits } from "./RunBounds.ts"
import { type CallAnswer, type PendingCall, stoppedReason, abandonedAnswer } from "./ToolAnswer.ts"
import type { ToolRunOptions } from "./ToolCall.ts"
import { runToolCalls } from "./ToolRun.ts"

/**
 * The agent loop: run a turn, answer its tool calls, run the next turn.
 *
 * One file: the turns of one run share its limits, hooks and loop detector, and end in one place.
 */

/** The resources an agent may use before it stops. */
export type Limits = Bounds.Limits

/** An agent: a conversation, the tools it may use and its limits. A plain value; several agents may run at the same time. */
export interface Profile {
  /** The agent's name in approval questions and wherever its work is shown. */
  readonly name: string
  readonly chat: Chat["Service"]
  /** The tools, declared to the model in this order. The value is the same object as long as the tools do not change. */
  readonly tools: ReadonlyArray<Tool>
  readonly limits?: Limits | undefined
  /** Detects loops. Without it, nothing looks for loops. */
  readonly loops?: LoopDetector | undefined
  /** Chooses the model of a run. Undefined: the model of the conversation. */
  readonly route?: ((input: ReadonlyArray<Part>) => Effect.Effect<string | undefined>) | undefined
  /** Returns a shorter text to show the model for a tool result; the full text stays behind its handle. Undefined: the result is shown unchanged. */
  readonly summarize?: ((tool: string, output: string, intent: string) => Effect.Effect<string | undefined>) | undefined
  /**
   * Messages from other agents. Each is delivered once, before the next turn: passes the lines to `use` and keeps them when `use` fails or is
   * interrupted.
   */
  readonly inbox?:
    | (<E>(use: (lines: ReadonlyArray<string>) => Effect.Effect<void, E>) => Effect.Effect<void, E>)
    | undefined
  /** Text to repeat when a compression removed it from the window, for example which agents are running. */
  readonly reminder?: Effect.Effect<string | undefined> | undefined
  /** The hooks that observe the run and may change it. Absent: none. */
  readonly hooks?: HookSystem["Service"] | undefined
  /**
   * Empties the conversation at the end of a run when a hook asks for it; `next` is the prompt a hook still wants to run afterwards. Absent: the
   * conversation stays, and the user gets a notice.
   */
  readonly onClear?: ((next: string | undefined) => Effect.Effect<void>) | undefined
}

/** Options of one run. */
export interface RunOptions {
  /** Cancels the run when it completes first: pending calls are answered as cancelled, and the last event is `UserCancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Runs work that waits for the user, so that the caller of this agent does not count that time either. */
  readonly waiting?: (<A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** `program`: the message does not come from the user. It is marked as such, and BeforeAgent hooks do not run for it. */
  readonly author?: "program" | undefined
  /** Attachments of the message (`SendOptions`). */
  readonly attached?: ReadonlyArray<Attachment> | undefined
}

/** Declarations by list of tools. Each list is declared once, so that a chat recognizes an unchanged list by identity. */
const declarationCache = new WeakMap<ReadonlyArray<Tool>, ReadonlyArray<Readonly<Record<string, unknown>>>>()

/** The tools in the wire shape of the Gemini API. An empty list if there are no tools. */
const declarationsOf = (tools: ReadonlyArray<Tool>): ReadonlyArray<Readonly<Record<string, unknown>>> | undefined => {
  if (tools.length === 0) return undefined
  const cached = declarationCache.get(tools)
  if (cached !== undefined) return cached
  const made = [
    {
      functionDeclarations: tools.map(({ description, name, parameters }) => ({
        name,
        description,
        parametersJsonSchema: parameters
      }))
    }
  ]
  declarationCache.set(tools, made)
  return made
}

/** Characters of a hook's reason that the user sees. */
const maxReasonChars = 200

/** The message to a model that repeats itself. */
const nudge = ({ detail }: Loop): string =>
  `${runtimeMark} You seem to be going round in circles: ${untrustedLine(detail)}. Stop and think about what you have learned so far. Then try another way, or say what keeps you from going on.`

/** Marks a line of the program, which has the user's role, so that it cannot pass for the user's words. */
const marked = (line: string): string => (line.startsWith(runtimeMark) ? line : `${runtimeMark} ${line}`)

const repeated = ({ detail }: Loop): string =>
  `not carried out, because you seem to be going round in circles: ${detail}; try another way, or say what keeps you from going on`

/** Whether a message is empty. */
const isSilent = (parts: ReadonlyArray<Part>): boolean => parts.every((part) => isText(part) && part.text.trim() === "")

/** The maximum number of times hooks may continue one run. */
const maxContinuations = 100

const outputOf = ({ response: given }: CallAnswer): string =>
  typeof given["output"] === "string" && Object.keys(given).length === 1 ? given["output"] : JSON.stringify(given)

/**
 * Runs the agent until the model calls no more tools: a turn, its calls, the next turn. The stream has the same events as a chat.
 *
 * - Every call gets exactly one answer, in the order of the calls, even if it fails or is cancelled. The answers are in the log before anything else
 *   happens.
 * - Calls that only read run in parallel. A call that changes something asks first and runs alone, after all calls before it.
 * - Before every turn the conversation is compressed if necessary, so that no request exceeds the window.
 * - Closing the stream ends the run.
 */
export const run = (
  profile: Profile,
  input: string | ReadonlyArray<Part>,
  options: RunOptions = {}
): Stream.Stream<ChatEvent, TurnError, Approval> =>
  Stream.callback<ChatEvent, TurnError, Approval>(
    (queue) => {
      let isReported = false
      const emit: Emit = (event) => {
        // Background hooks may send a notice at any time.
        if (event._tag !== "Notice") isReported = isTurnFailure(event)
        return Effect.asVoid(Queue.offer(queue, event))
      }
      return runLoop(profile, typeof input === "string" ? [text(input)] : input, options, emit).pipe(
        // A failure between two turns has no event yet.
        Effect.tapError((error) => (isReported ? Effect.void : emit(failureEvent(error)))),
        Effect.andThen(Queue.end(queue))
      )
    },
    { bufferSize: 256, strategy: "suspend" }
  )

type Emit = (event: ChatEvent) => Effect.Effect<void>

const isTurnFailure = ({ _tag }: ChatEvent): boolean =>
  _tag === "Error" || _tag === "InvalidStream" || _tag === "ContextWindowWillOverflow" || _tag === "HookStopped"

const runLoop = Effect.fn("Agent.run")(
  function* (
    profile: Profile,
    input: ReadonlyArray<Part>,
    { attached: given = [], author: whose, cancel, waiting: outer = (work) => work }: RunOptions,
    emit: Emit
  ): Effect.fn.Return<void, TurnError, Approval | Scope.Scope> {
    const { chat, inbox, limits = {}, loops, reminder } = profile
    const scope = yield* Effect.scope
    const { isStopped, stopped, unlessStopped, waiting } = yield* watchBounds(limits, cancel, outer)
    const end = Effect.flatMap(stopped, (why) => emit(stopEvent(why)))

    const hooked = Hooked.make(profile.hooks, yield* placeOf(profile), emit)
    const original = input.flatMap((part) => (part.text === undefined ? [] : [part.text])).join("\n")
    // A message from a program is not a prompt of the user.
    const isPersons = whose === undefined && !isSilent(input)
    /** Runs the BeforeAgent hooks of a prompt and returns what they add to it. Undefined: the run is over, and its event has been emitted. */
    const entered = Effect.fnUntraced(function* (prompt: string, sent: OutgoingMessage, isAgain: boolean) {
      const entry = yield* unlessStopped(beforeAgent(hooked, prompt))
      if (entry === undefined || (yield* isStopped)) {
        yield* end
        return undefined
      }
      if (entry._tag === "Goes") return entry.attached
      if (entry._tag === "Stopped") yield* append(chat, yield* keptOf(chat, sent))
      // Return the message to the user only if no work was done for it.
      yield* emit({ _tag: "HookStopped", message: entry.why, refused: entry._tag === "Refused" && !isAgain })
      return undefined
    })
    const first = { message: input, author: whose, attached: given }
    const added = isPersons ? yield* entered(original, first, false) : []
    if (added === undefined) return
    if (yield* isStopped) return yield* end

    yield* equip(profile)
    const model = profile.route === undefined ? undefined : yield* unlessStopped(profile.route(input))
    if (model !== (yield* chat.settings).routed) yield* chat.configure({ routed: model })
    if (loops !== undefined) yield* loops.reset
    const used: ConsumedLimits = { turns: 0, tokens: 0, cost: 0 }
    let strikes = 0
    let isCompressed = false

    /** The first loop is reported to the model; the second ends the run. */
    const halts = Effect.fnUntraced(function* ({ detail, kind }: Loop) {
      strikes += 1
      const halted = strikes > 1
      yield* emit({ _tag: "LoopDetected", kind, detail, halted })
      return halted
    })

    let message: ReadonlyArray<Part> = input
    let author = whose
    let attached: ReadonlyArray<Attachment> = [...given, ...added]
    /** How often hooks continued the run after the model had finished. */
    let continued = 0
    const tell = (lines: ReadonlyArray<string>) =>
      append(
        chat,
        lines.map((line) => ({ parts: [text(marked(line))], author: "program" }))
      )
    /** Tells the model why it was stopped. The message it answered stays in the conversation. */
    const nudged = Effect.fnUntraced(function* (loop: Loop) {
      if (!isSilent(message)) yield* append(chat, yield* keptOf(chat, { message, author, attached }))
      message = [text(nudge(loop))]
      author = "program"
      attached = []
    })

    for (;;) {
      const limit = exceededLimit(limits, used)
      if (limit !== undefined) return yield* emit(stopEvent(limit))
      if (yield* isStopped) return yield* end
      if (inbox !== undefined) yield* inbox(tell)
      const again = isCompressed ? yield* reminder ?? Effect.undefined : undefined
      if (again !== undefined) yield* tell([again])
      const circling =
        loops === undefined ? undefined : yield* unlessStopped(loops.turn(recentContents(chat), original))
      if (yield* isStopped) return yield* end
      if (circling !== undefined) {
        if (yield* halts(circling)) return
        yield* nudged(circling)
      }

      used.turns += 1
      const sent = { message, author, attached }
      const taken = yield* turn(profile, sent, used.turns > 1, stopped, emit)
      isCompressed = taken.isCompressed
      if (taken.loop !== undefined) {
        if (yield* halts(taken.loop)) return
        yield* nudged(taken.loop)
        continue
      }
      if (!taken.isFinished) return yield* end
      message = []
      author = undefined
      attached = []
      if (taken.usage !== null) {
        const { answer, prompt, thoughts } = taken.usage
        used.tokens += prompt + answer + thoughts
        used.cost += costOf([{ model: taken.model, usage: taken.usage }], builtInPrices, false).total ?? 0
      }

      const calls = yield* callsOf(chat)
      if (calls.length === 0) {
        if (whose !== undefined) return
        const verdict = yield* unlessStopped(afterAgent(hooked, chat, original, continued > 0))
        if (verdict === undefined) return yield* end
        const { clears, goesOn, stopped: why } = verdict
        if (why !== undefined) yield* emit({ _tag: "HookStopped", message: why, refused: false })
        if (clears) {
          yield* clearConversation(profile, hooked, goesOn)
          if (profile.onClear !== undefined) return
        }
        if (goesOn === undefined || why !== undefined) return
        if (continued >= maxContinuations) {
          return yield* hooked.say(`hooks wanted the work to go on for the ${continued + 1}th time; it ends here`)
        }
        continued += 1
        yield* hooked.say(`the work goes on, as a hook wants: ${shortLine(goesOn, maxReasonChars)}`)
        message = [text(hookMessage(goesOn))]
        author = "program"
        // A prompt like any other, as in Gemini CLI: the BeforeAgent hooks run for it.
        const more = yield* entered(goesOn, { message, author, attached }, true)
        if (more === undefined) return
        attached = more
        continue
      }
      let loop: Loop | undefined
      for (const { call } of calls) loop ??= yield* loops?.call(call.name, call.args) ?? Effect.undefined
      const isHalted = loop !== undefined && (yield* halts(loop))
      const answers =
        loop === undefined
          ? yield* answerCalls(profile, calls, original, {
              emit,
              waiting,
              stop: Effect.map(stopped, stopText),
              hooked,
              aside: (work) => Effect.asVoid(Effect.forkIn(work, scope))
            })
          : yield* refuseCalls(profile, calls, repeated(loop), emit)
      const halting = answers.find(({ stops }) => stops !== undefined)?.stops
      if (halting !== undefined) return yield* emit({ _tag: "HookStopped", message: halting, refused: false })
      if (isHalted || answers.some(({ result }) => result?.ends === true)) return
      for (const [index, { call }] of calls.entries()) {
        const answer = answers[index]
        if (answer !== undefined && loops !== undefined) yield* loops.result(call.name, call.args, outputOf(answer))
      }
    }
  },
  // However the run ends, no call stays without an answer, not even a call whose turn was recorded last.
  (work, profile) =>
    Effect.onInterrupt(work, () =>
      Effect.ignore(
        Effect.flatMap(callsOf(profile.chat), (calls) =>
          calls.length === 0
            ? Effect.void
            : record(
                profile,
                calls,
                calls.map(() => abandonedAnswer(stoppedReason, undefined)),
                new Map()
              )
        )
      )
    ),
  // A second run would come between a call and its answer.
  (work, profile) => exclusively(profile.chat, work),
  // The watchers for cancellation and time end with the run.
  Effect.scoped
)

/** The session and folder that hooks receive. Looked up only if there are hooks. */
const placeOf = Effect.fnUntraced(function* ({ chat, hooks }: Profile): Effect.fn.Return<HookPlace> {
  if (hooks === undefined) return {}
  const { started } = yield* chat.session
  return { session: started?.session, cwd: (yield* chat.settings).cwd ?? started?.cwd }
})

/** Empties the conversation because a hook asked for it. */
const clearConversation = Effect.fnUntraced(function* (
  { onClear }: Profile,
  hooked: Hooked.Hooked,
  next: string | undefined
): Effect.fn.Return<void> {
  yield* hooked.say(
    onClear === undefined
      ? "a hook wants the conversation emptied, which cannot be done here"
      : "a hook has the conversation emptied"
  )
  if (onClear !== undefined) yield* onClear(next)
})

/** One run at a time per conversation. */
const permits = new WeakMap<Chat["Service"], Semaphore.Semaphore>()

const exclusively = <E, R>(
  chat: Chat["Service"],
  work: Effect.Effect<void, E, R>
): Effect.Effect<void, E | ChatBusy, R> => {
  const permit = permits.get(chat) ?? Semaphore.makeUnsafe(1)
  permits.set(chat, permit)
  return permit
    .withPermitsIfAvailable(1)(work)
    .pipe(
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.fail(new ChatBusy({ doing: "an agent's work" })),
          onSome: () => Effect.void
        })
      )
    )
}

/** Declares the tools in the conversation, unless they are declared already. `run` does this itself. */
export const equip = Effect.fn("Agent.equip")(function* ({ chat, tools }: Pick<Profile, "chat" | "tools">) {
  const declarations = declarationsOf(tools)
  if (declarations === (yield* chat.settings).tools) return
  const keeps = tools.flatMap((tool) => (tool.isNeverMasked ? [tool.name, ...tool.aliases] : []))
  yield* chat.configure({ tools: declarations, unmaskedTools: keeps })
})

/** How a turn ended. */
interface TurnEnd {
  readonly isFinished: boolean
  readonly model: string
  readonly usage: Usage | null
  /** Whether a compression removed content from the window before the turn. */
  readonly isCompressed: boolean
  /** The loop for which the answer was interrupted. */
  readonly loop: Loop | undefined
}

/** Runs one turn and passes its events on, except the end of a turn that this function stopped itself. */
const turn = Effect.fnUntraced(function* (
  { chat, loops }: Profile,
  { attached, author, message }: OutgoingMessage,
  /** Whether the run has already begun. If so, the turn waits for operations of the user on the conversation. */
  isUnderWay: boolean,
  stopped: Effect.Effect<Stop>,
  emit: Emit
): Effect.fn.Return<TurnEnd, TurnError> {
  const looping = yield* Deferred.make<Loop>()
  let model = ""
  let isFinished = false
  let usage: Usage | null = null
  let isCompressed = false
  yield* chat.send(message, { cancel: Effect.raceFirst(stopped, Deferred.await(looping)), author, attached }).pipe(
    Stream.runForEach((event) => {
      if (event._tag === "UserCancelled") return Effect.void
      if (isUnderWay && event._tag === "Error" && event.reason === "ChatBusy") return Effect.void
      if (event._tag === "ChatCompressed") isCompressed ||= event.status === "COMPRESSED"
      if (event._tag === "Retry" && loops !== undefined) return Effect.andThen(emit(event), loops.again)
      if (event._tag === "ModelInfo") ({ model } = event)
      if (event._tag === "Finished") {
        isFinished = true
        ;({ usage } = event)
      }
      if (event._tag !== "Content" || loops === undefined) return emit(event)
      return Effect.andThen(
        emit(event),
        Effect.flatMap(loops.content(event.text), (loop) =>
          loop === undefined ? Effect.void : Deferred.succeed(looping, loop)
        )
      )
    }),
    Effect.retry({ schedule: retryWhileBusy, while: ({ _tag }) => isUnderWay && _tag === "ChatBusy" })
  )
  const loop = !isFinished && (yield* Deferred.isDone(looping)) ? yield* Deferred.await(looping) : undefined
  return { isFinished, isCompressed, model, usage, loop }
})

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

/** Runs the calls and records their results. An interrupted run records what was done. */
const answerCalls = Effect.fnUntraced(function* (
  profile: Profile,
  calls: ReadonlyArray<PendingCall>,
  intent: string,
  running: Omit<ToolRunOptions, "tools" | "agent" | "gate">
): Effect.fn.Return<ReadonlyArray<CallAnswer>, TurnError, Approval> {
  const { name, summarize, tools } = profile
  const given: Array<CallAnswer | undefined> = calls.map(() => undefined)
  const summaries = new Map<number, string>()
  const work = Effect.gen(function* () {
    yield* runToolCalls(calls, given, { tools, agent: name, ...running })
    if (summarize === undefined) return
    const shortened = Effect.forEach(
      calls,
      Effect.fnUntraced(function* ({ call }, index) {
        const answer = given[index]
        if (answer?.status !== "success") return
        const summary = yield* summarize(call.name, outputOf(answer), intent)
        if (summary === undefined) return
        // Text that hooks added is never shortened.
        summaries.set(index, answer.added === undefined ? summary : `${summary}\n\n${answer.added}`)
      }),
      { concurrency: 4, discard: true }
    )
    yield* Effect.raceFirst(Effect.asVoid(running.stop), shortened)
  })
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(work))
      const answers = given.map((answer) => answer ?? abandonedAnswer(stoppedReason, undefined))
      yield* record(profile, calls, answers, summaries)
      if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
      return answers
    })
  )
})

/** Answers all calls with the same refusal. */
const refuseCalls = Effect.fnUntraced(function* (
  profile: Profile,
  calls: ReadonlyArray<PendingCall>,
  why: string,
  emit: Emit
): Effect.fn.Return<ReadonlyArray<CallAnswer>, TurnError> {
  const answers = calls.map((): CallAnswer => ({ status: "error", response: errorResponse(why), result: undefined }))
  yield* record(profile, calls, answers, new Map())
  for (const { call, id } of calls) {
    const { name } = call
    yield* emit({ _tag: "ToolCallResponse", id, name, status: "error", display: null, message: why, duration: 0 })
  }
  return answers
})
