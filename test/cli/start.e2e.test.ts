import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program, run } from "./program.ts"

/** `npm start`: the first command of a new user, with any environment. */

const root = path.dirname(path.dirname(import.meta.dirname))

describe("the demonstration", () => {
  it.effect("compresses the example in a few lines, and calls no model even with a key", () =>
    Effect.gen(function* () {
      const fake = yield* FakeGemini.make(() => FakeGemini.json(FakeGemini.response([{ text: "paid for" }])))
      const { folder } = yield* program
      const { status, stdout } = yield* Effect.callback<{ status: number | null; stdout: string }>((resume) => {
        const child = execFile(
          process.execPath,
          [path.join(root, "scripts", "start.mjs")],
          {
            cwd: root,
            env: {
              ...process.env,
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
      assert.match(stdout, /^\$ palimpsest compress [^]*\nCOMPRESSED [^]*by code[^]*<state_snapshot>/)
      const lines = stdout.trimEnd().split("\n")
      assert.isBelow(lines.length, 30)
      assert.isAtMost(Math.max(...lines.map((line) => line.length)), 130)
      const whole = /more lines in (\S+)/.exec(stdout)?.[1] ?? ""
      assert.include(readFileSync(path.join(root, whole), "utf8"), "</state_snapshot>")
      assert.deepStrictEqual(yield* fake.requests, [])
      // The command that it suggests first works.
      const suggested = /npm start -- (recall .+?) {2,}/.exec(stdout)?.[1]?.split(" ") ?? []
      const recalled = yield* run(suggested, { cwd: root })
      assert.strictEqual(recalled.status, 0)
      assert.match(String(recalled.stdout), /^h_\w+ {2}e\d+ [^]*igniter/)
    })
  )
})
