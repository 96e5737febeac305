/** Makes the contents of each request of a chat from its view, reusing those of the request before. */

import { type Content, isResponse, type Part, withoutSignatures, withSignature } from "../content/Content.ts"
import { wireContent } from "../content/WireContent.ts"
import { makerOf } from "../model/ModelLimits.ts"
import type * as PersistentList from "../text/PersistentList.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { type Entry, type EntryId, sum, type ViewItem } from "./Conversation.ts"
import { Projector, type SentMessage } from "./Projection.ts"

/** The size of a request. */
export interface OutgoingSize {
  /** The parts of the contents, the same objects every time. */
  readonly parts: () => ReadonlyArray<Part>
  /** Tokens, as counted when the entries were made, including the environment message. */
  readonly tokens: number
  /** Tokens of the environment message, which the conversation does not count as its own. */
  readonly environment: number
}

/** A request as it is sent. */
export interface OutgoingRequest extends OutgoingSize {
  readonly contents: ReadonlyArray<Content>
}

/** Whether a program wrote a message in the user's role. */
const isProgram = ({ author, content }: Entry): boolean => author === "program" && content.role === "user"

/** Whether a model of another provider wrote a message: `model` cannot read its signatures. */
const isForeign = ({ model: author }: Entry, model: string): boolean =>
  author !== undefined && author !== model && (makerOf(author) === undefined || makerOf(author) !== makerOf(model))

/** Whether program text may be appended to a message: it has words, and answers no call. */
const canGoOn = ({ author, content }: Entry): boolean =>
  content.role === "user" && (author === undefined || author === "program") && !content.parts.some(isResponse)

/**
 * Keeps the contents of a view from request to request. A view that grew at its end is not projected again, and earlier
 * contents stay the same objects. Any other view is processed in whole. Text of a program is sent as further parts of the
 * message before it, as Gemini CLI does with what hooks and references add to a prompt, so that a model, or a hook that
 * inspects the last message, finds the prompt there. Each part keeps the mark that names its author. Mutable: one per chat.
 */
export class Outgoing {
  /** Messages that the projector settled since the last call. */
  private settled: Array<SentMessage> = []
  private projector = this.projected()
  private at: PersistentList.PersistentList<ViewItem> = undefined
  /** Number of the settled messages that were processed. */
  private processed = 0
  /** The contents made from all settled messages. */
  private contents: Array<Content> = []
  /** Whether the last content accepts further parts. */
  private isOpen = false
  /** Messages that a program wrote, and messages that program text may be appended to. */
  private readonly programs = new Set<EntryId>()
  private readonly openings = new Set<EntryId>()
  /** Messages of other providers' models. */
  private readonly foreign = new Set<EntryId>()
  private parts: Array<Part> = []
  private tokens = 0
  private environment = 0

  /** Returns a projector whose settled messages are put by. */
  private projected(): Projector {
    const settled: Array<SentMessage> = []
    this.settled = settled
    return new Projector((message) => void settled.push(message))
  }

  /** A pending message has only a provisional id: what was noted under that id before no longer applies. */
  private note({ entry }: ViewItem): void {
    for (const [ids, is] of [
      [this.programs, isProgram(entry)],
      [this.openings, canGoOn(entry)],
      [this.foreign, this.isUnsigned || isForeign(entry, this.model)]
    ] as const) {
      if (is) ids.add(entry.id)
      else ids.delete(entry.id)
    }
  }

  /** Appends a message to these contents, or to the last of them. Returns whether the next message may be appended to it. */
  private put(contents: Array<Content>, isOpen: boolean, { content, entry }: SentMessage): boolean {
    const own = this.foreign.has(entry) ? withoutSignatures(content) : content
    const made = withSignature(wireContent(own))
    const last = contents.at(-1)
    if (isOpen && last?.role === "user" && this.programs.has(entry)) {
      contents[contents.length - 1] = { ...last, parts: [...last.parts, ...made.parts] }
      return true
    }
    contents.push(made)
    return this.openings.has(entry)
  }

  private take(sent: SentMessage): void {
    this.isOpen = this.put(this.contents, this.isOpen, sent)
    for (const part of sent.content.parts) this.parts.push(part)
    this.tokens += sent.tokens
    this.processed += 1
  }

  private isBare = false
  private isUnsigned = false
  private model = "";

  /**
   * Processes a version of the view for `model`, in slices. After an interruption, the next call processes the
   * rest. With `isBare`, the conversation's own environment messages are left out, because another one is sent. With
   * `isUnsigned`, all signatures are left out.
   */
  *follow(
    view: PersistentList.PersistentList<ViewItem>,
    model: string,
    isBare = false,
    isUnsigned = false
  ): SlicedWork<void> {
    const fresh: Array<PersistentList.Node<ViewItem>> = []
    let node = view
    while (node !== undefined && node !== this.at && node.length > (this.at?.length ?? 0)) {
      fresh.push(node)
      node = node.before
    }
    const isOther = isBare !== this.isBare || model !== this.model || isUnsigned !== this.isUnsigned
    if (node !== this.at || isOther) {
      if (isOther) {
        // Everything is projected again, including what did not change.
        fresh.length = 0
        node = view
        this.isBare = isBare
        this.isUnsigned = isUnsigned
        this.model = model
      }
      for (; node !== undefined; node = node.before) fresh.push(node)
      this.projector = this.projected()
      this.processed = 0
      this.contents = []
      this.isOpen = false
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
      yield
    }
    const { settled } = this
    for (let next = this.processed; next < settled.length; next += 1) {
      const sent = settled[next]
      if (sent !== undefined) this.take(sent)
      yield
    }
    settled.length = 0
    this.processed = 0
  }

  /** The size of the request for the view that was followed last, in a time that does not depend on its length. */
  size(): OutgoingSize {
    return this.sizeWith(this.projector.tail([]))
  }

  private sizeWith(tail: ReadonlyArray<SentMessage>): OutgoingSize {
    const { environment, parts } = this
    // Settled parts are only appended, so the present length delimits this request.
    const settled = parts.length
    return {
      parts: () => [...parts.slice(0, settled), ...tail.flatMap(({ content }) => content.parts)],
      tokens: tail.reduce((tokens, sent) => tokens + sent.tokens, this.tokens + environment),
      environment
    }
  }

  /** Returns the request for the view that was followed last, with these messages after it. */
  request(next: ReadonlyArray<ViewItem> = []): OutgoingRequest {
    for (const item of next) this.note(item)
    const tail = this.projector.tail(next)
    const contents = [...this.contents]
    let isOpen = false
    // A run of one role settles as a whole, so no message of the tail continues a settled one.
    for (const sent of tail) isOpen = this.put(contents, isOpen, sent)
    return { contents, ...this.sizeWith(tail) }
  }
}
