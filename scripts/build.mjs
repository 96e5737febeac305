/**
 * `npm run build`: builds the command line for Node 20 and newer. dist/palimpsest.mjs starts it: scripts/starter.mjs, with what
 * it needs to know of the build. The program itself is in dist/parts/<build>: scripts that scripts/parts.mjs loads when they are
 * used, the help pages, and the compiled code of a run of each command for this version of Node, which is not packed.
 */
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { rolldown } from "rolldown"
import { parseAst } from "rolldown/parseAst"
import { delayed } from "./lazyBindings.mjs"
import { partsIn } from "./parts.mjs"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

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

const require = createRequire(import.meta.url)

/** Files beside the program, which loads them when it uses them. */
const beside = {
  "web-tree-sitter.wasm": "web-tree-sitter/web-tree-sitter.wasm",
  "tree-sitter-bash.wasm": "tree-sitter-bash/tree-sitter-bash.wasm",
  "pi-plugin.mjs": "../integrations/pi/palimpsest.js",
  "opencode-plugin.mjs": "../integrations/opencode/palimpsest.js"
}

/** Node modules that few commands use. Most of the time to load them goes into what they import themselves. */
const late = new Set([
  "child_process",
  "crypto",
  "dns",
  "http",
  "https",
  "net",
  "readline",
  "tls",
  "worker_threads",
  "zlib"
])

/**
 * Loads those modules at their first use: a function loads its module when it is called, and whatever else a module exports is
 * dropped where nothing uses it.
 */
const builtIns = {
  name: "built-ins",
  resolveId(id, _, { kind }) {
    const name = id.replace(/^node:/, "")
    return late.has(name) && kind !== "require-call" ? `\0${name}` : null
  },
  load(id) {
    const name = id.slice(1)
    if (!id.startsWith("\0") || !late.has(name)) return null
    const exported = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(name))).filter(
      ([key]) => key !== "default"
    )
    // What `util.promisify` looks for would be missing.
    const isLate = ({ value }, key) =>
      typeof value === "function" && /^[a-z]/.test(key) && Object.getOwnPropertySymbols(value).length === 0
    return [
      "const all = () => process.getBuiltinModule(" + JSON.stringify(`node:${name}`) + ")",
      ...exported.map(([key, one], index) =>
        isLate(one, key)
          ? `const _${index} = (...given) => all().${key}(...given)`
          : `const _${index} = /* @__PURE__ */ (() => all().${key})()`
      ),
      `export { ${exported.map(([key], index) => `_${index} as ${key}`).join(", ")} }`,
      "export default /* @__PURE__ */ new Proxy({}, { get: (_, key) => all()[key] })"
    ].join("\n")
  }
}

/**
 * Of undici, only the agent is bundled, with which the gateway asks providers: its index also has what browsers have, and Effect loads it for
 * clients that no layer here uses.
 */
const undiciAgent = {
  name: "undici-agent",
  resolveId: (id, importer = "") =>
    id === "undici" ? `\0undici${importer.includes("@effect") ? "-unused" : ""}` : null,
  load: (id) => {
    if (id === "\0undici") {
      return [
        'import Agent from "undici/lib/dispatcher/agent.js"',
        'import request from "undici/lib/api/api-request.js"',
        "Agent.prototype.request = request",
        "export { Agent }"
      ].join("\n")
    }
    if (id !== "\0undici-unused") return null
    return `export class Agent { constructor() { throw new Error("undici is left out of this program") } }\nexport default {}`
  }
}

/** Calls `visit` for each node of a syntax tree. */
const walk = (node, visit) => {
  if (node === null || typeof node !== "object") return
  if (typeof node.type === "string") visit(node)
  for (const child of Object.values(node)) walk(child, visit)
}

/** The text with replacements, which name their place. */
const replaced = (text, replacements) => {
  const pieces = []
  let at = 0
  for (const { by, end, start } of replacements.toSorted(
    (one, other) => one.start - other.start || one.end - other.end
  )) {
    pieces.push(text.slice(at, start), by)
    at = end
  }
  return [...pieces, text.slice(at)].join("")
}

/**
 * Turns a module into a script that takes what it imports from `load`. Imports become constants: no part changes what it exports,
 * and no two parts import each other, which rolldown would report. `lazyOf` has the exports of the parts it imports that are
 * computed at their first use. Returns the script and its own.
 */
const scriptOf = (code, parts, lazyOf, isDelayed) => {
  const replacements = []
  const exported = []
  const imported = []
  const tree = parseAst(code)
  /** The part that a quoted module name means. */
  const partOf = ({ end, start }) => {
    const name = /^["'`]\.\/(.+)["'`]$/.exec(code.slice(start, end))?.[1]
    return parts.has(name) ? name : undefined
  }
  for (const { end, source, specifiers, start, type } of tree.body) {
    if (type === "ImportDeclaration") {
      const part = partOf(source)
      const from = part === undefined ? `process.getBuiltinModule(${source.raw})` : `load(${JSON.stringify(part)})`
      const names = specifiers.filter(({ imported }) => imported !== undefined && (part || imported.name !== "default"))
      const whole = specifiers.filter((one) => !names.includes(one))
      if (part !== undefined && whole.length > 0) throw new Error(`all of ${part} is imported`)
      for (const one of names) if (lazyOf.get(part)?.has(one.imported.name)) imported.push(one.local.name)
      const some = names.map(({ imported, local }) => `${imported.name}:${local.name}`)
      const constants = whole.map(({ local }) => `${local.name}=${from}`)
      if (some.length > 0) constants.unshift(`{${some.join()}}=${from}`)
      replacements.push({ start, end, by: constants.length === 0 ? `${from};` : `const ${constants.join()};` })
    } else if (type === "ExportNamedDeclaration") {
      exported.push(...specifiers.map((one) => [one.exported.name, one.local.name]))
      replacements.push({ start, end, by: "" })
    }
  }
  walk(tree, ({ end, source, start, type }) => {
    if (type === "MetaProperty" && code.startsWith("import", start)) replacements.push({ start, end, by: "meta" })
    if (type !== "ImportExpression") return
    const part = partOf(source)
    if (part === undefined) replacements.push({ start, end: start + "import".length, by: "meta.import" })
    else replacements.push({ start, end, by: `Promise.resolve().then(()=>load.all(${JSON.stringify(part)}))` })
  })
  const { before, lazy, replacements: delays } = delayed(code, tree, { imported, isDelayed })
  const body = replaced(code, [...replacements, ...delays])
  const late = exported.filter(([, local]) => lazy.has(local)).map(([name]) => name)
  const script = `(function(load,exports,meta){"use strict";${before}${body};Object.assign(exports,{${exported.map((one) => one.join(":")).join()}});return ${JSON.stringify(late)}})`
  // V8 reads plain ASCII without a second copy.
  const ascii = script.replace(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
  return { script: ascii, lazy: new Set(late) }
}

/** Modules that only commands with an agent load. */
const working = /\/(?:agentCommands|AgentAssembly|NodeRequests)\.ts$/

/** What draws the prompt of a chat, before all the rest of it is loaded. */
const prompting = /\/(?:chatCommand|TerminalUi)\.ts$/

/** Modules that few sessions need: other providers, stores and machines. They do not affect which parts other modules are in. */
const remote =
  /\/(?:commands\/mcp|McpServers|AnthropicModel|OpenAiModel|LiveNetwork|Otlp|MemorySessionStore|PostgresSessionStore|SqliteSessionStore)\.ts$/

/** What only reads conversations: commands of this kind need not load what compresses and writes them. */
const reading = /\/(?:LiveTranscripts|LiveAgentSessions|LiveSessionAnswers)\.ts$/
/** What answers an MCP client's `initialize`: all that `mcp` loads before the first question, and the place of the home folder. */
const handshake = /\/(?:commands\/mcp|platform\/HomeFolder)\.ts$/

/** Modules that only servers load. They have their own parts and do not affect those of other commands. */
const serving = /\/(?:commands\/(?:serve|gateway)|LiveServe|LiveGateway|McpHttpServing)\.ts$/

/**
 * Decides which modules share a part: what the program always loads, what an agent loads, what several other commands load, and
 * what agents and remote services speak over the network. Anything else stays with the one import that loads it.
 */
const parting = () => {
  const imports = new Map()
  const closure = (id, all = new Set()) => {
    if (all.has(id)) return all
    all.add(id)
    for (const next of imports.get(id)?.importedIds ?? []) closure(next, all)
    return all
  }
  let places
  const count = () => {
    const entries = [...imports.values()].flatMap(({ dynamicallyImportedIds }) => dynamicallyImportedIds)
    const main = closure([...imports.keys()].find((id) => id.endsWith("/src/cli/main.ts")))
    places = new Map([...main].map((id) => [id, "main"]))
    const users = new Map()
    for (const entry of new Set(entries)) {
      if (serving.test(entry)) continue
      for (const id of closure(entry)) users.set(id, [...(users.get(id) ?? []), entry])
    }
    const loadedBy = (kind) =>
      new Set(entries.filter((entry) => kind.test(entry)).flatMap((entry) => [...closure(entry)]))
    const [forPrompt, forHandshake, forReading] = [prompting, handshake, reading].map(loadedBy)
    const sharedPart = (id) => {
      if (forPrompt.has(id)) return forHandshake.has(id) ? "start" : "prompt"
      return forHandshake.has(id) ? "handshake" : forReading.has(id) ? "reading" : "shared"
    }
    const served = [...new Set(entries)].filter((entry) => serving.test(entry)).flatMap((entry) => [...closure(entry)])
    for (const [at, id] of served.entries()) {
      if (!places.has(id) && !users.has(id) && served.indexOf(id) < at) places.set(id, "serving")
    }
    for (const [id, all] of users) {
      if (places.has(id)) continue
      const isWork = all.some((entry) => working.test(entry))
      const isRemote = all.some((entry) => remote.test(entry))
      const isElse = all.some((entry) => !working.test(entry) && !remote.test(entry))
      // A module's own imports have all its users, so that no two parts import each other.
      if (isElse && all.length > 1) places.set(id, sharedPart(id))
      else if (isWork) places.set(id, isRemote ? "wire" : "agent")
      else if (all.length > 1) places.set(id, "remote")
    }
  }
  return {
    plugin: {
      name: "parting",
      moduleParsed: (module) => {
        imports.set(module.id, module)
      },
      // What one part imports from another must not change later.
      renderChunk: (code, { fileName, isDynamicEntry }) => {
        if (/\b__esm(?:Min)?\(/.test(code)) throw new Error(`${fileName} initialises a module later`)
        const { body } = parseAst(code)
        const variables = new Set(
          body.flatMap(({ declarations, kind }) => (kind === "let" ? declarations.map(({ id }) => id.name) : []))
        )
        const exported = body.flatMap(({ specifiers, type }) => (type === "ExportNamedDeclaration" ? specifiers : []))
        const variable = exported.find(({ local }) => variables.has(local.name))
        if (variable !== undefined && !isDynamicEntry)
          throw new Error(`${fileName} exports the variable ${variable.local.name}`)
      }
    },
    splitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: "parting",
          name: (id) => {
            if (places === undefined) count()
            return places.get(id) ?? null
          }
        }
      ]
    }
  }
}

/** Bundles one source and all its imports. */
const bundled = async (input, version, plugins, output, define = {}) => {
  const bundle = await rolldown({
    input,
    platform: "node",
    plugins: [builtIns, undiciAgent, ...plugins],
    preserveEntrySignatures: "allow-extension",
    // The wasm loader uses `eval`; our code does not.
    checks: { eval: false, ineffectiveDynamicImport: false },
    transform: { target: "node20", define: { PALIMPSEST_VERSION: JSON.stringify(version), ...define } }
  })
  const result = await bundle.generate({
    format: "esm",
    // Halves the time to read and compile. Names stay in messages, because none of ours depends on a function's name.
    minify: true,
    comments: { legal: false },
    ...output
  })
  await bundle.close()
  return result.output
}

/**
 * Whether a part's modules may be evaluated in any order: ours, Effect's, and those that draw the terminal, which compute tables
 * and expressions. Others' may count on the order of theirs.
 */
const mayDelay = ({ moduleIds }) =>
  moduleIds.every(
    (id) =>
      !id.includes("node_modules") ||
      /node_modules.(?:@?effect|@earendil-works.pi-tui|get-east-asian-width|marked)\b/.test(id)
  )

/** The parts of the program, and the build's name: a digest of all of them. */
const parted = async (version) => {
  const { plugin, splitting } = parting()
  const chunks = await bundled({ main: path.join(root, "src", "cli", "main.ts") }, version, [plugin], {
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    codeSplitting: splitting
  })
  const names = new Set(chunks.map(({ fileName }) => fileName))
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]))
  const scripts = new Map()
  const lazyOf = new Map()
  /** Makes the script of a part, after those of the parts that it imports. */
  const add = (name) => {
    if (scripts.has(name) || !byName.has(name)) return
    const chunk = byName.get(name)
    for (const one of chunk.imports) add(one)
    const { lazy, script } = scriptOf(chunk.code, names, lazyOf, mayDelay(chunk))
    scripts.set(name, script)
    lazyOf.set(name, lazy)
  }
  for (const name of names) add(name)
  const parts = [...scripts]
  const hash = createHash("sha256")
  for (const [name, code] of parts) hash.update(name).update(code)
  return { parts, id: hash.digest("hex").slice(0, 16) }
}

/** Builds all files into the folder of `file`, the one to run. Returns it, and the folder of its parts. */
export const build = async (file = path.join(root, "dist", "palimpsest.mjs")) => {
  const { version } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8"))
  const { id, parts } = await parted(version)
  const folder = path.join(path.dirname(file), "parts", id)
  await mkdir(folder, { recursive: true })
  for (const [name, code] of parts) await place(path.join(folder, name), code, 0o644)
  for (const [name, source] of Object.entries(beside)) {
    await place(path.join(path.dirname(file), name), await readFile(require.resolve(source)), 0o644)
  }
  const { commandNames, helpPages, tokenTable } = partsIn(folder, { meta: import.meta }).all("main.js")
  await place(path.join(folder, "help.json"), JSON.stringify(await helpPages()), 0o644)
  const { bytes, fileName } = await tokenTable()
  await place(path.join(folder, fileName), bytes, 0o644)
  const [{ code }] = await bundled(
    path.join(root, "scripts", "starter.mjs"),
    version,
    [],
    {},
    {
      PALIMPSEST_BUILD: JSON.stringify(id),
      PALIMPSEST_COMMANDS: JSON.stringify(commandNames)
    }
  )
  await place(file, `#!/usr/bin/env node\n${code}`, 0o755)
  await removeOld(path.dirname(folder), id)
  return { file, folder }
}

/** Removes other builds, but the latest of them: a program that still runs may load more of its parts. */
const removeOld = async (folder, id) => {
  const names = (await readdir(folder)).filter((name) => name !== id)
  const aged = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(path.join(folder, name))).mtimeMs }))
  )
  for (const { name } of aged.toSorted((one, other) => other.at - one.at).slice(1)) {
    await rm(path.join(folder, name), { recursive: true, force: true })
  }
}

/** A server that answers every request for text with one word. */
const answering = () =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      const isStream = request.url?.includes("streamGenerateContent")
      const content = { role: "model", parts: [{ text: "hello" }] }
      const body = JSON.stringify({ candidates: [{ content, finishReason: "STOP" }], totalTokens: 1 })
      response.setHeader("content-type", isStream ? "text/event-stream" : "application/json")
      response.end(isStream ? `data: ${body}\n\n` : body)
    }).listen(0, "127.0.0.1", () => resolve(server))
  })

/** Runs commands, each after those whose output it reads, and puts the code that Node compiled for them beside the parts. */
const warm = async (file, parts) => {
  const folder = await mkdtemp(path.join(tmpdir(), "palimpsest-build-"))
  const server = await answering()
  const example = path.join(root, "examples", "claude-code-subagent.jsonl")
  const talk = path.join(folder, "talk.jsonl")
  const env = {
    PATH: process.env.PATH,
    PALIMPSEST_HOME: path.join(folder, "home"),
    PALIMPSEST_CODE_CACHE: path.join(folder, "code"),
    GEMINI_API_KEY: "none",
    GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${server.address().port}`
  }
  const run = (...args) => {
    const running = promisify(execFile)(process.execPath, [file, ...args], { cwd: folder, env, timeout: 60_000 })
    running.child.stdin.end()
    return running
  }
  try {
    // With the code of an earlier build of the same sources, these runs would save none.
    await rm(path.join(parts, `${process.version}-${process.arch}`), { recursive: true, force: true })
    await Promise.all([
      run("inspect", example),
      run("compress", example, "--force", "--summarizer", "extractive", "--out", talk).then(() =>
        run("recall", talk, "--grep", "the")
      ),
      run("ask", "hello", "--session", "warm").then(() => run("sessions", "list")),
      run("config", "list")
    ])
    await cp(path.join(folder, "code", path.basename(parts)), parts, { recursive: true })
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { file, folder } = await build()
  // If this fails, the user's first run of a command saves the compiled code.
  const isWarm = existsSync(path.join(folder, `${process.version}-${process.arch}`))
  if (!isWarm) await warm(file, folder)
  console.error(`built ${path.relative(process.cwd(), file)}`)
}
