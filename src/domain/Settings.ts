import { Effect, Schema } from "effect"
import { ApprovalMode } from "./Approval.ts"
import { defaultBound } from "./Bounded.ts"
import { StrategyName } from "./Compression.ts"
import { usualLines, widestLine } from "./FileText.ts"
import { hookTimeout, HooksSettings } from "./HookSettings.ts"
import { defaultIdeLimits } from "./IdeContext.ts"
import { defaultMasking } from "./Masking.ts"
import { McpServersSettings } from "./McpServer.ts"
import { PromptSize } from "./prompt/PromptInputs.ts"
import { minRetention, periodOf } from "./SessionRetention.ts"
import { OutputForm } from "./ToolOutput.ts"

/**
 * What a person may set (CLI contract, Environment): what it is for, what holds without it and what is expected stand beside
 * each field, and nowhere else. A file leaves out what it pleases (`SettingsFile`); the program works with all (`Settings`).
 *
 * `description` and `expected` of a field are annotations; `expected` ends the sentence "expected …" where a value is wrong.
 * `asIs: true` marks strings in which `$NAME` is left to whoever uses them.
 */

/** A setting that has a value where nobody gives one. */
const usually = <S extends Schema.Constraint>(schema: S, usual: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(usual))(schema)

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Positive = Schema.Int.check(Schema.isGreaterThan(0))
const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Names = Schema.Array(Schema.NonEmptyString)

/** A name as it stands in a folder: not a path, so that it leads nowhere else. */
const FileName = Schema.NonEmptyString.check(Schema.isPattern(/^(?!\.{1,2}$)[^/\\\0]+$/))

/** A file that holds words for a model: none of the hidden ones, such as `.env`, in which people keep keys. */
const MemoryName = FileName.check(Schema.isPattern(/^[^.]/))

const yesOrNo = "true or false"
const countOf = (what: string, such: number) => `a whole number of ${what} above 0, such as ${such}`
const numberOf = (what: string, such: number) => `a whole number of ${what}, 0 or more, such as ${such}`

/** A switch. */
const flag = (description: string) => Schema.Boolean.annotate({ description, expected: yesOrNo })

/** The models a router picks from where only `true` is said. */
const usualModels = { flash: "gemini-2.5-flash", pro: "gemini-2.5-pro" }

/** Which sessions go by themselves: see SessionRetention.ts for what counts. */
const Retention = Schema.Struct({
  maxAge: Schema.optionalKey(
    Schema.String.check(Schema.makeFilter((text: string) => (periodOf(text) ?? 0) >= minRetention)).annotate({
      description: "Sessions that nobody wrote to for longer are deleted",
      expected: "a period of at least a day as a number and h, d, w or m, such as 30d"
    })
  ),
  maxCount: Schema.optionalKey(
    Positive.annotate({ description: "How many sessions stay, the newest", expected: countOf("sessions", 100) })
  )
})

/** How much of a tool's result enters the conversation (`OutputBound`). */
const ToolOutputSettings = Schema.Struct({
  most: usually(
    Natural.annotate({
      description: "Characters from which on a result is shortened; 0: none is",
      expected: numberOf("characters", 40_000)
    }),
    defaultBound.most
  ),
  form: usually(
    OutputForm.annotate({
      description: "What stays of a long result: its last lines, or its head and tail by characters or lines",
      expected: `one of ${OutputForm.literals.join(", ")}`
    }),
    defaultBound.form
  ),
  lines: usually(
    Positive.annotate({ description: "Lines that stay with head-tail-lines", expected: countOf("lines", 1_000) }),
    defaultBound.lines
  )
})

/** What is masked of old results (spec 5.4). */
const MaskingSettings = Schema.Struct({
  protect: usually(
    Natural.annotate({
      description: "Tokens of the newest results that stay as they are",
      expected: numberOf("tokens", 50_000)
    }),
    defaultMasking.protect
  ),
  least: usually(
    Natural.annotate({
      description: "Tokens that have to be gained at once",
      expected: numberOf("tokens", 30_000)
    }),
    defaultMasking.least
  )
})

/** When an agent counts as going round in circles (spec 12). */
const LoopSettings = Schema.Struct({
  calls: usually(
    Positive.annotate({ description: "Equal calls in a row that are a loop", expected: countOf("calls", 5) }),
    5
  ),
  content: usually(
    Positive.annotate({ description: "Repetitions of a passage that are a loop", expected: countOf("times", 10) }),
    10
  ),
  chunk: usually(
    Positive.annotate({ description: "Characters of such a passage", expected: countOf("characters", 50) }),
    50
  ),
  history: usually(
    Positive.annotate({
      description: "Characters of the answer that are looked back on",
      expected: countOf("characters", 5_000)
    }),
    5_000
  ),
  checkAfter: usually(
    Positive.annotate({
      description: "Turns of one message after which a model is asked whether it goes in circles",
      expected: countOf("turns", 30)
    }),
    30
  )
})

/** How a model mends edits (spec 14). */
const CorrectionSettings = Schema.Struct({
  cache: usually(
    Positive.annotate({
      description: "Answers that are kept for when the same is asked again",
      expected: countOf("answers", 50)
    }),
    50
  )
})

/** Two models, and what of the conversation is shown to who picks one (seed 002, spec 12). */
const RouterSettings = Schema.Struct({
  flash: Schema.NonEmptyString.annotate({
    description: "The model for what is easy",
    expected: "the name of a model, such as gemini-2.5-flash"
  }),
  pro: Schema.NonEmptyString.annotate({
    description: "The model for what is hard",
    expected: "the name of a model, such as gemini-2.5-pro"
  }),
  search: usually(
    Positive.annotate({
      description: "The newest messages among which is looked for words",
      expected: countOf("messages", 20)
    }),
    20
  ),
  turns: usually(
    Positive.annotate({ description: "The messages of those that are shown", expected: countOf("messages", 4) }),
    4
  )
})

const memory = Schema.Struct({
  fileNames: usually(
    Schema.Array(MemoryName).annotate({
      description:
        "What files of memory are called, the first being the one that is added to; your own are called as your home's settings say",
      expected: `a list of names without folders that do not begin with a dot, such as ["GEMINI.md", "AGENTS.md"]`
    }),
    ["GEMINI.md", "AGENTS.md", "PALIMPSEST.md"]
  ),
  boundaries: usually(
    Schema.Array(FileName).annotate({
      description: "What marks the top folder of a project; with none, nothing above the working folder is looked at",
      expected: `a list of names without folders, such as [".git"]`
    }),
    [".git"]
  ),
  maxDirs: usually(
    Positive.annotate({
      description: "Folders below the working folder that are searched",
      expected: countOf("folders", 200)
    }),
    200
  ),
  importFormat: usually(
    Schema.Literals(["tree", "flat"]).annotate({
      description: "Whether an imported file stands where it is imported, or all stand one after the other",
      expected: `"tree" or "flat"`
    }),
    "tree"
  ),
  importDepth: usually(
    Natural.annotate({ description: "How deep imports may lead", expected: numberOf("steps", 5) }),
    5
  ),
  respectGitIgnore: usually(flag("Whether folders that .gitignore names are left out"), false),
  respectGeminiIgnore: usually(flag("Whether folders that .geminiignore names are left out"), true),
  downward: usually(flag("Whether files in folders below the working folder are taken too"), true),
  onTouch: usually(flag("Whether the files of a folder are read once a tool touches it"), true)
})

const prompt = Schema.Struct({
  size: usually(
    PromptSize.annotate({
      description: "How much a model is told about how to work",
      expected: `"full", "minimal" or "none"`
    }),
    "full"
  ),
  sections: usually(
    Schema.Record(Schema.String, Schema.Boolean).annotate({
      description: "Sections of the system prompt, by their key, that are in it or not",
      expected: `an object such as {"git": false}`
    }),
    {}
  )
})

const environment = Schema.Struct({
  tree: usually(flag("Whether a model is shown the tree of the working folder"), true),
  items: usually(
    Natural.annotate({ description: "The most files and folders in that tree", expected: numberOf("items", 200) }),
    200
  )
})

const hooksConfig = Schema.Struct({
  enabled: usually(flag("Whether hooks run"), true),
  disabled: usually(
    Schema.Array(Schema.NonEmptyString).annotate({
      description: "Hooks that do not run, by name, or by command where they have none",
      expected: `a list of names, such as ["format"]`
    }),
    []
  ),
  timeout: usually(
    Positive.annotate({
      description: "Milliseconds that a hook may take that says nothing else",
      expected: countOf("milliseconds", 60_000)
    }),
    hookTimeout
  )
})

const ide = Schema.Struct({
  enabled: usually(flag("Whether a model is told what is open in the editor"), true),
  file: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description:
        "The file in which the editor says so; a relative path is meant from the home folder of this program",
      expected: "the path of a file"
    })
  ),
  openFiles: usually(
    Positive.annotate({ description: "The most open files that are told", expected: countOf("files", 10) }),
    defaultIdeLimits.openFiles
  ),
  selection: usually(
    Positive.annotate({
      description: "The most characters of a selection that are told",
      expected: countOf("characters", 16_384)
    }),
    defaultIdeLimits.selection
  )
})

const files = Schema.Struct({
  lines: usually(
    Positive.annotate({ description: "Lines that are read of a file at once", expected: countOf("lines", 2_000) }),
    usualLines
  ),
  lineLength: usually(
    Positive.annotate({
      description: "Characters after which a line is cut off",
      expected: countOf("characters", 2_000)
    }),
    widestLine
  ),
  bytes: usually(
    Positive.annotate({
      description: "Size of the largest file that is read",
      expected: countOf("bytes", 20_971_520)
    }),
    20_971_520
  ),
  respectGitIgnore: usually(flag("Whether files that .gitignore names are left out"), true),
  respectGeminiIgnore: usually(flag("Whether files that .geminiignore names are left out"), true)
})

const telemetry = Schema.Struct({
  enabled: usually(flag("Whether what happens is recorded"), false),
  file: Schema.optionalKey(
    Schema.NonEmptyString.annotate({
      description:
        "The file it is recorded in, one JSON object a line; a relative path is meant from the home folder of this program",
      expected: "the path of a file"
    })
  ),
  endpoint: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isPattern(/^https?:\/\//i)).annotate({
      description: "The collector it is sent to over OTLP",
      expected: "an address such as http://localhost:4318"
    })
  ),
  prompts: usually(flag("Whether what is said to and by the model is recorded too"), false),
  buffer: usually(
    Positive.annotate({
      description: "The newest events that are kept for looking at",
      expected: countOf("events", 100)
    }),
    100
  )
})

/** All settings. Its encoded side is what stands in a file; decoding fills in what holds where nothing is said. */
export const Settings = Schema.Struct({
  model: usually(
    Schema.NonEmptyString.annotate({
      description: "The model of conversations that begin",
      expected: "the name of a model, such as gemini-2.5-pro"
    }),
    "gemini-2.5-flash"
  ),
  models: usually(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        compressionThreshold: Schema.optionalKey(
          Share.annotate({
            description: "Share of this model's window that triggers a compression",
            expected: "a share from 0 to 1, such as 0.5"
          })
        ),
        window: Schema.optionalKey(
          Positive.annotate({
            description: "This model's window, also of one that is not known here",
            expected: "a whole number of tokens, such as 200000"
          })
        )
      })
    ).annotate({
      description: "What holds for single models, by name",
      expected: `an object such as {"gemini-2.5-pro": {"compressionThreshold": 0.3, "window": 200000}}`
    }),
    {}
  ),
  strategy: usually(
    StrategyName.annotate({
      description: "How conversations are compressed: by this program's own way, or like Gemini CLI",
      expected: `"palimpsest" or "gemini"`
    }),
    "palimpsest"
  ),
  compressionThreshold: usually(
    Share.annotate({
      description:
        "Share of the window that triggers a compression; 0 counts as not set, 1 waits until there is no other way",
      expected: "a share from 0 to 1, such as 0.5"
    }),
    0.5
  ),
  preserve: usually(
    Share.annotate({
      description: "Share of the conversation, its newest part, that a compression keeps",
      expected: "a share from 0 to 1, such as 0.3"
    }),
    0.3
  ),
  minGain: usually(
    Share.annotate({
      description: "Least share of the request that a compression has to save; with strategy gemini 0 where not set",
      expected: "a share from 0 to 1, such as 0.1"
    }),
    0.1
  ),
  toolBudget: usually(
    Natural.annotate({
      description: "Tokens of tool results that a compression keeps in full, the newest first",
      expected: numberOf("tokens", 50_000)
    }),
    50_000
  ),
  overflowFactor: usually(
    Share.check(Schema.isGreaterThan(0)).annotate({
      description: "The most that a message may take of what is left of the window",
      expected: "a share above 0, at most 1"
    }),
    1
  ),
  window: Schema.optionalKey(
    Positive.annotate({
      description: "The window of every model that models does not name, in place of the known one",
      expected: "a whole number of tokens, such as 200000"
    })
  ),
  attempts: usually(
    Schema.Struct({
      calls: usually(
        Positive.annotate({ description: "How often a call that fails is made", expected: countOf("calls", 10) }),
        10
      ),
      answers: usually(
        Positive.annotate({
          description: "How often is asked where an answer cannot be used",
          expected: countOf("requests", 4)
        }),
        4
      )
    }).annotate({
      description: "How often is tried again",
      expected: `an object such as {"calls": 10, "answers": 4}`
    }),
    {}
  ),
  sessionRetention: Schema.optionalKey(
    Retention.annotate({
      description: "Which sessions are deleted by themselves; not set: none",
      expected: `an object such as {"maxAge": "30d", "maxCount": 100}`
    })
  ),
  redactSecrets: usually(
    flag(
      "Whether keys, tokens and passwords are left out of what a summarizing model is sent and of what recall gives it"
    ),
    true
  ),
  titles: usually(flag("Whether a small model gives sessions a title"), true),
  approve: usually(
    ApprovalMode.annotate({
      description: "Which calls of tools run without asking",
      expected: `"none", "edits", "all" or "plan"`
    }),
    "none"
  ),
  allowed: usually(
    Names.annotate({
      description: "What was allowed for always",
      expected: `a list such as ["edit", "shell:git status"]`,
      asIs: true
    }),
    []
  ),
  askForBuildFiles: usually(
    flag(
      "Whether edits of Makefiles and other files that build, test or install are asked for where edits run unasked"
    ),
    false
  ),
  maxTurns: usually(
    Positive.annotate({
      description: "Requests to the model that one message may lead to",
      expected: "a whole number above 0, such as 100"
    }),
    100
  ),
  toolOutput: usually(
    ToolOutputSettings.annotate({
      description: "How much of a tool's result enters the conversation",
      expected: `an object such as {"most": 40000, "form": "last-lines"}`
    }),
    {}
  ),
  summarizeToolOutput: usually(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        tokenBudget: Schema.optionalKey(
          Positive.annotate({ description: "Tokens of the summary", expected: countOf("tokens", 2_000) })
        )
      })
    ).annotate({
      description: "Tools whose results a model summarises before they enter the conversation",
      expected: `an object such as {"run_shell_command": {"tokenBudget": 2000}}`
    }),
    {}
  ),
  masking: usually(
    Schema.Union([Schema.Literal(false), MaskingSettings]).annotate({
      description: "When old results of tools are shown by their ends only; false: never",
      expected: `false, or an object such as {"protect": 50000, "least": 30000}`
    }),
    {}
  ),
  loopDetection: usually(
    Schema.Union([Schema.Boolean, LoopSettings]).annotate({
      description: "Whether and when it is noticed that a model goes round in circles",
      expected: `true, false, or an object such as {"calls": 5, "content": 10}`
    }),
    true
  ),
  router: usually(
    Schema.Union([Schema.Boolean, RouterSettings]).annotate({
      description: "Whether a small model picks the model of each message, and of which two",
      expected: `true, false, or two models such as {"flash": "gemini-2.5-flash", "pro": "gemini-2.5-pro"}`
    }),
    false
  ),
  allowPrivateNetwork: usually(flag("Whether tools may reach loopback, link-local and private addresses"), false),
  passEnvironment: usually(
    Names.annotate({
      description: "Variables that commands see although they look like secrets",
      expected: `a list of names such as ["GITHUB_TOKEN"]`
    }),
    []
  ),
  mcpServers: usually(
    McpServersSettings.annotate({
      description: "MCP servers, by name, whose tools are offered",
      expected: `an object of servers such as {"files": {"command": "files-server", "args": []}} or {"docs": {"url": "https://example.com/mcp"}}`,
      asIs: true
    }),
    {}
  ),
  editCorrection: usually(
    Schema.Union([Schema.Boolean, CorrectionSettings]).annotate({
      description: "Whether a model may correct an edit that found nothing to replace",
      expected: `true, false, or an object such as {"cache": 50}`
    }),
    false
  ),
  agents: usually(
    Schema.Record(Schema.String, Schema.Boolean).annotate({
      description: "Agents, by name, that are offered or not",
      expected: `an object such as {"browser_agent": true}`
    }),
    {}
  ),
  backgroundAgents: usually(flag("Whether a model may start agents that work beside it, and talk with them"), false),
  memory: usually(
    memory.annotate({
      description: "Which files tell a model what it should always know",
      expected: `an object such as {"fileNames": ["GEMINI.md"], "maxDirs": 200}`
    }),
    {}
  ),
  prompt: usually(
    prompt.annotate({
      description: "The system prompt",
      expected: `an object such as {"size": "minimal"}`
    }),
    {}
  ),
  environment: usually(
    environment.annotate({
      description: "What a model is told about where it is",
      expected: `an object such as {"tree": true, "items": 200}`
    }),
    {}
  ),
  hooks: usually(
    HooksSettings.annotate({
      description: "Commands that run when something happens, by event",
      expected: `an object such as {"AfterTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": "npm run format"}]}]}`,
      asIs: true
    }),
    {}
  ),
  hooksConfig: usually(
    hooksConfig.annotate({
      description: "What holds for all hooks",
      expected: `an object such as {"enabled": true, "timeout": 60000}`
    }),
    {}
  ),
  ide: usually(
    ide.annotate({
      description: "What is told of the editor",
      expected: `an object such as {"enabled": true, "openFiles": 10}`
    }),
    {}
  ),
  files: usually(
    files.annotate({
      description: "How files are read",
      expected: `an object such as {"lines": 2000, "respectGitIgnore": true}`
    }),
    {}
  ),
  includeDirectories: usually(
    Names.annotate({
      description: "Folders besides the working folder that tools may use; relative paths are meant from there",
      expected: `a list of folders such as ["../docs"]`
    }),
    []
  ),
  loadMemoryFromIncludeDirectories: usually(flag("Whether memory is taken from those folders too"), false),
  shellIdle: usually(
    Natural.annotate({
      description: "Seconds without output after which a command is ended; 0: never",
      expected: numberOf("seconds", 300)
    }),
    300
  ),
  telemetry: usually(
    telemetry.annotate({
      description: "What is recorded of what happens",
      expected: `an object such as {"enabled": true, "file": "events.jsonl"}`
    }),
    {}
  ),
  folderTrust: usually(flag("Whether nothing is taken from a folder before it is trusted"), true)
})

/** All settings with a value each, save those that mean nothing where they are not set. */
export type Settings = typeof Settings.Type

/** What stands in a settings file. What is absent was left to somebody else. */
export const SettingsFile = Schema.toEncoded(Settings)
export type SettingsFile = typeof Settings.Encoded

/** The name of a setting. */
export type SettingName = keyof typeof Settings.fields

const fill = Schema.decodeSync(Settings)

/** Filled in once, however many ask: it takes a millisecond. */
const filled = new WeakMap<SettingsFile, Settings>()

/** What holds, with what is set in places that have a say: the rest as it usually is. */
export const withDefaults = (file: SettingsFile): Settings => {
  // Like the original, the strategy that is kept like it takes any gain (CLI contract, --min-gain).
  const settings = filled.get(file) ?? fill(file.strategy === "gemini" ? { minGain: 0, ...file } : file)
  filled.set(file, settings)
  return settings
}

/** What holds where nobody sets anything. */
export const defaults: Settings = withDefaults({})

/** When an agent goes round in circles, with all its numbers; undefined: that is not looked for. */
export const loopsOf = (setting: SettingsFile["loopDetection"] = true): typeof LoopSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(LoopSettings)(setting === true ? {} : setting)

/** How a model mends edits, with all its numbers; undefined: none does. */
export const correctionOf = (
  setting: SettingsFile["editCorrection"] = false
): typeof CorrectionSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(CorrectionSettings)(setting === true ? {} : setting)

/** The models that are picked from, and what is shown to who picks; undefined: none is picked. */
export const routerOf = (setting: SettingsFile["router"] = false): typeof RouterSettings.Type | undefined =>
  setting === false ? undefined : Schema.decodeSync(RouterSettings)(setting === true ? usualModels : setting)

/**
 * Settings that only the home folder's file has a say in: a folder that somebody else made must neither delete a person's
 * conversations nor decide what may be done on their machine, what is read outside of it, or what leaves the machine.
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

/** Whether only the home folder's file has a say in it. */
export const isHomeOnly = (name: string): boolean => homeOnly.some((key) => key === name)

/** What of a working folder's settings is not heeded. */
export const notHeeded = (workspace: object): ReadonlyArray<string> => Object.keys(workspace).filter(isHomeOnly)
