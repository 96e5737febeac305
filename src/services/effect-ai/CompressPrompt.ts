/** One compression of a prompt of `effect/ai`, for programs that keep the history (`Compress.prompt`). */

import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import type { Outcome } from "../../domain/compression/Compression.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { awaitedFrom } from "../../domain/effect-ai/PromptRepair.ts"
import {
  type CompressedMessages,
  compressIn,
  type CompressMessagesError,
  type CompressMessagesOptions,
  type CompressMessagesServices
} from "../conversation/CompressMessages.ts"
import { itemMessages } from "./LanguageModelBridge.ts"

/** The result of a compression of a prompt. */
export interface CompressedPrompt {
  readonly outcome: Outcome
  /** The prompt to send from now on; the same object where nothing changed. */
  readonly prompt: Prompt.Prompt
  /** Returns the exact text behind a handle in the prompt. */
  readonly recall: CompressedMessages<unknown>["recall"]
}

const groupsOf = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.flatMap((message, at) =>
    message.role === "system" ? [] : [{ from: at, to: at + 1, content: toContent(message) }]
  )

/**
 * Compresses a prompt of `effect/ai`. System messages stay, and so do messages that `effect/ai` still has to process.
 * `ContextWindow.layer` does this for every call of a language model.
 *
 * **Example** (Compressing a prompt of effect/ai)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Prompt } from "effect/ai"
 * import { Compress, Palimpsest } from "palimpsest"
 *
 * const history = Prompt.make(
 *   Array.from({ length: 40 }, (_, n) => ({
 *     role: n % 2 === 0 ? ("user" as const) : ("assistant" as const),
 *     content: [{ type: "text" as const, text: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}` }]
 *   }))
 * )
 * const compressed = Compress.prompt(history, { limit: 4_000 }).pipe(Effect.provide(Palimpsest.layer()))
 * const { prompt } = await Effect.runPromise(compressed)
 * console.log(prompt.content.length < history.content.length) // => true
 * ```
 */
export const prompt = Effect.fn("Compress.prompt")(function* (
  input: Prompt.RawInput,
  options: CompressMessagesOptions = {}
): Effect.fn.Return<CompressedPrompt, CompressMessagesError, CompressMessagesServices> {
  const before = Prompt.make(input)
  const { content } = before
  const end = awaitedFrom(content)
  const given = content.slice(0, end)
  const { messages, outcome, recall } = yield* compressIn({ read: groupsOf, write: itemMessages }, given, options)
  return {
    outcome,
    prompt: messages === given ? before : Prompt.fromMessages([...messages, ...content.slice(end)]),
    recall
  }
})
