/** Makes a JSON Schema document of the settings, for editors. */

import { JsonSchema, Predicate, Schema } from "effect"
import { defaults, SettingsFile } from "./Settings.ts"

/** Adds the default to each property of a JSON schema that has one. */
const withDefaultValues = (schema: unknown, defaultValue: unknown): unknown => {
  if (!Predicate.isObject(schema) || defaultValue === undefined) return schema
  const { properties } = schema
  if (!Predicate.isObject(properties) || !Predicate.isObject(defaultValue)) return { ...schema, default: defaultValue }
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [
        name,
        withDefaultValues(one, Object.hasOwn(defaultValue, name) ? defaultValue[name] : undefined)
      ])
    )
  }
}

/** The settings as a JSON Schema document (draft 7, which editors support), with descriptions and defaults. */
export const settingsSchema = (): Readonly<Record<string, unknown>> => {
  const { definitions, schema } = JsonSchema.toDocumentDraft07(
    Schema.toJsonSchemaDocument(SettingsFile, { onExcessProperty: "error" })
  )
  const whole = withDefaultValues(schema, defaults)
  const { properties, ...rest } = Predicate.isObject(whole) ? whole : {}
  return {
    $schema: JsonSchema.META_SCHEMA_URI_DRAFT_07,
    title: "Palimpsest settings",
    ...rest,
    properties: { $schema: { type: "string" }, ...(Predicate.isObject(properties) ? properties : {}) },
    ...(Object.keys(definitions).length === 0 ? {} : { definitions })
  }
}
