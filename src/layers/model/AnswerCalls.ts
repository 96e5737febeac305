import { Result } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import type { ToolNames } from "../../domain/model/ToolDeclarations.ts"
import { parseJson } from "../../domain/text/JsonText.ts"

/** Reads the tool calls of an answer, whose arguments arrive as a text. */

/** A call as it arrives. */
export interface WireCall {
  readonly id: string | undefined
  readonly name: string
  /** JSON. */
  readonly args: string
}

/** The finish reason of an answer with a call that cannot be read. */
export const malformed = "MALFORMED_FUNCTION_CALL"

/** The part of a call. Undefined if its arguments are not JSON. */
export const callPart = ({ args, id, name }: WireCall, names: ToolNames): Part | undefined => {
  const read = args.trim() === "" ? Result.succeed({}) : parseJson(args)
  return Result.isFailure(read)
    ? undefined
    : {
        functionCall: { ...(id === undefined || id === "" ? {} : { id }), name: names.own(name), args: read.success }
      }
}
