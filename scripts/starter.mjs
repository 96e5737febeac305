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

/** The columns of a help page that the build printed. */
const savedColumns = 100

/** The help page for these arguments, as the build printed it. A narrower terminal gets another one. */
const helpPage = () => {
  if (load("node:tty").isatty(1) && process.stdout.columns < savedColumns) return undefined
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

/** Node 24 or later: V8 of earlier ones has other flags for when it compiles. */
const hasTiers = Number(process.versions.node.split(".")[0]) >= 24

/** The size of the file that a word names, or 0. */
const sizeOf = (word) => {
  try {
    return fs.statSync(word).size
  } catch {
    return 0
  }
}
/** The size of the largest file that `compress` is given. */
const compressed = words[0] === "compress" ? Math.max(...words.map(sizeOf)) : 0

/**
 * V8's flags for some commands: the usual one, and ours. A chat waits for people and servers for hours, so V8 keeps its heap small
 * there, which costs a third of the speed. In `ask` only the space for new objects stays as large as it is when the program is
 * loaded, because next to nothing of a turn outlives it, and the rest is collected when it has grown by 30 %. `replay` runs much code
 * for a second or two: compiling it to fast machine code takes a quarter of the processor time and comes too late for most of it.
 * `compress` keeps little of what it reads: of a large file, a quarter of the memory is worth up to a third more time.
 */
const tunings = {
  ...(hasTiers
    ? {
        replay: [
          ["--invocation-count-for-maglev=400", "--invocation-count-for-maglev=4000"],
          ["--invocation-count-for-turbofan=3000", "--invocation-count-for-turbofan=60000"],
          ["--invocation-count-for-osr=500", "--invocation-count-for-osr=5000"]
        ]
      }
    : {}),
  chat: [
    ["--no-optimize-for-size", "--optimize-for-size"],
    // At the exit, Node waits for V8's threads. One that compiles can wait for the main thread then, for ever
    // (nodejs/node#64274), and a chat that said goodbye does not end. So the main thread compiles.
    ...(hasTiers
      ? ["maglev", "concurrent-sparkplug", "concurrent-recompilation", "concurrent-marking"].map((name) => [
          `--${name}`,
          `--no-${name}`
        ])
      : [])
  ],
  ...(compressed > 5e7
    ? {
        compress: [
          ["--semi-space-growth-factor=2", "--semi-space-growth-factor=1"],
          ["--heap-growing-percent=0", "--heap-growing-percent=40"]
        ]
      }
    : {}),
  ask: [
    ["--semi-space-growth-factor=2", "--semi-space-growth-factor=1"],
    ["--heap-growing-percent=0", "--heap-growing-percent=30"]
  ]
}

/** V8's flags without its optimising compilers and the threads that mark its heap. */
const interpreted = ["concurrent-marking", "maglev", "opt", "sparkplug"].map((name) => [`--${name}`, `--no-${name}`])

/**
 * V8's flags until the first request of `ask` is out, or a small `compress` is done. Its code runs once or twice until then:
 * compiling it to machine code takes up to a fifth of the processor time, and makes nothing faster.
 */
const startTunings = { ask: interpreted, ...(compressed > 0 && compressed < 1e6 ? { compress: interpreted } : {}) }
/** After this long, the request is out, or there is much to do before it. */
const startMillis = 400

const start = () => {
  const isVersion = words.length === 1 && ["--version", "-v"].includes(words[0])
  const page = isVersion ? `palimpsest v${PALIMPSEST_VERSION}` : helpPage()
  if (page !== undefined) {
    // The reader may have closed the pipe.
    process.stdout.on("error", () => {})
    process.stdout.write(`${page}\n`)
    return
  }
  const command = words.find((word) => PALIMPSEST_COMMANDS.includes(word)) ?? "chat"
  const file = path.join(`${process.version}-${process.arch}`, `${command}.cache`)
  const caches = env.NODE_DISABLE_COMPILE_CACHE
    ? []
    : [path.join(cacheFolder(), PALIMPSEST_BUILD, file), path.join(folder, file)]
  const v8 = load("node:v8")
  const [first = "chat"] = words
  /** The flags that are set now. */
  let tuned = []
  const tune = (isOn) => {
    for (const flag of tuned) v8.setFlagsFromString(flag[isOn ? 1 : 0])
  }
  const retune = (flags) => {
    tune(false)
    tuned = flags
    tune(true)
  }
  const whileCompiling = (work) => {
    tune(false)
    try {
      return work()
    } finally {
      tune(true)
    }
  }
  const atStart = startTunings[first] ?? []
  const later = tunings[first] ?? []
  // V8 may refuse code that was compiled before a flag was set, even with the flag as it was: so all code is read after that.
  retune(later)
  retune(atStart)
  const part = partsIn(folder, {
    caches,
    // A server ends no other way, and a chat also ends when its terminal is closed.
    isSignalled: ["chat", "gateway", "serve"].includes(command),
    meta: { url: import.meta.url, dirname: folder, import: (name) => import(name) },
    whileCompiling
  })
  const { main } = part.all("main.js")
  // What every run of `ask` loads, with the space for new objects that V8 finds right for it.
  if (first === "ask") for (const name of ["agent.js", "Live.js"]) part(name)
  retune([...later, ...atStart])
  if (atStart.length > 0) setTimeout(() => retune(later), startMillis).unref()
  main()
}

start()
