import { splitAuthorNote } from "../AuthorNote.ts"
import { type Exact, type Piece, thoughtPiece } from "../ExactParts.ts"
import { isJson, type Json, textAt } from "../JsonRecord.ts"
import { readBlocks } from "../ListedBlocks.ts"
import { isRecordProblem, recordProblem, type RecordProblem } from "../Problem.ts"
import type { Skipped } from "../Skipped.ts"
import { authorOf } from "../voice/Voice.ts"
import { readAnswer, readCall, readProviderAnswer, readProviderCall, readShellCall } from "./CallItems.ts"
import { type ItemMessage, type ItemSource, listAt, messageOf, objectOf } from "./ItemMessage.ts"
import { agentMessage } from "./Record.ts"

/** Reads the response items of Codex: messages, reasoning, calls and results, each by its own form. */

const readContent = (item: Json, source: ItemSource, skipped: Skipped): ReadonlyArray<Piece> | RecordProblem => {
  const path = [...source.root, "content"]
  // Calls and thoughts are items of their own, no blocks.
  const read = readBlocks(item.content, listAt(source, "content"), path, undefined, skipped)
  return isRecordProblem(read) ? recordProblem(`${source.name}${read.path}`, read.detail) : read
}

/** The beginning of a compaction's summary in Codex. */
const summaryMark = "Another language model started to solve this problem and produced a summary"

/** Returns the author of a message in the user's role, and the message without an author note. */
const userMessage = (list: ReadonlyArray<Piece>, summary: string | undefined): ItemMessage => {
  const { author, pieces: rest } = splitAuthorNote(list)
  if (author !== undefined) return messageOf("user", rest, author)
  const first = list[0]?.part.text
  if (
    first !== undefined &&
    (first.startsWith(summaryMark) || (list.length === 1 && first === summary && first !== ""))
  )
    return messageOf("user", list, "summary")
  return messageOf("user", list, authorOf(list.map(({ part }) => part)))
}

/** Reads a message of another agent. One that only its provider can read is counted as skipped. */
const readAgentMessage = (
  item: Json,
  source: ItemSource,
  skipped: Skipped
): ItemMessage | RecordProblem | undefined => {
  const list = readContent(item, source, skipped)
  if (isRecordProblem(list)) return list
  return list.length === 0 ? undefined : messageOf("user", list, "program")
}

const readMessage = (
  item: Json,
  source: ItemSource,
  skipped: Skipped,
  summary?: string
): ItemMessage | RecordProblem | undefined => {
  const { role } = item
  if (typeof role !== "string") return recordProblem(`${source.name}role`, "expected a text in a message")
  if (!["user", "assistant", "developer", "system"].includes(role)) {
    skipped.add(`message: ${role}`)
    return undefined
  }
  const list = readContent(item, source, skipped)
  if (isRecordProblem(list)) return list
  if (role === "assistant") {
    const sent = item.phase === "commentary" && list.length === 1 ? objectOf(list[0]?.part.text ?? "") : undefined
    // Versions before `agent_message` items record what another agent sent as the model's text.
    return sent !== undefined && "author" in sent && "recipient" in sent && "trigger_turn" in sent
      ? readAgentMessage(agentMessage(sent), { ...source, text: "", root: [] }, skipped)
      : messageOf("model", list)
  }
  return role === "user" ? userMessage(list, summary) : messageOf("user", list, "program")
}

const readThoughts = (item: Json, source: ItemSource, skipped: Skipped): ItemMessage | RecordProblem | undefined => {
  const thoughts: Array<{ readonly text: string; readonly exact: Exact }> = []
  for (const key of ["summary", "content"]) {
    const list = item[key] ?? []
    if (!Array.isArray(list))
      return recordProblem(`${source.name}${key}`, "expected a list of texts in a reasoning item")
    const locator = listAt(source, key)
    for (const [index, block] of list.entries()) {
      if (!isJson(block) || typeof block.text !== "string")
        return recordProblem(`${source.name}${key}[${index}].text`, "expected a text in a reasoning item")
      thoughts.push({ text: block.text, exact: locator.under(index, "text") })
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

type Read = ItemMessage | RecordProblem | undefined

/** How each type of item is read. */
const readers: ReadonlyMap<unknown, (item: Json, source: ItemSource, skipped: Skipped, summary?: string) => Read> =
  new Map(
    Object.entries({
      message: readMessage,
      agent_message: readAgentMessage,
      reasoning: readThoughts,
      function_call: (item: Json, source: ItemSource) => readCall(item, source, "arguments"),
      function_call_output: readAnswer,
      custom_tool_call: (item: Json, source: ItemSource) => readCall(item, source, "input"),
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
 * counted as skipped. `summary` is the text of a compaction's summary.
 */
export const readItem = (item: Json, source: ItemSource, skipped: Skipped, summary?: string): Read => {
  const { type } = item
  const read = readers.get(type)
  if (read !== undefined) return read(item, source, skipped, summary)
  if (typeof type !== "string") return recordProblem(`${source.name}type`, "expected a text, the kind of the item")
  if (type.endsWith("_call")) return readProviderCall(item, type, source)
  if (type.endsWith("_output") && typeof item.call_id === "string") return readProviderAnswer(item, item.call_id)
  skipped.addRecord(`response_item: ${type}`)
  return undefined
}
