import { signed } from "./Answer.ts"
import type * as Chain from "./Chain.ts"
import type { Content, Part } from "./Content.ts"
import { sum, type ViewItem } from "./Conversation.ts"
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

/**
 * What is sent of a view, kept from request to request: a view that grew at its end is not projected anew, and what was
 * sent before is the very same values. Any other view is taken in whole. Mutable: one chat has one.
 */
export class Outgoing {
  private projector = new Projector()
  private at: Chain.Chain<ViewItem> = undefined
  /** What was made of the projector's settled messages so far. */
  private contents: Array<Content> = []
  private parts: Array<Part> = []
  private tokens = 0
  private environment = 0

  private take({ content, tokens }: Sent): void {
    this.contents.push(signed(wireContent(content)))
    this.parts.push(...content.parts)
    this.tokens += tokens
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
      this.contents = []
      this.parts = []
      this.tokens = 0
      this.environment = 0
      this.at = undefined
    }
    for (const each of fresh.reverse()) {
      const isEnvironment = each.value.entry.author === "environment"
      if (!isEnvironment || !isBare) this.projector.push(each.value)
      if (isEnvironment && !isBare) this.environment += sum(each.value.entry.tokens)
      this.at = each
      yield 500
    }
    const { settled } = this.projector
    for (let next = this.contents.length; next < settled.length; next += 1) {
      const sent = settled[next]
      if (sent !== undefined) this.take(sent)
      yield 100
    }
  }

  /** What would be sent of the view that was followed last, with these messages behind it. */
  request(next: ReadonlyArray<ViewItem> = []): Request {
    const tail = this.projector.tail(next)
    const { parts } = this
    // What is settled is only added to, so its length now says what belongs to this request.
    const settled = parts.length
    const { environment } = this
    let tokens = this.tokens + environment
    for (const sent of tail) tokens += sent.tokens
    return {
      contents: [...this.contents, ...tail.map(({ content }) => signed(wireContent(content)))],
      parts: () => [...parts.slice(0, settled), ...tail.flatMap(({ content }) => content.parts)],
      tokens,
      environment
    }
  }
}
