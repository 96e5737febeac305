/**
 * Passes answers of a provider on to a client of the gateway: one answer for the client, made of one or more of the provider, without the calls of
 * the gateway's own tool.
 */

import type { Part } from "../content/Content.ts"
import { isJson, type Json, jsonAt } from "../text/JsonObject.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import type { AnswerForm, GrowingAnswer, Growth, VisibleBlock, WireCall } from "./AnswerForm.ts"
import { addedCounts } from "./AnswerUsage.ts"
import { isEndMark, type SseEvent, SseSplitter, sseText } from "./SseEvents.ts"

/** A call of the gateway's recall tool. */
export interface RecallCall extends WireCall {
  /** The JSON of the call as the provider wrote it, which is sent back to the provider. */
  readonly json: string
}

/** What a call of the gateway's tool gets: a text, and images or files where the dialect can carry them. */
export interface RecalledContent {
  readonly text: string
  readonly media: ReadonlyArray<Part>
  /** The recall failed: the text says why. */
  readonly isError?: true
}

/** A complete answer of the provider. */
export interface ReadAnswer {
  readonly calls: ReadonlyArray<RecallCall>
  /** Whether the answer also calls tools of the client. */
  readonly hasOthers: boolean
  /** The messages that stand for the whole answer in the next request. */
  readonly sent: ReadonlyArray<string>
  readonly visible: ReadonlyArray<VisibleBlock>
  /** The provider's counts, in its own form. */
  readonly usage: unknown
}

/** How an answer ends for the client. */
export type Ending =
  /** With the provider's own ending. */
  | "as sent"
  /** With a normal stop, in place of a tool call that the client cannot answer. */
  | "stopped"

/** The facts of a dialect about answers that are passed on. */
export interface RelayForm extends AnswerForm {
  /** The key of the index of a block in an event, where blocks have one. */
  readonly indexKey?: string
  /** A text of the gateway as a block; `at` is the number of blocks before it. */
  readonly note: (text: string, at: number) => Json
  /** A whole answer with other blocks. */
  readonly withBlocks: (answer: Json, blocks: ReadonlyArray<Json>, ending: Ending) => Json
  /** The messages that answer calls of the gateway's tool. */
  readonly results: (calls: ReadonlyArray<RecallCall>, recalled: ReadonlyArray<RecalledContent>) => ReadonlyArray<Json>
}

/** How the answers of a dialect are passed on. */
export interface AnswerRelay extends RelayForm {
  /** Begins to pass on a stream. `tool` is the name of the gateway's tool. */
  readonly stream: (tool: string) => RelayedStream
}

/** One answer for the client, in the making. Mutable. */
abstract class RelayedAnswer {
  protected readonly form: RelayForm
  private readonly tool: string
  /** The blocks that the client got in earlier answers, and the counts of these. */
  protected readonly before: Array<Json> = []
  private earlier: unknown
  protected rounds = 1

  constructor(form: RelayForm, tool: string) {
    this.form = form
    this.tool = tool
  }

  /** The current answer of the provider, as it sends it whole. */
  protected abstract get current(): Json

  /** Whether a block calls the gateway's tool. */
  protected isOwn(block: Json): boolean {
    return this.form.callOf(block)?.name === this.tool
  }

  /** The blocks of an answer of the provider that the client gets. */
  protected shownOf(answer: Json): ReadonlyArray<Json> {
    return (this.form.blocksOf(answer) ?? []).filter((block) => !this.isOwn(block))
  }

  /** The counts of all answers, this one included. */
  protected get counts(): unknown {
    return addedCounts(this.earlier, this.current[this.form.usageKey])
  }

  /** Returns the current answer of the provider. */
  readonly read = (): ReadAnswer => {
    const answer = this.current
    const blocks = this.form.blocksOf(answer) ?? []
    const called = blocks.map((block) => ({ block, call: this.form.callOf(block) }))
    return {
      calls: called.flatMap(({ block, call }) =>
        call?.name === this.tool ? [{ ...call, json: JSON.stringify(block) }] : []
      ),
      hasOthers: called.some(({ call }) => call !== undefined && call.name !== this.tool),
      sent: this.form.sent(blocks, answer).map((message) => JSON.stringify(message)),
      visible: called.flatMap(({ block, call }) => (call?.name === this.tool ? [] : [this.form.visible(block)])),
      usage: answer[this.form.usageKey]
    }
  }

  /** Notes what the client gets of the current answer, and then a text of the gateway, unless it is empty. */
  protected goOn(note: string): void {
    this.earlier = this.counts
    for (const each of this.shownOf(this.current)) this.before.push(each)
    if (note !== "") this.before.push(this.form.note(note, this.before.length))
    this.rounds += 1
  }
}

/** Passes on a body that is not streamed. Mutable. */
export class RelayedBody extends RelayedAnswer {
  private body = ""
  private answer: Json = {}

  protected get current(): Json {
    return this.answer
  }

  /** Reads a body. Returns undefined for a body in an unknown form. */
  readonly push = (body: string): ReadAnswer | undefined => {
    const answer = parsedOrUndefined(body)
    if (!isJson(answer) || this.form.blocksOf(answer) === undefined) return undefined
    this.body = body
    this.answer = answer
    return this.read()
  }

  /** Goes on to the provider's next body, after a text of the gateway, unless it is empty. */
  readonly next = (note: string): void => {
    this.goOn(note)
    this.answer = {}
  }

  /** Returns the body for the client. */
  readonly finish = (ending: Ending): string => {
    const { answer } = this
    const { blocksOf, usageKey, withBlocks } = this.form
    const shown = this.shownOf(answer)
    if (this.rounds === 1 && ending === "as sent" && shown.length === blocksOf(answer)?.length) return this.body
    const blocks = [...this.before, ...shown]
    return JSON.stringify({ ...withBlocks(answer, blocks, ending), [usageKey]: this.counts })
  }
}

/** Passes on a stream event by event. Each dialect says how its events are changed. Mutable. */
export abstract class RelayedStream extends RelayedAnswer {
  /** The provider's current answer. */
  private answer: GrowingAnswer
  /** The client's index of each block, by its index in the current answer. Blocks of the gateway's tool have none. */
  private indexes = new Map<number, number | undefined>()
  /** The first event of the client's answer. */
  protected first: Json | undefined
  /** Blocks that the client has got so far. */
  private shown = 0
  /** The events that end the current answer: the gateway may continue it. */
  private held: Array<{ readonly event: SseEvent; readonly data: unknown; readonly growth: Growth }> = []

  constructor(form: RelayForm, tool: string) {
    super(form, tool)
    this.answer = form.begin()
  }

  protected get current(): Json {
    return this.answer.whole
  }

  /** What the client gets of an event within the answer: all of it, under the client's index of its block. */
  protected pass(event: SseEvent, data: Json, { pieces: [piece] = [] }: Growth): string {
    const { indexKey } = this.form
    if (piece === undefined || indexKey === undefined) return this.changed(event, data, {})
    const shown = this.indexOf(piece.at)
    if (shown === undefined) return ""
    return this.changed(event, data, shown === piece.at ? {} : { [indexKey]: shown })
  }

  /** Writes an event. Rewrites it only where it differs from what the provider sent. */
  protected changed(event: SseEvent, data: Json, changes: Json): string {
    return Object.keys(changes).length === 0 ? event.raw : sseText(event, { ...data, ...changes })
  }

  /** What the client gets of an event that ends an answer which goes on: the content, where an event also ends it. */
  protected opened(_event: SseEvent, _data: Json): string {
    return ""
  }

  /** An event that ends the answer for the client. `counts` are those of all answers. */
  protected abstract closed(event: SseEvent, data: Json, ending: Ending, counts: unknown, growth: Growth): string
  /** The events of a text of the gateway. */
  protected abstract noted(note: string): string
  /** The event that reports an error. */
  protected failed(error: Json): string {
    return sseText({ name: "" }, { error })
  }

  /** Reads an event. Returns the text to send to the client. */
  readonly push = (event: SseEvent): string => {
    const data = parsedOrUndefined(event.data)
    if (!isJson(data) && !isEndMark(event.data)) return event.raw
    if (isJson(data)) this.first ??= data
    const growth: Growth = isJson(data) ? (this.answer.push(data) ?? {}) : { border: "end" }
    for (const { at, begun } of growth.pieces ?? []) {
      if (begun !== undefined && !this.indexes.has(at))
        this.indexes.set(at, this.isOwn(begun) ? undefined : this.nextIndex())
    }
    if (growth.border === "end" || !isJson(data)) {
      this.held.push({ event, data, growth })
      return ""
    }
    return growth.border === "beginning" && this.rounds > 1 ? "" : this.pass(event, data, growth)
  }

  /**
   * Begins the provider's next answer. Returns the text to send to the client: what was held back of the events that
   * ended this answer, and `note`, a text of the gateway, unless it is empty.
   */
  readonly next = (note: string): string => {
    const opened = this.held.map(({ data, event }) => (isJson(data) ? this.opened(event, data) : "")).join("")
    this.goOn(note)
    this.answer = this.form.begin()
    this.indexes = new Map()
    this.held = []
    return opened + (note === "" ? "" : this.noted(note))
  }

  /** Returns the events that end the answer for the client. */
  readonly finish = (ending: Ending): string => {
    const { counts } = this
    return this.held
      .map(({ data, event, growth }) => (isJson(data) ? this.closed(event, data, ending, counts, growth) : event.raw))
      .join("")
  }

  /** Returns an event that reports a failure to the client. */
  readonly failure = (status: number, body: string): string => {
    const parsed = parsedOrUndefined(body)
    const error = isJson(parsed) ? parsed["error"] : undefined
    const message = typeof error === "string" ? error : `the provider answered ${status}`
    return this.failed(isJson(error) ? error : jsonAt(this.form.failure(status, message), "error"))
  }

  /** The client's index for a block of the provider; undefined where the client does not get it, or it has not begun. */
  protected indexOf(index: number): number | undefined {
    return this.indexes.get(index)
  }

  /** The client's next index. */
  protected nextIndex(): number {
    this.shown += 1
    return this.shown - 1
  }
}

/** Reads an answer that has arrived, streamed or not. Undefined if it has an unknown form. */
export const readAnswer = (
  relay: AnswerRelay,
  tool: string,
  text: string,
  isStream: boolean
): ReadAnswer | undefined => {
  if (!isStream) return new RelayedBody(relay, tool).push(text)
  const stream = relay.stream(tool)
  const splitter = new SseSplitter()
  for (const event of [...splitter.push(text), ...splitter.end()]) stream.push(event)
  return stream.read()
}
