import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import process from "node:process"
import { program, run } from "../cli/program.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Folders that are prepared against `install`, and what it writes there, in the built program. */

const ground = Effect.gen(function* () {
  const { folder } = yield* program
  const place = mkdtempSync(path.join(folder, "install-"))
  const at = (...names: ReadonlyArray<string>) => path.join(place, ...names)
  for (const name of ["work", "user", "bin"]) mkdirSync(at(name))
  const put = (file: string, text: string, mode = 0o600) => {
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
    chmodSync(file, mode)
  }
  const env = {
    HOME: at("user"),
    CODEX_HOME: at("user", ".codex"),
    PALIMPSEST_HOME: at("home"),
    PATH: [at("bin"), "/usr/bin", "/bin"].join(path.delimiter)
  }
  const palimpsest = (...args: ReadonlyArray<string>) => run(args, { cwd: at("work"), env })
  return { at, env, palimpsest, put }
})

const modeOf = (file: string): number => statSync(file).mode & 0o777

describe("private settings", () => {
  it.live.each([
    ["claude", ".mcp.json", `{"mcpServers":{"x":{"command":"y","env":{"TOKEN":"secret"}}}}`],
    ["gemini", ".gemini/settings.json", `\uFEFF{"mcpServers":{},"hooks":{"BeforeAgent":[ ]}}\r\n`],
    ["codex", "../user/.codex/config.toml", `[mcp_servers.x]\ncommand = "y"\nenv = { TOKEN = "secret" }`],
    ["opencode", "opencode.json", "{}"]
  ] as const)("of %s stay private, and uninstall gives the bytes back", function* ([agent, name, text]) {
    const { at, palimpsest, put } = yield* ground
    const file = at("work", name)
    put(file, text)
    assert.strictEqual((yield* palimpsest("install", agent, "--yes")).status, 0)
    assert.include(readFileSync(file, "utf8"), "palimpsest")
    assert.strictEqual(modeOf(file), 0o600)
    assert.strictEqual((yield* palimpsest("uninstall", agent, "--yes")).status, 0)
    assert.strictEqual(readFileSync(file, "utf8"), text)
    assert.strictEqual(modeOf(file), 0o600)
  })

  it.live("of the user that a repository links to are named, and not changed without asking", function* () {
    const { at, palimpsest, put } = yield* ground
    const file = at("user", ".claude", "settings.json")
    put(file, `{"permissions":{}}`)
    symlinkSync("../user/.claude", at("work", ".claude"))
    for (const args of [
      ["install", "claude", "--yes"],
      ["install", "claude"]
    ]) {
      const { status, stderr } = yield* palimpsest(...args)
      assert.strictEqual(status, 1)
      assert.include(stderr, file)
    }
    assert.strictEqual(readFileSync(file, "utf8"), `{"permissions":{}}`)
    assert.throws(() => statSync(at("work", ".mcp.json")))
  })
})

it.live.each(["pipe", "device"])(
  "a repository whose settings never end a %s: one line, and status 1",
  function* (kind) {
    const { at, palimpsest } = yield* ground
    if (kind === "pipe") execFileSync("mkfifo", [at("work", ".mcp.json")])
    else symlinkSync("/dev/zero", at("work", ".mcp.json"))
    const { status, stderr, stdout } = yield* palimpsest("install", "claude", "--yes")
    assert.strictEqual(status, 1)
    assert.strictEqual(stdout.toString(), "")
    assert.lengthOf(stderr.trimEnd().split("\n"), 1)
  }
)

describe("what an agent is told to run", () => {
  /** A copy of the program in a folder whose name a shell would take apart. */
  const copied = Effect.gen(function* () {
    const { bundle } = yield* program
    const { at, env } = yield* ground
    const folder = at('it\'s a "place" $HOME')
    cpSync(path.dirname(bundle), folder, { recursive: true })
    const file = path.join(folder, "palimpsest.mjs")
    const start = (...args: ReadonlyArray<string>) =>
      execFileSync(process.execPath, [file, ...args], {
        cwd: at("work"),
        env,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"]
      })
    return { at, env, file, start }
  })
  const hello = `${JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "0" } }
  })}\n`

  it.live("runs, where the program is not on the PATH: the server, the hooks, and the line of --setup", function* () {
    const { at, env, file, start } = yield* copied
    start("install", "claude", "--yes")
    const { args, command } = JSON.parse(readFileSync(at("work", ".mcp.json"), "utf8")).mcpServers.palimpsest
    assert.deepStrictEqual([command, ...args], [process.execPath, file, "mcp", "--agent", "claude"])
    const options = { cwd: at("work"), env, encoding: "utf8", stdio: "pipe" } as const
    assert.include(execFileSync(command, args, { ...options, input: hello }), `"serverInfo"`)

    const { hooks } = JSON.parse(readFileSync(at("work", ".claude", "settings.json"), "utf8"))
    for (const [{ hooks: own }] of [hooks.PreCompact, hooks.SessionStart]) {
      const asked = `${own[0].command} --help`
      assert.include(execFileSync("/bin/sh", ["-c", asked], options), "palimpsest hook")
    }

    writeFileSync(at("bin", "claude"), `#!/bin/sh\nprintf '%s\\n' "$@"\n`, { mode: 0o755 })
    assert.deepStrictEqual(
      execFileSync("/bin/sh", ["-c", start("mcp", "--setup", "claude")], options)
        .trimEnd()
        .split("\n"),
      ["mcp", "add", "palimpsest", "--", process.execPath, file, "mcp", "--agent", "claude"]
    )
  })

  it.live("is the name of the program where the PATH leads to it", function* () {
    const { at, file, start } = yield* copied
    chmodSync(file, 0o755)
    symlinkSync(file, at("bin", "palimpsest"))
    start("install", "claude", "--yes")
    assert.strictEqual(
      JSON.parse(readFileSync(at("work", ".mcp.json"), "utf8")).mcpServers.palimpsest.command,
      "palimpsest"
    )
    assert.include(readFileSync(at("work", ".claude", "settings.json"), "utf8"), `"palimpsest hook"`)
    assert.strictEqual(
      start("mcp", "--setup", "claude"),
      "claude mcp add palimpsest -- palimpsest mcp --agent claude\n"
    )
  })
})
