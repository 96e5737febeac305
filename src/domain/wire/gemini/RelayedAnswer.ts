import { parsedOrUndefined } from "../../text/JsonText.ts"
import { addedCounts } from "../AddedCounts.ts"
import { isJson, type Json, textAt } from "../MessageCodec.ts"
import type { AnswerDialect, AnswerStream, ReadAnswer, RecallCall, VisibleBlock } from "../RelayedAnswer.ts"
import { type SseEvent, sseText } from "../SseEvents.ts"
import { type BlockForm, wholeBlocks } from "../WholeBlocks.ts"
import { candidateOf, partsOf } from "./Answer.ts"

/** Answers of the Gemini API. */

/** Returns a candidate with other parts. */
const withParts = (candidate: Json, parts: ReadonlyArray<Json>): Json => {
  const content = isJson(candidate["content"]) ? candidate["content"] : { role: "model" }
  return { ...candidate, content: { ...content, parts } }
}

const callIn = (part: Json): Json | undefined => (isJson(part["functionCall"]) ? part["functionCall"] : undefined)

const isRecall = (tool: string, part: Json): boolean => callIn(part)?.["name"] === tool

const visibleOf = (part: Json): VisibleBlock =>
  typeof part["text"] === "string"
    ? { kind: part["thought"] === true ? "thought" : "text", text: part["text"] }
    : { kind: "other", text: "" }

const callOf = (part: Json): RecallCall => {
  const call = callIn(part) ?? {}
  return { id: textAt(call, "id"), name: textAt(call, "name"), args: call["args"], json: JSON.stringify(part) }
}

const isPlainText = (part: Json | undefined): part is Json =>
  part !== undefined && typeof part["text"] === "string" && Object.keys(part).length === 1

/** Joins the pieces of streamed texts. */
const joined = (parts: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const whole: Array<Json> = []
  for (const part of parts) {
    const last = whole.at(-1)
    if (isPlainText(last) && isPlainText(part))
      whole[whole.length - 1] = { text: textAt(last, "text") + textAt(part, "text") }
    else whole.push(part)
  }
  return whole
}

const answerOf = (tool: string, parts: ReadonlyArray<Json>, usage: unknown): ReadAnswer => {
  const own = parts.filter((part) => isRecall(tool, part))
  const content = joined(parts.filter((part) => part["thought"] !== true && part["text"] !== ""))
  return {
    calls: own.map(callOf),
    hasOthers: parts.some((part) => callIn(part) !== undefined && !isRecall(tool, part)),
    sent: [JSON.stringify({ role: "model", parts: content })],
    visible: joined(parts.filter((part) => !isRecall(tool, part))).map(visibleOf),
    usage
  }
}

/** Whether a candidate ends the answer. An answer that calls the gateway's tool ends like any other. */
const isEnding = (candidate: Json | undefined): boolean =>
  typeof candidate?.["finishReason"] === "string" && candidate["finishReason"] !== ""

class Stream implements AnswerStream {
  private readonly tool: string
  private parts: Array<Json> = []
  private rounds = 1
  private usage: unknown
  private earlier: unknown
  private held: Array<SseEvent> = []

  constructor(tool: string) {
    this.tool = tool
  }

  readonly push = (event: SseEvent): string => {
    const data = parsedOrUndefined(event.data)
    if (!isJson(data)) return event.raw
    const candidate = candidateOf(data)
    const parts = partsOf(candidate)
    this.parts.push(...parts)
    if (isJson(data["usageMetadata"])) this.usage = data["usageMetadata"]
    if (isEnding(candidate) || this.held.length > 0) {
      this.held.push(event)
      return ""
    }
    const shown = parts.filter((part) => !isRecall(this.tool, part))
    if (candidate === undefined || shown.length === parts.length) return event.raw
    return shown.length === 0 ? "" : sseText(event, { ...data, candidates: [withParts(candidate, shown)] })
  }

  readonly read = (): ReadAnswer => answerOf(this.tool, this.parts, this.usage)

  /** Returns the parts of an event without calls of the gateway's tool. */
  private shownOf(data: Json): ReadonlyArray<Json> {
    return partsOf(candidateOf(data)).filter((part) => !isRecall(this.tool, part))
  }

  readonly next = (note: string) => {
    const output = this.held.map((event) => {
      const data = parsedOrUndefined(event.data)
      const candidate = isJson(data) ? candidateOf(data) : undefined
      if (!isJson(data) || candidate === undefined) return ""
      const shown = this.shownOf(data)
      if (shown.length === 0) return ""
      const { finishReason: _reason, ...open } = candidate
      const { usageMetadata: _usage, ...rest } = data
      return sseText(event, { ...rest, candidates: [withParts(open, shown)] })
    })
    this.earlier = addedCounts(this.earlier, this.usage)
    this.usage = undefined
    this.parts = []
    this.held = []
    this.rounds += 1
    const noted = { candidates: [{ content: { role: "model", parts: [{ text: note }] }, index: 0 }] }
    return output.join("") + (note === "" ? "" : sseText({ name: "" }, noted))
  }

  readonly finish: AnswerStream["finish"] = () =>
    this.held
      .map((event) => {
        const data = parsedOrUndefined(event.data)
        const candidate = isJson(data) ? candidateOf(data) : undefined
        if (!isJson(data) || candidate === undefined) return event.raw
        const shown = this.shownOf(data)
        if (this.rounds === 1 && shown.length === partsOf(candidate).length) return event.raw
        const usage = isJson(data["usageMetadata"]) ? { usageMetadata: addedCounts(this.earlier, this.usage) } : {}
        return sseText(event, { ...data, ...usage, candidates: [withParts(candidate, shown)] })
      })
      .join("")

  readonly failure: AnswerStream["failure"] = (status, body) => {
    const parsed = parsedOrUndefined(body)
    const error = isJson(parsed) ? parsed["error"] : undefined
    return sseText({ name: "" }, { error: error ?? { code: status, message: `the provider answered ${status}` } })
  }
}

const form: BlockForm = {
  blocksOf: (answer) => {
    const candidate = candidateOf(answer)
    return candidate === undefined ? undefined : partsOf(candidate)
  },
  usageKey: "usageMetadata",
  isRecall,
  answerOf,
  note: (text) => ({ text }),
  withBlocks: (answer, parts) => ({ ...answer, candidates: [withParts(candidateOf(answer) ?? {}, parts)] })
}

/** Answers of the Gemini API. */
export const geminiAnswers: AnswerDialect = {
  stream: (tool) => new Stream(tool),
  whole: (tool) => wholeBlocks(form, tool),
  visible: visibleOf,
  results: (calls, recalled) => [
    JSON.stringify({
      role: "user",
      parts: [
        ...calls.map(({ id, name }, at) => ({
          functionResponse: { ...(id === "" ? {} : { id }), name, response: { output: recalled[at]?.text ?? "" } }
        })),
        ...recalled.flatMap(({ media }) => media)
      ]
    })
  ]
}
