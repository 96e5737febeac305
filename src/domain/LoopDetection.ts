import type { LoopKind } from "./ChatEvent.ts"
import { printable } from "./Inspection.ts"
import { RepeatedCalls } from "./RepeatedCalls.ts"
import { RepeatedText } from "./RepeatedText.ts"

/** Whether an agent goes round in circles (spec 12), as far as code can tell: by its calls and by its words. */

/** What goes round in circles, in words. */
export interface Loop {
  readonly kind: LoopKind
  readonly detail: string
}

/** When something is a loop. */
export interface LoopThresholds {
  /** The same calls so often, one after the other (spec 12: 5). */
  readonly calls: number
  /** The same characters so often (spec 12: 10). */
  readonly content: number
  /** So many of them (spec 12, seed 002: 50). */
  readonly chunk: number
  /** Within the last so many characters (spec 12, seed 002: 5,000). */
  readonly history: number
  /** Tools whose calls never count: those that are called to wait for something. */
  readonly exempt: ReadonlyArray<string>
}

/** To wait for several agents, these are called again and again with nothing to say: that is how they are meant (pi-openclaw B12). */
const waiting = ["sessions_yield", "sessions_list"]

/** Spec 12. */
export const defaultThresholds: LoopThresholds = {
  calls: 5,
  content: 10,
  chunk: 50,
  history: 5_000,
  exempt: waiting
}

const callsDetail = (names: ReadonlyArray<string>, times: number): string =>
  names.length === 1
    ? `${names[0]} was called ${times} times in a row with the same arguments`
    : `the same ${names.length} calls were made ${times} times in a row: ${names.join(", ")}`

/** Follows what one agent does. Mutable; it tells of a loop until it is reset. */
export class LoopDetector {
  private readonly calls: RepeatedCalls
  private readonly text: RepeatedText
  private readonly exempt: ReadonlySet<string>
  private found: Loop | undefined

  constructor({ calls, chunk, content, exempt, history }: LoopThresholds = defaultThresholds) {
    this.calls = new RepeatedCalls(calls)
    this.text = new RepeatedText({ times: content, chunk, history })
    this.exempt = new Set(exempt)
  }

  /** A call the model asks for. Its words begin anew after it. */
  call(name: string, args: unknown): Loop | undefined {
    if (this.found !== undefined) return this.found
    this.text.reset()
    if (this.exempt.has(name)) return undefined
    const cycle = this.calls.call(name, args)
    if (cycle === undefined) return undefined
    this.found = { kind: "calls", detail: printable(callsDetail(cycle.names, cycle.times)) }
    return this.found
  }

  /**
   * What a call was answered. The same call, answered differently, is no repetition: so a command that is called until what
   * it prints changes does not count once it does.
   */
  result(name: string, args: unknown, output: string): void {
    if (this.found === undefined && !this.exempt.has(name)) this.calls.result(name, args, output)
  }

  /** The next words of the answer. */
  content(text: string): Loop | undefined {
    if (this.found !== undefined) return this.found
    const repetition = this.text.push(text)
    if (repetition === undefined) return undefined
    const quoted = printable(JSON.stringify(repetition.text.replace(/\s+/g, " ")))
    this.found = { kind: "content", detail: `the same words came ${repetition.times} times: ${quoted}` }
    return this.found
  }

  /** Another answer begins; calls go on. */
  answer(): void {
    this.text.reset()
  }

  /** Forgets all: something else begins, or the model was told. */
  reset(): void {
    this.calls.reset()
    this.text.reset()
    this.found = undefined
  }

  /** The loop that was found, until it is reset. */
  get loop(): Loop | undefined {
    return this.found
  }
}

// --- What a model is asked (spec 12) ---

/** Spec 12: turns of one prompt before a model is asked, and the bounds of the turns from one time to the next. */
export const firstCheck = 30
const shortest = 5
const longest = 15
/** Spec 12. */
export const firstInterval = 10
/** Spec 12: what a model that is less sure than this says is no loop. */
export const sure = 0.9

/** The turns until a model is asked again: the surer it was, the fewer (spec 12). */
export const nextInterval = (confidence: number): number =>
  Math.round(shortest + (longest - shortest) * (1 - Math.min(1, Math.max(0, confidence))))
