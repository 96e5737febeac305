import { Config, Effect, FiberSet, FileSystem, Layer, Option, type Path, Result, Schedule, type Scope } from "effect"
import type { Buffer } from "node:buffer"
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import path from "node:path"
import process, { env } from "node:process"
import type * as Playwright from "playwright-core"
import { withAbsolutePath } from "../../domain/platform/SearchPath.ts"
import { findProgram } from "../../services/platform/ProgramLookup.ts"
import { Browser, BrowserFailure, type BrowserPage, type Snapshot, type Targets } from "../../services/tools/Browser.ts"

/** Drives an installed Chromium through playwright-core, which is loaded for the first page. */

const fail = (message: string) => new BrowserFailure({ message })

// --- the installed browser --------------------------------------------------------------------------------------------------

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
  const known = yield* Effect.orElseSucceed(environment, () => ({
    own: Option.none<string>(),
    path: Option.none<string>()
  }))
  const isThere = (file: string) => Effect.orElseSucceed(fs.exists(file), () => false)
  const own = Option.getOrElse(known.own, () => "")
  if (path.isAbsolute(own) && (yield* isThere(own))) return own
  const workspace = yield* Effect.orElseSucceed(fs.realPath("."), () => path.resolve("."))
  const searchPath = Option.getOrElse(known.path, () => "")
  for (const name of programNames) {
    const program = yield* findProgram(name, { path: searchPath, excludedFolders: [workspace] })
    if (program !== undefined) return program
  }
  for (const file of programPlaces) if (yield* isThere(file)) return file
  return yield* fail("there is no Chromium on this machine; install Chromium or Chrome, or set CHROMIUM_PATH to it")
})

/** Hidden from bundlers: the program works without the package and does not include it. */
const packageName = ["playwright", "core"].join("-")

const playwright = Effect.tryPromise({
  try: (): Promise<typeof Playwright> => import(packageName),
  catch: () => fail("the package playwright-core is not installed; install it beside palimpsest to open pages")
})

// --- connections --------------------------------------------------------------------------------------------------------------

/**
 * A proxy on the loopback interface for all connections of the browser. It resolves each host through `targets` and connects to that
 * exact address, so neither a redirect nor a changed DNS answer leads elsewhere.
 */
const guard = Effect.fnUntraced(function* (targets: Targets) {
  let reason = ""
  const run = yield* FiberSet.makeRuntimePromise<never, Result.Result<string, string>>()
  const judge = (url: URL) =>
    run(
      targets(url).pipe(
        Effect.flatMap(([first]) =>
          first === undefined ? fail(`${url.host} could not be found`) : Effect.succeed(first)
        ),
        Effect.mapError(({ message }) => message),
        Effect.result,
        Effect.tap((result) =>
          Effect.sync(() => {
            if (Result.isFailure(result)) reason = result.failure
          })
        )
      )
    )

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const url = URL.parse(request.url ?? "")
    const refuse = (why: string) => {
      response.writeHead(403, { "content-type": "text/plain; charset=utf-8", [refusal]: encodeURIComponent(why) })
      response.end(why)
    }
    if (url === null || url.protocol !== "http:") return refuse("only http and https")
    void judge(url).then((result) => {
      if (Result.isFailure(result)) {
        refuse(result.failure)
        return
      }
      const { host: _host, "proxy-connection": _proxy, ...headers } = request.headers
      const outgoing = httpRequest(
        {
          host: result.success,
          port: url.port === "" ? 80 : Number(url.port),
          method: request.method,
          path: `${url.pathname}${url.search}`,
          headers: { ...headers, host: url.host }
        },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(response)
        }
      )
      outgoing.on("error", ({ message }) => (response.headersSent ? response.destroy() : refuse(message)))
      response.on("close", () => outgoing.destroy())
      request.pipe(outgoing)
    })
  }

  const onConnect = (request: IncomingMessage, client: Socket, head: Buffer): void => {
    client.on("error", () => client.destroy())
    const url = URL.parse(`https://${request.url ?? ""}`)
    if (url === null) {
      client.end("HTTP/1.1 400 Bad Request\r\n\r\n")
      return
    }
    void judge(url).then((result) => {
      if (Result.isFailure(result)) {
        client.end("HTTP/1.1 403 Forbidden\r\n\r\n")
        return
      }
      const server = connect(url.port === "" ? 443 : Number(url.port), result.success, () => {
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n")
        server.write(head)
        server.pipe(client)
        client.pipe(server)
      })
      server.on("error", () => client.destroy())
      client.on("close", () => server.destroy())
      server.on("close", () => client.destroy())
    })
  }

  const server = createServer(onRequest).on("connect", onConnect)
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
  })
  yield* Effect.acquireRelease(
    Effect.callback<void, BrowserFailure>((resume) => {
      server.once("error", ({ message }) => resume(fail(`no browser can be started here: ${message}`)))
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        for (const socket of sockets) socket.destroy()
        server.close()
      })
  )
  const address = server.address()
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    /** Returns why the last connection was refused, and clears the reason. */
    takeReason: () => {
      const last = reason
      reason = ""
      return last
    }
  }
})

// --- pages -----------------------------------------------------------------------------------------------------------------

/** Part of playwright's message when another navigation replaces this one. */
const interrupted = "interrupted by another navigation"

/** The header that marks our own refusals. */
const refusal = "x-palimpsest-refusal"

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
  (error instanceof Error ? error.message : String(error)).split("\n")[0]?.replace(/^\w+\.\w+: /, "") ?? "it failed"

const isWeb = (url: string): boolean => {
  const parsed = URL.parse(url)
  return parsed !== null && (parsed.protocol === "http:" || parsed.protocol === "https:")
}

const open = Effect.fn("ChromiumBrowser.open")(function* (
  targets: Targets
): Effect.fn.Return<BrowserPage, BrowserFailure, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const executablePath = yield* executable
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined) variables[name] = value
  const { chromium } = yield* playwright
  const { port, takeReason } = yield* guard(targets)
  const browser = yield* Effect.acquireRelease(
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
          proxy: { server: `http://127.0.0.1:${port}` },
          handleSIGINT: false,
          handleSIGTERM: false,
          handleSIGHUP: false,
          timeout: stepTimeoutMillis
        }),
      catch: (error) => fail(`Chromium did not start: ${firstLine(error)}`)
    }),
    (started) =>
      Effect.ignore(
        Effect.timeoutOption(
          Effect.promise(() => started.close()),
          closeTimeout
        )
      )
  )
  const context = yield* Effect.tryPromise({
    try: () => browser.newContext({ acceptDownloads: false, serviceWorkers: "block", ignoreHTTPSErrors: false }),
    catch: (error) => fail(`Chromium did not start: ${firstLine(error)}`)
  })
  context.setDefaultTimeout(stepTimeoutMillis)
  let page = yield* Effect.promise(() => context.newPage())
  // A page that opens another one moves the user's view there.
  context.on("page", (opened) => {
    page = opened
  })

  const step = <A>(what: string, work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, BrowserFailure> =>
    Effect.tryPromise({
      try: (signal) => {
        // Refusals before this step do not explain its failure.
        takeReason()
        return work(signal)
      },
      catch: (error) => {
        const why = firstLine(error)
        // The previous page may still have been loading. This is retried, whatever else was refused meanwhile.
        const refused = why.includes(interrupted) ? "" : takeReason()
        return fail(`${what}: ${refused === "" ? why : refused}`)
      }
    })

  const snapshot: Effect.Effect<Snapshot, BrowserFailure> = Effect.gen(function* () {
    if (page.isClosed()) page = context.pages().at(-1) ?? (yield* Effect.promise(() => context.newPage()))
    const current = page
    yield* Effect.ignore(
      step("waiting", (signal) => current.waitForLoadState("load", { timeout: settleTimeoutMillis, signal }))
    )
    const outline = yield* step("the page cannot be read", (signal) => current.ariaSnapshot({ mode: "ai", signal }))
    const title = yield* step("the page cannot be read", () => current.title())
    return { url: current.url(), title, outline }
  })

  const element = (ref: string): Effect.Effect<Playwright.Locator, BrowserFailure> =>
    /^(?:f\d+)?e\d+$/.test(ref)
      ? Effect.succeed(page.getByRef(ref))
      : Effect.fail(fail(`${ref} is no reference; take one from the last snapshot, such as e12`))

  // A click may navigate or open another page only a moment later.
  const touched = <A>(work: Effect.Effect<A, BrowserFailure>) => Effect.andThen(work, Effect.sleep(pollInterval))

  const then = <A>(work: Effect.Effect<A, BrowserFailure>) => Effect.andThen(work, snapshot)
  return {
    open: (url) =>
      isWeb(url)
        ? then(
            step(`${url} could not be opened`, (signal) =>
              page.goto(url, { waitUntil: "domcontentloaded", timeout: stepTimeoutMillis, signal })
            ).pipe(
              // A refusal is displayed as a page, but is not one.
              Effect.flatMap((answer) => {
                const why = answer?.headers()[refusal]
                return why === undefined
                  ? Effect.void
                  : Effect.fail(fail(`${url} could not be opened: ${decodeURIComponent(why)}`))
              }),
              Effect.retry({
                times: 1,
                schedule: Schedule.spaced(pollInterval),
                while: ({ message }) => message.includes(interrupted)
              })
            )
          )
        : Effect.fail(fail(`${url} is not opened: only addresses that begin with http:// or https://`)),
    snapshot,
    click: (ref) =>
      then(
        touched(
          Effect.flatMap(element(ref), (found) =>
            step(`${ref} could not be clicked`, (signal) => found.click({ signal }))
          )
        )
      ),
    type: (ref, text, submit) =>
      then(
        Effect.flatMap(element(ref), (found) =>
          Effect.andThen(
            step(`${ref} takes no text`, (signal) => found.fill(text, { signal })),
            submit ? touched(step(`${ref} takes no Enter`, (signal) => found.press("Enter", { signal }))) : Effect.void
          )
        )
      ),
    back: then(step("there is no page before this one", (signal) => page.goBack({ signal }))),
    screenshot: Effect.map(
      step("no picture could be taken", (signal) => page.screenshot({ type: "png", signal })),
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
