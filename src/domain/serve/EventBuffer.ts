import { Schema } from "effect"
import { ChatEvent } from "../chat/ChatEvent.ts"

/**
 * The latest events of a session, numbered, so that a stream that broke can go on where it ended. Bounded: the oldest events
 * leave it. Readers take from it at their own speed, so that a slow one costs nothing.
 */

/** How a turn ended. `stopped`: the server stopped before its end; send the message again. */
export const TurnStatus = Schema.Literals(["answered", "cancelled", "failed", "stopped"])
export type TurnStatus = typeof TurnStatus.Type

/** What happens to a session, beside the events of its turns. */
export const SessionNews = Schema.TaggedUnion({
  /** A message was accepted, and its turn begins. */
  TurnStarted: { text: Schema.String },
  /** The turn ended. `error`: why there is no answer. */
  TurnEnded: { status: TurnStatus, error: Schema.NullOr(Schema.String) },
  /** The conversation was changed by another request; read it again. */
  Changed: { by: Schema.Literals(["compress", "undo", "redo"]) },
  /** Events are missing before this one; read the session again. */
  Reset: {},
  /** Nothing happened for some seconds. */
  Ping: {}
})
export type SessionNews = typeof SessionNews.Type

/** An event of a session. `message`: the id of the message whose turn it belongs to. */
export const ServedEvent = Schema.Struct({
  message: Schema.NullOr(Schema.String),
  event: Schema.Union([SessionNews, ChatEvent])
})
export type ServedEvent = typeof ServedEvent.Type

/** An event with its number. Numbers begin at 1 and have no gaps. */
export interface NumberedEvent extends ServedEvent {
  readonly number: number
}

/** The id of an event: the name of its buffer, and its number there. */
export const eventId = (name: string, number: number): string => `${name}.${number}`

/** Most events of a session that are kept, and most characters of all their texts. */
const maxEvents = 4_096
const maxChars = 4_000_000

/** Estimated characters of an event. */
const charsOf = ({ event }: ServedEvent): number => JSON.stringify(event).length

/** The events of one session since it was opened, and those of its last turn before. Mutable: every reader of the session shares it. */
export class EventBuffer {
  private readonly events: Array<NumberedEvent & { readonly chars: number }> = []
  private chars = 0
  private next = 1

  /** Names this buffer in event ids: no other one of the session has it. */
  readonly name: string

  /** `kept`: the events with which it goes on, without gaps. */
  constructor(name: string, kept: ReadonlyArray<NumberedEvent> = []) {
    this.name = name
    this.next = kept[0]?.number ?? 1
    for (const { event, message } of kept) this.add({ event, message })
  }

  /** The number of the oldest event that is kept. */
  get first(): number {
    return this.events[0]?.number ?? this.next
  }

  /** The number of the last event; 0 before the first. */
  get last(): number {
    return this.next - 1
  }

  /** Adds an event, and returns its number. */
  add(event: ServedEvent): number {
    const chars = charsOf(event)
    this.events.push({ ...event, chars, number: this.next })
    this.chars += chars
    let left = 0
    while (this.events.length - left > maxEvents || (this.chars > maxChars && this.events.length - left > 1)) {
      this.chars -= this.events[left]?.chars ?? 0
      left += 1
    }
    // Removes many at a time: to remove the first element moves all others.
    if (left > 0) this.events.splice(0, left)
    this.next += 1
    return this.last
  }

  /** At most `most` events after this number, and whether some before them have left the buffer. */
  after(number: number, most = 64): { readonly events: ReadonlyArray<NumberedEvent>; readonly hasGap: boolean } {
    const { first } = this
    const start = Math.max(0, number + 1 - first)
    return { events: this.events.slice(start, start + most), hasGap: number + 1 < first }
  }

  /** The id of an event. */
  idOf(number: number): string {
    return eventId(this.name, number)
  }

  /** The number in an event id; undefined for an id that this buffer never gave. */
  numberOf(id: string): number | undefined {
    const [name, number = "", ...rest] = id.split(".")
    if (name !== this.name || rest.length > 0 || !/^\d{1,15}$/.test(number)) return undefined
    return Number(number) > this.last ? undefined : Number(number)
  }
}
