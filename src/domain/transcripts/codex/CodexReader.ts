/** Reads Codex CLI rollouts: the conversation is a fold over their records. */

import { absurd } from "effect"
import type { Content } from "../../content/Content.ts"
import type { Author, Draft } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { eachItem, type SlicedWork } from "../../text/SlicedWork.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import {
  draftOf,
  isOpenAnswer,
  locate,
  namedPieces,
  type OpenAnswer,
  type Piece,
  textPiece,
  under
} from "../ExactParts.ts"
import { textAt, timeAt } from "../JsonRecord.ts"
import { isProblem, type Problem, problemUnder, recordProblem } from "../Problem.ts"
import { marksOf, type Marks, readMarks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { type Compaction, type LineReader, recordReader, type Step, type Transcript } from "../Transcript.ts"
import { carriedMessage, carrier, continuesMessage, type ItemMessage, messageOf, withMarks, readItem } from "./Items.ts"
import { type CodexRecord, type CopiesState, decodeCodex, endsCopies, folderIn, ignoredKinds } from "./Record.ts"

/** A message that later items may extend. */
interface Turn {
  readonly role: Content["role"]
  readonly author: Author | undefined
  readonly joins: ItemMessage["joins"]
  readonly parts: Array<Piece | OpenAnswer>
  readonly at: number | undefined
  readonly line: number
  readonly ids: Array<string>
  readonly model: string | undefined
  usage: Usage | undefined
}
type TurnOrCompaction =
  | { readonly _tag: "Turn"; readonly turn: Turn }
  | (Omit<Compaction, "insert"> & { readonly insert: ReadonlyArray<Turn> })

/** Whether the user typed this message, as opposed to tool results and to text that Codex inserted. */
const isTyped = ({ author, joins, role }: Turn): boolean =>
  role === "user" && author === undefined && joins === undefined

const isTypedTurn = (one: TurnOrCompaction | undefined): boolean => one?._tag === "Turn" && isTyped(one.turn)

/** Whether an item is a summary that only its provider can read (Codex with a ChatGPT login). */
const isEncryptedSummary = ({ encrypted_content: content, type }: Json): boolean =>
  typeof content === "string" &&
  (type === "compaction" || type === "compaction_summary" || type === "context_compaction")

class Rollout {
  readonly skipped = new Skipped(ignoredKinds)
  session: string | undefined
  cwd: string | undefined
  model: string | undefined
  private version: string | undefined
  private started = false
  private readonly steps: Array<TurnOrCompaction> = []
  /** The message that the next item may join. */
  private open: Turn | undefined
  /** The last message of the model, if nothing has changed what it was asked with. */
  private answered: Turn | undefined
  private readonly names = new Map<string, string>()
  /** Results by the name that their call had when they arrived. */
  private readonly known = new Map<OpenAnswer, string>()
  private totals: string | undefined
  private tokens: number | undefined
  private readonly copies: CopiesState = {}

  record(record: Json, text: string, line: number): Problem | undefined {
    const decoded = decodeCodex(record)
    if (endsCopies(this.copies, decoded)) this.forgetCounts()
    switch (decoded._tag) {
      case "Session":
        return this.meta(decoded, record)
      case "Turn":
        this.model = decoded.model ?? this.model
        this.cwd ??= decoded.folder
        this.skipped.add("turn_context")
        return undefined
      case "Item":
        return this.item(decoded, record, text, line)
      case "Counted":
        if (!this.count(decoded)) this.skipped.add("event_msg: token_count")
        return undefined
      case "Used":
        // The event that follows has the same counts, and those of the window.
        this.skipped.add("token_usage_record")
        return undefined
      case "RolledBack":
        this.rollBack(decoded.turns)
        return undefined
      case "Compacted":
        return this.compacted(decoded.payload, record, text, line)
      case "Other":
        this.skipped.addRecord(decoded.kind)
        return undefined
      case "Broken":
        return decoded.problem
      default:
        return absurd(decoded)
    }
  }

  /** Reads the session's own record. A fork repeats the record of its parent session. */
  private meta({ folder, id, version }: Extract<CodexRecord, { readonly _tag: "Session" }>, record: Json): undefined {
    if (this.started) {
      this.skipped.add("session_meta")
      return undefined
    }
    this.started = true
    const marks = marksOf(record)
    this.session = "session" in marks ? textAt(marks, "session") : id
    this.version = version
    this.cwd ??= folder
    return undefined
  }

  private item(
    { at, item, root }: Extract<CodexRecord, { readonly _tag: "Item" }>,
    record: Json,
    text: string,
    line: number
  ): Problem | undefined {
    const found =
      item.type === carrier && "palimpsest" in record
        ? carriedMessage(item.role)
        : readItem(item, under(locate(record, text), ...root), this.skipped, { place: String(line) })
    if (found === undefined) return undefined
    if (isProblem(found)) return problemUnder(root.join("."), found)
    const whole = withMarks(found, record, text)
    if (isProblem(whole)) return whole
    this.add(this.join(this.open, whole, readMarks(record), line, at, textAt(item, "id")))
    if (found.result !== undefined) this.add(this.join(this.open, found.result, {}, line, at, undefined))
    return undefined
  }

  private add(turn: Turn): void {
    if (turn !== this.open) this.steps.push({ _tag: "Turn", turn })
    this.open = turn
    if (turn.role === "model") this.answered = turn
  }

  /** Returns the message that an item joins or begins. */
  private join(
    open: Turn | undefined,
    found: ItemMessage,
    { message }: Marks,
    line: number,
    at: number | undefined,
    id: string | undefined
  ): Turn {
    if (found.author === "program") this.findFolder(found)
    if (found.call !== undefined) this.names.set(found.call.id, found.call.name)
    for (const part of found.parts.filter(isOpenAnswer)) {
      const name = this.names.get(part.answer.id ?? "")
      if (name !== undefined) this.known.set(part, name)
    }
    const { author, joins, role } = found
    const same =
      message === undefined ? continuesMessage(open?.joins, joins) : message === "same" && open?.role === role
    const turn: Turn =
      same && open !== undefined
        ? open
        : {
            role,
            author,
            joins,
            parts: [],
            at,
            line,
            ids: [],
            model: role === "model" ? this.model : undefined,
            usage: undefined
          }
    for (const part of found.parts) turn.parts.push(part)
    if (id !== undefined) turn.ids.push(id)
    return turn
  }

  /** Files of 2025 name the folder only in the message that tells it to the model. */
  private findFolder({ parts }: ItemMessage): void {
    for (const part of this.cwd === undefined ? parts : []) {
      if (!isOpenAnswer(part)) this.cwd ??= folderIn(part.part.text ?? "")
    }
  }

  /** Returns whether the counts are new for the model's last message. */
  private count({ tokens, totals, usage }: Extract<CodexRecord, { readonly _tag: "Counted" }>): boolean {
    const isNew = totals !== this.totals
    this.totals = totals
    this.tokens = tokens ?? this.tokens
    if (!isNew || usage === undefined || this.answered === undefined) return false
    this.answered.usage = usage
    // The counts end a response: later text of the model belongs to another one.
    if (this.open === this.answered) this.open = undefined
    return true
  }

  /** Forgets the counts of answers that a fork repeats: they were paid in the session that it comes from. */
  private forgetCounts(): void {
    for (const one of this.steps) {
      if (one._tag === "Compaction" || one.turn.usage === undefined) continue
      one.turn.usage = undefined
      this.skipped.add("event_msg: token_count")
    }
  }

  /** Removes the user's last turns, each with everything after it. */
  private rollBack(turns: number): void {
    const first = this.steps.findIndex(isTypedTurn)
    if (turns === 0 || first < 0) return
    let from = this.steps.length
    for (let left = turns; left > 0 && from > first;) {
      from -= 1
      if (isTypedTurn(this.steps[from])) left -= 1
    }
    // A program's text right before the turn belongs to it, unless it opens the conversation.
    for (let before = this.steps[from - 1]; from > first; before = this.steps[from - 1]) {
      if (before?._tag !== "Turn" || before.turn.author !== "program") break
      from -= 1
    }
    for (const one of this.steps.splice(from)) if (one._tag === "Turn") this.skipped.add("rolled back")
    this.close()
  }

  private close(): void {
    this.open = undefined
    this.answered = undefined
  }

  private compacted(payload: Json, record: Json, text: string, line: number): Problem | undefined {
    const { message, replacement_history: history } = payload
    if (typeof message !== "string")
      return recordProblem("payload.message", "expected a text, the summary, in a compacted record")
    if (history !== undefined && history !== null && !Array.isArray(history))
      return recordProblem("payload.replacement_history", "expected a list of items")
    const replaced = Array.isArray(history) ? this.history(history, payload, record, text, line) : undefined
    if (isProblem(replaced)) return replaced
    const typed = replaced === undefined ? this.typed() : []
    const { encryptedAt, turns: insert } = replaced ?? {
      // Without a word, the provider has the summary.
      ...(message === "" ? { encryptedAt: typed.length } : { encryptedAt: undefined }),
      turns: message === "" ? typed : [...typed, this.summary(message, record, text, line)]
    }
    this.steps.push({
      _tag: "Compaction",
      insert,
      keptFrom: undefined,
      trigger: readMarks(record).trigger ?? "auto",
      tokensBefore: this.tokens,
      ...(encryptedAt === undefined ? {} : { encryptedAt })
    })
    this.close()
    this.tokens = undefined
    return undefined
  }

  /** Returns the user's messages that the model still sees. */
  private typed(): ReadonlyArray<Turn> {
    const last = this.steps.findLastIndex((one) => one._tag === "Compaction")
    return this.steps
      .slice(Math.max(0, last))
      .flatMap((one) => (one._tag === "Turn" ? [one.turn] : one.insert))
      .filter(isTyped)
  }

  private summary(message: string, record: Json, text: string, line: number): Turn {
    const piece = textPiece(message, locate(record, text)(["payload", "message"]))
    return this.join(undefined, messageOf("user", [piece], "summary"), {}, line, timeAt(record), undefined)
  }

  /** Returns the messages of the items that replace all earlier ones, and the place of an encrypted summary. */
  private history(
    items: ReadonlyArray<unknown>,
    payload: Json,
    record: Json,
    text: string,
    line: number
  ): { readonly turns: ReadonlyArray<Turn>; readonly encryptedAt: number | undefined } | Problem {
    const at = under(locate(record, text), "payload", "replacement_history")
    const summary = textAt(payload, "message")
    const turns: Array<Turn> = []
    let encryptedAt: number | undefined
    const add = (found: ItemMessage, id: string | undefined): void => {
      const open = turns.at(-1)
      const joined = this.join(open, found, {}, line, timeAt(record), id)
      if (joined !== open) turns.push(joined)
    }
    for (const [index, item] of items.entries()) {
      const name = `payload.replacement_history[${index}]`
      if (!isJson(item)) return recordProblem(name, "expected a response item")
      if (isEncryptedSummary(item)) encryptedAt = turns.length
      const found = readItem(item, under(at, index), this.skipped, { place: `${line}_${index}`, summary })
      if (isProblem(found)) return problemUnder(name, found)
      if (found !== undefined) add(found, textAt(item, "id"))
      if (found?.result !== undefined) add(found.result, undefined)
    }
    // Those of a session of ours of which Codex's own items would lose something.
    const { messages } = marksOf(record)
    if (!Array.isArray(messages))
      return { turns, encryptedAt: turns.some(({ author }) => author === "summary") ? undefined : encryptedAt }
    const carried: Array<Turn> = []
    for (const [index, message] of messages.entries()) {
      if (!isJson(message)) return recordProblem(`palimpsest.messages[${index}]`, "expected a message")
      const empty = carriedMessage(message.role)
      const found = isProblem(empty) ? empty : withMarks(empty, message, "")
      if (isProblem(found)) return problemUnder(`palimpsest.messages[${index}]`, found)
      carried.push(this.join(undefined, found, {}, line, timeAt(record), undefined))
    }
    return { turns: carried, encryptedAt: undefined }
  }

  *transcript(): SlicedWork<Transcript> {
    return {
      format: "codex",
      session: this.session,
      cwd: this.cwd,
      model: this.model,
      steps: yield* eachItem(this.steps, (one): Step =>
        one._tag === "Turn"
          ? { _tag: "Message", draft: this.draft(one.turn) }
          : { ...one, insert: one.insert.map((turn) => this.draft(turn)) }
      ),
      skipped: this.skipped.counts,
      unknown: this.skipped.unknown("Codex", this.version)
    }
  }

  private draft({ at, author, parts, ids, line, model, role, usage }: Turn): Draft {
    // A call that comes after its result still names it.
    const list = namedPieces(parts, (call, part) => this.known.get(part) ?? this.names.get(call))
    return draftOf(role, list, { at, author, line, ids, model, usage })
  }
}

/**
 * Reads a Codex CLI rollout of the current form or of 2025. Items of the model are one Content up to a tool result, a user
 * message or the next token count; consecutive tool results are one, and each user message is one. Rolled-back turns are
 * left out.
 */
export const codexReader = (): LineReader => {
  const rollout = new Rollout()
  return recordReader(
    "expected a record: an object with timestamp, type and payload",
    (record, text, line) => rollout.record(record, text, line),
    () => rollout.transcript()
  )
}
