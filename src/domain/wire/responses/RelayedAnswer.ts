/** Passes on answers of OpenAI's Responses API. */

import type { Part } from "../../content/Content.ts"
import { type Json, jsonAt, jsonsAt } from "../../text/JsonObject.ts"
import type { Growth } from "../AnswerForm.ts"
import { type AnswerRelay, type Ending, RelayedStream } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { answerForm } from "./Answer.ts"
import { inputPart } from "./Request.ts"

/** Returns an item with a message of the gateway. */
const noteItem = (text: string, at: number) => ({
  id: `msg_palimpsest_${at}`,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }]
})

/** Media as the client sent them: a file that is no address has an id of this provider. */
const mediaPart = (part: Part): Json => {
  const { fileUri = "", mimeType = "" } = part.fileData ?? {}
  if (part.fileData === undefined || /^https?:/.test(fileUri)) return inputPart(part)
  return { type: mimeType.startsWith("image/") ? "input_image" : "input_file", file_id: fileUri }
}

class ResponsesStream extends RelayedStream {
  /** The response as the client received it at the beginning. Clients reject an ending with another identity. */
  private identity: Json = {}
  /** The number of the last event that the client received. */
  private last: number | undefined

  protected override pass(event: SseEvent, data: Json, growth: Growth): string {
    const { created_at, id } = jsonAt(data, "response")
    if (id !== undefined) this.identity = { id, ...(created_at === undefined ? {} : { created_at }) }
    return super.pass(event, data, growth)
  }

  /** Numbers an event, for some are left out or added. Rewrites it only where it differs from what the provider sent. */
  protected override changed(event: SseEvent, data: Json, changes: Json): string {
    const number = data["sequence_number"]
    if (typeof number === "number") this.last = this.last === undefined ? number : this.nextNumber
    const isSame = typeof number !== "number" || number === this.last
    if (isSame && Object.keys(changes).length === 0) return event.raw
    return sseText(event, { ...data, ...changes, ...(isSame ? {} : { sequence_number: this.last }) })
  }

  private get nextNumber(): number {
    return (this.last ?? -1) + 1
  }

  protected noted(text: string): string {
    const output_index = this.nextIndex()
    const item = noteItem(text, output_index)
    const [part] = item.content
    const at = { output_index, item_id: item.id, content_index: 0 }
    const events = [
      { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", content: [] } },
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      { type: "response.output_text.delta", ...at, delta: text },
      { type: "response.output_text.done", ...at, text },
      { type: "response.content_part.done", ...at, part },
      { type: "response.output_item.done", output_index, item }
    ]
    return events
      .map((data) => {
        this.last = this.nextNumber
        return sseText({ name: data.type }, { ...data, sequence_number: this.last })
      })
      .join("")
  }

  protected closed(event: SseEvent, data: Json, _: Ending, usage: unknown): string {
    const response = jsonAt(data, "response")
    const shown = this.shownOf(response)
    if (this.rounds === 1 && shown.length === jsonsAt(response, "output").length) return event.raw
    const output = [...this.before, ...shown]
    return this.changed(event, data, { response: { ...response, ...this.identity, output, usage } })
  }

  protected override failed({ code, message }: Json): string {
    const response = {
      ...this.identity,
      object: "response",
      status: "failed",
      output: this.before,
      error: { code: code ?? "server_error", message }
    }
    return sseText({ name: "response.failed" }, { type: "response.failed", sequence_number: this.nextNumber, response })
  }
}

/** Passes on answers of OpenAI's Responses API. */
export const responsesRelay: AnswerRelay = {
  ...answerForm,
  indexKey: "output_index",
  note: noteItem,
  withBlocks: (response, output) => ({ ...response, output }),
  results: (calls, recalled) =>
    calls.map(({ id }, at) => {
      const { media = [], text = "" } = recalled[at] ?? {}
      const output =
        media.length === 0 ? text : [...media.map(mediaPart), ...(text === "" ? [] : [{ type: "input_text", text }])]
      return { type: "function_call_output", call_id: id, output }
    }),
  stream: (tool) => new ResponsesStream(responsesRelay, tool)
}
