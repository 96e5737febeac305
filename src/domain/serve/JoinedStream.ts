/** Makes one stream of events of those from several servers, in which a client gets each event once. */

import { isBeforeEvents } from "./EventBuffer.ts"

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
 * out. `Reset` tells the client that events are missing, once, before the next event: a server that says so may not
 * have the session yet, and the next one may continue where the client is.
 */
export class JoinedStream<E extends Numbered> {
  /** The id of the last event that was sent to the client. */
  last: string | undefined
  /** A server said `Reset`, and no event came since. */
  private isReset = false
  /** The last event is one of the answer as the session holds it, which has no number. */
  private isRecorded = false
  private readonly reset: E
  private readonly isSession: boolean

  /** `isSession`: the stream has no end, and without events a `Ping` confirms a `Reset`. */
  constructor(last: string | undefined, reset: E, isSession = false) {
    this.last = last
    this.reset = reset
    this.isSession = isSession
  }

  /** Returns the events to send to the client for this one. */
  next(event: E): ReadonlyArray<E> {
    if (event.event === "Reset") {
      this.isReset = true
      return []
    }
    const { isRecorded, isReset, last } = this
    if (event.event === "Ping") {
      if (!isReset || !this.isSession) return [event]
      this.isReset = false
      this.last = undefined
      return [this.reset, event]
    }
    this.isReset = false
    this.isRecorded = event.id === undefined
    const isFirst = last === undefined || isBeforeEvents(last)
    if (event.id === undefined || isFirst) {
      this.last = event.id ?? last
      return isReset || (!isFirst && !isRecorded) ? [this.reset, event] : [event]
    }
    const [name, number] = partsOf(event.id)
    const [lastName, lastNumber] = partsOf(last)
    if (name === lastName && number <= lastNumber) {
      this.isReset = isReset
      return []
    }
    this.last = event.id
    return name === lastName && !(isReset && number > lastNumber + 1) ? [event] : [this.reset, event]
  }
}
