import { Duration } from "effect"
import type { McpClientError, TransportError } from "effect/ai/McpClientError"
import { shortLine } from "../text/OneLine.ts"

/** What fails about MCP servers, in words, and what follows from it. */

/** Why a server cannot be used, or a call failed. `lastWords`: its own, as `ServerWords` gives them. */
export type McpFault =
  | { readonly _tag: "NoAnswer"; readonly timeout: Duration.Duration; readonly lastWords: string }
  /** Variables that its settings name are not set in the environment. */
  | { readonly _tag: "VariablesNotSet"; readonly names: ReadonlyArray<string> }
  | { readonly _tag: "NoProgram"; readonly command: string }
  /** `where` is the program or the address. */
  | { readonly _tag: "Failed"; readonly error: McpClientError; readonly where: string; readonly lastWords: string }

/** A fault in words, in one line, for the user and the model. */
export const mcpFaultText = (fault: McpFault): string => {
  switch (fault._tag) {
    case "NoAnswer":
      return `it did not answer within ${Duration.format(fault.timeout)}${fault.lastWords}`
    case "VariablesNotSet":
      return `its settings name ${fault.names.map((name) => `$${name}`).join(", ")}, not set in the environment`
    case "NoProgram":
      return `${fault.command} cannot be started, there is no such program in an absolute part of PATH outside this folder; give its whole path`
    case "Failed":
      return `${mcpErrorText(fault.error, fault.where)}${fault.lastWords}`
  }
}

/** A server that could not be started or reached, or that offers too many tools. All others work. */
export type McpProblem = { readonly server: string } & (
  | { readonly _tag: "LeftOut"; readonly fault: McpFault }
  /** Of `offered` tools, `left` are left out: more than `maxTools`, or descriptions that are too long. */
  | { readonly _tag: "ToolsLeftOut"; readonly offered: number; readonly left: number; readonly maxTools: number }
  /** These tools are described in a form that cannot be read. */
  | { readonly _tag: "ToolsUnreadable"; readonly names: ReadonlyArray<string> }
)

/** Characters of what a server says about an error. */
const maxDetailChars = 300

/** A problem in words, in one line. */
export const mcpProblemText = (problem: McpProblem): string => {
  const server = `The MCP server ${problem.server}`
  switch (problem._tag) {
    case "LeftOut":
      return `${server} is ignored: ${mcpFaultText(problem.fault)}`
    case "ToolsLeftOut":
      return `${server} offers ${problem.offered} tools; ${problem.left} are ignored, beyond ${problem.maxTools} or described at too great a length`
    case "ToolsUnreadable":
      return `${server} describes tools in a form that cannot be read, and they are ignored: ${shortLine(problem.names.join(", "), maxDetailChars)}`
  }
}

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
