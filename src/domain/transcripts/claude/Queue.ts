/** The queue of messages that the user typed while the agent worked. */

import type { Locate } from "../ExactParts.ts"
import { isProblem } from "../Problem.ts"
import type { Skipped } from "../Skipped.ts"
import { type Line, type Moment, byTime, isBefore, type Block, wordsIn, readContent } from "./Line.ts"
import type { ClaudeRecord } from "./Record.ts"

/** A message that waits. */
export interface Queued extends Moment {
  readonly blocks: ReadonlyArray<Block>
  readonly words: string
}
/** A queued message that was delivered, and its place. */
export interface Delivered extends Queued {
  /** The number of records that tell of it. */
  readonly records: number
  /** The record that delivered it. */
  readonly by: Moment
  /** Whether it began the next turn, as a message of its own. */
  readonly isTurn: boolean
  /** The message line before that record. On a dead branch, the message is dead too. */
  readonly after: Line | undefined
}
type QueueRecord = Extract<ClaudeRecord, { readonly _tag: "Queued" }>
interface QueueOperation extends Moment, Pick<QueueRecord, "content" | "operation"> {
  readonly blocks: ReadonlyArray<Block>
}

/** Whether words are a text, or whole lines of it: several messages that wait together become one. */
export const holdsLine = (text: string, words: string): boolean => `\n${text}\n`.includes(`\n${words}\n`)

/**
 * Takes messages from those that wait, by a record, and returns the one that it sends. One that takes back what the user typed leaves
 * the others, such as notifications of programs; where its words are none of those that wait, it takes all. A message whose beginning was cut off with the file's waits for none.
 */
export const takeFrom = <A extends { readonly words: string }>(
  waiting: Array<A>,
  { content, operation }: Pick<QueueRecord, "content" | "operation">
): A | undefined => {
  const removed = typeof content === "string" ? content.trim() : undefined
  if (operation !== "popAll") {
    const at = removed === undefined ? 0 : waiting.findIndex(({ words }) => words === removed)
    return at < 0 ? undefined : waiting.splice(at, 1)[0]
  }
  const left = waiting.filter(({ words }) => removed === undefined || !holdsLine(removed, words))
  const isNone = left.length === waiting.length
  waiting.length = 0
  if (!isNone) for (const one of left) waiting.push(one)
  return undefined
}

/** When a message was put into the queue whose record was cut off with the beginning of the file. */
export const beforeAll: Moment = { at: undefined, number: 0 }

/**
 * Messages that the user typed while the agent worked. A message leaves the queue to be sent with the next request
 * ("remove"), to become a message at the end of the turn ("dequeue"), or because the user takes it back ("popAll").
 */
export class Queue {
  private readonly operations: Array<QueueOperation> = []
  /** The number of records of the queue. */
  records = 0

  /** Adds a record. */
  add({ at, content, operation }: QueueRecord, located: Locate, number: number, skipped: Skipped): void {
    this.records += 1
    const hasWords = operation === "enqueue" || operation === "remove"
    const blocks = hasWords ? readContent(content ?? "", located, skipped) : []
    if (!isProblem(blocks)) this.operations.push({ number, at, operation, content, blocks })
  }

  /** Returns the messages that were delivered, and those that no record took from the queue. */
  settle(lines: ReadonlyArray<Line>): {
    readonly delivered: ReadonlyArray<Delivered>
    readonly waiting: ReadonlyArray<Queued>
  } {
    const delivered: Array<Delivered> = []
    const waiting: Array<Queued> = []
    if (this.operations.length === 0) return { delivered, waiting }
    const inOrder = [...lines].sort(byTime)
    let next = 0
    for (const { blocks, content, operation, ...by } of [...this.operations].sort(byTime)) {
      for (let line = inOrder[next]; line !== undefined && !isBefore(by, line); line = inOrder[next]) next += 1
      if (operation === "enqueue") {
        waiting.push({ ...by, blocks, words: wordsIn(blocks) })
        continue
      }
      const known = takeFrom(waiting, { content, operation })
      const sent = known ?? { ...beforeAll, blocks, words: wordsIn(blocks) }
      if (sent.words !== "")
        delivered.push({
          ...sent,
          records: known === undefined ? 1 : 2,
          by,
          isTurn: operation === "dequeue",
          after: inOrder[next - 1]
        })
    }
    return { delivered, waiting }
  }
}
