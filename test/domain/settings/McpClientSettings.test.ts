import { assert, describe, it } from "@effect/vitest"
import { clients } from "../../../src/domain/settings/McpClients.ts"
import { withServer } from "../../../src/domain/settings/McpClientSettings.ts"

const written = (text: string, client: (typeof clients)[number]): string => {
  const result = withServer(text, client, "palimpsest")
  return result._tag === "Written" ? result.text : result._tag
}

describe("the settings of a client of the MCP server", () => {
  it.each(clients)("%s: adds the server to an empty file, once", (client) => {
    const text = written("", client)
    assert.include(text, "palimpsest")
    assert.include(text, '"mcp"')
    assert.strictEqual(withServer(text, client, "palimpsest")._tag, "Unchanged")
  })

  it("keeps other servers, settings, their order and comments", () => {
    const text = `{\n    // mine\n    "model": { "name": "x" },\n    "mcpServers": { "other": { "url": "http://x" } }\n}\n`
    const next = written(text, "gemini")
    for (const kept of ["// mine", '"model": { "name": "x" }', '"other": { "url": "http://x" }']) {
      assert.include(next, kept)
    }
    assert.include(next, '"palimpsest"')
  })

  it("adds a table at the end of Codex's settings", () => {
    assert.strictEqual(
      written('model = "o3"\n\n[mcp_servers.docs]\ncommand = "docs"\n', "codex"),
      'model = "o3"\n\n[mcp_servers.docs]\ncommand = "docs"\n\n[mcp_servers.palimpsest]\ncommand = "palimpsest"\nargs = ["mcp", "--agent", "codex"]\n'
    )
  })

  it.each([
    ["{ broken", "claude"],
    ["[1]", "cursor"],
    ["mcp_servers = { docs = {} }\n", "codex"]
  ] as const)("leaves %j of %s as it is", (text, client) => {
    assert.strictEqual(withServer(text, client, "palimpsest")._tag, "Refused")
  })
})
