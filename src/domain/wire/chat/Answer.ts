import { isJson, type Json, jsonAt, jsonsAt, textAt } from "../MessageCodec.ts"

/** An answer of Chat Completions in the making: one message, with every field that its server adds. */

/** The one answer that is asked for. */
export const firstChoice = (value: Json): Json | undefined => jsonsAt(value, "choices")[0]

/** The function of a call. */
export const functionOf = (call: Json): Json => jsonAt(call, "function")

/** Texts of a list's element that arrive in pieces. Its other values are repeated. */
const growing = new Set(["text", "summary"])

const grownElement = (before: Json, piece: Json): Json => ({
  ...before,
  ...Object.fromEntries(
    Object.entries(piece).flatMap(([key, value]) =>
      value === null ? [] : [[key, growing.has(key) && typeof value === "string" ? textAt(before, key) + value : value]]
    )
  )
})

const grownList = (before: ReadonlyArray<unknown>, pieces: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const list = [...before]
  for (const piece of pieces) {
    const at = list.findIndex(
      (each) =>
        isJson(each) &&
        isJson(piece) &&
        typeof piece["index"] === "number" &&
        each["index"] === piece["index"] &&
        each["type"] === piece["type"]
    )
    const known = list[at]
    if (isJson(known) && isJson(piece)) list[at] = grownElement(known, piece)
    else list.push(piece)
  }
  return list
}

const grown = (before: unknown, piece: unknown): unknown => {
  if (typeof before === "string" && typeof piece === "string") return before + piece
  if (Array.isArray(piece)) return grownList(Array.isArray(before) ? before : [], piece)
  return isJson(before) && isJson(piece) ? { ...before, ...piece } : piece
}

/** The message of one answer, as far as it is read. Mutable. */
export class ChatMessage {
  private fields: Record<string, unknown> = {}
  private readonly callsByIndex = new Map<number, Json>()

  /** Reads a delta, or the message of a whole answer. Returns the indexes of its calls. */
  readonly push = ({ role: _, tool_calls: calls, ...delta }: Json): ReadonlyArray<number> => {
    for (const [key, value] of Object.entries(delta)) {
      if (value !== null && value !== undefined) this.fields[key] = grown(this.fields[key], value)
    }
    return Array.isArray(calls) ? calls.filter(isJson).map((call) => this.addCall(call)) : []
  }

  private addCall({ index, ...piece }: Json): number {
    // Servers that send calls in one piece may leave out the index.
    const at = typeof index === "number" ? index : this.callsByIndex.size
    const before = this.callsByIndex.get(at) ?? {}
    const stated = Object.entries(piece).filter(([, value]) => value !== null && value !== "")
    const [known, called] = [functionOf(before), functionOf(piece)]
    const args = textAt(known, "arguments") + textAt(called, "arguments")
    this.callsByIndex.set(at, {
      ...before,
      ...Object.fromEntries(stated),
      function: { ...known, ...called, name: textAt(called, "name") || textAt(known, "name"), arguments: args }
    })
    return at
  }

  /** The calls, in their order. */
  get calls(): ReadonlyArray<Json> {
    return [...this.callsByIndex].sort(([one], [other]) => one - other).map(([, call]) => call)
  }

  /** What the server added to the message: reasoning, its details, and whatever else is no text and no call. */
  get added(): Json {
    const { content: _content, refusal: _refusal, ...added } = this.fields
    return added
  }

  /** The message as it is sent back. */
  get whole(): Json {
    const { calls } = this
    return { ...this.fields, ...(calls.length === 0 ? {} : { tool_calls: calls }) }
  }
}

/** What the server added to a call, such as `extra_content`, in which Gemini's servers put their signature. */
export const addedToCall = ({ function: _function, id: _id, type: _type, ...added }: Json): Json => added
