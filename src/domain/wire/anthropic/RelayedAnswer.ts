/** Passes on answers of Anthropic's Messages API. */

import type { Part } from "../../content/Content.ts"
import { type Json, jsonAt } from "../../text/JsonObject.ts"
import { type AnswerRelay, type Ending, RelayedStream } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { answerForm } from "./Answer.ts"
import { userBlock } from "./Request.ts"

/** Media as the client sent them: a file that is no address has an id of this provider. */
const mediaBlock = (part: Part): Json => {
  const { fileUri = "", mimeType = "" } = part.fileData ?? {}
  if (part.fileData === undefined || /^https?:/.test(fileUri)) return userBlock(part)
  return { type: mimeType.startsWith("image/") ? "image" : "document", source: { type: "file", file_id: fileUri } }
}

class AnthropicStream extends RelayedStream {
  protected closed(event: SseEvent, data: Json, ending: Ending, usage: unknown): string {
    const isMark = data["delta"] === undefined && data["usage"] === undefined
    if (isMark || (this.rounds === 1 && ending === "as sent")) return event.raw
    const stop = ending === "as sent" ? {} : { stop_reason: "end_turn" }
    return sseText(event, { ...data, delta: { ...jsonAt(data, "delta"), ...stop }, usage })
  }

  protected noted(text: string): string {
    const index = this.nextIndex()
    const events = [
      { type: "content_block_start", index, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index, delta: { type: "text_delta", text } },
      { type: "content_block_stop", index }
    ]
    return events.map((data) => sseText({ name: data.type }, data)).join("")
  }

  protected override failed(error: Json): string {
    return sseText({ name: "error" }, { type: "error", error })
  }
}

/** Passes on answers of Anthropic's Messages API. */
export const anthropicRelay: AnswerRelay = {
  ...answerForm,
  indexKey: "index",
  note: (text) => ({ type: "text", text }),
  withBlocks: (message, content, ending) => ({
    ...message,
    content,
    ...(ending === "stopped" ? { stop_reason: "end_turn" } : {})
  }),
  results: (calls, recalled) => [
    {
      role: "user",
      content: calls.map(({ id }, at) => {
        const { isError, media = [], text = "" } = recalled[at] ?? {}
        const content =
          media.length === 0 ? text : [...media.map(mediaBlock), ...(text === "" ? [] : [{ type: "text", text }])]
        return { type: "tool_result", tool_use_id: id, content, ...(isError === true ? { is_error: true } : {}) }
      })
    }
  ],
  stream: (tool) => new AnthropicStream(anthropicRelay, tool)
}
