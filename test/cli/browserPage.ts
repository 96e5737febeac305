import { Effect } from "effect"
import { readFile, mkdtemp } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import path from "node:path"
import { chromium, type Page } from "playwright-core"
import { programOf } from "../support/machine.ts"

/** Pages that a program of ours serves, in a browser. */

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]

/** A page of the server, and everything that should never happen to one. */
export const open = Effect.fnUntraced(function* (address: string, width: number, colorScheme: "light" | "dark") {
  const profile = yield* Effect.promise(() =>
    mkdtemp(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "browser-"))
  )
  const context = yield* Effect.acquireRelease(
    Effect.promise(() =>
      chromium.launchPersistentContext(profile, {
        headless: true,
        executablePath: programOf("Chromium") ?? "",
        args: flags
      })
    ),
    (opened) => Effect.promise(() => opened.close())
  )
  return yield* Effect.promise(async () => {
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    const problems: Array<string> = []
    page.on("console", (message) => problems.push(`console: ${message.text()}`))
    page.on("pageerror", (error) => problems.push(`error: ${error.message}`))
    page.on("dialog", (dialog) => {
      problems.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme })
    await page.goto(address)
    return { page, problems }
  })
})

/** Whether nothing is wider than the window. */
export const fits = (page: Page) => page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth")

/** What an accessibility checker calls serious on a page. */
export const seriousProblems = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(String(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"))))
  return page.evaluate<ReadonlyArray<string>>(
    `axe.run().then(({ violations }) => violations.filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`
  )
}
