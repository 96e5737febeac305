import { assert, describe, it } from "@effect/vitest"
import { setupLine } from "../../../src/domain/settings/McpClients.ts"

const byPath = ["/opt/my node/node", "/srv/it's/palimpsest.mjs"] as const

describe("the line that adds the MCP server to a client", () => {
  it.each([
    ["claude", "claude mcp add palimpsest -- palimpsest mcp --agent claude"],
    ["codex", "codex mcp add palimpsest -- palimpsest mcp --agent codex"],
    ["gemini", "gemini mcp add palimpsest palimpsest mcp --agent gemini"],
    ["cursor", "palimpsest mcp --setup cursor --write"]
  ] as const)("%s: one line", (client, line) => {
    assert.strictEqual(setupLine(client, ["palimpsest"], "/"), line)
  })

  it.each([
    [
      "claude",
      "/",
      `claude mcp add palimpsest -- '/opt/my node/node' '/srv/it'\\''s/palimpsest.mjs' mcp --agent claude`
    ],
    ["vscode", "/", `'/opt/my node/node' '/srv/it'\\''s/palimpsest.mjs' mcp --setup vscode --write`],
    ["gemini", "\\", `gemini mcp add palimpsest "/opt/my node/node" "/srv/it's/palimpsest.mjs" mcp --agent gemini`]
  ] as const)("%s: quotes paths", (client, separator, line) => {
    assert.strictEqual(setupLine(client, byPath, separator), line)
  })
})
