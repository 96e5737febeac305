/** Drives an installed Chromium through playwright-core, behind a proxy that checks its connections. */

import { Config, Effect, FileSystem, Layer, Option, type Path, Schedule, type Scope } from "effect"
import path from "node:path"
import process from "node:process"
import { env } from "node:process"
import type * as Playwright from "playwright-core"
import { withAbsolutePath } from "../../domain/platform/SearchPath.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { findProgram } from "../../services/platform/ProgramLookup.ts"
import { Browser, BrowserFailure, type BrowserPage, type Targets } from "../../services/tools/Browser.ts"
import * as BrowserProxy from "./BrowserProxy.ts"

const fail = (message: string) => new BrowserFailure({ message })

const programNames = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge"]
const programPlaces = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe"
]

const environment = Config.all({
  own: Config.option(Config.NonEmptyString("CHROMIUM_PATH")),
  path: Config.option(Config.NonEmptyString("PATH"))
})

/** The browser to start: `CHROMIUM_PATH`, else the first of the common ones that is installed. */
const executable: Effect.Effect<string, BrowserFailure, FileSystem.FileSystem | Path.Path> = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const variables = yield* Effect.orElseSucceed(environment, () => ({
    own: Option.none<string>(),
    path: Option.none<string>()
  }))
  const isThere = (file: string) => Effect.orElseSucceed(fs.exists(file), () => false)
  const own = Option.getOrElse(variables.own, () => "")
  if (path.isAbsolute(own) && (yield* isThere(own))) return own
  const workspace = yield* Effect.orElseSucceed(fs.realPath("."), () => path.resolve("."))
  const searchPath = Option.getOrElse(variables.path, () => "")
  for (const name of programNames) {
    const program = yield* findProgram(name, { path: searchPath, excludedFolders: [workspace] })
    if (program !== undefined) return program
  }
  for (const file of programPlaces) if (yield* isThere(file)) return file
  return yield* fail("there is no Chromium on this machine; install Chromium or Chrome, or set CHROMIUM_PATH to it")
})

/** Hidden from bundlers: the program works without the package and does not include it. */
const packageName = ["playwright", "core"].join("-")

/** The package that drives the browser, loaded for the first page. */
const playwright = Effect.tryPromise({
  try: (): Promise<typeof Playwright> => import(packageName),
  catch: () => fail("the package playwright-core is not installed; install it beside palimpsest to open pages")
})

/** Part of playwright's message when another navigation replaces this one. */
const interrupted = "interrupted by another navigation"

/** Milliseconds for one step. A page that takes longer to load is shown in its state at that time. */
const stepTimeoutMillis = 20_000
const settleTimeoutMillis = 3_000
const pollInterval = "250 millis"
/** Maximum wait for the browser to end. */
const closeTimeout = "5 seconds"

const launchFlags = [
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--disable-component-update",
  // WebRTC connections between pages would bypass the proxy.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp"
]

const firstLine = (error: unknown): string =>
  errorText(error)
    .split("\n")[0]
    ?.replace(/^\w+\.\w+: /, "") ?? "it failed"

const notStarted = (error: unknown) => fail(`Chromium did not start: ${firstLine(error)}`)

const isWeb = (url: string): boolean => {
  const parsed = URL.parse(url)
  return parsed !== null && (parsed.protocol === "http:" || parsed.protocol === "https:")
}

/** Starts the browser behind the proxy. It ends with the scope. */
const started = Effect.fnUntraced(function* (proxyPort: number) {
  const executablePath = yield* executable
  const { chromium } = yield* playwright
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined) variables[name] = value
  return yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        chromium.launch({
          executablePath,
          headless: true,
          // Chromium has no sandbox when it runs as root, as in containers.
          chromiumSandbox: process.platform === "linux" && process.getuid?.() !== 0,
          args: launchFlags,
          // The browser may be a script that starts other programs by name.
          env: withAbsolutePath(variables),
          proxy: { server: `http://127.0.0.1:${proxyPort}` },
          handleSIGINT: false,
          handleSIGTERM: false,
          handleSIGHUP: false,
          timeout: stepTimeoutMillis
        }),
      catch: notStarted
    }),
    (browser) =>
      Effect.ignore(
        Effect.timeoutOption(
          Effect.promise(() => browser.close()),
          closeTimeout
        )
      )
  )
})

/** A running browser: its pages, of which the last opened one is current, and the proxy in front of them. */
interface Session {
  readonly context: Playwright.BrowserContext
  readonly proxy: BrowserProxy.BrowserProxy
  page: Playwright.Page
}

const session = Effect.fnUntraced(function* (targets: Targets) {
  const proxy = yield* BrowserProxy.start(targets)
  const browser = yield* started(proxy.port)
  const context = yield* Effect.tryPromise({
    try: () => browser.newContext({ acceptDownloads: false, serviceWorkers: "block", ignoreHTTPSErrors: false }),
    catch: notStarted
  })
  context.setDefaultTimeout(stepTimeoutMillis)
  const used: Session = { context, proxy, page: yield* Effect.promise(() => context.newPage()) }
  // A page that opens another one moves the user's view there.
  context.on("page", (opened) => {
    used.page = opened
  })
  return used
})

/** Runs work in the browser. Its failure names the connection that the proxy refused, if that is the cause. */
const attempt = <A>({ proxy }: Session, what: string, work: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({
    try: work,
    catch: (error) => {
      const why = firstLine(error)
      // The previous page may still have been loading. This is retried, whatever else was refused meanwhile.
      const refused = why.includes(interrupted) ? "" : proxy.takeReason()
      return fail(`${what}: ${refused === "" ? why : refused}`)
    }
  })

/** Runs an effect whose failure is not explained by connections that were refused before it. */
const afresh = <A, E>({ proxy }: Session, work: Effect.Effect<A, E>) =>
  Effect.andThen(
    Effect.sync(() => proxy.takeReason()),
    work
  )

const step = <A>(used: Session, what: string, work: (signal: AbortSignal) => Promise<A>) =>
  afresh(used, attempt(used, what, work))

const snapshotOf = Effect.fnUntraced(function* (used: Session) {
  const { context } = used
  if (used.page.isClosed()) used.page = context.pages().at(-1) ?? (yield* Effect.promise(() => context.newPage()))
  const current = used.page
  yield* Effect.ignore(
    step(used, "waiting", (signal) => current.waitForLoadState("load", { timeout: settleTimeoutMillis, signal }))
  )
  const outline = yield* step(used, "the page cannot be read", (signal) => current.ariaSnapshot({ mode: "ai", signal }))
  const title = yield* step(used, "the page cannot be read", () => current.title())
  return { url: current.url(), title, outline }
})

const goTo = (used: Session, url: string) =>
  isWeb(url)
    ? attempt(used, `${url} could not be opened`, (signal) =>
        used.page.goto(url, { waitUntil: "domcontentloaded", timeout: stepTimeoutMillis, signal })
      ).pipe(
        // A refusal is displayed as a page, but is not one.
        Effect.flatMap((answer) => {
          const why = BrowserProxy.refusalIn(answer?.headers() ?? {})
          return why === undefined ? Effect.void : Effect.fail(fail(`${url} could not be opened: ${why}`))
        }),
        // The browser may use the connection of the first try for the second: what was refused in either explains it.
        Effect.retry({
          times: 1,
          schedule: Schedule.spaced(pollInterval),
          while: ({ message }) => message.includes(interrupted)
        }),
        (opening) => afresh(used, opening)
      )
    : Effect.fail(fail(`${url} is not opened: only addresses that begin with http:// or https://`))

const element = ({ page }: Session, ref: string) =>
  /^(?:f\d+)?e\d+$/.test(ref)
    ? Effect.succeed(page.getByRef(ref))
    : Effect.fail(fail(`${ref} is not a reference; use one from the last snapshot, such as e12`))

/** Waits after what may navigate or open another page only a moment later. */
const touched = <A>(work: Effect.Effect<A, BrowserFailure>) => Effect.andThen(work, Effect.sleep(pollInterval))

const click = Effect.fnUntraced(function* (used: Session, ref: string) {
  const found = yield* element(used, ref)
  yield* touched(step(used, `${ref} could not be clicked`, (signal) => found.click({ signal })))
})

const type = Effect.fnUntraced(function* (used: Session, ref: string, text: string, submit: boolean) {
  const found = yield* element(used, ref)
  yield* step(used, `text cannot be typed into ${ref}`, (signal) => found.fill(text, { signal }))
  if (submit)
    yield* touched(step(used, `Enter cannot be pressed in ${ref}`, (signal) => found.press("Enter", { signal })))
})

const open = Effect.fn("ChromiumBrowser.open")(function* (
  targets: Targets
): Effect.fn.Return<BrowserPage, BrowserFailure, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const used = yield* session(targets)
  const snapshot = Effect.suspend(() => snapshotOf(used))
  const thenSnapshot = <A>(work: Effect.Effect<A, BrowserFailure>) => Effect.andThen(work, snapshot)
  return {
    open: (url) => thenSnapshot(goTo(used, url)),
    snapshot,
    click: (ref) => thenSnapshot(click(used, ref)),
    type: (ref, text, submit) => thenSnapshot(type(used, ref, text, submit)),
    back: thenSnapshot(step(used, "there is no previous page", (signal) => used.page.goBack({ signal }))),
    screenshot: Effect.map(
      step(used, "no screenshot could be taken", (signal) => used.page.screenshot({ type: "png", signal })),
      (bytes) => ({ mimeType: "image/png", bytes: new Uint8Array(bytes) })
    )
  }
})

/** Browsers of this machine. Each starts with its first page and ends with its scope. */
export const layer: Layer.Layer<Browser, never, FileSystem.FileSystem | Path.Path> = Layer.effect(
  Browser,
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (context) => ({
    open: (targets) => Effect.provideContext(open(targets), context)
  }))
)
