/**
 * Splits a recorded conversation into exchanges that can be replayed, and measures its requests: the size of each, and the
 * share that a prompt cache would have served.
 */

import { Schema } from "effect"
import { AnswerBuilder } from "../chat/Answer.ts"
import type { Content, Part } from "../content/Content.ts"
import { type Conversation, type Draft, entries, type Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { partTokens } from "../tokens/Tokens.ts"

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
export const RequestSize = Schema.Struct({ tokens: Schema.Natural, prefix: Schema.Natural })
export type RequestSize = typeof RequestSize.Type

const same = (one: object | undefined, other: object): boolean =>
  one === other || (one !== undefined && JSON.stringify(one) === JSON.stringify(other))

const counted = new WeakMap<Part, number>()

/** Returns the estimated tokens of parts. Each part is read once. */
export function* tokensOf(parts: ReadonlyArray<Part>): SlicedWork<number> {
  let tokens = 0
  for (const part of parts) {
    const earlier = counted.get(part)
    const own = earlier ?? (yield* partTokens(part))
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
      yield
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
