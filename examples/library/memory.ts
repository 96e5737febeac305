/**
 * Memory, settings and the workspace of an agent, from your program: what a user would write into settings.json and memory files, and what the
 * tools of the agent may open.
 *
 *   npm install @effect/platform-node
 *   node memory.ts
 *
 * It prints:
 *
 *   setting    compressionThreshold is 0.4
 *   planned    +- Run the tests with npm test.
 *   memory     - Run the tests with npm test.
 *   prompt     has the fact: true
 *   workspace  ../secret.txt is outside the workspace; only files in … may be used
 */
import { Effect } from "effect"
import { mkdirSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { AgentRuntime, Settings, Workspace } from "palimpsest"
import { FileWorkspace, LiveRuntime } from "palimpsest/node"
import { ScriptedModel } from "palimpsest/testing"

const parent = mkdtempSync(path.join(tmpdir(), "agent-"))
const folder = path.join(parent, "project")
mkdirSync(folder)

const program = Effect.gen(function* () {
  // Written to settings.json of the home. The agent below starts with it.
  const settings = yield* Settings.Settings
  yield* settings.set("home", ["compressionThreshold"], 0.4)
  const { settings: effective } = yield* settings.read
  console.log(`setting    compressionThreshold is ${effective.compressionThreshold}`)

  const agent = yield* AgentRuntime.make()

  // A fact is planned first, so that the user can see the change before it is written.
  const { memory } = agent.host.context
  const change = yield* memory.plan("Run the tests with npm test.", "global")
  const added = change.diff.diff.split("\n").find((line) => line.startsWith("+-"))
  console.log(`planned    ${added}`)
  yield* memory.save(change)
  const { blocks } = yield* memory.load
  console.log(`memory     ${blocks.at(0)?.text.trim().split("\n").at(-1)}`)
  yield* agent.host.context.refresh
  const { text } = yield* agent.host.context.prompt
  console.log(`prompt     has the fact: ${text.includes("Run the tests with npm test.")}`)

  // The agent's own tools ask it before they open anything; so can a tool of yours.
  const workspace = yield* Workspace.Workspace
  const refused = yield* Effect.flip(workspace.path("../secret.txt", "read"))
  console.log(`workspace  ${refused.message}`)
}).pipe(Effect.provide(FileWorkspace.layer({ root: folder })))

const machine = LiveRuntime.layer({ folder, home: path.join(parent, "home"), model: ScriptedModel.layer([]) })

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(machine)))
