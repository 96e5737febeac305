import { Context, Effect } from "effect"
import type * as Prompt from "effect/ai/Prompt"
import { payload } from "../domain/Content.ts"
import type { Excerpt, Selection } from "../domain/Excerpt.ts"
import { type Handle, type Hash, matches } from "../domain/Handle.ts"
import { toContent } from "../domain/PromptContent.ts"
import { sharedPrefix } from "../domain/PromptView.ts"
import { rangeText } from "../domain/Recall.ts"
import type { Names } from "./PromptMemory.ts"
import { type BadPattern, ConversationNotNamed, HandleNotHeld, select, TempStore, TempStoreError } from "./TempStore.ts"

/**
 * Recall within the history that a caller sends. A handle of a part is the hash of its text, a handle of what left the
 * window is the name of the beginning of the conversation that left: both are found in any history that holds them, with
 * nothing stored.
 */

/** The prompts that handles are looked up in: of the innermost call first, then of those it is made for. */
const RecallPrompts = Context.Reference<ReadonlyArray<Prompt.Prompt>>("palimpsest/services/PromptRecall/Prompts", {
  defaultValue: () => []
})

/** A context in which handles are looked up in a prompt, and behind it in those of the calls around. */
export const within =
  (prompt: Prompt.Prompt) =>
  <R>(context: Context.Context<R>): Context.Context<R> =>
    Context.add(context, RecallPrompts, [prompt, ...Context.get(context, RecallPrompts)])

type Messages = ReadonlyArray<Prompt.Message>

const advice =
  "copy a handle exactly as it is shown; if its message is no longer sent, send the whole history, or run again what gave it"

const notHeld = (handle: Handle) => new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice }) })

/** Recall within prompts, with the names of their beginnings. */
export const make = Effect.fnUntraced(function* (names: Names) {
  const store = yield* TempStore
  const hashes = new WeakMap<Prompt.Message, ReadonlyArray<Hash>>()
  /** The prompt that came last, while each went on from the one before, or was the same. */
  let only: Prompt.Prompt | undefined
  let areSeveral = false

  /** Takes notice of a prompt that is sent: outside of a call the one conversation that there is can be meant. */
  const seen = (prompt: Prompt.Prompt): Prompt.Prompt => {
    if (areSeveral) return prompt
    const before = only?.content ?? []
    // One that is shorter was taken back, or is another's that began alike: which of the two nobody can tell.
    areSeveral = sharedPrefix(before, prompt.content).shared < before.length
    only = areSeveral ? undefined : prompt
    return prompt
  }

  const textsOf = (message: Prompt.Message): ReadonlyArray<string> =>
    message.role === "system" ? [] : toContent(message).parts.map((part) => payload(part).text)

  const hashesOf = Effect.fnUntraced(function* (message: Prompt.Message) {
    const before = hashes.get(message)
    if (before !== undefined) return before
    const made = yield* Effect.forEach(textsOf(message), store.hash)
    hashes.set(message, made)
    return made
  })

  /** What a handle stands for in a history. Of two parts that it fits, the first has it: longer ones were given to others. */
  const find = Effect.fnUntraced(function* (content: Messages, handle: Handle) {
    for (const message of content) {
      const part = (yield* hashesOf(message)).findIndex((hash) => matches(handle, hash))
      if (part >= 0) return textsOf(message)[part]
    }
    const beginnings = yield* names(content)
    const last = beginnings.findIndex((name) => matches(handle, name))
    if (last < 0) return undefined
    const range = content.slice(0, last + 1).flatMap((message) => (message.role === "system" ? [] : [message]))
    return rangeText(range.map((message) => ({ content: toContent(message) })))
  })

  const recall = Effect.fn("Recall.recall")(function* (
    handle: Handle,
    selection: Selection = {}
  ): Effect.fn.Return<Excerpt, TempStoreError | BadPattern> {
    const around = yield* RecallPrompts
    if (around.length === 0 && areSeveral) {
      return yield* new TempStoreError({ reason: new ConversationNotNamed({ name: handle }) })
    }
    for (const { content } of around.length === 0 && only !== undefined ? [only] : around) {
      const text = yield* find(content, handle)
      if (text !== undefined) return yield* select(text, selection)
    }
    return yield* notHeld(handle)
  })

  return { seen, recall }
})
