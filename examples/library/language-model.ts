/**
 * Any `effect/ai` language model with a window that is never exceeded: one layer between a program and its provider. The
 * program keeps its whole history and sends it with every call, as before: here 200 turns with a tool, in 8,000 tokens.
 *
 *   node language-model.ts
 *
 * It needs no key and no network: the model is scripted. With a real provider, put its layer in place of
 * ScriptedLanguageModel: that of an @effect/ai package, or Models.layerLanguageModel over one of ours. It prints:
 *
 *   call 1    2 messages reach the model
 *   call 200  … messages reach the model, of 400 that were said
 *   answer    It was module 0: 40 lines of src/module0.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Chat, type LanguageModel, Tool, Toolkit } from "effect/ai"
import { Content, ContextWindow } from "palimpsest"
import { ScriptedLanguageModel } from "palimpsest/testing"

// --- your tools -------------------------------------------------------------------------------------------------------------

const ReadFile = Tool.make("read_file", {
  description: "Reads a file of the project.",
  parameters: Schema.Struct({ path: Schema.String }),
  success: Schema.String
})
const lines = (path: string) => Array.from({ length: 40 }, (_, line) => `${line}: export const value${line} = "${path}"`)
const Files = Toolkit.make(ReadFile)
const FilesLayer = Files.toLayer({ read_file: ({ path }) => Effect.succeed([`40 lines of ${path}`, ...lines(path)].join("\n")) })

/** The tools of the model: yours, and the one that reads back what left the window. */
const tools = Toolkit.merge(Files, ContextWindow.recallToolkit)

// --- the provider; here it is scripted -----------------------------------------------------------------------------------------

const text = (request: LanguageModel.ProviderOptions) => JSON.stringify(request.prompt.content)

/** Reads one file per turn. When asked for the first file, it finds it with the tool, and recalls it. */
const Provider = ScriptedLanguageModel.layer((request, index) => {
  if (index < 200) {
    return [{ type: "tool-call", id: `call-${index}`, name: "read_file", params: { path: `src/module${index}.ts` } }]
  }
  if (index === 200) return [{ type: "tool-call", id: "recall-1", name: "recall", params: { grep: "40 lines of src/module0.ts" } }]
  if (index === 201) {
    const found = text(request).lastIndexOf("src/module0.ts")
    const handle = Content.mentions(text(request).slice(0, found)).at(-1)
    return [{ type: "tool-call", id: "recall-2", name: "recall", params: { handle, from: 1, to: 1 } }]
  }
  return "It was module 0: 40 lines of src/module0.ts"
})

// --- the one layer between them ------------------------------------------------------------------------------------------------

const Model = ContextWindow.layer({ window: 8_000 }).pipe(Layer.provideMerge(Provider), Layer.provideMerge(FilesLayer))

const program = Effect.gen(function* () {
  const requests = yield* ScriptedLanguageModel.Script
  const reached = Effect.map(requests.requests, (all) => all.at(-1)?.prompt.content.length ?? 0)
  const chat = yield* Chat.fromPrompt([{ role: "system", content: "You read files." }])
  for (let turn = 1; turn <= 200; turn += 1) {
    yield* chat.generateText({ prompt: turn === 1 ? "Read all modules, one by one." : [], toolkit: tools })
    const said = turn === 200 ? `, of ${2 * turn} that were said` : ""
    if (turn === 1 || turn === 200) {
      yield* Console.log(`call ${String(turn).padEnd(4)} ${yield* reached} messages reach the model${said}`)
    }
  }
  let answer = yield* chat.generateText({ prompt: "Which module was the first?", toolkit: tools })
  while (answer.toolCalls.length > 0) answer = yield* chat.generateText({ prompt: [], toolkit: tools })
  yield* Console.log(`answer    ${answer.text}`)
})

// A key makes it one of many conversations; with a durable store it goes on after a restart.
await Effect.runPromise(program.pipe(ContextWindow.withConversation("tenant/42"), Effect.provide(Model)))
