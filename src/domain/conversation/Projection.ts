/**
 * Projects the view to the messages that are sent, which have to be legal. Empty messages are left out, a call without a
 * response gets one that says so, and a response without a call becomes a marked note with its handle. The log is not
 * changed.
 */

import { type Content, isCall, isResponse, type Part, partJson, response } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { wireContent } from "../content/WireContent.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import * as Work from "../text/SlicedWork.ts"
import { untrustedLine } from "../text/UntrustedText.ts"
import { partTokens } from "../tokens/Tokens.ts"
import { nativeContent } from "../wire/ModelState.ts"
import { CallPairs } from "./CallPairs.ts"
import {
  type Conversation,
  type Draft,
  type EntryId,
  itemParts,
  sourceOf,
  view,
  type ViewItem
} from "./Conversation.ts"
import { isValidPart } from "./Curation.ts"

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
  summary: `${runtimeMark} What follows is a summary of what was said before, not the user's words.`,
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

/** Returns a message that a compression inserted as it is sent: its parts as the view shows them, after a note that names its author. */
export const writtenContent = (item: ViewItem): Content => {
  const { content } = item.entry
  const note = foreignNote(item.entry)
  const parts = itemParts(item)
  return note === undefined && parts === content.parts
    ? content
    : { ...content, parts: note === undefined ? parts : [{ text: note }, ...parts] }
}

const noResultNote = "no result: the call was interrupted before it answered"

/** Returns the response for a call that never got one. */
export const missingResponse = ({ id, name }: { readonly id?: string | undefined; readonly name: string }): Part =>
  response(name, { error: noResultNote }, id)

const isKept = (part: Part): boolean =>
  isValidPart(part, "newer") && !(part.text === "" && Object.keys(part).length === 1)

const noSource: ReadonlyMap<number, string> = new Map()

/** A message of the view with its index, and its parts as the view shows them. */
interface Shown {
  readonly index: number
  readonly item: ViewItem
  readonly parts: ReadonlyArray<Part>
}

const nothing: ReadonlyArray<Part> = []

/** The index of the run of a message without content. */
const noRun = -1

/**
 * Makes the messages of a view legal in order and pairing, one by one. The result of a run of messages of one role is final
 * when the next run begins, so a growing view is not projected again. Calls that the last message leaves open stay open.
 * Mutable.
 */
export class Projector {
  private readonly pairs = new CallPairs()
  /** By message: the index of its run, and its role. */
  private readonly runs: Array<number> = []
  private readonly roles: Array<Content["role"]> = []
  /** The current run, and the one before it. */
  private run = 0
  private current: Array<Shown> = []
  private previous: ReadonlyArray<Shown> = []
  private readonly settle: (message: SentMessage) => void

  /** `settle` receives each message that no later message changes, in order. */
  constructor(settle: (message: SentMessage) => void) {
    this.settle = settle
  }

  /** Adds the next message of the view. Returns the index of the earliest message with a call that it answers, or its own. */
  push(item: ViewItem): number {
    const { role } = item.entry.content
    const parts = itemParts(item)
    const index = this.runs.length
    const earliest = this.pairs.add({ role, parts })
    this.roles.push(role)
    if (!parts.some(isKept)) {
      this.runs.push(noRun)
      return earliest
    }
    const last = this.current[0]
    if (last === undefined || last.item.entry.content.role !== role) {
      if (last !== undefined) this.made(this.current, this.previous, this.settle)
      this.previous = this.current
      this.current = []
      this.run += 1
    }
    this.runs.push(this.run)
    this.current.push({ index, item, parts })
    return earliest
  }

  /** Whether the message that was pushed last is sent. */
  get isLastSent(): boolean {
    return this.runs[this.runs.length - 1] !== noRun
  }

  /**
   * Returns the messages that are not settled: the last run, and optionally further messages in the user's role that answer no
   * call. Those are not added to the projector.
   */
  tail(next: ReadonlyArray<ViewItem> = []): ReadonlyArray<SentMessage> {
    const sent: Array<SentMessage> = []
    const add = (message: SentMessage) => void sent.push(message)
    const shown = next.flatMap((item, at) => {
      const parts = itemParts(item)
      return parts.some(isKept) ? [{ index: this.runs.length + at, item, parts }] : []
    })
    if (shown.length > 0 && this.current[0]?.item.entry.content.role === "user") {
      this.made([...this.current, ...shown], this.previous, add)
    } else {
      this.made(this.current, this.previous, add)
      if (shown.length > 0) this.made(shown, this.current, add)
    }
    return sent
  }

  /** Whether the response is in the run right after its call's, where the protocol requires it. */
  private answers(call: number | undefined, answer: number | undefined): boolean {
    return (
      call !== undefined &&
      answer !== undefined &&
      this.roles[call] === "model" &&
      (this.runs[call] ?? noRun) + 1 === this.runs[answer]
    )
  }

  private isAnswer(item: number, part: number): boolean {
    return this.answers(this.pairs.partnerItem(item, part), item)
  }

  /** Returns responses for the calls of a model run that got none in the run after it. */
  private owed(previous: ReadonlyArray<Shown>): ReadonlyArray<Part> {
    let owed: Array<Part> | undefined
    for (const { index, item, parts } of previous) {
      if (item.entry.content.role === "user") continue
      for (const [at, part] of parts.entries()) {
        if (!isCall(part) || !isKept(part) || this.answers(index, this.pairs.partnerItem(index, at))) continue
        owed ??= []
        owed.push(missingResponse(part.functionCall))
      }
    }
    return owed ?? nothing
  }

  private made(run: ReadonlyArray<Shown>, previous: ReadonlyArray<Shown>, add: (message: SentMessage) => void): void {
    const owed = run[0]?.item.entry.content.role === "user" ? this.owed(previous) : nothing
    // They follow the last message with responses, so that pairing by order does not change.
    const last =
      owed.length === 0
        ? undefined
        : run.findLast(({ index, parts }) => parts.some((part, at) => isResponse(part) && this.isAnswer(index, at)))
    for (const [at, shown] of run.entries()) {
      add(this.sent(shown, last === undefined && at === 0 ? owed : nothing, shown === last ? owed : nothing))
    }
  }

  /** Returns the part as it is sent: a note in place of a call or a response where the protocol allows none. */
  private legal({ index, item, parts }: Shown, at: number): Part | undefined {
    const part = parts[at]
    if (part === undefined || !isKept(part)) return undefined
    if (isCall(part) && item.entry.content.role === "user") return misplacedNote(part, item.entry.handles[at])
    return isResponse(part) && !this.isAnswer(index, at) ? orphanNote(part, item.entry.handles[at]) : part
  }

  private sent(shown: Shown, before: ReadonlyArray<Part>, after: ReadonlyArray<Part>): SentMessage {
    const { item, parts } = shown
    const { author, content, id } = item.entry
    const kept: Array<Part> = []
    let source: Map<number, string> | undefined
    let tokens = 0
    const keep = (part: Part, cost = Work.runSync(partTokens(part))) => {
      kept.push(part)
      tokens += cost
    }
    const whose = foreignNote(item.entry)
    if (whose !== undefined) keep({ text: whose })
    for (const part of before) keep(part)
    let isWhole = kept.length + after.length === 0 && item.shortened.size === 0
    for (let at = 0; at < parts.length; at += 1) {
      const part = this.legal(shown, at)
      isWhole &&= part === parts[at]
      if (part === undefined) continue
      if (part !== parts[at]) {
        keep(part)
        continue
      }
      const text = item.shortened.has(at) ? undefined : sourceOf(item.entry, at)
      if (text !== undefined) (source ??= new Map()).set(kept.length, text)
      keep(part, item.shortened.get(at)?.tokens ?? item.entry.tokens[at] ?? 0)
    }
    for (const part of after) keep(part)
    return {
      entry: id,
      content: isWhole ? content : { ...content, parts: kept },
      source: source ?? noSource,
      tokens: author === "environment" ? 0 : tokens
    }
  }
}

/**
 * Returns the messages of the view as they are sent.
 *
 * **Example** (Writing the messages that a model gets)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compression, Content, Conversation, Palimpsest } from "palimpsest"
 *
 * // A call that nobody answered would be refused by a provider.
 * const drafts = [
 *   { content: Content.user(Content.text("Read the log.")) },
 *   { content: Content.model(Content.call("read_file", { path: "build.log" }, "call-1")) },
 *   { content: Content.user(Content.text("Never mind.")) }
 * ]
 * const { conversation } = await Effect.runPromise(
 *   Effect.provide(Compression.requestFor(drafts), Palimpsest.layer())
 * )
 * const sent = Conversation.projectMessages(conversation).map(({ content }) => content)
 * console.log(sent.some(Content.hasResponses)) // => true
 * ```
 */
export const projectMessages = (self: Conversation): Array<SentMessage> => projectItems(view(self))

/** `projectMessages` for any view items. Calls that the last of them leaves open stay open. */
export const projectItems = (items: ReadonlyArray<ViewItem>): Array<SentMessage> => Work.runSync(projecting(items))

/** `projectItems`, in slices. */
export function* projecting(items: ReadonlyArray<ViewItem>): Work.SlicedWork<Array<SentMessage>> {
  const sent: Array<SentMessage> = []
  const projector = new Projector((message) => void sent.push(message))
  for (const item of items) {
    projector.push(item)
    yield
  }
  for (const message of projector.tail()) sent.push(message)
  return sent
}

/** Returns the tokens of the messages that are sent. A compression has to reduce this number. */
export const requestTokens = (sent: ReadonlyArray<SentMessage>): number =>
  sent.reduce((total, { tokens }) => total + tokens, 0)

/** Returns the history as JSON, with parts exactly as they were read. */
export const sentJson = (sent: ReadonlyArray<SentMessage>): string =>
  `[${sent
    .map(({ content: held, source }) => {
      const content = wireContent(nativeContent(held))
      const { parts, ...rest } = content
      const body = parts.map((part, index) => partJson(part, source.get(index))).join(",")
      return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`
    })
    .join(",")}]`
