import { assert, describe, it } from "@effect/vitest"
import { defaultThresholds, firstCheckTurn } from "../../../src/domain/agent/LoopDetection.ts"
import { defaultRoutingSize } from "../../../src/domain/agent/RoutingWindow.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { defaultMasking } from "../../../src/domain/conversation/Masking.ts"
import { defaultBound } from "../../../src/domain/conversation/ToolOutputBound.ts"
import { defaultSize } from "../../../src/domain/conversation/ToolOutputShortening.ts"
import { defaultHookTimeoutMillis } from "../../../src/domain/hooks/HookSettings.ts"
import { tokenLimit, assumedWindow } from "../../../src/domain/model/ModelLimits.ts"
import {
  editCorrectionOf,
  defaults,
  loopDetectionOf,
  routerOf,
  Settings
} from "../../../src/domain/settings/Settings.ts"
import { valueAt } from "../../../src/domain/settings/SettingsKey.ts"
import { defaultMaxLines, maxLineChars } from "../../../src/domain/workspace/FileText.ts"
import { defaultIdeLimits } from "../../../src/domain/workspace/IdeContext.ts"
import { defaultTurnRetries } from "../../../src/services/chat/ChatSettings.ts"
import { maxFileBytes } from "../../../src/services/platform/RegularFile.ts"
import { FileLimits } from "../../../src/services/workspace/FileLimits.ts"

/** The defaults, with optional features enabled. */
const enabledDefaults = {
  ...defaults,
  loopDetection: loopDetectionOf(true),
  router: routerOf(true),
  editCorrection: editCorrectionOf(true)
}

/** A constant of Gemini CLI (March 2026 or older), its setting here, and the default in the code. */
interface Constant {
  readonly name: string
  readonly setting: string
  readonly value: unknown
  /** The default in the code; absent when the code has none. */
  readonly own?: unknown
}

const limits = FileLimits.defaultValue()

const constants: ReadonlyArray<Constant> = [
  // Compression.
  {
    name: "DEFAULT_COMPRESSION_TOKEN_THRESHOLD",
    setting: "compressionThreshold",
    value: 0.5,
    own: defaultPolicy.threshold
  },
  {
    name: "COMPRESSION_PRESERVE_THRESHOLD",
    setting: "preserve",
    value: 0.3,
    own: defaultPolicy.preserve
  },
  {
    name: "COMPRESSION_FUNCTION_RESPONSE_TOKEN_BUDGET",
    setting: "toolBudget",
    value: 50_000,
    own: defaultPolicy.toolBudget
  },
  { name: "least gain", setting: "minGain", value: 0.1, own: defaultPolicy.minGain },
  {
    name: "DEFAULT_TOKEN_LIMIT",
    setting: "window",
    value: undefined
  },
  { name: "share of the window that a message may take", setting: "overflowFactor", value: 1 },

  // Results of tools.
  {
    name: "DEFAULT_TRUNCATE_TOOL_OUTPUT_THRESHOLD",
    setting: "toolOutput.most",
    value: 40_000,
    own: defaultBound.most
  },
  {
    name: "DEFAULT_TRUNCATE_TOOL_OUTPUT_LINES",
    setting: "toolOutput.lines",
    value: 1_000,
    own: defaultBound.lines
  },
  {
    name: "tokens of results that are not masked",
    setting: "masking.protect",
    value: 50_000,
    own: defaultMasking.protect
  },
  {
    name: "least tokens of results that are masked",
    setting: "masking.least",
    value: 30_000,
    own: defaultMasking.least
  },
  { name: "tools whose results are summarised", setting: "summarizeToolOutput", value: {} },

  // Files.
  {
    name: "DEFAULT_MAX_LINES_TEXT_FILE",
    setting: "files.lines",
    value: 2_000,
    own: defaultMaxLines
  },
  {
    name: "MAX_LINE_LENGTH_TEXT_FILE",
    setting: "files.lineLength",
    value: 2_000,
    own: maxLineChars
  },
  { name: "largest file, 20 MiB", setting: "files.bytes", value: 20_971_520, own: maxFileBytes },
  {
    name: "fileFiltering.respectGitIgnore",
    setting: "files.respectGitIgnore",
    value: true,
    own: limits.respectGitIgnore
  },
  {
    name: "fileFiltering.respectGeminiIgnore",
    setting: "files.respectGeminiIgnore",
    value: true,
    own: limits.respectGeminiIgnore
  },
  {
    name: "IDE_MAX_SELECTED_TEXT_LENGTH",
    setting: "ide.selection",
    value: 16_384,
    own: defaultIdeLimits.selection
  },
  {
    name: "IDE_MAX_OPEN_FILES",
    setting: "ide.openFiles",
    value: 10,
    own: defaultIdeLimits.openFiles
  },

  // Routing, loops, caches, what is held for looking at.
  {
    name: "HISTORY_SEARCH_WINDOW",
    setting: "router.search",
    value: 20,
    own: defaultRoutingSize.search
  },
  {
    name: "HISTORY_TURNS_FOR_CONTEXT",
    setting: "router.turns",
    value: 4,
    own: defaultRoutingSize.turns
  },
  {
    name: "MAX_HISTORY_LENGTH",
    setting: "loopDetection.history",
    value: 5_000,
    own: defaultThresholds.history
  },
  {
    name: "CONTENT_CHUNK_SIZE",
    setting: "loopDetection.chunk",
    value: 50,
    own: defaultThresholds.chunk
  },
  {
    name: "CONTENT_LOOP_THRESHOLD",
    setting: "loopDetection.content",
    value: 10,
    own: defaultThresholds.content
  },
  {
    name: "TOOL_CALL_LOOP_THRESHOLD",
    setting: "loopDetection.calls",
    value: 5,
    own: defaultThresholds.calls
  },
  {
    name: "LLM_CHECK_AFTER_TURNS",
    setting: "loopDetection.checkAfter",
    value: 30,
    own: firstCheckTurn
  },
  {
    name: "size of the editCorrector's LruCache",
    setting: "editCorrection.cache",
    value: 50
  },
  { name: "maxEventBuffer", setting: "telemetry.buffer", value: 100 },

  // Memory and the environment message.
  { name: "context.discoveryMaxDirs", setting: "memory.maxDirs", value: 200 },
  { name: "context.importFormat", setting: "memory.importFormat", value: "tree" },
  { name: "maxDepth of imports", setting: "memory.importDepth", value: 5 },
  { name: "context.memoryBoundaryMarkers", setting: "memory.boundaries", value: [".git"] },
  { name: "memory's respectGitIgnore", setting: "memory.respectGitIgnore", value: false },
  { name: "memory's respectGeminiIgnore", setting: "memory.respectGeminiIgnore", value: true },
  { name: "the tree's MAX_ITEMS", setting: "environment.items", value: 200 },
  { name: "context.includeDirectoryTree", setting: "environment.tree", value: true },
  { name: "context.includeDirectories", setting: "includeDirectories", value: [] },
  {
    name: "context.loadMemoryFromIncludeDirectories",
    setting: "loadMemoryFromIncludeDirectories",
    value: false
  },

  // Hooks and turns.
  { name: "hooks.PreCompress", setting: "hooks", value: {} },
  { name: "hooksConfig.enabled", setting: "hooksConfig.enabled", value: true },
  {
    name: "timeout of a hook",
    setting: "hooksConfig.timeout",
    value: 60_000,
    own: defaultHookTimeoutMillis
  },
  { name: "MAX_TURNS", setting: "maxTurns", value: 100 },
  {
    name: "general.maxAttempts",
    setting: "attempts.calls",
    value: 10,
    own: defaultTurnRetries.call.attempts
  },
  {
    name: "attempts where an answer cannot be used",
    setting: "attempts.answers",
    value: 4,
    own: defaultTurnRetries.answer.attempts
  },
  { name: "tools.shell.inactivityTimeout", setting: "shellIdle", value: 300 },

  // Where this program differs on purpose.
  { name: "general.sessionRetention", setting: "sessionRetention", value: undefined },
  {
    name: "context.fileName",
    setting: "memory.fileNames",
    value: ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]
  }
]

const pathOf = ({ setting }: Pick<Constant, "setting">) => setting.split(".")

describe("Gemini CLI's constants are settings with the same defaults", () => {
  for (const constant of constants) {
    const { name, setting, value } = constant
    it(`${name} is ${setting}`, () => {
      assert.deepStrictEqual(valueAt(enabledDefaults, pathOf(constant)), value)
      assert.isTrue(Object.hasOwn(Settings.fields, pathOf(constant)[0] ?? ""), "the setting exists")
      if ("own" in constant) assert.strictEqual(constant.own, value, "without a setting the same holds")
    })
  }

  it("an unset window is Gemini CLI's for known models, and small for others", () => {
    assert.strictEqual(tokenLimit("gemini-2.5-pro"), 1_048_576)
    assert.strictEqual(tokenLimit("gemma-4-31b-it"), 256_000)
    assert.strictEqual(tokenLimit("some model"), assumedWindow)
  })

  it("the number of kept last lines of a result is Gemini CLI's", () => {
    assert.strictEqual(defaultSize.lastLines, 30)
    assert.strictEqual(defaultPolicy.outputForm, "last-lines")
  })
})
