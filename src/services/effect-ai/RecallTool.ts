/** The tool `recall` for programs on `effect/ai`, by which a model reads what left its prompt. */

import { Context, Effect, Schema } from "effect"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { Handle } from "../../domain/content/Handle.ts"
import { empty } from "../../domain/conversation/Conversation.ts"
import type { Excerpt, Selection } from "../../domain/conversation/Excerpt.ts"
import type { FoundParts, RecallSearch } from "../../domain/conversation/RecallSearch.ts"
import type { BadPattern } from "../platform/Patterns.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import type { TempStoreError } from "../session/TempStore.ts"
import { recall as recallWith } from "../tools/builtin/Recall.ts"
import { unwatchedCall } from "../tools/Tool.ts"
import * as PromptRecall from "./PromptRecall.ts"

/** Reads content that a compression removed from a prompt. */
export class Recall extends Context.Service<
  Recall,
  {
    /**
     * Returns the exact text behind a handle, or the requested part of it.
     *
     * *Details*: with a `CompressedLanguageModel`, the handle is looked up in the prompt of the call for which a tool
     * runs; otherwise in the prompt given to `Recall.within`; otherwise in the only conversation, which exists as
     * long as each prompt continued the previous one. Once a prompt did not, even if it was only shorter, handles
     * outside a call are found only with `Recall.within`. A program with several conversations must always name the
     * one it means, because two conversations with the same beginning cannot be distinguished until they differ.
     */
    readonly recall: (
      handle: Handle,
      selection?: Selection
    ) => Effect.Effect<Excerpt, TempStoreError | BadPattern | SessionStoreError>
    /** Searches everything that a compression removed, in the same conversation as `recall`. */
    readonly search: (
      request: RecallSearch
    ) => Effect.Effect<FoundParts, TempStoreError | BadPattern | SessionStoreError>
  }
>()("palimpsest/services/RecallTool/Recall") {
  /**
   * Looks up handles in this history, for tools that run outside of the model's call and for programs that recall by themselves. Pass the whole
   * history as it is sent to the model.
   */
  static readonly within =
    (prompt: Prompt.RawInput) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.updateContext(effect, PromptRecall.withPrompt(Prompt.make(prompt)))
}

/** The tool by which a model reads content that it sees only as a handle. */
export const recallTool = Tool.make("recall", {
  description:
    "Returns content that was removed from the conversation, exactly. Pass a handle (h_…) from a snapshot or a shortened output; for long texts, request lines or matching lines. Without a handle, grep searches everything that was removed and returns the matching lines with their handles.",
  parameters: Schema.Struct({
    handle: Schema.optionalKey(Schema.String).annotate({
      description: "The handle, for example h_abcdefghij. Omit it to search everything"
    }),
    from: Schema.optionalKey(Schema.Natural).annotate({ description: "The first line, counted from 1" }),
    to: Schema.optionalKey(Schema.Natural).annotate({ description: "The last line" }),
    grep: Schema.optionalKey(Schema.String).annotate({ description: "A regular expression that the lines match" })
  }),
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return"
})

/**
 * A toolkit with this tool only. `Toolkit.merge(mine, recallToolkit)` adds it to others.
 *
 * **Example** (Giving a model the tool that reads what left its window)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { ContextWindow } from "palimpsest"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const Provider = ScriptedLanguageModel.layer([
 *   [{ type: "tool-call", id: "1", name: "recall", params: { grep: "bridge" } }]
 * ])
 * const Bounded = ContextWindow.layer({ window: 8_000 }).pipe(Layer.provide(Provider))
 * const answer = LanguageModel.generateText({ prompt: "Hi", toolkit: ContextWindow.recallToolkit })
 * console.log((await Effect.runPromise(Effect.provide(answer, Bounded))).toolResults.length) // => 1
 * ```
 */
export const recallToolkit = Toolkit.make(recallTool)

/** The handler of the tool. */
export type RecallHandler = Tool.HandlersFor<typeof recallToolkit.tools>

/**
 * Runs the tool by the `Recall` service of the context. Failures go to the model as text. Secrets are removed from what the model receives, unless
 * `redactSecrets` is false; a program that calls `Recall` itself gets everything exactly.
 */
export const layerRecallToolWith = ({ redactSecrets }: { readonly redactSecrets: boolean }) =>
  recallToolkit.toLayer(
    Effect.map(Recall, (service) => {
      const settings = Effect.succeed({ model: "", policy: { redactSecrets } })
      const source = { ...service, conversation: Effect.succeed(empty), settings }
      const tool = recallWith(source, Effect.succeed([]), () => "the program that stores them can read them")
      return recallToolkit.of({
        recall: (args) =>
          tool.call(args, unwatchedCall("", "effect-ai")).pipe(
            Effect.flatMap(({ run }) => run),
            Effect.mapBoth({ onFailure: ({ message }) => message, onSuccess: ({ value }) => String(value) })
          )
      })
    })
  )

/** The tool, with secrets removed from its results. */
export const layerRecallTool = layerRecallToolWith({ redactSecrets: true })
