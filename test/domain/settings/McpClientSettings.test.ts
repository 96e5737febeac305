import { assert, describe, it } from "@effect/vitest"
import { clients } from "../../../src/domain/settings/McpClients.ts"
import { serverEdit } from "../../../src/domain/settings/McpClientSettings.ts"
import { bareCommand } from "../../../src/domain/settings/OwnCommand.ts"

const edit = (client: (typeof clients)[number]) => serverEdit(client, bareCommand)

const written = (text: string, client: (typeof clients)[number]): string => {
  const result = edit(client).add(text)
  return result._tag === "Written" ? result.text : result._tag
}

const removed = (text: string, client: (typeof clients)[number]): string => {
  const result = edit(client).remove(text, [])
  return result._tag === "Written" ? result.text : result._tag
}

describe("the settings of a client of the MCP server", () => {
  it.each(clients)("%s: adds the server to an empty file, once, and removes it", (client) => {
    const text = written("", client)
    assert.include(text, "palimpsest")
    assert.include(text, '"mcp"')
    assert.strictEqual(written(text, client), "Unchanged")
    assert.notInclude(removed(text, client), "palimpsest")
    assert.strictEqual(removed(removed(text, client), client), "Unchanged")
  })

  it("keeps other servers, settings, their order and comments", () => {
    const text = `{\n    // mine\n    "model": { "name": "x" },\n    "mcpServers": { "other": { "url": "http://x" } }\n}\n`
    const next = written(text, "gemini")
    for (const kept of ["// mine", '"model": { "name": "x" }', '"other": { "url": "http://x" }']) {
      assert.include(next, kept)
    }
    assert.include(next, '"palimpsest"')
    assert.strictEqual(removed(next, "gemini"), text)
  })

  it("adds a table at the end of Codex's settings", () => {
    assert.strictEqual(
      written('model = "o3"\n\n[mcp_servers.docs]\ncommand = "docs"\n', "codex"),
      'model = "o3"\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[mcp_servers.palimpsest]\ncommand = "palimpsest"\nargs = ["mcp", "--agent", "codex"]\n'
    )
  })

  it("leaves the tables of Codex that come after it", () => {
    const text =
      '[mcp_servers.palimpsest]\ncommand = "palimpsest"\nargs = ["mcp", "--agent", "codex"]\n\n[tui]\ntheme = "x"\n'
    assert.strictEqual(removed(text, "codex"), '\n[tui]\ntheme = "x"\n')
  })

  it.each([
    ["{ broken", "claude"],
    ["[1]", "cursor"],
    ['{"mcpServers": null}', "claude"],
    ['{"mcpServers": []}', "gemini"],
    ["mcp_servers = { docs = {} }\n", "codex"],
    ["mcp_servers =\n", "codex"]
  ] as const)("leaves %j of %s as it is", (text, client) => {
    assert.strictEqual(written(text, client), "Refused")
  })

  it.each([
    ['{"mcpServers": {"palimpsest": {"command": "mine"}}}', "claude"],
    ['{"mcpServers": {"palimpsest": {"command": "palimpsest", "args": ["mcp"]}}}', "claude"],
    ['{"mcpServers": {"palimpsest": {"url": "http://localhost"}}}', "cursor"],
    ['{"mcp": {"palimpsest": {"command": "mine"}}}', "opencode"],
    ['[mcp_servers.palimpsest]\ncommand = "mine"\n', "codex"],
    ['mcp_servers.palimpsest.command = "mine"\n', "codex"]
  ] as const)("takes %j of %s for the user's own", (text, client) => {
    assert.strictEqual(written(text, client), "Foreign")
    assert.strictEqual(removed(text, client), "Foreign")
  })
})
