import type { Dialect } from "../wire/Dialect.ts"
import { wire } from "./WireDialects.ts"

/**
 * The declaration of the recall tool, with which a model reads content that left its window, in the form of each
 * dialect.
 */
export interface RecallDeclaration {
  readonly name: string
  /** The JSON of the function alone, as an element of a list of functions. */
  readonly plain: string
  /** The JSON of the whole tool. */
  readonly inDialect: string
}

/** The name of the tool, unless the client has a tool of the same name. */
export const recallName = "palimpsest_recall"

const description =
  "Returns the exact content that was removed from the conversation: a snapshot replaced older messages and refers to them by handles. Call this tool before you say that you do not know something. Pass a handle (h_ and letters) exactly as shown; for long texts, request lines or matching lines. Without a handle, grep searches everything that was removed."

const parameters = {
  type: "object",
  properties: {
    handle: { type: "string", description: "The handle, for example h_abcdefghij. Omit it to search everything" },
    from: { type: "integer", description: "The first line, counted from 1" },
    to: { type: "integer", description: "The last line" },
    grep: { type: "string", description: "A regular expression that the lines match" }
  }
}

/** Declares the tool for a request. `others` is the JSON of the client's tools; the name differs from all of theirs. */
export const recallDeclaration = (dialect: Dialect, others: string): RecallDeclaration => {
  let name = recallName
  for (let count = 2; others.includes(`"${name}"`); count += 1) name = `${recallName}_${count}`
  const tool = { name, description, parameters }
  return { name, plain: JSON.stringify(tool), inDialect: JSON.stringify(wire[dialect].declaredTool(tool)) }
}
