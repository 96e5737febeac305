import { assert, describe, it } from "@effect/vitest"
import { existsSync, globSync, readFileSync } from "node:fs"
import path from "node:path"
import { root } from "./support/paths.ts"

/**
 * The rules of ARCHITECTURE.md, read from the folders: `src/<floor>/<room>/<file>`. Every rule is a function over sources, so
 * that each has cases that break it beside the check of the sources themselves.
 */

interface Source {
  /** From the root of the project, with forward slashes. */
  readonly file: string
  readonly text: string
}

/** The floors, from the bottom: a file imports from its own floor and from those below it. */
const floors = ["domain", "services", "layers", "cli"]

/** The names of the package's entries: `src/<name>.ts`. */
const entries = Object.keys(JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).exports).map((key) =>
  key === "." ? "index" : key.slice(2)
)

/**
 * Files that assemble the rest: the layers of the program, and the entries of the package with their namespaces. Only these
 * may lie outside a room, re-export, and import layers.
 */
const isWiring = (file: string): boolean =>
  /^src\/(?:layers\/assembly\/\w+|cli\/(?:main|agentCommands|chatCommand)|api\/\w+)\.ts$/.test(file) ||
  entries.some((name) => file === `src/${name}.ts`)

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "")

const statement = /^[ \t]*(?:import|export)\s+(?:type\s+)?[\w$*{}\s,]+?\bfrom\s*["']([^"'\n]+)["']/gm
const reexport = /^[ \t]*export\s+(?:type\s+)?(?:\*[\w$\s]*|\{[\w$\s,]*\})\s*from\s*["']/m
const bare = /^[ \t]*import\s*["']([^"'\n]+)["']/gm
const dynamic = /\bimport\(\s*["']([^"'\n]+)["']/g

/** The module names that a source imports or re-exports. */
const importsOf = (text: string): ReadonlyArray<string> => {
  const code = withoutComments(text)
  return [statement, bare, dynamic].flatMap((form) => [...code.matchAll(form)].map((match) => match[1] ?? ""))
}

/** The modules that a source loads when it is loaded: neither its types nor what it imports later. */
const loadedBy = (text: string): ReadonlyArray<string> => {
  const code = withoutComments(text).replace(/^[ \t]*(?:import|export)\s+type\b[^"']*["'][^"'\n]+["']/gm, "")
  return [statement, bare].flatMap((form) => [...code.matchAll(form)].map((match) => match[1] ?? ""))
}

/** The file that a relative import names; undefined for a package. */
const targetOf = (file: string, name: string): string | undefined =>
  name.startsWith(".") ? path.posix.join(path.posix.dirname(file), name) : undefined

const floorOf = (file: string): string | undefined => /^src\/(\w+)\//.exec(file)?.[1]

/** The room of a file: the folders below its floor, as `services/tools/builtin`. */
const roomOf = (file: string): string => path.posix.dirname(file).replace(/^src\//, "")

const isPackage = (name: string, ...packages: ReadonlyArray<string>): boolean =>
  packages.some((one) => name === one || name.startsWith(`${one}/`))

/** A file that offers a layer, as opposed to functions that layers share. */
const offersLayer = ({ text }: Source): boolean => /^export const layer\w*\b/m.test(text)

/** The one file of the command line that draws, and what it draws with: a bundle of its own. */
const drawing = { file: "src/cli/page/Charts.ts", packages: ["@observablehq/plot", "linkedom"] }

/** The one file that compiles patterns from outside. Its package is pure, and is loaded when the first pattern is compiled. */
const patterns = { file: "src/services/platform/Patterns.ts", packages: ["re2js"] }

const isTypeOnly = (text: string, name: string): boolean =>
  [...withoutComments(text).matchAll(statement)].every(
    ([whole, from]) => from !== name || /^\s*import\s+type\b/.test(whole)
  )

/** Matches a file whose own comment stands below its imports. */
const commentBelowImports =
  /^(?:import (?:[^"]*from )?"[^"]*"(?: with \{[^}]*\})?\n)+\n\/\*\*(?:[^*]|\*(?!\/))*\*\/\n\n/

/**
 * Whether the first comment of a source, after its imports, says what the file is for: it stands alone, or it describes the
 * one export or the export with the file's name.
 */
const hasHead = ({ file, text }: Source): boolean => {
  const body = text.replace(/^(?:import\s[^"']*["'][^"'\n]+["'].*\n|\n)+/, "")
  const head = /^\/\*\*(?![\s*]*One file:)(?:(?!\*\/)[^])*\*\/\n(?:\n|export \w+\*? (\w+))/.exec(body)
  const names = new Set([...text.matchAll(/^export \w+\*? (\w+)/gm)].map(([, name]) => name))
  const [, name = path.posix.basename(file, ".ts")] = head ?? []
  return head !== null && (names.size === 1 || name.toLowerCase() === path.posix.basename(file, ".ts").toLowerCase())
}

/** Imports and names that a rule forbids, one line each. */
const violations = (sources: ReadonlyArray<Source>): ReadonlyArray<string> => {
  const byFile = new Map(sources.map((source) => [source.file, source]))
  return sources.flatMap((source) => {
    const { file, text } = source
    const broken: Array<string> = []
    const floor = floorOf(file)
    if (/^(?:utils?|common|helpers?|types?|misc|shared)\.ts$/i.test(path.posix.basename(file))) {
      broken.push(`${file}: a file is named after the concept it holds`)
    }
    if (file.startsWith("src/") && !isWiring(file) && !/^src\/\w+\/.+\//.test(file)) {
      broken.push(`${file}: lies loose on its floor; every file belongs to a room`)
    }
    if (reexport.test(withoutComments(text)) && !isWiring(file)) {
      broken.push(`${file}: re-exports another module (barrel)`)
    }
    for (const name of importsOf(text)) {
      const forbid = (rule: string) => broken.push(`${file}: ${rule} (${name})`)
      const target = targetOf(file, name)
      const isNode = name.startsWith("node:")
      const isEffect = isPackage(name, "effect")
      if (file.startsWith("src/") && target !== undefined && !target.startsWith("src/")) forbid("src imports src only")
      if (isPackage(name, "@google/genai") && !path.posix.basename(file).startsWith("Google")) {
        forbid("only Google*.ts import the SDK")
      }
      if (floor === undefined || isWiring(file)) continue
      const below = floors.indexOf(target === undefined ? floor : (floorOf(target) ?? floor))
      if (below > floors.indexOf(floor)) forbid(`${floor} imports nothing from a floor above`)
      if (floor !== "layers") {
        const isLoadedHere = [drawing, patterns].some((one) => file === one.file && isPackage(name, ...one.packages))
        if (target === undefined && !isEffect && !isLoadedHere) forbid(`the platform and vendors belong to layers`)
        if (target !== undefined && floorOf(target) === "layers") forbid("only the wiring imports layers")
      } else if (target !== undefined) {
        const other = byFile.get(target)
        // What several layers need of the machine is in the room `platform`.
        if (other !== undefined && !target.startsWith("src/layers/platform/") && offersLayer(other)) {
          forbid("a layer imports another layer")
        }
      }
      if (isNode && floor !== "layers") forbid("node: belongs to layers")
      if (target === drawing.file && !isTypeOnly(text, name)) forbid("what draws is loaded when a page is written")
    }
    return broken
  })
}

/** The groups of nodes that import each other in a circle. */
const circles = (edges: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyArray<string> => {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: Array<string> = []
  const found: Array<string> = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node) ?? 0)
    stack.push(node)
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) ?? 0, low.get(next) ?? 0))
    }
    if (low.get(node) !== index.get(node)) return
    const group = stack.splice(stack.indexOf(node))
    if (group.length > 1) found.push(group.sort().join(" ↔ "))
  }
  for (const node of edges.keys()) if (!index.has(node)) visit(node)
  return found
}

/** What imports what: between files, or between whatever `nodeOf` makes of them. Imports within one node do not count. */
const importGraph = (sources: ReadonlyArray<Source>, nodeOf: (file: string) => string) => {
  const edges = new Map<string, Set<string>>()
  for (const { file, text } of sources) {
    const node = nodeOf(file)
    const targets = edges.get(node) ?? new Set()
    edges.set(node, targets)
    for (const name of importsOf(text)) {
      const target = targetOf(file, name)
      if (target !== undefined && nodeOf(target) !== node) targets.add(nodeOf(target))
    }
  }
  return edges
}

describe("the rules", () => {
  const cases: ReadonlyArray<readonly [rule: string, file: string, text: string]> = [
    ["domain imports nothing from a floor above", "src/domain/a/A.ts", `import { B } from "../../services/a/B.ts"`],
    ["the platform and vendors belong to layers", "src/domain/a/A.ts", `import "zod"`],
    ["node: belongs to layers", "src/domain/a/A.ts", `import { readFileSync } from "node:fs"`],
    ["node: belongs to layers", "src/cli/output/Output.ts", `import process from "node:process"`],
    ["node: belongs to layers", "src/services/a/A.ts", `const fs = await import("node:fs")`],
    ["services imports nothing from a floor", "src/services/a/A.ts", `import type { B } from "../../layers/a/B.ts"`],
    ["services imports nothing from a floor", "src/services/a/A.ts", `import {\n  one\n} from "../../cli/a/Output.ts"`],
    ["the platform and vendors belong", "src/services/a/A.ts", `import * as Node from "@effect/platform-node"`],
    ["layers imports nothing from a floor above", "src/layers/a/A.ts", `import { B } from "../../cli/a/Output.ts"`],
    [
      "only the wiring imports layers",
      "src/cli/commands/a.ts",
      `import * as Live from "../../layers/assembly/Live.ts"`
    ],
    ["only the wiring imports layers", "src/cli/commands/a.ts", `load(() => import("../../layers/assembly/Live.ts"))`],
    ["the platform and vendors belong to layers", "src/cli/page/Page.ts", `import * as Plot from "@observablehq/plot"`],
    ["the platform and vendors belong", "src/services/a/A.ts", `await import("re2js")`],
    ["the platform and vendors belong", "src/cli/page/Charts.ts", `import { GoogleGenAI } from "@google/genai"`],
    ["what draws is loaded", "src/cli/page/Page.ts", `import { draw } from "./Charts.ts"`],
    ["src imports src only", "src/layers/a/A.ts", `import { f } from "../../../test/support/f.ts"`],
    ["only Google*.ts import the SDK", "src/layers/a/Other.ts", `import { GoogleGenAI } from "@google/genai"`],
    ["re-exports another module (barrel)", "src/domain/a/A.ts", `export * from "./B.ts"`],
    ["re-exports another module (barrel)", "src/domain/a/A.ts", `export { B } from "./B.ts"`],
    ["named after the concept", "src/domain/a/utils.ts", ""],
    ["lies loose on its floor", "src/domain/A.ts", ""],
    ["lies loose on its floor", "src/layers/Live.ts", ""],
    ["lies loose on its floor", "src/cli/Output.ts", ""]
  ]
  for (const [rule, file, text] of cases) {
    it(`${rule}: ${text.replace(/\s+/g, " ") || file}`, () => {
      const found = violations([{ file, text }])
      assert.isTrue(
        found.some((violation) => violation.includes(rule)),
        `expected a violation, got ${JSON.stringify(found)}`
      )
    })
  }

  it("want a first comment that says what the file is for", () => {
    const one = "/** Adds. */\nexport const add = 1\n"
    const two = `${one}/** Takes away. */\nexport const take = 1\n`
    const without = ["const a = 1\n", two, `const a = 1\n\n${one}`, `/** One file: both. */\n\n${one}`]
    const withHead = [one, `import a from "a"\n\n${one}`, `/** Sums. */\n\n${two}`, two.replace("add", "sums")]
    for (const text of without) assert.isFalse(hasHead({ file: "src/domain/a/Sums.ts", text }), text)
    for (const text of withHead) assert.isTrue(hasHead({ file: "src/domain/a/Sums.ts", text }), text)
  })

  it("want the comment of a file above its imports, and that of a declaration beside it", () => {
    const [file, declaration] = ["/** Sums. */\n", "/** Adds. */\nexport const add = 1\n"]
    const imports = `import a from "a"\nimport {\n  b\n} from "b"\n`
    assert.isTrue(commentBelowImports.test(`${imports}\n${file}\n${declaration}`))
    for (const text of [`${file}\n${imports}\n${declaration}`, `${imports}\n${declaration}`]) {
      assert.isFalse(commentBelowImports.test(text), text)
    }
  })

  it("forbid a layer to import another room's layer", () => {
    const found = violations([
      { file: "src/layers/a/A.ts", text: `import * as B from "../b/B.ts"` },
      { file: "src/layers/b/B.ts", text: `export const layer = 1` }
    ])
    assert.deepStrictEqual(found, ["src/layers/a/A.ts: a layer imports another layer (../b/B.ts)"])
  })

  it("forbid circles", () => {
    const sources = [
      { file: "src/domain/a/A.ts", text: `import "../b/B.ts"` },
      { file: "src/domain/b/B.ts", text: `import "./C.ts"` },
      { file: "src/domain/b/C.ts", text: `import "../a/D.ts"` },
      { file: "src/domain/a/D.ts", text: "" }
    ]
    assert.deepStrictEqual(circles(importGraph(sources, roomOf)), ["domain/a ↔ domain/b"])
    assert.deepStrictEqual(circles(importGraph(sources, (file) => file)), [])
  })

  it("allow imports down the floors", () => {
    const allowed: ReadonlyArray<Source> = [
      { file: "src/domain/a/A.ts", text: `import { Schema } from "effect"\nimport * as B from "../b/B.ts"` },
      { file: "src/services/a/Chat.ts", text: `import { Compression } from "../b/Compression.ts"` },
      { file: "src/layers/a/A.ts", text: `import { hash } from "./Sha256.ts"\nimport fs from "node:fs"` },
      { file: "src/layers/a/Sha256.ts", text: `export const hash = 1` },
      { file: "src/layers/assembly/Live.ts", text: `import * as A from "../a/A.ts"` },
      { file: "src/layers/a/GoogleModel.ts", text: `import { GoogleGenAI } from "@google/genai"` },
      {
        file: "src/cli/main.ts",
        text: `import { NodeServices } from "@effect/platform-node"\nimport "../layers/assembly/Live.ts"`
      },
      {
        file: "src/cli/commands/a.ts",
        text: `// import "../../layers/assembly/Live.ts"\nimport { Command } from "effect/cli"`
      },
      { file: "src/cli/page/Charts.ts", text: `import * as Plot from "@observablehq/plot"\nimport "linkedom/worker"` },
      { file: patterns.file, text: `await import("re2js")` },
      { file: "src/cli/page/Page.ts", text: `import type { A } from "./Charts.ts"\nawait import("./Charts.ts")` },
      { file: "src/cli/commands/b.ts", text: `export const text = 'import x from "@google/genai"'` }
    ]
    assert.deepStrictEqual(violations(allowed), [])
  })
})

describe("the sources", () => {
  const sources = globSync("src/**/*.ts", { cwd: root }).map((file) => ({
    file: file.replaceAll("\\", "/"),
    text: readFileSync(path.join(root, file), "utf8")
  }))

  it("exist", () => assert.isAbove(sources.length, 20))

  it("keep to the rules", () => assert.deepStrictEqual(violations(sources), []))

  it("form no circle of rooms", () => assert.deepStrictEqual(circles(importGraph(sources, roomOf)), []))

  it("form no circle of files", () => assert.deepStrictEqual(circles(importGraph(sources, (file) => file)), []))

  it("keep the index light: importing it loads no layer, no vendor, no Node API", () => {
    const byFile = new Map(sources.map((source) => [source.file, source.text]))
    const closure = new Set<string>()
    const packages = new Set<string>()
    const visit = (file: string): void => {
      if (closure.has(file)) return
      closure.add(file)
      for (const name of loadedBy(byFile.get(file) ?? "")) {
        const target = targetOf(file, name)
        if (target === undefined) packages.add(name.split("/")[0] ?? name)
        else visit(target)
      }
    }
    visit("src/index.ts")
    assert.isAbove(closure.size, 100)
    assert.deepStrictEqual([...packages], ["effect"])
    assert.deepStrictEqual(
      [...closure].filter((file) => !/^src\/(?:index|api\/\w+|domain\/.+|services\/.+)\.ts$/.test(file)),
      []
    )
  })

  it("are not imported from inside the package", () => {
    const importers = sources.filter(({ file, text }) =>
      importsOf(text).some((name) => /^src\/(?:index|google|node|testing)\.ts$/.test(targetOf(file, name) ?? ""))
    )
    assert.deepStrictEqual(
      importers.map(({ file }) => file),
      []
    )
  })

  it("name a vendor's fields in the wire, in the decoders of agents, in the hook protocol and in fakes, and nowhere else", () => {
    const homes = /^src\/(?:domain\/(?:wire|transcripts|hooks)|layers\/testing)\//
    const fields =
      /\b(?:tool_use|tool_calls|function_call_output|item_reference|content_block|input_schema|encrypted_content|cache_control|cache_read_input_tokens|usageMetadata|promptTokenCount|stop_reason|max_completion_tokens)\b/
    const strangers = sources.filter(({ file, text }) => !homes.test(file) && fields.test(text)).map(({ file }) => file)
    assert.deepStrictEqual(strangers, [])
  })

  it("say in their first comment what they are for", () => {
    const silent = sources.filter((source) => !hasHead(source)).map(({ file }) => file)
    assert.deepStrictEqual(silent, [])
  })

  it("have the comment of the file in the first line, above the imports", () => {
    const late = sources.filter(({ text }) => commentBelowImports.test(text)).map(({ file }) => file)
    assert.deepStrictEqual(late, [])
  })

  it("explain in their header why a long file is one file", () => {
    const long = sources.filter(({ text }) => text.split("\n").length > 420 && !/\bOne file: /.test(text))
    assert.deepStrictEqual(
      long.map(({ file }) => file),
      []
    )
  })

  it("refer to no document outside the project", () => {
    const files = globSync(["{src,test,bench,scripts,examples,docs}/**/*.{ts,mjs,md}", "*.md"], { cwd: root })
    const cited = /\(?\b[Ss]pec(?:ification)? \d|\bseeds? \d{3}|\bpain #|\b(?:DESIGN|LAYOUT|STACK)\.md/
    const own = path.join("test", "architecture.test.ts")
    const lines = files
      .filter((file) => file !== own && !file.includes("fixtures") && !file.includes("golden"))
      .flatMap((file) =>
        readFileSync(path.join(root, file), "utf8")
          .split("\n")
          .flatMap((line, index) => (cited.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []))
      )
    assert.deepStrictEqual(lines, [])
  })

  it("have tests in rooms of the same names", () => {
    const files = globSync(`test/{${floors.join(",")}}/**/*.test.ts`, { cwd: root })
    const rooms = new Set(files.map((file) => path.dirname(file).replaceAll("\\", "/")))
    const strange = [...rooms].filter((folder) => !existsSync(path.join(root, folder.replace(/^test\//, "src/"))))
    assert.deepStrictEqual(strange, [])
  })

  it("make regular expressions of their own text, which begins with a quote or a list; others are compiled by Patterns.ts", () => {
    const made = sources.flatMap(({ file, text }) =>
      [...withoutComments(text).matchAll(/\bRegExp\((?!\s*(?:["'`[]|String\.raw`))[^)\n]*/g)].map(
        ([expression]) => `${file}: ${expression}`
      )
    )
    assert.deepStrictEqual(made, [])
  })

  it("read untrusted JSON in one place, which limits its nesting depth", () => {
    // Elsewhere only text that the program itself has just written, which a comment before it says.
    const own = /\/\/ Own JSON: [^\n]*\n[^\n]*\bJSON\.parse\(/g
    const others = sources
      .filter(({ file }) => roomOf(file) !== "domain/text")
      .filter(({ text }) => /\bJSON\.parse\(|\bfromJsonString\(/.test(withoutComments(text.replace(own, ""))))
    assert.deepStrictEqual(
      others.map(({ file }) => file),
      []
    )
  })
})
