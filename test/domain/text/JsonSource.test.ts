import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { arraySlices, objectSpans, sliceAt } from "../../../src/domain/text/JsonSource.ts"
import { runsOf } from "../../support/runs.ts"

/** White space that JSON allows, chosen by a number. */
const gaps = ["", " ", "\n", "\t", "\r\n", "  \n "]

const escaped = (text: string, style: number): string =>
  style % 3 === 0
    ? JSON.stringify(text)
    : `"${Array.from(text, (char) => {
        if (char === "/" && style % 3 === 1) return "\\/"
        return style % 3 === 2
          ? Array.from(
              { length: char.length },
              (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`
            ).join("")
          : JSON.stringify(char).slice(1, -1)
      }).join("")}"`

/** JSON text of a value in a spelling that the numbers choose: gaps, escapes, doubled keys. */
const spell = (value: unknown, choices: Iterator<number>): string => {
  const choice = () => choices.next().value ?? 0
  const gap = () => gaps[choice() % gaps.length] ?? ""
  if (typeof value === "string") return escaped(value, choice())
  if (Array.isArray(value))
    return `[${gap()}${value.map((item) => `${gap()}${spell(item, choices)}${gap()}`).join(",")}]`
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).flatMap(([key, item]) => {
      const member = `${gap()}${escaped(key, choice())}${gap()}:${gap()}${spell(item, choices)}${gap()}`
      // Of a repeated key the last counts.
      return choice() % 4 === 0 ? [`${escaped(key, choice())}:"}]{[\\"before,"`, member] : [member]
    })
    return `{${gap()}${members.join(",")}}`
  }
  return JSON.stringify(value)
}

const numbers = function* (seed: ReadonlyArray<number>): Generator<number, number> {
  for (let i = 0; ; i += 1) yield (seed[i % Math.max(1, seed.length)] ?? 0) + i
}

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }
const leaf = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Boolean,
  Schema.Null,
  Schema.Literals(['"', "\\", '\\"', "}", "],", "{\n", "é/\u2028", "\ud83d\ude00", "0", "__proto__"])
])
const level = <A extends Json>(inner: Schema.Schema<A>) =>
  Schema.Union([leaf, Schema.Array(inner), Schema.Record(Schema.String, inner)])
const JsonValue = level(level(level(leaf)))

const paths = (value: unknown): Array<ReadonlyArray<string | number>> => [
  [],
  ...(Array.isArray(value)
    ? value.flatMap((item, index) => paths(item).map((path) => [index, ...path]))
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([key, item]) => paths(item).map((path) => [key, ...path]))
      : [])
]
const valueAt = (value: unknown, path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (inner, step) =>
      typeof inner === "object" && inner !== null ? Object.getOwnPropertyDescriptor(inner, step)?.value : undefined,
    value
  )

const Choices = Schema.Array(Schema.Natural)

describe("Source", () => {
  it.prop(
    "sliceAt finds every value of a document where JSON.parse does, however it is spelled",
    [Arbitrary.schema(JsonValue), Arbitrary.schema(Choices)],
    ([value, choices]) => {
      const json = ` ${spell(value, numbers(choices))}\n`
      const parsed: unknown = JSON.parse(json)
      for (const path of paths(parsed)) {
        const slice = sliceAt(json, path)
        assert.isDefined(slice, path.join())
        assert.isTrue(json.includes(slice ?? ""))
        assert.strictEqual(slice, slice?.trim())
        assert.deepStrictEqual(JSON.parse(slice ?? ""), valueAt(parsed, path), path.join())
      }
    },
    { arbitrary: { runs: runsOf(1_000), seed: "slices", size: 12 } }
  )

  it.prop(
    "arraySlices returns one slice per element",
    [Arbitrary.schema(Schema.Array(JsonValue)), Arbitrary.schema(Choices)],
    ([values, choices]) => {
      const json = spell(values, numbers(choices))
      const slices = arraySlices(json)
      assert.deepStrictEqual(
        slices.map((slice): unknown => JSON.parse(slice)),
        JSON.parse(json)
      )
    },
    { arbitrary: { runs: runsOf(1_000), seed: "elements", size: 12 } }
  )

  it("keeps digits, exponents and spelling", () => {
    const json = '{"n": 12345678901234567890, "e": [1E+2 , -0.10], "s": "\\u0041\\/", "t":true}'
    assert.strictEqual(sliceAt(json, ["n"]), "12345678901234567890")
    assert.strictEqual(sliceAt(json, ["e", 0]), "1E+2")
    assert.strictEqual(sliceAt(json, ["e", 1]), "-0.10")
    assert.strictEqual(sliceAt(json, ["s"]), '"\\u0041\\/"')
    assert.strictEqual(sliceAt(json, ["t"]), "true")
    assert.strictEqual(sliceAt(json, []), json)
  })

  it("the last of repeated keys counts, in any spelling", () => {
    assert.strictEqual(sliceAt('{"a":1,"\\u0061":2}', ["a"]), "2")
    assert.strictEqual(sliceAt('{"a":{"b":1},"a":{"c":3}}', ["a", "b"]), undefined)
  })

  it("a missing value is undefined", () => {
    assert.isUndefined(sliceAt('{"a":1}', ["b"]))
    assert.isUndefined(sliceAt("[1]", [1]))
    assert.isUndefined(sliceAt("[1]", ["length"]))
    assert.isUndefined(sliceAt('"text"', [0]))
    assert.isUndefined(sliceAt('{"a":1}', ["a", "b"]))
    assert.isUndefined(sliceAt("{}", ["toString"]))
  })

  it("a value that is not an array has no elements", () => {
    for (const json of ["{}", '{"0":1}', '"[1]"', "1", " null "]) assert.deepStrictEqual(arraySlices(json), [])
    assert.deepStrictEqual(arraySlices(" [ ] "), [])
  })
})

describe("the members of an object that nobody has parsed", () => {
  const members = (json: string, arrays?: ReadonlyArray<string>) => {
    const spans = objectSpans(json, 0, arrays)
    return (
      spans &&
      [...spans].map(([key, { array, end, start }]) => [
        key,
        json.slice(start, end),
        array?.elements.map((each) => json.slice(each.start, each.end))
      ])
    )
  }

  it("have their keys as written, and their elements where they are asked for", () => {
    const json = '{ "a" : [1, [2], "]"], "b\\"c":{"a":[3]},"d":[] }'
    assert.deepStrictEqual(members(json, ["a", "d"]), [
      ["a", '[1, [2], "]"]', ["1", "[2]", '"]"']],
      ['b\\"c', '{"a":[3]}', undefined],
      ["d", "[]", []]
    ])
    assert.deepStrictEqual(members("{}"), [])
  })

  const broken = ['{"a":1,"a":2}', '{"a":1', '{"a" 1}', "{a:1}", '{"a":1,}', '{"a":}', '{"a":[1}', '["a"]', '{"a":"b}']
  for (const json of broken) it(`are none in ${json}`, () => assert.isUndefined(members(json)))
})
