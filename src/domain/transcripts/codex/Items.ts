/**
 * Reads the response items of Codex, each by its own form or by what this program wrote beside it: messages, reasoning, calls and
 * results.
 */

import { exitCode } from "../../actions/ToolResults.ts"
import { type Content, isPart } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { type SourceText, sliceAt, spelledSurrogate } from "../../text/JsonSource.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import {
  type OpenAnswer,
  type Piece,
  type Exact,
  thoughtPiece,
  answerPiece,
  callPiece,
  type Locate,
  needsExact,
  nowhere,
  under
} from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import { isProblem, type Problem, recordProblem } from "../Problem.ts"
import { exactPieces, marksOf, markedAuthor, readMarks, splitAuthorNote } from "../RecordMarks.ts"
import type { Skipped } from "../Skipped.ts"
import { authorOf } from "../voice/Voice.ts"
import { agentMessage, recordedSpeaker } from "./Record.ts"

/** The message of a response item. */
export interface ItemMessage {
  readonly role: Content["role"]
  readonly author: Author | undefined
  /** Consecutive items of the same kind form one message. */
  readonly joins: "model" | "answers" | undefined
  readonly parts: ReadonlyArray<Piece | OpenAnswer>
  /** The call that the item makes. */
  readonly call: { readonly id: string; readonly name: string } | undefined
  /** The result of that call, when the item has it too. */
  readonly result?: ItemMessage
}

/** Makes the message of an item. Those of the model join each other. */
export const messageOf = (role: Content["role"], list: ReadonlyArray<Piece>, author?: Author): ItemMessage => ({
  role,
  author,
  joins: role === "model" ? "model" : undefined,
  parts: list,
  call: undefined
})

/** Parses a text as a JSON object; undefined when it is not one. */
export const objectOf = (text: string): Json | undefined => {
  const value = parsedOrUndefined(text)
  return isJson(value) ? value : undefined
}

/** Whether an item joins the message before it: consecutive items of the model, and consecutive tool results. */
export const continuesMessage = (before: ItemMessage["joins"], next: ItemMessage["joins"]): boolean =>
  next !== undefined && before === next

/** The type of an item that Codex ignores. It carries a message for which Codex has no form. */
export const carrier = "other"

/**
 * Writes exact parts as texts without escapes or bytes that are not valid Unicode: Codex refuses a file or a line with such bytes. So each
 * is JSON within a JSON string. The spelling of a part, where it is kept, stands for the part.
 */
export const escaped = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> =>
  pieces.map(({ part, source }) => JSON.stringify(source === undefined ? { part } : { source }))

const readEscaped = (value: unknown): Piece | undefined => {
  const piece = typeof value === "string" ? objectOf(value) : undefined
  const source = piece === undefined ? undefined : textAt(piece, "source")
  const part = source === undefined ? piece?.part : parsedOrUndefined(source)
  return isPart(part) ? { part, source } : undefined
}

/** Returns the exact parts that a record carries, as JSON where an earlier state of this program wrote it; undefined when its own form is exact. */
const readExact = (record: Json, text: string): ReadonlyArray<Piece> | Problem | undefined => {
  const { escaped: list } = marksOf(record)
  if (list === undefined) return exactPieces(record, text, "parts")
  const found = Array.isArray(list) ? list.map(readEscaped) : [undefined]
  const whole = found.filter((piece) => piece !== undefined)
  return whole.length === found.length
    ? whole
    : recordProblem("palimpsest.escaped", "expected a list of parts, each in a text")
}

/** Applies what this program wrote beside an item to its message. */
export const withMarks = (found: ItemMessage, record: Json, text: string): ItemMessage | Problem => {
  const exact = readExact(record, text)
  return isProblem(exact)
    ? exact
    : { ...found, author: markedAuthor(readMarks(record), found.author), parts: exact ?? found.parts }
}

/** Returns a message for which Codex has no form: all of it stands beside. */
export const carriedMessage = (role: unknown): ItemMessage | Problem =>
  role === "user" || role === "model"
    ? messageOf(role, [])
    : recordProblem("role", 'expected "user" or "model" in a message of ours')

/** Calls and thoughts are items of their own, no blocks. */
const readContent = (item: Json, at: Locate, skipped: Skipped): ReadonlyArray<Piece> | Problem =>
  readBlocks(item.content, under(at, "content"), undefined, skipped)

/** The beginning of a compaction's summary in Codex. */
const summaryMark = "Another language model started to solve this problem and produced a summary"

/** Returns the author of a message in the user's role, and the message without an author note. */
const userMessage = (item: Json, list: ReadonlyArray<Piece>, summary: string | undefined): ItemMessage => {
  const { author, pieces: rest } = splitAuthorNote(list)
  if (author !== undefined) return messageOf("user", rest, author)
  const speaker = recordedSpeaker(item)
  if (speaker === "user") return messageOf("user", list)
  const first = list[0]?.part.text
  if (
    first !== undefined &&
    (first.startsWith(summaryMark) || (list.length === 1 && first === summary && first !== ""))
  )
    return messageOf("user", list, "summary")
  return messageOf("user", list, authorOf(list.map(({ part }) => part)) ?? speaker)
}

/** Reads a message of another agent. One that only its provider can read is counted as skipped. */
const readAgentMessage = (item: Json, at: Locate, skipped: Skipped): ItemMessage | Problem | undefined => {
  const list = readContent(item, at, skipped)
  if (isProblem(list)) return list
  return list.length === 0 ? undefined : messageOf("user", list, "program")
}

const readMessage = (item: Json, at: Locate, skipped: Skipped, summary?: string): ItemMessage | Problem | undefined => {
  const { role } = item
  if (typeof role !== "string") return recordProblem("role", "expected a text in a message")
  if (!["user", "assistant", "developer", "system"].includes(role)) {
    skipped.add(`message: ${role}`)
    return undefined
  }
  const list = readContent(item, at, skipped)
  if (isProblem(list)) return list
  if (role === "assistant") {
    const sent = item.phase === "commentary" && list.length === 1 ? objectOf(list[0]?.part.text ?? "") : undefined
    // Versions before `agent_message` items record what another agent sent as the model's text.
    return sent !== undefined && "author" in sent && "recipient" in sent && "trigger_turn" in sent
      ? readAgentMessage(agentMessage(sent), nowhere, skipped)
      : messageOf("model", list)
  }
  return role === "user" ? userMessage(item, list, summary) : messageOf("user", list, "program")
}

const readThoughts = (item: Json, at: Locate, skipped: Skipped): ItemMessage | Problem | undefined => {
  const thoughts: Array<{ readonly text: string; readonly exact: Exact }> = []
  for (const key of ["summary", "content"]) {
    const list = item[key] ?? []
    if (!Array.isArray(list)) return recordProblem(key, "expected a list of texts in a reasoning item")
    for (const [index, block] of list.entries()) {
      if (!isJson(block) || typeof block.text !== "string")
        return recordProblem(`${key}[${index}].text`, "expected a text in a reasoning item")
      thoughts.push({ text: block.text, exact: at([key, index, "text"]) })
    }
  }
  const signature = textAt(item, "encrypted_content")
  if (thoughts.length === 0) {
    if (signature !== undefined) return messageOf("model", [thoughtPiece("", signature, () => undefined)])
    skipped.add("response_item: reasoning without text")
    return undefined
  }
  return messageOf(
    "model",
    thoughts.map(({ exact, text }, index) =>
      thoughtPiece(text, index === thoughts.length - 1 ? signature : undefined, exact)
    )
  )
}

/** The message of a result. Consecutive results join. */
const resultMessage = (part: Piece | OpenAnswer): ItemMessage => ({
  role: "user",
  author: undefined,
  joins: "answers",
  parts: [part],
  call: undefined
})

/** The arguments of a call, which are a JSON text inside the JSON. */
interface Arguments {
  readonly args: Json | undefined
  readonly exact: Exact
}

const textArgument = (key: string, text: string, literal: Exact): Arguments => ({
  args: { [key]: text },
  exact: () => {
    const slice = literal()
    return slice === undefined ? undefined : `{"${key}":${slice}}`
  }
})

/**
 * Reads arguments. The JSON text of an object is parsed and its spelling kept; an empty text means no arguments. Any other
 * text, JSON or not, becomes the one argument `arguments`, so that nothing is lost and args are always an object.
 */
const readArguments = (text: string, literal: Exact): Arguments => {
  if (text === "") return { args: undefined, exact: () => undefined }
  const spelled = !text.isWellFormed() && spelledSurrogate.test(literal() ?? "")
  const args = spelled ? undefined : objectOf(text)
  return args === undefined ? textArgument("arguments", text, literal) : { args, exact: () => text }
}

/** Returns the whole name of a tool. A server's tool has the server beside it (Codex since 0.118), and in its name before. */
const nameOf = ({ name, namespace: server }: Json): unknown =>
  typeof name === "string" && typeof server === "string" && server.startsWith("mcp__")
    ? `${server.replace(/_*$/, "")}__${name}`
    : name

/** Reads a call of a function (`arguments`) or of a custom tool (`input`). */
const readCall = (item: Json, at: Locate, argument: "arguments" | "input"): ItemMessage | Problem => {
  const text = item[argument]
  const { call_id: id } = item
  const name = nameOf(item)
  const wrong = (key: string) => recordProblem(key, `expected a text in a ${String(item.type)}`)
  if (typeof name !== "string") return wrong("name")
  if (typeof text !== "string") return wrong(argument)
  if (typeof id !== "string") return wrong("call_id")
  const literal = at([argument])
  const { args, exact } = argument === "input" ? textArgument("input", text, literal) : readArguments(text, literal)
  return { ...messageOf("model", [callPiece({ id, name, args }, exact)]), call: { id, name } }
}

const shellCall = "local_shell"

/** Reads a call of the shell in the form of 2025. */
const readShellCall = (item: Json, at: Locate): ItemMessage | Problem => {
  if (!isJson(item.action)) return recordProblem("action", "expected an object in a local_shell_call")
  const id = textAt(item, "call_id") ?? textAt(item, "id")
  return {
    ...messageOf("model", [callPiece({ id, name: shellCall, args: item.action }, at(["action"]))]),
    call: id === undefined ? undefined : { id, name: shellCall }
  }
}

/** Tools whose results state in Codex's own words how they ended. */
const toolsThatReportFailure = new Set([
  "shell",
  "shell_command",
  "exec_command",
  "write_stdin",
  "container.exec",
  "apply_patch",
  "exec",
  shellCall
])

/** Codex's text for a call that it did not carry out. */
const notExecuted =
  /^(?:Script (?:failed|terminated)\n|apply_patch verification failed|failed to parse function arguments|(?:exec command|patch) rejected|(?:exec_command|write_stdin) failed(?: for `|: )|`[^]*` rejected: |(?:Wall time: .*\n)?aborted)/

/** Codex's text for a call that a server did not answer. */
const unanswered = /^(?:Wall time: .*\nOutput:\n)?(?:Error: )?tool call error: tool call failed for `/

const saysItFailed = (name: string | undefined, text: string): boolean => {
  if (name?.startsWith("mcp__") === true) return unanswered.test(text.slice(0, 200))
  if (name === undefined || !toolsThatReportFailure.has(name)) return false
  const code = exitCode({ functionResponse: { name, response: { output: text } } })
  return (code !== undefined && code !== 0) || notExecuted.test(text.slice(0, 200))
}

/** Returns the text with which a result begins. */
const firstText = (value: unknown): string => {
  const first: unknown = Array.isArray(value) ? value[0] : value
  return typeof first === "string" ? first : isJson(first) ? (textAt(first, "text") ?? "") : ""
}

/**
 * Reads a result: a text, a list of content items, or `{content, success}`. The text stays unchanged, even when it is JSON
 * around the output. It is an error when `success` says so, or when the text of a shell or a patch does.
 */
const readAnswer = (item: Json, at: Locate): ItemMessage | Problem => {
  const { call_id: id, output } = item
  if (typeof id !== "string") return recordProblem("call_id", `expected a text in a ${String(item.type)}`)
  const wrapped = isJson(output)
  const content = wrapped ? output.content : output
  if (typeof content !== "string" && !(Array.isArray(content) && content.every(isJson))) {
    return recordProblem("output", "expected a text, a list of content items or an object with content")
  }
  const path = wrapped ? ["output", "content"] : ["output"]
  const only: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined
  const single = isJson(only) && only.type === "input_text" && typeof only.text === "string" ? only.text : undefined
  const value: unknown = single ?? content
  // Taken now, so that the line's text can be released before the name of the call is known.
  const slice = needsExact(value) ? at(path)() : undefined
  const exact: SourceText | undefined =
    slice !== undefined && single !== undefined ? sliceAt(slice, [0, "text"]) : slice
  const answer = { id, name: undefined, failed: wrapped && output.success === false, content: value }
  return resultMessage({ answer, exact: () => exact, failsAs: (name) => saysItFailed(name, firstText(value)) })
}

const ownFields = new Set(["type", "id", "call_id", "status", "result", "results", "output", "outputs", "error"])

/** Returns what the provider's own tool answered: why it failed, an image, a text, or how the call ended. */
const providerResult = (item: Json): unknown => {
  const { error, type } = item
  const output = error ?? item.output ?? item.outputs ?? item.results ?? item.result
  if (output === undefined || output === null) return textAt(item, "status") ?? ""
  if (type !== "image_generation_call" || output === error || typeof output !== "string") {
    return typeof output === "string" ? output : JSON.stringify(output)
  }
  return [{ type: "input_image", image_url: `data:image/png;base64,${output}` }]
}

/**
 * Reads a call of a tool that the provider runs (`web_search_call`), which has its result itself; a call with a `call_id`
 * has it in an item of its own.
 */
const readProviderCall = (item: Json, type: string, at: Locate, place: string | undefined): ItemMessage => {
  const name = type.replace(/_call$/, "")
  const own = ["action", "arguments"].find((key) => isJson(item[key]))
  const args: unknown =
    own === undefined ? Object.fromEntries(Object.entries(item).filter(([key]) => !ownFields.has(key))) : item[own]
  const callId = textAt(item, "call_id")
  const id = callId ?? textAt(item, "id") ?? (place === undefined ? undefined : `${name}_${place}`)
  const made = messageOf("model", [callPiece({ id, name, args }, own === undefined ? () => undefined : at([own]))])
  const call = id === undefined ? undefined : { id, name }
  if (callId !== undefined) return { ...made, call }
  const failed = item.status === "failed" || (item.error ?? undefined) !== undefined
  const result = answerPiece({ id, name, failed, content: providerResult(item) }, () => undefined)
  return {
    ...made,
    call,
    result: resultMessage(result)
  }
}

/** Reads the result of such a call (`tool_search_output`). */
const readProviderAnswer = (item: Json, id: string): ItemMessage => {
  const { output = Object.fromEntries(Object.entries(item).filter(([key]) => !ownFields.has(key))) } = item
  const content = typeof output === "string" ? output : JSON.stringify(output)
  const answer = { id, name: undefined, failed: item.status === "failed", content }
  return resultMessage({ answer, exact: () => undefined })
}

type Read = ItemMessage | Problem | undefined

/** How each type of item is read. */
const readers: ReadonlyMap<unknown, (item: Json, at: Locate, skipped: Skipped, summary?: string) => Read> = new Map(
  Object.entries({
    message: readMessage,
    agent_message: readAgentMessage,
    reasoning: readThoughts,
    function_call: (item: Json, at: Locate) => readCall(item, at, "arguments"),
    function_call_output: readAnswer,
    custom_tool_call: (item: Json, at: Locate) => readCall(item, at, "input"),
    custom_tool_call_output: readAnswer,
    local_shell_call: readShellCall
  })
)

/** The kinds of response items that are read: calls and results of a provider's tools by the end of their names. */
export const readItemKinds: ReadonlyArray<string> = [...readers.keys(), "…_call", "…_output"].map(
  (kind) => `response_item: ${String(kind)}`
)

/**
 * Reads a response item by its own form. Returns undefined for an item that is not part of the conversation, which is
 * counted as skipped. `place` names the item in its file; `summary` is the text of a compaction's summary.
 */
export const readItem = (
  item: Json,
  at: Locate,
  skipped: Skipped,
  { place, summary }: { readonly place?: string; readonly summary?: string | undefined } = {}
): Read => {
  const { type } = item
  const read = readers.get(type)
  if (read !== undefined) return read(item, at, skipped, summary)
  if (typeof type !== "string") return recordProblem("type", "expected a text, the kind of the item")
  if (type.endsWith("_call")) return readProviderCall(item, type, at, place)
  if (type.endsWith("_output") && typeof item.call_id === "string") return readProviderAnswer(item, item.call_id)
  skipped.addRecord(`response_item: ${type}`)
  return undefined
}
