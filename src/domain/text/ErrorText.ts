import { Formatter } from "effect"

/** Returns the message of an error, or its name where it has no message; for anything else that was thrown, the value as text. */
export const errorText = (error: unknown): string => {
  if (error instanceof Error) return error.message === "" ? error.name : error.message
  return typeof error === "string" ? error : Formatter.format(error)
}
