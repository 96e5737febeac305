/**
 * A turn that is interrupted: the request ends at once, and the conversation is as it was before.
 *
 *   node interruption.ts
 *
 * It needs no key and no network: the model is scripted. It prints:
 *
 *   asked        the model does not answer
 *   interrupted  1 request was ended; the conversation has 0 messages
 *   asked again  Four.
 */
import { Console, Effect, Fiber, Stream } from "effect"
import { Chats, Conversation, Palimpsest } from "palimpsest"
import { ScriptedModel } from "palimpsest/testing"

const Runtime = Palimpsest.layer({ model: ScriptedModel.layer([ScriptedModel.hang, "Four."]) })

const program = Effect.gen(function* () {
  const chat = yield* Chats.open("sums")
  const turn = yield* Effect.forkChild(Stream.runDrain(chat.send("Two and two?")))
  yield* Console.log("asked        the model does not answer")
  yield* Effect.sleep("50 millis")
  // A time limit, a closed connection, a sibling that failed: whatever interrupts the fiber.
  yield* Fiber.interrupt(turn)
  const messages = Conversation.entries(yield* chat.conversation).length
  yield* Console.log(`interrupted  1 request was ended; the conversation has ${messages} messages`)
  const events = yield* Stream.runCollect(chat.send("Two and two?"))
  yield* Console.log(`asked again  ${events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join("")}`)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Runtime)))
