import type { Draft } from "../../conversation/Conversation.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { answerPiece, callPiece, draftOf, type Piece, textPiece, thoughtPiece } from "../ExactParts.ts"
import { instant, isJson, type Json, textAt } from "../JsonRecord.ts"
import { type Problem, problemAt, recordProblem } from "../Problem.ts"
import { readMarks, Steps } from "../RecordMarks.ts"
import { opencodeUsage } from "../RecordUsage.ts"
import { Skipped } from "../Skipped.ts"
import type { LineReader, Transcript } from "../Transcript.ts"

/**
 * Reads opencode's sessions: the rows of its database, one a line (`kind` is the table: session, message or part), or the document
 * that `opencode export` writes. A message has its role in `data`; its parts are rows of their own.
 */

/** A message with its parts, in order. */
interface Message {
  readonly id: string
  readonly number: number
  readonly at: number | undefined
  readonly data: Json
  readonly parts: Array<Json>
}

/** The database holds values; there is no other spelling of them to keep. */
const noText = () => undefined
const unmarked = readMarks({})

const mediaOf = (part: Json): Piece => {
  const url = textAt(part, "url") ?? ""
  const mimeType = textAt(part, "mime")
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1]
  return data === undefined
    ? textPiece(`[file ${textAt(part, "filename") ?? url}]`, noText)
    : { part: { inlineData: { ...(mimeType === undefined ? {} : { mimeType }), data } }, source: undefined }
}

/** The result of a tool, with its files; undefined for a call that never ended. */
const resultOf = (part: Json, state: Json): Piece | undefined => {
  const answer = { id: textAt(part, "callID"), name: textAt(part, "tool") }
  if (state.status === "error") {
    return answerPiece({ ...answer, failed: true, content: textAt(state, "error") ?? "" }, noText)
  }
  if (state.status !== "completed") return undefined
  // The exit code of a command stands beside its output alone.
  const exit = isJson(state.metadata) ? state.metadata.exit : undefined
  const failed = typeof exit === "number" && exit !== 0
  return answerPiece({ ...answer, failed, content: textAt(state, "output") ?? "" }, noText)
}

/** Parts and rows that this program knows and does not read. A text is one that opencode ignores, too. */
export const ignoredKinds: ReadonlySet<string> = new Set(
  ["agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start", "text"].map(
    (kind) => `part: ${kind}`
  )
)

/** Makes the conversation of messages in the order in which they were said. */
class Conversation {
  private readonly steps = new Steps()
  private readonly skipped: Skipped
  private model: string | undefined
  /** Messages in which a compaction was asked for. */
  private readonly compactionRequests = new Map<string, Json>()
  private readonly named = new Set<string>()

  constructor(skipped: Skipped) {
    this.skipped = skipped
  }

  add(message: Message): void {
    if (message.data.role === "user") this.user(message)
    else if (message.data.role === "assistant") this.assistant(message)
    else this.skipped.addRecord(`message: ${String(message.data.role)}`)
  }

  end(session: Json): Transcript {
    for (const _ of this.compactionRequests) this.skipped.add("unfinished compaction")
    return {
      format: "opencode",
      session: textAt(session, "id"),
      cwd: textAt(session, "directory"),
      model: this.model,
      steps: this.steps.end(),
      skipped: this.skipped.counts,
      unknown: this.skipped.unknown("opencode", textAt(session, "version"))
    }
  }

  private draft(
    message: Message,
    role: "user" | "model",
    pieces: ReadonlyArray<Piece>,
    author?: Draft["author"]
  ): Draft {
    const { at, data, id, number } = message
    const model = role === "model" ? { model: textAt(data, "modelID"), usage: opencodeUsage(data) } : {}
    return draftOf(role, pieces, { at, author, line: number, ids: [id], ...model })
  }

  /** Adds a message. Results of tools are a message of their own, which follows the one with the id. */
  private say(message: Message, role: "user" | "model", pieces: ReadonlyArray<Piece>, author?: Draft["author"]): void {
    if (pieces.length === 0) return
    const ids = this.named.has(message.id) ? [] : [message.id]
    this.named.add(message.id)
    this.steps.message(this.draft(message, role, pieces, author), ids, unmarked)
  }

  /** Adds a message in the user's role. What opencode wrote into it is a message of its own, which no one takes for the user's. */
  private user(message: Message): void {
    const compaction = message.parts.find(({ type }) => type === "compaction")
    if (compaction !== undefined) {
      this.compactionRequests.set(message.id, compaction)
      return
    }
    const isText = (part: Json) => part.type === "text" && typeof part.text === "string" && part.ignored !== true
    const isTyped = (part: Json) => isText(part) && part.synthetic !== true
    let author: Draft["author"] = message.parts.some(isTyped) ? undefined : "program"
    let pieces: Array<Piece> = []
    for (const part of message.parts) {
      const by: Draft["author"] = isText(part) ? (isTyped(part) ? undefined : "program") : author
      if (by !== author) {
        this.say(message, "user", pieces, author)
        pieces = []
        author = by
      }
      if (isText(part)) pieces.push(textPiece(textAt(part, "text") ?? "", noText))
      else if (part.type === "file") pieces.push(mediaOf(part))
      else if (part.type === "subtask") pieces.push(textPiece(textAt(part, "prompt") ?? "", noText))
      else this.unread(part)
    }
    this.say(message, "user", pieces, author)
  }

  private unread(part: Json): void {
    this.skipped.addRecord(`part: ${String(part.type)}`)
  }

  private assistant(message: Message): void {
    const { data, parts } = message
    this.model = textAt(data, "modelID") ?? this.model
    const parent = textAt(data, "parentID") ?? ""
    const compaction = this.compactionRequests.get(parent)
    if (data.summary === true && compaction !== undefined && textAt(data, "finish") !== undefined) {
      this.compactionRequests.delete(parent)
      this.compact(message, compaction)
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
      if (answers.length > 0 && part.type !== "tool") flush()
      if (part.type === "text" && typeof part.text === "string") spoken.push(textPiece(part.text, noText))
      else if (part.type === "reasoning" && typeof part.text === "string") {
        spoken.push(thoughtPiece(part.text, undefined, noText))
      } else if (part.type === "file") spoken.push(mediaOf(part))
      else if (part.type === "tool" && isJson(part.state)) {
        const { state } = part
        spoken.push(
          callPiece({ id: textAt(part, "callID"), name: textAt(part, "tool") ?? "unknown", args: state.input }, noText)
        )
        const result = resultOf(part, state)
        if (result !== undefined) answers.push(result)
        if (Array.isArray(state.attachments)) answers.push(...state.attachments.filter(isJson).map(mediaOf))
      } else this.unread(part)
    }
    flush()
  }

  private compact(message: Message, compaction: Json): void {
    const text = message.parts
      .flatMap((part) => (part.type === "text" ? (textAt(part, "text") ?? []) : []))
      .join("\n\n")
    const insert = text === "" ? [] : [this.draft(message, "user", [textPiece(text, noText)], "summary")]
    this.steps.compact(
      { insert, trigger: compaction.auto === false ? "manual" : "auto", tokensBefore: undefined },
      unmarked,
      textAt(compaction, "tail_start_id")
    )
  }
}

const order = (left: Message, right: Message): number =>
  (left.at ?? 0) - (right.at ?? 0) || (left.id < right.id ? -1 : left.id > right.id ? 1 : 0)

function* conversationOf(
  session: Json,
  messages: ReadonlyArray<Message>,
  skipped: Skipped
): SlicedWork<Transcript | Problem> {
  const { revert: stored } = session
  const revert: unknown = typeof stored === "string" ? parsedOrUndefined(stored) : stored
  const reverted = isJson(revert) ? textAt(revert, "messageID") : undefined
  const conversation = new Conversation(skipped)
  let isReverted = false
  for (const message of messages) {
    isReverted ||= message.id === reverted
    if (isReverted) skipped.add("reverted message")
    else conversation.add(message)
    yield 1_000
  }
  return conversation.end(session)
}

/** Reads the rows of a session. A row of another table is skipped. */
export const opencodeReader = (): LineReader => {
  const skipped = new Skipped(ignoredKinds)
  const messages = new Map<string, Message>()
  const parts: Array<{ readonly message: string; readonly data: Json }> = []
  let session: Json | undefined
  return {
    line: (record, _text, number) => {
      if (!isJson(record)) return problemAt(number, recordProblem("", "expected a row: an object with a kind"))
      const { data } = record
      const id = textAt(record, "id")
      if (record.kind === "session") {
        session ??= record
        return undefined
      }
      if (record.kind !== "message" && record.kind !== "part") {
        skipped.addRecord(`row: ${String(record.kind)}`)
        return undefined
      }
      if (id === undefined || !isJson(data)) {
        return problemAt(number, recordProblem("data", "expected the JSON object of a message or part"))
      }
      if (record.kind === "part") parts.push({ message: textAt(record, "message_id") ?? "", data })
      else messages.set(id, { id, number, at: instant(record.time_created), data, parts: [] })
      return undefined
    },
    *end() {
      for (const { data, message } of parts) {
        const owner = messages.get(message)
        if (owner === undefined) skipped.add("part without a message")
        else owner.parts.push(data)
      }
      return yield* conversationOf(session ?? {}, [...messages.values()].sort(order), skipped)
    }
  }
}

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Reads the document that `opencode export` writes; `value` is the parsed text. */
export function* readOpencodeDocument(value: unknown): SlicedWork<Transcript | Problem> {
  if (!isJson(value) || !isJson(value.info) || !Array.isArray(value.messages)) {
    return problemAt(0, recordProblem("", 'expected a session of opencode: an object with "info" and "messages"'))
  }
  const messages: Array<Message> = []
  for (const [index, message] of value.messages.entries()) {
    const info = isJson(message) && isJson(message.info) ? message.info : undefined
    const id = info === undefined ? undefined : textAt(info, "id")
    if (!isJson(message) || info === undefined || id === undefined) {
      return problemAt(0, recordProblem(`messages[${index}].info.id`, "expected a text, the id of the message"))
    }
    const at = isJson(info.time) ? instant(info.time.created) : undefined
    messages.push({ id, number: index + 1, at, data: info, parts: listOf(message.parts).filter(isJson) })
  }
  return yield* conversationOf(value.info, messages, new Skipped(ignoredKinds))
}
