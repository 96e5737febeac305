/**
 * What a program's own tracer sees of a chat, and a chat that is set up by Effect's Config: spans with the attributes of OpenTelemetry's
 * conventions for generative AI, and nobody's words. A tracer of @effect/opentelemetry takes the place of the one here. The model is
 * scripted, so this needs no key.
 *
 *   MODEL=scripted WINDOW=2000 node tracing.ts
 *
 * It prints:
 *
 *   12 turns of the chat "story"
 *   … compressions, the first from … to … tokens
 *   the old bridge stands in 0 of them
 */
import { Config, Effect, Layer, Stream, Tracer } from "effect"
import { Chats, Palimpsest } from "palimpsest"
import { ScriptedModel } from "palimpsest/testing"

const Model = ScriptedModel.layer(() => "The river rose, and the old bridge held once more. ".repeat(40))

const Runtime = Layer.unwrap(
  Effect.gen(function* () {
    const model = yield* Config.String("MODEL").pipe(Config.withDefault("scripted"))
    const window = yield* Config.Int("WINDOW").pipe(Config.withDefault(2_000))
    return Palimpsest.layer({ model: Model, chat: { model, window, policy: { summarizer: "extractive" } } })
  })
)

const spans: Array<Tracer.NativeSpan> = []
const recording = Tracer.make({
  span(options) {
    const span = new Tracer.NativeSpan(options)
    spans.push(span)
    return span
  }
})

const program = Effect.gen(function* () {
  const chat = yield* Chats.open("story")
  for (let n = 0; n < 12; n += 1) yield* Stream.runDrain(chat.send(`Tell me chapter ${n}.`))
}).pipe(Effect.scoped, Effect.provide(Runtime), Effect.withTracer(recording))

await Effect.runPromise(program)
const called = (name: string) => spans.filter((span) => span.name === name).map(({ attributes }) => Object.fromEntries(attributes))
const turns = called("Chat.turn").filter((turn) => turn["gen_ai.conversation.id"] === "story")
const compressions = called("Compression.compress").filter(({ outcome }) => outcome === "COMPRESSED")
console.log(`${turns.length} turns of the chat "story"`)
console.log(`${compressions.length} compressions, the first from ${compressions[0]?.["before"]} to ${compressions[0]?.["after"]} tokens`)
console.log(`the old bridge stands in ${spans.filter(({ attributes }) => /old bridge/.test(JSON.stringify([...attributes]))).length} of them`)
