import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { tmpdir } from "node:os"
import path from "node:path"
import { pathToFileURL } from "node:url"
import type { GeminiCase, OriginalRun } from "./GeminiCase.ts"

/**
 * Runs the compression of Gemini CLI itself, in a process of its own, on the cases of a file, with a model and a
 * configuration that are made up: `node geminiOriginal.ts <folder with node_modules> <cases> <results>`.
 *
 * Version 0.61.0 is newer than the one that the strategy `gemini` follows (March 2026, commit 29b3aa8). Where they differ, the
 * older rule is put in when a file is loaded; each replacement has to be found, so that none is passed over in silence.
 */

const [folder = "", casesFile = "", resultsFile = ""] = process.argv.slice(2)
const source = path.join(folder, "node_modules", "@google", "gemini-cli-core", "dist", "src")

/** What is replaced in a file, and why. */
const replacements: Readonly<Record<string, ReadonlyArray<{ readonly what: string; readonly by: string }>>> = {
  "utils/tokenCalculation.js": [
    // In March 2026 a character outside ASCII cost 1.3 tokens.
    { what: "NON_ASCII_TOKENS_PER_CHAR = 1.5", by: "NON_ASCII_TOKENS_PER_CHAR = 1.3" }
  ],
  "core/geminiChat.js": [
    // In March 2026 a model message without parts was invalid, and so was an empty text whatever stood beside it.
    {
      what: "if (content.role === 'model' &&\n        (content.parts === undefined || content.parts.length === 0)) {\n        return true;",
      by: "if (false) {\n        return true;"
    },
    { what: "part.text === '' &&\n            nonTextKeys.length === 0", by: "part.text === ''" },
    { what: "function extractCuratedHistory(", by: "export function extractCuratedHistory(" }
  ],
  "utils/fileUtils.js": [
    // The words of a placeholder are our own; a handle stands where the original names a file.
    {
      what: "return `Output too large. Showing first ${headChars.toLocaleString()} and last ${tailChars.toLocaleString()} characters. For full output see: ${outputFile}",
      by: "const shortened = `[palimpsest: written by the runtime, not by the user] The first ${headChars} and last ${tailChars} of ${contentStr.length} characters. The whole output: recall h_0000000000"
    },
    // A placeholder that is not shorter replaces nothing.
    { what: "${tail}`;", by: "${tail}`;\n    return shortened.length < contentStr.length ? shortened : contentStr;" },
    // A cut through a pair of surrogates leaves out all of the character.
    {
      what: "contentStr.slice(0, headChars);",
      by: "contentStr.slice(0, headChars).replace(/[\\uD800-\\uDBFF]$/, '');"
    },
    { what: "contentStr.slice(-tailChars);", by: "contentStr.slice(-tailChars).replace(/^[\\uDC00-\\uDFFF]/, '');" },
    { what: "${omittedChars.toLocaleString()} characters", by: "${omittedChars} characters" }
  ]
}

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    const file = Object.keys(replacements).find((name) => url.endsWith(`/dist/src/${name}`))
    if (file === undefined) return loaded
    let text = String(loaded.source instanceof Uint8Array ? Buffer.from(loaded.source).toString() : loaded.source)
    for (const { by, what } of replacements[file] ?? []) {
      if (!text.includes(what)) throw new Error(`${file} does not hold ${JSON.stringify(what)}`)
      text = text.replace(what, () => by)
    }
    return { ...loaded, source: text }
  }
})

// It tells of each save that fails.
for (const method of ["log", "debug", "warn", "error"] as const) console[method] = () => {}

const load = (file: string) => import(pathToFileURL(path.join(source, file)).href)
const { ChatCompressionService, modelStringToModelConfigAlias } = await load("context/chatCompressionService.js")
const { CompressionStatus } = await load("core/turn.js")
const { extractCuratedHistory } = await load("core/geminiChat.js")
const { getInitialChatHistory } = await load("utils/environmentContext.js")
const { tokenLimit } = await load("core/tokenLimits.js")

const answerOf = (answer: GeminiCase["answers"][number]) => {
  if (answer === "fail") throw new Error("the model failed")
  return answer === "nothing" ? { candidates: [] } : { candidates: [{ content: { role: "model", parts: answer } }] }
}

const temporary = mkdtempSync(path.join(tmpdir(), "original-"))
const noFolder = path.join(temporary, "file")
writeFileSync(noFolder, "")

/** One case, from the history to what became of it. */
const run = async (one: GeminiCase): Promise<OriginalRun> => {
  const calls: Array<OriginalRun["calls"][number]> = []
  const limit: number = tokenLimit(one.model)
  let hook: string | undefined
  let number = 0
  let isSaving = false
  let counted = 0
  const config: Record<string, unknown> = {
    getHookSystem: () => ({
      firePreCompressEvent: async (trigger: string) => {
        hook = trigger
      }
    }),
    getCompressionThreshold: async () =>
      one.threshold === undefined || one.threshold === 0 ? undefined : one.threshold,
    getNextCompressionTruncationId: () => {
      number += 1
      isSaving = true
      return number
    },
    // A file in place of a folder: what is saved there fails. The environment message names the folder too.
    storage: {
      getProjectTempDir: () => {
        const isBroken = isSaving && one.brokenSaves.includes(number)
        isSaving = false
        return isBroken ? noFolder : temporary
      }
    },
    getTruncateToolOutputThreshold: () => Math.min(40_000, 4 * (limit - one.promptTokens)),
    getBaseLlmClient: () => ({
      generateContent: async (request: {
        contents: OriginalRun["calls"][number]["contents"]
        promptId: string
        role: string
        modelConfigKey: { model: string }
      }) => {
        const { contents, modelConfigKey, promptId, role } = request
        const answer = one.answers[calls.length]
        calls.push({ contents: structuredClone(contents), promptId, role, alias: modelConfigKey.model })
        return answerOf(answer ?? "fail")
      }
    }),
    getContentGenerator: () => ({
      countTokens: async () => {
        counted += 1
        if (one.count === "fail") throw new Error("countTokens failed")
        return { totalTokens: one.count }
      }
    }),
    getIncludeDirectoryTree: () => false,
    getSessionMemory: () => "What is remembered.",
    getActiveModel: () => one.model,
    getApprovedPlanPath: () => undefined,
    getUsageStatisticsEnabled: () => false,
    getExperiments: () => undefined,
    getContentGeneratorConfig: () => undefined,
    getSessionId: () => "session",
    isInteractive: () => false,
    get config() {
      return config
    }
  }
  const [first] = await getInitialChatHistory(config, [])
  const environment = first.content
  const history = one.environment ? [environment, ...one.contents] : one.contents
  const wrapped = history.map((content) => ({ id: "x", content }))
  const curated = extractCuratedHistory(wrapped).map(({ content }: { content: unknown }) => content)
  const chat = { getHistory: () => structuredClone(curated), getLastPromptTokenCount: () => one.promptTokens }
  const about = { calls, environment, curated, limit, alias: modelStringToModelConfigAlias(one.model) }
  try {
    const { info, newHistory } = await new ChatCompressionService().compress(
      chat,
      "p",
      one.force,
      one.model,
      config,
      one.hasFailed
    )
    return {
      ...about,
      status: CompressionStatus[info.compressionStatus],
      before: info.originalTokenCount,
      after: info.newTokenCount,
      history: newHistory,
      hook,
      counted,
      saves: number
    }
  } catch (error) {
    return {
      ...about,
      status: "THROWN",
      message: String(error),
      before: one.promptTokens,
      after: one.promptTokens,
      history: null,
      hook,
      counted,
      saves: number
    }
  }
}

const cases: ReadonlyArray<GeminiCase> = JSON.parse(readFileSync(casesFile, "utf8"))
const results: Array<OriginalRun> = []
for (const one of cases) results.push(await run(one))
writeFileSync(resultsFile, JSON.stringify(results))
process.exit(0)
