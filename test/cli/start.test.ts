import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import path from "node:path"
import * as FakeGemini from "../../src/layers/FakeGemini.ts"
import { program } from "./program.ts"

/** `npm start`: what somebody runs first, with whatever is in their environment. */

const root = path.dirname(path.dirname(import.meta.dirname))

describe("the demonstration", () => {
  it.effect("compresses the example and calls no model, though there is a key", () =>
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
      assert.match(stdout, /^COMPRESSED [^]*by code/)
      assert.deepStrictEqual(yield* fake.requests, [])
    })
  )
})
