import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { mendedJson } from "../../../src/domain/text/CutJson.ts"
import {
  fromJson,
  isDeeper,
  isTooDeep,
  maxDepth,
  parseJson,
  parsedOrUndefined,
  wellFormedJson
} from "../../../src/domain/text/JsonText.ts"

const nested = (depth: number) => `${`{"a":[`.repeat(depth / 2)}${"]}".repeat(depth / 2)}`
const deep = nested(100_000)

/** Depth of a small value. */
const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Object.values(value).reduce((most: number, one) => Math.max(most, depthOf(one)), 0)
    : 0

describe("reading JSON", () => {
  it("accepts values up to the depth limit and no deeper", () => {
    assert.isTrue(Result.isSuccess(parseJson(nested(maxDepth))))
    const problem = parseJson(`[${nested(maxDepth)}]`)
    assert.deepInclude(Result.isFailure(problem) ? problem.failure : {}, { _tag: "TooDeep" })
    assert.isUndefined(parsedOrUndefined(deep))
  })

  it("reports where it becomes too deep", () => {
    const problem = parseJson(`{"x": 1,\n "y": ${"[".repeat(2_000)}${"]".repeat(2_000)}}`)
    assert.strictEqual(
      Result.isFailure(problem) ? problem.failure.message : "",
      "nested deeper than 1,000 levels (line 2, column 1,006)"
    )
  })

  it("ignores brackets in strings", () => {
    const text = JSON.stringify([`${"[".repeat(5_000)}"\\"`, `\\${"{".repeat(5_000)}`])
    assert.isTrue(Result.isSuccess(parseJson(text)))
    assert.isFalse(isDeeper(text, 1))
    assert.isTrue(isDeeper(text, 0))
  })

  it("fails the schema too", () => {
    const decode = Schema.decodeUnknownResult(fromJson(Schema.Unknown))
    assert.isTrue(Result.isSuccess(decode(nested(maxDepth))))
    const refused = decode(deep)
    assert.include(Result.isFailure(refused) ? refused.failure.message : "", "nested deeper than 1,000 levels")
  })

  it("measures the depth of a parsed value", () => {
    assert.isFalse(isTooDeep(JSON.parse(nested(maxDepth))))
    assert.isTrue(isTooDeep(JSON.parse(`[${nested(maxDepth)}]`)))
    assert.isTrue(isTooDeep(JSON.parse(deep)))
    for (const value of [undefined, null, 1, "[[[", [], { a: null }]) assert.isFalse(isTooDeep(value))
  })

  it.prop("a text exceeds a limit exactly when its value does", [Schema.Json], ([value]) => {
    const text = JSON.stringify(value)
    const depth = depthOf(value)
    assert.isFalse(isDeeper(text, depth))
    if (depth > 0) assert.isTrue(isDeeper(text, depth - 1))
    assert.deepStrictEqual(JSON.stringify(Result.getOrThrow(parseJson(text))), text)
  })
})

it.each([
  ["halves", "a\ud83d b\ude00", "a\ufffd b\ufffd"],
  ["a pair", "a\ud83d\ude00", "a\ud83d\ude00"],
  ["an escape that somebody wrote", String.raw`\ud83d and \\ud83d`, String.raw`\ud83d and \\ud83d`],
  ["a half after backslashes", `\\\\\ud83d`, `\\\\\ufffd`]
])("JSON holds no half of a surrogate pair: %s", (_, text, expected) => {
  assert.deepStrictEqual(JSON.parse(wellFormedJson(JSON.stringify({ [text]: [text] }))), { [expected]: [expected] })
})

it.each<readonly [string, string, string | undefined]>([
  ["a list", '[{"a":[{"b":1}]},{"c":"}', '[{"a":[{"b":1}]}]'],
  ["a list in an object", '{"x":[],"m":[{"t":"\\"}]"},{"t":', '{"x":[],"m":[{"t":"\\"}]"}]}'],
  ["no whole object", '{"m":[{"t":[{"a":1}', undefined],
  ["a whole document", '{"m":[{"t":1}]}', undefined],
  ["a text", '"[{}', undefined],
  ["a text longer than a stack", `[{},{"data":"${"A".repeat(20_000_000)}`, "[{}]"]
])("a document without its end is mended after its last whole message: $0", (_, cut, mended) =>
  assert.strictEqual(mendedJson(cut), mended)
)
