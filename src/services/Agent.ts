import { Clock, Deferred, Effect, Exit, Option, Queue, Schedule, type Scope, Semaphore, Stream } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import { callId } from "../domain/Answer.ts"
import { type Content, isCall, isText, type Part, response, text } from "../domain/Content.ts"
import { itemParts } from "../domain/Conversation.ts"
import { hookMessage } from "../domain/HookContext.ts"
import type { Loop } from "../domain/LoopDetection.ts"
import { shortLine } from "../domain/OneLine.ts"
import { builtIn, costOf } from "../domain/Prices.ts"
import { foreignLine } from "../domain/Foreign.ts"
import { runtimeMark } from "../domain/RuntimeMark.ts"
import type { Usage } from "../domain/Tokens.ts"
import { errorResponse } from "../domain/ToolResult.ts"
import type { Approval } from "./Approval.ts"
import { type Attachment, type Chat, ChatBusy, failureEvent, type TurnError } from "./Chat.ts"
import { admitted, judged } from "./AgentHooks.ts"
import type * as Bounds from "./RunBounds.ts"
import { bounded, exceeded, stopEvent, type Stop, stopWords, type Used } from "./RunBounds.ts"
import * as Hooked from "./Hooked.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"
import type { LoopDetector } from "./LoopDetector.ts"
import type { Tool } from "./Tool.ts"
import { type Answered, type Asking, closed, givenUp } from "./ToolAnswer.ts"
import type { ToolRunOptions } from "./ToolCall.ts"
import { carryOut } from "./ToolRun.ts"

/** What an agent may use up before it stops. */
export type Limits = Bounds.Limits

/** Who works: a conversation, the tools it may use, and how far it may go. A value; several may run at once. */
export interface Profile {
  /** What it is called where a person is asked and where its work is shown. */
  readonly name: string
  readonly chat: Chat["Service"]
  /** Declared to the model in this order: the same value for as long as they do not change. */
  readonly tools: ReadonlyArray<Tool>
  readonly limits?: Limits | undefined
  /** Absent: nobody looks for loops. */
  readonly loops?: LoopDetector | undefined
  /** The model of a run, where a router chooses it (seed 002); undefined: the conversation's own. */
  readonly route?: ((input: ReadonlyArray<Part>) => Effect.Effect<string | undefined>) | undefined
  /** A shorter text to show for a result (spec 5.3); the whole stays behind its handle. Undefined: it is shown as it is. */
  readonly summarize?: ((tool: string, output: string, intent: string) => Effect.Effect<string | undefined>) | undefined
  /**
   * What others have to say to the agent, each told once, before its next turn: hands the lines to `use`, and keeps them
   * where that fails or is interrupted.
   */
  readonly inbox?:
    | (<E>(use: (lines: ReadonlyArray<string>) => Effect.Effect<void, E>) => Effect.Effect<void, E>)
    | undefined
  /** What has to be told again when a compression took it out of the window: which agents are at work, for example. */
  readonly reminder?: Effect.Effect<string | undefined> | undefined
  /** Who is told what happens and may have it otherwise (spec 8); absent: nobody. */
  readonly hooks?: HookSystem["Service"] | undefined
  /**
   * Empties the conversation, at the end of a run after which a hook wants that; what a hook wants done after it all the same.
   * Absent: the conversation stays, and the person is told so.
   */
  readonly onClear?: ((next: string | undefined) => Effect.Effect<void>) | undefined
}

/** How one run is done. */
export interface RunOptions {
  /** When this completes first, the run is given up: calls are answered as cancelled, the last event is `UserCancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Runs what waits for a person, so that whoever started this agent does not count that time either. */
  readonly waiting?: (<A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
  /** `program`: the words that it is given are not the user's (law 6), and no message that hooks are told of (BeforeAgent). */
  readonly author?: "program" | undefined
  /** What goes with the message (`SendOptions`). */
  readonly attached?: ReadonlyArray<Attachment> | undefined
}

/** The declarations of a list of tools, made once a list, so that a chat sees when they are the same. */
const declared = new WeakMap<ReadonlyArray<Tool>, ReadonlyArray<Readonly<Record<string, unknown>>>>()

/** The tools in the wire shape of the Gemini API; none where there are none. */
const declarationsOf = (tools: ReadonlyArray<Tool>): ReadonlyArray<Readonly<Record<string, unknown>>> | undefined => {
  if (tools.length === 0) return undefined
  const known = declared.get(tools)
  if (known !== undefined) return known
  const made = [
    {
      functionDeclarations: tools.map(({ description, name, parameters }) => ({
        name,
        description,
        parametersJsonSchema: parameters
      }))
    }
  ]
  declared.set(tools, made)
  return made
}

/** Characters of a hook's reason that a person is shown. */
const mostShown = 200

/** Told to a model that goes round in circles. */
const nudge = ({ detail }: Loop): string =>
  `${runtimeMark} You seem to be going round in circles: ${foreignLine(detail)}. Stop and think about what you have learned so far. Then try another way, or say what keeps you from going on.`

/** What a program says in the user's role, so marked (law 6). */
const marked = (line: string): string => (line.startsWith(runtimeMark) ? line : `${runtimeMark} ${line}`)

const repeated = ({ detail }: Loop): string =>
  `not carried out, because you seem to be going round in circles: ${detail}; try another way, or say what keeps you from going on`

/** Whether a message says nothing. */
const isSilent = (parts: ReadonlyArray<Part>): boolean => parts.every((part) => isText(part) && part.text.trim() === "")

/** Of one run: the turns that the main agent may take at all (spec 9). */
const mostContinued = 100

/** The calls that the conversation ends with. */
const callsOf = (chat: Chat["Service"]): Effect.Effect<ReadonlyArray<Asking>> =>
  Effect.map(chat.conversation, ({ view }) => {
    const last = view?.value.entry
    if (last === undefined || last.content.role !== "model") return []
    return last.content.parts.flatMap((part, index) =>
      isCall(part) ? [{ call: part.functionCall, id: callId(part.functionCall, last.id, index) }] : []
    )
  })

/** More than any look at the conversation takes in (spec 12: 20). */
const recent = 30

/** What the model sees last, without a walk through all of it. */
const recentContents = (chat: Chat["Service"]): Effect.Effect<ReadonlyArray<Content>> =>
  Effect.map(chat.conversation, ({ view }) => {
    const items: Array<Content> = []
    for (let node = view; node !== undefined && items.length < recent; node = node.before) {
      items.push({ ...node.value.entry.content, parts: itemParts(node.value) })
    }
    return items.reverse()
  })

const outputOf = ({ response: given }: Answered): string =>
  typeof given["output"] === "string" && Object.keys(given).length === 1 ? given["output"] : JSON.stringify(given)

/** While something else changes the conversation, as a compression that a person asked for, results wait. */
const untilFree = Schedule.spaced("50 millis")

/**
 * Works until the model calls no more tools: a turn, its calls, the next turn, as the same events that a chat reports. Every
 * call gets exactly one answer, in the order of the calls, whatever becomes of it, and the answers are in the log before
 * anything else happens. Calls that only read run at once; one that changes something runs alone, after all before it, and
 * asks first. Before every turn the conversation is compressed where that is due (law 3). Closing the stream ends the run.
 */
export const run = (
  profile: Profile,
  input: string | ReadonlyArray<Part>,
  options: RunOptions = {}
): Stream.Stream<ChatEvent, TurnError, Approval> =>
  Stream.callback<ChatEvent, TurnError, Approval>(
    (queue) => {
      let isTold = false
      const emit: Emit = (event) => {
        // A hook that nobody waits for may have its say at any time.
        if (event._tag !== "Notice") isTold = isTurnFailure(event)
        return Effect.asVoid(Queue.offer(queue, event))
      }
      return working(profile, typeof input === "string" ? [text(input)] : input, options, emit).pipe(
        // What fails between two turns has no event yet.
        Effect.tapError((error) => (isTold ? Effect.void : emit(failureEvent(error)))),
        Effect.andThen(Queue.end(queue))
      )
    },
    { bufferSize: 256, strategy: "suspend" }
  )

type Emit = (event: ChatEvent) => Effect.Effect<void>

const isTurnFailure = ({ _tag }: ChatEvent): boolean =>
  _tag === "Error" || _tag === "InvalidStream" || _tag === "ContextWindowWillOverflow" || _tag === "HookStopped"

const working = Effect.fn("Agent.run")(
  function* (
    profile: Profile,
    input: ReadonlyArray<Part>,
    { attached: given = [], author: whose, cancel, waiting: outer = (work) => work }: RunOptions,
    emit: Emit
  ): Effect.fn.Return<void, TurnError, Approval | Scope.Scope> {
    const { chat, inbox, limits = {}, loops, reminder } = profile
    const scope = yield* Effect.scope
    const { isStopped, stopped, unlessStopped, waiting } = yield* bounded(limits, cancel, outer)
    const end = Effect.flatMap(stopped, (why) => emit(stopEvent(why)))

    const hooked = Hooked.make(profile.hooks, yield* placeOf(profile), emit)
    const original = input.flatMap((part) => (part.text === undefined ? [] : [part.text])).join("\n")
    // What a program asks for is no message of a person.
    const isPersons = whose === undefined && !isSilent(input)
    /** Tells hooks of a prompt. What they add to it; undefined: the run is over, and that was told. */
    const entered = Effect.fnUntraced(function* (prompt: string, sent: Sent, isAgain: boolean) {
      const entry = yield* unlessStopped(admitted(hooked, prompt))
      if (entry === undefined || (yield* isStopped)) {
        yield* end
        return undefined
      }
      if (entry._tag === "Goes") return entry.attached
      if (entry._tag === "Stopped") yield* append(chat, yield* keptOf(chat, sent))
      // The user's message is back in their hands only where nothing was done about it.
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
    const used: Used = { turns: 0, tokens: 0, cost: 0 }
    let strikes = 0
    let isCompressed = false

    /** The first loop is told to the model, the second ends the run. */
    const halts = Effect.fnUntraced(function* ({ detail, kind }: Loop) {
      strikes += 1
      const halted = strikes > 1
      yield* emit({ _tag: "LoopDetected", kind, detail, halted })
      return halted
    })

    let message: ReadonlyArray<Part> = input
    let author = whose
    let attached: ReadonlyArray<Attachment> = [...given, ...added]
    /** How often hooks had the model go on that took itself for done. */
    let continued = 0
    const tell = (lines: ReadonlyArray<string>) =>
      append(
        chat,
        lines.map((line) => ({ parts: [text(marked(line))], author: "program" }))
      )
    /** Has the model told why it is stopped; the message it was given stays in the conversation. */
    const nudged = Effect.fnUntraced(function* (loop: Loop) {
      if (!isSilent(message)) yield* append(chat, yield* keptOf(chat, { message, author, attached }))
      message = [text(nudge(loop))]
      author = "program"
      attached = []
    })

    for (;;) {
      const limit = exceeded(limits, used)
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
        used.cost += costOf([{ model: taken.model, usage: taken.usage }], builtIn, false).total ?? 0
      }

      const calls = yield* callsOf(chat)
      if (calls.length === 0) {
        if (whose !== undefined) return
        const verdict = yield* unlessStopped(judged(hooked, chat, original, continued > 0))
        if (verdict === undefined) return yield* end
        const { clears, goesOn, stopped: why } = verdict
        if (why !== undefined) yield* emit({ _tag: "HookStopped", message: why, refused: false })
        if (clears) {
          yield* cleared(profile, hooked, goesOn)
          if (profile.onClear !== undefined) return
        }
        if (goesOn === undefined || why !== undefined) return
        if (continued >= mostContinued) {
          return yield* hooked.say(`hooks wanted the work to go on for the ${continued + 1}th time; it ends here`)
        }
        continued += 1
        yield* hooked.say(`the work goes on, as a hook wants: ${shortLine(goesOn, mostShown)}`)
        message = [text(hookMessage(goesOn))]
        author = "program"
        // A prompt like any other, as Gemini CLI takes it: the hooks that look at prompts are told of it.
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
          ? yield* answered(profile, calls, original, {
              emit,
              waiting,
              stop: Effect.map(stopped, stopWords),
              hooked,
              aside: (work) => Effect.asVoid(Effect.forkIn(work, scope))
            })
          : yield* refused(profile, calls, repeated(loop), emit)
      const halting = answers.find(({ stops }) => stops !== undefined)?.stops
      if (halting !== undefined) return yield* emit({ _tag: "HookStopped", message: halting, refused: false })
      if (isHalted || answers.some(({ result }) => result?.ends === true)) return
      for (const [index, { call }] of calls.entries()) {
        const answer = answers[index]
        if (answer !== undefined && loops !== undefined) yield* loops.result(call.name, call.args, outputOf(answer))
      }
    }
  },
  // However it ends, no call is left without an answer: not even one whose turn had just been recorded.
  (work, profile) =>
    Effect.onInterrupt(work, () =>
      Effect.ignore(
        Effect.flatMap(callsOf(profile.chat), (calls) =>
          calls.length === 0
            ? Effect.void
            : record(
                profile,
                calls,
                calls.map(() => givenUp(closed, undefined)),
                new Map()
              )
        )
      )
    ),
  // A second run would come between a call and its answer.
  (work, profile) => alone(profile.chat, work),
  // What watches for a cancel or the time ends with the run.
  Effect.scoped
)

/** Where a run takes place, as hooks are told; looked up only where there are any. */
const placeOf = Effect.fnUntraced(function* ({ chat, hooks }: Profile): Effect.fn.Return<HookPlace> {
  if (hooks === undefined) return {}
  const { started } = yield* chat.session
  return { session: started?.session, cwd: (yield* chat.settings).cwd ?? started?.cwd }
})

/** A hook wants the conversation emptied. */
const cleared = Effect.fnUntraced(function* (
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

/** One run at a time in a conversation. */
const permits = new WeakMap<Chat["Service"], Semaphore.Semaphore>()

const alone = <E, R>(chat: Chat["Service"], work: Effect.Effect<void, E, R>): Effect.Effect<void, E | ChatBusy, R> => {
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

/** Offers the tools in the conversation, where it does not have them yet. A run does so itself. */
export const equip = Effect.fn("Agent.equip")(function* ({ chat, tools }: Pick<Profile, "chat" | "tools">) {
  const declarations = declarationsOf(tools)
  if (declarations === (yield* chat.settings).tools) return
  const keeps = tools.flatMap((tool) => (tool.keeps ? [tool.name, ...tool.aliases] : []))
  yield* chat.configure({ tools: declarations, keeps })
})

/** How a turn ended. */
interface Taken {
  readonly isFinished: boolean
  readonly model: string
  readonly usage: Usage | null
  /** Whether something left the window before it. */
  readonly isCompressed: boolean
  /** What was stopped in the middle of the answer. */
  readonly loop: Loop | undefined
}

/** What is sent with one turn. */
interface Sent {
  readonly message: ReadonlyArray<Part>
  readonly author: "program" | undefined
  readonly attached: ReadonlyArray<Attachment>
}

/** One turn. Its events are passed on, but for the end of one that was stopped from here. */
const turn = Effect.fnUntraced(function* (
  { chat, loops }: Profile,
  { attached, author, message }: Sent,
  /** Whether the run has begun already: what a person does to the conversation meanwhile is waited for. */
  isUnderWay: boolean,
  stopped: Effect.Effect<Stop>,
  emit: Emit
): Effect.fn.Return<Taken, TurnError> {
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
    Effect.retry({ schedule: untilFree, while: ({ _tag }) => isUnderWay && _tag === "ChatBusy" })
  )
  const loop = !isFinished && (yield* Deferred.isDone(looping)) ? yield* Deferred.await(looping) : undefined
  return { isFinished, isCompressed, model, usage, loop }
})

/** Of the window, what a message may fill that stays in the conversation without having been made to fit. */
const keptShare = 0.4

/** A message and what goes with it, as they stay in the conversation without an answer: in a room that leaves others theirs. */
const keptOf = Effect.fnUntraced(function* (
  chat: Chat["Service"],
  { attached, author, message }: Sent
): Effect.fn.Return<ReadonlyArray<Addition>> {
  const { limit } = yield* Effect.orElseSucceed(chat.usage, () => ({ limit: Infinity }))
  const room = Math.floor(limit * keptShare)
  return [
    { parts: message, author, room },
    ...attached.map((one) => ({
      parts: one.parts,
      author: "program" as const,
      room: Math.min(room, one.room ?? room)
    }))
  ]
})

interface Addition {
  readonly parts: ReadonlyArray<Part>
  readonly author?: "program" | undefined
  /** By part: what is shown in its place. */
  readonly instead?: Readonly<Record<string, string>> | undefined
  /** Tokens that it may be shown with. */
  readonly room?: number | undefined
}

const append = Effect.fnUntraced(function* (chat: Chat["Service"], additions: ReadonlyArray<Addition>) {
  if (additions.length === 0) return
  const at = yield* Clock.currentTimeMillis
  yield* chat
    .append(
      additions.map(({ author, instead, parts, room }) => ({
        content: { role: "user", parts },
        at,
        room,
        ...(author === undefined ? {} : { author }),
        ...(instead === undefined ? {} : { instead })
      }))
    )
    .pipe(Effect.retry({ schedule: untilFree, while: ({ _tag }) => _tag === "ChatBusy" }))
})

/** Puts one answer a call into the conversation, in their order, with the media that belong to each behind it. */
const record = Effect.fnUntraced(function* (
  { chat }: Profile,
  calls: ReadonlyArray<Asking>,
  answers: ReadonlyArray<Answered>,
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

/** Carries out the calls and records what came of them: also when the run is interrupted, what was done stays known. */
const answered = Effect.fnUntraced(function* (
  profile: Profile,
  calls: ReadonlyArray<Asking>,
  intent: string,
  running: Omit<ToolRunOptions, "tools" | "agent" | "gate">
): Effect.fn.Return<ReadonlyArray<Answered>, TurnError, Approval> {
  const { name, summarize, tools } = profile
  const given: Array<Answered | undefined> = calls.map(() => undefined)
  const summaries = new Map<number, string>()
  const work = Effect.gen(function* () {
    yield* carryOut(calls, given, { tools, agent: name, ...running })
    if (summarize === undefined) return
    const shortened = Effect.forEach(
      calls,
      Effect.fnUntraced(function* ({ call }, index) {
        const answer = given[index]
        if (answer?.status !== "success") return
        const summary = yield* summarize(call.name, outputOf(answer), intent)
        if (summary === undefined) return
        // What hooks added is no part of what may be shortened.
        summaries.set(index, answer.added === undefined ? summary : `${summary}\n\n${answer.added}`)
      }),
      { concurrency: 4, discard: true }
    )
    yield* Effect.raceFirst(Effect.asVoid(running.stop), shortened)
  })
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(restore(work))
      const answers = given.map((answer) => answer ?? givenUp(closed, undefined))
      yield* record(profile, calls, answers, summaries)
      if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
      return answers
    })
  )
})

/** Answers all calls with the same refusal. */
const refused = Effect.fnUntraced(function* (
  profile: Profile,
  calls: ReadonlyArray<Asking>,
  why: string,
  emit: Emit
): Effect.fn.Return<ReadonlyArray<Answered>, TurnError> {
  const answers = calls.map((): Answered => ({ status: "error", response: errorResponse(why), result: undefined }))
  yield* record(profile, calls, answers, new Map())
  for (const { call, id } of calls) {
    const { name } = call
    yield* emit({ _tag: "ToolCallResponse", id, name, status: "error", display: null, message: why, duration: 0 })
  }
  return answers
})
