import { assert, describe, it } from "@effect/vitest"
import { hookCommand, withHooks, withoutHooks } from "../../../src/domain/settings/CompactionHookSettings.ts"
import { clients } from "../../../src/domain/settings/McpClients.ts"
import { type SetupResult, withoutServer, withServer } from "../../../src/domain/settings/McpClientSettings.ts"
import { strictJson } from "../../../src/domain/settings/SettingsText.ts"

const written = (result: SetupResult): string => (result._tag === "Written" ? result.text : assert.fail(result._tag))
const valueOf = (text: string): unknown => JSON.parse(strictJson(text))

const mine = `{\n  // mine\n  "model": "opus",\n  "hooks": { "PreCompact": [{ "hooks": [{ "type": "command", "command": "mine" }] }] }\n}\n`

const counts = { claude: 2, codex: 1, gemini: 1 } as const

describe.each(["claude", "codex", "gemini"] as const)("our hooks in the settings of %s", (agent) => {
  it.each(["", "{}", mine])("are added once to %j, and taken back without a trace", (text) => {
    const added = written(withHooks(text, agent))
    assert.strictEqual(added.split(hookCommand).length - 1, counts[agent])
    assert.strictEqual(withHooks(added, agent)._tag, "Unchanged")
    const removed = written(withoutHooks(added, agent))
    assert.notInclude(removed, hookCommand)
    if (text === mine) {
      assert.deepStrictEqual(valueOf(removed), valueOf(mine))
      assert.include(removed, "// mine")
    } else assert.deepStrictEqual(valueOf(removed), {})
    assert.strictEqual(withoutHooks(removed, agent)._tag, "Unchanged")
  })

  it("are not added to settings that are no JSON", () => {
    assert.strictEqual(withHooks("{ broken", agent)._tag, "Refused")
  })
})

describe("taking back the MCP server", () => {
  it.each(clients)("%s: leaves the other settings", (client) => {
    const before =
      client === "codex" ? 'model = "o3"\n\n[mcp_servers.docs]\ncommand = "docs"\n' : '{ "theme": "dark" }\n'
    const removed = written(withoutServer(written(withServer(before, client, "palimpsest")), client))
    assert.notInclude(removed, "palimpsest")
    if (client !== "codex") assert.deepStrictEqual(valueOf(removed), { theme: "dark" })
    assert.include(removed, client === "codex" ? '[mcp_servers.docs]\ncommand = "docs"\n' : '"theme": "dark"')
    assert.strictEqual(withoutServer(removed, client)._tag, "Unchanged")
  })

  it("leaves the tables of Codex that come after it", () => {
    const text = '[mcp_servers.palimpsest]\ncommand = "palimpsest"\n\n[tui]\ntheme = "x"\n'
    assert.strictEqual(written(withoutServer(text, "codex")), '[tui]\ntheme = "x"\n')
  })
})
