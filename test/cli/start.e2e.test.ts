import { Effect } from "effect"
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

/** `npm start`: the first command of a new user, with any environment. */

const root = path.dirname(path.dirname(import.meta.dirname))

/** A clone in which the program was built: only that is a copy, as building it again takes longer than all else. */
const clone = (name: string) =>
  Effect.map(program, ({ bundle, folder }) => {
    const place = path.join(folder, name)
    mkdirSync(place)
    for (const name of ["src", "examples", "node_modules"])
      symlinkSync(path.join(root, name), path.join(place, name), "junction")
    for (const name of ["scripts", "package.json"])
      cpSync(path.join(root, name), path.join(place, name), { recursive: true })
    cpSync(path.dirname(bundle), path.join(place, "dist"), { recursive: true })
    return place
  })

describe("the demonstration", () => {
  it.effect("compresses the example in a few lines, and calls no model even with a key", function* () {
    const fake = yield* FakeGemini.make(() => FakeGemini.json(FakeGemini.response([{ text: "paid for" }])))
    const { folder } = yield* program
    const place = yield* clone("clone")
    const { status, stdout } = yield* Effect.callback<{ status: number | null; stdout: string }>((resume) => {
      const child = execFile(
        process.execPath,
        [path.join(place, "scripts", "start.mjs")],
        {
          cwd: place,
          env: {
            ...process.env,
            HOME: path.join(folder, "start-home"),
            PALIMPSEST_HOME: path.join(folder, "start-home"),
            GEMINI_API_KEY: "AIza-not-a-key",
            GOOGLE_GEMINI_BASE_URL: fake.url
          }
        },
        (_, out) => resume(Effect.succeed({ status: child.exitCode, stdout: out }))
      )
      return Effect.sync(() => child.kill("SIGKILL"))
    })
    assert.strictEqual(status, 0)
    assert.match(stdout, /^\$ palimpsest compress [^]*\nCOMPRESSED [^]*without a model[^]*<state_snapshot>/)
    const lines = stdout.trimEnd().split("\n")
    assert.isBelow(lines.length, 30)
    assert.isAtMost(Math.max(...lines.map((line) => line.length)), 130)
    const whole = /more lines in (\S+)/.exec(stdout)?.[1] ?? ""
    assert.include(readFileSync(path.join(place, whole), "utf8"), "</state_snapshot>")
    assert.deepStrictEqual(yield* fake.requests, [])
    // The command that it suggests first works.
    const suggested = /npm start -- (recall .+?) {2,}/.exec(stdout)?.[1]?.split(" ") ?? []
    const recalled = yield* run(suggested, { cwd: place })
    assert.strictEqual(recalled.status, 0)
    assert.match(String(recalled.stdout), /^h_\w+ {2}e\d+ [^]*igniter/)
  })

  it.effect("shows the sessions of this machine where there are any", function* () {
    const { folder } = yield* program
    const place = yield* clone("clone-sessions")
    const home = path.join(folder, "start-sessions")
    const project = path.join(home, ".claude", "projects", "-x")
    mkdirSync(project, { recursive: true })
    cpSync(
      path.join(root, "examples", "claude-code-subagent.jsonl"),
      path.join(project, "491e126e-1e71-469c-ade2-fcc8af567c74.jsonl")
    )
    const stdout = yield* Effect.callback<string>((resume) => {
      const child = execFile(
        process.execPath,
        [path.join(place, "scripts", "start.mjs")],
        { cwd: place, env: { ...process.env, HOME: home, PALIMPSEST_HOME: home } },
        (_, out) => resume(Effect.succeed(out))
      )
      return Effect.sync(() => child.kill("SIGKILL"))
    })
    assert.match(
      stdout,
      /^\$ palimpsest find [^]*\nclaude [^]*\n\$ palimpsest cost\n\$0\.56 for 17 requests in 1 session\n/
    )
    assert.notInclude(stdout, "palimpsest compress")
  })
})
