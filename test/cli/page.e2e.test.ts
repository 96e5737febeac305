import { Effect, Scope } from "effect"
import { readFile, writeFile } from "node:fs/promises"
import path from "node:path"
import { pathToFileURL } from "node:url"
import type { Page } from "playwright-core"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { sessionFile } from "../support/sessions.ts"
import { assert, it } from "../support/vitest.ts"
import { fits, open as openPage, seriousProblems, sharesBrowser } from "./browserPage.ts"
import { everything, hostile } from "./page/pages.ts"
import { example, run } from "./program.ts"

/** The page in a browser: what only shows there. It is opened from disk, as people do. */

const scratch = Effect.sync(() => newFolder("page-"))

/** A page from disk. */
const open = (file: string, look?: Parameters<typeof openPage>[1]) => openPage(pathToFileURL(file).href, look)

/** The page of a conversation, written by the program. */
const written = Effect.fnUntraced(function* (file: string) {
  const html = path.join(yield* scratch, "page.html")
  const { status, stdout } = yield* run(["inspect", file, "--html", html])
  assert.deepStrictEqual([status, String(stdout)], [0, ""])
  return html
})

const session = Effect.runSync(Effect.cached(Effect.suspend(() => written(sessionFile("claude-code-1512-lines")))))

/** The page of a replay by all strategies, written by the program. */
const compared = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const html = path.join(yield* scratch, "replay.html")
      const names = "palimpsest,gemini,pi,openclaw"
      const { status, stdout } = yield* run(["replay", example, "--window", "8k", "--strategy", names, "--html", html])
      assert.deepStrictEqual([status, String(stdout)], [0, ""])
      return html
    })
  )
)

/** The page of the session, opened once for what leaves it as it was. */
const shared = Effect.runSync(
  Effect.cached(
    Effect.flatMap(session, (file) => open(file)).pipe(Effect.provideService(Scope.Scope, Scope.makeUnsafe()))
  )
)

const contents = Effect.fnUntraced(function* (value: ReadonlyArray<unknown>) {
  const file = path.join(yield* scratch, "contents.json")
  yield* Effect.promise(() => writeFile(file, JSON.stringify(value)))
  return file
})

/** The least contrast of texts on what lies behind them, by WCAG 2. Runs in the browser. */
const contrast = `(selector) => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number)
  const luminance = ([r, g, b]) => [r, g, b]
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0)
  const behind = (element) => {
    const colour = channels(getComputedStyle(element).backgroundColor)
    return colour.length === 3 || colour[3] === 1 ? colour : behind(element.parentElement)
  }
  const ratios = [...document.querySelectorAll(selector)].map((element) => {
    const style = getComputedStyle(element)
    const text = luminance(channels(element instanceof SVGElement ? style.fill : style.color))
    const ground = luminance(behind(element instanceof SVGElement ? element.ownerSVGElement.parentElement : element))
    return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05)
  })
  return Math.min(...ratios)
}`

const looks = [
  ["light", 1_280],
  ["dark", 360]
] as const

const texts = [
  "body",
  ".lead",
  ".over",
  "dl dt",
  "nav a",
  ".legend li",
  "thead th",
  "tbody td",
  "td a",
  "figcaption",
  ".plot text",
  ".id",
  ".words",
  "li.cut",
  ".about",
  ".part p",
  "pre",
  "button",
  "select",
  "footer"
]

const evaluate = <A>(page: Page, script: string): Promise<A> => page.evaluate<A>(script)
const shown = (page: Page) =>
  evaluate<Array<string>>(page, `[...document.querySelectorAll("li.message:not([hidden])")].map((row) => row.id)`)
/** Waits without evaluating anything later on: the page's policy forbids that. */
const untilFiltered = (page: Page, told: RegExp) =>
  page.locator("#told").filter({ hasText: told }).waitFor({ state: "attached" })

const tests = () => {
  sharesBrowser()

  it.effect.each(looks)("is complete and readable: %s, %s pixels wide", function* ([scheme, width]) {
    const { check, page } = yield* open(yield* session, { scheme, width })
    yield* Effect.promise(async () => {
      await page.click("#e12 summary")
      assert.isTrue(await fits(page))
      for (const selector of texts) {
        const ratio = await evaluate<number>(page, `(${contrast})(${JSON.stringify(selector)})`)
        assert.isAtLeast(ratio, 4.5, selector)
      }
      const size = width > 640 ? "wide" : "narrow"
      assert.strictEqual(await page.locator(".plot:visible").count(), await page.locator(`.plot.${size}`).count())
      const area = await page.locator(`#growth .plot.${size} path`).first().boundingBox()
      assert.isAbove(area?.width ?? 0, width > 640 ? 600 : 250)
      assert.isAbove(await page.locator(`#growth .plot.${size} a circle`).count(), 5)
      const bars = await evaluate<Array<number>>(
        page,
        `[...document.querySelectorAll("#tokens .bar rect:first-child")].map((bar) => bar.getBoundingClientRect().width)`
      )
      assert.isAbove(Math.max(...bars), 5)
      await check()
    })
  })

  it.effect.each(looks.slice(1))("shows strategies side by side: %s, %s pixels wide", function* ([scheme, width]) {
    const { check, page } = yield* open(yield* compared, { scheme, width })
    yield* Effect.promise(async () => {
      assert.isTrue(await fits(page))
      for (const selector of [".lead", ".note", "thead th", "tbody td", ".within", "figcaption", ".plot text"]) {
        const ratio = await evaluate<number>(page, `(${contrast})(${JSON.stringify(selector)})`)
        assert.isAtLeast(ratio, 4.5, selector)
      }
      const size = width > 640 ? "wide" : "narrow"
      assert.strictEqual(await page.locator(".plot:visible").count(), 1)
      const strokes = await evaluate<Array<string>>(
        page,
        `[...document.querySelectorAll(".plot.${size} [class*='line series-']")].map((line) => getComputedStyle(line.querySelector("path") ?? line).stroke)`
      )
      assert.lengthOf(new Set(strokes), 4)
      const row = (name: string) =>
        page
          .locator("#figures tr", { has: page.getByText(name, { exact: true }) })
          .locator("td")
          .allTextContents()
      assert.lengthOf(await row("tokens sent in total"), 4)
      const changes = (await row("COMPRESSED")).reduce((total, count) => total + Number(count), 0)
      assert.isAbove(changes, 3)
      assert.isAtLeast(await page.locator(`.plot.${size} .mark circle, .plot.${size} circle.mark`).count(), changes)
      await check()
    })
  })

  it.effect("has a dark scheme, by system preference or by its button", function* () {
    const { check, page } = yield* open(yield* written(example), { scheme: "light" })
    yield* Effect.promise(async () => {
      const ground = () => evaluate<string>(page, "getComputedStyle(document.body).backgroundColor")
      const light = await ground()
      await page.click("#scheme")
      const dark = await ground()
      assert.notStrictEqual(light, dark)
      await page.click("#scheme")
      assert.strictEqual(await ground(), light)
      await page.emulateMedia({ colorScheme: "dark" })
      await page.reload()
      assert.strictEqual(await ground(), dark)
      await page.emulateMedia({ media: "print" })
      assert.strictEqual(await ground(), light)
      assert.isFalse(await page.locator("nav").isVisible())
      await check()
    })
  })

  it.effect("has nothing that an accessibility checker calls serious, and shows two runs side by side", function* () {
    const folder = yield* scratch
    const html = path.join(folder, "beside.html")
    const { status } = yield* run(["inspect", example, "--beside", sessionFile("claude-code-short"), "--html", html])
    assert.strictEqual(status, 0)
    for (const [file, scheme, width] of [
      [html, "dark", 360],
      [yield* compared, "light", 1_280]
    ] as const) {
      const { check, page } = yield* open(file, { scheme, width })
      yield* Effect.promise(async () => {
        await evaluate(
          page,
          `document.querySelectorAll("#e1 details, #e2 details, #e3 details").forEach((each) => { each.open = true })`
        )
        assert.isTrue(await fits(page))
        assert.deepStrictEqual(await seriousProblems(page), [], `${scheme}, ${width} pixels`)
        if (file === html) assert.strictEqual(await page.locator("#beside .plot:visible path").count(), 2)
        await check()
      })
    }
  })

  it.effect("marks the hits of a search, and steps through them by keyboard", function* () {
    const { check, page } = yield* shared
    yield* Effect.promise(async () => {
      await page.fill("#search", "session_live")
      await untilFiltered(page, /^\d+ of 280$/)
      const marked = () =>
        evaluate<ReadonlyArray<string>>(
          page,
          `["hit", "now"].map((name) => [...CSS.highlights.get(name)].map((range) => range.toString().toLowerCase()))
              .map((texts) => texts.length + " " + [...new Set(texts)].join())`
        )
      const [all = ""] = await marked()
      assert.match(all, /^\d+ session_live$/)
      await page.press("#search", "Enter")
      await page.press("#search", "Enter")
      await page
        .locator("#hits")
        .filter({ hasText: /^2 of \d+ hits$/ })
        .waitFor()
      assert.deepStrictEqual(await marked(), [all, "1 session_live"])
      const isSeen = () =>
        evaluate<boolean>(
          page,
          `(() => {
              const { top, bottom, width } = [...CSS.highlights.get("now")][0].getBoundingClientRect()
              return width > 0 && top >= 0 && bottom <= innerHeight
            })()`
        )
      while (!(await isSeen())) await page.waitForTimeout(50)
      await page.click("#filter button[type=reset]")
      await page.locator("#hits:empty").waitFor({ state: "attached" })
      assert.deepStrictEqual(await marked(), ["0 ", "0 "])
      await check()
    })
  })

  it.effect("expands a message by mouse and by keyboard, and shows exactly its text", function* () {
    const file = sessionFile("claude-code-1512-lines")
    const { check, page } = yield* shared
    const part = page.locator("#e5 .part").first()
    assert.isFalse(yield* Effect.promise(() => part.isVisible()))
    yield* Effect.promise(() => page.click("#e5 summary"))
    assert.isTrue(yield* Effect.promise(() => part.isVisible()))
    const handle = yield* Effect.promise(() => part.locator("p code").first().textContent())
    const recalled = yield* run(["recall", file, handle ?? ""])
    assert.strictEqual(recalled.status, 0)
    assert.strictEqual(yield* Effect.promise(() => part.locator("pre").textContent()), String(recalled.stdout))
    yield* Effect.promise(async () => {
      await page.focus("#e6 summary")
      await page.keyboard.press("Enter")
      assert.isTrue(await page.locator("#e6 .part").first().isVisible())
      await check()
    })
  })

  it.effect("links from its tables and charts to the message, expanded and in view", function* () {
    const { check, page } = yield* shared
    yield* Effect.promise(async () => {
      for (const link of ["#largest tbody a", "#reads tbody a", "#growth .plot.wide a"]) {
        const target = await evaluate<string>(
          page,
          `(({ href }) => (href.baseVal ?? href).replace(/.*#/, ""))(document.querySelector(${JSON.stringify(link)}))`
        )
        await page.locator(link).first().focus()
        await page.keyboard.press("Enter")
        await page.waitForURL(new RegExp(`#${target}$`))
        // The page unfolds it when it hears of the new address, which is after the address is there.
        await page.locator(`#${target} .about`).waitFor({ state: "visible" })
        const place = await evaluate<{ top: number; form: number; height: number }>(
          page,
          `({ top: document.querySelector("#${target}").getBoundingClientRect().top, form: document.querySelector("#filter").getBoundingClientRect().bottom, height: innerHeight })`
        )
        assert.isAtLeast(place.top, place.form - 1, link)
        assert.isBelow(place.top, place.height, link)
      }
      await check()
    })
  })

  it.effect("filters by words, kind and place, and still shows the target of a link", function* () {
    const { check, page } = yield* shared
    yield* Effect.promise(async () => {
      const all = await shown(page)
      assert.strictEqual(all.length, 280)
      await page.fill("#search", "SPOTTER-DOV.1 ")
      await untilFiltered(page, /^\d+ of 280$/)
      const found = await shown(page)
      assert.include(found, "e5")
      assert.isBelow(found.length, 280)
      const said = await evaluate<Array<boolean>>(
        page,
        `[...document.querySelectorAll("li.message")].map((row) => row.hidden !== row.textContent.toLowerCase().includes("spotter-dov.1"))`
      )
      assert.notInclude(said, false)
      await page.fill("#search", "")
      await page.selectOption("#kind", "summary")
      await untilFiltered(page, /^1 of 280$/)
      assert.deepStrictEqual(await shown(page), ["e125"])
      await page.selectOption("#kind", "")
      await page.selectOption("#where", "in")
      await untilFiltered(page, /^156 of 280$/)
      assert.notInclude(await shown(page), "e11")
      await page.locator(`#largest a[href="#e11"]`).first().click()
      await page.locator("#told:empty").waitFor({ state: "attached" })
      assert.isTrue(await page.locator("#e11 .about").isVisible())
      assert.deepStrictEqual(await shown(page), all)
      await check()
    })
  })

  it.effect("shows hostile content as inert text", function* () {
    const said = [...Object.values(hostile), everything]
    const exact = "\n\n  <b>first</b>\r\n\tlast &amp; \n"
    const file = yield* contents([
      { role: "user", parts: [{ text: exact }, ...said.map((text) => ({ text }))] },
      {
        role: "model",
        parts: said.map((name, id) => ({ functionCall: { name, id: `${id}`, args: { path: name, [name]: 1 } } }))
      },
      {
        role: "user",
        parts: said.map((name, id) => ({ functionResponse: { name, id: `${id}`, response: { output: name } } }))
      },
      {
        role: "model",
        parts: [{ inlineData: { mimeType: everything, data: "" } }, { fileData: { fileUri: "javascript:alert(1)" } }]
      }
    ])
    const html = yield* written(file)
    const { check, page } = yield* open(html)
    const bytes = yield* Effect.promise(() => readFile(html))
    assert.isTrue(Buffer.from(bytes.toString("utf8"), "utf8").equals(bytes))
    yield* Effect.promise(async () => {
      assert.match(await page.title(), /^contents\.json/)
      await evaluate(page, `document.querySelectorAll("details").forEach((each) => { each.open = true })`)
      assert.strictEqual(await page.locator("#e1 pre").first().textContent(), exact)
      const odd = await evaluate<number>(
        page,
        `document.querySelectorAll("img, iframe, object, embed, base, link, body script ~ *, main script, main style, h1 ~ h1, [onload], [onerror], [onmouseover]").length`
      )
      assert.strictEqual(odd, 0)
      for (const row of ["e1", "e2", "e3", "e4"]) assert.isTrue(await page.locator(`#${row} .about`).isVisible())
      assert.isTrue(await fits(page))
      await page.setViewportSize({ width: 360, height: 900 })
      assert.isTrue(await fits(page))
      await page.fill("#search", "alert(1)")
      await untilFiltered(page, /^4 of 4$/)
      await check()
    })
  })

  it.effect.each([
    ["nothing", []],
    ["one message", [{ role: "user", parts: [{ text: "hello" }] }]]
  ] as const)("is complete with %s", function* ([, value]) {
    const { check, page } = yield* open(yield* written(yield* contents(value)), { width: 360 })
    yield* Effect.promise(async () => {
      assert.strictEqual((await shown(page)).length, value.length)
      assert.isTrue(await fits(page))
      await check()
    })
  })

  it.effect("filters thousands of messages while typing", function* () {
    const many = Array.from({ length: 6_000 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "model",
      parts: [{ text: `message ${index}` }]
    }))
    const { check, page } = yield* open(yield* written(yield* contents(many)))
    yield* Effect.promise(async () => {
      // Browsers number list items anew for each that is hidden, which takes quadratic time: rows must be none.
      const displays = await evaluate<ReadonlyArray<string>>(
        page,
        `(() => {
            const displays = [...document.querySelectorAll("ol.rows > li")].map((row) => getComputedStyle(row).display)
            document.querySelector("#search").value = "message 5999"
            document.querySelector("#filter").requestSubmit()
            return [...new Set(displays)]
          })()`
      )
      assert.deepStrictEqual(displays, ["block"])
      await untilFiltered(page, /^1 of 5,000$/)
      await check()
    })
  })
}

needs("Chromium")("the page in a browser", tests)
