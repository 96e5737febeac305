/**
 * Any `effect/ai` language model with a window that is never exceeded: one layer between a program and its provider. The
 * program keeps its whole history and sends it with every call, as before.
 *
 *   node language-model.ts
 *
 * It needs no key and no network: the model is scripted. With a real provider, put its layer (for example that of
 * @effect/ai-openai) in place of ScriptedLanguageModel. It prints:
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
import { CompressedLanguageModel, Content, RecallTool } from "palimpsest"
import { Offline, ScriptedLanguageModel } from "palimpsest/testing"

// --- your tools, unchanged ---------------------------------------------------------------------------------------------

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

/** The tools of the model: yours, and the one that reads back what left the window. */
const tools = Toolkit.merge(Files, RecallTool.recallToolkit)

// --- the provider; here it is scripted -------------------------------------------------------------------------------------

const text = (request: ProviderOptions) => JSON.stringify(request.prompt.content)

/** Reads one file per turn. When asked for the first file, it finds the handle in the snapshot and recalls it. */
const Provider = ScriptedLanguageModel.layer((request, index) => {
  if (index < 20) {
    return [{ type: "tool-call", id: `call-${index}`, name: "read_file", params: { path: `src/module${index}.ts` } }]
  }
  if (index === 20) {
    const [, handle] = Content.mentions(text(request))
    return [{ type: "tool-call", id: "recall-1", name: "recall", params: { handle, from: 1, to: 1 } }]
  }
  return "It was module 0: 40 lines of src/module0.ts"
})

// --- the one layer between them --------------------------------------------------------------------------------------------

/** A small window, so that a short conversation shows the effect. `{ model: "gemini-2.5-pro" }` takes the window of a model. */
const Model = CompressedLanguageModel.layer({ window: 12_000, reserve: 1_000 }).pipe(
  Layer.provideMerge(Provider),
  // The token counter, the summarizer (here: code) and the store. compose.ts shows how to combine them otherwise.
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

const Runtime = Layer.provideMerge(Layer.merge(FilesLayer, RecallTool.layerRecallTool), Model)

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
