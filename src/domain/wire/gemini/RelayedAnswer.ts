/** Passes on answers of the Gemini API. */

import { type Json, jsonAt } from "../../text/JsonObject.ts"
import { type AnswerRelay, type Ending, RelayedStream } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { answerForm, candidateOf, isEmptyText, partsOf } from "./Answer.ts"

/** Returns a candidate with other parts. Clients drop a turn without parts, so that it gets an empty text, as from the API. */
const withParts = (candidate: Json, parts: ReadonlyArray<Json>): Json => ({
  ...candidate,
  content: { role: "model", ...jsonAt(candidate, "content"), parts: parts.length === 0 ? [{ text: "" }] : parts }
})

class GeminiStream extends RelayedStream {
  protected override pass(event: SseEvent, data: Json): string {
    const candidate = candidateOf(data)
    const shown = this.shownOf(data)
    if (candidate === undefined || shown.length === partsOf(candidate).length) return event.raw
    return shown.length === 0 ? "" : sseText(event, { ...data, candidates: [withParts(candidate, shown)] })
  }

  /** The parts of an event that also ends the answer. */
  protected override opened(event: SseEvent, data: Json): string {
    const shown = this.shownOf(data)
    if (shown.every(isEmptyText)) return ""
    const { finishReason: _reason, ...open } = candidateOf(data) ?? {}
    const { usageMetadata: _usage, ...rest } = data
    return sseText(event, { ...rest, candidates: [withParts(open, shown)] })
  }

  protected closed(event: SseEvent, data: Json, _: Ending, counts: unknown): string {
    const candidate = candidateOf(data)
    const shown = this.shownOf(data)
    if (this.rounds === 1 && shown.length === partsOf(candidate).length) return event.raw
    // The last event that has counts may come without a candidate.
    const candidates = candidate === undefined ? {} : { candidates: [withParts(candidate, shown)] }
    return sseText(event, { ...data, ...candidates, usageMetadata: counts })
  }

  protected noted(text: string): string {
    return sseText({ name: "" }, { candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }] })
  }
}

/** Passes on answers of the Gemini API. */
export const geminiRelay: AnswerRelay = {
  ...answerForm,
  note: (text) => ({ text }),
  withBlocks: (answer, parts) => ({ ...answer, candidates: [withParts(candidateOf(answer) ?? {}, parts)] }),
  results: (calls, recalled) => [
    {
      role: "user",
      parts: [
        ...calls.map(({ id, name }, at) => {
          const { isError, text = "" } = recalled[at] ?? {}
          const response = isError === true ? { error: text } : { output: text }
          return { functionResponse: { ...(id === "" ? {} : { id }), name, response } }
        }),
        ...recalled.flatMap(({ media }) => media)
      ]
    }
  ],
  stream: (tool) => new GeminiStream(geminiRelay, tool)
}
