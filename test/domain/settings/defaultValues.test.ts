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

/** A constant of Gemini CLI (March 2026 or older), its setting here, and the default in the code where it has one. */
type Constant = readonly [name: string, setting: string, value: unknown, own?: unknown]

const limits = FileLimits.defaultValue()

const constants: ReadonlyArray<Constant> = [
  // Compression.
  ["DEFAULT_COMPRESSION_TOKEN_THRESHOLD", "compressionThreshold", 0.5, defaultPolicy.threshold],
  ["COMPRESSION_PRESERVE_THRESHOLD", "preserve", 0.3, defaultPolicy.preserve],
  ["COMPRESSION_FUNCTION_RESPONSE_TOKEN_BUDGET", "toolBudget", 50_000, defaultPolicy.toolBudget],
  ["least gain", "minGain", 0.1, defaultPolicy.minGain],
  ["DEFAULT_TOKEN_LIMIT", "window", undefined],
  ["share of the window that a message may take", "overflowFactor", 1],
  // Results of tools.
  ["DEFAULT_TRUNCATE_TOOL_OUTPUT_THRESHOLD", "toolOutput.most", 40_000, defaultBound.most],
  ["DEFAULT_TRUNCATE_TOOL_OUTPUT_LINES", "toolOutput.lines", 1_000, defaultBound.lines],
  ["tokens of results that are not masked", "masking.protect", 50_000, defaultMasking.protect],
  ["least tokens of results that are masked", "masking.least", 30_000, defaultMasking.least],
  ["tools whose results are summarised", "summarizeToolOutput", {}],
  // Files.
  ["DEFAULT_MAX_LINES_TEXT_FILE", "files.lines", 2_000, defaultMaxLines],
  ["MAX_LINE_LENGTH_TEXT_FILE", "files.lineLength", 2_000, maxLineChars],
  ["largest file, 20 MiB", "files.bytes", 20_971_520, maxFileBytes],
  ["fileFiltering.respectGitIgnore", "files.respectGitIgnore", true, limits.respectGitIgnore],
  ["fileFiltering.respectGeminiIgnore", "files.respectGeminiIgnore", true, limits.respectGeminiIgnore],
  ["IDE_MAX_SELECTED_TEXT_LENGTH", "ide.selection", 16_384, defaultIdeLimits.selection],
  ["IDE_MAX_OPEN_FILES", "ide.openFiles", 10, defaultIdeLimits.openFiles],
  // Routing, loops, caches, what is held for looking at.
  ["HISTORY_SEARCH_WINDOW", "router.search", 20, defaultRoutingSize.search],
  ["HISTORY_TURNS_FOR_CONTEXT", "router.turns", 4, defaultRoutingSize.turns],
  ["MAX_HISTORY_LENGTH", "loopDetection.history", 5_000, defaultThresholds.history],
  ["CONTENT_CHUNK_SIZE", "loopDetection.chunk", 50, defaultThresholds.chunk],
  ["CONTENT_LOOP_THRESHOLD", "loopDetection.content", 10, defaultThresholds.content],
  ["TOOL_CALL_LOOP_THRESHOLD", "loopDetection.calls", 5, defaultThresholds.calls],
  ["LLM_CHECK_AFTER_TURNS", "loopDetection.checkAfter", 30, firstCheckTurn],
  ["size of the editCorrector's LruCache", "editCorrection.cache", 50],
  ["maxEventBuffer", "telemetry.buffer", 100],
  // Memory and the environment message.
  ["context.discoveryMaxDirs", "memory.maxDirs", 200],
  ["context.importFormat", "memory.importFormat", "tree"],
  ["maxDepth of imports", "memory.importDepth", 5],
  ["context.memoryBoundaryMarkers", "memory.boundaries", [".git"]],
  ["memory's respectGitIgnore", "memory.respectGitIgnore", false],
  ["memory's respectGeminiIgnore", "memory.respectGeminiIgnore", true],
  ["the tree's MAX_ITEMS", "environment.items", 200],
  ["context.includeDirectoryTree", "environment.tree", true],
  ["context.includeDirectories", "includeDirectories", []],
  ["context.loadMemoryFromIncludeDirectories", "loadMemoryFromIncludeDirectories", false],
  // Hooks and turns.
  ["hooks.PreCompress", "hooks", {}],
  ["hooksConfig.enabled", "hooksConfig.enabled", true],
  ["timeout of a hook", "hooksConfig.timeout", 60_000, defaultHookTimeoutMillis],
  ["MAX_TURNS", "maxTurns", 100],
  ["general.maxAttempts", "attempts.calls", 10, defaultTurnRetries.call.attempts],
  ["attempts where an answer cannot be used", "attempts.answers", 4, defaultTurnRetries.answer.attempts],
  ["tools.shell.inactivityTimeout", "shellIdle", 300],
  ["hooksConfig.disabled", "hooksConfig.disabled", []],
  ["ide.enabled", "ide.enabled", true],
  ["memory of subfolders", "memory.downward", true],
  ["memory of a file's folder", "memory.onTouch", true],
  // Where this program differs on purpose.
  ["the first name only", "memory.firstFound", false],
  ["characters of a file", "memory.fileChars", 0],
  ["characters of all files", "memory.totalChars", 0],
  ["the form of outputs", "toolOutput.form", "head-tail-chars"],
  ["general.sessionRetention", "sessionRetention", undefined],
  ["context.fileName", "memory.fileNames", ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]]
]

describe("Gemini CLI's constants are settings with the same defaults", () => {
  for (const [name, setting, value, ...own] of constants) {
    it(`${name} is ${setting}`, () => {
      const path = setting.split(".")
      assert.deepStrictEqual(valueAt(enabledDefaults, path), value)
      assert.isTrue(Object.hasOwn(Settings.fields, path[0] ?? ""), "the setting exists")
      if (own.length > 0) assert.strictEqual(own[0], value, "without a setting the same holds")
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
