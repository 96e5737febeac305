import { Effect } from "effect"
import { spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { sharedCode } from "../support/temporaryFolder.ts"
import { assert, it } from "../support/vitest.ts"
import { open, sharesBrowser } from "./browserPage.ts"
import { program } from "./program.ts"
import { results, says, textsOf } from "./scene.ts"

/** The example of a product, in a browser: a support desk that streams, takes a picture, asks for a refund, is killed and goes on. */

const folder = path.join(import.meta.dirname, "../../examples/product")
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

it("the desk has at most 200 lines", () => {
  const lines = ["desk.mjs", "page.html"].map(
    (name) => readFileSync(path.join(folder, name), "utf8").split("\n").length - 1
  )
  assert.isAtMost(
    lines.reduce((sum, count) => sum + count, 0),
    200
  )
})

needs("Chromium")("the support desk", () => {
  sharesBrowser()
  it.live(
    "streams, takes a picture, asks for a refund, is killed while it waits, and goes on",
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        const call = (name: string, id: string) => ({ functionCall: { id, name, args: { order: "7" } } })
        const fake = yield* FakeGemini.make((request) => {
          if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
          const told = JSON.stringify(results(request))
          if (told.includes("refunded")) return says("Your money is on its way.")
          if (told.includes("teapot")) return FakeGemini.sse(FakeGemini.response([call("refund_order", "c2")]))
          if (textsOf(request).at(-1)?.includes("broken") === true) {
            return FakeGemini.sse(FakeGemini.response([call("look_up_order", "c1")]))
          }
          return says("Hello, how can I help?")
        })
        const home = newFolder("desk-")
        const env = {
          PATH: process.env["PATH"] ?? "",
          ...sharedCode,
          PALIMPSEST: bundle,
          DESK_HOME: home,
          DESK_PORT: "0",
          GEMINI_API_KEY: "AIza-not-a-real-key",
          GOOGLE_GEMINI_BASE_URL: fake.url
        }
        const child = yield* Effect.acquireRelease(
          Effect.sync(() => spawn(process.execPath, [path.join(folder, "desk.mjs")], { env })),
          (desk) =>
            Effect.promise(async () => {
              // One that has ended by itself sends no other event.
              if (desk.exitCode !== null || desk.signalCode !== null) return
              await new Promise((resolve) => void (desk.once("exit", resolve), desk.kill("SIGTERM")))
            })
        )
        const url = yield* Effect.promise(
          () => new Promise<string>((resolve) => child.stdout.once("data", (line) => resolve(String(line).trim())))
        )
        const status = async (): Promise<{ readonly pid: number | null }> =>
          JSON.parse(await (await fetch(`${url}/status`)).text())
        // A customer does not wait until the server is up.
        const greeting = JSON.stringify({ id: "m1", text: "Good morning" })
        const sentAtOnce = yield* Effect.promise(() => fetch(`${url}/message`, { method: "POST", body: greeting }))
        assert.strictEqual(sentAtOnce.status, 200)
        const { check, page } = yield* open(url)
        // Names the step that waits for good.
        page.setDefaultTimeout(90_000)
        yield* Effect.promise(async () => {
          const has = (text: string) => page.getByText(text).waitFor()
          await has("Hello, how can I help?")
          const picture = path.join(home, "broken.png")
          writeFileSync(picture, Buffer.from(pixel, "base64"))
          await page.setInputFiles("[name=picture]", picture)
          await page.fill("[name=text]", "My teapot of order 7 is broken.")
          await page.click("text=Send")
          await has("Refund order 7?")
          const { pid } = await status()
          process.kill(pid ?? 0, "SIGKILL")
          while ([null, pid].includes((await status()).pid)) await new Promise((resolve) => setTimeout(resolve, 50))
          await page.click("text=Allow")
          await has("Your money is on its way.")
          await has("Refund allowed")
          assert.strictEqual(await page.locator(".question").count(), 1)
          assert.strictEqual(await page.locator("li").count(), 5)
        })
        const sent = yield* fake.requests
        assert.include(JSON.stringify(sent), pixel)
        yield* Effect.promise(check)
      }),
    240_000
  )
})
