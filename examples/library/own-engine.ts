/**
 * Your own strategy in a chat, not built on another one: it keeps the newest six messages and the turn that they are in, leaves a list of the requests that left,
 * and shows only the first line of older tool results. A chat uses it when its policy names it.
 *
 *   node own-engine.ts
 *
 * It prints:
 *
 *   turn 1: 2 messages in the window
 *   turn 2: 4 messages in the window
 *   turn 3: 6 messages in the window
 *   turn 4: 8 messages in the window
 *   turn 5: 10 messages in the window
 *   turn 6: compressed, 9 messages in the window
 *   closed after 6 turns
 */
import { Console, Effect, Layer, Ref, Stream } from "effect"
import { Chats, Compression, Content, Conversation } from "palimpsest"
import { Offline, ScriptedModel } from "palimpsest/testing"

/** Shows the first line of results that are older than the newest six messages. */
const assemble = ({ conversation }: Compression.AssembleRequest) => {
  const shorten = Conversation.view(conversation).slice(0, -6).flatMap(({ entry }) =>
    entry.content.parts.flatMap((original, part) => {
      if (!Content.isResponse(original)) return []
      const output = `${(Content.outputText(original) ?? "").split("\n")[0]} (all of it: recall ${entry.handles[part]})`
      return [{ entry: entry.id, part, replacement: Content.withOutput(original, output) }]
    })
  )
  return Effect.succeed({ shorten })
}

const diary = Compression.ownRunner({
  name: "diary",
  description: "to a list of what was asked",
  trigger: (window) => window * 0.6,
  cut: (items) => items.findLastIndex(({ entry }, at) => at <= items.length - 6 && Conversation.beginsTurn(entry)),
  write: (gone) => {
    const asked = gone.filter(Conversation.isFromUser).map(({ content }) => `\n- ${Content.plainText(content).slice(0, 80)}`)
    return Effect.succeed(`The user asked before:${asked.join("")}`)
  },
  open: Effect.fnUntraced(function* () {
    const turns = yield* Ref.make(0)
    yield* Effect.addFinalizer(() => Effect.flatMap(Ref.get(turns), (n) => Console.log(`closed after ${n} turns`)))
    return { assemble, afterTurn: () => Ref.update(turns, (n) => n + 1) }
  })
})

const program = Effect.gen(function* () {
  const chat = yield* Chats.open("example")
  yield* chat.configure({ window: 2_000, policy: { strategy: Compression.OwnStrategyName.make("diary") } })
  for (const n of [1, 2, 3, 4, 5, 6]) {
    const events = yield* Stream.runCollect(chat.send(`Tell me about part ${n}. ${"Be thorough. ".repeat(10)}`))
    const compressed = events.some(({ _tag }) => _tag === "ChatCompressed") ? "compressed, " : ""
    yield* Console.log(`turn ${n}: ${compressed}${Conversation.view(yield* chat.conversation).length} messages in the window`)
  }
})

const model = Offline.layerWithModel(ScriptedModel.layer(() => "This part does what its name says. ".repeat(30)))
const Services = Layer.provide(model, Layer.succeed(Compression.OwnStrategies, [diary]))
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Services)))
