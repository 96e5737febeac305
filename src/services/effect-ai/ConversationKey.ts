/** Names the conversation that a call belongs to. */

import { Context, Effect, Stream } from "effect"

/** The key of the current conversation; undefined outside of `withConversation`. */
export const ConversationKey = Context.Reference<string | undefined>("palimpsest/services/effect-ai/ConversationKey", {
  defaultValue: () => undefined
})

/** An effect or a stream. */
type EffectOrStream = Effect.Effect<unknown, unknown, unknown> | Stream.Stream<unknown, unknown, unknown>

/**
 * Says which conversation the calls of an effect or a stream belong to, for example `withConversation("tenant/42")`.
 *
 * *Details*: every call of the bounded language model within it is recorded in the session of this key when it is compressed, and `Recall` looks up
 * handles in this conversation only. After a restart the conversation continues where it was, if the `SessionStore` is durable. Any text is a key.
 *
 * **Example** (Naming the conversation of a call)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { LanguageModel } from "effect/ai"
 * import { ContextWindow } from "palimpsest"
 * import { ScriptedLanguageModel } from "palimpsest/testing"
 *
 * const Bounded = ContextWindow.layer({ window: 8_000 }).pipe(
 *   Layer.provide(ScriptedLanguageModel.layer(["Hello."]))
 * )
 * const answer = LanguageModel.generateText({ prompt: "Hi" }).pipe(
 *   ContextWindow.withConversation("tenant/42"),
 *   Effect.provide(Bounded)
 * )
 * console.log((await Effect.runPromise(answer)).text) // => Hello.
 * ```
 */
export const withConversation =
  (key: string) =>
  <W extends EffectOrStream>(self: W): W => {
    const provided: EffectOrStream = Stream.isStream(self)
      ? Stream.provideService(self, ConversationKey, key)
      : Effect.provideService(self, ConversationKey, key)
    // A reference changes no type.
    return provided as W
  }
