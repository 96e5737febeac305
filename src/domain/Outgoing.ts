import { signed } from "./Answer.ts"
import type * as Chain from "./Chain.ts"
import { type Content, isResponse, type Part } from "./Content.ts"
import { type Entry, type EntryId, sum, type ViewItem } from "./Conversation.ts"
import { Projector, type Sent } from "./Projection.ts"
import { wireContent } from "./WireContent.ts"
import type { Work } from "./Work.ts"

/** The contents of a request, as they leave. */
export interface Request {
  readonly contents: ReadonlyArray<Content>
  /** Their parts, the same objects every time. */
  readonly parts: () => ReadonlyArray<Part>
  /** Their tokens, as they were counted when their entries were made, the environment message's among them. */
  readonly tokens: number
  /** Of these, the environment message's, which the conversation does not count as its own. */
  readonly environment: number
}

/** Whether a program wrote a message, in the user's role. */
const isProgram = ({ author, content }: Entry): boolean => author === "program" && content.role === "user"

/** Whether a message can be continued by a program: it is somebody's words, and answers no call. */
const canGoOn = ({ author, content }: Entry): boolean =>
  content.role === "user" && (author === undefined || author === "program") && !content.parts.some(isResponse)

/**
 * What is sent of a view, kept from request to request: a view that grew at its end is not projected anew, and what was
 * sent before is the very same values. Any other view is taken in whole. Words of a program go as further parts of the
 * message that they stand behind, as Gemini CLI sends what hooks and references add to a prompt: a model, and a hook that
 * looks at the last message, find the prompt there. Each keeps the mark that says whose words they are (law 6). Mutable:
 * one chat has one.
 */
export class Outgoing {
  private projector = new Projector()
  private at: Chain.Chain<ViewItem> = undefined
  /** How many of the projector's settled messages were taken in. */
  private taken = 0
  /** What was made of them. */
  private contents: Array<Content> = []
  /** Whether the last of these contents may get further parts. */
  private isOpen = false
  /** Messages that a program wrote, and those that a program's may continue. */
  private programs = new Set<EntryId>()
  private openings = new Set<EntryId>()
  private parts: Array<Part> = []
  private tokens = 0
  private environment = 0

  /** A message that waits behind the view has no id of its own yet: what was noted under the one it got counts no more. */
  private note({ entry }: ViewItem): void {
    for (const [ids, is] of [
      [this.programs, isProgram(entry)],
      [this.openings, canGoOn(entry)]
    ] as const) {
      if (is) ids.add(entry.id)
      else ids.delete(entry.id)
    }
  }

  /** Puts a message behind these contents, or into the last of them; whether the next may go into it. */
  private put(contents: Array<Content>, isOpen: boolean, { content, entry }: Sent): boolean {
    const made = signed(wireContent(content))
    const last = contents.at(-1)
    if (isOpen && last?.role === "user" && this.programs.has(entry)) {
      contents[contents.length - 1] = { ...last, parts: [...last.parts, ...made.parts] }
      return true
    }
    contents.push(made)
    return this.openings.has(entry)
  }

  private take(sent: Sent): void {
    this.isOpen = this.put(this.contents, this.isOpen, sent)
    this.parts.push(...sent.content.parts)
    this.tokens += sent.tokens
    this.taken += 1
  }

  private isBare = false;

  /**
   * Takes in a version of the view, in slices. Interrupted, the next call takes in the rest. `isBare`: without environment
   * messages of the conversation's own, because another one is sent.
   */
  *follow(view: Chain.Chain<ViewItem>, isBare = false): Work<void> {
    const fresh: Array<Chain.Node<ViewItem>> = []
    let node = view
    while (node !== undefined && node !== this.at && node.length > (this.at?.length ?? 0)) {
      fresh.push(node)
      node = node.before
      yield 5
    }
    if (node !== this.at || isBare !== this.isBare) {
      if (isBare !== this.isBare) {
        // All of it is made anew, what was the same included.
        fresh.length = 0
        node = view
        this.isBare = isBare
      }
      for (; node !== undefined; node = node.before) {
        fresh.push(node)
        yield 5
      }
      this.projector = new Projector()
      this.taken = 0
      this.contents = []
      this.isOpen = false
      this.programs = new Set()
      this.openings = new Set()
      this.parts = []
      this.tokens = 0
      this.environment = 0
      this.at = undefined
    }
    for (const each of fresh.reverse()) {
      const isEnvironment = each.value.entry.author === "environment"
      if (!isEnvironment || !isBare) this.projector.push(each.value)
      this.note(each.value)
      if (isEnvironment && !isBare) this.environment += sum(each.value.entry.tokens)
      this.at = each
      yield 500
    }
    const { settled } = this.projector
    for (let next = this.taken; next < settled.length; next += 1) {
      const sent = settled[next]
      if (sent !== undefined) this.take(sent)
      yield 100
    }
  }

  /** What would be sent of the view that was followed last, with these messages behind it. */
  request(next: ReadonlyArray<ViewItem> = []): Request {
    for (const item of next) this.note(item)
    const tail = this.projector.tail(next)
    const { parts } = this
    const contents = [...this.contents]
    let isOpen = false
    // What is settled is only added to, so its length now says what belongs to this request.
    const settled = parts.length
    const { environment } = this
    let tokens = this.tokens + environment
    for (const sent of tail) {
      tokens += sent.tokens
      // A run of one role settles as a whole, so that no message of the tail continues one that is settled.
      isOpen = this.put(contents, isOpen, sent)
    }
    return {
      contents,
      parts: () => [...parts.slice(0, settled), ...tail.flatMap(({ content }) => content.parts)],
      tokens,
      environment
    }
  }
}
