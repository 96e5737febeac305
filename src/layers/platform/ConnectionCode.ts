import { Predicate } from "effect"

/** The code of a failed connection, such as `ECONNREFUSED`, which Node puts somewhere in the chain of causes. */
export const codeOf = (error: unknown): string | undefined => {
  if (!Predicate.isObject(error)) return undefined
  if ("code" in error && Predicate.isString(error.code)) return error.code
  return "cause" in error ? codeOf(error.cause) : undefined
}
