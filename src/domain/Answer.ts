import type { AnswerFault } from "./ChatEvent.ts"
import { type Content, type FunctionCall, isCall, isText, isThought, type Part } from "./Content.ts"
import type { EntryId } from "./Conversation.ts"
import { isTooDeep, maxDepth } from "./JsonText.ts"
import type { Usage } from "./Tokens.ts"
import { visibleText } from "./VisibleText.ts"

/** The Gemini API's own word for a finish reason that was not given: an answer that calls a tool is taken without one. */
export const unspecified = "FINISH_REASON_UNSPECIFIED"

/** From the pieces of a stream to one answer: consolidated (spec 1.4), validated (spec 1.5), and what is sent of it. */

/** A piece of an answer, as far as it matters here. */
interface Piece {
  readonly parts: ReadonlyArray<Part>
  readonly finishReason?: string | undefined
  readonly usage?: Usage | undefined
  readonly citations?: ReadonlyArray<string> | undefined
}

/** A call within an answer, and the index of the part that holds it. */
export interface CallAt {
  readonly call: FunctionCall
  readonly part: number
}

/** The id under which a call is reported: the model's own, else one made of the place where it stands. */
export const callId = ({ id }: FunctionCall, answer: EntryId, part: number): string => id ?? `${answer}.${part}`

/**
 * Calls of tools in one answer. Models make some dozens at once: one that makes more is broken, and carrying out the first
 * of them would do what nobody meant.
 */
export const maxAnswerCalls = 256
/** Parts of an answer, thoughts among them: one for each token of the longest answers that models give. */
export const maxAnswerParts = 128_000

/** Characters of a call's name or id: nothing makes these smaller later, and a name is sent with its answer once more. */
export const maxCallName = 1_024

/** Characters that stand beside the texts, calls and data of an answer, signatures above all: they are not counted as tokens. */
export const maxAnswerExtras = 8 * 1024 * 1024

/** Characters of images and other media in an answer: they are sent again with each request, which may have 20 MB in all (Gemini API). */
export const maxAnswerMedia = 14 * 1024 * 1024

/** More of an answer than is taken: of what, and how much is. */
export interface Excess {
  readonly unit: "calls" | "parts" | "name" | "extras" | "media" | "levels"
  readonly limit: number
}

/** What has arrived of an answer. Mutable: one attempt has one, and every piece of its stream goes through it. */
export class Arriving {
  /** Of the answer's parts without thoughts; adjacent plain texts are one part, made when the answer is whole. */
  private readonly parts: Array<Part> = []
  private run: Array<string> = []
  private begun = false
  private thoughts = false
  private calls = 0
  private count = 0
  private isNameLong = false
  private isDeep = false
  private extras = 0
  private media = 0
  /** The last one that was said. */
  finishReason: string | undefined
  usage: Usage | null = null
  private readonly quoted = new Set<string>()

  /** Takes the next piece. Returns its calls, each with its index in the answer's parts. */
  push({ citations = [], finishReason, parts, usage }: Piece): ReadonlyArray<CallAt> {
    const calls: Array<CallAt> = []
    this.begun = true
    this.count += parts.length
    this.finishReason = finishReason ?? this.finishReason
    if (usage !== undefined) this.usage = usage
    for (const address of citations) this.quoted.add(address)
    for (const part of parts) {
      if (isThought(part)) {
        this.thoughts = true
      } else if (isPlain(part)) {
        this.run.push(part.text)
      } else {
        this.close()
        this.parts.push(part)
        this.media += part.inlineData?.data?.length ?? 0
        if (isTooDeep(part)) this.isDeep = true
        else this.extras += extrasOf(part)
        if (isCall(part)) {
          const { id = "", name } = part.functionCall
          this.isNameLong ||= name.length > maxCallName || id.length > maxCallName
          calls.push({ call: part.functionCall, part: this.parts.length - 1 })
        }
      }
    }
    this.calls += calls.length
    return calls
  }

  /** What there is more of than any model means to say; undefined: nothing. */
  get excess(): Excess | undefined {
    if (this.calls > maxAnswerCalls) return { unit: "calls", limit: maxAnswerCalls }
    if (this.isDeep) return { unit: "levels", limit: maxDepth }
    if (this.isNameLong) return { unit: "name", limit: maxCallName }
    if (this.extras > maxAnswerExtras) return { unit: "extras", limit: maxAnswerExtras }
    if (this.media > maxAnswerMedia) return { unit: "media", limit: maxAnswerMedia }
    return this.count > maxAnswerParts ? { unit: "parts", limit: maxAnswerParts } : undefined
  }

  /** The texts since the last part of another kind, as one. An empty one says nothing and is left out. */
  private close(): void {
    const text = this.run.join("")
    if (text !== "") this.parts.push({ text })
    this.run = []
  }

  /** The whole answer; thoughts are no part of it. */
  get content(): Content {
    this.close()
    return { role: "model", parts: this.parts }
  }

  /** What the answer quotes, sorted. */
  get citations(): ReadonlyArray<string> {
    return [...this.quoted].sort()
  }

  /**
   * Why it cannot be used; undefined: it can. An answer that calls a tool always can. `answersTools`: what was asked were
   * only results of tools, to which saying nothing is an answer.
   */
  fault(answersTools: boolean): AnswerFault | undefined {
    if (this.calls > 0) return undefined
    const reason = this.finishReason
    // Whoever says nothing at all has not answered a tool either.
    if (reason === undefined) return answersTools && this.begun ? undefined : "NO_FINISH_REASON"
    if (reason === "MALFORMED_FUNCTION_CALL" || reason === "UNEXPECTED_TOOL_CALL") return reason
    const { parts } = this.content
    const said = parts.map((part) => (isText(part) ? part.text : "")).join("")
    if (visibleText(said) !== "" || parts.some((part) => !isText(part))) return undefined
    const blocked = blockedBy[reason]
    if (blocked !== undefined) return blocked
    if (this.thoughts) return "THINKING_ONLY_RESPONSE"
    return answersTools ? undefined : "NO_RESPONSE_TEXT"
  }
}

/** Characters of a part beside what it says, calls or shows. */
const extrasOf = ({ functionCall: _call, inlineData: _data, text: _text, ...rest }: Part): number =>
  Object.keys(rest).length === 0 ? 0 : JSON.stringify(rest).length

const isPlain = (part: Part): part is { readonly text: string } =>
  part.text !== undefined && Object.keys(part).length === 1

const blockedBy: Readonly<Record<string, AnswerFault>> = {
  MAX_TOKENS: "MAX_TOKENS_EXCEEDED",
  SAFETY: "SAFETY_BLOCKED",
  RECITATION: "RECITATION_BLOCKED",
  OTHER: "OTHER_BLOCKED"
}

/** What to tell of each fault, and what to do. */
export const faultMessage: Readonly<Record<AnswerFault, string>> = {
  NO_FINISH_REASON: "the answer broke off before its end; send the message again",
  MALFORMED_FUNCTION_CALL: "the model asked for a tool in a form that cannot be read; send the message again",
  UNEXPECTED_TOOL_CALL: "the model asked for a tool that it was not given; rephrase the message",
  MAX_TOKENS_EXCEEDED: "the model used up all tokens of its answer before it said anything; ask for less at once",
  SAFETY_BLOCKED: "the model's provider blocked the answer (SAFETY); rephrase, or use another model",
  RECITATION_BLOCKED: "the model's provider blocked the answer (RECITATION); rephrase, or use another model",
  OTHER_BLOCKED: "the model's provider blocked the answer and does not say why; rephrase, or use another model",
  THINKING_ONLY_RESPONSE: "the model thought and then said nothing; send the message again",
  NO_RESPONSE_TEXT: "the model answered with nothing; send the message again"
}

/** Whether asking once more may help: what the provider blocked stays blocked. */
export const isWorthRetrying = (fault: AnswerFault): boolean => !fault.endsWith("_BLOCKED")

/** A thought's headline, between two asterisks on each side, and the rest of it (spec 1.4). */
export const thoughtOf = (text: string): { readonly subject: string; readonly description: string } => {
  const found = /\*\*([\s\S]*?)\*\*/.exec(text)
  if (found === null) return { subject: "", description: text.trim() }
  return {
    subject: (found[1] ?? "").trim(),
    description: (text.slice(0, found.index) + text.slice(found.index + found[0].length)).trim()
  }
}

/** Stands where the API wants a thought's signature and there is none: the call came from another model (spec 1.3). */
const noSignature = "skip_thought_signature_validator"

/**
 * A message as the API takes it: the first call of a model's message has a signature. In the request only, and for every
 * message alike, so that what was sent before stays byte for byte what it was.
 */
export const signed = (content: Content): Content => {
  if (content.role !== "model") return content
  const first = content.parts.findIndex(isCall)
  const part = content.parts[first]
  if (part === undefined || part.thoughtSignature !== undefined) return content
  return {
    ...content,
    parts: content.parts.map((each, at) => (at === first ? { ...each, thoughtSignature: noSignature } : each))
  }
}
