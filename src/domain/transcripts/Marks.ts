import { Schema } from "effect"
import { Author, type Draft } from "../Conversation.ts"
import { Usage } from "../Tokens.ts"
import { type Json, marksOf, type Piece } from "./Contents.ts"
import type { Step } from "./Transcript.ts"

/**
 * What records of ours in other agents' files say beside their own form, and how the steps of a conversation come of
 * records that may repeat each other: an agent that sees only what follows a compaction has to be shown again what was kept.
 */

const MarksShape = Schema.Struct({
  /** Who wrote it; null: who its role says. Without it the record's own form tells. */
  author: Schema.optionalKey(Schema.NullOr(Author)),
  /** Whether it opens a message or goes on with the one before. Without it the format's own rule tells. */
  message: Schema.optionalKey(Schema.Literals(["new", "same"])),
  /** It is one of the messages that the compaction before it inserted. */
  inserted: Schema.optionalKey(Schema.Literal(true)),
  /** The id of the record that it repeats. */
  again: Schema.optionalKey(Schema.String),
  /** It answers calls that never got an answer, so that the agent may go on; it is no part of the conversation. */
  owed: Schema.optionalKey(Schema.Literal(true)),
  usage: Schema.optionalKey(Usage),
  /** What the message says beside its role and its parts. */
  keys: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  /** Of a compaction, where the format does not say who asked for it. */
  trigger: Schema.optionalKey(Schema.Literals(["manual", "auto"]))
})
/** What a record of ours says beside its own form. */
export type Marks = typeof MarksShape.Type

/** What the own form of a record says of a message. */
export interface Native {
  readonly pieces: ReadonlyArray<Piece>
  readonly author: Author | undefined
  readonly usage: Usage | undefined
}

const isMarks = Schema.is(MarksShape)
const none: Marks = {}

/** The marks of a record; none when it has none, or some that are not ours. */
export const readMarks = (record: Json): Marks => {
  const marks = marksOf(record)
  // Most records have none, and looking closely takes longer than reading them.
  return Object.keys(marks).length > 0 && isMarks(marks) ? marks : none
}

/** Whether a record repeats or replaces something, so that no record of the agent's own belongs to the same message. */
export const isClosed = (marks: Marks): boolean => marks.inserted === true || marks.again !== undefined

/** The author that a mark says, else the one that the record's own form says. */
export const markedAuthor = (marks: Marks, native: Author | undefined): Author | undefined =>
  marks.author === undefined ? native : (marks.author ?? undefined)

/** The mark of what a message says beside its role and its parts. */
export const keysMark = ({ content: { parts: _parts, role: _role, ...keys } }: Draft): Marks =>
  Object.keys(keys).length === 0 ? none : { keys }

const withKeys = (draft: Draft, { keys }: Marks): Draft => {
  const { parts, role } = draft.content
  return keys === undefined ? draft : { ...draft, content: { ...draft.content, ...keys, role, parts } }
}

const count = (value: unknown): number | undefined => {
  if (value === undefined || value === null) return 0
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/**
 * The usage of one call from a provider's own counts: what was sent anew, read from and written to a cache, and said.
 * Undefined when a count is none, or when nothing was counted at all (a call that was cut short).
 */
export const usageOf = (counts: {
  readonly input: unknown
  readonly cacheRead: unknown
  readonly cacheWrite: unknown
  readonly output: unknown
}): Usage | undefined => {
  const input = count(counts.input)
  const cached = count(counts.cacheRead)
  const cacheWrite = count(counts.cacheWrite)
  const answer = count(counts.output)
  if (input === undefined || cached === undefined || cacheWrite === undefined || answer === undefined) return undefined
  const prompt = input + cached + cacheWrite
  if (prompt + answer === 0 || !Number.isSafeInteger(prompt)) return undefined
  return { prompt, answer, thoughts: 0, cached, ...(typeof counts.cacheWrite === "number" ? { cacheWrite } : {}) }
}

/** The other way round; what cannot be told apart counts as sent anew. */
export const countsOf = (usage: Usage | undefined) => {
  const { answer = 0, cacheWrite = 0, cached = 0, prompt = 0, thoughts = 0 } = usage ?? {}
  return { input: Math.max(0, prompt - cached - cacheWrite), cacheRead: cached, cacheWrite, output: answer + thoughts }
}

const sameUsage = (left: Usage | undefined, right: Usage | undefined): boolean =>
  left === right ||
  (left !== undefined &&
    right !== undefined &&
    left.prompt === right.prompt &&
    left.answer === right.answer &&
    left.thoughts === right.thoughts &&
    left.cached === right.cached &&
    left.cacheWrite === right.cacheWrite)

/** The mark of a usage that a record's own form would not give back. */
export const usageMark = ({ usage }: Draft, native: Usage | undefined): Marks =>
  usage === undefined || sameUsage(usage, native) ? none : { usage }

type Id = string | number
type Compaction = Extract<Step, { readonly _tag: "Compaction" }>

/** A message that a record repeats: what it says, the ids of the records it is made of, the number of the original. */
interface Again {
  readonly draft: Draft
  readonly ids: ReadonlyArray<Id>
  readonly number: number
}

/** A compaction whose inserted and repeated messages are still being read. */
interface Open {
  readonly compaction: Omit<Compaction, "_tag">
  readonly inserted: Array<Draft>
  readonly again: Array<Again>
}

const isEnvironment = ({ draft }: Again): boolean => draft.author === "environment"

/**
 * Collects the steps of a conversation from messages in order. Messages that say they repeat what a compaction kept become
 * its `keptFrom` again, as long as they do repeat all of it; else they are messages like any other.
 */
export class Steps {
  private readonly steps: Array<Step> = []
  private readonly numbers = new Map<Id, number>()
  /** Records that stand for the message that comes next. */
  private waiting: Array<Id> = []
  /** The numbers of the messages that the agent saw last, the environment left out. */
  private shown: Array<number> = []
  private messages = 0
  private open: Open | undefined

  /** The next message, with the ids of the records it is made of. */
  message(said: Draft, ids: ReadonlyArray<Id>, marks: Marks): void {
    const { open } = this
    const draft = withKeys(said, marks)
    if (open !== undefined && marks.inserted === true && open.again.every(isEnvironment)) {
      open.inserted.push(draft)
      this.waiting.push(...ids)
      return
    }
    const own = [...this.waiting, ...ids]
    this.waiting = []
    const number = marks.again === undefined ? undefined : this.numbers.get(marks.again)
    if (open !== undefined && number !== undefined) {
      open.again.push({ draft, ids: own, number })
      return
    }
    this.close()
    this.push(draft, own)
  }

  /** `firstKept`: the record from which on messages were kept, where the format says it. */
  compact(compaction: Omit<Compaction, "_tag" | "keptFrom">, marks: Marks, firstKept?: Id): void {
    this.close()
    const keptFrom = firstKept === undefined ? undefined : this.numbers.get(firstKept)
    this.open = {
      compaction: { ...compaction, keptFrom },
      inserted: compaction.insert.map((draft) => withKeys(draft, marks)),
      again: []
    }
  }

  /** All steps, once nothing more comes. */
  end(): ReadonlyArray<Step> {
    this.close()
    return this.steps
  }

  private push(draft: Draft, ids: ReadonlyArray<Id>): void {
    this.steps.push({ _tag: "Message", draft })
    for (const id of ids) this.numbers.set(id, this.messages)
    if (draft.author !== "environment") this.shown.push(this.messages)
    this.messages += 1
  }

  private close(): void {
    const { open } = this
    if (open === undefined) return
    this.open = undefined
    const { compaction, inserted } = open
    const again = open.again.filter((one) => !isEnvironment(one))
    const last = this.shown.slice(Math.max(0, this.shown.length - again.length))
    const repeats = compaction.keptFrom === undefined && again.every(({ number }, index) => number === last[index])
    const keptFrom = repeats ? last[0] : compaction.keptFrom
    this.steps.push({ _tag: "Compaction", ...compaction, insert: inserted, keptFrom })
    this.shown = keptFrom === undefined ? [] : this.shown.filter((number) => number >= keptFrom)
    for (const one of open.again) {
      if (!repeats && !isEnvironment(one)) this.push(one.draft, one.ids)
      else for (const id of one.ids) this.numbers.set(id, one.number)
    }
  }
}
