/**
 * An agent of your own: a Markdown file in the folder `agents` of the home. The model sees it as a tool, starts it with a task, and gets only its
 * result: what the agent read on the way stays in a conversation of its own.
 *
 *   npm install @effect/platform-node
 *   node own-agent.ts
 *
 * It needs no key and no network: one script answers for both. It prints:
 *
 *   offered   reviewer: Reviews a change and lists what is wrong with it.
 *   reviewer  CallStarted read_file
 *   reviewer  CallStarted complete_task
 *   reviewer  success
 *   answer    The reviewer found one error.
 */
import { Effect, Layer, Stream } from "effect"
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { AgentRuntime, Content, type Models } from "palimpsest"
import { LiveRuntime } from "palimpsest/node"
import { ScriptedModel } from "palimpsest/testing"

const folder = mkdtempSync(path.join(tmpdir(), "agent-"))
const home = path.join(folder, ".home")
writeFileSync(path.join(folder, "sum.ts"), "export const sum = (a: number, b: number) => a - b\n")

// docs/agents.md has the other fields.
mkdirSync(path.join(home, "agents"), { recursive: true })
writeFileSync(
  path.join(home, "agents", "reviewer.md"),
  `---
name: reviewer
description: Reviews a change and lists what is wrong with it.
tools: [read_file]
max_turns: 20
---

You review changes. Say what is wrong, where, and how you know.
`
)

// --- the model; here it is scripted --------------------------------------------------------------------------------------------

const calls = (name: string, args: Readonly<Record<string, string>>): Models.ModelAnswer => ({
  content: Content.model(Content.call(name, args)),
  finishReason: "STOP",
  usage: null
})
const reviewer = [calls("read_file", { file_path: "sum.ts" }), calls("complete_task", { result: "sum.ts:1 subtracts." })]
const main = [calls("reviewer", { query: "Review sum.ts." }), "The reviewer found one error."]

/** Each has its own instruction, and here its own answers. */
const Model = ScriptedModel.layer(({ systemInstruction = "" }) => {
  const script = systemInstruction.startsWith("You review changes.") ? reviewer : main
  return script.shift() ?? "That is all."
})

// --- the program -----------------------------------------------------------------------------------------------------------------

const program = Effect.gen(function* () {
  const agent = yield* AgentRuntime.Runtime
  for (const { definition } of agent.host.definitions.agents) {
    if (definition.name === "reviewer") console.log(`offered   reviewer: ${definition.description}`)
  }
  yield* agent.send("Is sum.ts right?").pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => {
        if (event._tag === "SubagentActivity" && event.activity._tag === "CallStarted") {
          console.log(`${event.agent}  CallStarted ${event.activity.name}`)
        }
        if (event._tag === "ToolCallResponse") console.log(`${event.name}  ${event.status}`)
        if (event._tag === "Content") console.log(`answer    ${event.text}`)
      })
    )
  )
})

const agent = AgentRuntime.layer().pipe(Layer.provide(LiveRuntime.layer({ folder, home, model: Model })))

await Effect.runPromise(program.pipe(Effect.provide(agent)))
