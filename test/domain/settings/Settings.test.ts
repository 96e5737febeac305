import { assert, describe, it } from "@effect/vitest"
import { Predicate } from "effect"
import {
  defaults,
  homeOnly,
  loopDetectionOf,
  ignoredInWorkspace,
  routerOf,
  Settings,
  type SettingsFile,
  withDefaults
} from "../../../src/domain/settings/Settings.ts"
import { keyOf, mergeSettings } from "../../../src/domain/settings/SettingsKey.ts"
import { valueAt } from "../../../src/domain/settings/SettingsKey.ts"
import { settingsSchema } from "../../../src/domain/settings/SettingsSchema.ts"

describe("settings of two places", () => {
  it("the working folder overrides, setting by setting", () => {
    assert.deepStrictEqual(mergeSettings({ model: "home", window: 1 }, { model: "here", titles: false }), {
      model: "here",
      window: 1,
      titles: false
    })
  })

  it("security settings count only in the home folder, and elsewhere are reported", () => {
    const all: SettingsFile = { ...defaults, sessionRetention: {}, store: "files" }
    assert.deepStrictEqual(
      Object.keys(mergeSettings({}, all)).sort(),
      Object.keys(all)
        .filter((key) => !ignoredInWorkspace(all).includes(key))
        .sort()
    )
    assert.deepStrictEqual([...ignoredInWorkspace(all)].sort(), [...homeOnly].sort())
    assert.deepStrictEqual(ignoredInWorkspace({ model: "m" }), [])
    assert.deepStrictEqual(mergeSettings({ approve: "none", allowed: [] }, { approve: "all", allowed: ["edit"] }), {
      approve: "none",
      allowed: []
    })
  })

  it("retention settings count only in the home folder", () => {
    assert.deepStrictEqual(mergeSettings({}, { sessionRetention: { maxCount: 1 } }), {})
    assert.deepStrictEqual(
      mergeSettings({ sessionRetention: { maxAge: "30d" } }, { sessionRetention: { maxCount: 1 } }),
      { sessionRetention: { maxAge: "30d" } }
    )
  })

  for (const [rule, home, workspace, expected] of [
    [
      "objects are merged key by key",
      { memory: { maxDirs: 1, onTouch: false } },
      { memory: { maxDirs: 2 } },
      { memory: { maxDirs: 2, onTouch: false } }
    ],
    [
      "so is what is kept by name",
      { agents: { a: true }, models: { m: { window: 1 } } },
      { agents: { b: false }, models: { m: { compressionThreshold: 1 } } },
      { agents: { a: true, b: false }, models: { m: { window: 1, compressionThreshold: 1 } } }
    ],
    [
      "lists are replaced",
      { memory: { fileNames: ["A"] } },
      { memory: { fileNames: ["B"] } },
      { memory: { fileNames: ["B"] } }
    ],
    [
      "the hooks of an event are all of both",
      { hooks: { AfterTool: [1], PreCompress: [2] } },
      { hooks: { AfterTool: [3] } },
      { hooks: { AfterTool: [1, 3], PreCompress: [2] } }
    ],
    [
      "a hook is off that is off in one",
      { hooksConfig: { disabled: ["a", "b"] } },
      { hooksConfig: { disabled: ["b", "c"], enabled: false } },
      { hooksConfig: { disabled: ["a", "b", "c"], enabled: false } }
    ],
    ["a switch gives way to an object", { masking: false }, { masking: { protect: 1 } }, { masking: { protect: 1 } }],
    ["and an object to a switch", { loopDetection: { calls: 3 } }, { loopDetection: false }, { loopDetection: false }]
  ] satisfies ReadonlyArray<readonly [string, SettingsFile, SettingsFile, SettingsFile]>) {
    it(rule, () => {
      assert.deepStrictEqual({ ...mergeSettings(home, workspace) }, expected)
    })
  }
})

describe("defaults", () => {
  it("fill in missing keys, also within objects", () => {
    const settings = withDefaults({
      window: 5,
      memory: { maxDirs: 1 },
      masking: { least: 1 },
      telemetry: { file: "x" }
    })
    assert.deepStrictEqual(
      { window: settings.window, memory: settings.memory, masking: settings.masking, telemetry: settings.telemetry },
      {
        window: 5,
        memory: { ...defaults.memory, maxDirs: 1 },
        masking: { protect: 50_000, least: 1 },
        telemetry: { ...defaults.telemetry, file: "x" }
      }
    )
    assert.deepStrictEqual(withDefaults(defaults), defaults)
  })

  it("CLI contract: strategy gemini accepts any gain by default", () => {
    assert.deepStrictEqual(
      [withDefaults({ strategy: "gemini" }).minGain, withDefaults({ strategy: "gemini", minGain: 0.3 }).minGain],
      [0, 0.3]
    )
  })

  it("settings of the agent that a strategy is from come with it, unless the user gives others", () => {
    const settings = withDefaults({ strategy: "pi", memory: { onTouch: true }, subagents: { tasks: 3 } })
    assert.deepStrictEqual(settings.subagents, { ...defaults.subagents, tasks: 3, runner: "process" })
    assert.deepStrictEqual(settings.memory, {
      ...defaults.memory,
      fileNames: ["AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"],
      firstFound: true,
      downward: false
    })
    assert.deepStrictEqual(withDefaults({ strategy: "pi" }).subagents.tasks, 8)
    assert.isFalse(settings.memoryFlush)
    const other = withDefaults({ strategy: "openclaw", repeatRules: { chars: 100 } })
    assert.isTrue(other.memoryFlush)
    assert.isFalse(withDefaults({ strategy: "openclaw", memoryFlush: false }).memoryFlush)
    assert.deepStrictEqual(other.repeatRules, { headings: ["Session Startup", "Red Lines"], chars: 100 })
    assert.deepStrictEqual([other.memory.fileChars, other.subagents.prompt], [20_000, "minimal"])
  })

  it("loop detection takes all its numbers, or false", () => {
    const usual = { calls: 5, content: 10, chunk: 50, history: 5_000, checkAfter: 30 }
    assert.deepStrictEqual(
      [
        loopDetectionOf(),
        loopDetectionOf(true),
        loopDetectionOf({}),
        loopDetectionOf({ calls: 3 }),
        loopDetectionOf(false)
      ],
      [usual, usual, usual, { ...usual, calls: 3 }, undefined]
    )
  })

  it("a router picks from two models when enabled", () => {
    assert.deepStrictEqual([routerOf(), routerOf(false)], [undefined, undefined])
    assert.deepStrictEqual(routerOf(true), { flash: "gemini-2.5-flash", pro: "gemini-2.5-pro", search: 20, turns: 4 })
    assert.deepStrictEqual(routerOf({ flash: "a", pro: "b", turns: 1 }), { flash: "a", pro: "b", search: 20, turns: 1 })
  })
})

describe("the JSON Schema for editors", () => {
  const schema = settingsSchema()

  it("describes each setting and its default", () => {
    for (const name of Object.keys(Settings.fields)) {
      const said = valueAt(schema, ["properties", name])
      const key = keyOf(name)
      assert.isTrue(Predicate.isObject(said) && "accepts" in key, name)
      if (Predicate.isObject(said) && "accepts" in key) {
        assert.isAbove(String(said["description"]).length, 10, name)
        assert.isAbove(key.expected.length, 10, name)
      }
    }
    assert.strictEqual(valueAt(schema, ["properties", "window", "exclusiveMinimum"]), 0)
    assert.strictEqual(valueAt(schema, ["properties", "memory", "properties", "maxDirs", "default"]), 200)
    assert.match(String(valueAt(schema, ["properties", "memory", "properties", "maxDirs", "description"])), /folders/)
    assert.strictEqual(schema["additionalProperties"], false)
    assert.strictEqual(schema["$schema"], "http://json-schema.org/draft-07/schema#")
  })

  it("is valid JSON", () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(schema)), schema)
  })
})
