/**
 * The agent of the command line in your program: it works in a folder, with all tools, memory, hooks and subagents, and all
 * child processes end with its layer. The model is scripted, so this runs without a key; leave `model` out to use Gemini.
 *
 *   npm install @effect/platform-node
 *   node runtime.ts
 *
 * It prints:
 *
 *   asked: write_file notes.md
 *   write_file: success
 *   I wrote notes.md.
 *   Written by the agent.
 */
import { Effect, Layer, Stream } from "effect"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { AgentRuntime, Content } from "palimpsest"
import { LiveRuntime } from "palimpsest/node"
import { ScriptedModel } from "palimpsest/testing"

const folder = mkdtempSync(path.join(tmpdir(), "agent-"))
const file = path.join(folder, "notes.md")

const program = Effect.gen(function* () {
  const agent = yield* AgentRuntime.Runtime
  yield* agent.send("Write a note.").pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => {
        if (event._tag === "ToolCallResponse") console.log(`${event.name}: ${event.status}`)
        if (event._tag === "Content") console.log(event.text)
      })
    )
  )
  console.log(readFileSync(file, "utf8").trim())
})

const script = ScriptedModel.layer([
  {
    content: Content.model(Content.call("write_file", { file_path: "notes.md", content: "Written by the agent.\n" }, "1")),
    finishReason: "STOP",
    usage: null
  },
  "I wrote notes.md."
])

const agent = AgentRuntime.layer({
  handlers: {
    notify: (notice) => Effect.logWarning(notice),
    ask: ({ title }) =>
      Effect.sync(() => {
        console.log(`asked: ${title}`)
        return { _tag: "Once" }
      })
  }
}).pipe(Layer.provide(LiveRuntime.layer({ folder, home: path.join(folder, ".home"), model: script })))

await Effect.runPromise(program.pipe(Effect.provide(agent)))
