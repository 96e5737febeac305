/**
 * Translates Gemini CLI settings: what each key becomes, and why some are skipped.
 *
 * One file: every key must be in exactly one result list.
 */

import { Equal, Predicate } from "effect"
import { hooksOf } from "../hooks/HookSettings.ts"
import { firstMismatch, type SettingsPath, unknownKeys, valueAt, withValue, isList } from "./SettingsKey.ts"
import {
  type JsonPath,
  pathText,
  type SkippedKey,
  type SkipReason,
  unknownReason,
  untranslatedPaths,
  untranslatedText
} from "./SkippedSetting.ts"

/** A key and the setting it becomes. A row covers everything below it, except where rows below say otherwise. */
export interface TranslatedKey {
  readonly from: JsonPath
  readonly to: SettingsPath
  readonly value: unknown
  /** A difference in meaning. */
  readonly note: string | undefined
}

/** A key whose setting is already set here. The existing value stays. */
interface AlreadySetKey {
  readonly from: JsonPath
  readonly to: SettingsPath
  /** Whether it has the same value. */
  readonly isSame: boolean
}

/** The result for all keys. */
export interface Translation {
  readonly taken: ReadonlyArray<TranslatedKey>
  readonly kept: ReadonlyArray<AlreadySetKey>
  readonly left: ReadonlyArray<SkippedKey>
}

/** The converted value, or why there is none. */
type Conversion = { readonly value: unknown; readonly note?: string } | SkipReason

/** A setting and the Gemini CLI keys it comes from, newest name first. */
interface Rule {
  readonly to: SettingsPath
  readonly from: ReadonlyArray<SettingsPath>
  readonly becomes?: (value: unknown, settings: unknown) => Conversion
}

const defineRule = (to: string, from: ReadonlyArray<string>, becomes?: Rule["becomes"]): Rule => ({
  to: to.split("."),
  from: from.map((path) => path.split(".")),
  ...(becomes === undefined ? {} : { becomes })
})

const unfit = (expected: string): SkipReason => ({ why: `expected ${expected}`, isUnfit: true })

/** Another key says the same, and counts. */
const repeated = (by: string): SkipReason => ({ why: `${by} says it already` })

const expectedBoolean = unfit("true or false")

const not = (value: unknown): Conversion => (typeof value === "boolean" ? { value: !value } : expectedBoolean)

const listOf = (value: unknown): Conversion => ({ value: typeof value === "string" ? [value] : value })

/** Names that stand for one of several models in Gemini CLI. */
const aliases = /^(?:auto(?:-.*)?|pro|flash|flash-lite)$/

const parseModel = (value: unknown): Conversion =>
  typeof value === "string" && aliases.test(value)
    ? { why: "is not the name of a model; set model to one, or router to true" }
    : Predicate.isObject(value)
      ? unfit("the name of a model")
      : { value }

const parseTurns = (value: unknown): Conversion =>
  value === -1
    ? { why: "means no limit for a session, which is the default here" }
    : { value, note: "applies to one message, not to the session" }

const parseOutputLimit = (value: unknown): Conversion =>
  typeof value === "number" && value <= 0 ? { value: 0, note: "0: nothing is shortened" } : { value }

const parseTruncation = (value: unknown): Conversion =>
  value === false
    ? { value: 0, note: "0: nothing is shortened" }
    : { why: "is the default here, unless toolOutput.most is 0" }

const parseFolderTrust = (value: unknown): Conversion =>
  value === true ? { value } : { why: "would trust every folder; set folderTrust yourself if you want that" }

/** Gemini CLI's default protocol is gRPC, which this program does not support. */
const parseEndpoint = (value: unknown, settings: unknown): Conversion =>
  valueAt(settings, ["telemetry", "otlpProtocol"]) === "http"
    ? { value }
    : { why: "uses gRPC; set telemetry.endpoint to the collector's HTTP address" }

const parseInvestigator = (value: unknown, settings: unknown): Conversion =>
  valueAt(settings, ["agents", "overrides", "codebase_investigator"]) === undefined
    ? { value }
    : { why: "agents.overrides.codebase_investigator counts instead" }

const parseRetention = (value: unknown, settings: unknown): Conversion =>
  valueAt(settings, ["general", "sessionRetention", "enabled"]) === false
    ? { why: "is switched off there" }
    : { value, note: "older sessions of this program are deleted too" }

const rules: ReadonlyArray<Rule> = [
  defineRule("model", ["model.name", "model"], parseModel),
  defineRule("compressionThreshold", [
    "model.compressionThreshold",
    "model.chatCompression.contextPercentageThreshold",
    "chatCompression.contextPercentageThreshold"
  ]),
  defineRule("maxTurns", ["model.maxSessionTurns", "maxSessionTurns"], parseTurns),
  defineRule("loopDetection", ["model.disableLoopDetection", "disableLoopDetection"], not),
  defineRule("memory.fileNames", ["context.fileName", "contextFileName"], listOf),
  defineRule("memory.importFormat", ["context.importFormat", "memoryImportFormat"]),
  defineRule("memory.maxDirs", ["context.discoveryMaxDirs", "memoryDiscoveryMaxDirs"]),
  defineRule("memory.boundaries", ["context.memoryBoundaryMarkers"]),
  defineRule("environment.tree", ["context.includeDirectoryTree", "includeDirectoryTree"]),
  defineRule("includeDirectories", ["context.includeDirectories", "includeDirectories"]),
  defineRule("loadMemoryFromIncludeDirectories", [
    "context.loadMemoryFromIncludeDirectories",
    "context.loadFromIncludeDirectories",
    "loadMemoryFromIncludeDirectories"
  ]),
  defineRule("files.respectGitIgnore", ["context.fileFiltering.respectGitIgnore", "fileFiltering.respectGitIgnore"]),
  defineRule("files.respectGeminiIgnore", [
    "context.fileFiltering.respectGeminiIgnore",
    "fileFiltering.respectGeminiIgnore"
  ]),
  defineRule("toolOutput.most", ["tools.enableToolOutputTruncation", "enableToolOutputTruncation"], parseTruncation),
  defineRule("toolOutput.most", ["tools.truncateToolOutputThreshold", "truncateToolOutputThreshold"], parseOutputLimit),
  defineRule("toolOutput.lines", ["tools.truncateToolOutputLines", "truncateToolOutputLines"], (value) => ({
    value,
    note: "applies to the form head-tail-lines"
  })),
  defineRule("shellIdle", ["tools.shell.inactivityTimeout"]),
  defineRule("editCorrection", ["tools.disableLLMCorrection"], not),
  defineRule("masking.protect", ["experimental.toolOutputMasking.toolProtectionThreshold"]),
  defineRule("masking.least", ["experimental.toolOutputMasking.minPrunableTokensThreshold"]),
  defineRule("attempts.calls", ["general.maxAttempts", "maxAttempts"]),
  defineRule("sessionRetention.maxAge", ["general.sessionRetention.maxAge"], parseRetention),
  defineRule("sessionRetention.maxCount", ["general.sessionRetention.maxCount"], parseRetention),
  defineRule("hooksConfig.enabled", ["hooksConfig.enabled", "hooks.enabled", "tools.enableHooks"]),
  defineRule("hooksConfig.disabled", ["hooksConfig.disabled", "hooks.disabled"]),
  defineRule("agents.codebase_investigator", ["experimental.codebaseInvestigatorSettings.enabled"], parseInvestigator),
  defineRule("ide.enabled", ["ide.enabled", "ideMode"]),
  defineRule("telemetry.enabled", ["telemetry.enabled"]),
  defineRule("telemetry.endpoint", ["telemetry.otlpEndpoint"], parseEndpoint),
  defineRule("telemetry.prompts", ["telemetry.logPrompts"]),
  defineRule("telemetry.file", ["telemetry.outfile"]),
  defineRule("folderTrust", ["security.folderTrust.enabled", "folderTrust"], parseFolderTrust)
]

const entriesOf = (value: unknown): ReadonlyArray<readonly [string | number, unknown]> =>
  Predicate.isObject(value)
    ? Object.entries(value)
    : isList(value) && value.some((one) => Predicate.isObject(one))
      ? [...value.entries()]
      : []

/** Whether settings already have a value at a path, or a value in its way. */
const isSet = (settings: unknown, path: SettingsPath): boolean =>
  path.some((_, at) => {
    const value = valueAt(settings, path.slice(0, at + 1))
    return value !== undefined && (at === path.length - 1 || !Predicate.isObject(value))
  })

/** The rows collected so far. */
interface Rows {
  readonly taken: Array<TranslatedKey>
  readonly kept: Array<AlreadySetKey>
  readonly left: Array<SkippedKey>
}

const skip = ({ left }: Rows, from: JsonPath, reason: SkipReason) => void left.push({ from, ...reason })

/** Adds a value unless one is already set or it does not fit. */
const addRow = (
  rows: Rows,
  ours: unknown,
  from: JsonPath,
  to: SettingsPath,
  { note, value }: { value: unknown; note?: string }
) => {
  const whole = withValue({}, to, value)
  const wrong = firstMismatch(whole)
  if (isSet(ours, to)) {
    rows.kept.push({ from, to, isSame: Equal.equals(valueAt(ours, to), value) })
  } else if (wrong !== undefined) skip(rows, from, unfit(wrong.expected))
  else if (unknownKeys(whole).length > 0) skip(rows, from, { why: unknownReason })
  else rows.taken.push({ from, to, value, note })
}

/** Whether a path is at or below another. */
const isWithin = (path: JsonPath, above: JsonPath): boolean => above.every((name, at) => path[at] === name)

const translateByRules = (gemini: unknown, ours: unknown, rows: Rows) => {
  const translatedFrom = new Map<string, JsonPath>()
  for (const { becomes = (value: unknown): Conversion => ({ value }), from: sources, to } of rules) {
    for (const from of sources) {
      const value = valueAt(gemini, from)
      // `model` is an object in newer settings and a name in older ones.
      if (
        value === undefined ||
        (Predicate.isObject(value) && sources.some((each) => each !== from && isWithin(each, from)))
      )
        continue
      const before = translatedFrom.get(pathText(to))
      if (before !== undefined) {
        skip(rows, from, repeated(pathText(before)))
        continue
      }
      const conversion = becomes(value, gemini)
      if ("why" in conversion) skip(rows, from, conversion)
      else {
        const count = rows.left.length
        addRow(rows, ours, from, to, conversion)
        if (rows.left.length === count) translatedFrom.set(pathText(to), from)
      }
    }
  }
}

/** Each tool of `summarizeToolOutput`, with its budget. */
const translateSummaries = (gemini: unknown, ours: unknown, rows: Rows) => {
  const places: ReadonlyArray<SettingsPath> = [["model", "summarizeToolOutput"], ["summarizeToolOutput"]]
  const seen = new Set<string>()
  for (const place of places) {
    const value = valueAt(gemini, place)
    for (const [tool, one] of Predicate.isObject(value) ? Object.entries(value) : []) {
      const from = [...place, tool]
      if (seen.has(tool)) skip(rows, from, repeated(`model.summarizeToolOutput.${tool}`))
      else addRow(rows, ours, from, ["summarizeToolOutput", tool], { value: one })
      seen.add(tool)
    }
  }
}

/** Whether each agent is enabled. */
const translateAgents = (gemini: unknown, ours: unknown, rows: Rows) => {
  const overrides = valueAt(gemini, ["agents", "overrides"])
  for (const [name, one] of Predicate.isObject(overrides) ? Object.entries(overrides) : []) {
    if (!Predicate.isObject(one)) continue
    for (const key of ["enabled", "disabled"]) {
      if (!Object.hasOwn(one, key)) continue
      const from = ["agents", "overrides", name, key]
      const value = key === "disabled" && typeof one[key] === "boolean" ? !one[key] : one[key]
      if (key === "disabled" && Object.hasOwn(one, "enabled")) skip(rows, from, repeated("enabled"))
      else addRow(rows, ours, from, ["agents", name], { value })
    }
  }
}

/** Server keys that exist here too. The address is handled separately. */
const serverKeys: ReadonlyArray<string> = ["command", "args", "env", "cwd", "timeout", "headers"]

const namesVariable = (value: unknown): boolean =>
  typeof value === "string"
    ? /\$(?:\{|[A-Za-z_])/.test(value)
    : entriesOf(value).some(([, one]) => namesVariable(one)) || (isList(value) && value.some(namesVariable))

const translateServers = (gemini: unknown, ours: unknown, rows: Rows) => {
  const all = valueAt(gemini, ["mcpServers"])
  for (const [name, server] of Predicate.isObject(all) ? Object.entries(all) : []) {
    const from = ["mcpServers", name]
    if (!Predicate.isObject(server)) {
      skip(rows, from, { why: "is no server" })
      continue
    }
    const { httpUrl, type, url } = server
    const isHttp = httpUrl !== undefined || url !== undefined
    const own = Object.fromEntries(
      Object.entries(server).filter(
        ([key]) => serverKeys.includes(key) && (isHttp ? key === "headers" || key === "timeout" : key !== "headers")
      )
    )
    const value = isHttp ? { url: httpUrl ?? url, ...own } : own
    const { env: _env, headers: _headers, ...plain } = value
    const count = rows.left.length
    if (httpUrl === undefined && url !== undefined && type === "sse") {
      skip(rows, from, { why: "uses server-sent events, which are not supported" })
    } else if (namesVariable(plain)) {
      skip(rows, from, { why: "has variables outside of env and headers, where they are not replaced" })
    } else if (/\$\{\w+:-/.test(JSON.stringify(value))) {
      skip(rows, from, { why: "gives variables default values, which are not supported" })
    } else {
      const note = httpUrl === undefined && url !== undefined && type === undefined
      addRow(
        rows,
        ours,
        from,
        from,
        note ? { value, note: "is contacted over HTTP, not server-sent events" } : { value }
      )
    }
    if (rows.left.length > count) continue
    for (const key of Object.keys(server)) {
      const isUsed =
        Object.hasOwn(own, key) || key === "type" || (isHttp && key === (httpUrl === undefined ? "url" : "httpUrl"))
      if (!isUsed) skip(rows, [...from, key], { why: untranslatedText([...from, key]) })
    }
  }
}

/** What is wrong with the hooks of one event. */
const hookGroupsProblem = (event: string, groups: unknown): SkipReason | undefined => {
  const [problem] = hooksOf({ [event]: groups }, "home").problems
  return problem && { why: problem.fault }
}

/** A hook without its invalid parts; undefined when it is unusable. */
const hookOf = (event: string, from: JsonPath, hook: unknown, rows: Rows): unknown => {
  const reason = hookGroupsProblem(event, [
    { hooks: [Predicate.isObject(hook) ? { type: hook["type"], command: hook["command"] } : hook] }
  ])
  if (!Predicate.isObject(hook) || reason !== undefined) {
    skip(rows, from, reason ?? { why: "is of the wrong kind" })
    return undefined
  }
  const { command, type } = hook
  return Object.fromEntries(
    Object.entries(hook).filter(([key, value]) => {
      const isWrong = hookGroupsProblem(event, [{ hooks: [{ type, command, [key]: value }] }]) !== undefined
      if (isWrong) skip(rows, [...from, key], { why: "is of the wrong kind" })
      return !isWrong
    })
  )
}

/** Options that older files keep beside the events; the rules handle them. */
const nonEventKeys: ReadonlyArray<string> = ["enabled", "disabled", "notifications"]

const translateHooks = (gemini: unknown, ours: unknown, rows: Rows) => {
  const all = valueAt(gemini, ["hooks"])
  for (const [event, groups] of Predicate.isObject(all) ? Object.entries(all) : []) {
    if (nonEventKeys.includes(event)) continue
    const place = ["hooks", event]
    const wrongEvent = hookGroupsProblem(event, [])
    if (wrongEvent !== undefined || !isList(groups)) {
      skip(rows, place, isList(groups) ? { why: "there is no such event" } : unfit("a list"))
      continue
    }
    const value = groups.flatMap((group, at): ReadonlyArray<unknown> => {
      const from = [...place, at]
      const groupHooks = Predicate.isObject(group) ? group["hooks"] : undefined
      if (!Predicate.isObject(group) || !isList(groupHooks)) {
        skip(rows, from, { why: "it has no list of hooks" })
        return []
      }
      const { sequential, ...others } = group
      const reason = hookGroupsProblem(event, [{ ...others, hooks: [] }])
      if (reason !== undefined) {
        skip(rows, from, reason)
        return []
      }
      const isWrong = sequential !== undefined && typeof sequential !== "boolean"
      if (isWrong) skip(rows, [...from, "sequential"], expectedBoolean)
      const usable = groupHooks.flatMap((hook, index) => {
        const one = hookOf(event, [...from, "hooks", index], hook, rows)
        return one === undefined ? [] : [one]
      })
      if (usable.length === 0) skip(rows, from, { why: "it has no hook that could be used" })
      return usable.length === 0 ? [] : [{ ...(isWrong ? others : group), hooks: usable }]
    })
    if (value.length === 0) skip(rows, place, { why: "it has no hook that could be used" })
    else addRow(rows, ours, place, place, { value })
  }
}

const key = (path: JsonPath): string => JSON.stringify(path)

/** Adds a row for everything not covered yet, one per uncovered subtree. */
const collectUntranslated = (gemini: unknown, rows: Rows) => {
  const reported = [...rows.taken, ...rows.kept, ...rows.left].map(({ from }) => from)
  const coveredKeys = new Set(reported.map(key))
  const above = new Set(reported.flatMap((path) => path.map((_, at) => key(path.slice(0, at)))))
  const walk = (value: unknown, path: JsonPath): void => {
    if (coveredKeys.has(key(path))) return
    const parts = entriesOf(value)
    const text = pathText(path)
    const isParted = above.has(key(path)) || untranslatedPaths.some((reason) => reason.startsWith(`${text}.`))
    if (path.length === 0 || (parts.length > 0 && isParted)) {
      for (const [name, one] of parts) walk(one, [...path, name])
    } else skip(rows, path, { why: untranslatedText(path) })
  }
  walk(gemini, [])
}

/**
 * Translates Gemini CLI settings next to existing ones. No key is lost: each is in exactly one of the three lists,
 * through its own row or the nearest one above it.
 */
export const translateGeminiSettings = (
  gemini: Readonly<Record<string, unknown>>,
  ours: Readonly<Record<string, unknown>>
): Translation => {
  const rows: Rows = { taken: [], kept: [], left: [] }
  translateByRules(gemini, ours, rows)
  translateSummaries(gemini, ours, rows)
  translateAgents(gemini, ours, rows)
  translateServers(gemini, ours, rows)
  translateHooks(gemini, ours, rows)
  collectUntranslated(gemini, rows)
  return rows
}
