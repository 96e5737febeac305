/** Compresses messages that a program stores itself, and returns them in the program's own form. */

import { Effect, Predicate } from "effect"
import { FailedTokenCountError, type Outcome, patchOf } from "../../domain/compression/Compression.ts"
import { InvalidOption, optionCheck, valueCheck } from "../../domain/compression/InvalidOption.ts"
import { defaultPolicy, type Policy, policyProblem, tokenOptions } from "../../domain/compression/strategies/Policy.ts"
import { triggerShare } from "../../domain/compression/strategies/Threshold.ts"
import type { Strategy } from "../../domain/compression/Strategy.ts"
import type { Content } from "../../domain/content/Content.ts"
import { type Handle, handleOf, isHandle } from "../../domain/content/Handle.ts"
import {
  arrangedMessages,
  type MessageRange,
  rangeOf,
  writtenMessages
} from "../../domain/conversation/ArrangedMessages.ts"
import type { Conversation, Draft, ViewItem } from "../../domain/conversation/Conversation.ts"
import { rangeText } from "../../domain/conversation/Recall.ts"
import { modelLimits } from "../../domain/model/ModelLimits.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { anthropicCodec } from "../../domain/wire/anthropic/Messages.ts"
import { chatCompletionsCodec } from "../../domain/wire/chat/Messages.ts"
import { isInstruction } from "../../domain/wire/Dialect.ts"
import { geminiCodec } from "../../domain/wire/gemini/Messages.ts"
import type { MessageCodec, MessageGroup } from "../../domain/wire/MessageCodec.ts"
import { responsesCodec } from "../../domain/wire/responses/Messages.ts"
import { Compression } from "../compression/Compression.ts"
import { RangeName, type RangeNaming } from "../session/EntryBuilder.ts"
import { hashSync } from "../session/Sha256.ts"
import type { TempStore, TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { continued, keepShown } from "./EarlierCompression.ts"
import { compress, type KnownConversation, textBehind } from "./KnownConversation.ts"

/** The options of a policy as plain numbers, all optional. */
export type PolicyChanges = {
  readonly [K in keyof Policy]?: (TokenCount extends Policy[K] ? number : Policy[K]) | undefined
}

/** Options for compressing messages. Absent options have their values from the strategy, and from `defaultPolicy`. */
export interface CompressMessagesOptions extends PolicyChanges {
  /** The model of the conversation. Its window is the limit unless `limit` is set. */
  readonly for?: string | undefined
  /** Compresses even below the threshold. Default: false. */
  readonly forced?: boolean | undefined
  /** The folder that paths in the messages are relative to. */
  readonly cwd?: string | undefined
}

/** The result of a compression of messages. */
export interface CompressedMessages<M> {
  readonly outcome: Outcome
  /** The messages to send from now on; the same array if nothing changed. Kept messages are the same objects. */
  readonly messages: ReadonlyArray<M>
  /** Returns the exact text behind a handle in the messages. Undefined when none of these messages contains it. */
  readonly recall: (handle: string) => string | undefined
}

/** The services that a compression of messages needs; `Palimpsest.layer()` has them. */
export type CompressMessagesServices = Compression | TempStore | TokenCounter

/** Why messages were not compressed at all: an option cannot have its value, or the store of what leaves them failed. The messages are as they were. */
export type CompressMessagesError = InvalidOption | TempStoreError

/** Returns the policy that these options describe: what they leave open is as the strategy has it. */
export const policyOf = Effect.fnUntraced(function* (
  options: CompressMessagesOptions
): Effect.fn.Return<Policy, InvalidOption, Compression> {
  const text = optionCheck(Predicate.isString, "a text")
  const problem = policyProblem(options) ?? text("for", options.for) ?? text("cwd", options.cwd)
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
  const { runner } = yield* Compression
  const { strategy } = yield* runner(options.strategy ?? defaultPolicy.strategy)
  return madePolicy(strategy, options)
})

const madePolicy = (strategy: Strategy, options: CompressMessagesOptions): Policy => {
  const { cwd: _cwd, for: model, forced: _forced, ...changes } = options
  const limit = changes.limit ?? (model === undefined ? undefined : modelLimits(model)?.window)
  const given = Object.fromEntries(
    Object.entries({ ...changes, limit }).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]))
  )
  const counts = Object.fromEntries(
    tokenOptions.flatMap((key) => {
      const value = given[key]
      return typeof value === "number" ? [[key, TokenCount.make(Math.max(0, Math.floor(value)))]] : []
    })
  )
  const policy: Policy = { ...defaultPolicy, ...strategy.defaults, ...given, ...counts }
  return { ...policy, threshold: triggerShare(strategy, policy.limit, changes.threshold) }
}

/** A conversation that was compressed. */
interface CompressedConversation {
  readonly outcome: Outcome
  /** Undefined: nothing changed. */
  readonly after: Conversation | undefined
  readonly recall: CompressedMessages<unknown>["recall"]
}

/** Names a range by its text, so that a store of texts finds it. */
const nameOfText: RangeNaming = (range) => handleOf(hashSync(rangeText(range)))

/** Compresses a known conversation. `texts` are those behind handles that earlier calls show. */
export const compressKnown = Effect.fnUntraced(function* (
  known: KnownConversation,
  policy: Policy,
  { cwd, for: family, forced = false }: CompressMessagesOptions,
  texts: ReadonlyMap<Handle, string> = new Map()
): Effect.fn.Return<CompressedConversation, never, Compression> {
  const earlierRanges = PersistentList.toArray(known.ranges)
    .map(({ handle }) => handle)
    .toReversed()
  const { after, outcome } = yield* compress(known, { policy, forced, earlierRanges, cwd, family }).pipe(
    Effect.provideService(RangeName, nameOfText)
  )
  return {
    outcome,
    after: patchOf(outcome) === undefined ? undefined : after.conversation,
    recall: (handle) => (isHandle(handle) ? (texts.get(handle) ?? textBehind(after, handle)) : undefined)
  }
})

/** Compresses drafts once, among which may be what an earlier call returned. A failure of the compression is an outcome. */
const compressDrafts = Effect.fnUntraced(
  function* (drafts: ReadonlyArray<Draft>, options: CompressMessagesOptions) {
    const policy = yield* policyOf(options)
    const { known, texts } = yield* continued(drafts)
    return yield* compressKnown(known, policy, options, texts)
  },
  Effect.catchTag("TokenCountError", ({ message }) => {
    const outcome: Outcome = FailedTokenCountError.make({ before: TokenCount.make(0), message })
    return Effect.succeed<CompressedConversation>({ outcome, after: undefined, recall: () => undefined })
  })
)

/** The form in which a caller keeps its messages. */
export interface MessageForm<M, G extends MessageRange & { readonly content: Content }> {
  /** Groups messages. A message in no group is an instruction or has an unknown form, and stays as it is. */
  readonly read: (messages: ReadonlyArray<M>) => ReadonlyArray<G>
  /** Writes an item of the view: what the compression inserted, or a group of the messages with shorter parts. */
  readonly write: (item: ViewItem, group: G | undefined, messages: ReadonlyArray<M>) => ReadonlyArray<M>
}

/** Compresses messages of a form. */
export const compressIn = Effect.fnUntraced(function* <M, G extends MessageRange & { readonly content: Content }>(
  { read, write }: MessageForm<M, G>,
  messages: ReadonlyArray<M>,
  options: CompressMessagesOptions
): Effect.fn.Return<CompressedMessages<M>, CompressMessagesError, CompressMessagesServices> {
  const problem = valueCheck(Array.isArray, "a list")("messages", messages)
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
  const groups = read(messages)
  const grouped = new Set(groups.flatMap(({ from, to }) => messages.slice(from, to)))
  const unread = messages.filter((message) => !grouped.has(message) && !isInstruction(message)).length
  if (unread > 0) {
    yield* Effect.logWarning(
      `${unread} of ${messages.length} messages cannot be read in this dialect and stay as they are`
    )
  }
  const { after, outcome, recall } = yield* compressDrafts(
    groups.map(({ content }, index) => ({ content, origin: { line: index + 1, ids: [] } })),
    options
  )
  if (after === undefined) return { outcome, messages, recall }
  const sent = arrangedMessages(after, groups, messages.length).flatMap((each): ReadonlyArray<M> =>
    typeof each === "number" ? messages.slice(each, each + 1) : write(each, rangeOf(each.entry, groups), messages)
  )
  const given = new Set(messages)
  // As a later call reads them.
  const written = read(sent).filter(({ from, to }) => !sent.slice(from, to).every((one) => given.has(one)))
  yield* keepShown(
    written.map(({ content }) => content),
    recall
  )
  return { outcome, messages: sent, recall }
})

const formOf = (codec: MessageCodec): MessageForm<unknown, MessageGroup> => ({
  read: codec.read,
  write: (item, group, messages) => writtenMessages(codec, item, group, messages)
})

const compressing =
  (name: string, codec: MessageCodec) =>
  <M extends object>(messages: ReadonlyArray<M>, options: CompressMessagesOptions = {}) =>
    compressIn(formOf(codec), messages, options).pipe(
      // Kept messages are the caller's own objects; new ones have the form of the dialect.
      Effect.map((compressed) => compressed as CompressedMessages<M>),
      Effect.withSpan(name)
    )

/**
 * Compresses contents of the Gemini API.
 *
 * **Example** (Compressing messages of the Gemini API)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Content, Palimpsest } from "palimpsest"
 *
 * const history = Array.from({ length: 40 }, (_, n) => ({
 *   role: n % 2 === 0 ? "user" : "model",
 *   parts: [{ text: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}` }]
 * }))
 * const compressed = Compress.gemini(history, { limit: 4_000 }).pipe(Effect.provide(Palimpsest.layer()))
 * const { messages, recall } = await Effect.runPromise(compressed)
 * // What left is behind the handles that the messages show.
 * const [handle = ""] = Content.mentions(JSON.stringify(messages))
 * console.log(messages.length < 40, recall(handle) !== undefined) // => true true
 * ```
 */
export const gemini = compressing("Compress.gemini", geminiCodec)

/**
 * Compresses messages of OpenAI's Chat Completions API and the many servers that implement it.
 *
 * **Example** (Compressing messages of Chat Completions)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Palimpsest } from "palimpsest"
 *
 * const history = Array.from({ length: 40 }, (_, n) => ({
 *   role: n % 2 === 0 ? "user" : "assistant",
 *   content: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}`
 * }))
 * const compressed = Compress.openAi(history, { limit: 4_000 }).pipe(Effect.provide(Palimpsest.layer()))
 * const { messages, outcome } = await Effect.runPromise(compressed)
 * console.log(outcome._tag, messages.at(-1) === history.at(-1)) // => Compressed true
 * ```
 */
export const openAi = compressing("Compress.openAi", chatCompletionsCodec)

/**
 * Compresses input items of OpenAI's Responses API. Reasoning stays with the calls that it led to.
 *
 * **Example** (Compressing items of OpenAI's Responses)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Palimpsest } from "palimpsest"
 *
 * const items = Array.from({ length: 40 }, (_, n) => ({
 *   type: "message",
 *   role: n % 2 === 0 ? "user" : "assistant",
 *   content: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}`
 * }))
 * const compressed = Compress.responses(items, { limit: 4_000 }).pipe(Effect.provide(Palimpsest.layer()))
 * console.log((await Effect.runPromise(compressed)).outcome._tag) // => Compressed
 * ```
 */
export const responses = compressing("Compress.responses", responsesCodec)

/**
 * Compresses messages of Anthropic's Messages API. The system instruction is not one of them: pass its size as
 * `overhead`.
 *
 * **Example** (Compressing messages of Anthropic's API)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compress, Palimpsest } from "palimpsest"
 *
 * const history = Array.from({ length: 40 }, (_, n) => ({
 *   role: n % 2 === 0 ? "user" : "assistant",
 *   content: [{ type: "text", text: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}` }]
 * }))
 * const compressed = Compress.anthropic(history, { limit: 4_000 }).pipe(Effect.provide(Palimpsest.layer()))
 * console.log((await Effect.runPromise(compressed)).outcome._tag) // => Compressed
 * ```
 */
export const anthropic = compressing("Compress.anthropic", anthropicCodec)
