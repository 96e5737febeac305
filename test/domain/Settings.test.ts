import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  homeOnly,
  mergeSettings,
  notHeeded,
  parseSettings,
  type SettingsFile,
  strictJson,
  withAllowed
} from "../../src/domain/Settings.ts"

const all: SettingsFile = {
  model: "gemini-test",
  compressionThreshold: 0.6,
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
  allowPrivateNetwork: true,
  passEnvironment: ["GITHUB_TOKEN"],
  mcpServers: {
    files: { command: "files-server", args: ["--root", "."], env: { A: "b" }, cwd: "/tmp", timeout: 5_000 },
    docs: { url: "https://example.com/mcp", headers: { authorization: "Bearer x" } }
  },
  editCorrection: true,
  agents: { browser_agent: true },
  backgroundAgents: true
}

describe("a settings file", () => {
  it("says every setting there is, and each may be left out", () => {
    assert.deepStrictEqual(parseSettings(JSON.stringify(all)), Result.succeed({ settings: all, unknown: [] }))
    for (const [key, value] of Object.entries(all)) {
      const read = parseSettings(JSON.stringify({ [key]: value }))
      assert.deepStrictEqual(Result.isSuccess(read) ? { ...read.success.settings } : undefined, { [key]: value })
    }
    assert.deepStrictEqual(parseSettings("{}"), Result.succeed({ settings: {}, unknown: [] }))
  })

  for (const [rule, text, value] of [
    ["a comment to the end of the line", `{\n"model": "m" // "no"\n}`, { model: "m" }],
    ["a comment between marks, over lines", `/* { */{"window": /* 1,\n */ 5}`, { window: 5 }],
    ["commas before closing brackets", `{"a": [1, 2, ], "b": {"c": 1,},\n}`, { a: [1, 2], b: { c: 1 } }],
    ["a comma, a comment, then the bracket", `{"a": 1, // last\n}`, { a: 1 }],
    ["what looks like all that in a string", `{"a": "// no, /* no */ ,} \\" ,]"}`, { a: `// no, /* no */ ,} " ,]` }],
    ["a byte order mark", `\uFEFF{"a": 1}`, { a: 1 }]
  ] as const) {
    it(`spec 15, JSON with comments: ${rule}`, () => {
      const strict = strictJson(text)
      assert.deepStrictEqual(JSON.parse(strict), value)
      assert.deepStrictEqual([strict.length, strict.split("\n").length], [text.length, text.split("\n").length])
    })
  }

  for (const [rule, text, key, expected] of [
    ["no JSON", "{model: 1}", undefined, /^expected JSON; /],
    ["two commas", `{"window": 1,,}`, undefined, /^expected JSON; /],
    ["a list", "[]", undefined, /^expected an object/],
    ["an empty model", `{"model": ""}`, "model", /name of a model/],
    ["a share above 1", `{"compressionThreshold": 1.5}`, "compressionThreshold", /share from 0 to 1/],
    ["a share in words", `{"compressionThreshold": "half"}`, "compressionThreshold", /share from 0 to 1/],
    ["no room at all", `{"overflowFactor": 0}`, "overflowFactor", /above 0/],
    ["half a token", `{"window": 0.5}`, "window", /whole number/],
    ["a window of nothing", `{"window": 0}`, "window", /whole number/],
    ["titles in words", `{"titles": "yes"}`, "titles", /true or false/],
    ["a retention that is no object", `{"sessionRetention": "30d"}`, "sessionRetention", /"maxAge": "30d"/],
    ["an age of nothing", `{"sessionRetention": {"maxAge": "0d"}}`, "sessionRetention", /maxAge/],
    ["an age in another unit", `{"sessionRetention": {"maxAge": "3y"}}`, "sessionRetention", /maxAge/],
    ["none to keep", `{"sessionRetention": {"maxCount": 0}}`, "sessionRetention", /maxCount/],
    ["another way to approve", `{"approve": "some"}`, "approve", /"none", "edits" or "all"/],
    ["a grant that is no text", `{"allowed": [1]}`, "allowed", /"shell:git"/],
    ["no turns", `{"maxTurns": 0}`, "maxTurns", /above 0/],
    ["another form of outputs", `{"toolOutput": {"form": "middle"}}`, "toolOutput", /last-lines/],
    [
      "a tool to summarise without an object",
      `{"summarizeToolOutput": {"glob": 5}}`,
      "summarizeToolOutput",
      /tokenBudget/
    ],
    ["masking that is true", `{"masking": true}`, "masking", /^expected false, or/],
    ["a server without an address", `{"mcpServers": {"a": {}}}`, "mcpServers", /"command": "files-server"/],
    ["a server over another protocol", `{"mcpServers": {"a": {"url": "ftp://x"}}}`, "mcpServers", /"url"/],
    ["variables in one text", `{"passEnvironment": "A"}`, "passEnvironment", /list of names/],
    ["agents in a list", `{"agents": ["browser_agent"]}`, "agents", /"browser_agent": true/]
  ] as const) {
    it(`${rule} is an error that names the key and what was expected`, () => {
      const read = parseSettings(text)
      assert.isTrue(Result.isFailure(read))
      if (Result.isFailure(read)) {
        assert.strictEqual(read.failure.key, key)
        assert.match(read.failure.message, expected)
      }
    })
  }

  it("names keys that mean nothing, and leaves them out", () => {
    const read = parseSettings(`{"modle": "m", "titles": true, "sessionRetention": {"maxage": "30d"}, "toString": 1}`)
    assert.deepStrictEqual(
      read,
      Result.succeed({
        settings: { titles: true, sessionRetention: {} },
        unknown: ["modle", "toString", "sessionRetention.maxage"]
      })
    )
  })
})

describe("settings of two places", () => {
  it("the working folder wins, setting by setting", () => {
    assert.deepStrictEqual(mergeSettings({ model: "home", window: 1 }, { model: "here", titles: false }), {
      model: "here",
      window: 1,
      titles: false
    })
  })

  it("what decides over a person's machine is the home folder's alone, and told where another says it", () => {
    assert.deepStrictEqual(
      Object.keys(mergeSettings({}, all)).sort(),
      Object.keys(all)
        .filter((key) => !notHeeded(all).includes(key))
        .sort()
    )
    assert.deepStrictEqual([...notHeeded(all)].sort(), [...homeOnly].sort())
    assert.deepStrictEqual(notHeeded({ model: "m" }), [])
    assert.deepStrictEqual(mergeSettings({ approve: "none", allowed: [] }, { approve: "all", allowed: ["edit"] }), {
      approve: "none",
      allowed: []
    })
  })

  it("what deletes sessions is the home folder's alone", () => {
    assert.deepStrictEqual(mergeSettings({}, { sessionRetention: { maxCount: 1 } }), {})
    assert.deepStrictEqual(
      mergeSettings({ sessionRetention: { maxAge: "30d" } }, { sessionRetention: { maxCount: 1 } }),
      { sessionRetention: { maxAge: "30d" } }
    )
  })
})

describe("what was allowed for always", () => {
  for (const [rule, text, expected] of [
    ["no file", "", `{\n  "allowed": ["edit", "shell:git"]\n}\n`],
    ["an object without anything", "{}", `{\n  "allowed": ["edit", "shell:git"]\n}`],
    ["another setting", `{"window": 5}`, `{"window": 5,\n  "allowed": ["edit", "shell:git"]\n}`],
    [
      "comments and a comma too many",
      `{\n  // mine\n  "window": 5, // {"allowed": [\n}\n`,
      `{\n  // mine\n  "window": 5,\n  "allowed": ["edit", "shell:git"], // {"allowed": [\n}\n`
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
    it(`is added to a file with ${rule}, and all else stays`, () => {
      assert.deepStrictEqual(withAllowed(text, ["edit", "shell:git", "edit"]), Result.succeed(expected))
    })
  }

  it("is not added to a file that is wrong", () => {
    for (const text of ["{", `{"window": "big"}`, `{"allowed": "edit"}`]) {
      assert.isTrue(Result.isFailure(withAllowed(text, ["edit"])))
    }
  })
})
