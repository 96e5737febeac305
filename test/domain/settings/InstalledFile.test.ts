import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Toml from "effect/encoding/Toml"
import { readFileSync } from "node:fs"
import {
  type AgentFile,
  agentFiles,
  type InstallAgent,
  installAgents
} from "../../../src/domain/settings/AgentFiles.ts"
import {
  type FilePlan,
  type InstallRecord,
  planInstall,
  planUninstall
} from "../../../src/domain/settings/InstalledFile.ts"
import { strictJson } from "../../../src/domain/settings/SettingsText.ts"

/** How install and uninstall change a file, by its text alone. */

const pluginOf = (agent: string) =>
  readFileSync(new URL(`../../../integrations/${agent}/palimpsest.js`, import.meta.url), "utf8")
const plugins = { pi: pluginOf("pi"), opencode: pluginOf("opencode") }
const command = ["/opt/my node/bin/node", "/srv/it's/palimpsest.mjs"] as const
const filesOf = (agent: InstallAgent, words: readonly [string, ...ReadonlyArray<string>] = command) =>
  agentFiles(agent, { command: words, separator: "/", plugins })

const succeed = (plan: Result.Result<FilePlan, string>): FilePlan =>
  Result.isSuccess(plan) ? plan.success : assert.fail(plan.failure)

const listed = {
  claude: "mcpServers",
  codex: "mcpServers",
  gemini: "mcpServers",
  opencode: "mcp",
  cursor: "mcpServers",
  vscode: "servers",
  pi: "mcpServers"
}

/** What a JSON file may contain before. */
const jsonTexts = (list: string): Readonly<Record<string, string>> => ({
  "an empty file": "",
  "blank lines": "\n\n",
  "a byte order mark alone": "\uFEFF",
  "an empty object": "{}",
  "an empty object and a line break": "{}\n",
  "an empty object over lines": "{\n}\n",
  "a settled object": `{\n  "theme": "dark",\n  "deep": { "a": [1, 2.50, -0, 1e3] }\n}\n`,
  "no final line break": `{\n  "theme": "dark"\n}`,
  "a byte order mark": `\uFEFF{\n  "theme": "dark"\n}\n`,
  "CR LF": `{\r\n  "theme": "dark",\r\n  "deep": {\r\n    "a": 1\r\n  }\r\n}\r\n`,
  tabs: `{\n\t"theme": "dark",\n\t"deep": {\n\t\t"a": 1\n\t}\n}\n`,
  minified: `{"theme":"dark","deep":{"a":[1,2,3]}}`,
  "comments and trailing commas": `// top\n{\n  // mine\n  "theme": "dark", /* why */\n  "list": [1, 2,],\n} // end\n`,
  "no servers yet": `{ "${list}": {} }\n`,
  "no servers yet, with a comment": `{\n  "${list}": {\n    // none so far\n  }\n}\n`,
  "another's server": `{"${list}": {"docs": {"command": "docs", "args": ["--x"], "env": {"TOKEN": "abc"}}}}\n`,
  "others' servers over lines": `{\n  "${list}": {\n    "a": { "url": "http://a" },\n    "b": { "url": "http://b" }, // last\n  },\n  "z": 0\n}\n`,
  "a server of the user's under our name": `{"${list}":{"palimpsest":{"command":"mine"}}}`,
  "our name with our program and other arguments": `{"${list}": {"palimpsest": {"command": "palimpsest", "args": ["mcp", "--others"]}}}\n`,
  "our name and no object": `{"${list}": {"palimpsest": null}}\n`,
  "no hooks yet": `{"hooks": {}}\n`,
  "events without hooks": `{"hooks": {"PreCompact": [], "SessionStart": [], "BeforeAgent": []}}\n`,
  "hooks of others": `{"hooks": {"PreCompact": [{"hooks": [{"type": "command",   "command": "mine"}]}], "SessionStart":[{"matcher":"compact","hooks":[{"type":"command","command":"theirs"}]} ], "BeforeAgent": [ {"hooks": []}, ]}}\n`,
  "keys twice": `{"theme": 1, "${list}": {"a": {"command": "x"}}, "theme": 2, "${list}": {"b": {"command": "y"}}}\n`,
  "strings like ours": `{"note": "\\"mcpServers\\": {\\"palimpsest\\": 1}", "b": "// {", "c": "\\u00e9\\ud83d\\ude00"}\n`,
  "the key __proto__": `{"__proto__": {"${list}": 1}, "constructor": 1}\n`,
  "a large object": JSON.stringify(
    Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, { n }])),
    undefined,
    2
  ),
  // Refused, so that they stay.
  null: "null\n",
  "a list": "[1, 2]\n",
  "no JSON": "{ broken",
  "servers that are no object": `{"${list}": null}\n`,
  "servers in a list": `{"${list}": [{"name": "docs"}]}\n`,
  "hooks that are no object": `{"hooks": []}\n`,
  "an event that is no list": `{"hooks": {"PreCompact": {}, "SessionStart": {}, "BeforeAgent": {}}}\n`
})

const tomlTexts: Readonly<Record<string, string>> = {
  "an empty file": "",
  "blank lines": "\n\n",
  "a byte order mark": `\uFEFFmodel = "o3"\n`,
  "a setting": `model = "o3"\n`,
  "no final line break": `model = "o3"`,
  "blank lines at the end": `model = "o3"\n\n\n`,
  "CR LF": `model = "o3"\r\n\r\n[tui]\r\ntheme = "x"\r\n`,
  "comments at the end": `model = "o3" # mine\n\n# the end`,
  "another's server": `[mcp_servers.docs]\ncommand = "docs"\nenv = { TOKEN = "abc" }\n`,
  "a table of servers": `[mcp_servers]\ndocs = { command = "docs" }\n`,
  "dotted keys": `mcp_servers.docs.command = "docs"\n`,
  "a server of the user's under our name": `[mcp_servers.palimpsest]\ncommand = "mine"\n`,
  "our name, dotted": `mcp_servers.palimpsest.command = "mine"\n`,
  "our name, quoted": `[mcp_servers."palimpsest"]\ncommand = "mine"\n\n[tui]\n`,
  "our name in a string": `text = """\n[mcp_servers.palimpsest]\ncommand = "palimpsest"\n"""\n`,
  "lists of tables": `[[profiles]]\nname = "a"\n\n[[profiles]]\nname = "b"\n`,
  // Refused, so that they stay.
  "servers in one line": `mcp_servers = { docs = { command = "docs" } }\n`,
  "no TOML": "model = \n",
  "an open string": `model = """\nx`
}

const pluginTexts: Readonly<Record<string, string>> = {
  "an empty file": "",
  "another plugin": "export default () => {}\n",
  "our plugin, changed": `${plugins.pi}// mine\n`
}

const textsOf = (agent: InstallAgent, path: string): Readonly<Record<string, string>> =>
  path.endsWith(".toml") ? tomlTexts : path.endsWith(".js") ? pluginTexts : jsonTexts(listed[agent])

const valuesOf = (path: string, text: string): unknown =>
  path.endsWith(".toml")
    ? Result.getOrThrow(Toml.parse(text))
    : path.endsWith(".js")
      ? {}
      : text.replace("\uFEFF", "").trim() === ""
        ? {}
        : JSON.parse(strictJson(text))

/** A value without what names our program, and without what is empty then. */
const othersIn = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const items = value.filter((item) => !JSON.stringify(item).includes("palimpsest.mjs")).map(othersIn)
    return items.length === 0 ? undefined : items
  }
  const entries = Object.entries(value).flatMap(([name, one]) => {
    const isOurs = name === "palimpsest" && JSON.stringify(one).includes("palimpsest.mjs")
    const other = isOurs ? undefined : othersIn(one)
    return other === undefined ? [] : [[name, other] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Installs where that is possible. */
const installed = (file: AgentFile, before: string | undefined, record?: InstallRecord): FilePlan => {
  const plan = planInstall(before, record, file.edits)
  return Result.isSuccess(plan) ? plan.success : { after: before, record, foreign: [], stays: false }
}

const uninstalled = (file: AgentFile, { after, record }: Pick<FilePlan, "after" | "record">): FilePlan => {
  if (after === undefined) return { after, record, foreign: [], stays: false }
  const plan = planUninstall(after, record, file.edits)
  return Result.isSuccess(plan) ? plan.success : { after, record, foreign: [], stays: false }
}

describe.each(installAgents)("install and uninstall of %s", (agent) => {
  describe.each(filesOf(agent).map((file) => [file.path, file] as const))("%s", (path, file) => {
    it("a file that was not there goes again", () => {
      const plan = succeed(planInstall(undefined, undefined, file.edits))
      assert.include(plan.after ?? "", "palimpsest")
      assert.strictEqual(uninstalled(file, plan).after, undefined)
    })

    it.each(Object.entries(textsOf(agent, path)))("%s: gives back the text, also after two installs", (_, before) => {
      const once = installed(file, before)
      const twice = installed(file, once.after, once.record)
      assert.strictEqual(twice.after, once.after)
      for (const plan of [once, twice]) assert.strictEqual(uninstalled(file, plan).after, before)
    })

    it.each(Object.entries(textsOf(agent, path)))("%s: nothing else differs", (_, before) => {
      const { after = "" } = installed(file, before)
      if (after === before) return
      assert.include(after, "palimpsest.mjs")
      assert.deepStrictEqual(othersIn(valuesOf(path, after)), othersIn(valuesOf(path, before)))
      // Also without a record, but for the objects around what was added.
      const without = uninstalled(file, { after, record: undefined }).after ?? ""
      assert.deepStrictEqual(othersIn(valuesOf(path, without)), othersIn(valuesOf(path, before)))
      assert.notInclude(without, "palimpsest.mjs")
    })
  })
})

const bare = ["palimpsest"] as const
const [claude] = filesOf("claude", bare)
const [, hooks] = filesOf("claude", bare)
const [codex] = filesOf("codex", bare)
const [gemini] = filesOf("gemini", bare)
const [pi] = filesOf("pi", bare)
const theOne = (file: AgentFile | undefined): AgentFile => file ?? assert.fail("no file")

describe("a file that changed between install and uninstall", () => {
  const install = (file: AgentFile | undefined, before: string | undefined) =>
    succeed(planInstall(before, undefined, theOne(file).edits))
  const uninstall = (file: AgentFile | undefined, after: string, record: InstallRecord | undefined) =>
    succeed(planUninstall(after, record, theOne(file).edits))

  it("keeps what was added before ours, byte by byte", () => {
    const { after = "", record } = install(claude, `{ "mcpServers": {} }\n`)
    const changed = after.replace("{ ", `{ "a":1,\t`)
    assert.strictEqual(uninstall(claude, changed, record).after, `{ "a":1,\t"mcpServers": {} }\n`)
  })

  it("keeps what was added behind ours", () => {
    const { after = "", record } = install(claude, "{}\n")
    const changed = after.replace(/\n\}\n$/, `,\n  "a": 1\n}\n`)
    assert.strictEqual(uninstall(claude, changed, record).after, `{\n  "a": 1\n}\n`)
  })

  it("keeps another server beside ours", () => {
    const { after = "", record } = install(claude, undefined)
    const changed = after.replace(`"mcpServers": {`, `"mcpServers": {\n    "b": {"command": "b"},`)
    assert.strictEqual(
      uninstall(claude, changed, record).after,
      `{\n  "mcpServers": {\n    "b": {"command": "b"}\n  }\n}\n`
    )
  })

  it.each([
    ["hooks", hooks],
    ["both", gemini]
  ])("%s: written anew by the agent, has nothing of ours left", (_, file) => {
    for (const before of [undefined, `{"a": [1]}`, `{"hooks": {"Stop": []}, "a": {}}`]) {
      const { after = "", record } = install(file, before)
      const anew = JSON.stringify({ ...JSON.parse(after), added: true }, undefined, 4)
      assert.deepStrictEqual(JSON.parse(uninstall(file, anew, record).after ?? ""), {
        ...JSON.parse(before ?? "{}"),
        added: true
      })
    }
  })

  it("goes when it was created and only ours was in it, however it is written", () => {
    const { after = "", record } = install(gemini, undefined)
    assert.strictEqual(uninstall(gemini, JSON.stringify(JSON.parse(after)), record).after, undefined)
  })

  it("keeps a hook that the user added to our group", () => {
    const { after = "", record } = install(hooks, undefined)
    const json = JSON.parse(after)
    json.hooks.PreCompact[0].hooks.unshift({ type: "command", command: "mine" })
    const left = uninstall(hooks, JSON.stringify(json), record).after ?? ""
    assert.deepStrictEqual(JSON.parse(left), {
      hooks: { PreCompact: [{ hooks: [{ type: "command", command: "mine" }] }] }
    })
  })

  it("keeps the tables of Codex behind ours, and the comment of one", () => {
    const { after = "", record } = install(codex, `model = "o3"\n`)
    const changed = `${after.replace(`["mcp", "--agent", "codex"]`, `[ "mcp", "--agent", "codex" ]`)}\n# docs\n[mcp_servers.docs]\ncommand = "docs"\n`
    assert.strictEqual(
      uninstall(codex, changed, record).after,
      `model = "o3"\n\n# docs\n[mcp_servers.docs]\ncommand = "docs"\n`
    )
  })

  it("removes what the user added to our table of Codex, and gives it to no other", () => {
    const { after = "", record } = install(codex, `model = "o3"\n`)
    assert.strictEqual(uninstall(codex, `${after}enabled = false\n`, record).after, `model = "o3"\n`)
    const plan = planUninstall(`${after}[mcp_servers.palimpsest.env]\nA = "b"\n`, record, theOne(codex).edits)
    assert.match(Result.isFailure(plan) ? plan.failure : "done", /by hand/)
  })

  it("keeps a plugin that the user changed, and says so", () => {
    const { after = "", record } = install(pi, undefined)
    const left = uninstall(pi, `${after}// mine\n`, record)
    assert.strictEqual(left.after, `${after}// mine\n`)
    assert.lengthOf(left.foreign, 1)
  })

  it("is not taken for created when the user made it anew", () => {
    const { record } = install(claude, undefined)
    const again = succeed(planInstall("{}", record, theOne(claude).edits))
    assert.strictEqual(uninstall(claude, again.after ?? "", again.record).after, "{}")
  })
})

describe("what was there before install", () => {
  it("stays at the first uninstall, and goes at the next", () => {
    const before = `{"mcpServers": {"palimpsest": {"command": "palimpsest", "args": ["mcp", "--agent", "claude"]}}}\n`
    const { edits } = theOne(claude)
    const plan = succeed(planInstall(before, undefined, edits))
    assert.strictEqual(plan.after, before)
    const first = succeed(planUninstall(before, plan.record, edits))
    assert.deepStrictEqual([first.after, first.stays, first.record], [before, true, undefined])
    assert.strictEqual(succeed(planUninstall(before, first.record, edits)).after, `{"mcpServers": {}}\n`)
  })

  it("of the user's own is named, and the rest is installed", () => {
    const before = `{"mcpServers": {"palimpsest": {"command": "mine"}}}\n`
    const { edits } = theOne(gemini)
    const plan = succeed(planInstall(before, undefined, edits))
    assert.deepStrictEqual(plan.foreign, ["an MCP server palimpsest"])
    assert.include(plan.after ?? "", "palimpsest hook")
    assert.include(plan.after ?? "", `{"command": "mine"}`)
    assert.strictEqual(succeed(planUninstall(plan.after ?? "", plan.record, edits)).after, before)
  })
})

describe("a program that has moved", () => {
  const moved = ["/new/node", "/new/palimpsest.mjs"] as const

  it.each(installAgents)("%s: install corrects how it is started, and uninstall still gives the text back", (agent) => {
    for (const [index, file] of filesOf(agent, ["/old/my node", "/old/it's/palimpsest.mjs"]).entries()) {
      for (const before of [undefined, file.path.endsWith(".toml") ? `model = "o3"\n` : "{ }\n"]) {
        if (file.path.endsWith(".js") && before !== undefined) continue
        const old = succeed(planInstall(before, undefined, file.edits))
        const { edits } = filesOf(agent, moved)[index] ?? assert.fail()
        const now = succeed(planInstall(old.after, old.record, edits))
        assert.notInclude(now.after ?? "", "/old/")
        assert.include(now.after ?? "", "/new/palimpsest.mjs")
        assert.strictEqual(succeed(planUninstall(now.after ?? "", now.record, edits)).after, before)
      }
    }
  })

  it("keeps what the user added to our server", () => {
    const before = `{"mcpServers": {"palimpsest": {"command": "palimpsest", "args": ["mcp", "--agent", "claude"], "env": {"A": "b"}}}}`
    const [file] = filesOf("claude", moved)
    const { after = "" } = succeed(planInstall(before, undefined, theOne(file).edits))
    assert.deepStrictEqual(JSON.parse(after).mcpServers.palimpsest, {
      command: "/new/node",
      args: ["/new/palimpsest.mjs", "mcp", "--agent", "claude"],
      env: { A: "b" }
    })
  })

  it("a plugin of an earlier version is replaced, if nobody changed it", () => {
    const earlier = `${plugins.pi}// earlier\n`
    const record = { created: true, splices: [{ at: 0, removed: "", inserted: earlier }], containers: [] }
    const { edits } = theOne(pi)
    const now = succeed(planInstall(earlier, record, edits))
    assert.strictEqual(now.after, plugins.pi)
    assert.strictEqual(succeed(planUninstall(now.after ?? "", now.record, edits)).after, undefined)
    assert.strictEqual(succeed(planInstall(`${earlier}// mine`, record, edits)).after, `${earlier}// mine`)
  })
})
