import { assert, describe, it } from "@effect/vitest"
import { Predicate, Result, Schema } from "effect"
import { readFileSync } from "node:fs"
import { translateGeminiSettings, type Translation } from "../../../src/domain/settings/GeminiSettings.ts"
import { withSetting } from "../../../src/domain/settings/SettingsEdits.ts"
import { setValues, valueAt, withValue } from "../../../src/domain/settings/SettingsKey.ts"
import { jsonOf, parseSettings } from "../../../src/domain/settings/SettingsText.ts"
import { type JsonPath, pathText } from "../../../src/domain/settings/SkippedSetting.ts"
import { corpus } from "../../support/corpus.ts"
import { runsOf } from "../../support/runs.ts"

type Json = Readonly<Record<string, unknown>>

const taken = ({ taken: rows }: Translation) => rows.map(({ from, to, value }) => [pathText(from), to.join("."), value])
const left = ({ left: rows }: Translation) => rows.map((row) => `${pathText(row.from)}: ${row.why}`)
const kept = ({ kept: rows }: Translation) =>
  rows.map(
    ({ from, isSame }) =>
      `${pathText(from)}: ${isSame ? "is so here already" : "something else is set here, which stays"}`
  )

describe("imported keys", () => {
  const cases = corpus<readonly [from: string, value: unknown, to: string, becomes: unknown]>("gemini-settings")
  for (const [from, value, to, becomes] of cases) {
    it(`${from} = ${JSON.stringify(value)} is ${to}`, () => {
      const rows = translateGeminiSettings(settingsWith(from, value), {})
      assert.deepStrictEqual(taken(rows), [[from, to, becomes]])
      assert.deepStrictEqual(left(rows), [])
    })
  }
})

/** Settings in which one path has a value. */
const settingsWith = (path: string, value: unknown): Json => {
  const settings = withValue({}, path.split("."), value)
  return Predicate.isObject(settings) ? settings : {}
}

describe("skipped keys and reasons", () => {
  const server = (fields: Json): Json => ({ mcpServers: { a: fields } })
  const cases: ReadonlyArray<readonly [rule: string, settings: Json, from: string, why: RegExp]> = [
    ["an unknown key", { nonsense: { a: 1, b: [2] } }, "nonsense", /^there is no such setting$/],
    ["a name for several models", { model: { name: "auto" } }, "model.name", /^is not the name of a model;/],
    [
      "a threshold of another kind",
      { model: { compressionThreshold: "half" } },
      "model.compressionThreshold",
      /^expected /
    ],
    ["a threshold out of range", { model: { compressionThreshold: 70 } }, "model.compressionThreshold", /^expected /],
    ["no limit", { model: { maxSessionTurns: -1 } }, "model.maxSessionTurns", /^means no limit/],
    [
      "a period that is none",
      { general: { sessionRetention: { maxAge: "1Y" } } },
      "general.sessionRetention.maxAge",
      /^expected /
    ],
    [
      "retention that is off",
      { general: { sessionRetention: { enabled: false, maxAge: "9d" } } },
      "general.sessionRetention.maxAge",
      /switched off/
    ],
    [
      "trust that is off",
      { security: { folderTrust: { enabled: false } } },
      "security.folderTrust.enabled",
      /^would trust every folder/
    ],
    [
      "calls that run unasked",
      { tools: { allowed: ["run_shell_command"] } },
      "tools.allowed",
      /^approvals are not imported;/
    ],
    [
      "a collector for gRPC",
      { telemetry: { otlpEndpoint: "http://localhost:4317" } },
      "telemetry.otlpEndpoint",
      /^uses gRPC/
    ],
    ["a server that is none", { mcpServers: { a: 1 } }, "mcpServers.a", /^is no server$/],
    [
      "a server of an old kind",
      server({ url: "https://a.example", type: "sse" }),
      "mcpServers.a",
      /^uses server-sent events/
    ],
    ["a server named by a variable", server({ command: "$HOME/x" }), "mcpServers.a", /^has variables outside/],
    ["an event that is none", { hooks: { BeforeLunch: [] } }, "hooks.BeforeLunch", /^there is no such event$/],
    ["hooks that are no list", { hooks: { BeforeTool: {} } }, "hooks.BeforeTool", /^expected /],
    [
      "a hook without a command",
      { hooks: { BeforeTool: [{ hooks: [{ type: "command" }] }] } },
      "hooks.BeforeTool[0].hooks[0]",
      /^it has no command$/
    ],
    [
      "a matcher that is no text",
      { hooks: { BeforeTool: [{ matcher: 1, hooks: [] }] } },
      "hooks.BeforeTool[0]",
      /^its matcher is not a string$/
    ]
  ]
  it.each(cases)("%s", (_, settings, from, why) => {
    const rows = translateGeminiSettings(settings, {})
    assert.deepStrictEqual(taken(rows), [])
    assert.match(rows.left.find((row) => pathText(row.from) === from)?.why ?? "", why)
  })

  it("the newer of two names for a setting wins", () => {
    const rows = translateGeminiSettings(
      { model: { compressionThreshold: 0.4 }, chatCompression: { contextPercentageThreshold: 0.7 } },
      {}
    )
    assert.deepStrictEqual(taken(rows), [["model.compressionThreshold", "compressionThreshold", 0.4]])
    assert.deepStrictEqual(left(rows), [
      "chatCompression.contextPercentageThreshold: model.compressionThreshold says it already"
    ])
  })

  it("the older name is used when the newer has an invalid value", () => {
    const rows = translateGeminiSettings(
      { model: { compressionThreshold: 7 }, chatCompression: { contextPercentageThreshold: 0.7 } },
      {}
    )
    assert.deepStrictEqual(taken(rows), [["chatCompression.contextPercentageThreshold", "compressionThreshold", 0.7]])
  })

  it("unknown keys of a server are reported, and the server is imported", () => {
    const rows = translateGeminiSettings(
      { mcpServers: { a: { command: "x", trust: true, excludeTools: ["y"], url: 1 } } },
      {}
    )
    assert.deepStrictEqual(taken(rows), [])
    const others = translateGeminiSettings(
      { mcpServers: { a: { command: "x", trust: true, excludeTools: ["y"] } } },
      {}
    )
    assert.deepStrictEqual(taken(others), [["mcpServers.a", "mcpServers.a", { command: "x" }]])
    assert.deepStrictEqual(left(others), [
      "mcpServers.a.trust: its tools ask like all others",
      "mcpServers.a.excludeTools: all its tools are offered here, and ask before they run"
    ])
  })

  it("invalid parts of a hook are dropped, and other hooks imported", () => {
    const good = { type: "command", command: "true" }
    const rows = translateGeminiSettings(
      {
        hooks: {
          AfterTool: [{ sequential: "yes", hooks: [{ ...good, timeout: "5s" }, { type: "plugin" }] }, { hooks: [] }]
        }
      },
      {}
    )
    assert.deepStrictEqual(taken(rows), [["hooks.AfterTool", "hooks.AfterTool", [{ hooks: [good] }]]])
    assert.sameMembers(
      rows.left.map(({ from }) => pathText(from)),
      [
        "hooks.AfterTool[0].sequential",
        "hooks.AfterTool[0].hooks[0].timeout",
        "hooks.AfterTool[0].hooks[1]",
        "hooks.AfterTool[1]"
      ]
    )
  })

  it("reports name keys but never values, which may be secrets", () => {
    const secret = "sk-live-4711"
    const rows = translateGeminiSettings(
      {
        apiKey: secret,
        mcpServers: { a: { command: 1, env: { KEY: secret } }, b: { url: secret } },
        model: { name: [secret] }
      },
      {}
    )
    assert.notInclude(JSON.stringify([left(rows), kept(rows)]), secret)
  })
})

describe("what is set here already", () => {
  it("is kept, whatever its value", () => {
    const gemini = {
      model: { name: "a", disableLoopDetection: true },
      context: { discoveryMaxDirs: 5, importFormat: "flat" }
    }
    const rows = translateGeminiSettings(gemini, { model: "b", loopDetection: { calls: 3 }, memory: { maxDirs: 5 } })
    assert.deepStrictEqual(taken(rows), [["context.importFormat", "memory.importFormat", "flat"]])
    assert.deepStrictEqual(kept(rows), [
      "model.name: something else is set here, which stays",
      "model.disableLoopDetection: something else is set here, which stays",
      "context.discoveryMaxDirs: is so here already"
    ])
  })

  it("is kept where it blocks the place", () => {
    const rows = translateGeminiSettings(
      { experimental: { toolOutputMasking: { toolProtectionThreshold: 5 } } },
      { masking: false }
    )
    assert.deepStrictEqual(kept(rows), [
      "experimental.toolOutputMasking.toolProtectionThreshold: something else is set here, which stays"
    ])
  })
})

// The rule of the whole: no key is lost in silence.

/** All values of a document, by their paths: what is no object, and lists of plain values. */
const leavesOf = (value: unknown, path: JsonPath = []): ReadonlyArray<JsonPath> => {
  const parts: ReadonlyArray<readonly [string | number, unknown]> = Array.isArray(value)
    ? value.some((one) => typeof one === "object" && one !== null && !Array.isArray(one))
      ? [...value.entries()]
      : []
    : Predicate.isObject(value)
      ? Object.entries(value)
      : []
  return parts.length === 0
    ? path.length === 0
      ? []
      : [path]
    : parts.flatMap(([name, one]) => leavesOf(one, [...path, name]))
}

/** The rows that speak for a value: those that stand nearest to it. */
const speakers = ({ kept: same, left: none, taken: some }: Translation, leaf: JsonPath) => {
  const above = [...some, ...same, ...none].filter(({ from }) => from.every((name, at) => leaf[at] === name))
  const nearest = Math.max(...above.map(({ from }) => from.length))
  return above.filter(({ from }) => from.length === nearest)
}

const paths = [
  "model",
  "model.name",
  "model.compressionThreshold",
  "model.maxSessionTurns",
  "model.summarizeToolOutput.shell",
  "model.unheard",
  "chatCompression.contextPercentageThreshold",
  "context.fileName",
  "context.fileFiltering.respectGitIgnore",
  "context.fileFiltering",
  "contextFileName",
  "tools.core",
  "tools.shell",
  "tools.truncateToolOutputThreshold",
  "tools.enableToolOutputTruncation",
  "general.sessionRetention",
  "general.sessionRetention.maxAge",
  "mcpServers",
  "mcpServers.one",
  "mcpServers.one.command",
  "mcpServers.one.trust",
  "mcpServers.two.url",
  "hooks",
  "hooks.BeforeTool",
  "hooks.enabled",
  "hooks.Nothing",
  "agents.overrides.reviewer",
  "agents.overrides.reviewer.enabled",
  "security.folderTrust.enabled",
  "telemetry",
  "telemetry.otlpEndpoint",
  "ui.theme",
  "a.b.c"
] as const

const values: Readonly<Record<string, unknown>> = {
  yes: true,
  no: false,
  "a share": 0.25,
  "a number": 12,
  "a number below 0": -1,
  nothing: null,
  "a text": "gemini-2.5-pro",
  "a period": "30d",
  "an address": "https://one.example/mcp",
  "a list": ["one", "two"],
  "an empty list": [],
  "an empty object": {},
  "an object": { enabled: true, maxAge: "9d", tokenBudget: 5 },
  "a server": { command: "one", args: [], trust: true },
  "a list of lists": [["one"], [{ two: 2 }]],
  "groups of hooks": [
    { matcher: "x", hooks: [{ type: "command", command: "true", timeout: 5 }, { type: "command" }] },
    { hooks: "none" },
    4
  ]
}

const Said = Schema.Struct({ path: Schema.Literals(paths), value: Schema.Literals(Object.keys(values)) })
const Ours = Schema.Struct({
  path: Schema.Literals([
    "model",
    "memory.fileNames",
    "toolOutput.most",
    "mcpServers.one",
    "hooks.BeforeTool",
    "masking"
  ]),
  isSame: Schema.Boolean
})

const ourValues: Readonly<Record<string, unknown>> = {
  model: "gemini-2.5-pro",
  "memory.fileNames": ["one", "two"],
  "toolOutput.most": 12,
  "mcpServers.one": { command: "mine" },
  "hooks.BeforeTool": [],
  masking: false
}

const documentOf = (sets: ReadonlyArray<typeof Said.Type>): Json => {
  const whole = sets.reduce<unknown>((so, { path, value }) => withValue(so, path.split("."), values[value]), {})
  return Predicate.isObject(whole) ? whole : {}
}

describe("completeness", () => {
  it.prop(
    "each key is imported, kept or skipped exactly once; existing values stay, and a second run imports nothing",
    [Schema.Array(Said), Schema.Array(Ours)],
    ([sets, own]) => {
      const gemini = documentOf(sets)
      const start = own.reduce<unknown>(
        (so, { isSame, path }) => (isSame ? withValue(so, path.split("."), ourValues[path]) : so),
        {}
      )
      const ours = Predicate.isObject(start) ? start : {}
      const rows = translateGeminiSettings(gemini, ours)
      for (const leaf of leavesOf(gemini)) assert.lengthOf(speakers(rows, leaf), 1, pathText(leaf))

      const text = rows.taken.reduce(
        (so, { to, value }) => Result.getOrThrow(withSetting(so, to, value)),
        `// mine\n${JSON.stringify(ours)}`
      )
      const { written } = Result.getOrThrow(parseSettings(text))
      for (const { to, value } of rows.taken) assert.deepStrictEqual(valueAt(written, to), value)
      for (const { path, value } of setValues(ours)) assert.deepStrictEqual(valueAt(written, path), value)
      assert.deepStrictEqual(translateGeminiSettings(gemini, written).taken, [])
    },
    { arbitrary: { runs: runsOf(1_500) } }
  )

  it("also holds for the checked-in folder", () => {
    const file = new URL("../../fixtures/gemini-home/home/.gemini/settings.json", import.meta.url)
    const gemini = Result.getOrThrow(jsonOf(readFileSync(file, "utf8")))
    const rows = translateGeminiSettings(gemini, {})
    const all = leavesOf(gemini)
    assert.isAbove(all.length, 100)
    for (const leaf of all) assert.lengthOf(speakers(rows, leaf), 1, pathText(leaf))
    const events = rows.taken.filter(({ to }) => to[0] === "hooks")
    assert.lengthOf(events, 11)
  })
})
