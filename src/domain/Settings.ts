import { Result, Schema } from "effect"
import { ApprovalMode } from "./Approval.ts"
import { McpServersSettings } from "./McpServer.ts"
import { retentionOf } from "./SessionRetention.ts"
import { OutputForm } from "./ToolOutput.ts"

/** What a person may set in a settings file (CLI contract, Environment), and how such a file is read. */

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** How long sessions are kept, and how many: see SessionRetention.ts for what counts. */
const Retention = Schema.Struct({
  maxAge: Schema.optionalKey(Schema.String),
  maxCount: Schema.optionalKey(Schema.Finite)
})

const Positive = Schema.Int.check(Schema.isGreaterThan(0))

/** How much of a tool's result enters the conversation: from which size on it is shortened (0: never), and how (`OutputBound`). */
const ToolOutputSettings = Schema.Struct({
  most: Schema.optionalKey(Schema.Natural),
  form: Schema.optionalKey(OutputForm),
  lines: Schema.optionalKey(Positive)
})

/** What is masked of old tool outputs (spec 5.4), in tokens: the newest are protected, the rest has to be worth it. */
const Masking = Schema.Struct({
  protect: Schema.optionalKey(Schema.Natural),
  least: Schema.optionalKey(Schema.Natural)
})

/** The models a router picks from: for what is easy, and for what is hard. */
const Routed = Schema.Struct({ flash: Schema.NonEmptyString, pro: Schema.NonEmptyString })

/** Agents that are offered, by name; what is absent is as its definition says. */
const AgentSwitches = Schema.Record(Schema.String, Schema.Boolean)

/** What stands in a settings file. What is absent was left to somebody else. */
export const SettingsFile = Schema.Struct({
  /** The model of conversations that begin. */
  model: Schema.optionalKey(Schema.NonEmptyString),
  /** Share of the window that triggers a compression; 0 counts as not set, 1 leaves it to the guard (spec 15). */
  compressionThreshold: Schema.optionalKey(Share),
  /** The most that a message may take of what is left (spec 4: 1; seed 002: 0.95). */
  overflowFactor: Schema.optionalKey(Share.check(Schema.isGreaterThan(0))),
  /** The model's window in tokens, where it is not the known one. */
  window: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  /** Which sessions are deleted by themselves. Absent: none. */
  sessionRetention: Schema.optionalKey(Retention),
  /** Whether the small model gives sessions a title. */
  titles: Schema.optionalKey(Schema.Boolean),
  /** Which calls of tools run without asking. */
  approve: Schema.optionalKey(ApprovalMode),
  /** What was allowed for always: the grants of questions, such as `edit` or `shell:git`. */
  allowed: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** Requests to the model that one message may lead to (spec 9: 100). */
  maxTurns: Schema.optionalKey(Positive),
  /** How tool results are bounded when they enter the conversation. */
  toolOutput: Schema.optionalKey(ToolOutputSettings),
  /** Tools whose results a model summarises before they enter, each with its budget of tokens (spec 5.3). Absent: none. */
  summarizeToolOutput: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Struct({ tokenBudget: Schema.optionalKey(Positive) }))
  ),
  /** When old tool outputs are masked; false: never. */
  masking: Schema.optionalKey(Schema.Union([Schema.Literal(false), Masking])),
  /** Whether it is noticed that a model goes round in circles. */
  loopDetection: Schema.optionalKey(Schema.Boolean),
  /** Whether a classifier picks the model of each message, and of which two (seed 002). */
  router: Schema.optionalKey(Schema.Union([Schema.Boolean, Routed])),
  /** Whether tools may reach loopback, link-local and private addresses. */
  allowPrivateNetwork: Schema.optionalKey(Schema.Boolean),
  /** Names of variables that commands see although they look like secrets. */
  passEnvironment: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** Servers of tools, by name. */
  mcpServers: Schema.optionalKey(McpServersSettings),
  /** Whether a model may correct an edit that found nothing to replace (spec 14). */
  editCorrection: Schema.optionalKey(Schema.Boolean),
  /** Agents that are offered or not. */
  agents: Schema.optionalKey(AgentSwitches),
  /** Whether a model may start agents that work beside it, and talk with them (pi-openclaw B12). */
  backgroundAgents: Schema.optionalKey(Schema.Boolean)
})
export type SettingsFile = typeof SettingsFile.Type

type Key = keyof typeof SettingsFile.fields

const expected: Readonly<Record<Key, string>> = {
  model: "the name of a model, such as gemini-2.5-pro",
  compressionThreshold: "a share from 0 to 1, such as 0.5",
  overflowFactor: "a share above 0, at most 1",
  window: "a whole number of tokens, such as 200000",
  sessionRetention: `an object such as {"maxAge": "30d", "maxCount": 100}`,
  titles: "true or false",
  approve: `"none", "edits" or "all"`,
  allowed: `a list such as ["edit", "shell:git"]`,
  maxTurns: "a whole number above 0, such as 100",
  toolOutput: `an object such as {"most": 40000, "form": "last-lines"}; the forms are ${OutputForm.literals.join(", ")}`,
  summarizeToolOutput: `an object such as {"run_shell_command": {"tokenBudget": 2000}}`,
  masking: `false, or an object such as {"protect": 50000, "least": 30000}`,
  loopDetection: "true or false",
  router: `true, false, or two models such as {"flash": "gemini-2.5-flash", "pro": "gemini-2.5-pro"}`,
  allowPrivateNetwork: "true or false",
  passEnvironment: `a list of names such as ["GITHUB_TOKEN"]`,
  mcpServers: `an object of servers such as {"files": {"command": "files-server", "args": []}} or {"docs": {"url": "https://example.com/mcp"}}`,
  editCorrection: "true or false",
  agents: `an object such as {"browser_agent": true}`,
  backgroundAgents: "true or false"
}

const isKey = (name: string): name is Key => Object.hasOwn(SettingsFile.fields, name)

/** Why a file of settings cannot be used. */
export interface SettingsProblem {
  /** Undefined when it is about the whole file. */
  readonly key: string | undefined
  readonly message: string
}

/** What a file of settings says. */
export interface ReadSettings {
  readonly settings: SettingsFile
  /** Keys that mean nothing here, as they would be written: `sessionRetention.maxage`. */
  readonly unknown: ReadonlyArray<string>
}

const blank = (text: string): string => text.replace(/[^\n]/g, " ")

/**
 * JSON without its comments and without commas before a closing bracket (spec 15: settings are JSON with comments). What
 * is taken out leaves blanks, so that places in the text stay what they were. What stands in strings is left alone.
 */
export const strictJson = (text: string): string =>
  text
    .replace(/^\uFEFF/, " ")
    .replace(/"(?:[^"\\]|\\[^])*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (found) => (found.startsWith('"') ? found : blank(found)))
    .replace(/"(?:[^"\\]|\\[^])*"|,(?=\s*[}\]])/g, (found) => (found === "," ? " " : found))

const decodeFile = Schema.decodeUnknownResult(SettingsFile)
const isObject = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

const wrong = (key: string | undefined, message: string): Result.Result<never, SettingsProblem> =>
  Result.fail({ key, message })

const unknownIn = (value: unknown, known: object, prefix: string): ReadonlyArray<string> =>
  isObject(value) ? Object.keys(value).flatMap((name) => (Object.hasOwn(known, name) ? [] : [`${prefix}${name}`])) : []

/** Reads the text of a settings file. One wrong value is a problem that names its key. */
export const parseSettings = (text: string): Result.Result<ReadSettings, SettingsProblem> => {
  const json = Result.try({
    try: (): unknown => JSON.parse(strictJson(text)),
    catch: (error) => (error instanceof Error ? error.message : String(error))
  })
  if (Result.isFailure(json)) return wrong(undefined, `expected JSON; ${json.failure}`)
  const value = json.success
  if (!isObject(value)) return wrong(undefined, "expected an object of settings")
  for (const [name, one] of Object.entries(value)) {
    if (isKey(name) && Result.isFailure(decodeFile({ [name]: one }))) return wrong(name, `expected ${expected[name]}`)
  }
  const settings = decodeFile(value)
  if (Result.isFailure(settings)) return wrong(undefined, "expected an object of settings")
  const retention = retentionOf(settings.success.sessionRetention ?? {})
  if (Result.isFailure(retention)) return wrong("sessionRetention", retention.failure)
  return Result.succeed({
    settings: settings.success,
    unknown: [
      ...unknownIn(value, SettingsFile.fields, ""),
      ...unknownIn(value["sessionRetention"], Retention.fields, "sessionRetention.")
    ]
  })
}

/**
 * Settings that only the home folder's file has a say in: a folder that somebody else made must neither delete a person's
 * conversations nor decide what may be done on their machine.
 */
export const homeOnly = [
  "sessionRetention",
  "approve",
  "allowed",
  "allowPrivateNetwork",
  "passEnvironment",
  "mcpServers"
] as const satisfies ReadonlyArray<Key>

const isHomeOnly = (name: string): boolean => homeOnly.some((key) => key === name)

/** What holds where both the home folder and the working folder set something: the working folder wins, where it may. */
export const mergeSettings = (home: SettingsFile, workspace: SettingsFile): SettingsFile => {
  const {
    allowPrivateNetwork: _network,
    allowed: _allowed,
    approve: _approve,
    mcpServers: _servers,
    passEnvironment: _environment,
    sessionRetention: _retention,
    ...rest
  } = workspace
  return { ...home, ...rest }
}

/** What of a working folder's settings is not heeded. */
export const notHeeded = (workspace: SettingsFile): ReadonlyArray<string> => Object.keys(workspace).filter(isHomeOnly)

/** Where the value of a key of the outermost object ends, and where that object's last value does; in strict JSON. */
const placesIn = (json: string, wanted: string) => {
  let depth = 0
  let key = ""
  /** Where the last thing that is no white space ended. */
  let last = 0
  let list: { readonly from: number; to: number } | undefined
  let object = 0
  for (const { 0: token, index } of json.matchAll(/"(?:[^"\\]|\\[^])*"|[^\s]/g)) {
    const end = index + token.length
    if (token === "}" || token === "]") {
      if (depth === 1) object = last
      if (depth === 2 && list?.to === -1) list.to = last
      depth -= 1
    } else if (token === "{" || token === "[") {
      depth += 1
      if (depth === 2 && token === "[" && key === wanted) list = { from: end, to: -1 }
      key = ""
    } else if (depth === 1 && token.startsWith('"')) key = JSON.parse(token)
    else if (depth === 1 && token !== ":") key = ""
    last = end
  }
  return { list, object }
}

/**
 * The text of a settings file in which these grants are allowed too; comments, order and white space stay as they are. What
 * is wrong with the file is a problem, and nothing is changed.
 */
export const withAllowed = (text: string, grants: ReadonlyArray<string>): Result.Result<string, SettingsProblem> => {
  const given = text.trim() === "" ? "{}\n" : text
  const read = parseSettings(given)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const known = read.success.settings.allowed ?? []
  const added = [...new Set(grants)].filter((grant) => !known.includes(grant)).map((grant) => JSON.stringify(grant))
  if (added.length === 0) return Result.succeed(given)
  const { list, object } = placesIn(strictJson(given), "allowed")
  const isBlank = Object.keys(read.success.settings).length + read.success.unknown.length === 0
  const at = list?.to ?? object
  const rest = given.slice(at)
  const insert =
    list === undefined
      ? `${isBlank ? "" : ","}\n  "allowed": [${added.join(", ")}]${/^[^\S\n]*\}/.test(rest) ? "\n" : ""}`
      : `${list.to === list.from ? "" : ", "}${added.join(", ")}`
  const next = `${given.slice(0, at)}${insert}${rest}`
  const again = parseSettings(next)
  return Result.isSuccess(again) && grants.every((grant) => again.success.settings.allowed?.includes(grant))
    ? Result.succeed(next)
    : Result.fail({ key: "allowed", message: `add ${added.join(", ")} to the list yourself` })
}
