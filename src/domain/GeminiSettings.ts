import { Equal, Predicate } from "effect"
import { hooksOf } from "./HookSettings.ts"
import { misfit, type SettingsPath, unknownKeys, valueAt, withValue } from "./SettingsKey.ts"

/** Settings of Gemini CLI as settings of this program (spec 15): what each key becomes, and why some become nothing. */

/** The names and places that lead to a value of a JSON document, the outermost first. */
export type JsonPath = ReadonlyArray<string | number>

/** A path as it is written: `hooks.AfterTool[0].hooks[1]`. */
export const pathText = (path: JsonPath): string =>
  path.reduce<string>(
    (text, one) => (typeof one === "number" ? `${text}[${one}]` : text === "" ? one : `${text}.${one}`),
    ""
  )

/** A key, and the setting it becomes. Each row speaks for all that lies below it, but for what rows below say. */
export interface TakenKey {
  readonly from: JsonPath
  readonly to: SettingsPath
  readonly value: unknown
  /** What is not quite the same here. */
  readonly note: string | undefined
}

/** A key for which something is set here already, which stays. */
export interface KeptKey {
  readonly from: JsonPath
  readonly to: SettingsPath
  readonly why: string
}

/** A key that becomes nothing, and why. */
export interface LeftKey {
  readonly from: JsonPath
  readonly why: string
}

/** What becomes of all keys. */
export interface Translation {
  readonly taken: ReadonlyArray<TakenKey>
  readonly kept: ReadonlyArray<KeptKey>
  readonly left: ReadonlyArray<LeftKey>
}

/** What a value becomes: another one, or nothing. */
type Becomes = { readonly value: unknown; readonly note?: string } | { readonly why: string }

/** A setting of ours, and the keys that say it, the strongest first; older names stand behind newer ones. */
interface Rule {
  readonly to: SettingsPath
  readonly from: ReadonlyArray<JsonPath>
  readonly becomes?: (value: unknown, settings: unknown) => Becomes
}

const rule = (to: string, from: ReadonlyArray<string>, becomes?: Rule["becomes"]): Rule => ({
  to: to.split("."),
  from: from.map((path) => path.split(".")),
  ...(becomes === undefined ? {} : { becomes })
})

const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const not = (value: unknown): Becomes =>
  typeof value === "boolean" ? { value: !value } : { why: "expected true or false" }

const listOf = (value: unknown): Becomes => ({ value: typeof value === "string" ? [value] : value })

/** Names by which Gemini CLI means one of several models. */
const aliases = /^(?:auto(?:-.*)?|pro|flash|flash-lite)$/

const model = (value: unknown): Becomes =>
  typeof value === "string" && aliases.test(value)
    ? { why: "is no model's own name; set model to one, or router to true" }
    : Predicate.isObject(value)
      ? { why: "expected the name of a model" }
      : { value }

const turns = (value: unknown): Becomes =>
  value === -1
    ? { why: "means no limit for a session, and here there is none" }
    : { value, note: "counts for one message here, not for the session" }

const most = (value: unknown): Becomes =>
  typeof value === "number" && value <= 0 ? { value: 0, note: "0: nothing is shortened" } : { value }

const truncation = (value: unknown): Becomes =>
  value === false ? { value: 0, note: "0: nothing is shortened" } : { why: "is so here, unless toolOutput.most is 0" }

const trusting = (value: unknown): Becomes =>
  value === true ? { value } : { why: "would trust every folder; set folderTrust yourself if you want that" }

/** Its default speaks gRPC, which nothing here does (spec 15). */
const endpoint = (value: unknown, settings: unknown): Becomes =>
  valueAt(settings, ["telemetry", "otlpProtocol"]) === "http"
    ? { value }
    : { why: "is spoken to over gRPC there; set telemetry.endpoint to the collector's address for HTTP" }

const investigator = (value: unknown, settings: unknown): Becomes =>
  valueAt(settings, ["agents", "overrides", "codebase_investigator"]) === undefined
    ? { value }
    : { why: "agents.overrides.codebase_investigator counts instead" }

const isKeeping = (settings: unknown): boolean =>
  valueAt(settings, ["general", "sessionRetention", "enabled"]) === false

const retained = (value: unknown, settings: unknown): Becomes =>
  isKeeping(settings)
    ? { why: "is switched off there" }
    : { value, note: "older sessions of this program are deleted then" }

const rules: ReadonlyArray<Rule> = [
  rule("model", ["model.name", "model"], model),
  rule("compressionThreshold", [
    "model.compressionThreshold",
    "model.chatCompression.contextPercentageThreshold",
    "chatCompression.contextPercentageThreshold"
  ]),
  rule("maxTurns", ["model.maxSessionTurns", "maxSessionTurns"], turns),
  rule("loopDetection", ["model.disableLoopDetection", "disableLoopDetection"], not),
  rule("memory.fileNames", ["context.fileName", "contextFileName"], listOf),
  rule("memory.importFormat", ["context.importFormat", "memoryImportFormat"]),
  rule("memory.maxDirs", ["context.discoveryMaxDirs", "memoryDiscoveryMaxDirs"]),
  rule("memory.boundaries", ["context.memoryBoundaryMarkers"]),
  rule("environment.tree", ["context.includeDirectoryTree", "includeDirectoryTree"]),
  rule("includeDirectories", ["context.includeDirectories", "includeDirectories"]),
  rule("loadMemoryFromIncludeDirectories", [
    "context.loadMemoryFromIncludeDirectories",
    "context.loadFromIncludeDirectories",
    "loadMemoryFromIncludeDirectories"
  ]),
  rule("files.respectGitIgnore", ["context.fileFiltering.respectGitIgnore", "fileFiltering.respectGitIgnore"]),
  rule("files.respectGeminiIgnore", ["context.fileFiltering.respectGeminiIgnore", "fileFiltering.respectGeminiIgnore"]),
  rule("toolOutput.most", ["tools.enableToolOutputTruncation", "enableToolOutputTruncation"], truncation),
  rule("toolOutput.most", ["tools.truncateToolOutputThreshold", "truncateToolOutputThreshold"], most),
  rule("toolOutput.lines", ["tools.truncateToolOutputLines", "truncateToolOutputLines"], (value) => ({
    value,
    note: "counts with the form head-tail-lines"
  })),
  rule("shellIdle", ["tools.shell.inactivityTimeout"]),
  rule("editCorrection", ["tools.disableLLMCorrection"], not),
  rule("masking.protect", ["experimental.toolOutputMasking.toolProtectionThreshold"]),
  rule("masking.least", ["experimental.toolOutputMasking.minPrunableTokensThreshold"]),
  rule("attempts.calls", ["general.maxAttempts", "maxAttempts"]),
  rule("sessionRetention.maxAge", ["general.sessionRetention.maxAge"], retained),
  rule("sessionRetention.maxCount", ["general.sessionRetention.maxCount"], retained),
  rule("hooksConfig.enabled", ["hooksConfig.enabled", "hooks.enabled", "tools.enableHooks"]),
  rule("hooksConfig.disabled", ["hooksConfig.disabled", "hooks.disabled"]),
  rule("agents.codebase_investigator", ["experimental.codebaseInvestigatorSettings.enabled"], investigator),
  rule("ide.enabled", ["ide.enabled", "ideMode"]),
  rule("telemetry.enabled", ["telemetry.enabled"]),
  rule("telemetry.endpoint", ["telemetry.otlpEndpoint"], endpoint),
  rule("telemetry.prompts", ["telemetry.logPrompts"]),
  rule("telemetry.file", ["telemetry.outfile"]),
  rule("folderTrust", ["security.folderTrust.enabled", "folderTrust"], trusting)
]

const unasked = "what may run unasked is not taken over; approve and allowed say it here"
const tools = "which tools there are cannot be set here"
const looks = "how Gemini CLI looks and behaves at the terminal means nothing here"

/** Why a key becomes nothing, by where it stands; the longest path counts. */
const reasons: Readonly<Record<string, string>> = {
  $schema: "is for editors only",
  "tools.allowed": unasked,
  "tools.autoAccept": unasked,
  "tools.approvalMode": unasked,
  "general.defaultApprovalMode": unasked,
  allowedTools: unasked,
  autoAccept: unasked,
  security: unasked,
  policyPaths: unasked,
  "security.auth": "how to sign in is not taken over; a key comes from GEMINI_API_KEY",
  selectedAuthType: "how to sign in is not taken over; a key comes from GEMINI_API_KEY",
  "tools.core": tools,
  "tools.exclude": tools,
  coreTools: tools,
  excludeTools: tools,
  "tools.sandbox": "commands run without a sandbox here",
  sandbox: "commands run without a sandbox here",
  mcp: "all servers of mcpServers are offered here; leave out those you do not want",
  allowMCPServers: "all servers of mcpServers are offered here; leave out those you do not want",
  excludeMCPServers: "all servers of mcpServers are offered here; leave out those you do not want",
  ui: looks,
  theme: looks,
  vimMode: looks,
  "general.vimMode": looks,
  "general.preferredEditor": looks,
  preferredEditor: looks,
  "general.sessionRetention": "is settled by maxAge and maxCount alone; a session of the last day always stays",
  "general.checkpointing": "files are not put back here; sessions are always kept",
  checkpointing: "files are not put back here; sessions are always kept",
  "general.retryFetchErrors": "calls that fail are made again in any case",
  "model.skipNextSpeakerCheck": "no model is asked here who speaks next",
  skipNextSpeakerCheck: "no model is asked here who speaks next",
  "hooksConfig.notifications": "that a hook runs is not announced here",
  "hooks.notifications": "that a hook runs is not announced here",
  "agents.overrides": "an agent can only be switched on or off here; the rest stands in its own file",
  skills: "all skills are offered here",
  "telemetry.otlpProtocol": "HTTP is what is spoken here",
  telemetry: "there is nothing like it in telemetry here",
  privacy: "nothing is ever sent about how this program is used",
  usageStatisticsEnabled: "nothing is ever sent about how this program is used",
  contextManagement: "long conversations are compressed in another way here",
  experimental: "is an experiment of Gemini CLI",
  extensions: "extensions are not taken over",
  mcpServerCommand: "name the server in mcpServers"
}

const elsewhere = "there is no such setting here"

const reasonFor = (path: JsonPath): string => {
  for (let length = path.length; length > 0; length -= 1) {
    const text = pathText(path.slice(0, length))
    if (Object.hasOwn(reasons, text)) return reasons[text] ?? elsewhere
  }
  return elsewhere
}

/** Whether a value is something to look into, and what is in it. */
const inside = (value: unknown): ReadonlyArray<readonly [string | number, unknown]> =>
  Predicate.isObject(value)
    ? Object.entries(value)
    : isList(value) && value.some((one) => Predicate.isObject(one))
      ? [...value.entries()]
      : []

/** The value at a path of any JSON document; undefined where there is none. */
const jsonAt = (document: unknown, path: JsonPath): unknown =>
  path.reduce<unknown>(
    (value, name) =>
      typeof name === "number"
        ? isList(value)
          ? value[name]
          : undefined
        : Predicate.isObject(value) && Object.hasOwn(value, name)
          ? value[name]
          : undefined,
    document
  )

/** Whether these settings say something at a path, or something else that would have to give way. */
const isSet = (settings: unknown, path: SettingsPath): boolean =>
  path.some((_, at) => {
    const value = valueAt(settings, path.slice(0, at + 1))
    return value !== undefined && (at === path.length - 1 || !Predicate.isObject(value))
  })

/** What has come together so far. */
interface Rows {
  readonly taken: Array<TakenKey>
  readonly kept: Array<KeptKey>
  readonly left: Array<LeftKey>
}

/** Puts a value where it belongs, unless something stands there or it does not fit. */
const put = (
  rows: Rows,
  ours: unknown,
  from: JsonPath,
  to: SettingsPath,
  { note, value }: { value: unknown; note?: string }
) => {
  const whole = withValue({}, to, value)
  const wrong = misfit(whole)
  if (isSet(ours, to)) {
    const same = Equal.equals(valueAt(ours, to), value)
    rows.kept.push({ from, to, why: same ? "is so here already" : "something else is set here, which stays" })
  } else if (wrong !== undefined) rows.left.push({ from, why: `expected ${wrong.expected}` })
  else if (unknownKeys(whole).length > 0) rows.left.push({ from, why: elsewhere })
  else rows.taken.push({ from, to, value, note })
}

/** Whether a path leads through another one. */
const isWithin = (path: JsonPath, above: JsonPath): boolean => above.every((name, at) => path[at] === name)

const byRules = (gemini: unknown, ours: unknown, rows: Rows) => {
  const said = new Map<string, JsonPath>()
  for (const { becomes = (value: unknown): Becomes => ({ value }), from: sources, to } of rules) {
    for (const from of sources) {
      const value = jsonAt(gemini, from)
      // `model` is an object in newer settings, and its name in older ones.
      if (
        value === undefined ||
        (Predicate.isObject(value) && sources.some((each) => each !== from && isWithin(each, from)))
      )
        continue
      const before = said.get(pathText(to))
      if (before !== undefined) {
        rows.left.push({ from, why: `${pathText(before)} says it already` })
        continue
      }
      const found = becomes(value, gemini)
      if ("why" in found) rows.left.push({ from, why: found.why })
      else {
        const count = rows.left.length
        put(rows, ours, from, to, found)
        if (rows.left.length === count) said.set(pathText(to), from)
      }
    }
  }
}

/** Each tool of `summarizeToolOutput`, with its budget. */
const summaries = (gemini: unknown, ours: unknown, rows: Rows) => {
  const places: ReadonlyArray<JsonPath> = [["model", "summarizeToolOutput"], ["summarizeToolOutput"]]
  const seen = new Set<string>()
  for (const place of places) {
    const value = jsonAt(gemini, place)
    for (const [tool, one] of Predicate.isObject(value) ? Object.entries(value) : []) {
      const from = [...place, tool]
      if (seen.has(tool)) rows.left.push({ from, why: `model.summarizeToolOutput.${tool} says it already` })
      else put(rows, ours, from, ["summarizeToolOutput", tool], { value: one })
      seen.add(tool)
    }
  }
}

/** Whether each agent is offered. */
const agents = (gemini: unknown, ours: unknown, rows: Rows) => {
  const overrides = jsonAt(gemini, ["agents", "overrides"])
  for (const [name, one] of Predicate.isObject(overrides) ? Object.entries(overrides) : []) {
    if (!Predicate.isObject(one)) continue
    for (const key of ["enabled", "disabled"]) {
      if (!Object.hasOwn(one, key)) continue
      const from = ["agents", "overrides", name, key]
      const value = key === "disabled" && typeof one[key] === "boolean" ? !one[key] : one[key]
      if (key === "disabled" && Object.hasOwn(one, "enabled")) rows.left.push({ from, why: "enabled says it already" })
      else put(rows, ours, from, ["agents", name], { value })
    }
  }
}

/** What servers have that means nothing here. */
const serverReasons: Readonly<Record<string, string>> = {
  trust: "its tools ask like all others",
  includeTools: "all its tools are offered here, and ask before they run",
  excludeTools: "all its tools are offered here, and ask before they run",
  description: "servers are not described here"
}

/** Keys of a server that we have too; its address comes beside them. */
const serverKeys: ReadonlyArray<string> = ["command", "args", "env", "cwd", "timeout", "headers"]

const namesVariable = (value: unknown): boolean =>
  typeof value === "string"
    ? /\$(?:\{|[A-Za-z_])/.test(value)
    : inside(value).some(([, one]) => namesVariable(one)) || (isList(value) && value.some(namesVariable))

const servers = (gemini: unknown, ours: unknown, rows: Rows) => {
  const all = jsonAt(gemini, ["mcpServers"])
  for (const [name, server] of Predicate.isObject(all) ? Object.entries(all) : []) {
    const from = ["mcpServers", name]
    if (!Predicate.isObject(server)) {
      rows.left.push({ from, why: "is no server" })
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
      rows.left.push({ from, why: "is reached by server-sent events, which this program does not speak" })
    } else if (namesVariable(plain)) {
      rows.left.push({ from, why: "names variables outside of env and headers, where they are not filled in here" })
    } else if (/\$\{\w+:-/.test(JSON.stringify(value))) {
      rows.left.push({ from, why: "names variables with a value for when they are not set, which means nothing here" })
    } else {
      const note = httpUrl === undefined && url !== undefined && type === undefined
      put(
        rows,
        ours,
        from,
        from,
        note ? { value, note: "is spoken to over HTTP, not by server-sent events" } : { value }
      )
    }
    if (rows.left.length > count) continue
    for (const key of Object.keys(server)) {
      const isUsed =
        Object.hasOwn(own, key) || key === "type" || (isHttp && key === (httpUrl === undefined ? "url" : "httpUrl"))
      if (!isUsed) {
        rows.left.push({ from: [...from, key], why: serverReasons[key] ?? "such a server has nothing like it here" })
      }
    }
  }
}

/** What is wrong with the hooks of one event, without where. */
const wrongWith = (event: string, groups: unknown): string | undefined =>
  hooksOf({ [event]: groups }, "home").warnings[0]?.replace(/^.*? was left out: /, "")

/** A hook without what is wrong with it; undefined: it cannot be used. */
const hookOf = (event: string, from: JsonPath, hook: unknown, rows: Rows): unknown => {
  const why = Predicate.isObject(hook)
    ? wrongWith(event, [{ hooks: [{ type: hook["type"], command: hook["command"] }] }])
    : "it is no object"
  if (!Predicate.isObject(hook) || why !== undefined) {
    rows.left.push({ from, why: why ?? "it is no hook" })
    return undefined
  }
  const { command, type } = hook
  return Object.fromEntries(
    Object.entries(hook).filter(([key, value]) => {
      const isWrong = wrongWith(event, [{ hooks: [{ type, command, [key]: value }] }]) !== undefined
      if (isWrong) rows.left.push({ from: [...from, key], why: "is of the wrong kind" })
      return !isWrong
    })
  )
}

/** Settings of the whole that older files have beside the events; the rules know them. */
const besideEvents: ReadonlyArray<string> = ["enabled", "disabled", "notifications"]

const hooks = (gemini: unknown, ours: unknown, rows: Rows) => {
  const all = jsonAt(gemini, ["hooks"])
  for (const [event, groups] of Predicate.isObject(all) ? Object.entries(all) : []) {
    if (besideEvents.includes(event)) continue
    const place = ["hooks", event]
    const wrongEvent = wrongWith(event, [])
    if (wrongEvent !== undefined || !isList(groups)) {
      rows.left.push({ from: place, why: isList(groups) ? "there is no such event" : "expected a list" })
      continue
    }
    const value = groups.flatMap((group, at): ReadonlyArray<unknown> => {
      const from = [...place, at]
      const within = Predicate.isObject(group) ? group["hooks"] : undefined
      if (!Predicate.isObject(group) || !isList(within)) {
        rows.left.push({ from, why: "it has no list of hooks" })
        return []
      }
      const { sequential, ...others } = group
      const why = wrongWith(event, [{ ...others, hooks: [] }])
      if (why !== undefined) {
        rows.left.push({ from, why })
        return []
      }
      const isWrong = sequential !== undefined && typeof sequential !== "boolean"
      if (isWrong) rows.left.push({ from: [...from, "sequential"], why: "expected true or false" })
      const usable = within.flatMap((hook, index) => {
        const one = hookOf(event, [...from, "hooks", index], hook, rows)
        return one === undefined ? [] : [one]
      })
      if (usable.length === 0) rows.left.push({ from, why: "it has no hook that could be used" })
      return usable.length === 0 ? [] : [{ ...(isWrong ? others : group), hooks: usable }]
    })
    if (value.length === 0) rows.left.push({ from: place, why: "it has no hook that could be used" })
    else put(rows, ours, place, place, { value })
  }
}

const key = (path: JsonPath): string => JSON.stringify(path)

/** Rows for all that no row speaks for yet: one for a part of which nothing else is said. */
const rest = (gemini: unknown, rows: Rows) => {
  const spoken = [...rows.taken, ...rows.kept, ...rows.left].map(({ from }) => from)
  const said = new Set(spoken.map(key))
  const above = new Set(spoken.flatMap((path) => path.map((_, at) => key(path.slice(0, at)))))
  const known = Object.keys(reasons)
  const walk = (value: unknown, path: JsonPath): void => {
    if (said.has(key(path))) return
    const parts = inside(value)
    const text = pathText(path)
    const isParted = above.has(key(path)) || known.some((reason) => reason.startsWith(`${text}.`))
    if (path.length === 0 || (parts.length > 0 && isParted)) {
      for (const [name, one] of parts) walk(one, [...path, name])
    } else rows.left.push({ from: path, why: reasonFor(path) })
  }
  walk(gemini, [])
}

/**
 * What the settings of Gemini CLI become beside those that are set here already. No key is lost in silence: each is in exactly
 * one of the three lists, by its own row or by the nearest one above it.
 */
export const translated = (
  gemini: Readonly<Record<string, unknown>>,
  ours: Readonly<Record<string, unknown>>
): Translation => {
  const rows: Rows = { taken: [], kept: [], left: [] }
  byRules(gemini, ours, rows)
  summaries(gemini, ours, rows)
  agents(gemini, ours, rows)
  servers(gemini, ours, rows)
  hooks(gemini, ours, rows)
  rest(gemini, rows)
  return rows
}
