import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { defaults } from "../../../src/domain/settings/Settings.ts"
import { withAllowed, withoutSetting, withSetting } from "../../../src/domain/settings/SettingsEdits.ts"
import { dotted, setValues, valueAt, withValue } from "../../../src/domain/settings/SettingsKey.ts"
import { jsonOf } from "../../../src/domain/settings/SettingsText.ts"
import { strideOf } from "../../support/runs.ts"
import { all } from "../../support/settings.ts"

describe("permanent permissions", () => {
  it.each([
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
  ] as const)("are added to a file with %s, which otherwise stays the same", (_rule, text, expected) => {
    assert.deepStrictEqual(withAllowed(text, ["edit", "shell:git", "edit"]), Result.succeed(expected))
  })

  it("are not added to an invalid file", () => {
    for (const text of ["{", `{"window": "big"}`, `{"allowed": "edit"}`]) {
      assert.isTrue(Result.isFailure(withAllowed(text, ["edit"])))
    }
  })
})

describe("setting one value", () => {
  it.each([
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
  ] as const)("%s", (_rule, text, path, value, expected) => {
    assert.deepStrictEqual(withSetting(text, path, value), Result.succeed(expected))
  })

  it.each([
    ["in what is no JSON", "{", ["window"], 5, undefined],
    ["where something else is wrong", `{"window": "big"}`, ["model"], "m", "window"],
    ["that is wrong itself", `{}`, ["window"], "big", "window"],
    ["that is out of range", `{}`, ["compressionThreshold"], 2, "compressionThreshold"]
  ] as const)("rejects %s", (_rule, text, path, value, key) => {
    const result = withSetting(text, path, value)
    assert.strictEqual(Result.isFailure(result) ? result.failure.key : "none", key)
  })
})

it.each([
  ["the first", `{\n  "window": 5,\n  "model": "m"\n}\n`, ["window"], `{\n  "model": "m"\n}\n`],
  ["the last, with the comma before it", `{\n  "window": 5,\n  "model": "m"\n}\n`, ["model"], `{\n  "window": 5\n}\n`],
  ["the last, where commas end lines", `{\n  "window": 5,\n  "model": "m",\n}\n`, ["model"], `{\n  "window": 5,\n}\n`],
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
] as const)("removing one value %s", (_rule, text, path, expected) => {
  assert.deepStrictEqual(withoutSetting(text, path), Result.succeed(expected))
})

it("keeps a value that the rest of the file needs", () => {
  const result = withoutSetting(`{"mcpServers": {"a": {"command": "x"}}}`, ["mcpServers", "a", "command"])
  assert.strictEqual(Result.isFailure(result) ? result.failure.key : undefined, "mcpServers.a")
})

const pretty = JSON.stringify(all, undefined, 2)
it.each([
  ["on one line", JSON.stringify(all)],
  ["over lines", pretty],
  ["with tabs and CRLF", JSON.stringify(all, undefined, "\t").replaceAll("\n", "\r\n")],
  [
    "with comments and commas everywhere",
    pretty.replace(/([^[{,:\s])\n/g, "$1, // a, {b\n").replace(/\{\n/g, "{ /* [ */\n")
  ],
  ["without anything", "{}"]
] as const)("leaves the rest of any file unchanged %s", (_look, text) => {
  const before = Result.getOrThrow(jsonOf(text))
  const comments = text.match(/\/\/ a, \{b|\/\* \[ \*\//g)?.length
  for (const { path, value } of setValues(defaults).filter((_, at) => at % strideOf(9) === 0)) {
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
