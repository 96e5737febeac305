/** The id and type of an event in a stream. */
interface Numbered {
  readonly id?: string
  readonly event: string
}

/** The name and the number in the id of an event (`EventBuffer.idOf`). */
const partsOf = (id: string): readonly [name: string, number: number] => {
  const at = id.lastIndexOf(".")
  return [id.slice(0, at), Number(id.slice(at + 1))]
}

/**
 * Joins the streams of several servers, one after the other, into one. Events that the client already has are left
 * out. `Reset` tells the client when a server does not continue where the previous one stopped.
 */
export class JoinedStream<E extends Numbered> {
  /** The id of the last event that was sent to the client. */
  last: string | undefined
  private isReset: boolean
  private readonly reset: E

  constructor(last: string | undefined, reset: E) {
    this.last = last
    this.isReset = last === undefined
    this.reset = reset
  }

  /** Returns the events to send to the client for this one. */
  next(event: E): ReadonlyArray<E> {
    if (event.event === "Ping") return [event]
    if (event.event === "Reset") {
      this.isReset = true
      return [event]
    }
    if (event.id === undefined || this.isReset || this.last === undefined) {
      const isNew = this.isReset || this.last === undefined
      this.isReset = event.id === undefined
      this.last = event.id ?? this.last
      return isNew ? [event] : [this.reset, event]
    }
    const [name, number] = partsOf(event.id)
    const [lastName, lastNumber] = partsOf(this.last)
    if (name === lastName && number <= lastNumber) return []
    this.last = event.id
    return name === lastName ? [event] : [this.reset, event]
  }
}
