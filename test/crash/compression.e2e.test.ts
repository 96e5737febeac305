import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import path from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import { says, textsOf } from "../cli/scene.ts"
import { newFolder } from "../support/paths.ts"
import { askProcess, ended, type ServerProcess, startProcess } from "../support/serverProcess.ts"

/**
 * A server that is killed in a compression: the next one goes on after the last step that was stored, and pays for no answer
 * twice. `npm run test:crash` kills it in each of the five steps.
 */

/** When the server is killed, and how often the model is asked for the snapshot and for its check. */
const moments = [
  { step: "hook", asked: [1, 1] },
  { step: "plan", asked: [2, 1] },
  { step: "generate", asked: [1, 2] },
  // The answer was stored before the kill, or not.
  { step: "verify", asked: [1, undefined] },
  { step: "commit", asked: [1, 1] }
] as const

const shown =
  process.env["MODE"] === "kills" ? moments : moments.filter(({ step }) => step === "generate" || step === "commit")

/** A hook that kills the server that runs it, once this file exists. */
const killing = (armed: string) => [
  { hooks: [{ type: "command", command: `if test -e ${armed}; then rm ${armed}; kill -9 $PPID; fi` }] }
]

const snapshot = "<state_snapshot><overall_goal>To count.</overall_goal></state_snapshot>"

describe("a compression whose server is killed", () => {
  for (const { asked, step } of shown) {
    it.live(
      `goes on after the step ${step}`,
      () =>
        Effect.gen(function* () {
          const { bundle } = yield* program
          const counts = { generate: 0, verify: 0 }
          let server: ServerProcess | undefined
          let isKilled = false
          const kill = () => {
            isKilled = true
            server?.child.kill("SIGKILL")
          }
          const fake = yield* FakeGemini.make((request) => {
            if (request.method === "streamGenerateContent") return says("An answer.")
            if (request.method === "countTokens") return FakeGemini.tokens(100)
            const question = textsOf(request).at(-1) ?? ""
            const answer = FakeGemini.json(FakeGemini.response([{ text: snapshot }]))
            if (question.startsWith("Write your part")) {
              counts.generate += 1
              if (step !== "plan" || isKilled) return answer
              kill()
              return [FakeGemini.stall]
            }
            if (!question.startsWith("Check each line")) return answer
            counts.verify += 1
            if (isKilled) return answer
            if (step === "verify") setTimeout(kill, Math.random() * 40)
            if (step !== "generate") return answer
            kill()
            return [FakeGemini.stall]
          })
          yield* Effect.promise(async () => {
            const home = newFolder()
            const armed = path.join(home, "armed")
            const hook = step === "hook" ? "PreCompress" : step === "commit" ? "PostCompress" : "Notification"
            writeFileSync(path.join(home, "settings.json"), JSON.stringify({ hooks: { [hook]: killing(armed) } }))
            const start = () => startProcess(bundle, { home, model: fake.url, args: ["--store", "sqlite"] })
            const first = (server = await start())
            await askProcess(first, "POST", "", { id: "one" })
            for (let at = 0; at < 4; at += 1) {
              const text = `Message ${at}. ${"Some words that say little. ".repeat(400)}`
              await (await askProcess(first, "POST", "/one/messages", { id: `m${at}`, text })).text()
            }
            writeFileSync(armed, "")
            const compressing = askProcess(first, "POST", "/one/compress", {}).then(
              (response) => response.text(),
              () => ""
            )
            await new Promise((resolve) => first.child.once("exit", resolve))
            await compressing
            const next = await start()
            // What was accepted is carried out without being asked for again.
            let compressions: ReadonlyArray<{ readonly status: string }> = []
            while (compressions.length === 0) {
              await wait(50)
              compressions = JSON.parse(await (await askProcess(next, "GET", "/one/ledger")).text()).compressions
            }
            await (await askProcess(next, "POST", "/one/messages", { id: "last", text: "More?" })).text()
            const view = JSON.parse(await (await askProcess(next, "GET", "/one/ledger")).text())
            await ended(next, "SIGTERM")
            assert.deepStrictEqual(
              view.compressions.map(({ status }: { readonly status: string }) => status),
              ["COMPRESSED"]
            )
            const [generate, verify = counts.verify] = asked
            assert.deepStrictEqual(counts, { generate, verify })
            assert.isAtMost(counts.verify, 2)
          })
        }),
      120_000
    )
  }
})
