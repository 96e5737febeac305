import { assert, describe, it } from "@effect/vitest"
import { hookEdits } from "../../../src/domain/settings/AgentFiles.ts"
import type { EditResult } from "../../../src/domain/settings/InstalledFile.ts"
import { strictJson } from "../../../src/domain/settings/SettingsText.ts"

const line = "palimpsest hook"
const mine = `{\n  // mine\n  "model": "opus",\n  "hooks": { "PreCompact": [{ "hooks": [{ "type": "command", "command": "mine" }] }] }\n}\n`

const counts = { claude: 2, codex: 1, gemini: 1 } as const

type Agent = keyof typeof counts

const textAfter = (text: string, results: (text: string) => EditResult): string => {
  const result = results(text)
  return result._tag === "Written" ? result.text : result._tag === "Unchanged" ? text : assert.fail(result._tag)
}
const added = (text: string, agent: Agent, own = line) =>
  hookEdits(agent, own).reduce((next, { add }) => textAfter(next, add), text)
const removed = (text: string, agent: Agent) =>
  hookEdits(agent, line).reduce((next, { remove }) => textAfter(next, (so) => remove(so, [])), text)

describe.each(["claude", "codex", "gemini"] as const)("our hooks in the settings of %s", (agent) => {
  it.each(["", "{}", mine])("are added once to %j, and taken back", (text) => {
    const next = added(text, agent)
    assert.strictEqual(next.split(line).length - 1, counts[agent])
    assert.strictEqual(added(next, agent), next)
    const rest = removed(next, agent)
    assert.notInclude(rest, line)
    assert.strictEqual(removed(rest, agent), rest)
    if (text === mine) {
      assert.include(rest, "// mine")
      assert.include(rest, `[{ "hooks": [{ "type": "command", "command": "mine" }] }]`)
      assert.strictEqual(JSON.parse(strictJson(rest)).model, "opus")
    }
  })

  it.each([
    "'/opt/my node' '/srv/it'\\''s/palimpsest.mjs' hook",
    "/usr/bin/node /srv/palimpsest.mjs hook",
    `"C:\\Program Files\\node.exe" "C:\\x\\palimpsest.mjs" hook`
  ])("that run %s are corrected in their place", (old) => {
    const next = added(mine, agent, old)
    assert.strictEqual(added(next, agent), next.replaceAll(JSON.stringify(old), JSON.stringify(line)))
    assert.notInclude(removed(next, agent), "palimpsest")
  })

  it.each([
    "palimpsest hook && rm x",
    "cd /x; palimpsest hook",
    "node /srv/mine.mjs hook",
    "echo /srv/palimpsest.mjs; true hook"
  ])("are not those that run %s", (other) => {
    const next = added("{}", agent, other)
    assert.strictEqual(removed(next, agent), next)
  })

  it.each(["{ broken", "[]", `{"hooks": []}`, `{"hooks": {"PreCompact": 1, "SessionStart": {}, "BeforeAgent": "x"}}`])(
    "are not added to %s",
    (text) => {
      assert.strictEqual(hookEdits(agent, line)[0]?.add(text)._tag, "Refused")
    }
  )
})
