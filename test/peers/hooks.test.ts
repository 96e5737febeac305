import { Effect } from "effect"
import { spawn } from "node:child_process"
import path from "node:path"
import { place, runs, serve, turnsOf, write } from "../cli/scene.ts"
import { assert, it } from "../support/vitest.ts"
import * as Workflow from "../support/workflow.ts"
import { packageFolder } from "./install.ts"

/** The same hooks, run by Gemini CLI itself and by us: what comes of each of them is the same. */

const gemini = path.join(packageFolder("@google/gemini-cli"), "bundle", "gemini.js")
const { PATH = "" } = process.env

/** Runs Gemini CLI once, in a home of its own. Nothing but the server on loopback answers it. */
const original = Effect.fnUntraced(function* (home: string, cwd: string, url: string) {
  return yield* Effect.callback<{ readonly status: number | null; readonly stderr: string }>((resume) => {
    const args = [gemini, "--model", "gemini-2.5-flash", "--approval-mode", "yolo", "--prompt", Workflow.prompt]
    const child = spawn(process.execPath, args, {
      cwd,
      stdio: ["ignore", "ignore", "pipe"],
      env: {
        PATH,
        HOME: home,
        USERPROFILE: home,
        GEMINI_API_KEY: "AIza-not-a-real-key",
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_CLI_TRUST_WORKSPACE: "true",
        HTTPS_PROXY: url,
        NO_PROXY: "127.0.0.1,localhost",
        NO_COLOR: "1"
      }
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
    })
    child.on("close", (status) => resume(Effect.succeed({ status, stderr })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
})

it.live(
  "hooks in Gemini CLI 0.61 and here have the same 14 effects",
  () =>
    Effect.gen(function* () {
      const there = yield* place("peers-hooks-gemini")
      write(there.user, {
        ".gemini/settings.json": {
          ...Workflow.settings(),
          security: { auth: { selectedType: "gemini-api-key" } },
          general: { enableAutoUpdate: false },
          privacy: { usageStatisticsEnabled: false }
        }
      })
      Workflow.install(there.cwd)
      const asked = yield* serve(...Workflow.answers)
      const { status, stderr } = yield* original(there.user, there.cwd, asked.url)
      assert.strictEqual(status, 0, stderr)
      const theirs = Workflow.effects({ cwd: there.cwd, stderr, requests: yield* turnsOf(asked) })

      const here = yield* place("peers-hooks-ours", { home: { "settings.json": Workflow.settings() } })
      Workflow.install(here.cwd)
      const fake = yield* serve(...Workflow.answers)
      const ran = yield* runs(here, fake, ["ask", Workflow.prompt, "--approve", "all"])
      assert.strictEqual(ran.status, 0, ran.stderr)
      const ours = Workflow.effects({ cwd: here.cwd, stderr: ran.stderr, requests: yield* turnsOf(fake) })

      assert.lengthOf(Object.keys(theirs), 14)
      assert.deepStrictEqual(ours, theirs)
      assert.deepStrictEqual(theirs, Workflow.expected)
    }),
  300_000
)
