import { isTime } from "../text/Time.ts"

/** An object as `JSON.parse` gives it. */
export type Json = { readonly [key: string]: unknown }

/** Whether a value is an object and not a list or null. */
export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns the text under a key; undefined when there is none or the value is not a text. */
export const textAt = (record: Json, key: string): string | undefined => {
  const value = record[key]
  return typeof value === "string" ? value : undefined
}

/** Returns the object under a key; an empty one for any other value. */
export const jsonAt = (record: Json, key: string): Json => {
  const value = record[key]
  return isJson(value) ? value : {}
}

/** Returns the objects of the list under a key; none for any other value. */
export const jsonsAt = (record: Json, key: string): ReadonlyArray<Json> => {
  const value = record[key]
  return Array.isArray(value) ? value.filter(isJson) : []
}

/** Returns a time in milliseconds since 1970; undefined for what is none, or no time of a date. */
export const instant = (value: unknown): number | undefined =>
  typeof value === "number" && isTime(value) ? value : undefined

/** Returns a record's `timestamp` (ISO text or number) in milliseconds since 1970. */
export const timeAt = ({ timestamp }: Json): number | undefined =>
  instant(typeof timestamp === "string" ? Date.parse(timestamp) : timestamp)

/** Returns a count; undefined for any other value. */
export const natural = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** Returns the kind under a key of a record; a record without one is of an unknown kind. */
export const kindAt = (record: Json, key = "type"): string => textAt(record, key) ?? "unknown record"

/** Passes over records of these kinds. A fold that names them does not compile when its agent's decoder learns another one. */
export const passOver = <Kind extends string>(_record: { readonly _tag: NoInfer<Kind> }): undefined => undefined
