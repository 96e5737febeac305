import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import path from "node:path"

/** What one file imports and from where; `import type` counts like any other import. */
interface Source {
  /** From the root of the project, with forward slashes. */
  readonly file: string
  readonly text: string
}

/** The services in their order: a lower one never imports a higher one (DESIGN.md, Folders). */
const order: ReadonlyArray<ReadonlyArray<string>> = [
  [
    "Model",
    "LanguageModelBridge",
    "ModelWindow",
    "TokenCounter",
    "Calibration",
    "TempStore",
    "ChildOutput",
    "HookSystem",
    "CommandHooks",
    "Program",
    "Hooked",
    "Telemetry",
    "SessionStore",
    "SessionFiles",
    "SessionRetention",
    "Settings",
    "Experiments",
    "ChatSettings",
    "ChatTerminal",
    "Window",
    "Environment",
    "EnvFile",
    "Trust",
    "FolderOffer",
    "PublicNetwork",
    "Memory",
    "Tool",
    "Approval",
    "Plan",
    "IdeContext",
    "Workspace",
    "Mailbox",
    "AgentRunner",
    "LineMatcher",
    "ShellGrammar",
    "RegularFile",
    "Processes",
    "FileLock",
    "Leftovers",
    "WholeFile",
    "FileLimit",
    "IgnoreRules",
    "MemoryFile",
    "MemorySearch",
    "MemoryOnTouch",
    "FolderTree",
    "Surrounding",
    "Filtering",
    "Person",
    "Skills",
    "EditCorrector",
    "AgentDefinition",
    "Browser",
    "CompleteTask"
  ],
  [
    "Intake",
    "Transcripts",
    "GeminiImport",
    "Export",
    "Summarizer",
    "ModelSummarizer",
    "SystemPrompt",
    "Toolkit",
    "McpServers",
    "LoopCheck",
    "LoopDetector",
    "Router",
    "OutputSummary",
    "ModelHooks",
    "SessionHooks",
    "WrittenSnapshot"
  ],
  ["BrowserAgent", "CliHelp", "CodebaseInvestigator", "Generalist", "Manual"],
  ["Shell", "WebFetch", "WebSearch", "ReadFile", "ReadManyFile", "ListDirectory", "Glob", "SearchFile", "AtReference"],
  ["CompressRequest", "GeminiCompression", "Compression"],
  ["Turn", "Chat", "PromptWindow", "PromptMemory", "PromptRecall", "RecallTool"],
  ["CompressedLanguageModel", "CompressedChat", "Titles", "ReplayModel", "Replay"],
  ["FileChange", "WriteFile", "Replace", "WriteTodos", "AskUser", "ActivateSkill", "SaveMemory", "PlanMode", "Recall"],
  ["ToolAnswer", "HookedCall", "ToolCall", "ToolRun", "RunBounds", "AgentHooks", "Agent"],
  ["LocalAgentRunner", "Subagents", "AgentMessages"]
]

const rankOf = (file: string): number | undefined => {
  const name = path.posix.basename(file, ".ts")
  const rank = order.findIndex((names) => names.some((known) => name === known || name === `${known}s`))
  return rank < 0 ? undefined : rank
}

const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "")

const statement = /^[ \t]*(?:import|export)\s+(?:type\s+)?[\w$*{}\s,]+?\bfrom\s*["']([^"'\n]+)["']/gm
const reexport = /^[ \t]*export\s+(?:type\s+)?(?:\*[\w$\s]*|\{[\w$\s,]*\})\s*from\s*["']/m
const bare = /^[ \t]*import\s*["']([^"'\n]+)["']/gm
const dynamic = /\bimport\(\s*["']([^"'\n]+)["']/g

/** The module names that a source imports or re-exports. */
const importsOf = (text: string): ReadonlyArray<string> =>
  [statement, bare, dynamic].flatMap((form) => [...code(text).matchAll(form)].map((match) => match[1] ?? ""))

/** Whether all that a source takes of a module is its types and an `import()`. */
const isLazy = (text: string, name: string): boolean =>
  [...code(text).matchAll(statement)].every(([whole, from]) => from !== name || /^\s*import\s+type\b/.test(whole))

const isPackage = (name: string, ...packages: ReadonlyArray<string>): boolean =>
  packages.some((known) => name === known || name.startsWith(`${known}/`))

const platform = ["@effect/platform-node", "@effect/platform-node-shared"]
const composers = ["Live.ts", "LiveNetwork.ts", "LiveTools.ts", "Offline.ts", "Strategy.ts"]
/** Functions that layers share and that are no layer: they are imported like a library. */
const sharedByLayers = [
  "BoundedResponse.ts",
  "HomeFolder.ts",
  "NoFollow.ts",
  "SessionCatalogue.ts",
  "Sha256.ts",
  "ThisProcess.ts"
]
/** The one file of the command line that draws, and what with; it is a bundle of its own. */
const drawing = "src/cli/page/Charts.ts"
const drawingPackages = ["@observablehq/plot", "linkedom"]
const vagueNames = /^(utils?|common|helpers?|types?|misc|shared|index)\.ts$/i

/** Every import and name of `sources` that STYLE.md section 5 forbids. */
const violations = (sources: ReadonlyArray<Source>): ReadonlyArray<string> =>
  sources.flatMap(({ file, text }) => {
    const found: Array<string> = []
    const base = path.posix.basename(file)
    const folder = file.split("/").slice(0, 2).join("/")
    if (vagueNames.test(base)) found.push(`${file}: a file is named after the concept it holds`)
    if (reexport.test(code(text))) {
      found.push(`${file}: re-exports another module (barrel)`)
    }
    for (const name of importsOf(text)) {
      const forbid = (rule: string) => found.push(`${file}: ${rule} (${name})`)
      const target = name.startsWith(".") ? path.posix.join(path.posix.dirname(file), name) : undefined
      const isNode = name.startsWith("node:")
      const isEffect = isPackage(name, "effect")
      const isIn = (...folders: ReadonlyArray<string>) =>
        target !== undefined && folders.some((each) => target.startsWith(`${each}/`))
      const isVendor = target === undefined && !isEffect && !isNode

      if (file.startsWith("src/") && isIn("test", "bench", "scripts")) forbid("the program imports no test")
      if (isPackage(name, "@google/genai") && !base.startsWith("Google")) forbid("only Google*.ts import the SDK")
      if (isNode && file.startsWith("src/") && folder !== "src/layers" && file !== "src/cli/main.ts") {
        forbid("node: belongs to layers and main.ts")
      }
      if (folder === "src/domain" && !isEffect && !isIn("src/domain")) forbid("domain imports effect and domain only")
      if (folder === "src/services") {
        if (isIn("src/layers", "src/cli") || isVendor) forbid("services import no layers, no cli, no vendors")
        const from = rankOf(file)
        const to = target === undefined || !isIn("src/services") ? undefined : rankOf(target)
        if (from !== undefined && to !== undefined && to > from) forbid("a lower service imports a higher one")
      }
      if (folder === "src/layers") {
        if (isIn("src/cli")) forbid("layers import no cli")
        if (isIn("src/layers") && !composers.includes(base) && !sharedByLayers.includes(path.posix.basename(name))) {
          forbid("a layer imports another layer")
        }
      }
      if (folder === "src/cli" && file !== "src/cli/main.ts") {
        if (isIn("src/layers")) forbid("commands import no layers")
        const isDrawing = file === drawing && isPackage(name, ...drawingPackages)
        if ((isVendor && !isDrawing) || isPackage(name, ...platform)) forbid("commands import no vendors")
        if (target === drawing && !isLazy(text, name)) forbid("what draws is loaded when a page is written")
      }
    }
    return found
  })

describe("the rules", () => {
  const cases: ReadonlyArray<readonly [rule: string, file: string, text: string]> = [
    ["domain imports effect and domain only", "src/domain/A.ts", `import { B } from "../services/B.ts"`],
    ["domain imports effect and domain only", "src/domain/strategies/A.ts", `import "zod"`],
    ["node: belongs to layers and main.ts", "src/domain/A.ts", `import { readFileSync } from "node:fs"`],
    ["node: belongs to layers and main.ts", "src/cli/Output.ts", `import process from "node:process"`],
    ["node: belongs to layers and main.ts", "src/services/A.ts", `const fs = await import("node:fs")`],
    ["services import no layers", "src/services/A.ts", `import type { B } from "../layers/B.ts"`],
    ["services import no layers", "src/services/A.ts", `import {\n  one,\n  two\n} from "../cli/Output.ts"`],
    ["services import no layers", "src/services/A.ts", `import * as Node from "@effect/platform-node"`],
    ["layers import no cli", "src/layers/A.ts", `import { B } from "../cli/Output.ts"`],
    ["a layer imports another layer", "src/layers/A.ts", `import * as B from "./MemoryTempStore.ts"`],
    ["commands import no layers", "src/cli/commands/a.ts", `import * as Live from "../../layers/Live.ts"`],
    [
      "commands import no layers",
      "src/cli/commands/a.ts",
      `const Live = yield* load(() => import("../../layers/Live.ts"))`
    ],
    ["commands import no vendors", "src/cli/commands/a.ts", `import { NodeServices } from "@effect/platform-node"`],
    ["commands import no vendors", "src/cli/Page.ts", `import * as Plot from "@observablehq/plot"`],
    ["commands import no vendors", "src/cli/page/Charts.ts", `import { GoogleGenAI } from "@google/genai"`],
    ["what draws is loaded when a page is written", "src/cli/Page.ts", `import { draw } from "./page/Charts.ts"`],
    ["the program imports no test", "src/layers/A.ts", `import { f } from "../../test/support/f.ts"`],
    ["only Google*.ts import the SDK", "src/layers/Other.ts", `import { GoogleGenAI } from "@google/genai"`],
    ["a lower service imports a higher one", "src/services/TempStore.ts", `import { Chat } from "./Chat.ts"`],
    ["a lower service imports a higher one", "src/services/Compression.ts", `import { Agent } from "./Agent.ts"`],
    ["re-exports another module (barrel)", "src/domain/A.ts", `export * from "./B.ts"`],
    ["re-exports another module (barrel)", "src/domain/A.ts", `export { B } from "./B.ts"`],
    ["named after the concept", "src/domain/utils.ts", ""],
    ["named after the concept", "src/services/index.ts", ""]
  ]
  for (const [rule, file, text] of cases) {
    it(`${rule}: ${text.replace(/\s+/g, " ") || file}`, () => {
      const found = violations([{ file, text }])
      assert.isTrue(
        found.some((violation) => violation.includes(rule)),
        `expected a violation, found ${JSON.stringify(found)}`
      )
    })
  }

  it("allows what is allowed", () => {
    const allowed: ReadonlyArray<Source> = [
      { file: "src/domain/A.ts", text: `import { Schema } from "effect"\nimport * as B from "./strategies/B.ts"` },
      { file: "src/services/Chat.ts", text: `import { Compression } from "./Compression.ts"` },
      { file: "src/layers/A.ts", text: `import { hash } from "./Sha256.ts"\nimport fs from "node:fs"` },
      { file: "src/layers/Live.ts", text: `import * as A from "./A.ts"` },
      { file: "src/layers/GoogleModel.ts", text: `import { GoogleGenAI } from "@google/genai"` },
      {
        file: "src/cli/main.ts",
        text: `import { NodeServices } from "@effect/platform-node"\nimport "../layers/Live.ts"`
      },
      { file: "src/cli/commands/a.ts", text: `// import "../../layers/Live.ts"\nimport { Command } from "effect/cli"` },
      { file: "src/cli/page/Charts.ts", text: `import * as Plot from "@observablehq/plot"\nimport "linkedom/worker"` },
      { file: "src/cli/Page.ts", text: `import type { A } from "./page/Charts.ts"\nawait import("./page/Charts.ts")` },
      { file: "src/cli/commands/b.ts", text: `export const text = 'import x from "@google/genai"'` }
    ]
    assert.deepStrictEqual(violations(allowed), [])
  })
})

describe("the sources", () => {
  const root = path.dirname(import.meta.dirname)
  const sources = globSync("src/**/*.ts", { cwd: root }).map((file) => ({
    file: file.replaceAll("\\", "/"),
    text: readFileSync(path.join(root, file), "utf8")
  }))

  it("are found", () => assert.isAbove(sources.length, 20))

  it("keep to them", () => assert.deepStrictEqual(violations(sources), []))

  it("read JSON from outside in one place, which bounds how deep it is nested", () => {
    // These read again what they have just written, or one text in quotes.
    const own = [
      "domain/JsonText.ts",
      "domain/Source.ts",
      "domain/SettingsText.ts",
      ...["Claude", "Codex", "Gemini", "Pi"].map((name) => `domain/transcripts/${name}Writer.ts`)
    ]
    const others = sources.filter(({ text }) => /\bJSON\.parse\(|\bfromJsonString\(/.test(code(text)))
    assert.deepStrictEqual(
      others.map(({ file }) => file).filter((file) => !own.includes(file.replace(/^src\//, ""))),
      []
    )
  })

  it("have every service in the order", () => {
    const unranked = sources.filter(({ file }) => file.startsWith("src/services/") && rankOf(file) === undefined)
    assert.deepStrictEqual(
      unranked.map(({ file }) => file),
      []
    )
  })
})
