import { assert, describe, it } from "@effect/vitest"
import { Predicate, Schema } from "effect"
import { defaultBound } from "../../src/domain/Bounded.ts"
import { defaultPolicy } from "../../src/domain/Compression.ts"
import { usualLines, widestLine } from "../../src/domain/FileText.ts"
import { hookTimeout } from "../../src/domain/HookSettings.ts"
import { defaultIdeLimits } from "../../src/domain/IdeContext.ts"
import { defaultThresholds, firstCheck } from "../../src/domain/LoopDetection.ts"
import { defaultMasking } from "../../src/domain/Masking.ts"
import { usualRouting } from "../../src/domain/RoutingWindow.ts"
import { correctionOf, defaults, loopsOf, routerOf, Settings, type SettingsFile } from "../../src/domain/Settings.ts"
import { valueAt, withValue } from "../../src/domain/SettingsKey.ts"
import { tokenLimit, unknownWindow } from "../../src/domain/Models.ts"
import { seedSize } from "../../src/domain/ToolOutput.ts"
import { defaultPatience } from "../../src/services/ChatSettings.ts"
import { FileLimits } from "../../src/services/FileLimits.ts"
import { mostBytes } from "../../src/services/RegularFile.ts"

/** All settings as they usually are, those behind a switch as they are once it is on. */
const usual = {
  ...defaults,
  loopDetection: loopsOf(true),
  router: routerOf(true),
  editCorrection: correctionOf(true)
}

/** A constant of the seeds or of what was found beside them, the setting for it, and what the code takes without one. */
interface Constant {
  readonly name: string
  readonly source: string
  readonly setting: string
  readonly value: unknown
  /** What holds in the code by itself; absent: it has no default of its own. */
  readonly own?: unknown
}

const limits = FileLimits.defaultValue()

const constants: ReadonlyArray<Constant> = [
  // Compression.
  {
    name: "DEFAULT_COMPRESSION_TOKEN_THRESHOLD",
    source: "seeds 000, 001 and 003",
    setting: "compressionThreshold",
    value: 0.5,
    own: defaultPolicy.threshold
  },
  {
    name: "COMPRESSION_PRESERVE_THRESHOLD",
    source: "seeds 000 to 003",
    setting: "preserve",
    value: 0.3,
    own: defaultPolicy.preserve
  },
  {
    name: "COMPRESSION_FUNCTION_RESPONSE_TOKEN_BUDGET",
    source: "seeds 000 and 001",
    setting: "toolBudget",
    value: 50_000,
    own: defaultPolicy.toolBudget
  },
  { name: "least gain", source: "DESIGN.md, law 4", setting: "minGain", value: 0.1, own: defaultPolicy.minGain },
  {
    name: "DEFAULT_TOKEN_LIMIT",
    source: "seed 001: 1,048,576 where nothing is set",
    setting: "window",
    value: undefined
  },
  { name: "share of the window that a message may take", source: "spec 4", setting: "overflowFactor", value: 1 },

  // Results of tools.
  {
    name: "DEFAULT_TRUNCATE_TOOL_OUTPUT_THRESHOLD",
    source: "seed 001, spec 5.2",
    setting: "toolOutput.most",
    value: 40_000,
    own: defaultBound.most
  },
  {
    name: "DEFAULT_TRUNCATE_TOOL_OUTPUT_LINES",
    source: "seed 002",
    setting: "toolOutput.lines",
    value: 1_000,
    own: defaultBound.lines
  },
  {
    name: "tokens of results that are not masked",
    source: "spec 5.4",
    setting: "masking.protect",
    value: 50_000,
    own: defaultMasking.protect
  },
  {
    name: "least tokens of results that are masked",
    source: "spec 5.4",
    setting: "masking.least",
    value: 30_000,
    own: defaultMasking.least
  },
  { name: "tools whose results are summarised", source: "spec 5.3", setting: "summarizeToolOutput", value: {} },

  // Files.
  {
    name: "DEFAULT_MAX_LINES_TEXT_FILE",
    source: "seed 002",
    setting: "files.lines",
    value: 2_000,
    own: usualLines
  },
  {
    name: "MAX_LINE_LENGTH_TEXT_FILE",
    source: "seed 002",
    setting: "files.lineLength",
    value: 2_000,
    own: widestLine
  },
  { name: "largest file, 20 MiB", source: "spec 6", setting: "files.bytes", value: 20_971_520, own: mostBytes },
  {
    name: "fileFiltering.respectGitIgnore",
    source: "spec 15",
    setting: "files.respectGitIgnore",
    value: true,
    own: limits.respectGitIgnore
  },
  {
    name: "fileFiltering.respectGeminiIgnore",
    source: "spec 15",
    setting: "files.respectGeminiIgnore",
    value: true,
    own: limits.respectGeminiIgnore
  },
  {
    name: "IDE_MAX_SELECTED_TEXT_LENGTH",
    source: "seed 002",
    setting: "ide.selection",
    value: 16_384,
    own: defaultIdeLimits.selection
  },
  {
    name: "IDE_MAX_OPEN_FILES",
    source: "seed 002, spec 6",
    setting: "ide.openFiles",
    value: 10,
    own: defaultIdeLimits.openFiles
  },

  // Routing, loops, caches, what is held for looking at.
  {
    name: "HISTORY_SEARCH_WINDOW",
    source: "seed 002",
    setting: "router.search",
    value: 20,
    own: usualRouting.search
  },
  {
    name: "HISTORY_TURNS_FOR_CONTEXT",
    source: "seed 002",
    setting: "router.turns",
    value: 4,
    own: usualRouting.turns
  },
  {
    name: "MAX_HISTORY_LENGTH",
    source: "seed 002",
    setting: "loopDetection.history",
    value: 5_000,
    own: defaultThresholds.history
  },
  {
    name: "CONTENT_CHUNK_SIZE",
    source: "seed 002",
    setting: "loopDetection.chunk",
    value: 50,
    own: defaultThresholds.chunk
  },
  {
    name: "CONTENT_LOOP_THRESHOLD",
    source: "spec 12",
    setting: "loopDetection.content",
    value: 10,
    own: defaultThresholds.content
  },
  {
    name: "TOOL_CALL_LOOP_THRESHOLD",
    source: "spec 12",
    setting: "loopDetection.calls",
    value: 5,
    own: defaultThresholds.calls
  },
  {
    name: "LLM_CHECK_AFTER_TURNS",
    source: "spec 12",
    setting: "loopDetection.checkAfter",
    value: 30,
    own: firstCheck
  },
  {
    name: "size of the editCorrector's LruCache",
    source: "seeds 002 and 004",
    setting: "editCorrection.cache",
    value: 50
  },
  { name: "maxEventBuffer", source: "seed 002", setting: "telemetry.buffer", value: 100 },

  // Memory and what is told of the surroundings.
  { name: "context.discoveryMaxDirs", source: "spec 7.1", setting: "memory.maxDirs", value: 200 },
  { name: "context.importFormat", source: "seed 002, spec 7.1", setting: "memory.importFormat", value: "tree" },
  { name: "maxDepth of imports", source: "spec 7.4", setting: "memory.importDepth", value: 5 },
  { name: "context.memoryBoundaryMarkers", source: "spec 7.1", setting: "memory.boundaries", value: [".git"] },
  { name: "memory's respectGitIgnore", source: "spec 7.1", setting: "memory.respectGitIgnore", value: false },
  { name: "memory's respectGeminiIgnore", source: "spec 7.1", setting: "memory.respectGeminiIgnore", value: true },
  { name: "the tree's MAX_ITEMS", source: "spec 10", setting: "environment.items", value: 200 },
  { name: "context.includeDirectoryTree", source: "spec 15", setting: "environment.tree", value: true },
  { name: "context.includeDirectories", source: "spec 15", setting: "includeDirectories", value: [] },
  {
    name: "context.loadMemoryFromIncludeDirectories",
    source: "spec 15",
    setting: "loadMemoryFromIncludeDirectories",
    value: false
  },

  // Hooks and turns.
  { name: "hooks.PreCompress", source: "seed 001", setting: "hooks", value: {} },
  { name: "hooksConfig.enabled", source: "spec 8", setting: "hooksConfig.enabled", value: true },
  { name: "timeout of a hook", source: "spec 8", setting: "hooksConfig.timeout", value: 60_000, own: hookTimeout },
  { name: "MAX_TURNS", source: "spec 9", setting: "maxTurns", value: 100 },
  {
    name: "general.maxAttempts",
    source: "spec 1.6 and 15",
    setting: "attempts.calls",
    value: 10,
    own: defaultPatience.call.attempts
  },
  {
    name: "attempts where an answer cannot be used",
    source: "spec 1.6",
    setting: "attempts.answers",
    value: 4,
    own: defaultPatience.answer.attempts
  },
  { name: "tools.shell.inactivityTimeout", source: "spec 14", setting: "shellIdle", value: 300 },

  // Where DESIGN.md or users.md say better.
  { name: "general.sessionRetention", source: "users.md, pain 5: none", setting: "sessionRetention", value: undefined },
  {
    name: "context.fileName",
    source: "issue 7, point 2",
    setting: "memory.fileNames",
    value: ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]
  }
]

const pathOf = ({ setting }: Pick<Constant, "setting">) => setting.split(".")

/** Another value of the same kind. */
const another = (value: unknown): unknown => {
  if (typeof value === "boolean") return !value
  if (typeof value === "number") return Number.isInteger(value) && value > 1 ? value + 7 : value / 2
  if (value === "tree") return "flat"
  return Array.isArray(value) ? ["other"] : undefined
}

const decode = Schema.decodeUnknownSync(Settings)

describe("constants of the seeds are settings with the seeds' value", () => {
  for (const constant of constants) {
    const { name, setting, source, value } = constant
    it(`${name} (${source}) is ${setting}`, () => {
      assert.deepStrictEqual(valueAt(usual, pathOf(constant)), value)
      assert.isTrue(Object.hasOwn(Settings.fields, pathOf(constant)[0] ?? ""), "the setting exists")
      if ("own" in constant) assert.strictEqual(constant.own, value, "without a setting the same holds")
    })
  }

  for (const constant of constants) {
    const { setting, value } = constant
    const other = another(value)
    if (other === undefined) continue
    it(`${setting} can be another`, () => {
      const path = pathOf(constant)
      // Two models are named wherever a router is set.
      const begun = path[0] === "router" ? { router: { flash: "f", pro: "p" } } : {}
      const file = withValue(begun, path, other)
      assert.deepStrictEqual(valueAt(decode(file), path), other)
      assert.isTrue(Predicate.isObject(file))
    })
  }

  it("a window that is not set is the seeds' for the models they know; one that nobody knows is small, not large", () => {
    assert.strictEqual(tokenLimit("gemini-2.5-pro"), 1_048_576)
    assert.strictEqual(tokenLimit("gemma-4-31b-it"), 256_000)
    assert.strictEqual(tokenLimit("some model"), unknownWindow)
  })

  it("lines that stay of a result, which no table names, are the seeds' too (seed 000)", () => {
    assert.strictEqual(seedSize.lastLines, 30)
    assert.strictEqual(defaultPolicy.outputForm, "last-lines")
  })
})

/** The values of a file by their paths, as `deepNestedInclude` names them. */
const leavesOf = (file: SettingsFile): Record<string, unknown> => {
  const all: Record<string, unknown> = {}
  const visit = (value: unknown, path: ReadonlyArray<string>): void => {
    if (Predicate.isObject(value)) for (const [key, inner] of Object.entries(value)) visit(inner, [...path, key])
    else all[path.map((key) => key.replaceAll(".", "\\.")).join(".")] = value
  }
  visit(file, [])
  return all
}

describe("older values of the seeds can be set", () => {
  const cases: ReadonlyArray<readonly [name: string, source: string, file: SettingsFile]> = [
    ["COMPRESSION_TOKEN_THRESHOLD of 0.2", "seed 002", { compressionThreshold: 0.2 }],
    ["a threshold of 95 %", "seed 004", { compressionThreshold: 0.95 }],
    ["compression that never comes by itself", "seed 003", { compressionThreshold: 1 }],
    ["95 % of what is left for a message", "seeds 002 and 003", { overflowFactor: 0.95 }],
    [
      "TRUNCATE_TOOL_OUTPUT_THRESHOLD of 4,000,000 and 1,000 lines",
      "seed 002",
      { toolOutput: { most: 4_000_000, form: "head-tail-lines", lines: 1_000 } }
    ],
    ["the last 30 lines", "seed 000", { toolOutput: { form: "last-lines" } }],
    ["thresholds by model", "seed 003", { models: { "gemini-2.5-pro": { compressionThreshold: 0.7 } } }],
    ["a window of gemini-1.5-pro", "seed 002", { window: 2_097_152 }],
    ["imports one after the other", "seed 002", { memory: { importFormat: "flat" } }],
    ["no loop detection", "spec 12", { loopDetection: false }]
  ]
  for (const [name, source, file] of cases) {
    it(`${name} (${source})`, () => assert.deepNestedInclude(decode(file), leavesOf(file)))
  }
})
