import { isCall, isResponse, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"

/** A call and its response. */
export interface AnsweredCall {
  readonly call: Part
  readonly answer: Part
}

/** Returns the calls in these entries with their responses, in the order of the responses. */
export const answeredCalls = (entries: ReadonlyArray<Entry>): ReadonlyArray<AnsweredCall> => {
  const open = new Map<string, Part>()
  const answered: Array<AnsweredCall> = []
  for (const { content } of entries) {
    for (const part of content.parts) {
      if (isCall(part)) open.set(part.functionCall.id ?? part.functionCall.name, part)
      else if (isResponse(part)) {
        const call = open.get(part.functionResponse.id ?? part.functionResponse.name ?? "")
        if (call !== undefined) answered.push({ call, answer: part })
      }
    }
  }
  return answered
}
