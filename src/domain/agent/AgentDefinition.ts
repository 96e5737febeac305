/**
 * The definition of an agent, and the parser of its file: Markdown with YAML front matter, as in Gemini CLI.
 *
 * One file: the shape of a definition and the parser that reports its errors change together.
 */

import { Predicate, Result, Schema, SchemaAST } from "effect"
import { parse } from "effect/encoding/Yaml"
import { firstUnits } from "../text/Bytes.ts"
import { errorText } from "../text/ErrorText.ts"
import { fromJson, parseJson } from "../text/JsonText.ts"
import { oneLine } from "../text/OneLine.ts"
import { McpServersSettings } from "../tools/McpServer.ts"

/** A structured result of an agent. */
export interface AgentOutput {
  /** The name of the one argument of `complete_task` that holds the result. */
  readonly name: string
  /** For the model: what the result contains. */
  readonly description: string
  readonly schema: Schema.Codec<unknown, unknown>
}

/** An agent whose model requests are made from this machine. */
export interface LocalAgent {
  readonly kind: "local"
  readonly name: string
  readonly displayName: string | undefined
  /** What the agent is good for. Models choose an agent by this text. */
  readonly description: string
  /** The system prompt; `${name}` stands for an input. */
  readonly prompt: string
  /** The first message, made from the inputs. Undefined: the task as given. */
  readonly query: string | undefined
  /** Names and wildcards of the tools it may use. Undefined: all. */
  readonly tools: ReadonlyArray<string> | undefined
  /** The agent's own MCP servers by name, in the format of the settings. */
  readonly mcpServers: McpServersSettings
  /** The name of a model, or `inherit` for the caller's model. */
  readonly model: string
  readonly temperature: number
  readonly topP: number
  readonly maxTurns: number
  readonly timeoutMinutes: number
  /** Share of the window from which its conversation is compressed. Undefined: that of the settings. */
  readonly compressionThreshold?: number | undefined
  /** Whether it runs in this process or in one of its own. */
  readonly runner: "inside" | "process"
  /** The arguments of the agent by name. */
  readonly inputs: Readonly<Record<string, Schema.Codec<unknown, unknown>>>
  /** The structured result. Undefined: a text. */
  readonly output: AgentOutput | undefined
}

/** The authentication of requests to a remote agent. Values may name environment variables: `$NAME`. */
export const AgentAuth = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("apiKey"),
    key: Schema.NonEmptyString,
    /** The header that carries the key. */
    name: Schema.optionalKey(Schema.NonEmptyString)
  }),
  Schema.Struct({
    type: Schema.Literal("http"),
    scheme: Schema.NonEmptyString,
    token: Schema.optionalKey(Schema.NonEmptyString),
    username: Schema.optionalKey(Schema.NonEmptyString),
    password: Schema.optionalKey(Schema.NonEmptyString),
    value: Schema.optionalKey(Schema.NonEmptyString)
  }),
  Schema.Struct({
    type: Schema.Literal("google-credentials"),
    scopes: Schema.optionalKey(Schema.Array(Schema.NonEmptyString))
  }),
  Schema.Struct({
    type: Schema.Literal("oauth"),
    client_id: Schema.optionalKey(Schema.NonEmptyString),
    client_secret: Schema.optionalKey(Schema.NonEmptyString),
    scopes: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
    authorization_url: Schema.optionalKey(Schema.NonEmptyString),
    token_url: Schema.optionalKey(Schema.NonEmptyString)
  })
])
export type AgentAuth = typeof AgentAuth.Type

/** A remote agent, reached over A2A. */
export interface RemoteAgent {
  readonly kind: "remote"
  readonly name: string
  readonly displayName: string | undefined
  /** Undefined: the description of its card is used. */
  readonly description: string | undefined
  readonly auth: AgentAuth | undefined
  /** The URL of its card, or the card itself as JSON text. */
  readonly card: { readonly url: string } | { readonly json: string }
}

/** The definition of a local or remote agent. */
export type AgentDefinition = LocalAgent | RemoteAgent

const CardPlaces = fromJson(
  Schema.Struct({
    url: Schema.optionalKey(Schema.Unknown),
    supportedInterfaces: Schema.optionalKey(Schema.Unknown),
    additionalInterfaces: Schema.optionalKey(Schema.Unknown)
  })
)
const isPlace = Schema.is(Schema.Struct({ url: Schema.String }))

const hostOf = (url: string): string => URL.parse(url)?.host || "an invalid address"

/**
 * Where the agent's tasks are sent, for the approval question: the host of its card, which is the only host contacted, or the hosts in a card given
 * as text (protocol 1.0 and 0.3). Undefined: tasks stay on this machine.
 */
export const remotePlace = (definition: AgentDefinition): string | undefined => {
  if (definition.kind === "local") return undefined
  const { card } = definition
  if ("url" in card) return hostOf(card.url)
  const read = Schema.decodeResult(CardPlaces)(card.json)
  if (Result.isFailure(read)) return "an invalid address"
  const { additionalInterfaces, supportedInterfaces } = read.success
  const all = [read.success, supportedInterfaces, additionalInterfaces].flat().filter((each) => isPlace(each))
  const hosts = new Set(all.map(({ url }) => hostOf(url)))
  return hosts.size === 0 ? "an invalid address" : [...hosts].join(", ")
}

/** The defaults of a local agent, as in Gemini CLI. */
export const localDefaults = {
  model: "inherit",
  temperature: 1,
  topP: 0.95,
  maxTurns: 30,
  timeoutMinutes: 10,
  runner: "inside",
  displayName: undefined,
  query: undefined,
  tools: undefined,
  mcpServers: {},
  inputs: {
    query: Schema.NonEmptyString.annotate({ description: "The task, with all that has to be known to do it" })
  },
  output: undefined
} as const

/** A field of the front matter. `expected` completes the sentence "expected …". */
const field = <S extends Schema.Top>(schema: S, expected: string) => schema.annotate({ expected })

const optional = <S extends Schema.Top>(schema: S, expected: string) =>
  Schema.optionalKey<S["Rebuild"]>(schema.annotate({ expected }))

const Slug = Schema.String.check(Schema.isPattern(/^[a-z0-9_-]+$/))
const toolName = /^(?:\*|mcp_\*|mcp_[A-Za-z0-9_.-]+_\*|[A-Za-z_][A-Za-z0-9_.:-]*)$/
const Positive = Schema.Int.check(Schema.isGreaterThan(0))
const isUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === "http:" || url.protocol === "https:")
}

const isJsonObject = (text: string): boolean => {
  const value = parseJson(text)
  return Result.isSuccess(value) && Predicate.isObject(value.success)
}

const shared = {
  name: field(Slug, "lower-case letters, digits, hyphens and underscores"),
  display_name: optional(Schema.NonEmptyString, "a text")
}

const Local = Schema.Struct({
  ...shared,
  kind: optional(Schema.Literal("local"), "local or remote"),
  description: field(
    Schema.String.check(Schema.makeFilter((text) => text.trim() !== "")),
    "a text that says what the agent is good for"
  ),
  tools: optional(
    Schema.Array(Schema.String.check(Schema.isPattern(toolName))),
    `a list of tool names, each a name, "*", "mcp_*" or "mcp_<server>_*"`
  ),
  mcp_servers: optional(McpServersSettings, "servers by name, each with a command or a url"),
  model: optional(Schema.NonEmptyString, "the name of a model, or inherit"),
  temperature: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })), "a number from 0 to 2"),
  top_p: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })), "a number from 0 to 1"),
  max_turns: optional(Positive, "a whole number above 0"),
  timeout_mins: optional(Positive, "a whole number of minutes above 0"),
  compression_threshold: optional(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    "a number from 0 to 1"
  ),
  runner: optional(Schema.Literal("process"), "process, or nothing")
})

const Remote = Schema.Struct({
  ...shared,
  kind: optional(Schema.Literal("remote"), "remote"),
  description: optional(Schema.NonEmptyString, "a text"),
  auth: optional(
    AgentAuth,
    "an object whose type is apiKey (with key), http (with scheme), google-credentials or oauth"
  ),
  agent_card_url: optional(
    Schema.String.check(Schema.makeFilter(isUrl)),
    "an address that begins with http:// or https://"
  ),
  agent_card_json: optional(
    Schema.String.check(Schema.makeFilter(isJsonObject)),
    "the card as the text of a JSON object"
  )
})

const decodeLocal = Schema.decodeUnknownResult(Local)
const decodeRemote = Schema.decodeUnknownResult(Remote)

/** The invalid fields of the front matter, each with what was expected. */
const wrongIn = (
  value: Readonly<Record<string, unknown>>,
  { fields }: { readonly fields: Readonly<Record<string, Schema.Codec<unknown, unknown>>> }
): ReadonlyArray<string> => {
  const unknown = Object.keys(value).filter((key) => !Object.hasOwn(fields, key))
  const wrong = Object.entries(fields).flatMap(([key, schema]) => {
    const expected = String(SchemaAST.resolve(schema.ast)?.["expected"])
    const given = Object.hasOwn(value, key) ? { [key]: value[key] } : {}
    return Result.isSuccess(Schema.decodeResult(Schema.Struct({ [key]: schema }))(given))
      ? []
      : [`${key}: expected ${expected}`]
  })
  const names = Object.keys(fields).join(", ")
  return [...wrong, ...unknown.map((key) => `${key}: there is no such field; expected one of ${names}`)]
}

/** Characters of a description. Every model request carries the descriptions of all agents. */
const maxDescriptionChars = 1_000

/** A description as models receive it: one line, cut to the limit. */
const clipped = (description: string): string => {
  const line = oneLine(description)
  return line.length <= maxDescriptionChars ? line : `${firstUnits(line, maxDescriptionChars - 1)}…`
}

const remoteOf = (value: unknown): Result.Result<RemoteAgent, string> => {
  if (!Predicate.isObject(value)) return Result.fail("expected an object with a name and an agent card")
  const wrong = wrongIn(value, Remote)
  const read = decodeRemote(value)
  if (wrong.length > 0 || Result.isFailure(read)) return Result.fail(wrong.join("; "))
  const {
    agent_card_json: json,
    agent_card_url: url,
    auth,
    description,
    display_name: displayName,
    name
  } = read.success
  const card =
    url !== undefined && json === undefined ? { url } : json !== undefined && url === undefined ? { json } : undefined
  if (card === undefined) return Result.fail("agent_card_url: expected either this or agent_card_json")
  const clip = clipped(description ?? "")
  return Result.succeed({
    kind: "remote",
    name,
    displayName,
    description: clip === "" ? undefined : clip,
    auth,
    card
  })
}

const localOf = (value: Readonly<Record<string, unknown>>, body: string): Result.Result<LocalAgent, string> => {
  const wrong = wrongIn(value, Local)
  const read = decodeLocal(value)
  if (wrong.length > 0 || Result.isFailure(read)) return Result.fail(wrong.join("; "))
  if (body === "") return Result.fail("the text below the front matter: expected the agent's instructions")
  const front = read.success
  return Result.succeed({
    kind: "local",
    name: front.name,
    displayName: front.display_name,
    description: clipped(front.description),
    prompt: body,
    query: undefined,
    tools: front.tools,
    mcpServers: front.mcp_servers ?? localDefaults.mcpServers,
    model: front.model ?? localDefaults.model,
    temperature: front.temperature ?? localDefaults.temperature,
    topP: front.top_p ?? localDefaults.topP,
    maxTurns: front.max_turns ?? localDefaults.maxTurns,
    timeoutMinutes: front.timeout_mins ?? localDefaults.timeoutMinutes,
    ...(front.compression_threshold === undefined ? {} : { compressionThreshold: front.compression_threshold }),
    runner: front.runner ?? localDefaults.runner,
    inputs: localDefaults.inputs,
    output: undefined
  })
}

const fences = /^---[ \t]*\n([^]*?\n)?---[ \t]*(?:\n|$)/

/** What a Markdown file with YAML front matter holds. */
interface FrontMatter {
  readonly fields: unknown
  /** The text below, without blank lines around it. */
  readonly body: string
}

/** Parses a Markdown file with YAML front matter. `content` says what stands in it, should it be missing. */
export const frontMatter = (file: string, content: string): Result.Result<FrontMatter, string> => {
  const text = file.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n")
  const [whole, front = ""] = fences.exec(text) ?? []
  if (whole === undefined) return Result.fail(`expected front matter: a line ---, ${content}, a line ---`)
  return Result.try({
    // One line is added in front so that line numbers match the file.
    try: () => ({ fields: parse(`\n${front}`), body: text.slice(whole.length).trim() }),
    catch: (error) => `front matter: expected YAML; ${errorText(error)}`
  })
}

/**
 * Parses the agents that a file defines: one, or several remote agents if its front matter is a list. The failure says in one line what was expected.
 *
 * **Example** (Reading the definition of an agent)
 *
 * ```ts
 * import { Result } from "effect"
 * import { Agent } from "palimpsest"
 *
 * const file =
 *   "---\nname: reviewer\ndescription: Reviews a change\ntools: [read_file]\n---\nRead the change, and say what is wrong."
 * const read = Agent.parseDefinitions(file)
 * console.log(Result.isSuccess(read) && read.success.map(({ name }) => name)) // => [ 'reviewer' ]
 * ```
 */
export const parseDefinitions = (file: string): Result.Result<ReadonlyArray<AgentDefinition>, string> => {
  const read = frontMatter(file, "fields in YAML")
  if (Result.isFailure(read)) {
    const hint = /alias '\*'/.test(read.failure) ? `; write "*" with quotes` : ""
    return Result.fail(`${read.failure}${hint}`)
  }
  const { body, fields: value } = read.success
  if (Array.isArray(value)) return listed(value)
  if (!Predicate.isObject(value)) return Result.fail("front matter: expected fields, at least name and description")
  return value["kind"] === "remote"
    ? Result.map(remoteOf(value), (agent) => [agent])
    : Result.map(localOf(value, body), (agent) => [agent])
}

/** A list defines remote agents only, because the body cannot belong to several. */
const listed = (values: ReadonlyArray<unknown>): Result.Result<ReadonlyArray<AgentDefinition>, string> => {
  const agents: Array<RemoteAgent> = []
  for (const [index, value] of values.entries()) {
    const read = remoteOf(value)
    if (Result.isFailure(read)) return Result.fail(`agent ${index + 1} of the list: ${read.failure}`)
    agents.push(read.success)
  }
  return agents.length === 0 ? Result.fail("front matter: expected at least one agent") : Result.succeed(agents)
}

/** Whether a file or an agent of this name is ignored. Names that start with `_` are drafts or texts that others include. */
export const isIgnored = (name: string): boolean => name.startsWith("_")

const placeholder = /\$\{(\w+)\}/g

const written = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** Fills the inputs into a template. The failure lists the missing inputs. */
export const fillTemplate = (
  text: string,
  inputs: Readonly<Record<string, unknown>>
): Result.Result<string, ReadonlyArray<string>> => {
  const missing = [...new Set([...text.matchAll(placeholder)].map(([, key = ""]) => key))].filter(
    (key) => !Object.hasOwn(inputs, key) || inputs[key] === undefined
  )
  // One pass: the value of an input is never expanded itself.
  return missing.length > 0
    ? Result.fail(missing)
    : Result.succeed(text.replace(placeholder, (_, key: string) => written(inputs[key])))
}

/** Parses text that the user typed into the inputs of an agent. An agent with several inputs takes the text of a JSON object; else the failure says so. */
export const inputsFromPrompt = (
  { inputs, name }: LocalAgent,
  prompt: string
): Result.Result<Readonly<Record<string, unknown>>, string> => {
  const names = Object.keys(inputs)
  const [only] = names
  if (only !== undefined && names.length === 1) return Result.succeed({ [only]: prompt })
  const value = parseJson(prompt)
  return Result.isSuccess(value) && Predicate.isObject(value.success)
    ? Result.succeed(value.success)
    : Result.fail(`${name} takes ${names.join(", ")}: give them as a JSON object`)
}

const matchesTool = (pattern: string, name: string): boolean =>
  pattern === "*" || pattern === name || (/^mcp_(?:.+_)?\*$/.test(pattern) && name.startsWith(pattern.slice(0, -1)))

/** The tools that an agent may use: those that match its patterns. Undefined: all. A pattern without a match is ignored. */
export const selectTools = <T extends { readonly name: string; readonly aliases: ReadonlyArray<string> }>(
  patterns: ReadonlyArray<string> | undefined,
  tools: ReadonlyArray<T>
): ReadonlyArray<T> =>
  patterns === undefined
    ? tools
    : tools.filter(({ aliases, name }) =>
        [name, ...aliases].some((one) => patterns.some((each) => matchesTool(each, one)))
      )
