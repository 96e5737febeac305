import { assert, it } from "@effect/vitest"
import { claudeReader } from "../../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { Choices, generatedRuns } from "../../../support/generated.ts"
import { drafts, messageText, ok, reading, told } from "../../../support/reading.ts"

/**
 * Generated sessions of Claude Code with the truth beside them: turns with parallel calls, refusals, attachments, queues that race with the
 * last answer, rewinds, compactions of both kinds, forks, copies of the history, and records in any order.
 */

type Json = Readonly<Record<string, unknown>>

/** A session as it was written, and what happened in it. */
class Session extends Choices {
  readonly records: Array<Json> = []
  /** The messages of the conversation, and its compactions, in the form of `told`. */
  readonly truth: Array<string> = []
  private time = 0
  private parent: string | null = null
  /** The messages of the conversation, each with its last record. */
  private messages: Array<string> = []
  private canRewind = true

  constructor(seed: number) {
    super(seed)
    this.turn()
    for (let n = this.below(6); n >= 0; n -= 1) this.step()
    this.layOut()
  }

  private add(record: Json, parent: string | null = this.parent): string {
    this.time += 1
    const uuid = this.fresh("u")
    const timestamp = new Date(1_780_000_000_000 + this.time * 1_000).toISOString()
    this.records.push({ uuid, parentUuid: parent, sessionId: "s", version: "2.1.300", timestamp, ...record })
    return uuid
  }

  private chain(record: Json): string {
    return (this.parent = this.add(record))
  }

  private queue(operation: string, content?: string): Json {
    this.add({ type: "queue-operation", operation, ...(content === undefined ? {} : { content }), uuid: undefined })
    return this.records.at(-1) ?? {}
  }

  private happened(line: string, uuid: string): void {
    this.truth.push(line)
    this.messages.push(uuid)
  }

  private say(words = this.fresh("words ")): void {
    this.happened(`user: ${words}`, this.chain({ type: "user", message: { role: "user", content: words } }))
  }

  private model(id: string, block: Json): string {
    return this.chain({ type: "assistant", message: { id, role: "assistant", model: "claude-x", content: [block] } })
  }

  private answer(): void {
    const words = this.fresh("words ")
    this.happened(`model: ${words}`, this.model(this.fresh("m"), { type: "text", text: words }))
  }

  /** Calls on lines of their own, whose results hang on the lines of their calls. */
  private calls(): void {
    const id = this.fresh("m")
    const calls = Array.from({ length: 1 + this.below(3) }, () => {
      const call = this.fresh("t")
      return { call, line: this.model(id, { type: "tool_use", id: call, name: "Bash", input: {} }) }
    })
    this.happened(`model: ${calls.map(({ call }) => `Bash(${call} {})`).join(" | ")}`, this.parent ?? "")
    const shown: Array<string> = []
    const results = calls.map(({ call, line }) => {
      const content = this.fresh("words ")
      const is_error = this.below(4) === 0
      const block = { type: "tool_result", tool_use_id: call, content, is_error }
      this.parent = this.add({ type: "user", message: { role: "user", content: [block] } }, line)
      if (this.below(4) === 0) shown.push(this.attach())
      return `Bash[${call}] {"${is_error ? "error" : "output"}":"${content}"}`
    })
    this.happened(`user: ${results.join(" | ")}`, this.parent ?? "")
    if (shown.length > 0) this.happened(`program: ${shown.join(" | ")}`, this.parent ?? "")
    else if (this.below(3) === 0) this.sendWithin()
  }

  private attach(): string {
    const content = this.fresh("words ")
    this.chain({ type: "attachment", attachment: { type: "nested_memory", path: "/m", content: { content } } })
    return `Contents of /m:\n\n${content}`
  }

  /** A message that was sent with the next request: only the queue holds it, or an attachment as well. */
  private sendWithin(): void {
    const words = this.fresh("words ")
    this.queue("enqueue", words)
    this.queue("remove")
    if (this.below(2) === 0) return (void this.truth.push(`user: ${words}`), void this.messages.push(""))
    const attachment = { type: "queued_command", prompt: words, commandMode: "prompt" }
    this.happened(`user: ${words}`, this.chain({ type: "attachment", attachment }))
  }

  private turn(words?: string): void {
    this.say(words)
    if (this.below(3) === 0) this.happened(`program: ${this.attach()}`, this.parent ?? "")
    for (let n = this.below(3); n > 0; n -= 1) this.calls()
    this.answer()
    if (this.below(3) === 0) this.chain({ type: "system", subtype: "turn_duration" })
  }

  private step(): void {
    const kind = this.below(7)
    if (kind === 0 && this.canRewind) this.rewind()
    else if (kind === 1) this.compact()
    else if (kind === 2) this.queuedTurn()
    else if (kind === 3) {
      const words = this.fresh("words ")
      this.queue("enqueue", words)
      this.queue("popAll", words)
    }
    this.turn()
  }

  /** The user goes back to an earlier message. */
  private rewind(): void {
    const to = 1 + this.below(this.truth.length - 1)
    const uuid = this.messages[to - 1]
    if (!uuid || !this.messages[to] || this.truth[to]?.startsWith("user: words") !== true) return
    this.parent = uuid
    this.truth.splice(to)
    this.messages.splice(to)
  }

  /** A message that began the next turn, and whose record of leaving the queue can stand before the last answer. */
  private queuedTurn(): void {
    const words = this.fresh("words ")
    this.queue("enqueue", words)
    this.answer()
    const left = this.queue("dequeue")
    if (this.below(2) === 0) this.records.splice(-2, 2, left, ...this.records.slice(-2, -1))
    this.turn(words)
  }

  private compact(): void {
    this.canRewind = false
    const last = this.parent
    const isKept =
      this.below(2) === 0 && this.messages.at(-1) !== "" && this.truth.at(-1)?.startsWith("model: words") === true
    const summary = this.fresh("words ")
    const anchorUuid = `u${this.names + 2}`
    const kept = { headUuid: this.messages.at(-1), tailUuid: last, anchorUuid }
    const compactMetadata = { trigger: "auto", preTokens: 9, ...(isKept ? { preservedSegment: kept } : {}) }
    const about = { type: "system", subtype: "compact_boundary", logicalParentUuid: last, compactMetadata }
    const boundary = this.add(about, null)
    this.parent = this.add({ type: "user", isCompactSummary: true, message: { content: summary } }, boundary)
    const from = this.messages.length - 1
    this.truth.push(`compaction (auto, 9), kept from ${isKept ? from : "nothing"}`, `+ summary: ${summary}`)
    if (isKept) this.parent = last
  }

  /** Puts the records into one of the orders in which they can stand. */
  private layOut(): void {
    const way = this.below(5)
    const { records } = this
    const queued = records.filter(({ type }) => type === "queue-operation")
    const others = records.filter(({ type }) => type !== "queue-operation")
    // A fork begins with its queue.
    if (way === 0) records.splice(0, records.length, ...queued, ...others)
    if (way === 1) for (let at = records.length - 1; at > 0; at -= 1) this.swap(at, this.below(at + 1))
    // The history stands a second time under other ids, after its first copy or before.
    if ((way === 2 || way === 3) && this.canRewind) {
      const copy = others.map((one) => ({
        ...one,
        uuid: `copy ${String(one.uuid)}`,
        parentUuid: one.parentUuid === null ? null : `copy ${String(one.parentUuid)}`
      }))
      records.splice(way === 2 ? 0 : records.length, 0, ...copy)
    }
  }

  private swap(one: number, other: number): void {
    const [left, right] = [this.records[one], this.records[other]]
    if (left === undefined || right === undefined) return
    this.records[one] = right
    this.records[other] = left
  }
}

const read = reading(() => claudeReader())
const seeds = Array.from({ length: generatedRuns }, (_, n) => n + 1)

it("a generated session is read as it happened, whatever the order of its records", () => {
  for (const seed of seeds) {
    const { records, truth } = new Session(seed)
    const lines = records.map((record) => JSON.stringify(record))
    assert.deepStrictEqual(told(ok(read(lines))), truth, `seed ${seed}`)
  }
})

it("a session that ends anywhere is read, and tells nothing twice", () => {
  for (const seed of seeds) {
    const { records } = new Session(seed)
    const lines = records.map((record) => JSON.stringify(record))
    const step = Math.max(1, Math.floor(lines.length / 8))
    for (let end = 1; end < lines.length; end += step) {
      const shown = drafts(ok(read(lines.slice(0, end)))).map(messageText)
      const words = shown.flatMap((line) => line.match(/words \d+/g) ?? [])
      assert.strictEqual(new Set(words).size, words.length, `seed ${seed}, ${end} lines: ${shown.join("\n")}`)
    }
  }
})
