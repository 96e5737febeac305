/** Reads the answers of a dialect that is not the Gemini API's: the blocks that events complete become parts. */

import { Result } from "effect"
import type { Part } from "../content/Content.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import type { Growth, ReadableForm, WireCall } from "./AnswerForm.ts"
import { type ModelChunk, type AnswerReader, faulty, outputLimit, type Reading, unknownEvent } from "./AnswerReader.ts"
import { counted } from "./AnswerUsage.ts"
import { carriedState } from "./ModelState.ts"

/** The finish reason of an answer with a call that cannot be read. */
const malformed = "MALFORMED_FUNCTION_CALL"

/** Reads one answer of a dialect. */
export const blockReader =
  (form: ReadableForm) =>
  ({ target, tools }: Reading): AnswerReader => {
    const answer = form.begin()
    /** Calls whose arguments are not JSON. */
    const unread: Array<WireCall> = []

    const callPart = ({ id, name }: WireCall, args: unknown): Part => {
      // Servers of gpt-oss leave marks of its format behind a name.
      const plain = name.replace(/<\|.*/s, "").trim()
      return { functionCall: { ...(id === "" ? {} : { id }), name: tools.own(plain), args } }
    }

    /** The parts of a whole block: a call, and what the model wants back. Texts and thoughts arrived before. */
    const partsOf = (block: Json): ReadonlyArray<Part> => {
      const call = form.callOf(block)
      const state = form.stateOf(block)
      const signature = state === undefined ? {} : { thoughtSignature: carriedState(target, state) }
      if (call === undefined) return state === undefined ? [] : [{ text: "", ...signature }]
      if (call.args !== undefined) return [{ ...callPart(call, call.args), ...signature }]
      unread.push(call)
      return []
    }

    /**
     * What the end of the answer adds. A call that broke off at the output limit has no arguments: it is not carried out, and the model is told
     * why. Any other that cannot be read makes the answer malformed.
     */
    const ended = (finishReason: string): { readonly parts: ReadonlyArray<Part>; readonly finishReason: string } => {
      if (unread.length === 0) return { parts: [], finishReason }
      if (finishReason !== outputLimit) return { parts: [], finishReason: malformed }
      return { parts: unread.map((call) => callPart(call, {})), finishReason }
    }

    const pieceOf = ({ blocks = [], counts, end, shown = [] }: Growth): ModelChunk | undefined => {
      const parts = [...shown, ...blocks.flatMap(partsOf)]
      const usage = counted(form.usage, counts)
      if (end === undefined) return parts.length === 0 && usage.usage === undefined ? undefined : { parts, ...usage }
      const ending = ended(form.finishReason(end) ?? end)
      return { parts: [...parts, ...ending.parts], finishReason: ending.finishReason, ...usage }
    }

    return {
      read: (event) => {
        const growth = isJson(event) ? answer.push(event) : undefined
        if (growth === undefined) return unknownEvent(event)
        if (growth.fault !== undefined) return faulty(growth.fault)
        const { end } = growth
        return end !== undefined && form.finishReason(end) === undefined
          ? Result.fail({ _tag: "Refusal", reason: end })
          : Result.succeed(pieceOf(growth))
      },
      end: (isMarked = false) => pieceOf(answer.end(isMarked))
    }
  }
