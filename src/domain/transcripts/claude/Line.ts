import { isOpenAnswer } from "../ExactParts.ts"
import { isClosed } from "../RecordMarks.ts"
import { type Block, callsOf, type LineMessage } from "./LineMessage.ts"
import type { Boundary } from "./Record.ts"

/** The lines of a transcript: their place in the tree, in time and in the file, and which of them are copies. */

/** A line, with what the conversation needs of its record. */
export interface Line {
  readonly number: number
  readonly uuid: string
  /** Whether the record has a uuid of its own. */
  readonly named: boolean
  /** null at a root, undefined when the record does not contain it. */
  readonly parent: string | null | undefined
  readonly logicalParent: string | undefined
  readonly sidechain: boolean
  readonly at: number | undefined
  readonly session: string | undefined
  /** Undefined when the line is only a link of the chain. */
  readonly message: LineMessage | undefined
  readonly boundary: Boundary | undefined
  /** The previous message line in the file, of the same kind of chain. */
  readonly previous: Line | undefined
}

/** When something happened, and where it stands in the file. */
export interface Moment {
  readonly at: number | undefined
  readonly number: number
}

/** Orders by time, and by place in the file what has no time, or the same: Claude Code appends records late, and copies others. */
export const byTime = (one: Moment, other: Moment): number =>
  one.at === undefined || other.at === undefined || one.at === other.at ? one.number - other.number : one.at - other.at
/** Whether one happened before the other. */
export const isBefore = (one: Moment, other: Moment): boolean => byTime(one, other) < 0
/** Returns the first of these in an order. */
export const firstBy = <A>(all: ReadonlyArray<A>, order: (one: A, other: A) => number): A | undefined =>
  all.reduce<A | undefined>((found, one) => (found === undefined || order(one, found) < 0 ? one : found), undefined)

/** Whether a line holds what was shown beside a message. */
export const isAttached = ({ message }: Line): boolean => message?.kind === "attachment"
/** Returns the message of a line, unless it is an error that is shown as one. */
export const messageOf = (line: Line): LineMessage | undefined =>
  line.message?.kind === "api error" ? undefined : line.message
/** Returns the ids of the calls that a line answers. */
export const answersIn = (line: Line): ReadonlyArray<string> =>
  (messageOf(line)?.blocks ?? []).filter(isOpenAnswer).flatMap(({ answer }) => answer.id ?? [])
/** Returns the ids of the calls in a line. */
export const callsIn = (line: Line): ReadonlyArray<string> => callsOf(messageOf(line)?.blocks ?? []).map(([id]) => id)

const sameBlock = (one: Block | undefined, other: Block): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Whether two lines of the same message, the user's or the model's, hold the same. Lines that repeat others on purpose do not count. */
export const sameContent = (one: Line, other: Line): boolean => {
  const [left, right] = [messageOf(one), messageOf(other)]
  return (
    left !== undefined &&
    right !== undefined &&
    left.role === right.role &&
    !isClosed(left.marks) &&
    !isClosed(right.marks) &&
    left.blocks.length === right.blocks.length &&
    right.blocks.every((block, index) => sameBlock(left.blocks[index], block))
  )
}

/** Returns what two copies of a line have in common besides their content; undefined for a line that cannot be told from others. */
const copyKey = (line: Line): string | undefined => {
  const message = messageOf(line)
  if (message === undefined) return undefined
  if (message.role === "model") return message.messageId === line.uuid ? undefined : `model ${message.messageId}`
  const answers = answersIn(line)
  return answers.length > 0 ? `result ${answers.join(" ")}` : line.at === undefined ? undefined : `user ${line.at}`
}

/**
 * Returns, by line, the first other line of `known` with the same content, of which it is a copy. An agent that resumes a session can append its history again, under
 * other ids.
 */
export const copiesOf = (lines: ReadonlyArray<Line>, known: Iterable<Line>): ReadonlyMap<Line, Line> => {
  const byKey = new Map<string, Array<Line>>()
  for (const line of known) {
    const key = copyKey(line)
    if (key !== undefined) byKey.set(key, [...(byKey.get(key) ?? []), line])
  }
  return new Map(
    lines.flatMap((line) => {
      const original = byKey.get(copyKey(line) ?? "")?.find((one) => sameContent(one, line))
      return original === undefined || original === line ? [] : [[line, original] as const]
    })
  )
}
