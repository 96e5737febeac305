/**
 * The Chat of `effect/ai` with a history that stays small: only the constructor changes. All messages stay in a session,
 * where they can be recalled, and a compression can be undone.
 *
 *   node effect-chat.ts
 *
 * It needs no key and no network: the model is scripted. It prints:
 *
 *   said      60 messages
 *   history   … messages, exported in … characters
 *   recalled  "Ticket 3: the total of invoice 3 is rounded twice."
 *   undone    … messages
 *   again     the same … messages after a restart
 */
import { Console, Effect, Layer, Ref } from "effect"
import type { Chat } from "effect/ai/Chat"
import { CompressedChat, Conversation } from "palimpsest"
import { Offline, ScriptedLanguageModel } from "palimpsest/testing"

/** The provider. Here it is scripted; use your provider's layer in your program. */
const Model = ScriptedLanguageModel.layer(
  (_, index) => `Noted: ticket ${index} is about src/billing/invoice${index}.ts. ${"I keep it in mind. ".repeat(10)}`
)

/** Sessions in memory. Use FileSessionStore and FileTempStore to keep them on disk. */
const Runtime = Layer.merge(Model, Offline.layer)

/** A program written against the Chat of `effect/ai`, without any knowledge of compression. */
const tell = Effect.fn("tell")(function* (chat: Chat, tickets: number) {
  for (let n = 0; n < tickets; n += 1) {
    yield* chat.generateText({ prompt: `Ticket ${n}: the total of invoice ${n} is rounded twice.` })
  }
})

const length = (chat: Chat) => Effect.map(Ref.get(chat.history), (history) => history.content.length)

/** Replaces `Chat.fromPrompt`. The window is small, so that a short conversation shows the effect. */
const open = CompressedChat.CompressedChat.make({
  session: "tickets",
  prompt: [{ role: "system", content: "You are a helpful assistant." }],
  window: 4_000
})

const program = Effect.gen(function* () {
  const left = yield* Effect.scoped(
    Effect.gen(function* () {
      const chat = yield* open
      yield* tell(chat, 30)
      const { conversation } = yield* chat.session
      yield* Console.log(`said      ${Conversation.entries(conversation).length} messages`)
      const exported = (yield* chat.exportJson).length.toLocaleString("en")
      yield* Console.log(`history   ${yield* length(chat)} messages, exported in ${exported} characters`)

      // Every part has a handle, which reads back what left the history.
      const handle = Conversation.entries(conversation)[6]?.handles[0]
      if (handle !== undefined) yield* Console.log(`recalled  ${JSON.stringify((yield* chat.recall(handle)).text)}`)

      yield* chat.undo
      yield* Console.log(`undone    ${yield* length(chat)} messages`)
      yield* chat.redo
      return yield* length(chat)
    })
  )
  yield* Effect.scoped(
    Effect.gen(function* () {
      const again = yield* length(yield* open)
      yield* Console.log(`again     ${again === left ? "the same" : "other than"} ${left} messages after a restart`)
    })
  )
})

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
