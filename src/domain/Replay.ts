import { Arriving } from "./Answer.ts"
import { type Content, outputText, type Part, payload } from "./Content.ts"
import {
  type Conversation,
  type Draft,
  entries,
  type Entry,
  inserted,
  itemParts,
  sourceOf,
  view
} from "./Conversation.ts"
import * as Chain from "./Chain.ts"
import { type Handle, mentions } from "./Handle.ts"
import { retention, textOf, usedAgain } from "./Retention.ts"
import type { Session } from "./Session.ts"
import { partTokens } from "./Tokens.ts"
import type { Work } from "./Work.ts"

/**
 * A recorded conversation as something that can be held again, and what is measured while it is: how large each request
 * was, how much of it a prompt cache would have served, and where the facts were that the agent used again.
 */

/** One exchange of a recording: what was asked, and what the model answered. */
export interface Turn {
  /** Messages that came before it and that no answer followed; to be taken over as they are. */
  readonly before: ReadonlyArray<Draft>
  /** The user's last message before the answer, or the results of tools. Empty where only others than the user spoke. */
  readonly message: ReadonlyArray<Part>
  readonly answer: Content
}

/** Whether a chat would take this for an answer: it says something, or asks for a tool (spec 1.5). */
const isUsable = (parts: ReadonlyArray<Part>): boolean => {
  const arriving = new Arriving()
  arriving.push({ parts, finishReason: "STOP" })
  return arriving.fault(false) === undefined
}

const draftOf = ({ at, author, content, source }: Entry): Draft => ({
  content,
  ...(at === undefined ? {} : { at }),
  ...(author === undefined ? {} : { author }),
  ...(source === undefined ? {} : { source })
})

/** The messages of the user's side at the end. */
const lastRun = (heard: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  heard.slice(heard.findLastIndex(({ content }) => content.role === "model") + 1)

const turnOf = (heard: ReadonlyArray<Entry>, answer: Content): Turn | undefined => {
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
 * The exchanges of a conversation, oldest first, of everything that was ever said in it: summaries that its own agent's
 * compactions put in are no part of the log, so none of them is said again. Messages of the model that follow each other
 * are one answer. What a chat would not take for an answer is taken over with what came before it, as is an answer that
 * nothing was said before. What nobody answered at the end is left out.
 */
export const recorded = (conversation: Conversation): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
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

/** What a request was: its tokens, and how many of them the request before it began with as well. */
export interface RequestSize {
  readonly tokens: number
  readonly prefix: number
}

const same = (one: object | undefined, other: object): boolean =>
  one === other || (one !== undefined && JSON.stringify(one) === JSON.stringify(other))

/**
 * Measures one request after the other, by the estimator's count. Of what was sent it keeps the latest request only.
 * Mutable: one model has one.
 */
export class Requests {
  private latest: ReadonlyArray<Content> = []
  private readonly counted = new WeakMap<Part, number>()
  /** Of every request so far, in order. */
  readonly sizes: Array<RequestSize> = [];

  private *tokensOf(parts: ReadonlyArray<Part>): Work<number> {
    let tokens = 0
    for (const part of parts) {
      const known = this.counted.get(part) ?? (yield* partTokens(part, outputText(part)))
      this.counted.set(part, known)
      tokens += known
    }
    return tokens
  }

  /** Takes the next request in. */
  *add(contents: ReadonlyArray<Content>): Work<RequestSize> {
    const before = this.latest
    this.latest = contents
    let tokens = 0
    let prefix = 0
    let isSame = true
    for (const [index, content] of contents.entries()) {
      const all = yield* this.tokensOf(content.parts)
      tokens += all
      if (isSame) {
        const earlier = before[index]
        isSame = same(earlier, content)
        prefix += isSame ? all : yield* this.tokensOf(beginning(earlier, content))
      }
      yield 20
    }
    const size = { tokens, prefix }
    this.sizes.push(size)
    return size
  }
}

/** The parts of a message that another one of the same role begins with. */
const beginning = (earlier: Content | undefined, { parts, role }: Content): ReadonlyArray<Part> => {
  if (earlier?.role !== role) return []
  const differs = parts.findIndex((part, at) => !same(earlier.parts[at], part))
  return differs < 0 ? parts : parts.slice(0, differs)
}

/** Of facts that were used again after a compression, where they were when it was done. */
export interface Kept {
  readonly used: number
  readonly inContext: number
  readonly behindHandle: number
  readonly lost: number
}

/** The texts that the handles of a context lead to, through one another. */
function* reachable(session: Session, context: string): Work<ReadonlyArray<string>> {
  const ranges = new Map(Chain.toArray(session.ranges).map((range) => [range.handle, range.entries]))
  const parts = new Map<Handle, { readonly entry: Entry; readonly part: number }>()
  for (const entry of [...entries(session.conversation), ...inserted(session.conversation)]) {
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
        ? (ranges.get(handle) ?? []).map(textOf)
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
 * Of the facts that the agent used again after each compression and before the next one, before anything showed them
 * again: where they were in what the compression left. `moments` are the session right after each, in their order; `end`
 * is the conversation at last. Behind a handle is what a handle in the context leads to, also through other handles.
 */
export function* keptOver(moments: ReadonlyArray<Session>, end: Conversation): Work<Kept> {
  const kept = { used: 0, inContext: 0, behindHandle: 0, lost: 0 }
  for (const [index, session] of moments.entries()) {
    const before = entries(session.conversation)
    const after = entries(moments[index + 1]?.conversation ?? end).slice(before.length)
    if (after.length === 0) continue
    const used = yield* usedAgain(before, after)
    if (used.size === 0) continue
    const context = view(session.conversation)
      .map((item) => textOf({ ...item.entry, content: { ...item.entry.content, parts: itemParts(item) } }))
      .join("\n")
    const dropped = yield* reachable(session, context)
    const found = yield* retention(used, { snapshot: "", context, dropped })
    kept.used += found.used
    kept.inContext += found.inContext
    kept.behindHandle += found.behindHandle
    kept.lost += found.lost
  }
  return kept
}
