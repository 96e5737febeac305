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
  summary: string | undefined,
  skipped: Skipped
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

/**
 * Reads a response item by its own form. Returns undefined for an item that is not part of the conversation, which is
 * counted as skipped. `summary` is the text of a compaction's summary.
 */
export const readItem = (
  item: Json,
  source: ItemSource,
  skipped: Skipped,
  summary?: string | undefined
): ItemMessage | RecordProblem | undefined => {
  switch (item.type) {
    case "message":
      return readMessage(item, source, summary, skipped)
    case "agent_message":
      return readAgentMessage(item, source, skipped)
    case "reasoning":
      return readThoughts(item, source, skipped)
    case "function_call":
      return readCall(item, source, "arguments")
    case "custom_tool_call":
      return readCall(item, source, "input")
    case "local_shell_call":
      return readShellCall(item, source)
    case "function_call_output":
    case "custom_tool_call_output":
      return readAnswer(item, source)
    default:
      if (typeof item.type !== "string")
        return recordProblem(`${source.name}type`, "expected a text, the kind of the item")
      if (item.type.endsWith("_call")) return readProviderCall(item, item.type, source)
      if (item.type.endsWith("_output") && typeof item.call_id === "string")
        return readProviderAnswer(item, item.call_id)
      skipped.addRecord(`response_item: ${item.type}`)
      return undefined
  }
}
