import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { schemaText } from "../../../src/domain/serve/SchemaText.ts"

const textOf = (schema: Schema.Top) => schemaText(Schema.toJsonSchemaDocument(schema).schema)

describe("SchemaText", () => {
  it("writes a schema as a type", () => {
    const cases: ReadonlyArray<readonly [schema: Schema.Top, text: string]> = [
      [Schema.String, "string"],
      [Schema.Natural, "integer"],
      [Schema.NullOr(Schema.Boolean), "boolean | null"],
      [Schema.Literals(["a", "b"]), `"a" | "b"`],
      [Schema.String.check(Schema.isMaxLength(200)), "string (at most 200 characters)"],
      [Schema.Array(Schema.Finite), "Array<number>"],
      [
        Schema.Struct({ a: Schema.String, "b-c": Schema.optionalKey(Schema.Finite) }),
        `{\n  a: string\n  "b-c"?: number\n}`
      ],
      [Schema.Struct({ a: Schema.Struct({ b: Schema.Null }) }), "{\n  a: {\n    b: null\n  }\n}"],
      [Schema.Record(Schema.String, Schema.Finite), "{\n  [key: string]: number\n}"],
      [Schema.Unknown, "unknown"]
    ]
    for (const [schema, text] of cases) assert.strictEqual(textOf(schema), text)
  })

  it("names the target of a reference, and accepts any schema", () => {
    assert.strictEqual(schemaText({ $ref: "#/components/schemas/NotFoundEncoded" }), "NotFound")
    for (const odd of [undefined, null, 1, "x", [], { type: 7 }, { anyOf: [null] }]) {
      assert.strictEqual(schemaText(odd), "unknown")
    }
  })
})
