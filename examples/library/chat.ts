/**
 * A chat that never overflows: ten long answers in a window that holds three of them, streamed as they come.
 *
 *   node chat.ts
 *
 * It needs no key and no network, because a scripted model answers: put GoogleModel.layer in its place and Gemini does.
 * It prints:
 *
 *   turn 2: made room: … → … of 2000 tokens
 *   turn 4: made room: … → … of 2000 tokens
 *   turn 6: made room: … → … of 2000 tokens
 *   turn 8: made room: … → … of 2000 tokens
 *   4 times room was made; the largest request had … of 2000 tokens
 *   the conversation holds 20 messages; the first answer begins "Chapter 0."
 */
import { Console, Effect, Layer, Stream } from "effect"
import { plainText } from "palimpsest/domain/Content"
import { entries } from "palimpsest/domain/Conversation"
import * as MemoryCalibrations from "palimpsest/layers/MemoryCalibrations"
import * as MemorySessionStore from "palimpsest/layers/MemorySessionStore"
import * as MemoryTempStore from "palimpsest/layers/MemoryTempStore"
import { Chats } from "palimpsest/services/Chats"
import { ChatDefaults } from "palimpsest/services/ChatSettings"
import { Compression } from "palimpsest/services/Compression"
import { HookSystem } from "palimpsest/services/HookSystem"
import { Summarizer } from "palimpsest/services/Summarizer"
import { TokenCounter } from "palimpsest/services/TokenCounter"
import { estimate } from "palimpsest/services/Calibrations"
import * as ScriptedModel from "palimpsest/testing/ScriptedModel"

const chapter = (n: number) => `Chapter ${n}. ${"The river rose, and the old bridge held once more. ".repeat(40)}`
const Model = ScriptedModel.layer((_request, index) => chapter(index))

const Runtime = Chats.layer.pipe(
  Layer.provide(Compression.layer),
  Layer.provide([Summarizer.layerExtractive, TokenCounter.layerEstimate, HookSystem.layer, MemorySessionStore.layer]),
  Layer.provide([MemoryCalibrations.layer, MemoryTempStore.layer]),
  Layer.provide(Layer.succeed(ChatDefaults, { model: "gemini-2.5-flash", window: 2_000 })),
  Layer.provideMerge(Model)
)

const program = Effect.gen(function* () {
  const chat = yield* Chats.use((chats) => chats.open("story"))
  let compressions = 0
  for (let n = 0; n < 10; n += 1) {
    yield* chat.send(`Tell me chapter ${n}.`).pipe(
      Stream.runForEach((event) => {
        if (event._tag !== "ChatCompressed") return Effect.void
        compressions += 1
        return Console.log(`turn ${n}: made room: ${event.before} → ${event.after} of ${event.limit} tokens`)
      })
    )
  }
  const { calls } = yield* ScriptedModel.Script
  const sizes = yield* Effect.forEach(yield* calls, ({ request }) => estimate(request))
  yield* Console.log(
    `${compressions} times room was made; the largest request had ${Math.max(...sizes)} of 2000 tokens`
  )
  const said = entries((yield* chat.whole).conversation)
  const first = said[1] === undefined ? "" : plainText(said[1].content)
  yield* Console.log(`the conversation holds ${said.length} messages; the first answer begins "${first.slice(0, 10)}"`)
}).pipe(Effect.scoped, Effect.provide(Runtime))

await Effect.runPromise(program)
