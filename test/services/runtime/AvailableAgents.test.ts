import { assert, it } from "@effect/vitest"
import { withDefaults } from "../../../src/domain/settings/Settings.ts"
import { generalist } from "../../../src/services/agent/builtin/Generalist.ts"
import { withRunner } from "../../../src/services/runtime/AgentEquipment.ts"

it("pi: agents run in processes of their own (Pi 0.73; ours: those of files; built-in ones run inside)", () => {
  const { runner } = withDefaults({ strategy: "pi" }).subagents
  const runnerOf = (file: string | undefined, where = runner) => {
    const { definition } = withRunner(where)({ ...generalist, file })
    return definition.kind === "local" ? definition.runner : undefined
  }
  assert.deepStrictEqual([runnerOf("rev.md"), runnerOf(undefined)], ["process", "inside"])
  assert.strictEqual(runnerOf("rev.md", withDefaults({}).subagents.runner), "inside")
  assert.strictEqual(withDefaults({ strategy: "pi", subagents: { runner: "inside" } }).subagents.runner, "inside")
})
