import { type Content, isCall, isResponse, outputText, type Part, partJson, response } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { wireContent } from "../content/WireContent.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import * as Work from "../text/SlicedWork.ts"
import { untrustedLine } from "../text/UntrustedText.ts"
import { partTokens } from "../tokens/Tokens.ts"
import {
  type Conversation,
  type Draft,
  type EntryId,
  itemParts,
  Pairs,
  type PartPlace,
  placeKey,
  sourceOf,
  view,
  type ViewItem
} from "./Conversation.ts"
import { isValidModel } from "./Curation.ts"

/**
 * Projects the view to the messages that are sent, which have to be legal. Empty messages are left out, a call without a
 * response gets one that says so, and a response without a call becomes a marked note with its handle. The log is not
 * changed.
 */

/** A message to send, and the entry it stands for. */
export interface SentMessage {
  readonly entry: EntryId
  readonly content: Content
  /** By part: the exact JSON, when writing the part again would give another text. */
  readonly source: ReadonlyMap<number, string>
  /** Tokens of the sent form: 0 for an omitted part, the note's for a note. The environment message counts 0. */
  readonly tokens: number
}

const orphanNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A result of ${untrustedLine(part.functionResponse?.name ?? "a tool")} stood here; its call is not part of this context.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** Only the model makes calls. */
const misplacedNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A call of ${untrustedLine(part.functionCall?.name ?? "a tool")} stood here in the user's role.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** The notes before text of a summary or a program, which the protocol sends in the user's role. */
export const foreignNotes = {
  summary: `${runtimeMark} What follows was written by a model: a summary of what was said before.`,
  program: `${runtimeMark} What follows was put here by a program, not by the user.`
}

/**
 * Returns the note that names the author of a message in the user's role that the user did not write and that does not say
 * so itself. Only messages of the runtime may name their author: a message from another agent's file proves nothing by its
 * text.
 */
export const foreignNote = ({
  author,
  content,
  origin
}: Pick<Draft, "author" | "content" | "origin">): string | undefined =>
  content.role !== "user" || (author !== "summary" && author !== "program")
    ? undefined
    : origin === undefined && content.parts[0]?.text?.startsWith(runtimeMark) === true
      ? undefined
      : foreignNotes[author]

const noResultNote = "no result: the call was interrupted before it answered"

/** Returns the response for a call that never got one. */
export const missingResponse = ({ id, name }: { readonly id?: string | undefined; readonly name: string }): Part =>
  response(name, { error: noResultNote }, id)

const isKept = (role: Content["role"], part: Part): boolean =>
  isValidModel({ role, parts: [part] }, "newer") && !(part.text === "" && Object.keys(part).length === 1)

/** A message of the view with its index, and its parts as the view shows them. */
interface Shown {
  readonly index: number
  readonly item: ViewItem
  readonly parts: ReadonlyArray<Part>
}

/**
 * Makes the messages of a view legal in order and pairing, one by one. The result of a run of messages of one role is final
 * when the next run begins, so a growing view is not projected again. Calls that the last message leaves open stay open.
 * Mutable.
 */
export class Projector {
  private readonly pairs = new Pairs()
  /** By message: the index of its run; -1 for a message without content. */
  private readonly runs: Array<number> = []
  private readonly roles: Array<Content["role"]> = []
  /** The current run, and the one before it. */
  private run = 0
  private current: Array<Shown> = []
  private previous: ReadonlyArray<Shown> = []
  private readonly closed: Array<SentMessage> = []

  /** Adds the next message of the view. */
  push(item: ViewItem): void {
    const { role } = item.entry.content
    const parts = itemParts(item)
    const index = this.runs.length
    this.pairs.add({ role, parts })
    this.roles.push(role)
    if (!parts.some((part) => isKept(role, part))) {
      this.runs.push(-1)
      return
    }
    const last = this.current[0]
    if (last === undefined || last.item.entry.content.role !== role) {
      if (last !== undefined) this.closed.push(...this.made(this.current, this.previous))
      this.previous = this.current
      this.current = []
      this.run += 1
    }
    this.runs.push(this.run)
    this.current.push({ index, item, parts })
  }

  /** The messages that no later message changes. */
  get settled(): ReadonlyArray<SentMessage> {
    return this.closed
  }

  /**
   * Returns the messages after `settled`: the last run, and optionally further messages in the user's role that answer no
   * call. Those are not added to the projector.
   */
  tail(next: ReadonlyArray<ViewItem> = []): ReadonlyArray<SentMessage> {
    const open = this.made(this.current, this.previous)
    const shown = next.flatMap((item, at) => {
      const parts = itemParts(item)
      return parts.some((part) => isKept("user", part)) ? [{ index: this.runs.length + at, item, parts }] : []
    })
    if (shown.length === 0) return open
    return this.current[0]?.item.entry.content.role === "user"
      ? this.made([...this.current, ...shown], this.previous)
      : [...open, ...this.made(shown, this.current)]
  }

  /** Whether the response is in the run right after its call's, where the protocol requires it. */
  private answers(call: PartPlace | undefined, answer: PartPlace | undefined): boolean {
    return (
      call !== undefined &&
      answer !== undefined &&
      this.roles[call.item] === "model" &&
      (this.runs[call.item] ?? -1) + 1 === this.runs[answer.item]
    )
  }

  private isAnswer(place: PartPlace): boolean {
    return this.answers(this.pairs.callOf.get(placeKey(place)), place)
  }

  /** Returns responses for the calls of a model run that got none in the run after it. */
  private owed(previous: ReadonlyArray<Shown>): ReadonlyArray<Part> {
    return previous.flatMap(({ index, item, parts }) =>
      item.entry.content.role === "user"
        ? []
        : parts.flatMap((part, at) => {
            const place = { item: index, part: at }
            return !isCall(part) ||
              !isKept("model", part) ||
              this.answers(place, this.pairs.responseOf.get(placeKey(place)))
              ? []
              : [missingResponse(part.functionCall)]
          })
    )
  }

  private made(run: ReadonlyArray<Shown>, previous: ReadonlyArray<Shown>): ReadonlyArray<SentMessage> {
    if (run[0]?.item.entry.content.role !== "user") return run.flatMap((shown) => this.sent(shown, [], []))
    const owed = this.owed(previous)
    // They follow the last message with responses, so that pairing by order does not change.
    const last = run.findLast(({ index, parts }) =>
      parts.some((part, at) => isResponse(part) && this.isAnswer({ item: index, part: at }))
    )
    return run.flatMap((shown, at) =>
      this.sent(shown, last === undefined && at === 0 ? owed : [], shown === last ? owed : [])
    )
  }

  private sent(
    { index, item, parts }: Shown,
    before: ReadonlyArray<Part>,
    after: ReadonlyArray<Part>
  ): Array<SentMessage> {
    const { content, role } = { content: item.entry.content, role: item.entry.content.role }
    const kept: Array<Part> = []
    const source = new Map<number, string>()
    let tokens = 0
    const keep = (part: Part, cost = Work.runSync(partTokens(part, outputText(part)))) => {
      kept.push(part)
      tokens += cost
    }
    const whose = foreignNote(item.entry)
    if (whose !== undefined) keep({ text: whose })
    for (const part of before) keep(part)
    parts.forEach((part, at) => {
      if (!isKept(role, part)) return
      if (isCall(part) && role === "user") {
        keep(misplacedNote(part, item.entry.handles[at]))
        return
      }
      if (isResponse(part) && !this.isAnswer({ item: index, part: at })) {
        keep(orphanNote(part, item.entry.handles[at]))
        return
      }
      const text = item.shortened.has(at) ? undefined : sourceOf(item.entry, at)
      if (text !== undefined) source.set(kept.length, text)
      keep(part, item.shortened.get(at)?.tokens ?? item.entry.tokens[at] ?? 0)
    })
    for (const part of after) keep(part)
    if (kept.length === 0) return []
    return [
      {
        entry: item.entry.id,
        content: { ...content, parts: kept },
        source,
        tokens: item.entry.author === "environment" ? 0 : tokens
      }
    ]
  }
}

/** Returns the messages of the view as they are sent. */
export const projectMessages = (self: Conversation): Array<SentMessage> => projectItems(view(self))

/** `projectMessages` for any view items. Calls that the last of them leaves open stay open. */
export const projectItems = (items: ReadonlyArray<ViewItem>): Array<SentMessage> => Work.runSync(projecting(items))

/** `projectItems`, in slices. */
export function* projecting(items: ReadonlyArray<ViewItem>): Work.SlicedWork<Array<SentMessage>> {
  const projector = new Projector()
  for (const item of items) {
    projector.push(item)
    yield 500
  }
  return [...projector.settled, ...projector.tail()]
}

/** Returns the tokens of the messages that are sent. A compression has to reduce this number. */
export const requestTokens = (sent: ReadonlyArray<SentMessage>): number =>
  sent.reduce((total, { tokens }) => total + tokens, 0)

/** Returns the history as JSON, with parts exactly as they were read. */
export const sentJson = (sent: ReadonlyArray<SentMessage>): string =>
  `[${sent
    .map(({ content: held, source }) => {
      const content = wireContent(held)
      if (source.size === 0) return JSON.stringify(content)
      const { parts, ...rest } = content
      const body = parts.map((part, index) => partJson(part, source.get(index))).join(",")
      return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`
    })
    .join(",")}]`
