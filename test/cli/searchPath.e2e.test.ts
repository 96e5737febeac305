import { Effect } from "effect"
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "../support/vitest.ts"
import { calls, place, results, runs, says, serve, turnsOf } from "./scene.ts"

/** Folders that bring programs of their own, in a PATH that finds them there: what the built program starts. */

/** What this program, its hooks, its servers and commands start by their names. */
const names = ["rg", "bash", "sh", "ps", "pgrep", "node", "env", "ls", "server-of-mine"]

/** Each leaves its path in a file. */
const hostile = (folder: string, mark: string): void => {
  mkdirSync(folder, { recursive: true })
  for (const name of names) {
    writeFileSync(path.join(folder, name), `#!/bin/sh\necho "$0" >> "${mark}"\n`)
    chmodSync(path.join(folder, name), 0o755)
  }
}

const settings = (top: string) => ({
  hooks: { BeforeAgent: [{ hooks: [{ type: "command", command: `ls > "${top}/hooked"` }] }] },
  mcpServers: { mine: { command: "server-of-mine" }, other: { command: "env", args: ["node", "--version"] } }
})

const scene = Effect.fnUntraced(function* (name: string, trust?: "trusted" | "untrusted") {
  const where = yield* place(`path-${name}`, {
    ...(trust === undefined ? {} : { trust }),
    work: { "a.txt": "needle\n" }
  })
  const top = path.dirname(where.cwd)
  const mark = path.join(top, "mark")
  writeFileSync(path.join(where.home, "settings.json"), JSON.stringify(settings(top)))
  for (const folder of [where.cwd, path.join(where.cwd, "bin"), top]) hostile(folder, mark)
  const marks = () => (existsSync(mark) ? readFileSync(mark, "utf8").trim().split("\n") : [])
  const asks = Effect.fnUntraced(function* (before: string) {
    const fake = yield* serve(
      calls(
        ["search_file_content", { pattern: "needle" }],
        ["run_shell_command", { command: "ls; echo done" }],
        ["run_shell_command", { command: "ls; sleep 0.1", is_background: true }]
      ),
      says("Done.")
    )
    const ended = yield* runs(where, fake, ["ask", "Do it", "--approve", "all"], {
      env: { PATH: `${before}:${process.env["PATH"] ?? ""}` }
    })
    const [, second] = yield* turnsOf(fake)
    return { ended, answers: results(second).map(({ output }) => String(output)) }
  })
  return { where, top, marks, asks }
})

describe("programs in the working folder", () => {
  it.live("do not run through a relative part of PATH in an untrusted folder", function* () {
    for (const trust of [undefined, "untrusted"] as const) {
      const { asks, marks, top } = yield* scene(`relative-${trust ?? "unknown"}`, trust)
      const { answers, ended } = yield* asks("bin::..:../work/bin:./bin:.")
      assert.strictEqual(ended.status, 0, ended.stderr)
      assert.deepStrictEqual(marks(), [])
      assert.include(answers[0], "needle")
      assert.match(answers[1] ?? "", /a\.txt[^]*done/)
      assert.include(readFileSync(path.join(top, "hooked"), "utf8"), "a.txt")
      assert.match(ended.stderr, /server-of-mine cannot be started, there is no such program in an absolute part/)
    }
  })

  it.live("in an absolute part of PATH in the workspace, or by links, run only for commands", function* () {
    const { asks, marks, top, where } = yield* scene("absolute")
    symlinkSync(path.join(where.cwd, "bin"), path.join(top, "link"))
    mkdirSync(path.join(top, "opt"))
    for (const name of names) symlinkSync(path.join(where.cwd, "bin", name), path.join(top, "opt", name))
    for (const part of [path.join(where.cwd, "bin"), path.join(top, "link"), path.join(top, "opt")]) {
      const { answers, ended } = yield* asks(part)
      assert.strictEqual(ended.status, 0, ended.stderr)
      // Who put this very folder into their PATH calls `ls` by it, and so do their commands and hooks.
      const others = marks().filter((mark) => path.basename(mark) !== "ls" && path.basename(mark) !== "node")
      assert.deepStrictEqual(others, [], part)
      assert.include(answers[0], "needle")
    }
  })

  it.live("run for commands through a relative part of PATH in a trusted folder only", function* () {
    const { asks, marks } = yield* scene("trusted", "trusted")
    const { answers, ended } = yield* asks("./bin")
    assert.strictEqual(ended.status, 0, ended.stderr)
    assert.deepStrictEqual([...new Set(marks())], ["./bin/ls"])
    assert.include(answers[0], "needle")
  })
})
