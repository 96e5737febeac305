/**
 * Wraps any `effect/ai` language model so that its window is never exceeded: prompts that come near the limit are compressed before they reach the
 * model, and everything removed from them can be recalled. Callers continue to send their whole history. What was compressed once stays the same,
 * byte for byte, until the next compression, so that a provider's cache keeps working.
 */

import { Context, Effect, Layer, Predicate, Result, Stream } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { optionCheck } from "../../domain/compression/InvalidOption.ts"
import { empty } from "../../domain/conversation/Conversation.ts"
import { assumedWindow } from "../../domain/model/ModelLimits.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type { Compression } from "../compression/Compression.ts"
import type { SessionStore } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { ConversationKey } from "./ConversationKey.ts"
import { type Call, type GuardedCalls, guardMethods, type ReadyCall, type StreamCall } from "./GuardedCalls.ts"
import * as KeyedConversations from "./KeyedConversations.ts"
import {
  findPrompt,
  makePromptConversations,
  openHistory,
  type PromptCall,
  type PromptConversations,
  sentOf,
  sessionOf,
  shrink,
  tokensOf
} from "./PromptConversations.ts"
import { makeNames, namesOf } from "./PromptNames.ts"
import * as PromptRecall from "./PromptRecall.ts"
import {
  aiError,
  type CallOptions,
  declarationsOf,
  invalidInput,
  make as makeWindow,
  type PromptWindow,
  type WindowOptions
} from "./PromptWindow.ts"
import { Recall } from "./RecallTool.ts"

/** How prompts are kept within the window. */
export interface Options extends WindowOptions {
  /**
   * The number of conversations held in memory, ready for their next compression (default 64). Each takes about as much memory as its text. The state
   * of any other is rebuilt from the history that the caller sends.
   */
  readonly conversations?: number | undefined
  /**
   * The number of conversations whose compressions are remembered (default 10,000). Each takes about as much memory as its snapshots. Any other is
   * compressed anew when its caller returns; its handles stay valid.
   */
  readonly remembered?: number | undefined
}

const defaultConversations = 64
const defaultRemembered = 10_000

/** The services that a bounded language model needs. */
export type Requirements = Compression | TokenCounter | TempStore | SessionStore | Calibrations

const isSmall = ({ guard }: PromptWindow, call: PromptCall): boolean => {
  const { measured, view } = call.beginning
  const isComparable = measured?.view === view && measured?.declarationTokens === call.declared.tokens
  return guard.isSmall(tokensOf(call, view), isComparable ? measured : undefined)
}

/** Returns the call with a prompt that fits. The same prompt if it already does. */
const prepare = Effect.fnUntraced(function* (
  all: PromptConversations,
  keyed: KeyedConversations.KeyedConversations,
  method: string,
  options: CallOptions
) {
  const { window } = all
  const prompt = Prompt.make(options.prompt)
  const { content } = prompt
  const declared = yield* declarationsOf(window, options)
  const key = yield* ConversationKey
  const beginnings = yield* namesOf(all.names, content, key)
  const conversation = key === undefined ? undefined : KeyedConversations.keyedConversation(keyed, key)
  const recorded =
    conversation === undefined
      ? undefined
      : yield* KeyedConversations.readRecorded(all, conversation, content).pipe(
          Effect.catchTag("SessionStoreError", (error) => Effect.fail(aiError("open", error)))
        )
  if (recorded !== undefined) all.known.remember(beginnings, recorded)
  const call = yield* findPrompt(all, { method, declared, content, names: beginnings })
  const messages = isSmall(window, call)
    ? sentOf(call.beginning.view, content)
    : yield* conversation === undefined
        ? shrink(all, call, openHistory(all, call))
        : shrink(all, call, KeyedConversations.openKeyed(all, conversation, call))
  const callOptions = declared.toolkit === undefined ? options : { ...options, toolkit: declared.toolkit }
  return {
    callOptions,
    options: { ...callOptions, prompt: messages === content ? prompt : Prompt.fromMessages(messages) },
    messages,
    declared
  }
})

/** Returns the conversation of a prompt, as far as it was compressed. If it cannot be counted, nothing was sent. */
const conversationOf = (all: PromptConversations, content: Prompt.Prompt["content"]) =>
  namesOf(all.names, content).pipe(
    Effect.flatMap((names) => sessionOf(all, all.known.find(names).view, content)),
    Effect.map(({ conversation }) => conversation),
    Effect.orElseSucceed(() => empty)
  )

/** Notes the prompt of a call, so that tools that run for it can recall from its prompt and from those of the surrounding calls. */
const notePrompt = (prompts: PromptRecall.PromptRecall, options: CallOptions) =>
  Effect.map(ConversationKey, (key) => {
    const prompt = Prompt.make(options.prompt)
    if (key === undefined) PromptRecall.note(prompts, prompt)
    return { options: { ...options, prompt }, context: PromptRecall.withPrompt(prompt) }
  })

const recalling =
  (prompts: PromptRecall.PromptRecall, ask: Call): Call =>
  (options) =>
    Effect.flatMap(notePrompt(prompts, options), ({ context, options }) => Effect.updateContext(ask(options), context))

const recallingStream =
  (prompts: PromptRecall.PromptRecall, ask: StreamCall): StreamCall =>
  (options) =>
    Stream.unwrap(
      Effect.map(notePrompt(prompts, options), ({ context, options }) => Stream.updateContext(ask(options), context))
    )

/** Says what is wrong with how many conversations are held. */
const memoryProblem = ({ conversations, remembered }: Options) => {
  const check = optionCheck((count) => Predicate.isNumber(count) && count >= 1, "a number, 1 or more")
  return check("conversations", conversations) ?? check("remembered", remembered)
}

const make = Effect.fnUntraced(function* (options: Options) {
  const inner = yield* LanguageModel.LanguageModel
  const made = yield* Effect.result(makeWindow(options))
  const problem = Result.isFailure(made) ? made.failure.message : memoryProblem(options)
  const window = Result.isSuccess(made) ? made.success : yield* Effect.orDie(makeWindow({ window: assumedWindow }))
  const names = yield* makeNames
  const { conversations = defaultConversations, remembered = defaultRemembered } = options
  const all = makePromptConversations(window, names, { whole: conversations, remembered })
  const keyed: KeyedConversations.KeyedConversations = new BoundedMap(remembered)
  const context = yield* Effect.context<Requirements>()
  const prompts = PromptRecall.make(names)
  const calls: GuardedCalls<ReadyCall> = {
    window,
    prepare: (method, options) =>
      problem === undefined
        ? Effect.provideContext(prepare(all, keyed, method, options), context)
        : Effect.fail(invalidInput(method, problem)),
    restore: () => Effect.void
  }
  const model = guardMethods<ReadyCall, never, LanguageModel.LanguageModel>(calls, inner, {
    call: (ask) => recalling(prompts, ask),
    stream: (ask) => recallingStream(prompts, ask)
  })
  return Context.make(LanguageModel.LanguageModel, model).pipe(
    Context.add(Recall, {
      recall: Effect.fnUntraced(function* (handle, selection) {
        const found = yield* PromptRecall.recall(prompts, handle, selection)
        if (found !== undefined) return found
        const key = yield* ConversationKey
        if (key === undefined) return yield* PromptRecall.notHeld(handle)
        return yield* KeyedConversations.recall(keyed, key, handle, selection)
      }, Effect.provideContext(context)),
      search: Effect.fnUntraced(function* (request) {
        const key = yield* ConversationKey
        return key === undefined
          ? yield* PromptRecall.search(prompts, request, (content) =>
              Effect.provideContext(conversationOf(all, content), context)
            )
          : yield* KeyedConversations.search(keyed, key, request)
      }, Effect.provideContext(context))
    })
  )
})

/**
 * Wraps any `effect/ai` language model so that its prompts always fit its window.
 *
 * *When to use*: for a program that keeps its own history and sends it whole with every call. `CompressedChat` keeps
 * the history for you.
 *
 * *Details*: the oldest part of a prompt that would not fit is compressed first. System messages do not change, and
 * calls stay with their results. Kept messages are passed on unchanged, with their options; a prompt that needs no
 * change is passed on as the same object. A prompt that cannot be made to fit fails with `InvalidUserInputError`
 * before anything is sent. `Recall` returns what left, from the history that the caller sends: a tool that runs for a
 * call finds every handle that was ever shown for its prompt or a prefix of it, even after a restart, and no handle
 * of another conversation. Outside a call, `Recall.within(prompt)` names the conversation.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<LanguageModel.LanguageModel | Recall, never, LanguageModel.LanguageModel | Requirements> =>
  Layer.effectContext(make(options))
