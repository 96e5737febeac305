/** Continues a turn that another process began: clients receive every text exactly once. */

import type { ServedEvent } from "./EventBuffer.ts"

type Event = ServedEvent["event"]

const retry: Event = {
  _tag: "Retry",
  attempt: 2,
  delay: 0,
  reason: "ServerLost",
  message: "the server failed; another one asks the model again"
}

const content = (text: string): ReadonlyArray<Event> => (text === "" ? [] : [{ _tag: "Content", text }])

/** Returns the events that complete a text of which clients received the beginning. */
const completed = (sent: string, whole: string): ReadonlyArray<Event> =>
  whole.startsWith(sent) ? content(whole.slice(sent.length)) : [retry, ...content(whole)]

/**
 * Compares the events that clients received with the answers that the session holds, in order. Returns the missing
 * events, and the text that clients received of an answer that the session does not hold.
 */
export const resumption = (
  sent: ReadonlyArray<Event>,
  committed: ReadonlyArray<string>
): { readonly events: ReadonlyArray<Event>; readonly open: string } => {
  let text = ""
  let answers = 0
  for (const event of sent) {
    if (event._tag === "Content") text += event.text
    if (event._tag === "Retry" || event._tag === "Finished") text = ""
    if (event._tag === "Finished") answers += 1
  }
  const [first, ...rest] = committed.slice(answers)
  if (first === undefined) return { events: [], open: text }
  return { events: [...completed(text, first), ...rest.flatMap(content)], open: "" }
}

/**
 * The events of an answer that the model gives again after clients received the beginning of an earlier one. As long
 * as the new answer matches, nothing is sent; then only the rest. An answer that differs begins with `Retry`, which
 * voids the earlier text.
 */
export class ResumedAnswer {
  private readonly sentText: string
  private text = ""
  private isOpen: boolean

  constructor(sent: string) {
    this.sentText = sent
    this.isOpen = sent !== ""
  }

  /** Returns the events to send for this one. */
  next(event: Event): ReadonlyArray<Event> {
    if (!this.isOpen) return [event]
    switch (event._tag) {
      case "Content": {
        this.text += event.text
        return this.sentText.startsWith(this.text) ? [] : this.close()
      }
      case "Retry": {
        this.text = ""
        return []
      }
      case "Finished":
      case "ToolCallRequest":
        return [...this.close(), event]
      default:
        return [event]
    }
  }

  private close(): ReadonlyArray<Event> {
    this.isOpen = false
    return completed(this.sentText, this.text)
  }
}
