/**
 * Hooks and telemetry: one hook refuses questions about prices, another first refuses a compression and then sets its focus,
 * and telemetry reports the events.
 *
 *   node hooks.ts
 *
 * It needs no key and no network, because a scripted model answers. It prints:
 *
 *   asked with: Answer in one sentence.
 *   refused: a hook stopped this: no prices before Monday
 *   while it is refused: Noop
 *   afterwards: Compressed
 *   told: request, turn, request, hook_stopped, chat_compression
 */
import { Console, Effect, Layer, Ref, Stream } from "effect"
import { Chats, Content, Hooks, Records } from "palimpsest"
import { Offline, ScriptedModel } from "palimpsest/testing"

const Model = ScriptedModel.layer(() => "It was built in 1743, of oak.")
const Runtime = Layer.provide(
  Layer.provideMerge(Offline.layerWithModel(Model), Model),
  Layer.succeed(Chats.ChatDefaults, {
    model: "gemini-2.5-flash",
    systemInstruction: "Answer in one sentence.",
    policy: { summarizer: "extractive" }
  })
)

const program = Effect.gen(function* () {
  const hooks = yield* Hooks.HookSystem
  const isBusy = yield* Ref.make(true)
  yield* hooks.subscribe("subject", (event) =>
    Effect.succeed(
      event._tag === "BeforeModel" && event.request.messages.at(-1)?.content.includes("price") === true
        ? { decision: "block" as const, reason: "no prices before Monday" }
        : {}
    )
  )
  yield* hooks.subscribe("keeper", (event) =>
    Effect.map(Ref.get(isBusy), (busy) =>
      event._tag !== "PreCompress"
        ? {}
        : busy
          ? { decision: "block" as const, reason: "the answer is being read" }
          : { hookSpecificOutput: { focus: "what the bridge is made of" } }
    )
  )
  const telemetry = Records.Telemetry.make({ sinks: [], buffer: 100, prompts: false, logs: false })
  yield* telemetry.compressions

  const chat = yield* Chats.open("bridge")
  const say = (words: string) =>
    telemetry.watch("bridge", words, chat.send(words)).pipe(
      Stream.runForEach((event) =>
        event._tag === "HookStopped" ? Console.log(`refused: ${event.message}`) : Effect.void
      ),
      Effect.ignore
    )
  yield* say("When was the old bridge built?")
  const { calls } = yield* ScriptedModel.Script
  const [first] = yield* calls
  yield* Console.log(`asked with: ${first?.request.systemInstruction}`)
  yield* say("And the price?")

  for (let n = 0; n < 6; n += 1) {
    const words = Array.from({ length: 300 }, (_, at) => `Plank ${n * at} of the old bridge is made of oak.`).join(" ")
    yield* chat.append([{ content: Content.user(Content.text(`Tell me of part ${n}.`)) }, { content: Content.model(Content.text(words)) }])
  }
  yield* Console.log(`while it is refused: ${(yield* chat.compress())._tag}`)
  yield* Ref.set(isBusy, false)
  const outcome = yield* chat.compress()
  yield* Console.log(`afterwards: ${outcome._tag}`)
  const { records } = yield* telemetry.recent
  yield* Console.log(`told: ${records.map(({ name }) => name).join(", ")}`)
}).pipe(Effect.scoped, Effect.provide(Runtime))

await Effect.runPromise(program)
