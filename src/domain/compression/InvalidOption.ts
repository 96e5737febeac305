import { Predicate, Schema } from "effect"

/** An option has a value that it cannot have. The message names it and what is expected. */
export class InvalidOption extends Schema.TaggedError<InvalidOption>()("InvalidOption", { message: Schema.String }) {}

/** Says what is wrong with an option: its name, its value, and what it may be. Undefined: nothing, or it is absent. */
export type OptionCheck = (name: string, value: unknown) => string | undefined

/** Shows a value in a message. Objects may be large, or hold what nobody should read. */
const shown = (value: unknown): string => {
  if (Array.isArray(value)) return "a list"
  if (Predicate.isObject(value) || Predicate.isFunction(value)) return `of the type ${typeof value}`
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : String(value)
}

/** Checks a value that has to be there by a predicate. `expected`: what it may be. */
export const valueCheck =
  (isValid: (value: unknown) => boolean, expected: string): OptionCheck =>
  (name, value) =>
    isValid(value) ? undefined : `${name} is ${shown(value)}; expected ${expected}`

/** Checks an option, which may be absent. */
export const optionCheck = (isValid: (value: unknown) => boolean, expected: string): OptionCheck =>
  valueCheck((value) => value === undefined || isValid(value), expected)
