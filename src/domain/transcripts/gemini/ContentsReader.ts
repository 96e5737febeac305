/** Reads the history of a conversation with the Gemini API: one JSON document of `Content` objects. */

import { Result, Schema, SchemaIssue } from "effect"
import { type Content, ContentShape, isText, plainText } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { isJson } from "../../text/JsonObject.ts"
import { arraySlices, sliceAt, type SourceText } from "../../text/JsonSource.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { namedContent } from "../../wire/gemini/Messages.ts"
import { isCanonical, lineNumbers, type Piece, sourcesOf, wirePiece } from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"
import { type Problem, recordProblem } from "../Problem.ts"
import { splitAuthorNote } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import type { Step, Transcript } from "../Transcript.ts"
import { isEnvironment, snapshotLook, isSummary } from "./GeminiMessage.ts"

const isContent = Schema.is(ContentShape)

const decodeContent = Schema.decodeUnknownResult(ContentShape)

const issues = SchemaIssue.makeFormatterStandardSchemaV1()

const pathText = (path: ReadonlyArray<unknown>): string =>
  path
    .map((key) => (typeof key === "number" || /^\d+$/.test(String(key)) ? `[${String(key)}]` : `.${String(key)}`))
    .join("")

const maxProblemChars = 160

/** Returns why a value is not a Content. */
const contentProblem = (value: unknown, place: string): Problem => {
  const shown = (other: unknown) => shortLine(JSON.stringify(other) ?? "nothing", 40)
  if (!isJson(value)) {
    return recordProblem(place, `expected a Content (an object with role and parts), got ${shown(value)}`)
  }
  if (value.role !== "user" && value.role !== "model") {
    return recordProblem(`${place}.role`, `expected "user" or "model", got ${shown(value.role)}`)
  }
  const result = decodeContent(value)
  if (Result.isSuccess(result)) return recordProblem(place, "expected a Content")
  const issue = issues(result.failure.issue).issues[0]
  const path = (issue?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
  return recordProblem(
    shortLine(`${place}${pathText(path)}`, maxProblemChars),
    shortLine(issue?.message ?? "expected a Content", maxProblemChars)
  )
}

const authorOf = (
  content: Content,
  next: unknown,
  isUserSeen: boolean,
  isEnvironmentSeen: boolean
): Author | undefined => {
  if (content.role !== "user" || isUserSeen || !content.parts.some(isText)) return undefined
  if (!isEnvironmentSeen && isEnvironment(content.parts)) return "environment"
  const answer = isContent(next) && next.role === "model" ? next.parts : undefined
  return isSummary(snapshotLook(plainText(content).trimStart()), true, answer) ? "summary" : undefined
}

/** The keys of the messages. A checkpoint of Gemini CLI has what its screen showed in `history`. */
const listKeys = ["clientHistory", "history", "contents"]

/** Returns the messages of a document, and their key. */
const listOf = (value: unknown): { readonly key: string | undefined; readonly list: unknown } => {
  if (Array.isArray(value) || !isJson(value)) return { key: undefined, list: value }
  const key = listKeys.find((one) => Array.isArray(value[one])) ?? "contents"
  return { key, list: value[key] }
}

const piecesIn = ({ parts }: Content, slice: SourceText | undefined): ReadonlyArray<Piece> => {
  const slices = slice === undefined ? [] : arraySlices(sliceAt(slice, ["parts"]) ?? "")
  return parts.map((part, index) => wirePiece(part, slices[index]))
}

/** Returns the messages with their exact texts. A document that is spelled as we would write it needs none. */
const slicesOf = (value: unknown, text: string, key: string | undefined): ReadonlyArray<SourceText> | undefined => {
  if (isCanonical(value, text)) return undefined
  return arraySlices(key === undefined ? text : (sliceAt(text, [key]) ?? ""))
}

/**
 * Reads a JSON array of `Content`, `{"history": […]}` or `{"contents": […], …}`. `value` is the parsed `text`. Keys besides
 * the messages (system instruction, tools) are counted as skipped. Runs in slices, because a document may be long.
 */
export function* readContents(value: unknown, text: string): SlicedWork<Transcript | Problem> {
  const { key, list } = listOf(value)
  if (!Array.isArray(list)) {
    return recordProblem("", 'expected a list of Content, {"history": […]} or {"contents": […]}')
  }
  const slices = slicesOf(value, text, key)
  const lines = slices === undefined ? undefined : lineNumbers(text, slices)
  const steps: Array<Step> = []
  let isEnvironmentSeen = false
  let isUserSeen = false
  for (const [index, item] of list.entries()) {
    const whole = namedContent(item)
    const isChanged = isJson(item) && isJson(whole) && whole.parts !== item.parts
    if (!isContent(whole)) return contentProblem(whole, `${key ?? ""}[${index}]`)
    yield
    const split = splitAuthorNote(piecesIn(whole, isChanged ? undefined : slices?.[index]))
    const author: Author | undefined = split.author ?? authorOf(whole, list[index + 1], isUserSeen, isEnvironmentSeen)
    isEnvironmentSeen ||= author === "environment"
    isUserSeen ||= whole.role === "user" && author !== "environment"
    const sources = sourcesOf(split.pieces.map((one) => one.source))
    steps.push({
      _tag: "Message",
      draft: {
        // Keys besides the parts are kept.
        content: split.author === undefined ? whole : { ...whole, parts: split.pieces.map((one) => one.part) },
        ...(author === undefined ? {} : { author }),
        ...(sources === undefined ? {} : { source: sources }),
        origin: { line: lines?.[index] ?? 1, ids: [] }
      }
    })
  }
  const skipped = new Skipped()
  if (isJson(value)) for (const other of Object.keys(value)) if (other !== key) skipped.add(other)
  return {
    format: "contents",
    session: undefined,
    cwd: undefined,
    model: isJson(value) ? textAt(value, "model") : undefined,
    steps,
    skipped: skipped.counts
  }
}
