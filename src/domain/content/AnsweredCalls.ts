import { type Content, type FunctionCall, isCall, isResponse, type Part } from "./Content.ts"

/** Pairs the tool calls of a conversation with their responses. */

/** A call, and its response where it has one. */
export interface AnsweredCall {
  readonly call: FunctionCall
  readonly response: Part | undefined
}

/**
 * Returns the calls of each message with their responses: by id, and where a call has none, as Gemini sends them, by its position among those
 * of its name.
 */
export const answeredCalls = (contents: ReadonlyArray<Content>): ReadonlyArray<ReadonlyArray<AnsweredCall>> =>
  contents.map(({ parts, role }, at) => {
    if (role !== "model") return []
    const end = contents.findIndex((content, index) => index > at && content.role === "model")
    const open = contents
      .slice(at + 1, end < 0 ? undefined : end)
      .flatMap((content) => content.parts.filter(isResponse))
    return parts.filter(isCall).map(({ functionCall: call }): AnsweredCall => {
      const index = open.findIndex(({ functionResponse: { id, name } }) =>
        call.id !== undefined && id !== undefined ? id === call.id : name === call.name
      )
      return { call, response: index < 0 ? undefined : open.splice(index, 1)[0] }
    })
  })
