import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import type { Outcome } from "../../domain/compression/Compression.ts"
import { projectMessages } from "../../domain/conversation/Projection.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { awaitedFrom } from "../../domain/effect-ai/PromptRepair.ts"
import { arrange, viewMessage } from "../../domain/effect-ai/PromptView.ts"
import {
  compressDrafts,
  type CompressedMessages,
  type CompressMessagesError,
  type CompressMessagesOptions,
  type CompressMessagesServices,
  keepShown
} from "../compression/CompressMessages.ts"
import { toMessages } from "./LanguageModelBridge.ts"

/** The result of a compression of a prompt. */
export interface CompressedPrompt {
  readonly outcome: Outcome
  /** The prompt to send from now on; the same object where nothing changed. */
  readonly prompt: Prompt.Prompt
  /** Returns the exact text behind a handle in the prompt. */
  readonly recall: CompressedMessages<unknown>["recall"]
}

/**
 * Compresses a prompt of `effect/ai`. System messages stay, and so do messages that `effect/ai` still has to process.
 * `ContextWindow.layer` does this for every call of a language model.
 */
export const prompt = Effect.fn("Compress.prompt")(function* (
  input: Prompt.RawInput,
  options: CompressMessagesOptions = {}
): Effect.fn.Return<CompressedPrompt, CompressMessagesError, CompressMessagesServices> {
  const before = Prompt.make(input)
  const { content } = before
  const end = awaitedFrom(content)
  const drafts = content
    .slice(0, end)
    .flatMap((message, at) =>
      message.role === "system" ? [] : [{ content: toContent(message), origin: { line: at + 1, ids: [] } }]
    )
  const { after, outcome, recall } = yield* compressDrafts(drafts, options)
  if (after === undefined) return { outcome, prompt: before, recall }
  const inserted = new Map(projectMessages(after).map((sent) => [sent.entry, sent.content]))
  const first = (drafts[0]?.origin.line ?? end + 1) - 1
  /** The system messages directly before an index. */
  const systemBefore = (index: number) => {
    let from = index
    while (content[from - 1]?.role === "system") from -= 1
    return content.slice(from, index)
  }
  const sent = arrange<Prompt.Message>(after, {
    leading: content.slice(0, first),
    before: ({ origin }) => (origin === undefined || origin.line - 1 <= first ? [] : systemBefore(origin.line - 1)),
    shown: (item) => {
      const { entry, shortened } = item
      const own = entry.origin === undefined ? undefined : content[entry.origin.line - 1]
      if (own !== undefined && shortened.size === 0) return [own]
      const rebuilt = viewMessage(item)
      const made = inserted.get(entry.id)
      return rebuilt !== undefined ? [rebuilt] : made === undefined ? [] : toMessages([made]).flat()
    },
    trailing: systemBefore(end)
  })
  const given = new Set(content)
  yield* keepShown(
    sent.flatMap((message) => (given.has(message) || message.role === "system" ? [] : [toContent(message)])),
    recall
  )
  return { outcome, prompt: Prompt.fromMessages([...sent, ...content.slice(end)]), recall }
})
