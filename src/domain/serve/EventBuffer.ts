/**
 * The latest events of a session, numbered, so that a broken stream can be resumed. Bounded: the oldest events are
 * dropped. Each reader keeps its own position, so a slow one costs nothing.
 */

import { Schema } from "effect"
import { ChatEvent } from "../chat/ChatEvent.ts"
import { CallQuestion } from "../session/CallQuestions.ts"

/** How a turn ended. `stopped`: the server stopped first; the client should send the message again. */
export const TurnStatus = Schema.Literals(["answered", "cancelled", "failed", "stopped"])
export type TurnStatus = typeof TurnStatus.Type

/** How a turn ended that the server ran. `error`: why there is no answer. */
export const ServedTurnEnd = Schema.Struct({ status: TurnStatus, error: Schema.NullOr(Schema.String) })
export type ServedTurnEnd = typeof ServedTurnEnd.Type

/** The end of a turn after one more of its events. */
export const endAfter = (before: ServedTurnEnd, event: ChatEvent): ServedTurnEnd => {
  switch (event._tag) {
    case "UserCancelled":
      return { status: "cancelled", error: null }
    case "Error":
    case "InvalidStream":
    case "ContextWindowWillOverflow":
      return { status: "failed", error: event.message }
    case "HookStopped":
      return event.refused ? { status: "failed", error: event.message } : before
    case "Finished":
      return { status: "answered", error: null }
    default:
      return before
  }
}

/** Events of a session outside its turns. */
export const SessionNews = Schema.TaggedUnion({
  /** A message was accepted and its turn has begun. */
  TurnStarted: { text: Schema.String },
  /** The turn ended. `error`: why there is no answer. */
  TurnEnded: ServedTurnEnd.fields,
  /** The turn waits for a client's answer: to a call of the client's own tool, or whether a call may run. */
  Question: CallQuestion.fields,
  /** Another request changed the conversation; read it again. */
  Changed: { by: Schema.Literals(["compress", "undo", "redo"]) },
  /** Events before this one are missing; read the session again. */
  Reset: {},
  /** Sent after a few seconds without events. */
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

const before = "0."

/** The id after which the stream of a session continues whose events are not kept: the version of its conversation. */
export const beforeEvents = (version: number): string => `${before}${version}`

/** Whether an id is one of no event. */
export const isBeforeEvents = (id: string): boolean => id.startsWith(before)

/** Milliseconds for which the events of a closed session are kept. A turn whose server is lost is taken up within seconds. */
export const eventLifetime = 86_400_000

/** Maximum number of events that are kept per session, and maximum characters of their texts. */
const maxEvents = 4_096
const maxChars = 4_000_000

/** Estimated characters of an event. */
const charsOf = ({ event }: ServedEvent): number => JSON.stringify(event).length

/**
 * The events of a session since it was opened, and those of the last turn before that. Mutable: all readers of the
 * session share it.
 */
export class EventBuffer {
  private readonly events: Array<NumberedEvent & { readonly chars: number }> = []
  private chars = 0
  private next = 1

  /** Names this buffer in event ids. No other buffer of the session has the same name. */
  readonly name: string

  /** `kept`: the events to continue from, without gaps. */
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
    // Removes many events at once, because removing the first element moves all others.
    if (left > 0) this.events.splice(0, left)
    this.next += 1
    return this.last
  }

  /** At most `limit` events after this number, and whether some before them have left the buffer. */
  after(number: number, limit = 64): { readonly events: ReadonlyArray<NumberedEvent>; readonly hasGap: boolean } {
    const { first } = this
    const start = Math.max(0, number + 1 - first)
    return { events: this.events.slice(start, start + limit), hasGap: number + 1 < first }
  }

  /** The id of an event. */
  idOf(number: number): string {
    return eventId(this.name, number)
  }

  /** Returns the number in an event id. Undefined for an id from another buffer. */
  numberOf(id: string): number | undefined {
    const [name, number = "", ...rest] = id.split(".")
    if (name !== this.name || rest.length > 0 || !/^\d{1,15}$/.test(number)) return undefined
    return Number(number) > this.last ? undefined : Number(number)
  }
}
