/**
 * A conversation that is kept, compressed, read back and restored, put together from its layers.
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
import { defaultPolicy, type Policy, statusOf, tokensOf } from "palimpsest/domain/Compression"
import { call, model, response, text, user } from "palimpsest/domain/Content"
import { type Conversation, type Draft, entries, view } from "palimpsest/domain/Conversation"
import { project } from "palimpsest/domain/Projection"
import { TokenCount } from "palimpsest/domain/Tokens"
import * as GoogleModel from "palimpsest/layers/GoogleModel"
import * as MemoryCalibrations from "palimpsest/layers/MemoryCalibrations"
import * as MemorySessionStore from "palimpsest/layers/MemorySessionStore"
import * as MemoryTempStore from "palimpsest/layers/MemoryTempStore"
import { Chats } from "palimpsest/services/Chats"
import { Compression } from "palimpsest/services/Compression"
import { HookSystem } from "palimpsest/services/HookSystem"
import * as ModelSummarizer from "palimpsest/services/ModelSummarizer"
import { Summarizer } from "palimpsest/services/Summarizer"
import { TokenCounter } from "palimpsest/services/TokenCounter"

/** Who writes the snapshot is one layer: Gemini, or code. Give one of the two by name and this is one line. */
const Writer = Layer.unwrap(
  Effect.map(Config.option(Config.NonEmptyString("GEMINI_API_KEY")), (key) =>
    Option.isSome(key) ? ModelSummarizer.layer : Summarizer.layerExtractive
  )
)

/** Each service is a layer, and the one beside it can be put in its place: FileSessionStore for MemorySessionStore, … */
const Runtime = Chats.layer.pipe(
  Layer.provide(Compression.layer),
  Layer.provide([Writer, TokenCounter.layerEstimate, HookSystem.layer, MemorySessionStore.layer]),
  Layer.provide([GoogleModel.layer, MemoryCalibrations.layer, MemoryTempStore.layer])
)

/** Keep little, so that a short conversation shows it. A model is asked where there is one. */
const policy: Policy = { ...defaultPolicy, limit: TokenCount.make(8_000), preserve: 0.2, summarizer: "model" }

/** What your agent would have said and done: a request, then twenty files read. */
const messages: ReadonlyArray<Draft> = [
  { content: user(text("Why is the build red? Do not touch src/legacy.ts.")) },
  ...Array.from({ length: 20 }, (_, n): ReadonlyArray<Draft> => {
    const path = `src/module${n}.ts`
    const lines = Array.from({ length: 40 }, (_, line) => `${line}: export const value${line} = ${n * line}`)
    return [
      { content: model(call("read_file", { path }, `call-${n}`)) },
      {
        content: user(response("read_file", { output: `${path}: 40 lines\n${lines.join("\n")}` }, `call-${n}`))
      }
    ]
  }).flat(),
  { content: model(text("src/module19.ts does not export what src/index.ts imports.")) }
]

/** Messages of a conversation, and the tokens that would be sent. */
const size = (conversation: Conversation) => {
  const tokens = project(conversation).reduce((sum, message) => sum + message.tokens, 0)
  return `${tokens.toLocaleString("en")} tokens in ${view(conversation).length} messages`
}

const program = Effect.gen(function* () {
  const chats = yield* Chats
  const chat = yield* chats.open("support-42")
  const appended = yield* chat.append(messages)
  yield* Console.log(`before      ${size(yield* chat.conversation)}`)

  const outcome = yield* chat.compress({ policy, forced: true })
  const { after, before } = tokensOf(outcome)
  yield* Console.log(`${statusOf(outcome)}  ${before.toLocaleString("en")} → ${after.toLocaleString("en")} tokens`)
  const conversation = yield* chat.conversation
  yield* Console.log(
    `the model now sees ${view(conversation).length} messages, the log holds ${entries(conversation).length}`
  )

  // Every part has a handle. What left the window is read back by it, whole or in part.
  const handle = appended[12]?.handles[0]
  if (handle !== undefined) {
    const excerpt = yield* chat.recall(handle, { lines: [1, 1] })
    yield* Console.log(`recalled    ${JSON.stringify(excerpt.text)}`)
  }

  yield* chat.undo
  yield* Console.log(`undone      ${size(yield* chat.conversation)}`)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Runtime)))
