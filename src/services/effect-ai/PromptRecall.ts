/**
 * Recalls from the history that a caller sends. The handle of a part is the hash of its text; the handle of a removed range is the name of the
 * beginning of the conversation that it ends. Both are found in any history that contains them, and nothing is stored.
 */

import { Context, Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import { type Handle, matches } from "../../domain/content/Handle.ts"
import type { Conversation } from "../../domain/conversation/Conversation.ts"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { rangeText } from "../../domain/conversation/Recall.ts"
import type { RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { ConversationNotNamed, HandleNotHeld, searchHidden, select, TempStoreError } from "../session/TempStore.ts"
import { ConversationKey } from "./ConversationKey.ts"
import { sharedMessages, hashesOf, namesOf, type PromptNames, textsOf } from "./PromptNames.ts"

/** A prompt, and the key of its conversation. */
interface RecallPrompt {
  readonly prompt: Prompt.Prompt
  readonly key: string | undefined
}

/** The prompts in which handles are looked up: that of the innermost call first, then those of the surrounding calls. */
const RecallPrompts = Context.Reference<ReadonlyArray<RecallPrompt>>("palimpsest/services/PromptRecall/Prompts", {
  defaultValue: () => []
})

/** A context in which handles are looked up in a prompt, and then in those of the surrounding calls. */
export const withPrompt =
  (prompt: Prompt.Prompt) =>
  <R>(context: Context.Context<R>): Context.Context<R> =>
    Context.add(context, RecallPrompts, [
      { prompt, key: Context.get(context, ConversationKey) },
      ...Context.get(context, RecallPrompts)
    ])

/** The prompts of the calls around, those of the current conversation only. */
const promptsAround = Effect.map(Effect.all([RecallPrompts, ConversationKey]), ([prompts, current]) =>
  prompts.flatMap(({ key, prompt }) => (key === current ? [prompt] : []))
)

type Messages = ReadonlyArray<Prompt.Message>

const advice =
  "copy a handle exactly as it is shown; if its message is no longer sent, send the whole history, or repeat the call that returned it"

/** The failure for a handle that a conversation without a key does not hold. */
export const notHeld = (handle: Handle) => new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice }) })

/** Recall within the prompts of one language model. */
export interface PromptRecall {
  readonly names: PromptNames
  /** The last prompt, as long as each prompt continued or repeated the one before; undefined once one did not. */
  only: Prompt.Prompt | undefined
}

/** Makes recall within prompts, given the names of their beginnings. */
export const make = (names: PromptNames): PromptRecall => ({ names, only: Prompt.empty })

/** Notes a prompt that is sent. Outside of a call, recall works if there is only one conversation. */
export const note = (prompts: PromptRecall, prompt: Prompt.Prompt): void => {
  const { only } = prompts
  // A shorter prompt was either shortened by its caller or belongs to another conversation with the same beginning. These cases cannot be
  // distinguished.
  const continues = only !== undefined && sharedMessages(only.content, prompt.content) === only.content.length
  prompts.only = continues ? prompt : undefined
}

/** The text that a handle stands for in a history. If two parts match, the first one does: the other got a longer handle. */
const find = Effect.fnUntraced(function* ({ names }: PromptRecall, content: Messages, handle: Handle) {
  for (const message of content) {
    const part = (yield* hashesOf(names, message)).findIndex((hash) => matches(handle, hash))
    if (part >= 0) return textsOf(message)[part]
  }
  // The ranges of a conversation with a key are named in its session.
  if ((yield* ConversationKey) !== undefined) return undefined
  const length = (yield* namesOf(names, content)).findIndex((name) => name !== "" && matches(handle, name))
  if (length < 0) return undefined
  const range = content.slice(0, length).flatMap((message) => (message.role === "system" ? [] : [message]))
  return rangeText(range.map((message) => ({ content: toContent(message) })))
})

/** The prompts that are searched, the innermost first: those of the calls around. `name` is what was asked for. */
const promptsFor = Effect.fnUntraced(function* ({ only }: PromptRecall, name: string) {
  const around = yield* promptsAround
  // A conversation with a key is found by that.
  if (around.length > 0 || (yield* ConversationKey) !== undefined) return around
  return only === undefined ? yield* new TempStoreError({ reason: new ConversationNotNamed({ name }) }) : [only]
})

/** Searches what left the innermost prompt, whose conversation `read` returns. */
export const search = Effect.fn("Recall.search")(function* (
  prompts: PromptRecall,
  request: RecallSearch,
  read: (content: Messages) => Effect.Effect<Conversation>
) {
  const [{ content } = Prompt.empty] = yield* promptsFor(prompts, "a pattern")
  return yield* searchHidden(yield* read(content), request)
})

/** Returns the text behind a handle, or the requested part of it; undefined where the prompts do not hold it. */
export const recall = Effect.fn("Recall.recall")(function* (
  prompts: PromptRecall,
  handle: Handle,
  selection: Selection = {}
) {
  for (const { content } of yield* promptsFor(prompts, handle)) {
    const text = yield* find(prompts, content, handle)
    if (text !== undefined) return yield* select(text, selection)
  }
  return undefined
})
