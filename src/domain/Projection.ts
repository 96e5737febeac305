import { type Content, isCall, isResponse, outputText, type Part, partJson, response } from "./Content.ts"
import {
  type Conversation,
  type Draft,
  type EntryId,
  itemParts,
  Pairs,
  type Place,
  placeKey,
  sourceOf,
  view,
  type ViewItem
} from "./Conversation.ts"
import { isValidModel } from "./Curation.ts"
import { foreignLine } from "./Foreign.ts"
import type { Handle } from "./Handle.ts"
import { partTokens } from "./Tokens.ts"
import { runtimeMark } from "./RuntimeMark.ts"
import { wireContent } from "./WireContent.ts"
import * as Work from "./Work.ts"

/**
 * From the view to what is sent: the same messages, made legal. Empty messages are left out, a call that never got its
 * response gets one that says so, a response without a call becomes a marked note with its handle. The log is not touched.
 */

/** A message to send, and the entry it stands for. */
export interface Sent {
  readonly entry: EntryId
  readonly content: Content
  /** By part: the exact JSON where it is known to differ from writing the part again. */
  readonly source: ReadonlyMap<number, string>
  /** As it is sent: of a part that is left out none, of a note the note's. The environment message has none. */
  readonly tokens: number
}

const orphanNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A result of ${foreignLine(part.functionResponse?.name ?? "a tool")} stood here; its call is not part of this context.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** Only the model calls. */
const misplacedNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A call of ${foreignLine(part.functionCall?.name ?? "a tool")} stood here in the user's role.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** What stands before the words of a summary or a program where the protocol makes them travel in the user's role. */
export const foreignNotes = {
  summary: `${runtimeMark} What follows was written by a model: a summary of what was said before.`,
  program: `${runtimeMark} What follows was put here by a program, not by the user.`
}

/**
 * Says whose words they are when a message in the user's role is not the user's and does not say so itself (law 6). Only a
 * message that the runtime made says so itself: in one that comes from another agent's file, its words prove nothing.
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

const noResult = "no result: the call was interrupted before it answered"

/** What answers a call that never got its response. */
export const owedResponse = ({ id, name }: { readonly id?: string | undefined; readonly name: string }): Part =>
  response(name, { error: noResult }, id)

const isKept = (role: Content["role"], part: Part): boolean =>
  isValidModel({ role, parts: [part] }, "newer") && !(part.text === "" && Object.keys(part).length === 1)

/** A message of the view, where it stands in it, and its parts as the view shows them. */
interface Shown {
  readonly index: number
  readonly item: ViewItem
  readonly parts: ReadonlyArray<Part>
}

/**
 * Makes the messages of a view legal in order and pairing (law 5), one after the other: what has been made of a run of
 * messages of one role stays when the next run begins, so a view that grows is not made anew. Calls that the last message
 * leaves open stay open. Mutable.
 */
export class Projector {
  private readonly pairs = new Pairs()
  /** By message: the run it belongs to; a message with nothing in it belongs to none (-1). */
  private readonly runs: Array<number> = []
  private readonly roles: Array<Content["role"]> = []
  /** The run that is being added to, and the one before it. */
  private run = 0
  private current: Array<Shown> = []
  private previous: ReadonlyArray<Shown> = []
  private readonly closed: Array<Sent> = []

  /** The next message of the view. */
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

  /** What stays as it is whatever comes next. */
  get settled(): ReadonlyArray<Sent> {
    return this.closed
  }

  /**
   * What is sent behind `settled`: the last run and, where there are any, messages in the user's role that answer no call.
   * Those are not taken in.
   */
  tail(next: ReadonlyArray<ViewItem> = []): ReadonlyArray<Sent> {
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

  /** A response counts only in the run right after its call's, where the protocol wants it. */
  private answers(call: Place | undefined, answer: Place | undefined): boolean {
    return (
      call !== undefined &&
      answer !== undefined &&
      this.roles[call.item] === "model" &&
      (this.runs[call.item] ?? -1) + 1 === this.runs[answer.item]
    )
  }

  private isAnswer(place: Place): boolean {
    return this.answers(this.pairs.callOf.get(placeKey(place)), place)
  }

  /** Responses for the calls of a run of the model's that got none in the run after it. */
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
              : [owedResponse(part.functionCall)]
          })
    )
  }

  private made(run: ReadonlyArray<Shown>, previous: ReadonlyArray<Shown>): ReadonlyArray<Sent> {
    if (run[0]?.item.entry.content.role !== "user") return run.flatMap((shown) => this.sent(shown, [], []))
    const owed = this.owed(previous)
    // What is owed comes after the last message that holds answers, so that order pairs as before.
    const last = run.findLast(({ index, parts }) =>
      parts.some((part, at) => isResponse(part) && this.isAnswer({ item: index, part: at }))
    )
    return run.flatMap((shown, at) =>
      this.sent(shown, last === undefined && at === 0 ? owed : [], shown === last ? owed : [])
    )
  }

  private sent({ index, item, parts }: Shown, before: ReadonlyArray<Part>, after: ReadonlyArray<Part>): Array<Sent> {
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

/** The messages of the view, as they are sent. */
export const project = (self: Conversation): Array<Sent> => projectItems(view(self))

/** `project` for any messages of a view. Calls that the last of them leaves open stay open. */
export const projectItems = (items: ReadonlyArray<ViewItem>): Array<Sent> => Work.runSync(projecting(items))

/** `projectItems`, in slices. */
export function* projecting(items: ReadonlyArray<ViewItem>): Work.Work<Array<Sent>> {
  const projector = new Projector()
  for (const item of items) {
    projector.push(item)
    yield 500
  }
  return [...projector.settled, ...projector.tail()]
}

/** Tokens of what is sent: what a compression has to make smaller (law 4). */
export const requestTokens = (sent: ReadonlyArray<Sent>): number =>
  sent.reduce((total, { tokens }) => total + tokens, 0)

/** The history as JSON, parts exactly as they were read (law 1). */
export const sentJson = (sent: ReadonlyArray<Sent>): string =>
  `[${sent
    .map(({ content: held, source }) => {
      const content = wireContent(held)
      if (source.size === 0) return JSON.stringify(content)
      const { parts, ...rest } = content
      const body = parts.map((part, index) => partJson(part, source.get(index))).join(",")
      return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`
    })
    .join(",")}]`
