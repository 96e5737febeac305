import { JsonSchema, Predicate, Schema } from "effect"
import { defaults, SettingsFile } from "./Settings.ts"

/** A JSON schema with the value that holds where nothing is said, for each property that has one. */
const withUsual = (schema: unknown, usual: unknown): unknown => {
  if (!Predicate.isObject(schema) || usual === undefined) return schema
  const { properties } = schema
  if (!Predicate.isObject(properties) || !Predicate.isObject(usual)) return { ...schema, default: usual }
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [
        name,
        withUsual(one, Object.hasOwn(usual, name) ? usual[name] : undefined)
      ])
    )
  }
}

/** The settings as a JSON Schema document (draft 7, which editors know), with descriptions and what holds without them. */
export const settingsSchema = (): Readonly<Record<string, unknown>> => {
  const { definitions, schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(SettingsFile, { onExcessProperty: "error" })
  )
  const whole = withUsual(schema, defaults)
  const { properties, ...rest } = Predicate.isObject(whole) ? whole : {}
  return {
    $schema: JsonSchema.META_SCHEMA_URI_DRAFT_07,
    title: "Palimpsest settings",
    ...rest,
    properties: { $schema: { type: "string" }, ...(Predicate.isObject(properties) ? properties : {}) },
    ...(Object.keys(definitions).length === 0 ? {} : { definitions })
  }
}
