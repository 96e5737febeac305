/**
 * Detects repeated tool calls: the same call, or the same few calls in the same order. Batch work is not a repetition, because its arguments differ;
 * neither is a call with a different answer each time, because it makes progress.
 */

/** The maximum number of calls in a cycle, as in Gemini CLI, March 2026. */
const maxCycleLength = 5
/** Arguments nested deeper than this count as equal. */
const maxComparedDepth = 200

const canonicalAt = (value: unknown, depth: number): string => {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  if (depth > maxComparedDepth) return "…"
  if (Array.isArray(value)) return `[${value.map((item) => canonicalAt(item, depth + 1)).join(",")}]`
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalAt(field, depth + 1)}`).join(",")}}`
}

/** Arguments as JSON with sorted keys: the same text for the same arguments, in any key order. */
export const canonical = (args: unknown): string => canonicalAt(args ?? {}, 0)

/** Characters compared at either end of two answers of the same length. */
const comparedChars = 32_768

/** A short stand-in for an answer. A conversation may hold megabytes of answers, and this is only needed to detect changes. */
const fingerprint = (output: string): string => {
  let one = 0
  let other = 0
  const skip = Math.max(0, output.length - 2 * comparedChars)
  for (let i = 0; i < output.length; i += 1) {
    if (i === comparedChars) i += skip
    const code = output.charCodeAt(i)
    one = Math.imul(one ^ code, 0x0100_0193)
    other = (Math.imul(other, 31) + code) | 0
  }
  return `${output.length}:${one}:${other}`
}

interface Made {
  readonly name: string
  readonly key: string
  /** The fingerprint of the answer, once it has arrived. */
  output: string | undefined
}

/** A cycle of repeated calls. */
export interface Cycle {
  /** The names of the calls of one round. */
  readonly names: ReadonlyArray<string>
  readonly times: number
}

/** Detects repeated calls of one agent. Mutable. */
export class RepeatedCalls {
  private made: Array<Made> = []

  /** Rounds that make a loop (Gemini CLI: 5). */
  private readonly times: number

  constructor(times = 5) {
    this.times = Math.max(2, Math.floor(times))
  }

  /** Forgets all calls. */
  reset(): void {
    this.made = []
  }

  /** Adds a call. Returns the cycle that it completes, if any. */
  call(name: string, args: unknown): Cycle | undefined {
    this.made.push({ name, key: `${name}:${canonical(args)}`, output: undefined })
    if (this.made.length > maxCycleLength * this.times) this.made.shift()
    for (let length = 1; length <= maxCycleLength; length += 1) {
      const begin = this.made.length - length * this.times
      if (begin < 0) return undefined
      const round = this.made.slice(begin, begin + length)
      if (round.every((_, slot) => this.isSame(begin + slot, length))) {
        return { names: round.map((one) => one.name), times: this.times }
      }
    }
    return undefined
  }

  /** Adds an answer, for the oldest unanswered call with this name and these arguments. */
  result(name: string, args: unknown, output: string): void {
    const key = `${name}:${canonical(args)}`
    const call = this.made.find((one) => one.key === key && one.output === undefined)
    if (call !== undefined) call.output = fingerprint(output)
  }

  /** Whether all calls at these places are equal, and their answers as far as they have arrived. */
  private isSame(begin: number, length: number): boolean {
    const calls = Array.from({ length: this.times }, (_, round) => this.made[begin + round * length])
    const answers = new Set(calls.flatMap((one) => one?.output ?? []))
    return calls.every((one) => one?.key === calls[0]?.key) && answers.size <= 1
  }
}
