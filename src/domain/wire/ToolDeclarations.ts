/** Reads tool declarations in the wire shape of the Gemini API, and names tools as the other dialects allow. */

import { Equal, Predicate, Result, Schema } from "effect"
import { isJson, type Json, jsonAt, jsonsAt } from "../text/JsonObject.ts"

/** A tool as every dialect declares it. */
export interface ToolDeclaration {
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema. */
  readonly parameters: Readonly<Record<string, unknown>>
}

const Declaration = Schema.Struct({
  name: Schema.String,
  description: Schema.optionalKey(Schema.String),
  parameters: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  parametersJsonSchema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
const decode = Schema.decodeUnknownResult(
  Schema.Array(Schema.Struct({ functionDeclarations: Schema.Array(Declaration) }))
)

/** Converts a schema in the Gemini API's spelling (`"OBJECT"`) to JSON Schema. */
const toJsonSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(toJsonSchema)
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) =>
      key === "type" && typeof each === "string" ? [key, each.toLowerCase()] : [key, toJsonSchema(each)]
    )
  )
}

/** Keys of a schema with values, and no schemas. */
const dataKeys: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"])

/** A schema with the type of alternatives in each of them. Kimi's servers refuse one beside them, with every request. */
const withTypedForms = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withTypedForms)
  if (!isJson(value)) return value
  const schema = Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, dataKeys.has(key) ? each : withTypedForms(each)])
  )
  const { anyOf, type, ...rest } = schema
  if (typeof type !== "string" || !Array.isArray(anyOf) || anyOf.length === 0 || !anyOf.every(isJson)) return schema
  return { ...rest, anyOf: anyOf.map((form) => ("type" in form || "$ref" in form ? form : { type, ...form })) }
}

const requiredOf = (schema: Json): ReadonlyArray<unknown> =>
  Array.isArray(schema["required"]) ? schema["required"] : []

/**
 * A schema without alternatives at its top, which most servers refuse, with every request that declares such a tool. It has the properties of
 * all alternatives, and requires what each of them requires; the tool itself refuses other arguments.
 */
const plainSchema = (
  { allOf: _all, anyOf: _any, enum: _enum, not: _not, oneOf: _one, ...rest }: Json,
  whole: Json
): Json => {
  const formsOf = (key: string) =>
    jsonsAt(whole, key).map((form) => {
      const [, place = "", name = ""] = /^#\/(\$defs|definitions)\/(.+)$/.exec(String(form["$ref"])) ?? []
      const own = name === "" ? form : jsonAt(jsonAt(whole, place), name)
      return plainSchema(own, own)
    })
  const all = formsOf("allOf")
  const choices = ["anyOf", "oneOf"].map(formsOf)
  const forms = [...all, ...choices.flat()]
  if (forms.length === 0) return rest
  const common = choices.flatMap(([first, ...others]) =>
    first === undefined ? [] : requiredOf(first).filter((key) => others.every((form) => requiredOf(form).includes(key)))
  )
  const required = [...new Set([rest, ...all].flatMap(requiredOf).concat(common))]
  const properties: Record<string, unknown> = {}
  for (const [key, schema] of forms.flatMap((form) => Object.entries(jsonAt(form, "properties")))) {
    const known = properties[key]
    properties[key] = known === undefined || Equal.equals(known, schema) ? schema : { anyOf: [known, schema] }
  }
  return {
    ...rest,
    properties: { ...properties, ...jsonAt(rest, "properties") },
    ...(required.length === 0 ? {} : { required })
  }
}

/** The declared functions. Fails for any other tool, such as the Gemini API's own search. */
export const toolDeclarations = (
  tools: ReadonlyArray<Readonly<Record<string, unknown>>> = []
): Result.Result<ReadonlyArray<ToolDeclaration>, "only function declarations can be given to this model"> =>
  Result.mapBoth(decode(tools), {
    onFailure: () => "only function declarations can be given to this model" as const,
    onSuccess: (declared) =>
      declared.flatMap(({ functionDeclarations }) =>
        functionDeclarations.map(({ description, name, parameters, parametersJsonSchema }) => {
          const schema = parametersJsonSchema ?? toJsonSchema(parameters ?? {})
          const plain = isJson(schema) ? withTypedForms(plainSchema(schema, schema)) : {}
          const shape = isJson(plain) ? plain : {}
          return {
            name,
            ...(description === undefined ? {} : { description }),
            // The dialects refuse a schema without a type.
            parameters: "type" in shape ? shape : { type: "object", properties: {}, ...shape }
          }
        })
      )
  })

/** The names of tools in a dialect that allows letters, digits, `_` and `-`, at most 64 of them, the first of which is no digit. */
export interface ToolNames {
  /** The name that is sent for a tool. */
  readonly sent: (name: string) => string
  /** The tool that a model calls by a name that was sent. */
  readonly own: (sent: string) => string
}

const maxNameChars = 64

/** Names for these tools. A name that has to change stays distinct from the others. */
export const toolNames = (declarations: ReadonlyArray<ToolDeclaration>): ToolNames => {
  // Kimi's servers refuse a name that begins with a digit, with every request.
  const plain = (name: string) =>
    name
      .replaceAll(/[^A-Za-z0-9_-]/g, "_")
      .replace(/^(?![A-Za-z_])/, "t_")
      .slice(0, maxNameChars)
  const names = new Set(declarations.map(({ name }) => name))
  const sent = new Map<string, string>()
  const own = new Map<string, string>()
  for (const name of names) {
    let made = plain(name)
    for (let count = 2; own.has(made) || (made !== name && names.has(made)); count += 1) {
      made = `${plain(name).slice(0, maxNameChars - 1 - String(count).length)}_${count}`
    }
    sent.set(name, made)
    own.set(made, name)
  }
  return { sent: (name) => sent.get(name) ?? plain(name), own: (name) => own.get(name) ?? name }
}
