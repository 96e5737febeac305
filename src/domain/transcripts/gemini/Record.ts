/**
 * Decodes a record of Gemini CLI: a line of a session, or an element of an older session that is one document. The conversation and
 * the facts of a session are folds over these records.
 */

import { isJson, type Json } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { natural, kindAt, textAt, timeAt } from "../JsonRecord.ts"
import { broken } from "../Problem.ts"

/** Messages that this program knows and does not read. The last two are those of a user that Gemini CLI leaves out as well. */
export const ignoredKinds: ReadonlySet<string> = new Set(["info", "error", "warning", "command", "blank message"])

const usageOf = ({ tokens }: Json): Usage | undefined => {
  if (!isJson(tokens)) return undefined
  const prompt = natural(tokens.input)
  const answer = natural(tokens.output)
  return prompt === undefined || answer === undefined
    ? undefined
    : { prompt, answer, thoughts: natural(tokens.thoughts) ?? 0, cached: natural(tokens.cached) ?? 0 }
}

/** Kinds of messages that the model sees, with their roles. */
const roles = new Map<unknown, "user" | "model">([
  ["user", "user"],
  ["gemini", "model"]
])

/** The kinds of records that are read. */
export const readKinds: ReadonlyArray<string> = ["metadata", ...[...roles.keys()].map(String), "$set", "$rewindTo"]

/** A message. The parts of its content, and its calls with their results, stay as they are: few folds read them. */
const messageOf = (record: Json) => {
  const { content, type } = record
  const id = textAt(record, "id")
  const role = roles.get(type)
  if (role !== undefined) {
    return { _tag: "Message", id, role, content, model: textAt(record, "model"), usage: usageOf(record) } as const
  }
  // A message that the model does not see.
  return typeof type === "string"
    ? ({ _tag: "Note", id, kind: ignoredKinds.has(type) ? type : `message: ${type}` } as const)
    : broken("type", "expected user, gemini, info, error or warning")
}

/**
 * What is known of the session, or a later change of it. `messages` replace all earlier ones; undefined, they stay. `root` is the
 * path to it in the record.
 */
const sessionOf = (data: Json, root: ReadonlyArray<string>) => {
  // Gemini CLI does not record its folder. A subagent records those of the workspace, other sessions those added later.
  const folders: ReadonlyArray<unknown> = Array.isArray(data.directories) ? data.directories : []
  const [first] = data.kind === "subagent" ? folders : []
  const folder = textAt(data, "cwd") ?? (typeof first === "string" ? first : undefined)
  const title = textAt(data, "summary")
  return { _tag: "Session", id: textAt(data, "sessionId"), folder, title, messages: data.messages, root } as const
}

const bodyOf = (record: Json) => {
  const { $rewindTo: to, role, type } = record
  if (to !== undefined) {
    // The user went back to before a message.
    return typeof to === "string"
      ? ({ _tag: "Rewound", to } as const)
      : broken("$rewindTo", "expected a text, the id of a message")
  }
  const isKnown = roles.has(type) || ignoredKinds.has(String(type))
  if (typeof record.id === "string" || (isKnown && "content" in record)) return messageOf(record)
  if ("$set" in record) {
    return isJson(record.$set) ? sessionOf(record.$set, ["$set"]) : broken("$set", "expected an object")
  }
  if ("sessionId" in record || "projectHash" in record) return sessionOf(record, [])
  // A chat that was saved under a name is a list of contents.
  if (role === "user" || role === "model") {
    return { _tag: "Message", id: undefined, role, content: record.parts, model: undefined, usage: undefined } as const
  }
  return { _tag: "Other", kind: kindAt(record) } as const
}

const timeOf = (record: Json): number | undefined => timeAt(record) ?? timeAt({ timestamp: record.startTime })

/** Decodes a line, or an element of a document. */
export const decodeGemini = (record: Json) => ({ at: timeOf(record), ...bodyOf(record) })

/** Decodes a message in a list of messages, which can be without an id. */
export const decodeGeminiMessage = (record: Json) => ({ at: timeAt(record), ...messageOf(record) })

/** Decodes a session that is one document. */
export const decodeGeminiSession = (record: Json) => sessionOf(record, [])

/** A record of Gemini CLI. */
export type GeminiRecord = ReturnType<typeof decodeGemini>
