import { assert, it } from "@effect/vitest"
import { acknowledgement } from "../../../../src/domain/compression/strategies/gemini/Conclusion.ts"
import { type Random, seededRandom } from "../../../../src/domain/evaluation/SeededRandom.ts"
import { newScan } from "../../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../../src/domain/transcripts/facts/SessionScan.ts"
import { geminiReader } from "../../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { ok, reading, told } from "../../../support/reading.ts"
import { runsOf } from "../../../support/runs.ts"

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

class Session {
  readonly records: Array<object> = [{ sessionId: "s", projectHash: "p", startTime: "2026-01-01T00:00:00.000Z" }]
  /** The lines of `told` after each record. */
  readonly truths: Array<ReadonlyArray<string>> = [[]]
  /** The requests after each record. */
  readonly requests: Array<number> = [0]
  holograms = 0
  /** What was said before the last compression, and that compression. */
  private past: ReadonlyArray<string> = []
  private pastMessages = 0
  /** What the last compression left, which does not change again, and what was said since. */
  private left: ReadonlyArray<Held> = []
  private own: ReadonlyArray<Held> = []
  private readonly counted = new Set<unknown>()
  private names = 0
  private readonly random: Random

  constructor(seed: number) {
    this.random = seededRandom(seed)
    if (this.below(2) === 0) this.add(this.said(environment), `environment: ${environment}`)
    for (let n = 4 + this.below(24); n > 0; n -= 1) this.step()
  }

  private below(bound: number): number {
    return Math.floor(this.random() * bound)
  }

  private fresh(): string {
    this.names += 1
    return `w${this.names}`
  }

  private write(record: object): void {
    this.records.push(record)
    this.truths.push([...this.past, ...this.own.flatMap(({ lines }) => lines)])
    this.requests.push(this.counted.size)
  }

  private message(type: string, content: unknown, more: object = {}): Held["record"] {
    return { id: this.fresh(), timestamp: "2026-01-01T00:00:01.000Z", type, content, ...more }
  }

  private said(content: unknown): Held["record"] {
    return this.message("user", content)
  }

  /** Writes a message record. One with a known id is in the place of the earlier one. */
  private add(record: Held["record"], ...lines: ReadonlyArray<string>): void {
    const held = { record, lines }
    const isKnown = this.own.some((one) => one.record.id === record.id)
    this.own = isKnown ? this.own.map((one) => (one.record.id === record.id ? held : one)) : [...this.own, held]
    if (record.tokens !== undefined) this.counted.add(record.id)
    this.write(record)
  }

  private step(): void {
    const ways = [
      () => this.user(),
      () => this.user(),
      () => this.answer(),
      () => this.answer(),
      () => this.calls(),
      () => this.calls(),
      () => this.add(this.message(["info", "error", "warning"][this.below(3)] ?? "info", this.fresh())),
      () => this.add(this.said(`/${this.fresh()}`)),
      () => this.add(this.message("hologram", this.fresh())),
      () => this.hologram(),
      () => this.write({ $set: { lastUpdated: "2026-01-01T00:00:02.000Z", summary: this.fresh() } }),
      () => this.rewind(),
      () => this.compress(),
      () => this.resume()
    ]
    ways[this.below(ways.length)]?.()
  }

  private hologram(): void {
    this.holograms += 1
    this.write({ type: "hologram" })
  }

  private user(): void {
    const text = this.fresh()
    const [content, line] = [
      [text, text],
      [[{ text }], text],
      [[{ text }, picture], `${text} | ${JSON.stringify(picture)}`]
    ][this.below(3)] ?? [text, text]
    this.add(this.said(content), `user: ${String(line)}`)
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
    const repeated = this.said(calls.flatMap(({ result }) => result))
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
      { record: this.said(summary), lines: [`summary: ${summary}`] },
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

const read = reading(geminiReader)

it("a generated session of Gemini CLI is read as it happened, to any of its records", () => {
  for (let seed = 1; seed <= runsOf(2_000, 100); seed += 1) {
    const { holograms, records, requests, truths } = new Session(seed)
    const lines = records.map((record) => JSON.stringify(record))
    const step = seed % 10 === 0 ? 1 : Math.max(1, Math.floor(lines.length / 4))
    const state = newScan()
    for (const [at, record] of records.entries()) {
      scanRecord(state, "gemini", record)
      const name = `seed ${seed}, ${at + 1} records`
      assert.strictEqual(state.requests.length, requests[at], name)
      if (at % step !== 0 && at < lines.length - 1) continue
      assert.deepStrictEqual(told(ok(read(lines.slice(0, at + 1)))), truths[at], name)
    }
    const { skipped, unknown } = ok(read(lines))
    assert.strictEqual(skipped["hologram"] ?? 0, holograms, `seed ${seed}`)
    if (holograms > 0) assert.include(unknown?.kinds ?? [], "hologram")
  }
})
