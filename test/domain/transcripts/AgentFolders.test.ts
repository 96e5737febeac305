import { assert, describe, it } from "@effect/vitest"
import { type AgentName, isInFolder, sessionPlace, sessionRoots } from "../../../src/domain/transcripts/AgentFolders.ts"

const uuid = "019c2a10-77aa-7d01-9f3e-0a1b2c3d4e5f"

describe("AgentFolders", () => {
  it("finds the folders of agents in the home folder, or where variables say", () => {
    const roots = (variables: Record<string, string>) =>
      sessionRoots({ home: "/u", variables, ownSessions: "/own" }).map(({ agent, path }) => `${agent} ${path}`)
    assert.deepStrictEqual(roots({}), [
      "claude /u/.claude/projects",
      "claude /u/.config/claude/projects",
      "codex /u/.codex/sessions",
      "codex /u/.codex/archived_sessions",
      "gemini /u/.gemini/tmp",
      "pi /u/.pi/agent/sessions",
      "opencode /u/.local/share/opencode/opencode.db",
      "palimpsest /own"
    ])
    const moved = roots({
      CLAUDE_CONFIG_DIR: "/c/",
      CODEX_HOME: "~/x",
      GEMINI_CLI_HOME: "/g",
      PI_CODING_AGENT_DIR: "/p",
      XDG_DATA_HOME: "/d",
      XDG_CONFIG_HOME: " "
    })
    assert.deepStrictEqual(moved, [
      "claude /c/projects",
      "codex /u/x/sessions",
      "codex /u/x/archived_sessions",
      "gemini /g/.gemini/tmp",
      "pi /p/sessions",
      "opencode /d/opencode/opencode.db",
      "palimpsest /own"
    ])
  })

  it("tells sessions, subagents and texts from other files", () => {
    const cases: ReadonlyArray<readonly [AgentName, string, string | undefined]> = [
      ["claude", `-home-u-p/${uuid}.jsonl`, `session ${uuid}`],
      ["claude", `-home-u-p/${uuid}/subagents/agent-a1.jsonl`, `subagent agent-a1 of ${uuid}`],
      ["claude", `-home-u-p/${uuid}/tool-results/b.txt`, `text b.txt of ${uuid}`],
      ["claude", "-home-u-p/agent-a1.jsonl", "subagent agent-a1"],
      ["claude", "-home-u-p/memory.md", undefined],
      ["codex", `2026/02/03/rollout-2026-02-03T10-00-00-${uuid}.jsonl`, `session ${uuid}`],
      ["codex", `2026/02/03/rollout-2026-02-03T10-00-00-${uuid}_${uuid.replace("5", "6")}.jsonl`, `session ${uuid}`],
      ["codex", "2026/02/03/notes.jsonl", undefined],
      ["gemini", "slug/chats/session-2026-02-03T10-15-5f0c2d1a.json", "session session-2026-02-03T10-15-5f0c2d1a"],
      ["gemini", "slug/chats/session-2026.jsonl", "session session-2026"],
      ["gemini", "slug/chats/parent/inner.jsonl", "subagent inner of parent"],
      ["gemini", "slug/chats/session-2026.jsonl.blobs/log.jsonl", undefined],
      ["gemini", "slug/checkpoint-tag.json", "session checkpoint-tag"],
      ["gemini", "slug/logs.json", undefined],
      ["pi", `--u-p--/2026-02-03T10_${uuid}.jsonl`, `session ${uuid}`],
      ["palimpsest", `${uuid}.jsonl`, `session ${uuid}`],
      ["palimpsest", `${uuid}.jsonl.blobs/${"a".repeat(52)}`, `text ${"a".repeat(52)} of ${uuid}`],
      ["palimpsest", `${uuid}.title`, undefined]
    ]
    for (const [agent, relative, expected] of cases) {
      const place = sessionPlace(agent, relative)
      const text = place && `${place.kind} ${place.id}${place.parent === undefined ? "" : ` of ${place.parent}`}`
      assert.strictEqual(text, expected, relative)
    }
  })

  it("compares folders by whole names", () => {
    assert.isTrue(isInFolder("/a/b", "/a/b/"))
    assert.isTrue(isInFolder("/a/b/c", "/a/b"))
    assert.isTrue(isInFolder("C:\\a\\b", "C:\\a"))
    assert.isTrue(isInFolder("/a", "/"))
    assert.isFalse(isInFolder("/a/bc", "/a/b"))
  })
})
