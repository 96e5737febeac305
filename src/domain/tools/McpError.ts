/** The errors of MCP servers in words, and what follows from them. */

import type { McpClientError, TransportError } from "effect/ai/McpClientError"
import { shortLine } from "../text/OneLine.ts"

/** Characters of what a server says about an error. */
export const maxDetailChars = 300

/** Whether a server may know only the newest protocol, which has no handshake. */
export const mayBeNewer = ({ reason }: McpClientError): boolean =>
  reason._tag === "HttpError"
    ? reason.status === 400 || reason.status === 404 || reason.status === 405
    : reason._tag === "ProtocolError" && reason.code !== undefined

/** Describes an error for the user and the model. `where` is the program or the address. */
export const mcpErrorText = ({ reason }: McpClientError, where: string): string => {
  switch (reason._tag) {
    case "TransportError":
      return transportErrorText(reason, where)
    case "HttpError":
      return reason.status === 401 || reason.status === 403
        ? `it refused with HTTP ${reason.status}; see the headers in its settings`
        : `it answered with HTTP ${reason.status}${reason.description === undefined ? "" : `: ${shortLine(reason.description, maxDetailChars)}`}`
    case "ProtocolError":
      return reason.code === undefined
        ? `it does not speak MCP as expected (${shortLine(reason.message, maxDetailChars)})`
        : `it answered with an error: ${shortLine(reason.message, maxDetailChars)}`
    case "TimeoutError":
      return "it did not answer in time"
    case "LimitError":
      return `it sent more than can be taken (${shortLine(reason.message, maxDetailChars)})`
    case "ClosedError":
      return "the connection to it is closed"
    case "UnsupportedError":
      return `it does not speak MCP as expected (${shortLine(reason.message, maxDetailChars)})`
    default:
      return shortLine(reason.message, maxDetailChars)
  }
}

const transportErrorText = ({ cause, description = "" }: TransportError, where: string): string => {
  if (description.startsWith("Cannot spawn")) {
    const detail = cause instanceof Error ? `: ${shortLine(cause.message, 200)}` : ""
    return /NotFound|ENOENT/.test(detail)
      ? `${where} cannot be started, there is no such program or folder`
      : `${where} cannot be started${detail}`
  }
  const exited = /exited(?: \((-?\d+)\))?/.exec(description)
  if (exited !== null) {
    return exited[1] === undefined ? "its process ended" : `its process ended with status ${exited[1]}`
  }
  if (/closed stdout|stdin failed|stdout failed/.test(description)) return "its process ended or closed its output"
  return `${where} cannot be reached`
}
