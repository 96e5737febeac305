import type { Json } from "../text/JsonObject.ts"
import { isTime } from "../text/Time.ts"

/** Reads single fields of records whose form is not known: texts, times, counts and kinds. */

/** Returns the text under a key; undefined when there is none or the value is not a text. */
export const textAt = (record: Json, key: string): string | undefined => {
  const value = record[key]
  return typeof value === "string" ? value : undefined
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

/** Returns the kinds that a table lists: names, by what stands before them. */
export const kindsIn = (table: Readonly<Record<string, string>>): ReadonlySet<string> =>
  new Set(
    Object.entries(table).flatMap(([prefix, names]) =>
      names
        .trim()
        .split(/\s+/)
        .map((name) => prefix + name.replaceAll("-without-", " without "))
    )
  )

/** Passes over records of these kinds. A fold that names them does not compile when its agent's decoder learns another one. */
export const passOver = <Kind extends string>(_record: { readonly _tag: NoInfer<Kind> }): undefined => undefined
