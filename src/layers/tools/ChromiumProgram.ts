import { Config, Effect, FileSystem, Option, type Path } from "effect"
import path from "node:path"
import type * as Playwright from "playwright-core"
import { findProgram } from "../../services/platform/ProgramLookup.ts"
import { BrowserFailure } from "../../services/tools/Browser.ts"

/** Finds an installed Chromium, and the package that drives it. */

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
export const executable: Effect.Effect<string, BrowserFailure, FileSystem.FileSystem | Path.Path> = Effect.gen(
  function* () {
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
  }
)

/** Hidden from bundlers: the program works without the package and does not include it. */
const packageName = ["playwright", "core"].join("-")

/** The package that drives the browser, loaded for the first page. */
export const playwright = Effect.tryPromise({
  try: (): Promise<typeof Playwright> => import(packageName),
  catch: () => fail("the package playwright-core is not installed; install it beside palimpsest to open pages")
})
