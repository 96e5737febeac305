/**
 * `npm start [-- <args>]`: builds the bundle when it is older than its sources, then runs it in this process, so that input,
 * output, signals and the exit status are passed through.
 *
 * Without arguments it shows the sessions that agents keep on this machine, and what they cost: it only reads, and nothing leaves the machine. Where
 * there are none, it compresses the bundled recording, prints the beginning of the result and says where the rest is. No model is called: API keys
 * are removed from the environment.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { readdir, stat } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const bundle = path.join(root, "dist", "palimpsest.mjs")

const changed = async (file) => {
  const status = await stat(file).catch(() => undefined)
  return status === undefined ? 0 : status.mtimeMs
}

const sources = async () => {
  const names = await readdir(path.join(root, "src"), { recursive: true })
  return [path.join(root, "package.json"), ...names.map((name) => path.join(root, "src", name))]
}

const isStale = async () => {
  const built = await changed(bundle)
  const newest = Math.max(...(await Promise.all((await sources()).map(changed))))
  return built < newest
}

if (await isStale()) {
  try {
    const { build } = await import("./build.mjs")
    await build(bundle)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    console.error(`palimpsest: the build failed: ${why}`)
    process.exit(1)
  }
}

/** Lines of the snapshot that the demonstration shows, and columns per line. */
const shownLines = 10
const shownColumns = 100

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.endsWith("_API_KEY")))

/** Runs the program, and returns what it printed; empty where it failed. */
const printed = (...args) => {
  const { status, stdout } = spawnSync(process.execPath, [bundle, ...args], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"]
  })
  return status === 0 ? stdout : ""
}

/** Shows the newest sessions of this machine and what all of them cost. Returns whether there are any. */
const showSessions = () => {
  const sessions = printed("find", "--limit", "5").trimEnd()
  if (sessions === "") return false
  console.log(`$ palimpsest find --limit 5\n${sessions}\n`)
  const cost = printed("cost").trimEnd()
  if (cost !== "") console.log(`$ palimpsest cost\n${cost}\n`)
  console.log(`Only read, on this machine: nothing was sent or changed.

Next, with the beginning of a session's id or its file:
  npm start -- cost ID      where its prompt cache broke
  npm start -- inspect ID   where its tokens go
  npm start -- rescue ID    make it usable again
  npm start -- --help`)
  return true
}

const demonstrate = () => {
  const relative = (...parts) => path.relative(process.cwd(), path.join(root, ...parts))
  const recording = relative("examples", "claude-code-subagent.jsonl")
  const folder = path.join(root, "dist", "demo")
  const session = relative("dist", "demo", "compressed.jsonl")
  const text = relative("dist", "demo", "compressed.txt")
  mkdirSync(folder, { recursive: true })
  const args = ["compress", recording, "--force", "--summarizer", "extractive", "--out", session]
  const { status, stdout } = spawnSync(process.execPath, [bundle, ...args], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"]
  })
  if (status !== 0) return status ?? 1
  writeFileSync(text, stdout)
  const lines = stdout.trimEnd().split("\n")
  const header = lines.indexOf("") + 1
  const clipped = (line) => (line.length > shownColumns ? `${line.slice(0, shownColumns - 1)}…` : line)
  const more = lines.length - header - shownLines
  console.log(`$ palimpsest ${args.join(" ")}`)
  console.log(
    lines
      .slice(0, header + shownLines)
      .map(clipped)
      .join("\n")
  )
  console.log(`  … ${more} more lines in ${text}

Next:
  npm start -- recall ${session} --grep igniter   search what left the window
  npm start -- inspect ${recording}   see where its tokens go
  npm start -- --help`)
  return 0
}

const args = process.argv.slice(2)
if (args.length === 0) {
  if (!showSessions()) process.exitCode = demonstrate()
} else {
  process.argv = [process.argv[0], bundle, ...args]
  await import(pathToFileURL(bundle).href)
}
