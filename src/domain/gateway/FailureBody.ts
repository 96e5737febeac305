import type { Dialect } from "./Dialect.ts"

/** The body of a failure of the gateway itself, in the form that a client of the dialect expects. */
export const failureBody = (dialect: Dialect | undefined, status: number, message: string): string => {
  switch (dialect) {
    case "anthropic":
      return JSON.stringify({ type: "error", error: { type: "api_error", message } })
    case "gemini":
      return JSON.stringify({ error: { code: status, message, status: "UNAVAILABLE" } })
    default:
      return JSON.stringify({ error: { message, type: "server_error", param: null, code: null } })
  }
}
