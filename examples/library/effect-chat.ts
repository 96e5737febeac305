/**
 * `effect/ai`'s Chat, of which the history itself stays small: only the constructor changes. Everything that was said stays
 * in a session; it can be recalled, and a compression undone.
 *
 *   node effect-chat.ts
 *
 * It needs no key and no network: the model follows a script. It prints:
 *
 *   said      60 messages
 *   history   … messages, exported in … characters
 *   recalled  "Ticket 3: the total of invoice 3 is rounded twice."
 *   undone    … messages
 *   again     the same … messages after a restart
 */
import { Console, Effect, Layer, Ref } from "effect"
import type { Chat } from "effect/ai/Chat"
import { entries } from "palimpsest/domain/Conversation"
import * as Offline from "palimpsest/layers/Offline"
import * as ScriptedLanguageModel from "palimpsest/layers/ScriptedLanguageModel"
import { CompressedChat } from "palimpsest/services/CompressedChat"

/** The provider: here a script, in your program its layer. */
const Model = ScriptedLanguageModel.layer(
  (_, index) => `Noted: ticket ${index} is about src/billing/invoice${index}.ts. ${"I keep it in mind. ".repeat(10)}`
)

/** Sessions in memory; put FileSessionStore and FileTempStore in their places to find them again tomorrow. */
const Runtime = Layer.merge(Model, Offline.layer)

/** A program that knows `effect/ai`'s Chat and nothing of compression. */
const tell = Effect.fn("tell")(function* (chat: Chat, tickets: number) {
  for (let n = 0; n < tickets; n += 1) {
    yield* chat.generateText({ prompt: `Ticket ${n}: the total of invoice ${n} is rounded twice.` })
  }
})

const length = (chat: Chat) => Effect.map(Ref.get(chat.history), (history) => history.content.length)

/** Instead of `Chat.fromPrompt`; a small window, so that a short conversation shows it. */
const open = CompressedChat.make({
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
      yield* Console.log(`said      ${entries(conversation).length} messages`)
      const exported = (yield* chat.exportJson).length.toLocaleString("en")
      yield* Console.log(`history   ${yield* length(chat)} messages, exported in ${exported} characters`)

      // Every part has a handle, in a snapshot or here: what left the history is read back by it.
      const handle = entries(conversation)[6]?.handles[0]
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
