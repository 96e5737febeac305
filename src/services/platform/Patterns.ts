/**
 * Compiles patterns from outside and runs what looks for them. RE2's syntax and its compiler come from `re2js`, which is loaded with the first pattern;
 * its programs run in `PatternMatcher`, because its own engine cannot pause.
 */

import { Clock, Effect, Schema, Semaphore } from "effect"
import { errorText } from "../../domain/text/ErrorText.ts"
import { type Instruction } from "../../domain/text/Pattern.ts"
import { checkedPattern } from "../../domain/text/PatternSyntax.ts"
import { slice, type SlicedWork, sliceMillis } from "../../domain/text/SlicedWork.ts"

/** A pattern is not used: it is blank, invalid, too large or not supported, or takes too long on this text. */
export class BadPattern extends Schema.TaggedError<BadPattern>()("BadPattern", { message: Schema.String }) {}

/** An instruction of a program of `re2js`, whose `op` is Go's, in the order of its package `regexp/syntax`. */
interface ProgramInstruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly matchRune: (codePoint: number) => boolean
}

const instructionOf = (one: ProgramInstruction): Instruction => {
  const { arg, op, out: next } = one
  switch (op) {
    case 1:
    case 2:
      return { _tag: "Either", first: next, second: arg }
    case 3:
    case 7:
      return { _tag: "Skip", next }
    case 4:
      return { _tag: "Check", needs: arg, next }
    case 6:
      return { _tag: "Match" }
    case 8:
    case 9:
    case 10:
    case 11:
      return { _tag: "Read", accepts: (codePoint) => one.matchRune(codePoint), next }
    default:
      return { _tag: "Fail" }
  }
}

/** Options for compiling a pattern. */
interface PatternOptions {
  readonly ignoresCase: boolean
}

/** Compiles a pattern in the syntax of RE2; `\u0041` and `\u{41}` are read, too. */
export const compile = Effect.fnUntraced(function* (pattern: string, { ignoresCase }: PatternOptions) {
  const source = yield* Effect.mapError(
    Effect.fromResult(checkedPattern(pattern)),
    (message) => new BadPattern({ message })
  )
  const { RE2JS } = yield* Effect.promise(() => import("re2js"))
  const compiled = yield* Effect.try({
    try: () => RE2JS.compile(source, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0),
    catch: (error) => new BadPattern({ message: errorText(error).replace(/^error parsing regexp: /, "") })
  })
  const { inst, start }: { readonly inst: ReadonlyArray<ProgramInstruction>; readonly start: number } =
    compiled.re2Input.prog
  return { instructions: inst.map(instructionOf), start }
})

/** The slices that one pattern may take on all texts of a search: a minute, of which a busy machine gives it a part. */
const maxSlices = 60_000 / sliceMillis

/** One search works at a time, and everything else has its turn after each of its slices, however many searches there are. */
const searching = Semaphore.makeUnsafe(1)

/** Runs the work of a pattern in slices. Interruption ends it after the slice. */
export const run = Effect.fnUntraced(function* <A>(work: SlicedWork<A>) {
  const turn = Clock.clockWith((clock) => Effect.as(Effect.yieldNow, slice(work, clock)))
  for (let slices = 0; slices < maxSlices; slices += 1) {
    const step = yield* searching.withPermit(turn)
    if (step.done === true) return step.value
  }
  return yield* new BadPattern({ message: "it takes too long on this text; use a simpler one" })
})
