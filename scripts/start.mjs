/**
 * `npm start [-- <args>]`: brings the bundle up to date when it is older than its sources, then runs it in this very
 * process, so that input, output, signals and the exit status are its own. Without arguments it compresses the bundled
 * example, with a summary made by code: a demonstration never calls a model, whatever key is in the environment.
 */
import { readdir, stat } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const bundle = path.join(root, "dist", "palimpsest.mjs")

const changed = async (file) => {
  const found = await stat(file).catch(() => undefined)
  return found === undefined ? 0 : found.mtimeMs
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

const given = process.argv.slice(2)
const example = path.relative(process.cwd(), path.join(root, "examples", "claude-code-subagent.jsonl"))
const args =
  given.length > 0 ? given : ["compress", example, "--force", "--limit", "40000", "--summarizer", "extractive"]
if (given.length === 0) {
  console.error(
    `palimpsest: compressing the bundled example into a window of 40,000 tokens: palimpsest ${args.join(" ")}`
  )
}
process.argv = [process.argv[0], bundle, ...args]
await import(pathToFileURL(bundle).href)
