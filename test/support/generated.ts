import { type Random, seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import type { AgentName } from "../../src/domain/transcripts/AgentFolders.ts"
import { newScan } from "../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../src/domain/transcripts/facts/SessionScan.ts"
import type { LineReader } from "../../src/domain/transcripts/Transcript.ts"
import { ok, reading, told } from "./reading.ts"
import { runsOf } from "./runs.ts"
import { assert, it } from "./vitest.ts"

type Json = Readonly<Record<string, unknown>>

/** Choices that are the same for the same seed. */
export class Choices {
  readonly random: Random
  protected names = 0

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** A whole number from 0 to below the bound. */
  below(bound: number): number {
    return Math.floor(this.random() * bound)
  }

  /** A word that was not there before. */
  protected fresh(kind = "w"): string {
    this.names += 1
    return `${kind}${this.names}`
  }

  /** Does one of several things. */
  protected oneOf(ways: ReadonlyArray<() => void>): void {
    ways[this.below(ways.length)]?.()
  }
}

/** A session in an agent's records, with the truth after each of them. */
export abstract class Generated extends Choices {
  readonly records: Array<Json> = []
  /** The lines of `told` after each record. */
  readonly truths: Array<ReadonlyArray<string>> = []
  /** The requests after each record. */
  readonly requests: Array<number> = []
  protected counted = 0
  /** How many records there are of a kind that nobody knows. */
  holograms = 0

  /** What was said so far. */
  protected abstract said(): ReadonlyArray<string>

  protected write(record: Json): void {
    this.records.push(record)
    this.truths.push(this.said())
    this.requests.push(this.counted)
  }

  protected hologram(record: Json): void {
    this.holograms += 1
    this.write(record)
  }
}

/** How many sessions are generated. */
export const generatedRuns = runsOf(2_000, 100)

/** A generated session is read, and listed, as it happened, to any of its records; records that nobody knows are named. */
export const itIsReadAsItHappened = (
  agent: AgentName,
  reader: () => LineReader,
  generate: (seed: number) => Generated,
  unknownKind = "hologram"
): void =>
  it("a generated session is read as it happened, to any of its records", () => {
    const read = reading(reader)
    for (let seed = 1; seed <= generatedRuns; seed += 1) {
      const { holograms, records, requests, truths } = generate(seed)
      const lines = records.map((record) => JSON.stringify(record))
      const step = seed % 10 === 0 ? 1 : Math.max(1, Math.floor(lines.length / 4))
      const state = newScan()
      for (const [at, record] of records.entries()) {
        scanRecord(state, agent, record)
        const name = `seed ${seed}, ${at + 1} records`
        assert.strictEqual(state.requests.length, requests[at], name)
        if (at % step !== 0 && at < lines.length - 1) continue
        assert.deepStrictEqual(told(ok(read(lines.slice(0, at + 1)))), truths[at], name)
      }
      const { skipped, unknown } = ok(read(lines))
      assert.strictEqual(skipped[unknownKind] ?? 0, holograms, `seed ${seed}`)
      assert.strictEqual(unknown?.kinds.includes(unknownKind) ?? false, holograms > 0, `seed ${seed}`)
    }
  })
