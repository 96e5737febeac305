import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { defaults, Settings, type SettingsFile } from "../../../src/domain/settings/Settings.ts"
import { dotted, setValues, valueAt, withValue } from "../../../src/domain/settings/SettingsKey.ts"
import {
  environmentNames,
  jsonOf,
  emptySettings,
  parseSettings,
  settingsProblemKey,
  settingsProblemText,
  strictJson,
  withAllowed,
  withoutSetting,
  withSetting
} from "../../../src/domain/settings/SettingsText.ts"
import { strideOf } from "../../support/runs.ts"

const all: SettingsFile = {
  model: "gemini-test",
  compressionThreshold: 0.6,
  compressionModel: ["gemini-test", "anthropic/claude-test"],
  compressionPrepareAt: 0.7,
  overflowFactor: 0.95,
  window: 200_000,
  sessionRetention: { maxAge: "30d", maxCount: 100 },
  titles: false,
  approve: "edits",
  allowed: ["edit", "shell:git"],
  maxTurns: 50,
  toolOutput: { most: 20_000, form: "head-tail-chars" },
  summarizeToolOutput: { run_shell_command: { tokenBudget: 500 } },
  masking: { protect: 50_000, least: 30_000 },
  loopDetection: false,
  router: true,
  askForBuildFiles: true,
  allowPrivateNetwork: true,
  passEnvironment: ["GITHUB_TOKEN"],
  mcpServers: {
    files: { command: "files-server", args: ["--root", "."], env: { A: "b" }, cwd: "/tmp", timeout: 5_000 },
    docs: { url: "https://example.com/mcp", headers: { authorization: "Bearer x" } }
  },
  editCorrection: true,
  agents: { browser_agent: true },
  backgroundAgents: true,
  subagents: { depth: 5, children: 5, running: 8, tasks: 8, parallel: 4, prompt: "minimal", forkTokens: 100_000 },
  models: { "gemini-2.5-pro": { compressionThreshold: 0.3, window: 100_000 } },
  strategy: "gemini",
  preserve: 0,
  redactSecrets: false,
  store: "sqlite:sessions.db",
  minGain: 0.2,
  toolBudget: 0,
  attempts: { calls: 3, answers: 2 },
  memory: {
    fileNames: ["GEMINI.md"],
    firstFound: true,
    fileChars: 20_000,
    totalChars: 60_000,
    boundaries: [],
    maxDirs: 10,
    importFormat: "flat",
    importDepth: 0,
    respectGitIgnore: true,
    respectGeminiIgnore: false,
    downward: false,
    onTouch: false
  },
  memoryFlush: true,
  repeatRules: { headings: ["Red Lines"], chars: 100 },
  prompt: { size: "minimal", sections: { git: false } },
  environment: { tree: false, items: 0 },
  hooks: { AfterTool: [{ matcher: "write_file", hooks: [{ type: "command", command: "npm run format" }] }] },
  hooksConfig: { enabled: false, disabled: ["format"], timeout: 1_000 },
  ide: { enabled: false, file: "ide.json", openFiles: 3, selection: 100 },
  files: { lines: 1, lineLength: 1, bytes: 1, respectGitIgnore: false, respectGeminiIgnore: false },
  includeDirectories: ["../docs"],
  loadMemoryFromIncludeDirectories: true,
  shellIdle: 0,
  terminal: { theme: "contrast", keys: "vim", bellAfter: 0 },
  telemetry: { enabled: true, file: "events.jsonl", endpoint: "http://localhost:4318", prompts: true, buffer: 1 },
  serve: {
    tokens: [{ tenant: "acme", hash: `sha256:${"0".repeat(64)}` }],
    tenants: { acme: { folder: "/srv/acme", limits: { sessions: 1 } } },
    limits: { requests: 1, tokens: 1, sessions: 1, turns: 1, streams: 1 },
    tools: true,
    approve: "edits",
    onDisconnect: "cancel",
    drainSeconds: 0,
    bodyBytes: 1_024
  },
  gateway: {
    upstreams: { openai: "http://127.0.0.1:8000" },
    window: 4_096,
    windows: { "gpt-5": 100_000 },
    threshold: 0.5,
    recall: false,
    showRecalls: true,
    keys: [`sha256:${"0".repeat(64)}`],
    budgets: { requests: 1, tokens: 1 },
    keepDays: 1,
    bodyBytes: 1_024,
    drainSeconds: 0
  },
  folderTrust: false
}

describe("a settings file", () => {
  it("accepts every setting, each optional", () => {
    assert.deepStrictEqual(Object.keys(all).sort(), Object.keys(Settings.fields).sort())
    const whole = parseSettings(JSON.stringify(all))
    assert.deepStrictEqual(
      whole,
      Result.succeed({
        settings: all,
        written: whole._tag === "Success" ? whole.success.written : {},
        unknown: [],
        missing: []
      })
    )
    for (const [key, value] of Object.entries(all)) {
      const read = parseSettings(JSON.stringify({ [key]: value }))
      assert.deepStrictEqual(Result.isSuccess(read) ? { ...read.success.settings } : undefined, { [key]: value })
    }
    assert.deepStrictEqual(parseSettings("{}"), Result.succeed(emptySettings))
  })

  for (const [rule, text, value] of [
    ["a comment to the end of the line", `{\n"model": "m" // "no"\n}`, { model: "m" }],
    ["a comment between marks, over lines", `/* { */{"window": /* 1,\n */ 5}`, { window: 5 }],
    ["commas before closing brackets", `{"a": [1, 2, ], "b": {"c": 1,},\n}`, { a: [1, 2], b: { c: 1 } }],
    ["a comma, a comment, then the bracket", `{"a": 1, // last\n}`, { a: 1 }],
    ["what looks like all that in a string", `{"a": "// no, /* no */ ,} \\" ,]"}`, { a: `// no, /* no */ ,} " ,]` }],
    ["a byte order mark", `\uFEFF{"a": 1}`, { a: 1 }]
  ] as const) {
    it(`${rule}`, () => {
      const strict = strictJson(text)
      assert.deepStrictEqual(JSON.parse(strict), value)
      assert.deepStrictEqual([strict.length, strict.split("\n").length], [text.length, text.split("\n").length])
    })
  }

  for (const [rule, text, key, expected] of [
    ["no JSON", "{model: 1}", undefined, /^expected JSON; /],
    ["two commas", `{"window": 1,,}`, undefined, /^expected JSON; line 1, column 15 should have a name/],
    [
      "a comma that is missing",
      `{\n  // one\n  "window": 1\n  "model": "m"\n}`,
      undefined,
      /line 4, column 3 should have ","/
    ],
    ["a list", "[]", undefined, /^expected an object/],
    ["an empty model", `{"model": ""}`, "model", /name of a model/],
    ["a share above 1", `{"compressionThreshold": 1.5}`, "compressionThreshold", /share from 0 to 1/],
    ["a share in words", `{"compressionThreshold": "half"}`, "compressionThreshold", /share from 0 to 1/],
    ["no room at all", `{"overflowFactor": 0}`, "overflowFactor", /above 0/],
    ["half a token", `{"window": 0.5}`, "window", /whole number/],
    ["a window of nothing", `{"window": 0}`, "window", /whole number/],
    ["titles in words", `{"titles": "yes"}`, "titles", /true or false/],
    ["a retention that is no object", `{"sessionRetention": "30d"}`, "sessionRetention", /"maxAge": "30d"/],
    ["an age of nothing", `{"sessionRetention": {"maxAge": "0d"}}`, "sessionRetention.maxAge", /30d/],
    ["an age in another unit", `{"sessionRetention": {"maxAge": "3y"}}`, "sessionRetention.maxAge", /30d/],
    ["none to keep", `{"sessionRetention": {"maxCount": 0}}`, "sessionRetention.maxCount", /above 0/],
    ["another way to approve", `{"approve": "some"}`, "approve", /"none", "edits", "all" or "plan"/],
    ["a grant that is no text", `{"allowed": [1]}`, "allowed", /"shell:git status"/],
    ["no turns", `{"maxTurns": 0}`, "maxTurns", /above 0/],
    ["another form of outputs", `{"toolOutput": {"form": "middle"}}`, "toolOutput.form", /last-lines/],
    [
      "a tool to summarise without an object",
      `{"summarizeToolOutput": {"glob": 5}}`,
      "summarizeToolOutput.glob",
      /tokenBudget/
    ],
    ["masking that is true", `{"masking": true}`, "masking", /^expected false, or/],
    ["a server without an address", `{"mcpServers": {"a": {}}}`, "mcpServers.a", /"command": "files-server"/],
    ["a server over another protocol", `{"mcpServers": {"a": {"url": "ftp://x"}}}`, "mcpServers.a.url", /"url"/],
    ["variables in one text", `{"passEnvironment": "A"}`, "passEnvironment", /list of names/],
    ["agents in a list", `{"agents": ["browser_agent"]}`, "agents", /"browser_agent": true/],
    ["no folders at all", `{"memory": {"maxDirs": 0}}`, "memory.maxDirs", /whole number of folders above 0/],
    ["a number in quotes", `{"memory": {"importDepth": "5"}}`, "memory.importDepth", /whole number of steps/],
    ["memory that is a list", `{"memory": ["GEMINI.md"]}`, "memory", /"fileNames"/],
    ["memory in another folder", `{"memory": {"fileNames": ["../x.md"]}}`, "memory.fileNames", /without folders/],
    ["memory in the folder above", `{"memory": {"fileNames": [".."]}}`, "memory.fileNames", /without folders/],
    [
      "a share of a model above 1",
      `{"models": {"m": {"compressionThreshold": 2}}}`,
      "models.m.compressionThreshold",
      /0 to 1/
    ],
    ["less than no tokens", `{"masking": {"protect": -1}}`, "masking.protect", /0 or more/],
    ["another strategy", `{"strategy": "claude"}`, "strategy", /"palimpsest" or "gemini"/],
    ["a number beyond all", `{"shellIdle": 1e300}`, "shellIdle", /seconds/],
    ["a collector over another protocol", `{"telemetry": {"endpoint": "file:///x"}}`, "telemetry.endpoint", /http:/],
    ["hooks in a list", `{"hooks": []}`, "hooks", /"AfterTool"/],
    ["a router with one model", `{"router": {"flash": "m"}}`, "router", /two models/],
    ["an object too deep", "[".repeat(65) + "]".repeat(65), undefined, /deeper than 64 levels/]
  ] as const) {
    it(`${rule} is an error that names the key and the expected value`, () => {
      const read = parseSettings(text)
      assert.isTrue(Result.isFailure(read))
      if (Result.isFailure(read)) {
        assert.strictEqual(settingsProblemKey(read.failure), key)
        assert.match(settingsProblemText(read.failure), expected)
      }
    })
  }

  it("reports and ignores unknown keys", () => {
    const read = parseSettings(`{"modle": "m", "titles": true, "sessionRetention": {"maxage": "30d"}, "toString": 1}`)
    assert.deepStrictEqual(
      read,
      Result.succeed({
        settings: { titles: true, sessionRetention: {} },
        written: { modle: "m", titles: true, sessionRetention: { maxage: "30d" }, toString: 1 },
        unknown: [
          { key: "modle", nearest: "model" },
          { key: "sessionRetention.maxage", nearest: "sessionRetention.maxAge" },
          { key: "toString", nearest: undefined }
        ],
        missing: []
      })
    )
  })

  it("invalid hooks are left to the hook runner's own report", () => {
    const read = parseSettings(`{"hooks": {"Never": 5, "AfterTool": [{"hooks": [{"type": "x"}]}]}, "window": 5}`)
    assert.strictEqual(read._tag === "Success" ? read.success.settings.window : undefined, 5)
  })

  it("an editor's $schema is accepted", () => {
    const read = parseSettings(`{"$schema": "./settings.schema.json"}`)
    assert.deepStrictEqual(read._tag === "Success" ? read.success.unknown : undefined, [])
  })

  for (const [rule, text] of [
    ["a comment that never ends", "/*".repeat(300_000)],
    ["a text that never ends", `{"a": "${'\\"'.repeat(300_000)}`],
    ["commas without end", `{"a": 1${",".repeat(600_000)}`],
    ["brackets without end", "[".repeat(600_000)]
  ] as const) {
    it(`is rejected in linear time: ${rule}`, () => {
      assert.isTrue(Result.isFailure(parseSettings(text)))
    })
  }
})

describe("variables in settings", () => {
  const environment = { NAME: "gemini-x", BLANK: "", DOCS: "/srv/$NAME" }
  for (const [rule, text, expected] of [
    ["a bare name", `{"model": "$NAME"}`, { model: "gemini-x" }],
    ["a name in braces, within more", `{"model": "a-\${NAME}-b"}`, { model: "a-gemini-x-b" }],
    ["a default where it is not set", `{"model": "\${NONE:-usual}"}`, { model: "usual" }],
    ["a default where it is blank", `{"model": "\${BLANK:-usual}"}`, { model: "usual" }],
    ["a default that is not needed", `{"model": "\${NAME:-usual}"}`, { model: "gemini-x" }],
    ["in lists, and once only", `{"includeDirectories": ["$DOCS"]}`, { includeDirectories: ["/srv/$NAME"] }],
    ["not where somebody else fills them in", `{"allowed": ["shell:$NAME"]}`, { allowed: ["shell:$NAME"] }],
    ["not in commands of hooks", `{"hooks": {"AfterTool": ["$NAME"]}}`, { hooks: { AfterTool: ["$NAME"] } }],
    ["not in keys", `{"agents": {"$NAME": true}}`, { agents: { $NAME: true } }]
  ] as const) {
    it(rule, () => {
      const read = parseSettings(text, environment)
      assert.deepStrictEqual(read._tag === "Success" ? { ...read.success.settings } : read.failure, expected)
      assert.deepStrictEqual(read._tag === "Success" ? read.success.missing : undefined, [])
    })
  }

  it("an unset one stays as written, and is reported with its key", () => {
    const read = parseSettings(`{"ide": {"file": "$NONE/x", "enabled": true}}`, environment)
    assert.deepStrictEqual(read._tag === "Success" ? read.success.missing : undefined, [
      { key: "ide.file", name: "NONE" }
    ])
    assert.strictEqual(read._tag === "Success" ? read.success.settings.ide?.file : undefined, "$NONE/x")
  })

  it("the expanded value is validated", () => {
    const read = parseSettings(`{"telemetry": {"endpoint": "$NAME"}}`, environment)
    assert.strictEqual(read._tag === "Failure" ? settingsProblemKey(read.failure) : undefined, "telemetry.endpoint")
    assert.deepStrictEqual(environmentNames({ model: "$A ${B:-c}", allowed: ["$D"] }), ["A", "B"])
  })
})
describe("permanent permissions", () => {
  for (const [rule, text, expected] of [
    ["no file", "", `{\n  "allowed": ["edit", "shell:git"]\n}\n`],
    ["an object without anything", "{}", `{\n  "allowed": ["edit", "shell:git"]\n}`],
    ["another setting", `{"window": 5}`, `{"window": 5,\n  "allowed": ["edit", "shell:git"]\n}`],
    [
      "comments and a comma too many",
      `{\n  // mine\n  "window": 5, // {"allowed": [\n}\n`,
      `{\n  // mine\n  "window": 5, // {"allowed": [\n  "allowed": ["edit", "shell:git"]\n}\n`
    ],
    ["an empty list", `{"allowed": [ ]}`, `{"allowed": ["edit", "shell:git" ]}`],
    [
      "a list with comments",
      `{\n  "allowed": [\n    "fetch:a.b", // docs\n    "edit" /* all */,\n  ],\n  "window": 5\n}`,
      `{\n  "allowed": [\n    "fetch:a.b", // docs\n    "edit", "shell:git" /* all */,\n  ],\n  "window": 5\n}`
    ],
    ["all of it", `{"allowed": ["shell:git", "edit"]}`, `{"allowed": ["shell:git", "edit"]}`],
    [
      "the name as a value and deeper down",
      `{"model": "allowed", "agents": {"allowed": true}}`,
      `{"model": "allowed", "agents": {"allowed": true},\n  "allowed": ["edit", "shell:git"]\n}`
    ]
  ] as const) {
    it(`are added to a file with ${rule}, which otherwise stays the same`, () => {
      assert.deepStrictEqual(withAllowed(text, ["edit", "shell:git", "edit"]), Result.succeed(expected))
    })
  }

  it("are not added to an invalid file", () => {
    for (const text of ["{", `{"window": "big"}`, `{"allowed": "edit"}`]) {
      assert.isTrue(Result.isFailure(withAllowed(text, ["edit"])))
    }
  })
})

describe("setting one value", () => {
  for (const [rule, text, path, value, expected] of [
    ["in a file that is not there", "", ["window"], 5, `{\n  "window": 5\n}\n`],
    ["in place of another", `{\n  "window": 5, // five\n}`, ["window"], 6, `{\n  "window": 6, // five\n}`],
    [
      "behind a comment, which stays with its value",
      `{\n  "window": 5 // five\n  /* end */\n}\n`,
      ["model"],
      "m",
      `{\n  "window": 5, // five\n  "model": "m"\n  /* end */\n}\n`
    ],
    [
      "behind a comment on the same line",
      `{"window": 1 /* one */}`,
      ["model"],
      "m",
      `{"window": 1, /* one */\n  "model": "m"\n}`
    ],
    ["with the tabs of the file", `{\n\t"window": 5\n}`, ["model"], "m", `{\n\t"window": 5,\n\t"model": "m"\n}`],
    [
      "with the line ends of the file",
      `{\r\n  "window": 5\r\n}\r\n`,
      ["model"],
      "m",
      `{\r\n  "window": 5,\r\n  "model": "m"\r\n}\r\n`
    ],
    [
      "in an object over lines",
      `{\n  "memory": {\n    "maxDirs": 5\n  }\n}\n`,
      ["memory", "fileNames"],
      ["A", "B"],
      `{\n  "memory": {\n    "maxDirs": 5,\n    "fileNames": ["A", "B"]\n  }\n}\n`
    ],
    [
      "in an object on one line",
      `{"memory": {"maxDirs": 5}}`,
      ["memory", "onTouch"],
      false,
      `{"memory": {"maxDirs": 5, "onTouch": false}}`
    ],
    [
      "in an object that is made for it",
      `{}`,
      ["models", "a.b", "window"],
      5,
      `{\n  "models": {"a.b": {"window": 5}}\n}`
    ],
    [
      "where something else stands in the way",
      `{"masking": false}`,
      ["masking", "protect"],
      1,
      `{"masking": {"protect": 1}}`
    ],
    ["where the name stands twice", `{"window": 1, "window": 2}`, ["window"], 3, `{"window": 1, "window": 3}`],
    ["in a file that it makes right", `{"window": "big"}`, ["window"], 5, `{"window": 5}`],
    ["as it is already", `{ "window" : 5 }`, ["window"], 5, `{ "window" : 5 }`],
    ["beside keys that mean nothing", `{"theme": 1}`, ["window"], 5, `{"theme": 1,\n  "window": 5\n}`]
  ] as const) {
    it(rule, () => {
      assert.deepStrictEqual(withSetting(text, path, value), Result.succeed(expected))
    })
  }

  for (const [rule, text, path, value, key] of [
    ["in what is no JSON", "{", ["window"], 5, undefined],
    ["where something else is wrong", `{"window": "big"}`, ["model"], "m", "window"],
    ["that is wrong itself", `{}`, ["window"], "big", "window"],
    ["that is out of range", `{}`, ["compressionThreshold"], 2, "compressionThreshold"]
  ] as const) {
    it(`rejects ${rule}`, () => {
      const result = withSetting(text, path, value)
      assert.strictEqual(Result.isFailure(result) ? settingsProblemKey(result.failure) : "none", key)
    })
  }
})

describe("removing one value", () => {
  for (const [rule, text, path, expected] of [
    ["the first", `{\n  "window": 5,\n  "model": "m"\n}\n`, ["window"], `{\n  "model": "m"\n}\n`],
    [
      "the last, with the comma before it",
      `{\n  "window": 5,\n  "model": "m"\n}\n`,
      ["model"],
      `{\n  "window": 5\n}\n`
    ],
    [
      "the last, where commas end lines",
      `{\n  "window": 5,\n  "model": "m",\n}\n`,
      ["model"],
      `{\n  "window": 5,\n}\n`
    ],
    ["the only one", `{"window": 5}`, ["window"], `{}`],
    ["one of a line", `{"window": 5, "model": "m"}`, ["window"], `{"model": "m"}`],
    [
      "one of an object",
      `{"memory": {"maxDirs": 5, "onTouch": true}}`,
      ["memory", "maxDirs"],
      `{"memory": {"onTouch": true}}`
    ],
    [
      "one with a comment, which stays",
      `{\n  "window": 5, // five\n  "model": "m"\n}`,
      ["window"],
      `{\n  // five\n  "model": "m"\n}`
    ],
    [
      "one behind a comment with a comma",
      `{"window": 5 /* a, b */, "model": "m"}`,
      ["model"],
      `{"window": 5 /* a, b */}`
    ],
    ["one that stands there twice", `{"window": 5, "titles": true, "window": 6}`, ["window"], `{"titles": true}`],
    ["one that means nothing", `{"theme": 1}`, ["theme"], `{}`],
    ["one that is not there", `{"window": 5}`, ["model"], `{"window": 5}`],
    ["one of a file that is not there", "", ["model"], ""]
  ] as const) {
    it(rule, () => {
      assert.deepStrictEqual(withoutSetting(text, path), Result.succeed(expected))
    })
  }
})

describe("leaves the rest of any file unchanged", () => {
  const pretty = JSON.stringify(all, undefined, 2)
  for (const [look, text] of [
    ["on one line", JSON.stringify(all)],
    ["over lines", pretty],
    ["with tabs and CRLF", JSON.stringify(all, undefined, "\t").replaceAll("\n", "\r\n")],
    [
      "with comments and commas everywhere",
      pretty.replace(/([^[{,:\s])\n/g, "$1, // a, {b\n").replace(/\{\n/g, "{ /* [ */\n")
    ],
    ["without anything", "{}"]
  ] as const) {
    it(look, () => {
      const before = Result.getOrThrow(jsonOf(text))
      const comments = text.match(/\/\/ a, \{b|\/\* \[ \*\//g)?.length
      for (const { path, value } of setValues(defaults).filter((_, at) => at % strideOf(5, 1) === 0)) {
        const set = Result.getOrThrow(withSetting(text, path, value))
        assert.deepStrictEqual(Result.getOrThrow(jsonOf(set)), withValue(before, path, value), dotted(path))
        // What stands within a list or an object goes with it.
        if (typeof value !== "object") assert.strictEqual(set.match(/\/\/ a, \{b|\/\* \[ \*\//g)?.length, comments)
        const unset = Result.getOrThrow(jsonOf(Result.getOrThrow(withoutSetting(text, path))))
        assert.isUndefined(valueAt(unset, path))
        const isThere = valueAt(before, path) !== undefined
        const rest = setValues(before).filter((leaf) => dotted(leaf.path) !== dotted(path))
        const kept = (isThere ? rest : []).filter((leaf) => !dotted(leaf.path).startsWith(`${dotted(path)}.`))
        assert.deepStrictEqual(
          kept.map((leaf) => valueAt(unset, leaf.path)),
          kept.map(({ value }) => value),
          dotted(path)
        )
      }
    })
  }
})
