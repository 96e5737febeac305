import { Result } from "effect"
import type { Part } from "../content/Content.ts"
import { parseJson } from "../text/JsonText.ts"
import { outputLimit } from "./AnswerReader.ts"
import type { ToolNames } from "./ToolDeclarations.ts"

/** Reads the tool calls of an answer, whose arguments arrive as a text. */

/** A call as it arrives. */
export interface WireCall {
  readonly id: string | undefined
  readonly name: string
  /** JSON. */
  readonly args: string
}

/** The finish reason of an answer with a call that cannot be read. */
const malformed = "MALFORMED_FUNCTION_CALL"

/** The calls of one answer. Mutable. */
export class AnswerCalls {
  private readonly names: ToolNames
  private readonly unread: Array<WireCall> = []

  constructor(names: ToolNames) {
    this.names = names
  }

  private part({ id, name }: WireCall, args: unknown): Part {
    const named = id === undefined || id === "" ? {} : { id }
    return { functionCall: { ...named, name: this.names.own(name), args } }
  }

  /** Reads a call. Returns nothing if its arguments are not JSON. */
  read(call: WireCall): ReadonlyArray<Part> {
    const args = call.args.trim() === "" ? Result.succeed({}) : parseJson(call.args)
    if (Result.isSuccess(args)) return [this.part(call, args.success)]
    this.unread.push(call)
    return []
  }

  /**
   * What the end of the answer adds. A call that broke off at the output limit has no arguments: it is not carried out, and the model is told
   * why. Any other that cannot be read makes the answer malformed.
   */
  end(finishReason: string): { readonly parts: ReadonlyArray<Part>; readonly finishReason: string } {
    if (this.unread.length === 0) return { parts: [], finishReason }
    if (finishReason !== outputLimit) return { parts: [], finishReason: malformed }
    return { parts: this.unread.map((call) => this.part(call, {})), finishReason }
  }
}
