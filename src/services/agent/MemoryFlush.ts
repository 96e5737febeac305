/**
 * Saves facts to memory shortly before a compression: a hidden turn in a copy of the conversation, in which only the
 * memory tool runs. The conversation does not change, and a failure does not stop the turn that follows.
 */

import { Clock, Effect, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { isText, type Part } from "../../domain/content/Content.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import { Chat, type ChatServices } from "../chat/Chat.ts"
import type { ChatSettings } from "../chat/ChatSettings.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { onlyTool, type Tool } from "../tools/Tool.ts"
import * as Agent from "./Agent.ts"
import type { Profile, TurnAhead } from "./AgentRun.ts"
import { dateOf } from "./LocalAgentPrompt.ts"

/** The maximum number of tokens by which a flush precedes a compression. */
const maxFlushLead = 4_000

/** Bytes added to the log since the last flush that trigger a flush, regardless of the window. */
export const forcedLogBytes = 2 * 1024 * 1024

/** Failed attempts after which no other is made until the next compression. */
const maxFlushFailures = 3

/** Returns the tokens at which a flush is due, when compression starts at `trigger` tokens. */
export const flushTokens = (trigger: number): number => trigger - Math.min(maxFlushLead, trigger / 2)

/** The input of the decision. */
interface FlushFacts {
  /** Tokens of the next request, with its message. */
  readonly tokens: number
  /** The tokens at which the conversation is compressed. */
  readonly trigger: number
  /** Bytes of the log since the last flush. */
  readonly logBytes: number
}

/** Whether a flush is due. */
export const isFlushDue = ({ logBytes, tokens, trigger }: FlushFacts): boolean =>
  tokens >= flushTokens(trigger) || logBytes >= forcedLogBytes

/** The answer of a model that has nothing to report, as in OpenClaw. */
const silentAnswer = "NO_REPLY"

/** Whether an answer reports nothing, so that it is not shown. */
export const isSilentAnswer = (answer: string): boolean => answer.replaceAll(silentAnswer, "").trim() === ""

/** The input of a memory flush. */
interface MemoryFlushOptions {
  readonly name: string
  readonly chat: Chat["Service"]
  /** All tools of the agent, so that the request begins with the same bytes as those of the conversation. */
  readonly tools: ReadonlyArray<Tool>
  /** The name of the one tool that runs. */
  readonly memoryTool: string
  /** The size of the conversation's log. */
  readonly logBytes: Effect.Effect<number>
  readonly hooks: HookSystem["Service"] | undefined
}

/** The limits of one flush in turns and milliseconds, without the time spent waiting for the user. */
const limits = { turns: 6, time: 120_000 }

/** Characters of an answer that the user sees. */
const maxNoticeChars = 300

const request = (at: number, memoryTool: string): string =>
  `${runtimeMark} This conversation is about to be compressed. Today is ${dateOf(at)} (UTC). If it contains facts that later conversations need and that memory does not contain yet (decisions, preferences of the user, names, conventions of this project), save each one with ${memoryTool}, with its scope. Only add facts: do not change existing memory or files. No other tool is available now. Do not continue the task, and do not talk to the user. When everything is saved, or if there is nothing to save, answer only ${silentAnswer}.`

/** The state between two compressions, in which one flush succeeds or a limited number of attempts fail. */
interface Cycle {
  /** The snapshot with which it began. Undefined: nothing was compressed yet. */
  readonly snapshot: string | undefined
  readonly isFlushed: boolean
  readonly failures: number
}

/** Makes the step that runs before each turn (`Profile.beforeTurn`). */
export const make = Effect.fnUntraced(function* (
  options: MemoryFlushOptions
): Effect.fn.Return<NonNullable<Profile["beforeTurn"]>, never, ChatServices> {
  const { chat, logBytes, memoryTool } = options
  const context = yield* Effect.context<ChatServices>()
  const tools = onlyTool(
    options.tools,
    memoryTool,
    (name) => `${name} is not available now: save facts with ${memoryTool}, or answer ${silentAnswer}`
  )
  let cycle: Cycle = { snapshot: undefined, isFlushed: false, failures: 0 }
  /** The size of the log at the last flush. */
  let flushedBytes = yield* logBytes

  return Effect.fn("MemoryFlush.flushIfDue")(function* (turn) {
    const { inserted } = yield* chat.conversation
    const snapshot = inserted?.value.id
    if (snapshot !== cycle.snapshot) cycle = { snapshot, isFlushed: false, failures: 0 }
    if (cycle.isFlushed || cycle.failures >= maxFlushFailures) return
    const bytes = yield* logBytes
    const facts = yield* factsOf(chat, turn, bytes - flushedBytes)
    if (facts === undefined || !isFlushDue(facts)) return
    const isDone = yield* flush({ ...options, tools }, turn).pipe(
      Effect.catchCause((cause) => Effect.as(Effect.logDebug("the memory flush failed", cause), false))
    )
    if (isDone) flushedBytes = bytes
    cycle = { ...cycle, isFlushed: isDone, failures: cycle.failures + (isDone ? 0 : 1) }
  }, Effect.provideContext(context))
})

/** Undefined: the size of the next request is unknown, so no flush is decided. */
const factsOf = (chat: Chat["Service"], { attached, message }: TurnAhead, logBytes: number) =>
  Effect.map(
    Effect.orElseSucceed(chat.usage, () => undefined),
    (usage) => {
      if (usage === undefined) return undefined
      const { scale = 1, tokens, trigger } = usage
      const parts = [...message, ...attached.flatMap((one) => one.parts)]
      return { tokens: tokens + scale * textTokens(parts), trigger, logBytes }
    }
  )

const textTokens = (parts: ReadonlyArray<Part>): number =>
  parts.reduce((tokens, part) => tokens + (isText(part) ? estimateText(part.text) : 0), 0)

/** The settings of the copy. It is compressed only if the request would not fit otherwise. */
const withoutThreshold = ({ models = {}, ...settings }: ChatSettings): ChatSettings => ({
  ...settings,
  threshold: 1,
  prepareAt: 0,
  models: Object.fromEntries(Object.entries(models).map(([name, { price, window }]) => [name, { price, window }]))
})

/** Runs the hidden turn with these tools. Returns whether it finished. */
const flush = Effect.fnUntraced(function* (
  { chat, hooks, memoryTool, name, tools }: MemoryFlushOptions,
  { emit, waiting }: TurnAhead
) {
  const { afterCompression: _after, refreshEnvironment: _refresh, ...settings } = yield* chat.settings
  const copy = yield* Chat.make({
    log: { append: () => Effect.void },
    session: yield* chat.session,
    settings: withoutThreshold(settings)
  }).pipe(Effect.orDie)
  const text = request(yield* Clock.currentTimeMillis, memoryTool)
  const profile = { name, chat: copy, tools, limits, hooks }
  const events = yield* Stream.runCollect(Agent.run(profile, text, { author: "program", waiting }))
  const { isFinished, notices } = flushReport(events, memoryTool)
  yield* Effect.forEach(notices, (message) => emit({ _tag: "Notice", source: "memory", message }), {
    discard: true
  })
  return isFinished
}, Effect.scoped)

const ends: ReadonlySet<ChatEvent["_tag"]> = new Set([
  "Finished",
  "LimitReached",
  "HookStopped",
  "LoopDetected",
  "Error",
  "InvalidStream"
])

/** Whether a flush finished, by the events of its run, and what is reported to the user about it. */
const flushReport = (events: ReadonlyArray<ChatEvent>, memoryTool: string) => {
  const answerFrom = events.findLastIndex(({ _tag }) => _tag === "ModelInfo" || _tag === "Retry")
  const answer = events.slice(answerFrom + 1).flatMap((event) => (event._tag === "Content" ? [event.text] : []))
  const saved = events.filter(
    (event) => event._tag === "ToolCallResponse" && event.name === memoryTool && event.status === "success"
  ).length
  return {
    isFinished: events.findLast(({ _tag }) => ends.has(_tag))?._tag === "Finished",
    notices: [
      ...(saved === 0
        ? []
        : [`${saved === 1 ? "1 fact was" : `${saved} facts were`} saved before the conversation is compressed`]),
      ...(isSilentAnswer(answer.join("")) ? [] : [shortLine(answer.join(""), maxNoticeChars)])
    ]
  }
}
