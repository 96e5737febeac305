/** Detects loops of an agent without a model, from its calls and its text. The limits are those of Gemini CLI, March 2026. */

import type { LoopKind } from "../chat/ChatEvent.ts"
import { printableLine } from "../text/InvisibleCharacters.ts"
import { RepeatedText } from "./RepeatedText.ts"

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
interface Cycle {
  /** The names of the calls of one round. */
  readonly names: ReadonlyArray<string>
  readonly times: number
}

/**
 * Detects repeated calls of one agent. Work on many files is no repetition, because its arguments differ; neither is a call that has another answer
 * each time. Mutable.
 */
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

/** A detected loop, described in words. */
export interface Loop {
  readonly kind: LoopKind
  readonly detail: string
  /** Characters of the last piece of text up to the end of the repetition. Absent: a loop of calls. */
  readonly end?: number
}

/** The thresholds of loop detection. */
export interface LoopThresholds {
  /** Identical consecutive calls that make a loop (Gemini CLI: 5). */
  readonly calls: number
  /** Repetitions of a chunk of text that make a loop (Gemini CLI: 10). */
  readonly content: number
  /** Characters of a chunk (Gemini CLI: 50). */
  readonly chunk: number
  /** Characters of recent text in which chunks are compared (Gemini CLI: 5,000). */
  readonly history: number
  /** Tools whose calls never count, because they are called to wait for something. */
  readonly exempt: ReadonlyArray<string>
}

/** An agent that waits for several others calls these again and again, which is their normal use. */
const waitingTools = ["sessions_yield", "sessions_list"]

/** The thresholds of Gemini CLI, March 2026. */
export const defaultThresholds: LoopThresholds = {
  calls: 5,
  content: 10,
  chunk: 50,
  history: 5_000,
  exempt: waitingTools
}

const callsDetail = (names: ReadonlyArray<string>, times: number): string =>
  names.length === 1
    ? `${names[0]} was called ${times} times in a row with the same arguments`
    : `the same ${names.length} calls were made ${times} times in a row: ${names.join(", ")}`

/** Detects loops of one agent. Mutable. Reports a loop until it is reset. */
export class LoopDetector {
  private readonly calls: RepeatedCalls
  private readonly text: RepeatedText
  private readonly exempt: ReadonlySet<string>
  private detected: Loop | undefined

  constructor({ calls, chunk, content, exempt, history }: LoopThresholds = defaultThresholds) {
    this.calls = new RepeatedCalls(calls)
    this.text = new RepeatedText({ times: content, chunk, history })
    this.exempt = new Set(exempt)
  }

  /** Adds a call of the model. Text starts anew after it. */
  call(name: string, args: unknown): Loop | undefined {
    if (this.detected !== undefined) return this.detected
    this.text.reset()
    if (this.exempt.has(name)) return undefined
    const cycle = this.calls.call(name, args)
    if (cycle === undefined) return undefined
    this.detected = { kind: "calls", detail: printableLine(callsDetail(cycle.names, cycle.times)) }
    return this.detected
  }

  /**
   * Adds the answer to a call. The same call with a different answer is not a repetition: a command that is called until its output changes stops
   * counting once it does.
   */
  result(name: string, args: unknown, output: string): void {
    if (this.detected === undefined && !this.exempt.has(name)) this.calls.result(name, args, output)
  }

  /** Adds a piece of the answer's text. */
  content(text: string): Loop | undefined {
    if (this.detected !== undefined) return this.detected
    const repetition = this.text.push(text)
    if (repetition === undefined) return undefined
    const quoted = printableLine(JSON.stringify(repetition.text.replace(/\s+/g, " ")))
    const detail = `the same words were repeated ${repetition.times} times: ${quoted}`
    this.detected = { kind: "content", detail, end: repetition.end }
    return this.detected
  }

  /** Begins another answer. Calls continue to count. */
  answer(): void {
    this.text.reset()
  }

  /** Forgets everything, because another task begins or the model has been informed. */
  reset(): void {
    this.calls.reset()
    this.text.reset()
    this.detected = undefined
  }

  /** The detected loop, until `reset`. */
  get loop(): Loop | undefined {
    return this.detected
  }
}

/** Turns of one prompt before a model is asked, and the bounds of the interval between two checks, as in Gemini CLI, March 2026. */
export const firstCheckTurn = 30
const minInterval = 5
const maxInterval = 15
/** The interval after the first check, as in Gemini CLI, March 2026. */
const firstInterval = 10
/** The minimum confidence of a model's verdict that counts as a loop, as in Gemini CLI, March 2026. */
export const confidenceOfLoop = 0.9

/** The turns of a run, the turn of the last check by a model, and the turns until the next one. */
export interface CheckSchedule {
  readonly turns: number
  /** Undefined: no model has checked this run. */
  readonly lastCheck: number | undefined
  readonly interval: number
}

/** The schedule of a new run. */
export const newSchedule: CheckSchedule = { turns: 0, lastCheck: undefined, interval: firstInterval }

/** Whether a model checks in this turn: first in the turn `checkAfter`, then after each interval. */
export const isCheckDue = ({ interval, lastCheck, turns }: CheckSchedule, checkAfter: number): boolean =>
  lastCheck === undefined ? turns >= checkAfter : turns - lastCheck >= interval

/** The number of turns until the next check: the higher the confidence, the fewer. */
export const nextInterval = (confidence: number): number =>
  Math.round(minInterval + (maxInterval - minInterval) * (1 - Math.min(1, Math.max(0, confidence))))
