/**
 * `npm run build`: the command line as one bundle, dist/main.mjs, for Node 20 and newer, and what starts it,
 * dist/palimpsest.mjs: Node keeps the compiled bundle from run to run only for a module that is imported.
 * What draws the charts is a file of its own, dist/charts.mjs: it is half as large again, and only a page needs it. So is what
 * reads commands, dist/grammar.mjs with its two wasm files: it is loaded with the first command.
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown } from "rolldown"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

// A chat waits for people and servers for hours: there V8 is told to keep memory small, which costs a third of the speed.
const starter = (version) => `#!/usr/bin/env node
import module from "node:module"
import v8 from "node:v8"
const [, , first, ...rest] = process.argv
if ((first === "--version" || first === "-v") && rest.length === 0) console.log("palimpsest v${version}")
else {
  if (first === undefined || first === "chat") v8.setFlagsFromString("--optimize-for-size")
  module.enableCompileCache?.()
  await import("./main.mjs")
}
`

/** Writes a file; whoever runs an older one meanwhile keeps it: the new one is renamed into place. */
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

/** The package that reads commands. */
const grammar = "web-tree-sitter"

const require = createRequire(import.meta.url)

const wasm = { "web-tree-sitter.wasm": "web-tree-sitter", "tree-sitter-bash.wasm": "tree-sitter-bash" }

const charts = path.join(root, "src", "cli", "page", "Charts.ts")

/** Node's modules that are read where they are used, not at the start of every command. */
const late = new Set(["child_process", "dns", "http", "https", "net", "readline", "tls", "worker_threads"])

/** Of these, what is made when it is looked at is more than anybody here wants: an HTTP client, all root certificates. */
const heavy = new Set(["http", "https", "tls"])

/**
 * An import of one of Node's own modules reads all that it exports, also within a part of the bundle that is never run; one of
 * `node:http` loads a whole HTTP client for that, and takes as long as Node itself takes to start.
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

/** One source and all it imports as one text. */
const bundled = async (input, version, external = []) => {
  const bundle = await rolldown({
    input,
    external,
    platform: "node",
    plugins: [builtIns],
    // What the loader of a wasm evaluates is its own; ours has nothing of the kind.
    checks: { eval: false },
    transform: { target: "node20", define: { PALIMPSEST_VERSION: JSON.stringify(version) } }
  })
  const { output } = await bundle.generate({
    format: "esm",
    codeSplitting: false,
    paths: { [charts]: "./charts.mjs", [grammar]: "./grammar.mjs" },
    // Half the time to read and compile; names stay in messages because none of ours depends on a function's name.
    minify: true,
    comments: { legal: false }
  })
  await bundle.close()
  return output[0].code
}

/** Builds the files into the folder of `file`, which is the one to run. */
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
