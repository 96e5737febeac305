/**
 * The settings schema. Each field carries its description, its default and what is expected, and nothing else repeats
 * them. A file may omit any field (`SettingsFile`); the program works with all of them (`Settings`).
 *
 * `description` and `expected` are annotations; `expected` completes the sentence "expected …" in error messages.
 * `asIs: true` marks values whose strings keep `$NAME` unexpanded for their consumer.
 *
 * One file: one schema, read from top to bottom.
 */

import { Effect, Schema } from "effect"
import {
  agentDefaultsOf,
  defaultStrategy,
  strategies,
  strategyDefaults,
  StrategyName
} from "../compression/strategies/Strategies.ts"
import { defaultMasking } from "../conversation/Masking.ts"
import { defaultBound } from "../conversation/ToolOutputBound.ts"
import { OutputForm } from "../conversation/ToolOutputShortening.ts"
import { GatewaySettings } from "../gateway/GatewaySettings.ts"
import { defaultHookTimeoutMillis, HooksSettings } from "../hooks/HookSettings.ts"
import { PromptSize } from "../prompt/PromptInputs.ts"
import { optional, ServeSettings } from "../serve/ServeSettings.ts"
import { minRetentionMillis, parsePeriod } from "../session/SessionRetention.ts"
import { ModelPrice } from "../tokens/Prices.ts"
import { ApprovalMode } from "../tools/Approval.ts"
import { McpServersSettings } from "../tools/McpServer.ts"
import { defaultMaxLines, maxLineChars } from "../workspace/FileText.ts"
import { defaultIdeLimits } from "../workspace/IdeContext.ts"

const withDefault = <S extends Schema.Constraint>(schema: S, defaultValue: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(defaultValue))(schema)

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Positive = Schema.Int.check(Schema.isGreaterThan(0))
const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const Names = Schema.Array(Schema.NonEmptyString)

/** A file name without folders, so that it cannot lead elsewhere. */
const FileName = Schema.NonEmptyString.check(Schema.isPattern(/^(?!\.{1,2}$)[^/\\\0]+$/))

/** The name of a memory file. Hidden files such as `.env` are excluded: they hold keys. */
const MemoryName = FileName.check(Schema.isPattern(/^[^.]/))

const expectPositive = (what: string, such: number) => `a whole number of ${what} above 0, such as ${such}`
const expectNatural = (what: string, such: number) => `a whole number of ${what}, 0 or more, such as ${such}`

/** A setting with a default. */
const field = <S extends Schema.Top>(
  schema: S,
  description: string,
  expected: string,
  defaultValue: S["Rebuild"]["Encoded"]
) => withDefault<S["Rebuild"]>(schema.annotate({ description, expected }), defaultValue)

const flag = (description: string, defaultValue: boolean) =>
  field(Schema.Boolean, description, "true or false", defaultValue)

const positive = (description: string, unit: string, example: number, defaultValue = example) =>
  field(Positive, description, expectPositive(unit, example), defaultValue)

const natural = (description: string, unit: string, example: number, defaultValue = example) =>
  field(Natural, description, expectNatural(unit, example), defaultValue)

const share = (description: string, example: number, defaultValue: number) =>
  field(Share, description, `a fraction from 0 to 1, such as ${example}`, defaultValue)

/** A setting that is one of several words. */
const choice = <const L extends ReadonlyArray<string>>(words: L, description: string, defaultValue: L[number]) => {
  const quoted = words.map((word) => `"${word}"`)
  const expected = `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1) ?? ""}`
  return withDefault(Schema.Literals(words).annotate({ description, expected }), defaultValue)
}

/** The models used when the router is just `true`. */
const defaultRouterModels = { flash: "gemini-2.5-flash", pro: "gemini-2.5-pro" }

/** Which sessions are deleted automatically. SessionRetention.ts defines what counts. */
const Retention = Schema.Struct({
  maxAge: optional(
    Schema.String.check(Schema.makeFilter((text: string) => (parsePeriod(text) ?? 0) >= minRetentionMillis)),
    "Delete sessions with no activity for this long",
    "a period of at least a day as a number and h, d, w or m, such as 30d"
  ),
  maxCount: optional(Positive, "Number of newest sessions to keep", expectPositive("sessions", 100))
})

/** How much of a tool result enters the conversation (`OutputBound`). */
const ToolOutputSettings = Schema.Struct({
  most: natural(
    "Results longer than this many characters are shortened; 0 disables it",
    "characters",
    40_000,
    defaultBound.most
  ),
  form: field(
    OutputForm,
    "How long results are shortened: to their last lines, or to head and tail by characters or lines; a compression uses last-lines where this is unset",
    `one of ${OutputForm.literals.join(", ")}`,
    defaultBound.form
  ),
  lines: positive("Lines kept by head-tail-lines", "lines", 1_000, defaultBound.lines)
})

/** Which old tool results are masked. */
const MaskingSettings = Schema.Struct({
  protect: natural("Tokens of the newest results that are never masked", "tokens", 50_000, defaultMasking.protect),
  least: natural("Mask only when it frees at least this many tokens", "tokens", 30_000, defaultMasking.least)
})

/** When an agent is considered to be looping. */
const LoopSettings = Schema.Struct({
  calls: positive("Identical calls in a row that count as a loop", "calls", 5),
  content: positive("Repetitions of a passage that count as a loop", "times", 10),
  chunk: positive("Length of a passage in characters", "characters", 50),
  history: positive("Characters of the answer that are searched for repetitions", "characters", 5_000),
  checkAfter: positive("Turns for one message after which a model checks for a loop", "turns", 30)
})

/** How a model corrects failed edits. */
const CorrectionSettings = Schema.Struct({
  cache: positive("Number of corrections cached", "answers", 50)
})

/** The two models of the router, and how much of the conversation the routing model sees. */
const RouterSettings = Schema.Struct({
  flash: Schema.NonEmptyString.annotate({
    description: "The model for simple messages",
    expected: "the name of a model, such as gemini-2.5-flash"
  }),
  pro: Schema.NonEmptyString.annotate({
    description: "The model for complex messages",
    expected: "the name of a model, such as gemini-2.5-pro"
  }),
  search: positive("Newest messages considered for routing", "messages", 20),
  turns: positive("How many of these messages the routing model sees", "messages", 4)
})

const memory = Schema.Struct({
  fileNames: field(
    Schema.Array(MemoryName),
    "Names of memory files; facts are added to the first. Names of your own files come from your home settings",
    `a list of names without folders that do not begin with a dot, such as ["GEMINI.md", "AGENTS.md"]`,
    ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]
  ),
  firstFound: flag("Read only the first of these names that a folder has", false),
  fileChars: natural("Most characters of one memory file with its imports; 0: no limit", "characters", 20_000, 0),
  totalChars: natural("Most characters of all memory files together; 0: no limit", "characters", 60_000, 0),
  boundaries: field(
    Schema.Array(FileName),
    "Files or folders that mark a project root; when empty, nothing above the working folder is searched",
    `a list of names without folders, such as [".git"]`,
    [".git"]
  ),
  maxDirs: positive("Maximum number of folders searched below the working folder", "folders", 200),
  importFormat: choice(["tree", "flat"], "Insert imported files in place (tree) or one after the other (flat)", "tree"),
  importDepth: natural("Maximum depth of imports", "steps", 5),
  respectGitIgnore: flag("Skip folders ignored by .gitignore", false),
  respectGeminiIgnore: flag("Skip folders ignored by .geminiignore", true),
  downward: flag("Load memory files from folders below the working folder", true),
  onTouch: flag("Load a folder's memory when a tool first uses the folder", true)
})

const prompt = Schema.Struct({
  size: choice(PromptSize.literals, "How much of the system prompt is sent", "full"),
  sections: field(
    Schema.Record(Schema.String, Schema.Boolean),
    "Sections of the system prompt to include or leave out, by key",
    `an object such as {"git": false}`,
    {}
  )
})

const repeatRules = Schema.Struct({
  headings: field(Names, "Headings of these sections; none: nothing is repeated", `a list such as ["Red Lines"]`, []),
  chars: positive("Most characters of these sections together", "characters", 2_000)
})

/** How agents start agents. */
const subagents = Schema.Struct({
  depth: field(between(1, 5), "How deep agents may start agents", "a whole number from 1 to 5", 2),
  children: field(between(1, 20), "Running agents that one agent may have started", "a whole number from 1 to 20", 8),
  running: positive("Running agents in all", "agents", 8),
  tasks: field(
    between(0, 20),
    "Tasks that one call of the tool run_agents may give; 0: there is no such tool",
    "a whole number from 0 to 20, such as 8",
    0
  ),
  parallel: positive("How many of these tasks run at once", "tasks", 4),
  prompt: choice(
    ["own", "minimal", "none"],
    "What an agent gets beside its own prompt: memory (own), the rules of the minimal system prompt (minimal), or nothing (none)",
    "own"
  ),
  runner: choice(
    ["inside", "process"],
    "Where agents of files run: in this process (inside) or each in a process of its own (process)",
    "inside"
  ),
  forkTokens: natural(
    "Largest conversation, in tokens, that an agent may begin with a copy of; 0: agents begin with their task alone",
    "tokens",
    100_000,
    0
  )
})

const environment = Schema.Struct({
  tree: flag("Show the model the tree of the working folder", true),
  items: natural("Maximum number of entries in that tree", "items", 200)
})

const hooksConfig = Schema.Struct({
  enabled: flag("Run hooks", true),
  disabled: field(
    Schema.Array(Schema.NonEmptyString),
    "Hooks to disable, by name, or by command when they have none",
    `a list of names, such as ["format"]`,
    []
  ),
  timeout: positive("Default time limit of a hook in milliseconds", "milliseconds", 60_000, defaultHookTimeoutMillis)
})

const ide = Schema.Struct({
  enabled: flag("Tell the model what is open in the editor", true),
  file: optional(
    Schema.NonEmptyString,
    "The file the editor writes; relative to this program's home folder",
    "the path of a file"
  ),
  openFiles: positive("Maximum number of open files listed", "files", 10, defaultIdeLimits.openFiles),
  selection: positive("Maximum number of characters of the selection", "characters", 16_384, defaultIdeLimits.selection)
})

const files = Schema.Struct({
  lines: positive("Lines read from a file at once", "lines", 2_000, defaultMaxLines),
  lineLength: positive("Length in characters at which a line is cut", "characters", 2_000, maxLineChars),
  bytes: positive("Largest file that is read, in bytes", "bytes", 20_971_520),
  respectGitIgnore: flag("Skip files ignored by .gitignore", true),
  respectGeminiIgnore: flag("Skip files ignored by .geminiignore", true)
})

/** How the chat looks and behaves on a terminal. */
const TerminalSettings = Schema.Struct({
  theme: choice(
    ["auto", "dark", "light", "contrast"],
    "Colours of the chat; auto asks the terminal for its background",
    "auto"
  ),
  keys: choice(["default", "vim"], "Keys of the editor", "default"),
  bellAfter: natural("Seconds of work after which its end rings the bell and is announced; 0: never", "seconds", 10)
})
export type TerminalSettings = typeof TerminalSettings.Type

const telemetry = Schema.Struct({
  enabled: flag("Record events", false),
  file: optional(
    Schema.NonEmptyString,
    "The file to record to, one JSON object a line; relative to this program's home folder",
    "the path of a file"
  ),
  endpoint: optional(
    Schema.NonEmptyString.check(Schema.isPattern(/^https?:\/\//i)),
    "The OTLP collector to send to",
    "an address such as http://localhost:4318"
  ),
  prompts: flag("Record prompts and answers too", false),
  buffer: positive("Number of newest events kept in memory", "events", 100)
})

/** The least gain of strategies that differ from the default one, for the description of the setting. */
const otherGains = strategies
  .filter(({ defaults }) => defaults.minGain !== defaultStrategy.defaults.minGain)
  .map(({ defaults, name }) => `; with strategy ${name} ${defaults.minGain} where not set`)
  .join("")

/** All settings. The encoded side is the file format; decoding fills in defaults. */
export const Settings = Schema.Struct({
  model: field(
    Schema.NonEmptyString,
    "The model of new conversations",
    "the name of a model, such as gemini-2.5-pro",
    "gemini-2.5-flash"
  ),
  models: field(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        compressionThreshold: optional(
          Share,
          "Share of this model's window at which a conversation is compressed",
          "a fraction from 0 to 1, such as 0.5"
        ),
        window: optional(
          Positive,
          "This model's window in tokens; required for unknown models",
          "a whole number of tokens, such as 200000"
        ),
        price: optional(
          ModelPrice,
          "This model's prices in US dollars per million tokens; the name may be the beginning of a model's name",
          'an object such as {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}'
        )
      })
    ),
    "Settings for single models, by name",
    `an object such as {"gemini-2.5-pro": {"compressionThreshold": 0.3, "window": 200000}}`,
    {}
  ),
  strategy: field(
    StrategyName,
    `How conversations are compressed: ${strategies.map(({ description }) => description).join(", or ")}`,
    StrategyName.literals.map((name) => `"${name}"`).join(" or "),
    defaultStrategy.name
  ),
  compressionThreshold: share(
    "Share of the window at which a conversation is compressed; 0 counts as unset, 1 compresses only when a message would not fit",
    0.5,
    0.5
  ),
  compressionModel: optional(
    Schema.Union([Schema.NonEmptyString, Schema.NonEmptyArray(Schema.NonEmptyString)]),
    "The model that writes summaries, or several: each is asked when those before it fail; unset: one of the conversation's family",
    `the name of a model, or a list such as ["gemini-2.5-flash", "anthropic/claude-haiku-4-5"]`
  ),
  compressionPrepareAt: share(
    "Share of the threshold at which a chat prepares its next snapshot in the background, where a model writes it; 0 never prepares one",
    0.8,
    0.8
  ),
  preserve: share("Share of the conversation, from the newest messages, that a compression keeps", 0.3, 0.3),
  minGain: share(
    `Smallest part of the request that a compression has to save${otherGains}`,
    0.1,
    defaultStrategy.defaults.minGain
  ),
  toolBudget: natural("Tokens of tool results kept in full by a compression, newest first", "tokens", 50_000),
  overflowFactor: field(
    Share.check(Schema.isGreaterThan(0)),
    "Largest part of the remaining window that a message may use",
    "a fraction above 0, at most 1",
    1
  ),
  window: optional(
    Positive,
    "The window in tokens of every model not listed in models; overrides known windows",
    "a whole number of tokens, such as 200000"
  ),
  attempts: field(
    Schema.Struct({
      calls: positive("Attempts for a failing call", "calls", 10),
      answers: positive("Attempts when an answer is unusable", "requests", 4)
    }),
    "Numbers of attempts",
    `an object such as {"calls": 10, "answers": 4}`,
    {}
  ),
  store: optional(
    Schema.NonEmptyString.check(Schema.isPattern(/^(?:files$|sqlite:.|postgres(?:ql)?:\/\/.)/)),
    "Where sessions are stored; PALIMPSEST_STORE overrides it",
    "files, sqlite:FILE or postgres://USER@HOST/DATABASE"
  ),
  sessionRetention: optional(
    Retention,
    "Which sessions are deleted automatically; unset: none",
    `an object such as {"maxAge": "30d", "maxCount": 100}`
  ),
  redactSecrets: flag(
    "Remove keys, tokens and passwords from what a summarizing model receives, also through recall",
    true
  ),
  titles: flag("Let a small model give sessions a title", true),
  approve: choice(ApprovalMode.literals, "Which tool calls run without confirmation", "none"),
  allowed: withDefault(
    Names.annotate({
      description: "Permanent permissions",
      expected: `a list such as ["edit", "shell:git status"]`,
      asIs: true
    }),
    []
  ),
  askForBuildFiles: flag(
    "Ask before editing Makefiles and other files that build, test or install, even when edits run without confirmation",
    false
  ),
  maxTurns: field(
    Positive,
    "Maximum number of model requests for one message",
    "a whole number above 0, such as 100",
    100
  ),
  toolOutput: field(
    ToolOutputSettings,
    "How much of a tool result enters the conversation",
    `an object such as {"most": 40000, "form": "last-lines"}`,
    {}
  ),
  summarizeToolOutput: field(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        tokenBudget: optional(Positive, "Tokens of the summary", expectPositive("tokens", 2_000))
      })
    ),
    "Tools whose results a model summarizes before they enter the conversation",
    `an object such as {"run_shell_command": {"tokenBudget": 2000}}`,
    {}
  ),
  masking: field(
    Schema.Union([Schema.Literal(false), MaskingSettings]),
    "When old tool results are masked; false: never",
    `false, or an object such as {"protect": 50000, "least": 30000}`,
    {}
  ),
  loopDetection: field(
    Schema.Union([Schema.Boolean, LoopSettings]),
    "Detect loops of the model, and when",
    `true, false, or an object such as {"calls": 5, "content": 10}`,
    true
  ),
  router: field(
    Schema.Union([Schema.Boolean, RouterSettings]),
    "Let a small model choose between two models for each message",
    `true, false, or two models such as {"flash": "gemini-2.5-flash", "pro": "gemini-2.5-pro"}`,
    false
  ),
  allowPrivateNetwork: flag("Allow tools to reach loopback, link-local and private addresses", false),
  passEnvironment: field(
    Names,
    "Environment variables passed to commands although they look like secrets",
    `a list of names such as ["GITHUB_TOKEN"]`,
    []
  ),
  mcpServers: withDefault(
    McpServersSettings.annotate({
      description: "MCP servers by name",
      expected: `an object of servers such as {"files": {"command": "files-server", "args": []}} or {"docs": {"url": "https://example.com/mcp"}}`,
      asIs: true
    }),
    {}
  ),
  editCorrection: field(
    Schema.Union([Schema.Boolean, CorrectionSettings]),
    "Let a model correct an edit whose text was not found",
    `true, false, or an object such as {"cache": 50}`,
    false
  ),
  agents: field(
    Schema.Record(Schema.String, Schema.Boolean),
    "Agents to enable or disable, by name",
    `an object such as {"browser_agent": true}`,
    {}
  ),
  backgroundAgents: flag("Allow the model to start background agents and exchange messages with them", false),
  subagents: field(
    subagents,
    "How agents start agents",
    `an object such as {"depth": 2, "children": 8, "tasks": 8}`,
    {}
  ),
  memory: field(
    memory,
    "Which memory files are loaded",
    `an object such as {"fileNames": ["GEMINI.md"], "maxDirs": 200}`,
    {}
  ),
  memoryFlush: flag("Let the model save facts to memory shortly before a compression", false),
  repeatRules: field(
    repeatRules,
    "Sections of memory files to repeat to the model after a compression",
    `an object such as {"headings": ["Red Lines"]}`,
    {}
  ),
  prompt: field(prompt, "The system prompt", `an object such as {"size": "minimal"}`, {}),
  environment: field(
    environment,
    "What the environment message contains",
    `an object such as {"tree": true, "items": 200}`,
    {}
  ),
  hooks: withDefault(
    HooksSettings.annotate({
      description: "Commands to run, by event",
      expected: `an object such as {"AfterTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "npm run format"}]}]}`,
      asIs: true
    }),
    {}
  ),
  hooksConfig: field(hooksConfig, "Options for all hooks", `an object such as {"enabled": true, "timeout": 60000}`, {}),
  ide: field(ide, "What the model learns about the editor", `an object such as {"enabled": true, "openFiles": 10}`, {}),
  files: field(files, "How files are read", `an object such as {"lines": 2000, "respectGitIgnore": true}`, {}),
  includeDirectories: field(
    Names,
    "Additional folders that tools may use; relative to the working folder",
    `a list of folders such as ["../docs"]`,
    []
  ),
  loadMemoryFromIncludeDirectories: flag("Load memory from includeDirectories too", false),
  shellIdle: natural("Seconds without output after which a command is stopped; 0: never", "seconds", 300),
  terminal: field(
    TerminalSettings,
    "How the chat looks and behaves on a terminal",
    `an object such as {"theme": "light", "bellAfter": 30}`,
    {}
  ),
  telemetry: field(
    telemetry,
    "What is recorded, and where",
    `an object such as {"enabled": true, "file": "events.jsonl"}`,
    {}
  ),
  serve: field(
    ServeSettings,
    "Who may use the server, and how much",
    `an object such as {"tools": false, "limits": {"sessions": 50}}`,
    {}
  ),
  gateway: field(
    GatewaySettings,
    "How the gateway treats the conversations of other programs",
    `an object such as {"windows": {"claude-sonnet-4-5": 100000}, "threshold": 0.75}`,
    {}
  ),
  folderTrust: flag("Load nothing from a folder until it is trusted", true)
})

/** All settings with values, except those that are meaningful when unset. */
export type Settings = typeof Settings.Type

/** The content of a settings file. Absent fields are unset. */
export const SettingsFile = Schema.toEncoded(Settings)
export type SettingsFile = typeof Settings.Encoded

/** The name of a top-level setting. */
type SettingName = keyof typeof Settings.fields

const fill = Schema.decodeSync(Settings)

/** Decoding takes a millisecond, so the result is cached for each file value. */
const filled = new WeakMap<SettingsFile, Settings>()

/**
 * Fills in the defaults of everything unset.
 *
 * **Example** (Filling in the defaults of settings)
 *
 * ```ts
 * import { Settings } from "palimpsest"
 *
 * const { minGain, strategy } = Settings.withDefaults({ strategy: "gemini" })
 * console.log(strategy, minGain) // => gemini 0
 * ```
 */
export const withDefaults = (file: SettingsFile): Settings => {
  const strategy = file.strategy ?? defaultStrategy.name
  // The least gain depends on the strategy, and so do settings of the agent that the strategy is from.
  const { minGain } = strategyDefaults(strategy)
  const { memory, memoryFlush = false, prompt: ownPrompt, repeatRules: rules, subagents } = agentDefaultsOf(strategy)
  const settings =
    filled.get(file) ??
    fill({
      minGain,
      memoryFlush,
      ...file,
      prompt: { ...ownPrompt, ...file.prompt },
      repeatRules: { ...rules, ...file.repeatRules },
      memory: { ...memory, ...file.memory },
      subagents: { ...subagents, ...file.subagents }
    })
  filled.set(file, settings)
  return settings
}

/** The defaults. */
export const defaults: Settings = withDefaults({})

/** The loop detection settings with all numbers; undefined when disabled. */
export const loopDetectionOf = (setting: SettingsFile["loopDetection"] = true): typeof LoopSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(LoopSettings)(setting === true ? {} : setting)

/** The edit correction settings with all numbers; undefined when disabled. */
export const editCorrectionOf = (
  setting: SettingsFile["editCorrection"] = false
): typeof CorrectionSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(CorrectionSettings)(setting === true ? {} : setting)

/** The router's models and limits; undefined when disabled. */
export const routerOf = (setting: SettingsFile["router"] = false): typeof RouterSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(RouterSettings)(setting === true ? defaultRouterModels : setting)

/**
 * Settings that count in the home folder's file only. A folder from someone else must neither delete the user's
 * conversations nor decide what may run on the machine, what is read outside the folder, or what leaves the machine.
 */
export const homeOnly = [
  "sessionRetention",
  "approve",
  "allowed",
  "askForBuildFiles",
  "allowPrivateNetwork",
  "passEnvironment",
  "mcpServers",
  "ide",
  "includeDirectories",
  "loadMemoryFromIncludeDirectories",
  "telemetry",
  "serve",
  "gateway",
  "folderTrust",
  "redactSecrets",
  "store"
] as const satisfies ReadonlyArray<SettingName>

/** Whether a setting counts in the home folder's file only. */
export const isHomeOnly = (name: string): boolean => homeOnly.some((key) => key === name)

/** The settings of a workspace file that are ignored there. */
export const ignoredInWorkspace = (workspace: object): ReadonlyArray<string> =>
  Object.keys(workspace).filter(isHomeOnly)
