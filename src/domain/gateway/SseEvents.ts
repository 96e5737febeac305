/** Splits a stream of server-sent events and keeps the exact text of each. */

/** One event, including the blank line that ends it. */
export interface SseEvent {
  /** The exact text. */
  readonly raw: string
  /** The name; empty when there is none. */
  readonly name: string
  readonly data: string
}

const blankLine = /\r\n\r\n|\n\n|\r\r/

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
  private rest = ""

  /** Adds a piece. Returns the events that it completes. */
  push(piece: string): ReadonlyArray<SseEvent> {
    this.rest += piece
    const events: Array<SseEvent> = []
    for (;;) {
      const end = blankLine.exec(this.rest)
      if (end === null) return events
      const length = end.index + end[0].length
      events.push(parse(this.rest.slice(0, length)))
      this.rest = this.rest.slice(length)
    }
  }

  /** Returns the text after the last blank line as an event. Call it when the stream has ended. */
  end(): ReadonlyArray<SseEvent> {
    const { rest } = this
    this.rest = ""
    return rest === "" ? [] : [parse(rest)]
  }
}

/** Writes an event in the form of another one: with a name if that one has a name. */
export const sseText = (like: Pick<SseEvent, "name">, data: unknown): string =>
  `${like.name === "" ? "" : `event: ${like.name}\n`}data: ${JSON.stringify(data)}\n\n`
