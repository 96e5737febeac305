/** Builds one answer from the pieces of a stream, and validates it as Gemini CLI does. */

import { type Content, type FunctionCall, isCall, isText, isThought, type Part } from "../content/Content.ts"
import type { EntryId } from "../conversation/Conversation.ts"
import { withoutHiddenText } from "../text/HiddenText.ts"
import { isTooDeep, maxDepth } from "../text/JsonText.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { maxAnswerParts, outputLimit } from "../wire/AnswerReader.ts"
import type { AnswerFault } from "./ChatEvent.ts"

/** The Gemini API's word for a missing finish reason: an answer that calls a tool may lack one. */
export const unspecifiedReason = "FINISH_REASON_UNSPECIFIED"

/** The fields of a `ModelChunk` that are used here. */
interface AnswerPiece {
  readonly parts: ReadonlyArray<Part>
  readonly finishReason?: string | undefined
  readonly usage?: Usage | undefined
  readonly citations?: ReadonlyArray<string> | undefined
}

/** A call within an answer, and the index of the part that holds it. */
export interface PlacedCall {
  readonly call: FunctionCall
  readonly part: number
}

/** The id under which a call is reported: the model's own, else one made of its position. */
export const callId = ({ id }: FunctionCall, answer: EntryId, part: number): string => id ?? `${answer}.${part}`

/**
 * Tool calls in one answer. Models make a few dozen at once. An answer with more is broken, and running its first calls would do
 * what nobody intended.
 */
const maxAnswerCalls = 256
/** Characters of a call's name or id. Nothing shortens these later, and a name is sent again with its result. */
const maxCallName = 16_384

/** Characters of an answer beside its texts, calls and data, mostly signatures: they are not counted as tokens. */
const maxAnswerExtras = 8 * 1024 * 1024

/** Characters of media in an answer: they are sent again with each request, for which the Gemini API allows 20 MB. */
const maxAnswerMedia = 14 * 1024 * 1024

/** The limit that an answer exceeds. */
export interface Excess {
  readonly unit: "calls" | "parts" | "name" | "extras" | "media" | "levels"
  readonly limit: number
}

/** Builds an answer from its pieces. Mutable: one builder serves one attempt. */
export class AnswerBuilder {
  /** Parts without thoughts. Adjacent plain texts become one part when the answer is complete. */
  private readonly parts: Array<Part> = []
  private textRun: Array<string> = []
  private hasPieces = false
  private thoughts = false
  private calls = 0
  private count = 0
  private isNameLong = false
  private isDeep = false
  private extras = 0
  private media = 0
  /** The last finish reason that arrived. */
  finishReason: string | undefined
  usage: Usage | null = null
  private readonly quoted = new Set<string>()
  private readonly ids = new Set<string>()

  /** Adds the next piece. Returns its calls, each with its index in the answer's parts. */
  push({ citations = [], finishReason, parts, usage }: AnswerPiece): ReadonlyArray<PlacedCall> {
    const calls: Array<PlacedCall> = []
    this.hasPieces = true
    this.count += parts.length
    this.finishReason = finishReason ?? this.finishReason
    if (usage !== undefined) this.usage = usage
    for (const address of citations) this.quoted.add(address)
    for (const part of parts) {
      if (isThought(part)) {
        this.thoughts = true
      } else if (isPlain(part)) {
        this.textRun.push(part.text)
      } else {
        this.close()
        const call = isCall(part) ? this.identified(part.functionCall) : undefined
        this.parts.push(call === undefined ? part : { ...part, functionCall: call })
        this.media += part.inlineData?.data?.length ?? 0
        if (isTooDeep(part)) this.isDeep = true
        else this.extras += extrasOf(part)
        if (call !== undefined) {
          const { id = "", name } = call
          this.isNameLong ||= name.length > maxCallName || id.length > maxCallName
          calls.push({ call, part: this.parts.length - 1 })
        }
      }
    }
    this.calls += calls.length
    return calls
  }

  /** The call, without an id that names no call or two: results and questions would be taken for those of another call. */
  private identified(call: FunctionCall): FunctionCall {
    const { id, ...unnamed } = call
    if (id === undefined) return call
    if (id === "" || this.ids.has(id)) return unnamed
    this.ids.add(id)
    return call
  }

  /** The limit that the answer exceeds; undefined: none. */
  get excess(): Excess | undefined {
    if (this.calls > maxAnswerCalls) return { unit: "calls", limit: maxAnswerCalls }
    if (this.isDeep) return { unit: "levels", limit: maxDepth }
    if (this.isNameLong) return { unit: "name", limit: maxCallName }
    if (this.extras > maxAnswerExtras) return { unit: "extras", limit: maxAnswerExtras }
    if (this.media > maxAnswerMedia) return { unit: "media", limit: maxAnswerMedia }
    return this.count > maxAnswerParts ? { unit: "parts", limit: maxAnswerParts } : undefined
  }

  /** Joins the texts since the last part of another kind. An empty text is left out. */
  private close(): void {
    const text = this.textRun.join("")
    if (text !== "") this.parts.push({ text })
    this.textRun = []
  }

  /** The whole answer, without thoughts. */
  get content(): Content {
    this.close()
    return { role: "model", parts: this.parts }
  }

  /** The sources that the answer quotes, sorted. */
  get citations(): ReadonlyArray<string> {
    return [...this.quoted].sort()
  }

  /**
   * Why the answer cannot be used; undefined: it can. An answer that calls a tool always can. `answersTools`: the request ended
   * with tool results, to which an empty answer is valid.
   */
  fault(answersTools: boolean): AnswerFault | undefined {
    if (this.calls > 0) return undefined
    const reason = this.finishReason
    // A stream without any piece is no answer to tool results either.
    if (reason === undefined) return answersTools && this.hasPieces ? undefined : "NO_FINISH_REASON"
    if (reason === "MALFORMED_FUNCTION_CALL" || reason === "UNEXPECTED_TOOL_CALL") return reason
    const { parts } = this.content
    const joinedText = parts.map((part) => (isText(part) ? part.text : "")).join("")
    if (withoutHiddenText(joinedText) !== "" || parts.some((part) => !isText(part))) return undefined
    const blocked = blockedBy[reason]
    if (blocked !== undefined) return blocked
    if (this.thoughts) return "THINKING_ONLY_RESPONSE"
    return answersTools ? undefined : "NO_RESPONSE_TEXT"
  }
}

/** Characters of a part beside its text, call or data. */
const extrasOf = ({ functionCall: _call, inlineData: _data, text: _text, ...rest }: Part): number =>
  Object.keys(rest).length === 0 ? 0 : JSON.stringify(rest).length

const isPlain = (part: Part): part is { readonly text: string } =>
  part.text !== undefined && Object.keys(part).length === 1

const blockedBy: Readonly<Record<string, AnswerFault>> = {
  [outputLimit]: "MAX_TOKENS_EXCEEDED",
  SAFETY: "SAFETY_BLOCKED",
  RECITATION: "RECITATION_BLOCKED",
  OTHER: "OTHER_BLOCKED"
}

/** The message for each fault: what happened and what to do. */
export const faultMessage: Readonly<Record<AnswerFault, string>> = {
  NO_FINISH_REASON: "the answer was cut off; send the message again",
  MALFORMED_FUNCTION_CALL: "the model made a tool call that cannot be parsed; send the message again",
  UNEXPECTED_TOOL_CALL: "the model called a tool that it was not offered; rephrase the message",
  MAX_TOKENS_EXCEEDED: "the model used up all tokens of its answer before it wrote any text; ask for less at once",
  SAFETY_BLOCKED: "the model's provider blocked the answer (SAFETY); rephrase, or use another model",
  RECITATION_BLOCKED: "the model's provider blocked the answer (RECITATION); rephrase, or use another model",
  OTHER_BLOCKED: "the model's provider blocked the answer and does not say why; rephrase, or use another model",
  THINKING_ONLY_RESPONSE: "the model returned only thoughts and no answer; send the message again",
  NO_RESPONSE_TEXT:
    "the model returned an empty answer; send the message again, or give a local server a longer context for it"
}

/** Whether another attempt may help. A blocked answer stays blocked. */
export const isWorthRetrying = (fault: AnswerFault): boolean => !fault.endsWith("_BLOCKED")

/** Splits a thought into its headline, between double asterisks, and the rest. */
export const thoughtOf = (text: string): { readonly subject: string; readonly description: string } => {
  const match = /\*\*([\s\S]*?)\*\*/.exec(text)
  if (match === null) return { subject: "", description: text.trim() }
  return {
    subject: (match[1] ?? "").trim(),
    description: (text.slice(0, match.index) + text.slice(match.index + match[0].length)).trim()
  }
}
