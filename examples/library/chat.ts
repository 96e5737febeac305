/**
 * A chat that never overflows: ten long answers, streamed, in a window that holds three of them.
 *
 *   node chat.ts
 *
 * It needs no key and no network, because a scripted model answers. With a real one, put its layer in place of Model, for example
 * AnthropicModel.layerConfig, and its name in place of "scripted"; the window is then looked up. It prints:
 *
 *   room was made … times, at first … → … of 2000 tokens
 *   the largest request had … of 2000 tokens
 *   the conversation holds 20 messages; the first answer begins "Chapter 0."
 */
import { Console, Effect, Layer, Stream } from "effect"
import { Chats, Content, Conversation, Palimpsest, Tokens } from "palimpsest"
import { ScriptedModel } from "palimpsest/testing"

const chapter = (n: number) => `Chapter ${n}. ${"The river rose, and the old bridge held once more. ".repeat(40)}`
const Model = ScriptedModel.layer((_request, index) => chapter(index))

// With `home` or a `store`, the chats are kept on a disk or in a database. Without `policy`, the model writes the snapshots.
const Runtime = Palimpsest.layer({
  model: Model,
  chat: { model: "scripted", window: 2_000, policy: { summarizer: "extractive" } }
}).pipe(Layer.provideMerge(Model))

const program = Effect.gen(function* () {
  const chat = yield* Chats.open("story")
  const compressions: Array<string> = []
  for (let n = 0; n < 10; n += 1) {
    yield* chat.send(`Tell me chapter ${n}.`).pipe(
      Stream.runForEach((event) => {
        if (event._tag === "ChatCompressed") compressions.push(`${event.before} → ${event.after} of ${event.limit} tokens`)
        return Effect.void
      })
    )
  }
  const { calls } = yield* ScriptedModel.Script
  const sizes = yield* Effect.forEach(yield* calls, ({ request }) => Tokens.estimateContents(request))
  yield* Console.log(`room was made ${compressions.length} times, at first ${compressions[0]}`)
  yield* Console.log(`the largest request had ${Math.max(...sizes)} of 2000 tokens`)
  const said = Conversation.entries((yield* chat.whole).conversation)
  const first = said[1] === undefined ? "" : Content.plainText(said[1].content)
  yield* Console.log(`the conversation holds ${said.length} messages; the first answer begins "${first.slice(0, 10)}"`)
}).pipe(Effect.scoped, Effect.provide(Runtime))

await Effect.runPromise(program)
