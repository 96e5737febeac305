/**
 * `npm run build`: builds the command line for Node 20 and newer. dist/main.mjs is one bundle; dist/palimpsest.mjs starts it,
 * because Node caches compiled code between runs only for imported modules. Two parts are bundles of their own, loaded when
 * used: dist/charts.mjs (charts for the HTML page, half as large as the main bundle) and dist/grammar.mjs with its two wasm files
 * (bash's grammar, loaded with the first command).
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

// A chat waits for people and servers for hours, so V8 is told to keep its heap small there. That costs a third of the speed. In `ask`
// only the space for new objects stays as large as it is when the program is loaded, because next to nothing of a turn outlives it, and
// the rest is collected when it has grown by 30 %.
const starter = (version) => `#!/usr/bin/env node
import module from "node:module"
import v8 from "node:v8"
const [, , first, ...rest] = process.argv
if ((first === "--version" || first === "-v") && rest.length === 0) console.log("palimpsest v${version}")
else {
  if (first === undefined || first === "chat") v8.setFlagsFromString("--optimize-for-size")
  module.enableCompileCache?.()
  await import("./main.mjs")
  if (first === "ask") {
    v8.setFlagsFromString("--semi-space-growth-factor=1")
    v8.setFlagsFromString("--heap-growing-percent=30")
  }
}
`

/** Writes a file by renaming a new one into place, so that running processes keep the old one. */
const place = async (file, text, mode) => {
  const fresh = `${file}.${process.pid}.tmp`
  try {
    await writeFile(fresh, text)
    await chmod(fresh, mode)
    await rename(fresh, file)
  } finally {
    await rm(fresh, { force: true })
  }
}

/** The package with bash's grammar. */
const grammar = "web-tree-sitter"

const require = createRequire(import.meta.url)

const wasm = { "web-tree-sitter.wasm": "web-tree-sitter", "tree-sitter-bash.wasm": "tree-sitter-bash" }

const charts = path.join(root, "src", "cli", "page", "Charts.ts")

/** Node modules that are loaded where they are used rather than at the start of every command. */
const late = new Set(["child_process", "dns", "http", "https", "net", "readline", "tls", "worker_threads", "zlib"])

/** Modules whose exports are expensive to evaluate: an HTTP client, all root certificates. */
const heavy = new Set(["http", "https", "tls"])

/**
 * Importing a Node module evaluates everything it exports, even in a part of the bundle that never runs. For `node:http` that is
 * a whole HTTP client, which takes as long as starting Node itself.
 */
const builtIns = {
  name: "built-ins",
  resolveId(id) {
    const name = id.replace(/^node:/, "")
    return late.has(name) ? `\0${name}` : null
  },
  load(id) {
    const name = id.slice(1)
    if (!id.startsWith("\0") || !late.has(name)) return null
    const exported = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(name))).flatMap(
      ([key, { get }], index) =>
        key === "default" || (get !== undefined && heavy.has(name)) ? [] : [{ key, local: `_${index}` }]
    )
    return [
      `const all = process.getBuiltinModule("node:${name}")`,
      ...exported.map(({ key, local }) => `const ${local} = all.${key}`),
      `export { ${exported.map(({ key, local }) => `${local} as ${key}`).join(", ")} }`,
      "export default all"
    ].join("\n")
  }
}

/** Bundles one source and all its imports into one file. */
const bundled = async (input, version, external = []) => {
  const bundle = await rolldown({
    input,
    external,
    platform: "node",
    plugins: [builtIns],
    // The wasm loader uses `eval`; our code does not.
    checks: { eval: false },
    transform: { target: "node20", define: { PALIMPSEST_VERSION: JSON.stringify(version) } }
  })
  const { output } = await bundle.generate({
    format: "esm",
    codeSplitting: false,
    paths: { [charts]: "./charts.mjs", [grammar]: "./grammar.mjs" },
    // Halves the time to read and compile. Names stay in messages, because none of ours depends on a function's name.
    minify: true,
    comments: { legal: false }
  })
  await bundle.close()
  return output[0].code
}

/** Builds all files into the folder of `file`, the one to run. */
export const build = async (file = path.join(root, "dist", "palimpsest.mjs")) => {
  const { version } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8"))
  const folder = path.dirname(file)
  await mkdir(folder, { recursive: true })
  await place(path.join(folder, "charts.mjs"), await bundled(charts, version), 0o644)
  await place(
    path.join(folder, "grammar.mjs"),
    await bundled(fileURLToPath(import.meta.resolve(grammar)), version),
    0o644
  )
  for (const [name, owner] of Object.entries(wasm)) {
    await place(path.join(folder, name), await readFile(require.resolve(`${owner}/${name}`)), 0o644)
  }
  await place(
    path.join(folder, "main.mjs"),
    await bundled(path.join(root, "src", "cli", "main.ts"), version, [charts, grammar]),
    0o644
  )
  await place(file, starter(version), 0o755)
  return file
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = await build(process.argv[2])
  console.error(`built ${path.relative(process.cwd(), file)}`)
}
