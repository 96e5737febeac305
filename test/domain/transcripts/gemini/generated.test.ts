import { acknowledgement } from "../../../../src/domain/compression/strategies/gemini/Conclusion.ts"
import { geminiReader } from "../../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { Generated, itIsReadAsItHappened } from "../../../support/generated.ts"

/**
 * Generated sessions of Gemini CLI with the truth after each record: messages that are written again as they grow, results that stand in
 * their call's record, in a message of their own, or in both, refusals, media, rewinds, compressions, resumed sessions that repeat
 * everything, notes, commands, and records that nobody knows.
 */

/** A message record of the agent's view, and the messages it gives. */
interface Held {
  readonly record: Readonly<Record<string, unknown>>
  readonly lines: ReadonlyArray<string>
  /** The number of its first message among all that were said; undefined for one that a compression inserted. */
  readonly number?: number
}

const environment = "<session_context>\nfolder\n</session_context>"
const picture = { inlineData: { mimeType: "image/png", data: "aGk=" } }

class Session extends Generated {
  /** What was said before the last compression, and that compression. */
  private past: ReadonlyArray<string> = []
  private pastMessages = 0
  /** What the last compression left, which does not change again, and what was said since. */
  private left: ReadonlyArray<Held> = []
  private own: ReadonlyArray<Held> = []
  private readonly answers = new Set<unknown>()

  constructor(seed: number) {
    super(seed)
    this.write({ sessionId: "s", projectHash: "p", startTime: "2026-01-01T00:00:00.000Z" })
    if (this.below(2) === 0) this.add(this.typed(environment), `environment: ${environment}`)
    for (let n = 4 + this.below(24); n > 0; n -= 1) this.step()
  }

  protected override said(): ReadonlyArray<string> {
    return [...this.past, ...this.own.flatMap(({ lines }) => lines)]
  }

  private message(type: string, content: unknown, more: object = {}): Held["record"] {
    return { id: this.fresh(), timestamp: "2026-01-01T00:00:01.000Z", type, content, ...more }
  }

  private typed(content: unknown): Held["record"] {
    return this.message("user", content)
  }

  /** Writes a message record. One with a known id is in the place of the earlier one. */
  private add(record: Held["record"], ...lines: ReadonlyArray<string>): void {
    const held = { record, lines }
    const isKnown = this.own.some((one) => one.record.id === record.id)
    this.own = isKnown ? this.own.map((one) => (one.record.id === record.id ? held : one)) : [...this.own, held]
    if (record.tokens !== undefined) this.answers.add(record.id)
    this.counted = this.answers.size
    this.write(record)
  }

  private step(): void {
    this.oneOf([
      () => this.user(),
      () => this.user(),
      () => this.answer(),
      () => this.answer(),
      () => this.calls(),
      () => this.calls(),
      () => this.add(this.message(["info", "error", "warning"][this.below(3)] ?? "info", this.fresh())),
      () => this.add(this.typed(`/${this.fresh()}`)),
      () => this.add(this.message("hologram", this.fresh())),
      () => this.hologram({ type: "hologram" }),
      () => this.write({ $set: { lastUpdated: "2026-01-01T00:00:02.000Z", summary: this.fresh() } }),
      () => this.rewind(),
      () => this.compress(),
      () => this.resume()
    ])
  }

  private user(): void {
    const text = this.fresh()
    const [content, line] = [
      [text, text],
      [[{ text }], text],
      [[{ text }, picture], `${text} | ${JSON.stringify(picture)}`]
    ][this.below(3)] ?? [text, text]
    this.add(this.typed(content), `user: ${String(line)}`)
  }

  private answered(): object {
    return this.below(3) === 0 ? {} : { model: "m", tokens: { input: 8, output: 2, cached: 4, thoughts: 1, total: 11 } }
  }

  private answer(): void {
    const text = this.fresh()
    const isThought = this.below(2) === 0
    const thoughts = isThought ? [{ subject: "S", description: text }] : []
    const line = `model: ${isThought ? `~**S** ${text} | ` : ""}${text}`
    const record = this.message("gemini", text, { thoughts })
    // Its counts come after its text.
    if (this.below(2) === 0) this.add(record, line)
    this.add({ ...record, ...this.answered() }, line)
  }

  /** Calls, their results, and the results once more as a message. */
  private calls(): void {
    const text = this.fresh()
    const calls = Array.from({ length: 1 + this.below(3) }, () => {
      const [id, output] = [this.fresh(), this.fresh()]
      const isRefused = this.below(4) === 0
      const response = isRefused ? { error: `refused: ${output}` } : { output }
      const result = [{ functionResponse: { id, name: "shell", response } }]
      const call = { id, name: "shell", args: { a: 1 }, timestamp: "2026-01-01T00:00:02.000Z" }
      return {
        call,
        result,
        status: isRefused ? "cancelled" : "success",
        line: `shell[${id}] ${JSON.stringify(response)}`
      }
    })
    const record = { ...this.message("gemini", text), ...this.answered() }
    const made = `model: ${[text, ...calls.map(({ call }) => `shell(${call.id} {"a":1})`)].join(" | ")}`
    const results = `user: ${calls.map(({ line }) => line).join(" | ")}`
    const waiting = { ...record, toolCalls: calls.map(({ call }) => ({ ...call, status: "executing" })) }
    const done = { ...record, toolCalls: calls.map(({ call, result, status }) => ({ ...call, result, status })) }
    const repeated = this.typed(calls.flatMap(({ result }) => result))
    if (this.below(2) === 0) this.add(waiting, made)
    const order = this.below(3)
    if (order > 0) this.add(done, made, results)
    if (order === 1) this.add(repeated)
    if (order > 0) return
    // A message with the results can stand before the record has them.
    this.add(waiting, made)
    this.add(repeated, results)
    if (this.below(2) === 0) return
    this.own = this.own.map((one) => (one.record === repeated ? { record: repeated, lines: [] } : one))
    this.add(done, made, results)
  }

  private rewind(): void {
    const at = this.below(this.own.length)
    const id = this.own[at]?.record.id
    if (id === undefined) return
    this.own = this.own.slice(0, at)
    this.write({ $rewindTo: id })
  }

  /** The summary, an answer to it, and the last records stand for everything before. */
  private compress(): void {
    let number = this.pastMessages
    const numbered = this.own.map((one) => {
      const first = number
      number += one.lines.length
      return { ...one, number: first }
    })
    const view: ReadonlyArray<Held> = [...this.left, ...numbered]
    const isEnvironment = (one: Held) => one.lines[0]?.startsWith("environment") === true
    const opening = view.filter(isEnvironment)
    const rest = view.filter((one) => !isEnvironment(one))
    if (rest.every(({ lines }) => lines.length === 0)) return
    // An earlier summary is summarized.
    const least = 1 + rest.findLastIndex(({ lines }) => lines[0]?.startsWith("summary") === true)
    const last = rest.slice(Math.max(least, rest.length - this.below(4)))
    // Results are not kept without their calls.
    const begin = last.findIndex(({ lines }) => lines.length > 0)
    const kept = begin < 0 ? [] : last.slice(begin)
    const stays = kept.slice(kept.findLastIndex((one) => one.lines.length > 0 && one.number === undefined) + 1)
    const again = kept.slice(0, kept.length - stays.length)
    const summary = `<state_snapshot>${this.fresh()}</state_snapshot>`
    const inserted: ReadonlyArray<Held> = [
      { record: this.typed(summary), lines: [`summary: ${summary}`] },
      { record: this.message("gemini", acknowledgement), lines: [`model: ${acknowledgement}`] },
      ...again.map(({ lines, record }) => ({ lines, record }))
    ]
    this.past = [
      ...this.past,
      ...this.own.flatMap(({ lines }) => lines),
      `compaction (auto, ?), kept from ${stays.find(({ lines }) => lines.length > 0)?.number ?? "nothing"}`,
      ...inserted.flatMap(({ lines }) => lines.map((line) => `+ ${line}`))
    ]
    this.pastMessages = number
    this.left = [...opening, ...inserted, ...stays]
    this.own = []
    this.write({ $set: { messages: this.left.map(({ record }) => record) } })
  }

  /** Everything once more, under the old ids. */
  private resume(): void {
    this.write({ $set: { messages: [...this.left, ...this.own].map(({ record }) => record) } })
  }
}

itIsReadAsItHappened("gemini", geminiReader, (seed) => new Session(seed))
