/** What Claude Code shows to the model beside a message, which it records as attachments. */

import { type Json, jsonAt, jsonsAt } from "../../text/JsonObject.ts"
import { type Piece, textPiece } from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"

type Shown = ReadonlyArray<Piece | string | undefined>

const titled = (title: string, text: string | undefined): string | undefined =>
  text === undefined || text.trim() === "" ? undefined : `${title}\n\n${text}`

const contentsOf = (path: string | undefined, text: string | undefined): string | undefined =>
  titled(`Contents of ${path ?? "a file"}:`, text)

/** A file that the user mentioned, or that is shown again after a compaction. */
const fileOf = (attachment: Json): Shown => {
  const content = jsonAt(attachment, "content")
  const file = jsonAt(content, "file")
  const data = textAt(file, "base64")
  const mimeType = content.type === "pdf" ? "application/pdf" : textAt(file, "type")
  if (data !== undefined && mimeType !== undefined)
    return [{ part: { inlineData: { mimeType, data } }, source: undefined }]
  const cells = jsonsAt(file, "cells").flatMap((cell) => textAt(cell, "source") ?? [])
  const path = textAt(attachment, "filename") ?? textAt(file, "filePath")
  return [contentsOf(path, cells.length > 0 ? cells.join("\n\n") : textAt(file, "content"))]
}

/** Named texts of a list. */
const contentsIn = (one: Json, list: string): Shown =>
  jsonsAt(one, list).map((each) => contentsOf(textAt(each, "path"), textAt(each, "content")))

const selectedIn = (one: Json, key: string): string | undefined =>
  titled(`The user selected lines in ${textAt(one, key) ?? "a file"}:`, textAt(one, "content"))

const lines = (value: unknown): string | undefined =>
  typeof value === "string"
    ? value
    : Array.isArray(value)
      ? value.filter((one) => typeof one === "string").join("\n")
      : undefined

/** What the program says to the model in its own words. */
const fieldTexts =
  (key: string) =>
  (one: Json): Shown => [lines(one[key])]

const hook = (one: Json, text: string | undefined): Shown => [titled(`Hook ${textAt(one, "hookName") ?? ""}:`, text)]

/** Events whose hooks add what they print to the conversation. */
const printingHooks = new Set(["SessionStart", "UserPromptSubmit"])

const shownBy: Readonly<Record<string, (attachment: Json) => Shown>> = {
  file: fileOf,
  directory: (one) => [contentsOf(textAt(one, "path"), textAt(one, "content"))],
  edited_text_file: (one) => [
    titled(`${textAt(one, "filename") ?? "A file"} was changed outside the conversation:`, textAt(one, "snippet") ?? "")
  ],
  selected_lines_in_ide: (one) => [selectedIn(one, "filename")],
  selected_lines_in_diff: (one) => [selectedIn(one, "filePath")],
  nested_memory: (one) => [contentsOf(textAt(one, "path"), textAt(jsonAt(one, "content"), "content"))],
  relevant_memories: (one) => contentsIn(one, "memories"),
  instructions: (one) => contentsIn(one, "files"),
  plan_file_reference: (one) => [contentsOf(textAt(one, "planFilePath"), textAt(one, "planContent"))],
  invoked_skills: (one) => contentsIn(one, "skills"),
  mcp_resource: (one) =>
    jsonsAt(jsonAt(one, "content"), "contents").map((content) =>
      contentsOf(textAt(one, "uri"), textAt(content, "text"))
    ),
  diagnostics: (one) =>
    jsonsAt(one, "files").map((file) =>
      titled(
        `Diagnostics of ${textAt(file, "uri") ?? "a file"}:`,
        jsonsAt(file, "diagnostics")
          .flatMap((found) => textAt(found, "message") ?? [])
          .join("\n")
      )
    ),
  hook_additional_context: (one) => hook(one, lines(one.content)),
  hook_success: (one) => (printingHooks.has(textAt(one, "hookEvent") ?? "") ? hook(one, lines(one.content)) : []),
  hook_blocking_error: (one) => hook(one, textAt(jsonAt(one, "blockingError"), "blockingError")),
  hook_stopped_continuation: (one) => hook(one, textAt(one, "message")),
  async_hook_response: (one) => {
    const response = jsonAt(one, "response")
    return [
      titled("Hook:", textAt(response, "systemMessage")),
      titled("Hook:", textAt(jsonAt(response, "hookSpecificOutput"), "additionalContext"))
    ]
  },
  account_memory_recall: fieldTexts("content"),
  agent_ask_notice: fieldTexts("lines"),
  artifact_opening_prefetch: fieldTexts("content"),
  claude_app_notice: fieldTexts("lines"),
  critical_system_reminder: fieldTexts("content"),
  fork_briefing: fieldTexts("text"),
  linked_plugin_tools_note: fieldTexts("text"),
  tool_hosts_correction: fieldTexts("lines"),
  tool_hosts_notice: fieldTexts("lines"),
  plugin_note: (one) => [titled(`Plugin ${textAt(one, "plugin") ?? ""}:`, lines(one.content))],
  teammate_mailbox: (one) =>
    jsonsAt(one, "messages").map((message) =>
      titled(`Message of the agent ${textAt(message, "from") ?? ""}:`, textAt(message, "text"))
    )
}

/**
 * Returns what an attachment shows to the model; nothing for one that shows nothing from outside, such as a list of tools, or that
 * this program does not know.
 */
export const attachmentPieces = (attachment: Json): ReadonlyArray<Piece> => {
  const kind = textAt(attachment, "type") ?? ""
  const shown = Object.hasOwn(shownBy, kind) ? shownBy[kind]?.(attachment) : undefined
  return (shown ?? []).flatMap((one) =>
    one === undefined ? [] : typeof one === "string" ? [textPiece(one, () => undefined)] : [one]
  )
}

/** The kinds of attachments whose text the model saw. */
export const shownAttachments: ReadonlyArray<string> = Object.keys(shownBy)
