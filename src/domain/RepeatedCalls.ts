/**
 * Calls of tools that come again and again (spec 12): the same call, or the same few calls in the same order. Batch work is
 * none of that, because its arguments differ; and neither is a call that is answered differently each time, because
 * something moves on (users' pain 13).
 */

/** Spec 12: the longest cycle of calls that is looked for. */
const longest = 5
/** Arguments that are nested deeper than this are taken for the same there. */
const deepest = 200

const canonicalAt = (value: unknown, depth: number): string => {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  if (depth > deepest) return "…"
  if (Array.isArray(value)) return `[${value.map((item) => canonicalAt(item, depth + 1)).join(",")}]`
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonicalAt(field, depth + 1)}`).join(",")}}`
}

/** Arguments as JSON whose keys are sorted: the same text for the same arguments, in whatever order they were written. */
export const canonical = (args: unknown): string => canonicalAt(args ?? {}, 0)

/** Characters from either end of an answer by which it is told from another of the same length. */
const looked = 32_768

/** Stands for an answer: a conversation may hold megabytes of them, and this is only to tell whether one changed. */
const fingerprint = (output: string): string => {
  let one = 0
  let other = 0
  const skip = Math.max(0, output.length - 2 * looked)
  for (let i = 0; i < output.length; i += 1) {
    if (i === looked) i += skip
    const code = output.charCodeAt(i)
    one = Math.imul(one ^ code, 0x0100_0193)
    other = (Math.imul(other, 31) + code) | 0
  }
  return `${output.length}:${one}:${other}`
}

interface Made {
  readonly name: string
  readonly key: string
  /** What stands for its answer, once that is known. */
  output: string | undefined
}

/** Calls that go round in circles. */
export interface Cycle {
  /** The names of the calls of one round. */
  readonly names: ReadonlyArray<string>
  readonly times: number
}

/** Follows the calls of one agent. Mutable. */
export class RepeatedCalls {
  private made: Array<Made> = []

  /** Rounds that make a loop (spec 12: 5). */
  private readonly times: number

  constructor(times = 5) {
    this.times = Math.max(2, Math.floor(times))
  }

  /** Forgets all calls. */
  reset(): void {
    this.made = []
  }

  /** Another call; the cycle that is complete with it, where there is one. */
  call(name: string, args: unknown): Cycle | undefined {
    this.made.push({ name, key: `${name}:${canonical(args)}`, output: undefined })
    if (this.made.length > longest * this.times) this.made.shift()
    for (let length = 1; length <= longest; length += 1) {
      const begin = this.made.length - length * this.times
      if (begin < 0) return undefined
      const round = this.made.slice(begin, begin + length)
      if (round.every((_, slot) => this.isSame(begin + slot, length))) {
        return { names: round.map((one) => one.name), times: this.times }
      }
    }
    return undefined
  }

  /** What a call was answered: that of the oldest such call that is not answered yet. */
  result(name: string, args: unknown, output: string): void {
    const key = `${name}:${canonical(args)}`
    const asked = this.made.find((one) => one.key === key && one.output === undefined)
    if (asked !== undefined) asked.output = fingerprint(output)
  }

  /** Whether every call at these places is the same, and was answered the same as far as that is known. */
  private isSame(begin: number, length: number): boolean {
    const calls = Array.from({ length: this.times }, (_, round) => this.made[begin + round * length])
    const answers = new Set(calls.flatMap((one) => one?.output ?? []))
    return calls.every((one) => one?.key === calls[0]?.key) && answers.size <= 1
  }
}
