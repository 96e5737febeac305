/** Writes a JSON Schema as a short type for readers: `{ id: string, title: string | null }`. */

import { Predicate } from "effect"

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Returns the name at the end of a reference, without the suffix of the encoded form. */
const referenceName = (reference: string): string => (reference.split("/").at(-1) ?? reference).replace(/Encoded$/, "")

/** Returns a field name as it is written in a type. */
const fieldName = (name: string): string => (/^[\w$]+$/.test(name) ? name : JSON.stringify(name))

const bounds = ({ maximum, maxLength, minimum, minLength }: Readonly<Record<string, unknown>>): string => {
  const lowest = minimum ?? minLength
  const highest = maximum === Number.MAX_SAFE_INTEGER ? undefined : (maximum ?? maxLength)
  if (typeof highest !== "number") return ""
  const unit = maxLength === undefined ? "" : " characters"
  return typeof lowest === "number" ? ` (${lowest} to ${highest}${unit})` : ` (at most ${highest}${unit})`
}

const objectText = (schema: Readonly<Record<string, unknown>>, indent: string): string => {
  const properties = Predicate.isObject(schema["properties"]) ? Object.entries(schema["properties"]) : []
  const required = new Set(listOf(schema["required"]))
  const rest = schema["additionalProperties"]
  const inner = `${indent}  `
  const fields = properties.map(
    ([name, field]) => `${inner}${fieldName(name)}${required.has(name) ? "" : "?"}: ${schemaText(field, inner)}`
  )
  if (Predicate.isObject(rest)) fields.push(`${inner}[key: string]: ${schemaText(rest, inner)}`)
  return fields.length === 0 ? "{}" : `{\n${fields.join("\n")}\n${indent}}`
}

/** Returns the type that a schema describes. Lines after the first begin with `indent`. */
export const schemaText = (schema: unknown, indent = ""): string => {
  if (!Predicate.isObject(schema)) return "unknown"
  const { $ref, type } = schema
  if (typeof $ref === "string") return referenceName($ref)
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"])
  const choices = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])]
  if (choices.length > 0) return [...new Set(choices.map((choice) => schemaText(choice, indent)))].join(" | ")
  const values = listOf(schema["enum"])
  if (values.length > 0) return values.map((value) => JSON.stringify(value)).join(" | ")
  if (Array.isArray(type)) return type.join(" | ")
  switch (type) {
    case "object":
      return objectText(schema, indent)
    case "array": {
      const fixed = listOf(schema["prefixItems"])
      return fixed.length > 0
        ? `[${fixed.map((item) => schemaText(item, indent)).join(", ")}]`
        : `Array<${schemaText(schema["items"], indent)}>`
    }
    case "string":
    case "number":
    case "integer":
      return `${type}${bounds(schema)}`
    case "boolean":
    case "null":
      return type
    default:
      return Predicate.isObject(schema["properties"]) ? objectText(schema, indent) : "unknown"
  }
}
