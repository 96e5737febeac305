/**
 * Finds a regular expression in the lines of a text, in time proportional to the text. All ways to read a line are followed together, character by
 * character, so none is tried twice, and the work can pause at any character. What follows a character is remembered, within a bounded memory: most
 * characters then cost one look at a table.
 */

import type { SlicedWork } from "./SlicedWork.ts"

/** An instruction of a compiled pattern. `next`, `first` and `second` are indexes of instructions. */
export type Instruction =
  /** Reads a character. */
  | { readonly _tag: "Read"; readonly accepts: (codePoint: number) => boolean; readonly next: number }
  /** Continues at both; a match by way of `first` is preferred. */
  | { readonly _tag: "Either"; readonly first: number; readonly second: number }
  /** Continues where all assertions of the bit set `needs` hold. */
  | { readonly _tag: "Check"; readonly needs: number; readonly next: number }
  | { readonly _tag: "Skip"; readonly next: number }
  | { readonly _tag: "Match" }
  | { readonly _tag: "Fail" }

/** A compiled pattern. */
export interface Pattern {
  readonly instructions: ReadonlyArray<Instruction>
  /** The index of the first instruction. */
  readonly start: number
}

/** The bits of assertions. Lines are matched alone, so a text begins and ends where a line does. */
const assertions = {
  lineStart: 1,
  lineEnd: 2,
  textStart: 4,
  textEnd: 8,
  wordBoundary: 16,
  noWordBoundary: 32
} as const

/** A line with a match. */
export interface FoundLine {
  /** The number of line breaks before it, from the beginning of the search. */
  readonly breaks: number
  /** The offset in the text at which the line begins, or the search within it. */
  readonly start: number
  /** No match begins before this offset. */
  readonly from: number
}

/** The first match of a line: offsets in the text. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Stands for the end of a line in place of a code point. */
const lineEnd = -1
const newline = 10

/** What precedes a place. */
const lineStart = 0
const otherChar = 1
const wordChar = 2

const isWord = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95

const kindOf = (code: number): number => (isWord(code) ? wordChar : otherChar)

const kindBefore = (text: string, at: number): number => {
  const code = at > 0 ? text.charCodeAt(at - 1) : newline
  return code === newline ? lineStart : kindOf(code)
}

const codeAt = (text: string, at: number, end: number): number => {
  const code = at < end ? text.codePointAt(at) : undefined
  return code === undefined || code === newline ? lineEnd : code
}

const widthOf = (code: number): number => (code > 0xffff ? 2 : 1)

/** The assertions that hold between a character and the next. */
const assertionsBetween = (before: number, code: number): number =>
  (before === lineStart ? assertions.lineStart | assertions.textStart : 0) |
  (code === lineEnd ? assertions.lineEnd | assertions.textEnd : 0) |
  ((before === wordChar) === isWord(code) ? assertions.noWordBoundary : assertions.wordBoundary)

/**
 * States are sets of instructions that wait for the next character. A transition leads to one of them, or is not known yet, or completes a match. The
 * first three states have read nothing of a match; they differ in what precedes them.
 */
const unknown = 0
const matched = 1
const firstState = 2
const lastFresh = firstState + wordChar

/** Characters with a column in the table of transitions. */
const columnBits = 7
const columns = 1 << columnBits

/** Numbers remembered before the memory starts afresh: 8 bytes each at most. */
const maxRemembered = 500_000

/** Characters in the table that are passed at once, and moves between two pauses. One move follows each instruction once at most. */
const strideChars = 16_384
const movesPerPause = 32

/** Matches one pattern. Mutable, because it remembers transitions: make one for each search, and run one search at a time. */
export class PatternMatcher {
  private readonly pattern: Pattern
  /** The step in which an instruction was last followed, and last added to the next ones. */
  private readonly followed: Float64Array
  private readonly added: Float64Array
  private step = 0
  private readonly stack: Array<number> = []

  private sets: Array<ReadonlyArray<number>> = []
  private befores: Array<number> = []
  private states = new Map<string, number>()
  private table = new Int32Array(0)
  private others: Array<Map<number, number>> = []
  private remembered = 0

  private state = unknown
  private from = 0
  /** Moves in this search and those before. */
  private moves = 0

  constructor(pattern: Pattern) {
    this.pattern = pattern
    this.followed = new Float64Array(pattern.instructions.length)
    this.added = new Float64Array(pattern.instructions.length)
    this.forget()
  }

  private forget(): void {
    this.sets = [[], []]
    this.befores = [lineStart, lineStart]
    this.others = [new Map(), new Map()]
    this.states = new Map()
    this.remembered = 0
    this.table = new Int32Array(columns * 16)
    for (const before of [lineStart, otherChar, wordChar]) this.addState([this.pattern.start], before)
  }

  private stateOf(set: ReadonlyArray<number>, before: number): number {
    const key = `${before} ${set.join()}`
    const same = this.states.get(key)
    if (same !== undefined) return same
    const state = this.addState(set, before)
    this.states.set(key, state)
    return state
  }

  private addState(set: ReadonlyArray<number>, before: number): number {
    const state = this.sets.length
    this.sets.push(set)
    this.befores.push(before)
    this.others.push(new Map())
    this.remembered += columns + set.length
    if (this.table.length < this.sets.length * columns) {
      const larger = new Int32Array(this.table.length * 2)
      larger.set(this.table)
      this.table = larger
    }
    return state
  }

  /** Follows a thread up to the characters that it reads, in order of preference, and adds what comes after this one. Returns whether it is a match. */
  private follow(entry: number, holding: number, code: number, next: Array<number>): boolean {
    const { added, followed, pattern, stack, step } = this
    stack.push(entry)
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (followed[at] === step) continue
      followed[at] = step
      const one = pattern.instructions[at]
      if (one?._tag === "Read") {
        if (code === lineEnd || added[one.next] === step || !one.accepts(code)) continue
        added[one.next] = step
        next.push(one.next)
      } else if (one?._tag === "Either") stack.push(one.second, one.first)
      else if (one?._tag === "Skip") stack.push(one.next)
      else if (one?._tag === "Check" && (one.needs & ~holding) === 0) stack.push(one.next)
      else if (one?._tag === "Match") {
        stack.length = 0
        return true
      }
    }
    return false
  }

  /** The state after a character, computed. */
  private transition(state: number, code: number): number {
    const before = this.befores[state] ?? lineStart
    const holding = assertionsBetween(before, code)
    const next: Array<number> = []
    this.step += 1
    for (const entry of this.sets[state] ?? []) if (this.follow(entry, holding, code, next)) return matched
    if (code === lineEnd) return firstState
    if (next.length === 0) return firstState + kindOf(code)
    const { start } = this.pattern
    if (this.added[start] !== this.step) next.push(start)
    return this.stateOf(
      next.sort((one, other) => one - other),
      kindOf(code)
    )
  }

  /** Moves to the state after a character. */
  private advance(code: number): void {
    const known =
      code >= 0 && code < columns ? this.table[(this.state << columnBits) | code] : this.others[this.state]?.get(code)
    if (known !== undefined && known !== unknown) {
      this.state = known
      return
    }
    if (this.remembered >= maxRemembered) {
      const [set = [], before = lineStart] = [this.sets[this.state], this.befores[this.state]]
      this.forget()
      if (this.state > lastFresh) this.state = this.stateOf(set, before)
    }
    const next = this.transition(this.state, code)
    if (code >= 0 && code < columns) this.table[(this.state << columnBits) | code] = next
    else {
      this.others[this.state]?.set(code, next)
      this.remembered += 8
    }
    this.state = next
  }

  /** Passes over characters whose transitions are in the table. Returns the offset of the first other one. */
  private skim(text: string, begin: number, end: number): number {
    const { table } = this
    let { from, state } = this
    let at = begin
    while (at < end) {
      const code = text.charCodeAt(at)
      if (code >= columns) break
      const next = table[(state << columnBits) | code] ?? unknown
      if (next < firstState) break
      at += 1
      state = next
      if (next <= lastFresh) from = at
    }
    this.state = state
    this.from = from
    return at
  }

  /** Finds the first line with a match between two offsets. A search may begin within a line, and ends with one. */
  *line(text: string, begin = 0, end = text.length): SlicedWork<FoundLine | undefined> {
    this.state = firstState + kindBefore(text, begin)
    this.from = begin
    let breaks = 0
    let start = begin
    for (let at = begin; ;) {
      this.moves += 1
      if (this.moves % movesPerPause === 0) yield
      const until = Math.min(end, at + strideChars)
      at = this.skim(text, at, until)
      if (at < until || at === end) {
        const code = codeAt(text, at, end)
        this.advance(code)
        if (this.state === matched) return { breaks, start, from: this.from }
        if (at >= end) return undefined
        at += widthOf(code)
        if (this.state <= lastFresh) this.from = at
        if (code === lineEnd) {
          breaks += 1
          start = at
        }
      }
    }
  }

  /** Finds the first match in a line that begins at or after an offset of that line: of several, the one that a backtracking engine would find. */
  *span(text: string, begin: number, end = text.length): SlicedWork<Span | undefined> {
    const { start } = this.pattern
    let entries = [start]
    let origins = [begin]
    let before = kindBefore(text, begin)
    let found: Span | undefined
    for (let at = begin; ;) {
      this.moves += 1
      if (this.moves % movesPerPause === 0) yield
      const code = codeAt(text, at, end)
      const holding = assertionsBetween(before, code)
      const next: Array<number> = []
      const nextOrigins: Array<number> = []
      this.step += 1
      for (let index = 0; index < entries.length; index += 1) {
        const origin = origins[index] ?? at
        const isMatch = this.follow(entries[index] ?? start, holding, code, next)
        while (nextOrigins.length < next.length) nextOrigins.push(origin)
        if (!isMatch) continue
        found = { start: origin, end: at }
        break
      }
      at += widthOf(code)
      if (code === lineEnd || (found !== undefined && next.length === 0)) return found
      if (found === undefined && this.added[start] !== this.step) {
        next.push(start)
        nextOrigins.push(at)
      }
      entries = next
      origins = nextOrigins
      before = kindOf(code)
    }
  }
}
