/**
 * An index of a view for planning: sums, call pairs and the size of the request. Indexing a view that grew takes time
 * in the number of new messages only.
 */

import { isResponse, isText } from "../content/Content.ts"
import type * as PersistentList from "../text/PersistentList.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { isCleanCut } from "./CleanCuts.ts"
import type { ViewItem } from "./Conversation.ts"
import { Projector, requestTokens } from "./Projection.ts"

/** Tokens that an output takes once it is shortened, as plans estimate it. */
export const shortenedTokens = 600

/** Returns the tokens of the output at a place of a view. Undefined when there is none. */
export const outputTokens = (item: ViewItem, part: number): number | undefined => {
  const { content, tokens } = item.entry
  const output = content.parts[part]
  return content.role === "model" || output === undefined || !isResponse(output)
    ? undefined
    : (item.shortened.get(part)?.tokens ?? tokens[part] ?? 0)
}

const savedTokens = (item: ViewItem): number => {
  let saved = 0
  for (let part = 0; part < item.entry.content.parts.length; part += 1) {
    saved += Math.max(0, (outputTokens(item, part) ?? 0) - shortenedTokens)
  }
  return saved
}

/** Whether the user may have written a request into a message. */
const mayAsk = ({ entry: { author, content } }: ViewItem): boolean =>
  content.role === "user" && author === undefined && content.parts.some(isText)

/** Sums over the messages before each message, and facts about it. Entries are only added, so that all versions of a view share them. */
class Columns {
  readonly items: Array<ViewItem> = []
  /** By message: the earliest message with a call that it answers, or its own index. */
  readonly openFrom: Array<number> = []
  readonly asking: Array<number> = []
  readonly tokens: Array<number> = [0]
  readonly saved: Array<number> = [0]
  readonly sent: Array<number> = [0]
  readonly environment: Array<number> = [0]
  readonly summaries: Array<number> = [0]
  private settled = 0
  private readonly projector = new Projector((message) => {
    this.settled += message.tokens
  })

  add({ tokens, value: item }: PersistentList.Node<ViewItem>): void {
    const index = this.items.length
    const { author } = item.entry
    this.items.push(item)
    this.openFrom.push(this.projector.push(item))
    if (mayAsk(item)) this.asking.push(index)
    const add = (sums: Array<number>, value: number) => sums.push((sums[index] ?? 0) + value)
    this.tokens.push(tokens)
    add(this.saved, savedTokens(item))
    add(this.sent, this.projector.isLastSent ? 1 : 0)
    add(this.environment, author === "environment" ? 1 : 0)
    add(this.summaries, author === "summary" ? 1 : 0)
  }

  requestTokens(): number {
    return this.settled + requestTokens(this.projector.tail())
  }
}

/** A version of a view with its sums. Immutable. Indexes are those of the view. */
export class IndexedView {
  private readonly columns: Columns
  /** The number of messages. */
  readonly length: number
  /** Tokens of the messages that are sent, as `requestTokens` of the projection. */
  readonly requestTokens: number
  private readonly clean: Array<boolean> = []
  private openFrom: number

  constructor(columns: Columns) {
    this.columns = columns
    this.length = columns.items.length
    this.requestTokens = columns.requestTokens()
    this.openFrom = this.length
  }

  /** Returns the message at an index. */
  at(index: number): ViewItem | undefined {
    return index < this.length ? this.columns.items[index] : undefined
  }

  /** Returns the messages from one index up to another. */
  slice(from: number, to = this.length): ReadonlyArray<ViewItem> {
    return this.columns.items.slice(from, Math.min(to, this.length))
  }

  /** Tokens of the messages from one index up to another. */
  tokens(from: number, to = this.length): number {
    return between(this.columns.tokens, from, to)
  }

  /** Tokens that the outputs from one index up to another take beyond `shortenedTokens` each. */
  savedTokens(from: number, to: number): number {
    return between(this.columns.saved, from, to)
  }

  /** The number of messages from one index up to another that are sent. */
  sent(from: number, to: number): number {
    return between(this.columns.sent, from, to)
  }

  /** The number of environment messages. */
  get environment(): number {
    return between(this.columns.environment, 0, this.length)
  }

  /** The number of summaries from one index up to another. */
  summaries(from: number, to: number): number {
    return between(this.columns.summaries, from, to)
  }

  /** Returns the messages from one index up to another that the user may have written a request into, newest first. */
  *asking(from: number, to: number): Generator<ViewItem, void> {
    const { asking, items } = this.columns
    for (let at = asking.length - 1; at >= 0; at -= 1) {
      const index = asking[at] ?? -1
      const item = items[index]
      if (index < from) return
      if (index < to && item !== undefined) yield item
    }
  }

  /** Whether a cut before this index keeps every call with its response. Looks at the messages from there on, each once. */
  isClean(index: number): boolean {
    for (let next = this.length - this.clean.length; next >= index; next -= 1) {
      // A later version may have more messages.
      if (next < this.length) this.openFrom = Math.min(this.openFrom, this.columns.openFrom[next] ?? next)
      this.clean.push(isCleanCut(this.at(next), next, this.openFrom))
    }
    return this.clean[this.length - index] ?? false
  }
}

const between = (sums: ReadonlyArray<number>, from: number, to: number): number => (sums[to] ?? 0) - (sums[from] ?? 0)

const empty = new IndexedView(new Columns())

interface Indexed {
  readonly columns: Columns
  readonly index: IndexedView
}

/** The indexes of the versions that no later one continued. */
const latest = new WeakMap<PersistentList.Node<ViewItem>, Indexed>()

/** Messages that are indexed between two pauses. */
const sliceItems = 64

/** Returns the index of a view, in slices. Continues the index of the latest earlier version that has one. */
export function* indexedView(view: PersistentList.PersistentList<ViewItem>): SlicedWork<IndexedView> {
  const fresh: Array<PersistentList.Node<ViewItem>> = []
  let node = view
  for (; node !== undefined && !latest.has(node); node = node.before) fresh.push(node)
  const before = node === undefined ? undefined : latest.get(node)
  if (view === undefined) return empty
  if (before !== undefined && fresh.length === 0) return before.index
  // Only one version can continue the columns: the others do not find them any more.
  if (node !== undefined) latest.delete(node)
  const columns = before?.columns ?? new Columns()
  for (let at = fresh.length - 1; at >= 0; at -= 1) {
    const next = fresh[at]
    if (next !== undefined) columns.add(next)
    if (at % sliceItems === 0) yield
  }
  const index = new IndexedView(columns)
  latest.set(view, { columns, index })
  return index
}
