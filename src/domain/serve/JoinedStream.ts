/** An event of a stream, as far as its order goes. */
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
 * One stream out of those of several servers, one after the other. What a client has already is left out; where a server does
 * not go on with what the one before it told, `Reset` says so.
 */
export class JoinedStream<E extends Numbered> {
  /** The id of the last event that the client has. */
  last: string | undefined
  private isReset: boolean
  private readonly reset: E

  constructor(last: string | undefined, reset: E) {
    this.last = last
    this.isReset = last === undefined
    this.reset = reset
  }

  /** The events for the client in the place of this one. */
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
