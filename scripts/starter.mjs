import { partsIn } from "./parts.mjs"

// An import would evaluate all that the module exports: for `node:fs` that is a third of the time of `--help`.
const load = process.getBuiltinModule
const fs = load("node:fs")
const path = load("node:path")

const here = path.dirname(load("node:url").fileURLToPath(import.meta.url))
const folder = path.join(here, "parts", PALIMPSEST_BUILD)
const { env, platform } = process
const words = process.argv.slice(2)

/** Whether Effect's command line would print colours; see TerminalCapabilities there. */
const hasColour = () => {
  const force = env.FORCE_COLOR ?? ""
  if (env.TERM === "dumb" || (env.NO_COLOR ?? "") !== "") return false
  return (force !== "" && force !== "0" && force.toLowerCase() !== "false") || load("node:tty").isatty(1)
}

/** The help page for these arguments, as the build printed it. */
const helpPage = () => {
  if (!["--help", "-h"].includes(words.at(-1))) return undefined
  const page = JSON.parse(fs.readFileSync(path.join(folder, "help.json"), "utf8"))[words.slice(0, -1).join(" ")]
  return page === undefined || hasColour() ? page : load("node:util").stripVTControlCharacters(page)
}

/** The user's folder for files that can be made again. */
const cacheFolder = () => {
  const os = load("node:os")
  if (env.PALIMPSEST_CODE_CACHE) return env.PALIMPSEST_CODE_CACHE
  const user =
    platform === "win32"
      ? env.LOCALAPPDATA || path.join(os.homedir(), "AppData", "Local")
      : platform === "darwin"
        ? path.join(os.homedir(), "Library", "Caches")
        : env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache")
  return path.join(user, "palimpsest", "code")
}

const start = () => {
  const isVersion = words.length === 1 && ["--version", "-v"].includes(words[0])
  const page = isVersion ? `palimpsest v${PALIMPSEST_VERSION}` : helpPage()
  if (page !== undefined) {
    // The reader may have closed the pipe.
    process.stdout.on("error", () => {})
    process.stdout.write(`${page}\n`)
    return
  }
  // A chat waits for people and servers for hours, so V8 is told to keep its heap small there. That costs a third of the speed.
  // In `ask` only the space for new objects stays as large as it is when the program is loaded, because next to nothing of a turn
  // outlives it, and the rest is collected when it has grown by 30 %.
  if (words[0] === undefined || words[0] === "chat") load("node:v8").setFlagsFromString("--optimize-for-size")
  const command = words.find((word) => PALIMPSEST_COMMANDS.includes(word)) ?? "chat"
  const isAgent = ["agents", "ask", "chat", "memory", "prompt"].includes(command)
  const file = path.join(`${process.version}-${process.arch}`, `${isAgent ? "agent" : command}.cache`)
  const caches = env.NODE_DISABLE_COMPILE_CACHE
    ? []
    : [path.join(cacheFolder(), PALIMPSEST_BUILD, file), path.join(folder, file)]
  partsIn(folder, { caches, meta: { url: import.meta.url, import: (name) => import(name) } })("main.js").main()
  if (words[0] === "ask") {
    load("node:v8").setFlagsFromString("--semi-space-growth-factor=1")
    load("node:v8").setFlagsFromString("--heap-growing-percent=30")
  }
}

start()
