import { Predicate } from "effect"

/** Returns the message of an error, or its name where it has no message; for anything else that was thrown, the value as text. */
export const errorText = (error: unknown): string => {
  if (error instanceof Error) return error.message === "" ? error.name : error.message
  const shown = String(error)
  return Predicate.isObject(error) && shown === "[object Object]" ? JSON.stringify(error) : shown
}
