/** Reads opencode's sessions: the rows of its database, one a line, or the document that `opencode export` writes. */

import { absurd } from "effect"
import type { Draft } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { draftOf, type Piece, textPiece } from "../ExactParts.ts"
import { type Problem, problemUnder, recordProblem } from "../Problem.ts"
import { readMarks, Steps } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { clearedResult, type LineReader, recordReader, type Transcript } from "../Transcript.ts"
import { decodeOpencode, decodePart, ignoredKinds, type OpencodePart, type OpencodeRecord } from "./Record.ts"

type Session = Extract<OpencodeRecord, { readonly _tag: "Session" }>
type Compaction = Extract<OpencodePart, { readonly _tag: "Compaction" }>

/** A message with its parts, in order. */
interface Message {
  readonly record: Extract<OpencodeRecord, { readonly _tag: "Message" }>
  readonly number: number
  readonly parts: Array<Json>
}

const unmarked = readMarks({})

/** Makes the conversation of messages in the order in which they were said. */
class Conversation {
  private readonly steps = new Steps()
  private readonly skipped: Skipped
  private model: string | undefined
  /** Messages in which a compaction was asked for. */
  private readonly compactionRequests = new Map<string, Compaction>()
  private readonly named = new Set<string>()
  /** What the model saw in place of results, by the ids of their calls. */
  private readonly shown = new Map<string, string>()

  constructor(skipped: Skipped) {
    this.skipped = skipped
  }

  add(message: Message): void {
    const { role } = message.record
    const parts = message.parts.map(decodePart)
    if (role === "user") this.user(message, parts)
    else if (role === "assistant") this.assistant(message, parts)
    else this.skipped.addRecord(`message: ${String(role)}`)
  }

  end(session: Session | undefined): Transcript {
    for (const _ of this.compactionRequests) this.skipped.add("unfinished compaction")
    return {
      format: "opencode",
      session: session?.id,
      cwd: session?.folder,
      model: this.model,
      steps: this.steps.end(),
      ...(this.shown.size === 0 ? {} : { shown: this.shown }),
      skipped: this.skipped.counts,
      unknown: this.skipped.unknown("opencode", session?.version)
    }
  }

  private draft(
    { number, record }: Message,
    role: "user" | "model",
    pieces: ReadonlyArray<Piece>,
    author?: Draft["author"]
  ): Draft {
    const { at, id, model, usage } = record
    const counts = role === "model" ? { model, usage } : {}
    return draftOf(role, pieces, { at, author, line: number, ids: [id], ...counts })
  }

  /** Adds a message. Results of tools are a message of their own, which follows the one with the id. */
  private say(message: Message, role: "user" | "model", pieces: ReadonlyArray<Piece>, author?: Draft["author"]): void {
    if (pieces.length === 0) return
    const { id } = message.record
    const ids = this.named.has(id) ? [] : [id]
    this.named.add(id)
    this.steps.message(this.draft(message, role, pieces, author), ids, unmarked)
  }

  /** Adds a message in the user's role. What opencode wrote into it is a message of its own, which no one takes for the user's. */
  private user(message: Message, parts: ReadonlyArray<OpencodePart>): void {
    const compaction = parts.find((part) => part._tag === "Compaction")
    if (compaction !== undefined) {
      this.compactionRequests.set(message.record.id, compaction)
      return
    }
    const isTyped = parts.some((part) => part._tag === "Said" && part.by === "user" && !part.isIgnored)
    let author: Draft["author"] = isTyped ? undefined : "program"
    let pieces: Array<Piece> = []
    for (const part of parts) {
      if (part._tag !== "Said" || part.isIgnored || part.kind === "reasoning") {
        this.unread(part)
        continue
      }
      const by: Draft["author"] = part.by === undefined ? author : part.by === "user" ? undefined : part.by
      if (by !== author) {
        this.say(message, "user", pieces, author)
        pieces = []
        author = by
      }
      pieces.push(part.piece)
    }
    this.say(message, "user", pieces, author)
  }

  /** The kinds are named, so that the compiler asks about a new one. */
  private unread(part: Extract<OpencodePart, { readonly _tag: "Said" | "Call" | "Compaction" | "Other" }>): void {
    this.skipped.addRecord(`part: ${part.kind}`)
  }

  private assistant(message: Message, parts: ReadonlyArray<OpencodePart>): void {
    const { isSummary, model, parent = "" } = message.record
    this.model = model ?? this.model
    const compaction = this.compactionRequests.get(parent)
    if (isSummary && compaction !== undefined) {
      this.compactionRequests.delete(parent)
      this.compact(message, parts, compaction)
      return
    }
    let spoken: Array<Piece> = []
    let answers: Array<Piece> = []
    const flush = () => {
      this.say(message, "model", spoken)
      this.say(message, "user", answers)
      spoken = []
      answers = []
    }
    for (const part of parts) {
      // What is said after results is the next answer of the model.
      if (answers.length > 0 && part._tag !== "Call") flush()
      if (part._tag === "Said" && part.kind !== "subtask") spoken.push(part.piece)
      else if (part._tag === "Call") {
        spoken.push(part.call)
        if (part.isCleared && part.id !== undefined) this.shown.set(part.id, clearedResult)
        for (const each of part.answers) answers.push(each)
      } else this.unread(part)
    }
    flush()
  }

  private compact(message: Message, parts: ReadonlyArray<OpencodePart>, { firstKept, trigger }: Compaction): void {
    const text = parts
      .flatMap((part) => (part._tag === "Said" && part.kind === "text" ? (part.piece.part.text ?? []) : []))
      .join("\n\n")
    const insert = text === "" ? [] : [this.draft(message, "user", [textPiece(text, () => undefined)], "summary")]
    this.steps.compact({ insert, trigger, tokensBefore: undefined }, unmarked, firstKept)
  }
}

const order = ({ record: left }: Message, { record: right }: Message): number =>
  (left.at ?? 0) - (right.at ?? 0) || (left.id < right.id ? -1 : left.id > right.id ? 1 : 0)

const readerOf = (inOrder: (messages: Array<Message>) => ReadonlyArray<Message>): LineReader => {
  const skipped = new Skipped(ignoredKinds)
  const messages = new Map<string, Message>()
  const parts: Array<Extract<OpencodeRecord, { readonly _tag: "Part" }>> = []
  let session: Session | undefined
  const read = (row: Json, _text: string, number: number): Problem | undefined => {
    const record = decodeOpencode(row)
    switch (record._tag) {
      case "Session":
        session ??= record
        return undefined
      case "Message":
        messages.set(record.id, { record, number, parts: [...record.parts] })
        return undefined
      case "Part":
        parts.push(record)
        return undefined
      case "Other":
        skipped.addRecord(record.kind)
        return undefined
      case "Broken":
        return record.problem
      default:
        return absurd(record)
    }
  }
  return recordReader("expected a row: an object with a kind", read, function* () {
    for (const { data, message } of parts) {
      const owner = messages.get(message)
      if (owner === undefined) skipped.add("part without a message")
      else owner.parts.push(data)
    }
    const conversation = new Conversation(skipped)
    let isReverted = false
    for (const message of inOrder([...messages.values()])) {
      isReverted ||= message.record.id === session?.revertedFrom
      if (isReverted) skipped.add("reverted message")
      else conversation.add(message)
      yield
    }
    return conversation.end(session)
  })
}

/** Reads the rows of a session. A row of another table is skipped. */
export const opencodeReader = (): LineReader => readerOf((messages) => messages.sort(order))

/** Reads the document that `opencode export` writes; `value` is the parsed text. */
export function* readOpencodeDocument(value: unknown): SlicedWork<Transcript | Problem> {
  if (!isJson(value) || !isJson(value.info) || !Array.isArray(value.messages)) {
    return recordProblem("", 'expected a session of opencode: an object with "info" and "messages"')
  }
  const reader = readerOf((messages) => messages)
  reader.line({ info: value.info }, "", 0)
  for (const [index, element] of value.messages.entries()) {
    const problem = reader.line({ info: {}, parts: [], ...(isJson(element) ? element : {}) }, "", index + 1)
    if (problem !== undefined) return problemUnder(`messages[${index}]`, { ...problem, line: 0 })
  }
  return yield* reader.end()
}
