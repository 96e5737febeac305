import { AnswerBuilder } from "../chat/Answer.ts"
import { type Content, outputText, type Part, payload } from "../content/Content.ts"
import { type Handle, mentions } from "../content/Handle.ts"
import { allEntries } from "../conversation/Branches.ts"
import { type Conversation, type Draft, entries, type Entry, sourceOf, view } from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { partTokens } from "../tokens/Tokens.ts"
import { shownEntry } from "./CompactionPoints.ts"
import { entryText } from "./RecordedNames.ts"
import { collectAnchors, measureRetention, reusedAnchors } from "./Retention.ts"

/**
 * Splits a recorded conversation into exchanges that can be replayed, and measures a replay: the size of each request, the
 * share that a prompt cache would have served, and where the facts were that the agent used again.
 */

/** One exchange of a recording: the user's message and the model's answer. */
export interface RecordedTurn {
  /** Earlier messages without an answer, which the replay copies unchanged. */
  readonly before: ReadonlyArray<Draft>
  /** The user's last message before the answer, or tool results. Empty when the user said nothing. */
  readonly message: ReadonlyArray<Part>
  readonly answer: Content
}

/** Whether a chat accepts this as an answer: it contains text or a tool call. */
const isUsable = (parts: ReadonlyArray<Part>): boolean => {
  const arriving = new AnswerBuilder()
  arriving.push({ parts, finishReason: "STOP" })
  return arriving.fault(false) === undefined
}

const draftOf = ({ at, author, content, source }: Entry): Draft => ({
  content,
  ...(at === undefined ? {} : { at }),
  ...(author === undefined ? {} : { author }),
  ...(source === undefined ? {} : { source })
})

/** Returns the messages of the user's side at the end. */
const lastRun = (heard: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  heard.slice(heard.findLastIndex(({ content }) => content.role === "model") + 1)

const turnOf = (heard: ReadonlyArray<Entry>, answer: Content): RecordedTurn | undefined => {
  const asked = lastRun(heard)
  if (asked.length === 0 || !isUsable(answer.parts)) return undefined
  const own = asked.findLast(({ author }) => author === undefined)
  return {
    before: heard.filter((entry) => entry !== own).map(draftOf),
    message: own?.content.parts ?? [],
    answer
  }
}

/**
 * Returns the exchanges of a whole conversation, oldest first. Summaries that compactions of the recorded agent inserted are
 * not part of the log and are not replayed. Consecutive model messages are one answer. An answer that a chat would not
 * accept, or that no message precedes, is copied with the messages before it. Messages at the end without an answer are left
 * out.
 */
export const recordedTurns = (conversation: Conversation): ReadonlyArray<RecordedTurn> => {
  const turns: Array<RecordedTurn> = []
  let heard: Array<Entry> = []
  let answer: Array<Entry> = []
  const close = () => {
    if (answer.length === 0) return
    const turn = turnOf(heard, { role: "model", parts: answer.flatMap(({ content }) => content.parts) })
    heard = turn === undefined ? [...heard, ...answer] : []
    answer = []
    if (turn !== undefined) turns.push(turn)
  }
  for (const entry of entries(conversation)) {
    if (entry.content.role === "model" && entry.author === undefined) {
      answer.push(entry)
    } else {
      close()
      heard.push(entry)
    }
  }
  close()
  return turns
}

/** The size of a request: its tokens, and the tokens of its common prefix with the previous request. */
export interface RequestSize {
  readonly tokens: number
  readonly prefix: number
}

const same = (one: object | undefined, other: object): boolean =>
  one === other || (one !== undefined && JSON.stringify(one) === JSON.stringify(other))

const counted = new WeakMap<Part, number>()

/** Returns the estimated tokens of parts. Each part is read once. */
export function* tokensOf(parts: ReadonlyArray<Part>): SlicedWork<number> {
  let tokens = 0
  for (const part of parts) {
    const earlier = counted.get(part)
    const own = earlier ?? (yield* partTokens(part, outputText(part)))
    if (earlier === undefined) counted.set(part, own)
    tokens += own
  }
  return tokens
}

/** Measures consecutive requests with the estimator. Keeps only the latest request. Mutable: one per model. */
export class RequestPrefixes {
  private latest: ReadonlyArray<Content> = []
  /** The sizes of all requests so far, in order. */
  readonly sizes: Array<RequestSize> = [];

  /** Measures the next request. */
  *add(contents: ReadonlyArray<Content>): SlicedWork<RequestSize> {
    const before = this.latest
    this.latest = contents
    let tokens = 0
    let prefix = 0
    let isSame = true
    for (const [index, content] of contents.entries()) {
      const all = yield* tokensOf(content.parts)
      tokens += all
      if (isSame) {
        const earlier = before[index]
        isSame = same(earlier, content)
        prefix += isSame ? all : yield* tokensOf(beginning(earlier, content))
      }
      yield 20
    }
    const size = { tokens, prefix }
    this.sizes.push(size)
    return size
  }
}

/** Returns the common leading parts of a message and another one of the same role. */
const beginning = (earlier: Content | undefined, { parts, role }: Content): ReadonlyArray<Part> => {
  if (earlier?.role !== role) return []
  const differs = parts.findIndex((part, at) => !same(earlier.parts[at], part))
  return differs < 0 ? parts : parts.slice(0, differs)
}

/** Where the facts that were used again after a compression were when it was done. */
export interface FactsAfterReplay {
  readonly used: number
  readonly inContext: number
  readonly behindHandle: number
  readonly lost: number
}

/** Returns the texts that the handles of a context lead to, directly or through other handles. */
function* reachable(session: Session, context: string): SlicedWork<ReadonlyArray<string>> {
  const ranges = new Map(PersistentList.toArray(session.ranges).map((range) => [range.handle, range.entries]))
  const parts = new Map<Handle, { readonly entry: Entry; readonly part: number }>()
  for (const entry of allEntries(session.conversation)) {
    for (const [part, handle] of entry.handles.entries()) parts.set(handle, { entry, part })
    yield 50
  }
  const texts: Array<string> = []
  const seen = new Set<Handle>()
  const open = mentions(context)
  for (let handle = open.pop(); handle !== undefined; handle = open.pop()) {
    if (seen.has(handle)) continue
    seen.add(handle)
    const found = parts.get(handle)
    const part = found?.entry.content.parts[found.part]
    const whole =
      found === undefined || part === undefined
        ? (ranges.get(handle) ?? []).map(entryText)
        : [payload(part, sourceOf(found.entry, found.part)).text]
    for (const text of whole) {
      texts.push(text)
      open.push(...mentions(text))
      yield text.length
    }
  }
  return texts
}

/**
 * Finds the facts that the agent used again after each compression, before the next one and before another message showed
 * them again, and reports where the compression had left them. `moments` are the session right after each compression, in
 * order; `end` is the final conversation. A fact is behind a handle when a handle in the context leads to it, possibly
 * through other handles.
 */
export function* factsKept(moments: ReadonlyArray<Session>, end: Conversation): SlicedWork<FactsAfterReplay> {
  const kept = { used: 0, inContext: 0, behindHandle: 0, lost: 0 }
  const occurred = new Set<string>()
  let collected = 0
  for (const [index, session] of moments.entries()) {
    const before = entries(session.conversation)
    yield* collectAnchors(before.slice(collected), occurred)
    collected = before.length
    const after = entries(moments[index + 1]?.conversation ?? end).slice(before.length)
    if (after.length === 0) continue
    const used = yield* reusedAnchors(occurred, after)
    if (used.size === 0) continue
    const context = view(session.conversation)
      .map((item) => entryText(shownEntry(item)))
      .join("\n")
    const dropped = yield* reachable(session, context)
    const found = yield* measureRetention(used, { context, dropped })
    kept.used += found.used
    kept.inContext += found.inContext
    kept.behindHandle += found.behindHandle
    kept.lost += found.lost
  }
  return kept
}
