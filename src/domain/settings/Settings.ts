import { Effect, Schema } from "effect"
import { defaultStrategy, strategies, strategyDefaults, StrategyName } from "../compression/strategies/Strategies.ts"
import { defaultMasking } from "../conversation/Masking.ts"
import { defaultBound } from "../conversation/ToolOutputBound.ts"
import { OutputForm } from "../conversation/ToolOutputShortening.ts"
import { defaultHookTimeoutMillis, HooksSettings } from "../hooks/HookSettings.ts"
import { PromptSize } from "../prompt/PromptInputs.ts"
import { minRetentionMillis, parsePeriod } from "../session/SessionRetention.ts"
import { ApprovalMode } from "../tools/Approval.ts"
import { McpServersSettings } from "../tools/McpServer.ts"
import { defaultMaxLines, maxLineChars } from "../workspace/FileText.ts"
import { defaultIdeLimits } from "../workspace/IdeContext.ts"

/**
 * The settings schema. Each field carries its description, its default and what is expected, and nothing else repeats
 * them. A file may omit any field (`SettingsFile`); the program works with all of them (`Settings`).
 *
 * `description` and `expected` are annotations; `expected` completes the sentence "expected …" in error messages.
 * `asIs: true` marks values whose strings keep `$NAME` unexpanded for their consumer.
 *
 * One file: one schema, read from top to bottom.
 */

/** A field with a default. */
const withDefault = <S extends Schema.Constraint>(schema: S, defaultValue: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(defaultValue))(schema)

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Positive = Schema.Int.check(Schema.isGreaterThan(0))
const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Names = Schema.Array(Schema.NonEmptyString)

/** A file name without folders, so that it cannot lead elsewhere. */
const FileName = Schema.NonEmptyString.check(Schema.isPattern(/^(?!\.{1,2}$)[^/\\\0]+$/))

/** The name of a memory file. Hidden files such as `.env` are excluded: they hold keys. */
const MemoryName = FileName.check(Schema.isPattern(/^[^.]/))

const expectBoolean = "true or false"
const expectPositive = (what: string, such: number) => `a whole number of ${what} above 0, such as ${such}`
const expectNatural = (what: string, such: number) => `a whole number of ${what}, 0 or more, such as ${such}`

/** A boolean setting. */
const flag = (description: string) => Schema.Boolean.annotate({ description, expected: expectBoolean })

/** The models used when the router is just `true`. */
const defaultRouterModels = { flash: "gemini-2.5-flash", pro: "gemini-2.5-pro" }

/** Which sessions are deleted automatically. SessionRetention.ts defines what counts. */
const Retention = Schema.Struct({
  maxAge: Schema.optionalKey(
    Schema.String.check(Schema.makeFilter((text: string) => (parsePeriod(text) ?? 0) >= minRetentionMillis)).annotate({
      description: "Delete sessions with no activity for this long",
      expected: "a period of at least a day as a number and h, d, w or m, such as 30d"
    })
  ),
  maxCount: Schema.optionalKey(
    Positive.annotate({ description: "Number of newest sessions to keep", expected: expectPositive("sessions", 100) })
  )
})

/** How much of a tool result enters the conversation (`OutputBound`). */
const ToolOutputSettings = Schema.Struct({
  most: withDefault(
    Natural.annotate({
      description: "Results longer than this many characters are shortened; 0 disables it",
      expected: expectNatural("characters", 40_000)
    }),
    defaultBound.most
  ),
  form: withDefault(
    OutputForm.annotate({
      description: "How long results are shortened: to their last lines, or to head and tail by characters or lines",
      expected: `one of ${OutputForm.literals.join(", ")}`
    }),
    defaultBound.form
  ),
  lines: withDefault(
    Positive.annotate({
      description: "Lines kept by head-tail-lines",
      expected: expectPositive("lines", 1_000)
    }),
    defaultBound.lines
  )
})

/** Which old tool results are masked. */
const MaskingSettings = Schema.Struct({
  protect: withDefault(
    Natural.annotate({
      description: "Tokens of the newest results that are never masked",
      expected: expectNatural("tokens", 50_000)
    }),
    defaultMasking.protect
  ),
  least: withDefault(
    Natural.annotate({
      description: "Mask only when it frees at least this many tokens",
      expected: expectNatural("tokens", 30_000)
    }),
    defaultMasking.least
  )
})

/** When an agent is considered to be looping. */
const LoopSettings = Schema.Struct({
  calls: withDefault(
    Positive.annotate({
      description: "Identical calls in a row that count as a loop",
      expected: expectPositive("calls", 5)
    }),
    5
  ),
  content: withDefault(
    Positive.annotate({
      description: "Repetitions of a passage that count as a loop",
      expected: expectPositive("times", 10)
    }),
    10
  ),
  chunk: withDefault(
    Positive.annotate({ description: "Length of a passage in characters", expected: expectPositive("characters", 50) }),
    50
  ),
  history: withDefault(
    Positive.annotate({
      description: "Characters of the answer that are searched for repetitions",
      expected: expectPositive("characters", 5_000)
    }),
    5_000
  ),
  checkAfter: withDefault(
    Positive.annotate({
      description: "Turns for one message after which a model checks for a loop",
      expected: expectPositive("turns", 30)
    }),
    30
  )
})

/** How a model corrects failed edits. */
const CorrectionSettings = Schema.Struct({
  cache: withDefault(
    Positive.annotate({
      description: "Number of corrections cached",
      expected: expectPositive("answers", 50)
    }),
    50
  )
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
  search: withDefault(
    Positive.annotate({
      description: "Newest messages considered for routing",
      expected: expectPositive("messages", 20)
    }),
    20
  ),
  turns: withDefault(
    Positive.annotate({
      description: "How many of these messages the routing model sees",
      expected: expectPositive("messages", 4)
    }),
    4
  )
})

const memory = Schema.Struct({
  fileNames: withDefault(
    Schema.Array(MemoryName).annotate({
      description:
        "Names of memory files; facts are added to the first. Names of your own files come from your home settings",
      expected: `a list of names without folders that do not begin with a dot, such as ["GEMINI.md", "AGENTS.md"]`
    }),
    ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]
  ),
  boundaries: withDefault(
    Schema.Array(FileName).annotate({
      description:
        "Files or folders that mark a project root; when empty, nothing above the working folder is searched",
      expected: `a list of names without folders, such as [".git"]`
    }),
    [".git"]
  ),
  maxDirs: withDefault(
    Positive.annotate({
      description: "Maximum number of folders searched below the working folder",
      expected: expectPositive("folders", 200)
    }),
    200
  ),
  importFormat: withDefault(
    Schema.Literals(["tree", "flat"]).annotate({
      description: "Insert imported files in place (tree) or one after the other (flat)",
      expected: `"tree" or "flat"`
    }),
    "tree"
  ),
  importDepth: withDefault(
    Natural.annotate({ description: "Maximum depth of imports", expected: expectNatural("steps", 5) }),
    5
  ),
  respectGitIgnore: withDefault(flag("Skip folders ignored by .gitignore"), false),
  respectGeminiIgnore: withDefault(flag("Skip folders ignored by .geminiignore"), true),
  downward: withDefault(flag("Load memory files from folders below the working folder"), true),
  onTouch: withDefault(flag("Load a folder's memory when a tool first uses the folder"), true)
})

const prompt = Schema.Struct({
  size: withDefault(
    PromptSize.annotate({
      description: "How much of the system prompt is sent",
      expected: `"full", "minimal" or "none"`
    }),
    "full"
  ),
  sections: withDefault(
    Schema.Record(Schema.String, Schema.Boolean).annotate({
      description: "Sections of the system prompt to include or leave out, by key",
      expected: `an object such as {"git": false}`
    }),
    {}
  )
})

const environment = Schema.Struct({
  tree: withDefault(flag("Show the model the tree of the working folder"), true),
  items: withDefault(
    Natural.annotate({ description: "Maximum number of entries in that tree", expected: expectNatural("items", 200) }),
    200
  )
})

const hooksConfig = Schema.Struct({
  enabled: withDefault(flag("Run hooks"), true),
  disabled: withDefault(
    Schema.Array(Schema.NonEmptyString).annotate({
      description: "Hooks to disable, by name, or by command when they have none",
      expected: `a list of names, such as ["format"]`
    }),
    []
  ),
  timeout: withDefault(
    Positive.annotate({
      description: "Default time limit of a hook in milliseconds",
      expected: expectPositive("milliseconds", 60_000)
    }),
    defaultHookTimeoutMillis
  )
})

const ide = Schema.Struct({
  enabled: withDefault(flag("Tell the model what is open in the editor"), true),
  file: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description: "The file the editor writes; relative to this program's home folder",
      expected: "the path of a file"
    })
  ),
  openFiles: withDefault(
    Positive.annotate({ description: "Maximum number of open files listed", expected: expectPositive("files", 10) }),
    defaultIdeLimits.openFiles
  ),
  selection: withDefault(
    Positive.annotate({
      description: "Maximum number of characters of the selection",
      expected: expectPositive("characters", 16_384)
    }),
    defaultIdeLimits.selection
  )
})

const files = Schema.Struct({
  lines: withDefault(
    Positive.annotate({
      description: "Lines read from a file at once",
      expected: expectPositive("lines", 2_000)
    }),
    defaultMaxLines
  ),
  lineLength: withDefault(
    Positive.annotate({
      description: "Length in characters at which a line is cut",
      expected: expectPositive("characters", 2_000)
    }),
    maxLineChars
  ),
  bytes: withDefault(
    Positive.annotate({
      description: "Largest file that is read, in bytes",
      expected: expectPositive("bytes", 20_971_520)
    }),
    20_971_520
  ),
  respectGitIgnore: withDefault(flag("Skip files ignored by .gitignore"), true),
  respectGeminiIgnore: withDefault(flag("Skip files ignored by .geminiignore"), true)
})

const telemetry = Schema.Struct({
  enabled: withDefault(flag("Record events"), false),
  file: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description: "The file to record to, one JSON object a line; relative to this program's home folder",
      expected: "the path of a file"
    })
  ),
  endpoint: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isPattern(/^https?:\/\//i)).annotate({
      description: "The OTLP collector to send to",
      expected: "an address such as http://localhost:4318"
    })
  ),
  prompts: withDefault(flag("Record prompts and answers too"), false),
  buffer: withDefault(
    Positive.annotate({
      description: "Number of newest events kept in memory",
      expected: expectPositive("events", 100)
    }),
    100
  )
})

/** The least gain of strategies that differ from the default one, for the description of the setting. */
const otherGains = strategies
  .filter(({ defaults }) => defaults.minGain !== defaultStrategy.defaults.minGain)
  .map(({ defaults, name }) => `; with strategy ${name} ${defaults.minGain} where not set`)
  .join("")

/** All settings. The encoded side is the file format; decoding fills in defaults. */
export const Settings = Schema.Struct({
  model: withDefault(
    Schema.NonEmptyString.annotate({
      description: "The model of new conversations",
      expected: "the name of a model, such as gemini-2.5-pro"
    }),
    "gemini-2.5-flash"
  ),
  models: withDefault(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        compressionThreshold: Schema.optionalKey(
          Share.annotate({
            description: "Share of this model's window at which a conversation is compressed",
            expected: "a share from 0 to 1, such as 0.5"
          })
        ),
        window: Schema.optionalKey(
          Positive.annotate({
            description: "This model's window in tokens; required for unknown models",
            expected: "a whole number of tokens, such as 200000"
          })
        )
      })
    ).annotate({
      description: "Settings for single models, by name",
      expected: `an object such as {"gemini-2.5-pro": {"compressionThreshold": 0.3, "window": 200000}}`
    }),
    {}
  ),
  strategy: withDefault(
    StrategyName.annotate({
      description: `How conversations are compressed: ${strategies.map(({ description }) => description).join(", or ")}`,
      expected: StrategyName.literals.map((name) => `"${name}"`).join(" or ")
    }),
    defaultStrategy.name
  ),
  compressionThreshold: withDefault(
    Share.annotate({
      description:
        "Share of the window at which a conversation is compressed; 0 counts as unset, 1 compresses only when a message would not fit",
      expected: "a share from 0 to 1, such as 0.5"
    }),
    0.5
  ),
  preserve: withDefault(
    Share.annotate({
      description: "Share of the conversation, from the newest messages, that a compression keeps",
      expected: "a share from 0 to 1, such as 0.3"
    }),
    0.3
  ),
  minGain: withDefault(
    Share.annotate({
      description: `Least share of the request that a compression has to save${otherGains}`,
      expected: "a share from 0 to 1, such as 0.1"
    }),
    defaultStrategy.defaults.minGain
  ),
  toolBudget: withDefault(
    Natural.annotate({
      description: "Tokens of tool results kept in full by a compression, newest first",
      expected: expectNatural("tokens", 50_000)
    }),
    50_000
  ),
  overflowFactor: withDefault(
    Share.check(Schema.isGreaterThan(0)).annotate({
      description: "Largest share of the remaining window that a message may use",
      expected: "a share above 0, at most 1"
    }),
    1
  ),
  window: Schema.optionalKey(
    Positive.annotate({
      description: "The window in tokens of every model not listed in models; overrides known windows",
      expected: "a whole number of tokens, such as 200000"
    })
  ),
  attempts: withDefault(
    Schema.Struct({
      calls: withDefault(
        Positive.annotate({
          description: "Attempts for a failing call",
          expected: expectPositive("calls", 10)
        }),
        10
      ),
      answers: withDefault(
        Positive.annotate({
          description: "Attempts when an answer is unusable",
          expected: expectPositive("requests", 4)
        }),
        4
      )
    }).annotate({
      description: "Numbers of attempts",
      expected: `an object such as {"calls": 10, "answers": 4}`
    }),
    {}
  ),
  sessionRetention: Schema.optionalKey(
    Retention.annotate({
      description: "Which sessions are deleted automatically; unset: none",
      expected: `an object such as {"maxAge": "30d", "maxCount": 100}`
    })
  ),
  redactSecrets: withDefault(
    flag("Remove keys, tokens and passwords from what a summarizing model receives, also through recall"),
    true
  ),
  titles: withDefault(flag("Let a small model give sessions a title"), true),
  approve: withDefault(
    ApprovalMode.annotate({
      description: "Which tool calls run without confirmation",
      expected: `"none", "edits", "all" or "plan"`
    }),
    "none"
  ),
  allowed: withDefault(
    Names.annotate({
      description: "Permanent permissions",
      expected: `a list such as ["edit", "shell:git status"]`,
      asIs: true
    }),
    []
  ),
  askForBuildFiles: withDefault(
    flag(
      "Ask before editing Makefiles and other files that build, test or install, even when edits run without confirmation"
    ),
    false
  ),
  maxTurns: withDefault(
    Positive.annotate({
      description: "Maximum number of model requests for one message",
      expected: "a whole number above 0, such as 100"
    }),
    100
  ),
  toolOutput: withDefault(
    ToolOutputSettings.annotate({
      description: "How much of a tool result enters the conversation",
      expected: `an object such as {"most": 40000, "form": "last-lines"}`
    }),
    {}
  ),
  summarizeToolOutput: withDefault(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        tokenBudget: Schema.optionalKey(
          Positive.annotate({ description: "Tokens of the summary", expected: expectPositive("tokens", 2_000) })
        )
      })
    ).annotate({
      description: "Tools whose results a model summarizes before they enter the conversation",
      expected: `an object such as {"run_shell_command": {"tokenBudget": 2000}}`
    }),
    {}
  ),
  masking: withDefault(
    Schema.Union([Schema.Literal(false), MaskingSettings]).annotate({
      description: "When old tool results are masked; false: never",
      expected: `false, or an object such as {"protect": 50000, "least": 30000}`
    }),
    {}
  ),
  loopDetection: withDefault(
    Schema.Union([Schema.Boolean, LoopSettings]).annotate({
      description: "Detect loops of the model, and when",
      expected: `true, false, or an object such as {"calls": 5, "content": 10}`
    }),
    true
  ),
  router: withDefault(
    Schema.Union([Schema.Boolean, RouterSettings]).annotate({
      description: "Let a small model choose between two models for each message",
      expected: `true, false, or two models such as {"flash": "gemini-2.5-flash", "pro": "gemini-2.5-pro"}`
    }),
    false
  ),
  allowPrivateNetwork: withDefault(flag("Allow tools to reach loopback, link-local and private addresses"), false),
  passEnvironment: withDefault(
    Names.annotate({
      description: "Environment variables passed to commands although they look like secrets",
      expected: `a list of names such as ["GITHUB_TOKEN"]`
    }),
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
  editCorrection: withDefault(
    Schema.Union([Schema.Boolean, CorrectionSettings]).annotate({
      description: "Let a model correct an edit whose text was not found",
      expected: `true, false, or an object such as {"cache": 50}`
    }),
    false
  ),
  agents: withDefault(
    Schema.Record(Schema.String, Schema.Boolean).annotate({
      description: "Agents to enable or disable, by name",
      expected: `an object such as {"browser_agent": true}`
    }),
    {}
  ),
  backgroundAgents: withDefault(
    flag("Allow the model to start background agents and exchange messages with them"),
    false
  ),
  memory: withDefault(
    memory.annotate({
      description: "Which memory files are loaded",
      expected: `an object such as {"fileNames": ["GEMINI.md"], "maxDirs": 200}`
    }),
    {}
  ),
  prompt: withDefault(
    prompt.annotate({
      description: "The system prompt",
      expected: `an object such as {"size": "minimal"}`
    }),
    {}
  ),
  environment: withDefault(
    environment.annotate({
      description: "What the environment message contains",
      expected: `an object such as {"tree": true, "items": 200}`
    }),
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
  hooksConfig: withDefault(
    hooksConfig.annotate({
      description: "Options for all hooks",
      expected: `an object such as {"enabled": true, "timeout": 60000}`
    }),
    {}
  ),
  ide: withDefault(
    ide.annotate({
      description: "What the model is told about the editor",
      expected: `an object such as {"enabled": true, "openFiles": 10}`
    }),
    {}
  ),
  files: withDefault(
    files.annotate({
      description: "How files are read",
      expected: `an object such as {"lines": 2000, "respectGitIgnore": true}`
    }),
    {}
  ),
  includeDirectories: withDefault(
    Names.annotate({
      description: "Additional folders that tools may use; relative to the working folder",
      expected: `a list of folders such as ["../docs"]`
    }),
    []
  ),
  loadMemoryFromIncludeDirectories: withDefault(flag("Load memory from includeDirectories too"), false),
  shellIdle: withDefault(
    Natural.annotate({
      description: "Seconds without output after which a command is stopped; 0: never",
      expected: expectNatural("seconds", 300)
    }),
    300
  ),
  telemetry: withDefault(
    telemetry.annotate({
      description: "What is recorded, and where",
      expected: `an object such as {"enabled": true, "file": "events.jsonl"}`
    }),
    {}
  ),
  folderTrust: withDefault(flag("Load nothing from a folder until it is trusted"), true)
})

/** All settings with values, except those that are meaningful when unset. */
export type Settings = typeof Settings.Type

/** The content of a settings file. Absent fields are unset. */
export const SettingsFile = Schema.toEncoded(Settings)
export type SettingsFile = typeof Settings.Encoded

/** The name of a top-level setting. */
export type SettingName = keyof typeof Settings.fields

const fill = Schema.decodeSync(Settings)

/** Decoding takes a millisecond, so the result is cached for each file value. */
const filled = new WeakMap<SettingsFile, Settings>()

/** Fills in the defaults of everything unset. */
export const withDefaults = (file: SettingsFile): Settings => {
  // The least gain depends on the strategy.
  const { minGain } = strategyDefaults(file.strategy ?? defaultStrategy.name)
  const settings = filled.get(file) ?? fill({ minGain, ...file })
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
  "folderTrust",
  "redactSecrets"
] as const satisfies ReadonlyArray<SettingName>

/** Whether a setting counts in the home folder's file only. */
export const isHomeOnly = (name: string): boolean => homeOnly.some((key) => key === name)

/** The settings of a workspace file that are ignored there. */
export const ignoredInWorkspace = (workspace: object): ReadonlyArray<string> =>
  Object.keys(workspace).filter(isHomeOnly)
