import type { ServedEvent } from "./EventBuffer.ts"

/** A turn that another process goes on with: what clients are told, so that no text is doubled and none is missing. */

type Event = ServedEvent["event"]

const retry: Event = {
  _tag: "Retry",
  attempt: 2,
  delay: 0,
  reason: "ServerLost",
  message: "the server was lost; another one asks the model again"
}

const content = (text: string): ReadonlyArray<Event> => (text === "" ? [] : [{ _tag: "Content", text }])

/** What brings clients from the text that they were told to the whole one. */
const completed = (told: string, whole: string): ReadonlyArray<Event> =>
  whole.startsWith(told) ? content(whole.slice(told.length)) : [retry, ...content(whole)]

/**
 * Compares the events that clients were told of a turn with the texts of its answers that the session holds, in order. Returns
 * the events that are missing, and the text that was told of an answer that the session does not hold.
 */
export const resumption = (
  told: ReadonlyArray<Event>,
  committed: ReadonlyArray<string>
): { readonly events: ReadonlyArray<Event>; readonly open: string } => {
  let text = ""
  let answers = 0
  for (const event of told) {
    if (event._tag === "Content") text += event.text
    if (event._tag === "Retry" || event._tag === "Finished") text = ""
    if (event._tag === "Finished") answers += 1
  }
  const [first, ...rest] = committed.slice(answers)
  if (first === undefined) return { events: [], open: text }
  return { events: [...completed(text, first), ...rest.flatMap(content)], open: "" }
}

/**
 * The events of an answer that is asked for again, after clients were told the beginning of an earlier one. While the new answer
 * says the same, nothing is told; then only the rest. One that differs begins with `Retry`, which makes the earlier text void.
 */
export class ResumedAnswer {
  private readonly told: string
  private text = ""
  private isOpen: boolean

  constructor(told: string) {
    this.told = told
    this.isOpen = told !== ""
  }

  /** The events to tell in the place of this one. */
  next(event: Event): ReadonlyArray<Event> {
    if (!this.isOpen) return [event]
    switch (event._tag) {
      case "Content": {
        this.text += event.text
        return this.told.startsWith(this.text) ? [] : this.close()
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
    return completed(this.told, this.text)
  }
}
