import { assert, describe, it } from "@effect/vitest"
import { defaults } from "../../../src/domain/settings/Settings.ts"
import {
  dotted,
  keyOf,
  setValues,
  homeOnlyVariables,
  unknownKeyText,
  valueAt,
  parseValue,
  settingVariables,
  withValue
} from "../../../src/domain/settings/SettingsKey.ts"
import { mask, shownValue } from "../../../src/domain/settings/SettingsSecrets.ts"
import { distance } from "../../../src/domain/text/EditDistance.ts"
import { closestName } from "../../../src/domain/text/SpellingSuggestion.ts"

const pathOf = (text: string) => {
  const key = keyOf(text)
  return "accepts" in key ? key.path : undefined
}

describe("a key", () => {
  it.each([
    ["window", ["window"]],
    ["memory.maxDirs", ["memory", "maxDirs"]],
    ["models.gemini-2.5-pro.window", ["models", "gemini-2.5-pro", "window"]],
    ["models.gemini-2.5-pro", ["models", "gemini-2.5-pro"]],
    ["agents.browser_agent", ["agents", "browser_agent"]],
    ["mcpServers.docs.headers.authorization", ["mcpServers", "docs", "headers", "authorization"]],
    ["masking.protect", ["masking", "protect"]],
    ["hooks.AfterTool", ["hooks", "AfterTool"]]
  ] as const)("%s names a setting, also with dots in names", (text, path) => {
    assert.deepStrictEqual(pathOf(text), path)
  })

  for (const [text, said] of [
    ["modle", "there is no setting modle (did you mean model?)"],
    ["memroy.maxDirs", "there is no setting memroy.maxDirs (did you mean memory.maxDirs?)"],
    ["memory.max_dirs", "there is no setting memory.max_dirs (did you mean memory.maxDirs?)"],
    ["compression-threshold", "there is no setting compression-threshold (did you mean compressionThreshold?)"],
    ["maxDirs", "there is no setting maxDirs (did you mean memory.maxDirs?)"],
    ["context.maxDirs", "there is no setting context.maxDirs (did you mean memory.maxDirs?)"],
    ["window.size", "there is no setting window.size (did you mean prompt.size?)"],
    ["theme", "there is no setting theme (did you mean terminal.theme?)"],
    ["spinner", "there is no setting spinner"],
    ["", "there is no setting "],
    ["toString", "there is no setting toString"],
    ["x".repeat(100_000), `there is no setting ${"x".repeat(100_000)}`]
  ] as const) {
    it(`${text.slice(0, 30)} is unknown, with a suggestion`, () => {
      const key = keyOf(text)
      assert.strictEqual("accepts" in key ? undefined : unknownKeyText(key), said)
    })
  }

  it("each leaf of the defaults is a valid key, and its value is valid", () => {
    for (const { path, value } of setValues(defaults)) {
      const key = keyOf(dotted(path))
      assert.isTrue("accepts" in key && key.accepts(value), dotted(path))
    }
  })
})

describe("a value given as text", () => {
  it.each([
    ["window", "200000", 200_000],
    ["window", "64k", 64_000],
    ["window", "1.1k", 1_100],
    ["window", "1Mi", 1_048_576],
    ["compressionThreshold", "50%", 0.5],
    ["compressionThreshold", ".5", 0.5],
    ["titles", "off", false],
    ["titles", "YES", true],
    ["masking", "no", false],
    ["masking", `{"protect": 1}`, { protect: 1 }],
    ["router", "on", true],
    ["model", "gemini-2.5-pro", "gemini-2.5-pro"],
    ["model", "64k", "64k"],
    ["model", `"quoted"`, "quoted"],
    ["memory.fileNames", "A.md, B.md,", ["A.md", "B.md"]],
    ["memory.fileNames", `["A,B.md"]`, ["A,B.md"]],
    ["prompt.size", "minimal", "minimal"],
    ["agents.browser_agent", "true", true],
    ["sessionRetention.maxAge", "30d", "30d"]
  ] as const)("%s %s", (name, text, value) => {
    const key = keyOf(name)
    assert.deepStrictEqual("accepts" in key ? parseValue(key, text) : undefined, { value })
  })

  it.each([
    ["window", "0"],
    ["window", "big"],
    ["window", "1.5"],
    ["compressionThreshold", "150%"],
    ["titles", "maybe"],
    ["masking", "true"],
    ["approve", "some"],
    ["memory.fileNames", "a/b"],
    ["sessionRetention.maxAge", "1h"]
  ] as const)("%s %s is rejected", (name, text) => {
    const key = keyOf(name)
    assert.isTrue("accepts" in key)
    if ("accepts" in key) assert.isUndefined(parseValue(key, text))
  })
})

describe("variables of the environment", () => {
  const names = new Set(settingVariables.map(({ name }) => name))

  it("are named after their settings, in capitals", () => {
    for (const name of [
      "PALIMPSEST_MODEL",
      "PALIMPSEST_COMPRESSION_THRESHOLD",
      "PALIMPSEST_MEMORY_MAX_DIRS",
      "PALIMPSEST_MEMORY_FILE_NAMES",
      "PALIMPSEST_LOOP_DETECTION",
      "PALIMPSEST_PROMPT_SIZE",
      "PALIMPSEST_FILES_RESPECT_GEMINI_IGNORE"
    ]) {
      assert.isTrue(names.has(name), name)
    }
    assert.strictEqual(names.size, settingVariables.length)
  })

  it("do not exist for objects, nor for settings of the home folder only", () => {
    for (const name of [
      "PALIMPSEST_HOOKS",
      "PALIMPSEST_MODELS",
      "PALIMPSEST_APPROVE",
      "PALIMPSEST_TELEMETRY_ENDPOINT"
    ]) {
      assert.isFalse(names.has(name), name)
    }
    const silent = homeOnlyVariables.map(({ name }) => name)
    assert.includeMembers(silent, ["PALIMPSEST_APPROVE", "PALIMPSEST_ALLOWED", "PALIMPSEST_FOLDER_TRUST"])
  })
})

it("values by their path a value that was set is found, and nothing else changes", () => {
  const before = { memory: { maxDirs: 1, onTouch: true }, masking: false }
  assert.deepStrictEqual(withValue(before, ["memory", "maxDirs"], 2), {
    memory: { maxDirs: 2, onTouch: true },
    masking: false
  })
  assert.deepStrictEqual(withValue(before, ["masking", "least"], 2), { memory: before.memory, masking: { least: 2 } })
  assert.deepStrictEqual(withValue(undefined, ["a", "b"], 1), { a: { b: 1 } })
  assert.strictEqual(valueAt(before, ["memory", "toString"]), undefined)
  assert.strictEqual(valueAt(withValue({}, ["__proto__", "x"], 1), ["__proto__", "x"]), 1)
  assert.isFalse("x" in {})
})

describe("displayed settings", () => {
  it("hide variables and headers of servers and hooks, and anything that looks like a secret", () => {
    const key = `AIza${"x".repeat(35)}`
    assert.deepStrictEqual(
      shownValue(["mcpServers"], {
        files: { command: "x", args: ["--api-key", "abc", "--root", "."], env: { A: "b" } },
        docs: { url: "https://me:word@example.com/mcp", headers: { authorization: "Bearer x" } }
      }),
      {
        files: { command: "x", args: ["--api-key", mask("abc"), "--root", "."], env: { A: mask("b") } },
        docs: { url: "https://•••@example.com/mcp", headers: { authorization: mask("Bearer x") } }
      }
    )
    assert.strictEqual(shownValue(["mcpServers", "files", "env", "A"], "b"), "••• (1 character)")
    assert.deepStrictEqual(shownValue(["hooks", "AfterTool"], [{ hooks: [{ command: "x", env: { A: "b" } }] }]), [
      { hooks: [{ command: "x", env: { A: mask("b") } }] }
    ])
    assert.notInclude(String(shownValue(["model"], key)), key)
    assert.deepStrictEqual(shownValue(["memory"], { maxDirs: 1 }), { maxDirs: 1 })
  })

  const words = "s3cr3t"
  const secret: ReadonlyArray<readonly [rule: string, path: string, value: unknown]> = [
    ["all variables of a server", "mcpServers.a.env", { K: words }],
    ["all headers of a server", "mcpServers.a.headers", { K: words, list: [words] }],
    ["one header", "mcpServers.a.headers.K", words],
    ["below a server that has such a name itself", "mcpServers", { env: { command: "x", env: { K: words } } }],
    ["a hook's variables", "hooks.AfterTool", [{ hooks: [{ command: "x", env: { K: words } }] }]],
    ["who logs in", "mcpServers.a.url", `https://${words}@h.example/x`],
    ["a password with an at sign", "mcpServers.a.url", `https://me:p@${words}@h.example/x`],
    ["a value of a query", "mcpServers.a.url", `https://h.example/x?a=1&key=${words}`],
    ["one that has signs of its own", "mcpServers.a.url", `https://h.example/?k==a=${words}?${words} ${words}`],
    ["a query without names", "mcpServers.a.url", `https://h.example/x?${words}`],
    ["behind the hash", "mcpServers.a.url", `https://h.example/x#token=${words}`],
    ["a part of a path that nobody made up", "mcpServers.a.url", `https://h.example/${words}a1b2c3d4e5f6a7b8/mcp`],
    ["the collector's address", "telemetry.endpoint", `https://${words}:${words}@h.example/?key=${words}`],
    ...["-H", "--header", "-p", "--password", "--token", "--api-key", "--apiKey", "--client-secret"].map(
      (flag) => [`the argument behind ${flag}`, "mcpServers.a.args", ["run", flag, words, "."]] as const
    ),
    ...[`--api-key=${words}`, `--x-token=${words} ${words}`, `GH_TOKEN=${words}`, `-HCookie: ${words}`].map(
      (one) => [`within the argument ${one}`, "mcpServers.a.args", ["run", one, "."]] as const
    ),
    ["a variable for a container", "mcpServers.a.args", ["run", "-e", `ANY=${words}`, "--env", `OTHER=${words}`]],
    ["the password behind a user", "mcpServers.a.args", ["-u", `me:${words}`]],
    ["an address among arguments", "mcpServers.a.args", [`--url=https://${words}@h.example/?a=${words}`]],
    ["a command among arguments", "mcpServers.a.args", ["-c", `curl -H 'X: ${words} ${words}' https://h/?a=${words}`]],
    ["a command's words", "hooks.AfterTool", [{ hooks: [{ command: `TOKEN=${words} x --header="A: ${words}"` }] }]]
  ]
  it.each(secret)("hides %s", (_rule, path, value) => {
    const shown = JSON.stringify(shownValue(path.split("."), value))
    assert.notInclude(shown, words)
    assert.include(shown, "•••")
  })

  it("keep other values, and describe a secret by its length", () => {
    for (const value of [
      ["-y", "@scope/server", "--root", ".", "--verbose=true", "-u", "server.py"],
      "http://localhost:4318/v1/mcp",
      "gemini-2.5-pro",
      "npm run format"
    ]) {
      assert.deepStrictEqual(shownValue(["mcpServers", "a", "args"], value), value)
    }
    assert.strictEqual(mask("s3cr3t"), "••• (6 characters)")
    assert.strictEqual(mask("👍"), "••• (1 character)")
  })
})

describe("the spelling suggestion", () => {
  for (const [one, other, far] of [
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["modle", "model", 2],
    ["kitten", "sitting", 3]
  ] as const) {
    it(`${one || "the empty text"} is ${far} from ${other}`, () => {
      assert.strictEqual(distance(one, other, 100), far)
      assert.strictEqual(distance(other, one, 100), far)
    })
  }

  it("is the first of the nearest, and absent where all are far", () => {
    assert.strictEqual(closestName("modl", ["models", "model", "mode"], 2), "model")
    assert.isUndefined(closestName("theme", ["model", "window"], 2))
    assert.isUndefined(closestName("m".repeat(65), ["m".repeat(64)], 2))
  })
})
