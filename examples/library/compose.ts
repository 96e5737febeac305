/**
 * Composes a conversation from its layers, then stores, compresses, recalls and restores it.
 *
 *   node compose.ts
 *
 * It needs no key and no network; with GEMINI_API_KEY set, Gemini writes the snapshot. It prints:
 *
 *   before      … tokens in 42 messages
 *   COMPRESSED  … → … tokens
 *   the model now sees … messages, the log holds 42
 *   recalled    "src/module5.ts: 40 lines"
 *   undone      … tokens in 42 messages
 */
import { Config, Console, Effect, Layer, Option } from "effect"
import { Chats, Compression, Content, Conversation, Hooks, Tokens } from "palimpsest"
import { GoogleModel } from "palimpsest/google"
import { MemoryCalibrations, MemorySessionStore, MemoryTempStore } from "palimpsest/testing"

/** The layer that writes the snapshot: Gemini, or code. A program that uses only one of them needs no condition. */
const Writer = Layer.unwrap(
  Effect.map(Config.option(Config.NonEmptyString("GEMINI_API_KEY")), (key) =>
    Option.isSome(key) ? Compression.layerModelSummarizer : Compression.Summarizer.layerExtractive
  )
)

/** Each service is a layer and can be replaced by another one: MemorySessionStore by FileSessionStore, … */
const Runtime = Chats.Chats.layer.pipe(
  Layer.provide(Compression.Compression.layer),
  Layer.provide([Writer, Tokens.TokenCounter.layerEstimate, Hooks.HookSystem.layer, MemorySessionStore.layer]),
  Layer.provide([GoogleModel.layerConfig, MemoryCalibrations.layer, MemoryTempStore.layer])
)

/** Keeps little, so that a short conversation shows the effect. Uses a model if there is one. */
const policy: Compression.Policy = { ...Compression.defaultPolicy, limit: Tokens.TokenCount.make(8_000), preserve: 0.2, summarizer: "model" }

/** Messages of an example agent: a request, then twenty files read. */
const messages: ReadonlyArray<Conversation.Draft> = [
  { content: Content.user(Content.text("Why is the build red? Do not touch src/legacy.ts.")) },
  ...Array.from({ length: 20 }, (_, n): ReadonlyArray<Conversation.Draft> => {
    const path = `src/module${n}.ts`
    const lines = Array.from({ length: 40 }, (_, line) => `${line}: export const value${line} = ${n * line}`)
    return [
      { content: Content.model(Content.call("read_file", { path }, `call-${n}`)) },
      {
        content: Content.user(Content.response("read_file", { output: `${path}: 40 lines\n${lines.join("\n")}` }, `call-${n}`))
      }
    ]
  }).flat(),
  { content: Content.model(Content.text("src/module19.ts does not export what src/index.ts imports.")) }
]

/** The messages of a conversation, and the tokens that would be sent. */
const size = (conversation: Conversation.Conversation) => {
  const tokens = Conversation.projectMessages(conversation).reduce((sum, message) => sum + message.tokens, 0)
  return `${tokens.toLocaleString("en")} tokens in ${Conversation.view(conversation).length} messages`
}

const program = Effect.gen(function* () {
  const chats = yield* Chats.Chats
  const chat = yield* chats.open("support-42")
  const appended = yield* chat.append(messages)
  yield* Console.log(`before      ${size(yield* chat.conversation)}`)

  const outcome = yield* chat.compress({ policy, forced: true })
  const { after, before } = Compression.tokensOf(outcome)
  yield* Console.log(`${Compression.statusOf(outcome)}  ${before.toLocaleString("en")} → ${after.toLocaleString("en")} tokens`)
  const conversation = yield* chat.conversation
  yield* Console.log(
    `the model now sees ${Conversation.view(conversation).length} messages, the log holds ${Conversation.entries(conversation).length}`
  )

  // Every part has a handle. It reads back a part that left the window, whole or in part.
  const handle = appended[12]?.handles[0]
  if (handle !== undefined) {
    const excerpt = yield* chat.recall(handle, { lines: [1, 1] })
    yield* Console.log(`recalled    ${JSON.stringify(excerpt.text)}`)
  }

  yield* chat.undo
  yield* Console.log(`undone      ${size(yield* chat.conversation)}`)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Runtime)))
