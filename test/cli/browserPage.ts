import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { type Browser, chromium, type Page } from "playwright-core"
import { programOf } from "../support/machine.ts"
import { afterAll, assert } from "../support/vitest.ts"

/** Pages of ours in a browser: from disk, and from a server. */

/** Milliseconds for what a busy machine does late; playwright gives up after 30 seconds. */
const patience = 300_000

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

let started: Promise<Browser> | undefined

/** Ends the browser after the tests of this file, which share one: starting it takes longer than most of them. */
export const sharesBrowser = (): void =>
  afterAll(async () => {
    const browser = await started
    started = undefined
    await browser?.close()
  })

interface Look {
  readonly scheme?: "light" | "dark"
  readonly width?: number
}

/** A page in a profile of its own, and a check that nothing happened on it that never should: errors, dialogs, requests elsewhere. */
export const open = Effect.fnUntraced(function* (url: string, { scheme = "light", width = 1_280 }: Look = {}) {
  const context = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      started ??= chromium.launch({ headless: true, executablePath: programOf("Chromium") ?? "", args: flags })
      return (await started).newContext()
    }),
    (opened) => Effect.promise(() => opened.close())
  )
  return yield* Effect.promise(async () => {
    const page = await context.newPage()
    page.setDefaultTimeout(patience)
    const problems: Array<string> = []
    const isOwn = (asked: string) => (url.startsWith("file:") ? asked === url : asked.startsWith(new URL(url).origin))
    page.on("console", (message) => problems.push(`console: ${message.text()}`))
    page.on("pageerror", (error) => problems.push(`error: ${error.message}`))
    page.on("request", (request) => {
      if (!isOwn(request.url())) problems.push(`request: ${request.url()}`)
    })
    page.on("dialog", (dialog) => {
      problems.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    await page.addInitScript(`
      window.violations = []
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective))
    `)
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme: scheme })
    await page.goto(url)
    const check = async () => {
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(await page.evaluate("window.violations"), [])
    }
    return { page, check }
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
