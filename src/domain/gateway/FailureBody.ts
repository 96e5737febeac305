import type { Dialect } from "../wire/Dialect.ts"

type Names = Readonly<Record<number, string>>

const anthropicTypes: Names = { 401: "authentication_error", 429: "rate_limit_error" }
const geminiStates: Names = { 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED" }
const openAiTypes: Names = { 401: "invalid_request_error", 429: "rate_limit_exceeded" }

/** Returns the body for a failure of the gateway itself, in the form that clients of the dialect expect. */
export const failureBody = (dialect: Dialect | undefined, status: number, message: string): string => {
  switch (dialect) {
    case "anthropic":
      return JSON.stringify({ type: "error", error: { type: anthropicTypes[status] ?? "api_error", message } })
    case "gemini":
      return JSON.stringify({ error: { code: status, message, status: geminiStates[status] ?? "UNAVAILABLE" } })
    default:
      return JSON.stringify({
        error: { message, type: openAiTypes[status] ?? "server_error", param: null, code: null }
      })
  }
}
