/**
 * Any `effect/ai` language model with a window that is never overrun: one layer between a program and its provider. The
 * program keeps its whole history and sends it again with every call, as it always did.
 *
 *   node language-model.ts
 *
 * It needs no key and no network: the model follows a script. With a real provider, put its layer (for example that of
 * @effect/ai-openai) where ScriptedLanguageModel stands. It prints:
 *
 *   call 1    2 messages reach the model
 *   call 8    16 messages reach the model
 *   call 20   … messages reach the model, of 40 that were said
 *   answer    It was module 0: 40 lines of src/module0.ts
 *   first     [palimpsest: written by the runtime, not by the user] …
 */
import { Console, Effect, Layer, Schema } from "effect"
import * as Chat from "effect/ai/Chat"
import type { ProviderOptions } from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { mentions } from "palimpsest/domain/Handle"
import * as Offline from "palimpsest/layers/Offline"
import * as ScriptedLanguageModel from "palimpsest/layers/ScriptedLanguageModel"
import * as CompressedLanguageModel from "palimpsest/services/CompressedLanguageModel"
import { layerRecallTool, recallToolkit } from "palimpsest/services/RecallTool"

// --- your tools, as they are ---------------------------------------------------------------------------------------------

const ReadFile = Tool.make("read_file", {
  description: "Reads a file of the project.",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const Files = Toolkit.make(ReadFile)
const FilesLayer = Files.toLayer(
  Effect.succeed(
    Files.of({
      read_file: ({ path }) =>
        Effect.succeed(
          `40 lines of ${path}\n${Array.from({ length: 40 }, (_, line) => `${line}: export const value${line} = ${line}`).join("\n")}`
        )
    })
  )
)

/** What the model may call: your tools, and the one that reads back what left the window. */
const tools = Toolkit.merge(Files, recallToolkit)

// --- the provider: here a script, in your program its layer ----------------------------------------------------------------

const text = (request: ProviderOptions) => JSON.stringify(request.prompt.content)

/** Reads one file a turn; asked for the first one, finds its handle in the snapshot and recalls it. */
const Provider = ScriptedLanguageModel.layer((request, index) => {
  if (index < 20) {
    return [{ type: "tool-call", id: `call-${index}`, name: "read_file", params: { path: `src/module${index}.ts` } }]
  }
  if (index === 20) {
    const [, handle] = mentions(text(request))
    return [{ type: "tool-call", id: "recall-1", name: "recall", params: { handle, from: 1, to: 1 } }]
  }
  return "It was module 0: 40 lines of src/module0.ts"
})

// --- the one layer between them --------------------------------------------------------------------------------------------

/** A small window, so that a short conversation shows it. `{ model: "gemini-2.5-pro" }` would say it by name. */
const Model = CompressedLanguageModel.layer({ window: 12_000, reserve: 1_000 }).pipe(
  Layer.provideMerge(Provider),
  // Who counts, who writes snapshots (here: code), where bytes are kept. Each can be put together otherwise: see compose.ts.
  Layer.provide(Offline.layer)
)

const program = Effect.gen(function* () {
  const requests = yield* ScriptedLanguageModel.Script
  const reached = Effect.map(requests.requests, (all) => all.at(-1)?.prompt.content ?? [])
  const chat = yield* Chat.fromPrompt([{ role: "system", content: "You read files." }])
  for (let turn = 1; turn <= 20; turn += 1) {
    yield* chat.generateText({ prompt: turn === 1 ? "Read all modules, one by one." : [], toolkit: tools })
    const messages = (yield* reached).length
    const said = turn === 20 ? `, of ${2 * turn} that were said` : ""
    if (turn === 1 || turn === 8 || turn === 20) {
      yield* Console.log(`call ${String(turn).padEnd(4)} ${messages} messages reach the model${said}`)
    }
  }
  const asked = yield* chat.generateText({ prompt: "Which module was the first?", toolkit: tools })
  const answer = asked.toolCalls.length === 0 ? asked : yield* chat.generateText({ prompt: [], toolkit: tools })
  yield* Console.log(`answer    ${answer.text}`)
  const snapshot = (yield* reached).find((message) => message.role === "user")?.content[0]
  yield* Console.log(`first     ${snapshot?.type === "text" ? snapshot.text.slice(0, 100) : ""}`)
})

const Runtime = Layer.provideMerge(Layer.merge(FilesLayer, layerRecallTool), Model)

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
