import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { mergeSettings, parseSettings, strictJson } from "../../src/domain/Settings.ts"

const all = {
  model: "gemini-test",
  compressionThreshold: 0.6,
  overflowFactor: 0.95,
  window: 200_000,
  sessionRetention: { maxAge: "30d", maxCount: 100 },
  titles: false
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
    ["none to keep", `{"sessionRetention": {"maxCount": 0}}`, "sessionRetention", /maxCount/]
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

  it("what deletes sessions is the home folder's alone", () => {
    assert.deepStrictEqual(mergeSettings({}, { sessionRetention: { maxCount: 1 } }), {})
    assert.deepStrictEqual(
      mergeSettings({ sessionRetention: { maxAge: "30d" } }, { sessionRetention: { maxCount: 1 } }),
      { sessionRetention: { maxAge: "30d" } }
    )
  })
})
