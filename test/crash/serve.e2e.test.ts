import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import { says } from "../cli/scene.ts"

/**
 * A server over SQLite that is killed at random moments while messages are sent to it: every acknowledged message is in the
 * session once, with one answer, whatever was killed. `npm run test:crash` kills it 100 times.
 */

const kills = process.env["MODE"] === "kills" ? 100 : 3

interface Started {
  readonly child: ChildProcess
  readonly url: string
  readonly token: string
}

const start = (bundle: string, home: string, model: string): Promise<Started> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bundle, "serve", "--store", "sqlite", "--port", "0", "--json"], {
      cwd: home,
      env: {
        PATH: process.env["PATH"] ?? "",
        PALIMPSEST_HOME: home,
        GEMINI_API_KEY: "AIza-not-a-real-key",
        GOOGLE_GEMINI_BASE_URL: model
      }
    })
    let errors = ""
    child.stderr.on("data", (data) => (errors += String(data)))
    child.stdout.once("data", (data) => resolve({ child, ...JSON.parse(String(data)) }))
    child.once("exit", () => reject(new Error(`the server did not start: ${errors}`)))
  })

const ask = ({ token, url }: Started, method: string, place: string, body?: unknown) =>
  fetch(`${url}/v1/sessions${place}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

describe("a server that is killed", () => {
  it.live(
    `answers every acknowledged message once (${kills} kills)`,
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        const fake = yield* FakeGemini.make(({ method }) =>
          method === "streamGenerateContent" ? says("An answer.") : FakeGemini.tokens(100)
        )
        yield* Effect.promise(async () => {
          const home = mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "killed-"))
          let server = await start(bundle, home, fake.url)
          await ask(server, "POST", "", { id: "one" })
          const acknowledged: Array<string> = []
          for (let kill = 0; kill < kills; kill += 1) {
            const id = `m${kill}`
            const sent = ask(server, "POST", "/one/messages", { id, text: `Message ${kill}` }).then(
              async (response) => {
                // The head of the answer comes when the message is stored.
                if (response.status === 200) acknowledged.push(id)
                await response.text()
              },
              () => {}
            )
            const { child } = server
            const ended = new Promise((resolve) => child.once("exit", resolve))
            await new Promise((resolve) => setTimeout(resolve, Math.random() * 400))
            child.kill("SIGKILL")
            await Promise.all([ended, sent.catch(() => {})])
            server = await start(bundle, home, fake.url)
          }
          // The stream of a message ends when it is answered.
          for (const id of acknowledged) await (await ask(server, "GET", `/one/messages/${id}/events`)).text()
          const view: {
            readonly messages: ReadonlyArray<{ readonly role: string; readonly messageId: string | null }>
          } = JSON.parse(await (await ask(server, "GET", "/one?messages=1000")).text())
          server.child.kill("SIGKILL")
          const ids = view.messages.flatMap(({ messageId }) => (messageId === null ? [] : [messageId]))
          assert.deepStrictEqual([...new Set(ids)], ids)
          for (const id of acknowledged) assert.include(ids, id)
          assert.deepStrictEqual(
            view.messages.map(({ role }) => role),
            ids.flatMap(() => ["user", "model"])
          )
        })
      }),
    kills * 20_000
  )
})
