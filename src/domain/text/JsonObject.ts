/** Objects of JSON whose form is not known. */

import { Predicate } from "effect"

/** An object as `JSON.parse` gives it. */
export type Json = { readonly [key: string]: unknown }

/** Whether a value is an object and not a list or null. */
export const isJson = (value: unknown): value is Json => Predicate.isObject(value) && !Array.isArray(value)

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

/** Returns the text at a key, or an empty one. */
export const textOrEmpty = (value: Json, key: string): string => {
  const held = value[key]
  return typeof held === "string" ? held : ""
}
