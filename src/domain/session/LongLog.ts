import { type Entry, entryTokens, inserted, shown, view } from "../conversation/Conversation.ts"
import { goesBeyond, replacesView } from "./Checkpoint.ts"
import { applyEvent, emptySession, type Session, type SessionEvent } from "./Session.ts"

/**
 * A log that is too long for memory: of the texts of its messages the beginnings are held, and what the model sees is held whole
 * while it is small enough.
 */
export interface LongLog {
  /** The session, with the beginnings of texts alone. */
  readonly session: Session
  /** The events, with the beginnings of texts alone: branches are found by their messages. */
  readonly events: ReadonlyArray<SessionEvent>
  /** The session with the content of its view alone, whole; undefined when that is too large, or went back too far. */
  readonly seen: Session | undefined
}

/** Characters of a text that stay, for previews. */
const keptChars = 80
/** Limit of the bytes of what the model sees. The content of a window of a million tokens is smaller. */
const maxSeenBytes = 16 * 1024 * 1024
/** Bytes that a message takes in memory besides its line. */
const messageBytes = 1_000

/** Returns a value with the beginnings of its texts. They are copied, so that the whole texts can be freed. */
const shortened = (value: unknown): unknown => {
  if (typeof value === "string") return value.length <= keptChars ? value : value.slice(0, keptChars).split("").join("")
  if (Array.isArray(value)) return value.map(shortened)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, shortened(held)]))
}

const withoutTexts = ({ content, source: _, ...entry }: Entry): Entry => ({
  ...entry,
  content: { ...content, parts: content.parts.map((part) => Object.assign({}, shortened(part))) }
})

const eventWithoutTexts = (event: SessionEvent): SessionEvent => {
  switch (event._tag) {
    case "Appended":
      return { ...event, entry: withoutTexts(event.entry) }
    case "Answered":
      return {
        ...event,
        message: withoutTexts(event.message),
        answer: withoutTexts(event.answer),
        ...(event.attached === undefined ? {} : { attached: event.attached.map(withoutTexts) })
      }
    default:
      return event
  }
}

/** Reads a long log, event by event. Mutable. */
export class LongLogReader {
  private session = emptySession
  private readonly events: Array<SessionEvent> = []
  private seen: Session | undefined = emptySession
  private seenBytes = 0
  private isCut = false

  /** Adds the next event, whose line has this many bytes in the log. */
  add(event: SessionEvent, bytes: number): void {
    const held = eventWithoutTexts(event)
    this.session = applyEvent(this.session, held)
    this.events.push(held)
    if (this.seen !== undefined) this.seen = this.follow(this.seen, event, bytes)
  }

  /** What was read so far. */
  get log(): LongLog {
    return { session: this.session, events: this.events, seen: this.seen }
  }

  private follow(seen: Session, event: SessionEvent, bytes: number): Session | undefined {
    // It needs content that is no longer held.
    if (this.isCut && goesBeyond(seen, event)) return undefined
    const after = applyEvent(seen, event)
    this.seenBytes += bytes + messageBytes
    if (!replacesView(event) || this.seenBytes <= maxSeenBytes / 2)
      return this.seenBytes > maxSeenBytes ? undefined : after
    const items = view(after.conversation)
    const insertedIds = new Set(inserted(this.session.conversation).map(({ id }) => id))
    this.isCut = true
    this.seenBytes = items.reduce((total, { entry }) => total + 4 * entryTokens(entry) + messageBytes, 0)
    if (this.seenBytes > maxSeenBytes) return undefined
    const conversation = shown(items, ({ id }) => insertedIds.has(id), after.conversation)
    return { ...after, conversation, ranges: undefined }
  }
}
