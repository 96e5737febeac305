/** The agent loop: run a turn, answer its tool calls, run the next turn. */

import { Effect, Equal, Queue, Stream } from "effect"
import { selectTools } from "../../domain/agent/AgentDefinition.ts"
import type { Loop } from "../../domain/agent/LoopDetection.ts"
import type { TurnEnd } from "../../domain/agent/TurnEnd.ts"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { isText, type Part, plainText, text } from "../../domain/content/Content.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { untrustedLine } from "../../domain/text/UntrustedText.ts"
import { pricesWith } from "../../domain/tokens/Prices.ts"
import { reconfigure } from "../chat/Chat.ts"
import { ifFree } from "../chat/Commit.ts"
import { failureEvent, type TurnError } from "../chat/Turn.ts"
import type { Approval } from "../tools/Approval.ts"
import type { Tool } from "../tools/Tool.ts"
import { append, callsOf, keptOf, recentContents } from "./AgentConversation.ts"
import { type AgentRun, begin, type Emit, noMessage, type Profile, type RunOptions } from "./AgentRun.ts"
import { runTurn } from "./AgentTurn.ts"
import { abandonCalls, answerCalls, cutRefusal, loopRefusal, outputOf, refuseCalls } from "./AnswerCalls.ts"
import { afterUse, exceededLimit, stopEvent } from "./RunBounds.ts"
import type { CallAnswer, PendingCall } from "./ToolAnswer.ts"

/**
 * Runs the agent until the model calls no more tools: a turn, its calls, the next turn. The stream has the same events as a chat.
 *
 * - Every call gets exactly one answer, in the order of the calls, even if it fails or is cancelled. The answers are in the log before anything else
 *   happens.
 * - Calls that only read run in parallel, and so do calls that start agents. Any other call asks first and runs alone, after all calls before it.
 * - Before every turn the conversation is compressed if necessary, so that no request exceeds the window.
 * - Closing the stream ends the run.
 *
 * **Example** (Running an agent with a tool)
 *
 * ```ts
 * import { Effect, Schema, Stream } from "effect"
 * import { Agent, Chats, Content, Tools } from "palimpsest"
 * import { Offline, ScriptedModel } from "palimpsest/testing"
 *
 * const lookUp = Tools.make({
 *   name: "look_up",
 *   description: "Looks up the year in which something was built.",
 *   parameters: Schema.Struct({ what: Schema.String }),
 *   result: Schema.Natural,
 *   kind: "read",
 *   run: () => Effect.succeed({ value: 1743 })
 * })
 * const script = ScriptedModel.layer([
 *   {
 *     content: Content.model(Content.call("look_up", { what: "bridge" }, "1")),
 *     finishReason: "STOP",
 *     usage: null
 *   },
 *   "It was built in 1743."
 * ])
 * const program = Effect.gen(function* () {
 *   const chat = yield* Chats.open("bridge")
 *   const events = yield* Stream.runCollect(
 *     Agent.run({ name: "guide", chat, tools: [lookUp] }, "When was it built?")
 *   )
 *   return events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")
 * }).pipe(Effect.scoped)
 * const Approval = Tools.Approval.layer({ mode: "none", granted: [] })
 * console.log(await Effect.runPromise(program.pipe(Effect.provide([Offline.layerWithModel(script), Approval])))) // => It was built in 1743.
 * ```
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
      const equipped = withTools(profile, options)
      return runLoop(equipped, typeof input === "string" ? [text(input)] : input, options, emit).pipe(
        // A failure between two turns has no event yet.
        Effect.tapError((error) => (isReported ? Effect.void : emit(failureEvent(error)))),
        Effect.andThen(Queue.end(queue))
      )
    },
    { bufferSize: 256, strategy: "suspend" }
  )

/** The agent with the tools of one run. */
const withTools = (profile: Profile, { selects, tools = [] }: RunOptions): Profile => {
  if (tools.length === 0 && selects === undefined) return profile
  const names = new Set(tools.map(({ name }) => name))
  return {
    ...profile,
    tools: [...selectTools(selects, profile.tools).filter(({ name }) => !names.has(name)), ...tools]
  }
}

const isTurnFailure = ({ _tag }: ChatEvent): boolean =>
  _tag === "Error" || _tag === "InvalidStream" || _tag === "ContextWindowWillOverflow" || _tag === "HookStopped"

const runLoop = Effect.fn("Agent.run")(
  function* (profile: Profile, input: ReadonlyArray<Part>, options: RunOptions, emit: Emit) {
    const { chat, loops, route } = profile
    const run = yield* begin(profile, input, options, emit)
    const { lasting } = options
    const open = lasting === undefined ? [] : yield* callsOf(chat)
    yield* Effect.addFinalizer(() => closeAgent(run))
    // A message from a program is not a user prompt.
    const isPrompt = run.author === undefined && !isSilent(input)
    if (isPrompt && !(yield* admit(run, run.prompt, false))) return
    if (yield* endIfStopped(run)) return

    yield* equip(profile)
    const model = options.model ?? (route === undefined ? undefined : yield* run.bounds.unlessStopped(route(input)))
    if (model !== (yield* chat.settings).routed) yield* reconfigure(chat, { routed: model })
    if (loops !== undefined) {
      yield* loops.reset
      // A session that waits for its user holds no text of the answer before.
      yield* Effect.addFinalizer(() => loops.again)
    }
    // A message takes the place of what an earlier run left open; without one, the run goes on with it.
    if (open.length > 0 && !isSilent(input)) yield* abandonCalls(profile)
    else if (open.length > 0 && !(yield* takeUp(run, open))) return
    while (yield* step(run));
  },
  // However the run ends, every call gets an answer, even a call of the turn recorded last.
  (work, profile, _input, { lasting }) =>
    Effect.onInterrupt(work, () =>
      Effect.flatMap(lasting?.staysOpen ?? Effect.succeed(false), (staysOpen) =>
        staysOpen ? Effect.void : Effect.ignore(abandonCalls(profile))
      )
    ),
  // Runs of one conversation must not overlap: another run could come between a call and its answer.
  (work, profile) => ifFree(profile.chat.running, Effect.succeed("an agent's run"), work),
  // The watchers for cancellation and time end with the run.
  Effect.scoped
)

/** What the model is told of a run that the user interrupted, once some of its work is in the conversation. */
const interruptedNote = "The user interrupted the work here. What was done until then is above; the rest was not done."

/** Emits the last event of a run that was stopped. */
const end = Effect.fnUntraced(function* ({ bounds, emit, first, profile: { chat } }: AgentRun) {
  const why = yield* bounds.stopped
  if (why._tag === "Cancelled" && (yield* chat.conversation).next > first) {
    yield* Effect.ignore(append(chat, [{ parts: [text(marked(interruptedNote))], author: "program" }]))
  }
  yield* emit(stopEvent(why))
})

const endIfStopped = Effect.fnUntraced(function* (run: AgentRun) {
  const isStopped = yield* run.bounds.isStopped
  if (isStopped) yield* end(run)
  return isStopped
})

/**
 * Runs the BeforeAgent hooks of a prompt and attaches what they add to the next message. Returns false if the run is over; its event has been
 * emitted.
 */
const admit = Effect.fnUntraced(function* (run: AgentRun, prompt: string, isAgain: boolean) {
  const { bounds, emit, hooked, next } = run
  const { chat } = run.profile
  run.awaitsAfterAgent = true
  const outcome = yield* bounds.unlessStopped(hooked.fire({ _tag: "BeforeAgent", prompt }))
  if (outcome === undefined || (yield* bounds.isStopped)) {
    yield* end(run)
    return false
  }
  const { blocked, context, stopped } = outcome
  const why = stopped ?? blocked
  if (why === undefined) {
    const added = context === undefined ? [] : [{ parts: [text(hookMessage(context))] }]
    run.next = { ...next, attached: [...next.attached, ...added] }
    return true
  }
  // No work is done for a message that a hook stops, but it stays in the conversation.
  if (stopped !== undefined) yield* append(chat, yield* keptOf(chat, next))
  run.awaitsAfterAgent = false
  // Return the message to the user only if no work was done for it.
  yield* emit({ _tag: "HookStopped", message: why, refused: stopped === undefined && !isAgain })
  return false
})

/** Runs one turn and what follows from it. Returns whether another turn follows. */
const step = Effect.fnUntraced(function* (run: AgentRun) {
  const { emit, profile } = run
  const { chat, limits = {} } = profile
  const limit = exceededLimit(limits, run.used)
  if (limit !== undefined) {
    yield* emit(stopEvent(limit))
    return false
  }
  if (yield* endIfStopped(run)) return false
  yield* catchUp(run)
  const circling = yield* checkTurn(run)
  if (yield* endIfStopped(run)) return false
  if (circling !== undefined && !(yield* breakLoop(run, circling))) return false

  yield* prepareTurn(run)
  if (yield* endIfStopped(run)) return false
  run.used = { ...run.used, turns: run.used.turns + 1 }
  const turn = yield* runTurn(run)
  run.isCompressed = turn.isCompressed
  if (turn.loop !== undefined) return yield* breakLoop(run, turn.loop)
  if (!turn.isFinished) {
    yield* end(run)
    return false
  }
  run.next = noMessage
  run.used = afterUse(run.used, turn.model, turn.usage, pricesWith((yield* chat.settings).models))
  const calls = yield* callsOf(chat)
  return yield* calls.length === 0 ? finish(run) : answer(run, calls, turn)
})

/** Appends what arrived since the last turn: messages of other agents, the reminder after a compression, what the user typed. */
const catchUp = Effect.fnUntraced(function* ({
  isCompressed,
  next,
  profile: { chat, inbox, reminder },
  steering
}: AgentRun) {
  const tell = (lines: ReadonlyArray<string>) =>
    append(
      chat,
      lines.map((line) => ({ parts: [text(marked(line))], author: "program" }))
    )
  if (inbox !== undefined) yield* inbox(tell)
  const again = isCompressed ? yield* reminder ?? Effect.undefined : undefined
  if (again !== undefined) yield* tell([again])
  // What is typed before the first turn waits: the message of the run comes first.
  if (steering === undefined || next !== noMessage) return
  const typed = yield* steering
  yield* append(
    chat,
    typed.map((line) => ({ parts: [text(line)] }))
  )
})

/** Runs what precedes a turn, unless the run is stopped in the meantime. */
const prepareTurn = Effect.fnUntraced(function* ({ bounds, emit, next, profile: { beforeTurn } }: AgentRun) {
  if (beforeTurn === undefined) return
  const context = yield* Effect.context<Approval>()
  yield* bounds.unlessStopped(Effect.provideContext(beforeTurn({ ...next, emit, waiting: bounds.waiting }), context))
})

/** Returns the loop that the conversation shows before a turn. */
const checkTurn = ({ bounds, profile: { chat, loops }, prompt }: AgentRun) =>
  loops === undefined ? Effect.undefined : bounds.unlessStopped(loops.turn(recentContents(chat), prompt))

/** Reports a loop. Returns whether the run continues: the second loop ends it. */
const reportLoop = (run: AgentRun, { detail, kind }: Loop) =>
  Effect.suspend(() => {
    run.loops += 1
    const halted = run.loops > 1
    return Effect.as(run.emit({ _tag: "LoopDetected", kind, detail, halted }), !halted)
  })

/**
 * Tells the model that it is repeating itself. The message it answered stays in the conversation. Returns whether the
 * run continues.
 */
const breakLoop = Effect.fnUntraced(function* (run: AgentRun, loop: Loop) {
  if (!(yield* reportLoop(run, loop))) return false
  const { chat } = run.profile
  if (!isSilent(run.next.message)) yield* append(chat, yield* keptOf(chat, run.next))
  run.next = { message: [text(nudge(loop))], author: "program", attached: [] }
  return true
})

/** Fires AfterAgent for a run that ends without the model being done: cancelled, failed or at a limit. */
const closeAgent = (run: AgentRun) =>
  Effect.suspend(() => {
    if (!run.awaitsAfterAgent) return Effect.void
    return run.hooked.fireAside({ _tag: "AfterAgent", prompt: run.prompt, answer: "", isAgain: run.continued > 0 })
  })

/** Runs the AfterAgent hooks when the model is done. Returns whether they continue the run. */
const finish = Effect.fnUntraced(function* (run: AgentRun) {
  const { bounds, emit, hooked, profile } = run
  if (run.author !== undefined) return false
  run.awaitsAfterAgent = false
  const { view } = yield* profile.chat.conversation
  const last = view?.value.entry.content
  const answer = last?.role === "model" ? plainText(last) : ""
  const event = { _tag: "AfterAgent", prompt: run.prompt, answer, isAgain: run.continued > 0 } as const
  const outcome = yield* bounds.unlessStopped(hooked.fire(event))
  if (outcome === undefined) {
    yield* end(run)
    return false
  }
  const { blocked, clears, stopped } = outcome
  if (stopped !== undefined) yield* emit({ _tag: "HookStopped", message: stopped, refused: false })
  const goesOn = stopped === undefined ? blocked : undefined
  if (clears) {
    yield* clearConversation(run, goesOn)
    if (profile.onClear !== undefined) return false
  }
  if (goesOn === undefined) return false
  if (run.continued >= maxContinuations) {
    yield* hooked.say(`hooks asked to continue the run ${run.continued + 1} times; it ends here`)
    return false
  }
  run.continued += 1
  yield* hooked.say(`a hook continues the run: ${shortLine(goesOn, maxReasonChars)}`)
  run.next = { message: [text(hookMessage(goesOn))], author: "program", attached: [] }
  // As in Gemini CLI, the BeforeAgent hooks run for this prompt too.
  return yield* admit(run, goesOn, true)
})

/** Empties the conversation because a hook asked for it. */
const clearConversation = Effect.fnUntraced(function* (
  { hooked, profile: { onClear } }: AgentRun,
  next: string | undefined
) {
  yield* hooked.say(
    onClear === undefined
      ? "a hook asked to clear the conversation, which is not possible here"
      : "a hook cleared the conversation"
  )
  if (onClear !== undefined) yield* onClear(next)
})

/** Answers the calls that an earlier run left open. Returns whether a turn follows. */
const takeUp = Effect.fnUntraced(function* (run: AgentRun, calls: ReadonlyArray<PendingCall>) {
  const { lasting, profile } = run
  const earlier = lasting === undefined ? [] : yield* lasting.earlier(calls, profile.tools)
  const answers = yield* answerCalls(run, calls, undefined, earlier)
  return yield* mayGoOn(run, answers)
})

/** Returns whether these answers let the run go on; reports a hook that stopped it. */
const mayGoOn = Effect.fnUntraced(function* ({ emit }: AgentRun, answers: ReadonlyArray<CallAnswer>) {
  const halting = answers.find(({ stops }) => stops !== undefined)?.stops
  if (halting !== undefined) yield* emit({ _tag: "HookStopped", message: halting, refused: false })
  return halting === undefined && answers.every(({ result }) => result?.ends !== true)
})

/** Answers the calls of a turn. Returns whether another turn follows. */
const answer = Effect.fnUntraced(function* (
  run: AgentRun,
  calls: ReadonlyArray<PendingCall>,
  { isCut, tools }: TurnEnd
): Effect.fn.Return<boolean, TurnError, Approval> {
  const { loops } = run.profile
  let loop: Loop | undefined
  for (const { call } of calls) loop ??= yield* loops?.call(call.name, call.args) ?? Effect.undefined
  const goesOn = loop === undefined || (yield* reportLoop(run, loop))
  const refusal = loop === undefined ? (isCut ? cutRefusal : undefined) : loopRefusal(loop)
  const answers = yield* refusal === undefined ? answerCalls(run, calls, tools) : refuseCalls(run, calls, refusal)
  if (!(yield* mayGoOn(run, answers)) || !goesOn) return false
  for (const [index, { call }] of calls.entries()) {
    const answer = answers[index]
    if (answer !== undefined && loops !== undefined) yield* loops.result(call.name, call.args, outputOf(answer))
  }
  return true
})

/** The maximum number of times hooks may continue one run. */
const maxContinuations = 100

/** Characters of a hook's reason that the user sees. */
const maxReasonChars = 200

/** Whether a message is empty. */
const isSilent = (parts: ReadonlyArray<Part>): boolean => parts.every((part) => isText(part) && part.text.trim() === "")

/** Marks a line that the program writes in the user's role, so that the model does not take it for the user's words. */
const marked = (line: string): string => (line.startsWith(runtimeMark) ? line : `${runtimeMark} ${line}`)

/** The message to a model that repeats itself. */
const nudge = ({ detail }: Loop): string =>
  `${runtimeMark} You seem to be stuck in a loop: ${untrustedLine(detail)}. Stop and think about what you have learned so far. Then try a different approach, or say what blocks you.`

/** The tools in the wire shape of the Gemini API. Undefined if there are no tools. */
const declarationsOf = (tools: ReadonlyArray<Tool>): ReadonlyArray<Readonly<Record<string, unknown>>> | undefined =>
  tools.length === 0
    ? undefined
    : [
        {
          functionDeclarations: tools.map(({ description, name, parameters }) => ({
            name,
            description,
            parametersJsonSchema: parameters
          }))
        }
      ]

/** Declares the tools in the conversation, unless they are declared already. `run` does this itself. */
export const equip = Effect.fn("Agent.equip")(function* ({ chat, tools }: Pick<Profile, "chat" | "tools">) {
  const declarations = declarationsOf(tools)
  if (Equal.equals(declarations, (yield* chat.settings).tools)) return
  const keeps = tools.flatMap((tool) => (tool.isNeverMasked ? [tool.name, ...tool.aliases] : []))
  yield* reconfigure(chat, { tools: declarations, unmaskedTools: keeps })
})
