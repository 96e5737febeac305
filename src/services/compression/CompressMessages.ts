import { Effect, Predicate } from "effect"
import { adopt, FailedTokenCountError, type Outcome, patchOf } from "../../domain/compression/Compression.ts"
import { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import { defaultPolicy, type Policy, policyProblem, tokenOptions } from "../../domain/compression/strategies/Policy.ts"
import { triggerShare } from "../../domain/compression/strategies/Threshold.ts"
import type { Strategy } from "../../domain/compression/Strategy.ts"
import { type Content, payload } from "../../domain/content/Content.ts"
import { type Handle, handleOf, isHandle } from "../../domain/content/Handle.ts"
import {
  type Conversation,
  type Draft,
  inserted as insertedOf,
  entries,
  type Entry,
  view
} from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { droppedEntries, rangeText, recall, recallable } from "../../domain/conversation/Recall.ts"
import { arrange } from "../../domain/effect-ai/PromptView.ts"
import { modelLimits } from "../../domain/model/ModelLimits.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { anthropicCodec } from "../../domain/wire/anthropic/Messages.ts"
import { chatCompletionsCodec } from "../../domain/wire/chat/Messages.ts"
import { geminiCodec } from "../../domain/wire/gemini/Messages.ts"
import { type MessageCodec, shortenedMessages } from "../../domain/wire/MessageCodec.ts"
import { responsesCodec } from "../../domain/wire/responses/Messages.ts"
import { HandleIndex, RangeName, type RangeNaming } from "../session/EntryBuilder.ts"
import { hashSync } from "../session/Sha256.ts"
import type { TempStore, TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Compression } from "./Compression.ts"
import { type Continued, continued, keep } from "./EarlierCompression.ts"

/** Compresses messages that a program stores itself, and returns them in the program's own form. */

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
  const problem = policyProblem(options)
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

/** Returns the index of the group of messages that an entry stands for. */
const groupAt = ({ origin }: Entry): number => (origin?.line ?? 0) - 1

/** Returns the function that reads the handles of a result: the parts of all messages, the range that left, and what earlier calls show. */
const recallIn = (before: Continued, outcome: Outcome, dropped: Handle | undefined) => {
  const { conversation, texts } = before
  const drop = patchOf(outcome)?.drop
  const ranges =
    drop === undefined || dropped === undefined
      ? []
      : [{ handle: dropped, entries: droppedEntries(view(conversation), drop) }]
  const held = recallable(adopt(conversation, outcome), ranges)
  return (handle: string) => recall(held, handle)?.text ?? (isHandle(handle) ? texts.get(handle) : undefined)
}

/** A conversation that was compressed. */
export interface CompressedConversation {
  readonly outcome: Outcome
  /** Undefined: nothing changed. */
  readonly after: Conversation | undefined
  readonly recall: CompressedMessages<unknown>["recall"]
}

/** Names a range by its text, so that a store of texts finds it. */
export const nameOfText: RangeNaming = (range) => handleOf(hashSync(rangeText(range)))

/** Compresses drafts once, among which may be what an earlier call returned. A failure of the compression is an outcome. */
export const compressDrafts = Effect.fnUntraced(function* (
  drafts: ReadonlyArray<Draft>,
  options: CompressMessagesOptions
): Effect.fn.Return<CompressedConversation, CompressMessagesError, CompressMessagesServices> {
  const compression = yield* Compression
  const { cwd, for: family, forced = false } = options
  const policy = yield* policyOf(options)
  const held = new HandleIndex()
  const made = yield* Effect.catchTag(continued(drafts, held), "TokenCountError", ({ message }) =>
    Effect.succeed(FailedTokenCountError.make({ before: TokenCount.make(0), message }))
  )
  if ("_tag" in made) return { outcome: made, after: undefined, recall: () => undefined }
  const { conversation, ranges } = made
  const { dropped, outcome } = yield* compression
    .compress({ conversation, policy, forced, memory: freshMemory, held, earlierRanges: ranges, cwd, family })
    .pipe(Effect.provideService(RangeName, nameOfText))
  const after = patchOf(outcome) === undefined ? undefined : adopt(conversation, outcome)
  return { outcome, after, recall: recallIn(made, outcome, dropped) }
})

/** Keeps what these messages of ours show, so that a later call reads it. */
export const keepShown = (
  written: ReadonlyArray<Content>,
  recall: CompressedConversation["recall"]
): Effect.Effect<void, TempStoreError, TempStore> =>
  keep(
    written.flatMap(({ parts }) => parts.map((part) => payload(part).text)),
    recall
  )

/** Whether a message is an instruction. Instructions are no messages of the conversation, and stay as they are. */
const isInstruction = (message: unknown): boolean =>
  Predicate.isObject(message) && "role" in message && (message.role === "system" || message.role === "developer")

/** Compresses messages of a form. */
const compressIn = Effect.fnUntraced(function* <M>(
  codec: MessageCodec,
  messages: ReadonlyArray<M>,
  options: CompressMessagesOptions
): Effect.fn.Return<CompressedMessages<M>, CompressMessagesError, CompressMessagesServices> {
  const groups = codec.read(messages)
  const read = new Set(groups.flatMap(({ from, to }) => messages.slice(from, to)))
  const unread = messages.filter((message) => !read.has(message) && !isInstruction(message)).length
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
  const inserted = new Map<string, Content>(projectMessages(after).map(({ content, entry }) => [entry, content]))
  /** Returns the instructions between a group and the previous one. */
  const between = (group: number) => messages.slice(groups[group - 1]?.to ?? 0, groups[group]?.from)
  const own = new Set([...entries(after), ...insertedOf(after)].filter(({ origin }) => origin !== undefined))
  const sent = arrange<unknown>(after, {
    leading: between(0),
    before: (entry) => (groupAt(entry) > 0 ? between(groupAt(entry)) : []),
    shown: ({ entry, shortened }) => {
      const group = own.has(entry) ? groups[groupAt(entry)] : undefined
      if (group !== undefined) return shortenedMessages(messages, group, shortened)
      const content = inserted.get(entry.id)
      return content === undefined ? [] : [codec.write(content)]
    },
    trailing: between(groups.length)
  })
  const given = new Set<unknown>(messages)
  // As a later call reads them.
  yield* keepShown(
    codec
      .read(sent)
      .flatMap(({ content, from, to }) => (sent.slice(from, to).every((one) => given.has(one)) ? [] : [content])),
    recall
  )
  // Kept messages are the caller's own objects; new ones have the form of the dialect.
  return { outcome, messages: sent as ReadonlyArray<M>, recall }
})

const compressing =
  (name: string, codec: MessageCodec) =>
  <M extends object>(
    messages: ReadonlyArray<M>,
    options: CompressMessagesOptions = {}
  ): Effect.Effect<CompressedMessages<M>, CompressMessagesError, CompressMessagesServices> =>
    Effect.withSpan(compressIn(codec, messages, options), name)

/** Compresses contents of the Gemini API. */
export const gemini = compressing("Compress.gemini", geminiCodec)

/** Compresses messages of OpenAI's Chat Completions API and the many servers that implement it. */
export const openAi = compressing("Compress.openAi", chatCompletionsCodec)

/** Compresses input items of OpenAI's Responses API. Reasoning stays with the calls that it led to. */
export const responses = compressing("Compress.responses", responsesCodec)

/**
 * Compresses messages of Anthropic's Messages API. The system instruction is not one of them: pass its size as
 * `overhead`.
 */
export const anthropic = compressing("Compress.anthropic", anthropicCodec)
