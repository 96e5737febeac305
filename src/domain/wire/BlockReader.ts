import { Result } from "effect"
import type { Part } from "../content/Content.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import type { Growth, ReadableForm, WireCall } from "./AnswerForm.ts"
import { type ModelChunk, type AnswerReader, faulty, outputLimit, type Reading, unknownEvent } from "./AnswerReader.ts"
import { counted } from "./AnswerUsage.ts"
import { carriedState } from "./ModelState.ts"

/** Reads the answers of a dialect that is not the Gemini API's: the blocks that events complete become parts. */

/** The finish reason of an answer with a call that cannot be read. */
const malformed = "MALFORMED_FUNCTION_CALL"

class BlockReader implements AnswerReader {
  private readonly form: ReadableForm
  private readonly reading: Reading
  private readonly answer
  /** Calls whose arguments are not JSON. */
  private readonly unread: Array<WireCall> = []

  constructor(form: ReadableForm, reading: Reading) {
    this.form = form
    this.reading = reading
    this.answer = form.begin()
  }

  readonly read: AnswerReader["read"] = (event) => {
    const growth = isJson(event) ? this.answer.push(event) : undefined
    if (growth === undefined) return unknownEvent(event)
    if (growth.fault !== undefined) return faulty(growth.fault)
    const { end } = growth
    if (end !== undefined && this.form.finishReason(end) === undefined) {
      return Result.fail({ _tag: "Refusal", reason: end })
    }
    return Result.succeed(this.pieceOf(growth))
  }

  readonly end: AnswerReader["end"] = (isMarked = false) => this.pieceOf(this.answer.end(isMarked))

  private pieceOf({ blocks = [], counts, end, shown = [] }: Growth): ModelChunk | undefined {
    const parts = [...shown, ...blocks.flatMap((block) => this.partsOf(block))]
    const ending = end === undefined ? undefined : this.ended(this.form.finishReason(end) ?? end)
    const usage = counted(this.form.usage, counts)
    if (ending !== undefined) return { parts: [...parts, ...ending.parts], finishReason: ending.finishReason, ...usage }
    return parts.length === 0 && usage.usage === undefined ? undefined : { parts, ...usage }
  }

  /** The parts of a whole block: a call, and what the model wants back. Texts and thoughts arrived before. */
  private partsOf(block: Json): ReadonlyArray<Part> {
    const call = this.form.callOf(block)
    const state = this.form.stateOf(block)
    const signature = state === undefined ? {} : { thoughtSignature: carriedState(this.reading.target, state) }
    if (call === undefined) return state === undefined ? [] : [{ text: "", ...signature }]
    if (call.args !== undefined) return [{ ...this.callPart(call, call.args), ...signature }]
    this.unread.push(call)
    return []
  }

  private callPart({ id, name }: WireCall, args: unknown): Part {
    // Servers of gpt-oss leave marks of its format behind a name.
    const plain = name.replace(/<\|.*/s, "").trim()
    return { functionCall: { ...(id === "" ? {} : { id }), name: this.reading.tools.own(plain), args } }
  }

  /**
   * What the end of the answer adds. A call that broke off at the output limit has no arguments: it is not carried out, and the model is told
   * why. Any other that cannot be read makes the answer malformed.
   */
  private ended(finishReason: string): { readonly parts: ReadonlyArray<Part>; readonly finishReason: string } {
    if (this.unread.length === 0) return { parts: [], finishReason }
    if (finishReason !== outputLimit) return { parts: [], finishReason: malformed }
    return { parts: this.unread.map((call) => this.callPart(call, {})), finishReason }
  }
}

/** Reads one answer of a dialect. */
export const blockReader =
  (form: ReadableForm) =>
  (reading: Reading): AnswerReader =>
    new BlockReader(form, reading)
