import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Settings } from "../../../src/domain/settings/Settings.ts"
import {
  environmentNames,
  emptySettings,
  parseSettings,
  strictJson
} from "../../../src/domain/settings/SettingsText.ts"
import { all } from "../../support/settings.ts"

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

  it.each([
    ["a comment to the end of the line", `{\n"model": "m" // "no"\n}`, { model: "m" }],
    ["a comment between marks, over lines", `/* { */{"window": /* 1,\n */ 5}`, { window: 5 }],
    ["commas before closing brackets", `{"a": [1, 2, ], "b": {"c": 1,},\n}`, { a: [1, 2], b: { c: 1 } }],
    ["a comma, a comment, then the bracket", `{"a": 1, // last\n}`, { a: 1 }],
    ["what looks like all that in a string", `{"a": "// no, /* no */ ,} \\" ,]"}`, { a: `// no, /* no */ ,} " ,]` }],
    ["a byte order mark", `\uFEFF{"a": 1}`, { a: 1 }]
  ] as const)("%s", (_rule, text, value) => {
    const strict = strictJson(text)
    assert.deepStrictEqual(JSON.parse(strict), value)
    assert.deepStrictEqual([strict.length, strict.split("\n").length], [text.length, text.split("\n").length])
  })

  it.each([
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
    ["a share above 1", `{"compressionThreshold": 1.5}`, "compressionThreshold", /fraction from 0 to 1/],
    ["a share in words", `{"compressionThreshold": "half"}`, "compressionThreshold", /fraction from 0 to 1/],
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
  ] as const)("%s is an error that names the key and the expected value", (_rule, text, key, expected) => {
    const read = parseSettings(text)
    assert.isTrue(Result.isFailure(read))
    if (Result.isFailure(read)) {
      assert.strictEqual(read.failure.key, key)
      assert.match(read.failure.text, expected)
    }
  })

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

  it("an editor's $schema is accepted", () => {
    const read = parseSettings(`{"$schema": "./settings.schema.json"}`)
    assert.deepStrictEqual(read._tag === "Success" ? read.success.unknown : undefined, [])
  })

  it.each([
    ["a comment that never ends", "/*".repeat(300_000)],
    ["a text that never ends", `{"a": "${'\\"'.repeat(300_000)}`],
    ["commas without end", `{"a": 1${",".repeat(600_000)}`],
    ["brackets without end", "[".repeat(600_000)]
  ] as const)("is rejected in linear time: %s", (_rule, text) => {
    assert.isTrue(Result.isFailure(parseSettings(text)))
  })
})

describe("variables in settings", () => {
  const environment = { NAME: "gemini-x", BLANK: "", DOCS: "/srv/$NAME" }
  it.each([
    ["a bare name", `{"model": "$NAME"}`, { model: "gemini-x" }],
    ["a name in braces, within more", `{"model": "a-\${NAME}-b"}`, { model: "a-gemini-x-b" }],
    ["a default where it is not set", `{"model": "\${NONE:-usual}"}`, { model: "usual" }],
    ["a default where it is blank", `{"model": "\${BLANK:-usual}"}`, { model: "usual" }],
    ["a default that is not needed", `{"model": "\${NAME:-usual}"}`, { model: "gemini-x" }],
    ["in lists, and once only", `{"includeDirectories": ["$DOCS"]}`, { includeDirectories: ["/srv/$NAME"] }],
    ["not where somebody else fills them in", `{"allowed": ["shell:$NAME"]}`, { allowed: ["shell:$NAME"] }],
    ["not in commands of hooks", `{"hooks": {"AfterTool": ["$NAME"]}}`, { hooks: { AfterTool: ["$NAME"] } }],
    ["not in keys", `{"agents": {"$NAME": true}}`, { agents: { $NAME: true } }]
  ] as const)("%s", (_rule, text, expected) => {
    const read = parseSettings(text, environment)
    assert.deepStrictEqual(read._tag === "Success" ? { ...read.success.settings } : read.failure, expected)
    assert.deepStrictEqual(read._tag === "Success" ? read.success.missing : undefined, [])
  })

  it("an unset one stays as written, and is reported with its key", () => {
    const read = parseSettings(`{"ide": {"file": "$NONE/x", "enabled": true}}`, environment)
    assert.deepStrictEqual(read._tag === "Success" ? read.success.missing : undefined, [
      { key: "ide.file", name: "NONE" }
    ])
    assert.strictEqual(read._tag === "Success" ? read.success.settings.ide?.file : undefined, "$NONE/x")
  })

  it("the expanded value is validated", () => {
    const read = parseSettings(`{"telemetry": {"endpoint": "$NAME"}}`, environment)
    assert.strictEqual(read._tag === "Failure" ? read.failure.key : undefined, "telemetry.endpoint")
    assert.deepStrictEqual(environmentNames({ model: "$A ${B:-c}", allowed: ["$D"] }), ["A", "B"])
  })
})
