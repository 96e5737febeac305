import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Context, Effect, Exit, Layer, Scope } from "effect"
import * as ChromiumBrowser from "../../../src/layers/tools/ChromiumBrowser.ts"
import { Browser, BrowserFailure, type Targets } from "../../../src/services/tools/Browser.ts"
import { portOf } from "../../support/loopback.ts"
import { needs } from "../../support/machine.ts"
import { afterAll, assert, it } from "../../support/vitest.ts"

const pages: Readonly<Record<string, string>> = {
  "/": `<title>First</title><h1>Welcome</h1><a href="/second">Go on</a><form action="/found"><label>Word <input name="q"></label></form>`,
  "/second": `<title>Second</title><p>You went on</p>`,
  "/popup": `<title>Popup</title><a href="/second" target="_blank">Beside</a>`,
  "/inside": `<title>Inside</title><img src="http://inside.test/secret"><p>public</p>`
}

/** A server that remembers what it was asked for: path and host. */
const site = Effect.gen(function* () {
  const asked: Array<string> = []
  const port = yield* portOf((request, response) => {
    const url = new URL(request.url ?? "/", "http://x")
    asked.push(`${request.headers.host ?? ""}${url.pathname}${url.search}`)
    if (url.pathname === "/away") {
      response.writeHead(302, { location: "http://inside.test/secret" }).end()
      return
    }
    const page =
      url.pathname === "/found" ? `<title>Found ${url.searchParams.get("q") ?? ""}</title>` : pages[url.pathname]
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html" }).end(page ?? "none")
  })
  return { port, asked }
})

/** All names lead to this machine, but for one that is refused. */
const targets: Targets = ({ hostname }) =>
  hostname === "inside.test"
    ? Effect.fail(new BrowserFailure({ message: "inside.test leads to a private network" }))
    : Effect.succeed(["127.0.0.1"])

const live = Layer.provideMerge(ChromiumBrowser.layer, NodeServices.layer)

/** What the browser of this file lives in. */
const scope = Scope.makeUnsafe()

/** A site and a page of one browser, for all tests. */
const world = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const server = yield* site
      const { open } = yield* Layer.build(live).pipe(Effect.map((context) => Context.get(context, Browser)))
      const page = yield* open(targets)
      return { ...server, page, at: (place: string) => `http://public.test:${server.port}${place}` }
    }).pipe(Scope.provide(scope))
  )
)

const tests = () => {
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  it.live("shows a page as an outline, follows a link, fills in a form, goes back, takes a screenshot", function* () {
    const { asked, at, page, port } = yield* world
    const first = yield* page.open(at("/"))
    assert.strictEqual(first.title, "First")
    assert.include(first.outline, "Welcome")
    const [, link = ""] = /link "Go on" \[ref=(\w+)\]/.exec(first.outline) ?? []
    assert.include((yield* page.click(link)).outline, "You went on")
    const again = yield* page.back
    const [, box = ""] = /textbox "Word" \[ref=(\w+)\]/.exec(again.outline) ?? []
    const found = yield* page.type(box, "needle", true)
    assert.strictEqual(found.title, "Found needle")
    const { bytes, mimeType } = yield* page.screenshot
    assert.strictEqual(mimeType, "image/png")
    assert.deepStrictEqual(bytes.slice(1, 4), new TextEncoder().encode("PNG"))
    assert.isTrue(asked.every((one) => one.startsWith(`public.test:${port}/`)))
  })

  it.live("switches to a page that opens in a new tab", function* () {
    const { at, page } = yield* world
    const { outline } = yield* page.open(at("/popup"))
    const [, link = ""] = /link "Beside" \[ref=(\w+)\]/.exec(outline) ?? []
    yield* page.click(link)
    assert.include((yield* page.snapshot).outline, "You went on")
  })

  it.live("reaches no forbidden address: not by name, by redirection, nor from within a page", function* () {
    const { asked, at, page } = yield* world
    const direct = yield* page.open("https://inside.test/").pipe(Effect.flip)
    assert.match(
      direct.message,
      /^https:\/\/inside\.test\/ could not be opened: inside\.test leads to a private network$/
    )
    const led = yield* page.open(at("/away")).pipe(Effect.flip)
    assert.include(led.message, "inside.test leads to a private network")
    assert.include((yield* page.open(at("/inside"))).outline, "public")
    assert.isFalse(asked.some((one) => one.includes("secret")))
  })

  it.live("opens only web pages, and clicks what the outline names", function* () {
    const { at, page } = yield* world
    assert.match(
      (yield* Effect.flip(page.open("file:///etc/passwd"))).message,
      /^file:\/\/\/etc\/passwd is not opened: only/
    )
    yield* page.open(at("/second"))
    assert.match((yield* Effect.flip(page.click("the button"))).message, /^the button is not a reference/)
  })
}

needs("Chromium in its sandbox")("a browser", tests)

it.live(
  "a browser that is missing is reported in one sentence",
  Layer.merge(live, ConfigProvider.layer(ConfigProvider.fromUnknown({ PATH: "/nowhere" }))),
  function* () {
    const { message } = yield* Browser.use((browser) => browser.open(targets)).pipe(Effect.flip)
    assert.strictEqual(
      message,
      "there is no Chromium on this machine; install Chromium or Chrome, or set CHROMIUM_PATH to it"
    )
  }
)
