/** Splits a stream of server-sent events and keeps the exact text of each. */

/** One event, including the blank line that ends it. */
export interface SseEvent {
  /** The exact text. */
  readonly raw: string
  /** The name; empty when there is none. */
  readonly name: string
  readonly data: string
}

const blankLine = /\r\n\r\n|\n\n|\r\r/g

/** About the bytes that a piece of a text takes besides its characters. */
const pieceBytes = 32

/** Characters of the longest blank line. */
const maxBlankLine = 4

const parse = (raw: string): SseEvent => {
  let name = ""
  const data: Array<string> = []
  for (const line of raw.split(/\r\n|\n|\r/)) {
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (field === "event") name = value
    else if (field === "data") data.push(value)
  }
  return { raw, name, data: data.join("\n") }
}

/** Splits text that arrives in pieces into events. Mutable. */
export class SseSplitter {
  /** The pieces of the event that is not complete yet. They are joined once. */
  private held: Array<string> = []
  /** Their end, where a blank line may begin. */
  private tail = ""
  private length = 0

  /** About the bytes that the event takes which is not complete yet: its characters, and its pieces. */
  get pending(): number {
    return this.length + this.held.length * pieceBytes
  }

  /** Adds a piece. Returns the events that it completes. */
  push(piece: string): ReadonlyArray<SseEvent> {
    const searched = this.tail + piece
    blankLine.lastIndex = 0
    if (!blankLine.test(searched)) {
      this.held.push(piece)
      this.hold(this.held, searched.slice(1 - maxBlankLine), this.length + piece.length)
      return []
    }
    const text = this.held.join("") + piece
    blankLine.lastIndex = this.length - this.tail.length
    const events: Array<SseEvent> = []
    let start = 0
    while (blankLine.test(text)) {
      events.push(parse(text.slice(start, blankLine.lastIndex)))
      start = blankLine.lastIndex
    }
    const rest = text.slice(start)
    this.hold(rest === "" ? [] : [rest], rest.slice(1 - maxBlankLine), rest.length)
    return events
  }

  /** Returns the text after the last blank line as an event. Call it when the stream has ended. */
  end(): ReadonlyArray<SseEvent> {
    const rest = this.held.join("")
    this.hold([], "", 0)
    return rest === "" ? [] : [parse(rest)]
  }

  private hold(held: Array<string>, tail: string, length: number): void {
    this.held = held
    this.tail = tail
    this.length = length
  }
}

/** Writes an event in the form of another one: with a name if that one has a name. */
export const sseText = (like: Pick<SseEvent, "name">, data: unknown): string =>
  `${like.name === "" ? "" : `event: ${like.name}\n`}data: ${JSON.stringify(data)}\n\n`

/** OpenAI's mark for the end of a stream. */
export const endMark = "[DONE]"

/** Whether the data of an event only keeps the connection open: relays give events without data, and comments as data. */
export const isKeptOpen = (data: string): boolean => /^(?::.*|ping|keep-?alive)?$/is.test(data.trim())

/** Whether the data of an event is the mark for the end of a stream. */
export const isEndMark = (data: string): boolean => data.trim() === endMark
