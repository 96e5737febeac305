import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Result } from "effect"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import { lineEnd } from "../../../src/domain/text/Lines.ts"
import { type Pattern, PatternMatcher, type Span } from "../../../src/domain/text/Pattern.ts"
import { maxPatternParts } from "../../../src/domain/text/PatternSyntax.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import * as Patterns from "../../../src/services/platform/Patterns.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const compile = (pattern: string, ignoresCase = false): Promise<Pattern> =>
  Effect.runPromise(Patterns.compile(pattern, { ignoresCase }))

/** The lines of a text that match, by number from 0, each with its first match as offsets in the line. */
const matchesIn = (pattern: Pattern, text: string): ReadonlyArray<readonly [line: number, span: Span | undefined]> => {
  const matcher = new PatternMatcher(pattern)
  const found: Array<readonly [number, Span | undefined]> = []
  for (let at = 0, number = 0; at <= text.length; number += 1) {
    const line = Work.runSync(matcher.line(text, at))
    if (line === undefined) break
    number += line.breaks
    const end = Work.runSync(lineEnd(text, line.from))
    const span = Work.runSync(matcher.span(text, line.from, end))
    found.push([number, span && { start: span.start - line.start, end: span.end - line.start }])
    at = end + 1
  }
  return found
}

const nativeMatches = (expression: RegExp, text: string): ReturnType<typeof matchesIn> =>
  text.split("\n").flatMap((line, number) => {
    const found = expression.exec(line)
    return found === null ? [] : [[number, { start: found.index, end: found.index + found[0].length }]]
  })

/** Writes expressions that mean the same to RE2 and to JavaScript: no repeated group matches nothing. */
class Writer {
  private readonly random: () => number
  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  pick<A>(first: A, ...others: ReadonlyArray<A>): A {
    return others[Math.floor(this.random() * (others.length + 1)) - 1] ?? first
  }

  /** An expression, and whether it can match nothing. */
  expression(depth: number): readonly [text: string, isEmpty: boolean] {
    const branches = Array.from({ length: this.pick(1, 1, 2, 3) }, () => this.sequence(depth))
    return [branches.map(([text]) => text).join("|"), branches.some(([, isEmpty]) => isEmpty)]
  }

  private sequence(depth: number): readonly [string, boolean] {
    const items = Array.from({ length: this.pick(1, 2, 3) }, () => this.item(depth))
    return [items.map(([text]) => text).join(""), items.every(([, isEmpty]) => isEmpty)]
  }

  private item(depth: number): readonly [string, boolean] {
    if (this.random() < 0.12) return [this.pick("^", "$", "\\b", "\\B"), true]
    const [atom, isEmpty] = this.atom(depth)
    if (isEmpty || this.random() < 0.5) return [atom, isEmpty]
    const count = this.pick("*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}")
    return [atom + count + this.pick("", "", "?"), count.startsWith("*") || count.startsWith("?") || count === "{0,2}"]
  }

  private atom(depth: number): readonly [string, boolean] {
    if (depth > 0 && this.random() < 0.3) {
      const [inner, isEmpty] = this.expression(depth - 1)
      return [`${this.pick("(", "(?:", "(?<name>")}${inner})`.replace("(?<name>", () => this.name()), isEmpty]
    }
    return [
      this.pick("a", "b", "A", "1", " ", "é", "文", "😀", ".", "[ab]", "[^a]", "\\w", "\\d", "\\W", "\\.", "\\u0061"),
      false
    ]
  }

  private names = 0
  private name(): string {
    this.names += 1
    return `(?<n${this.names}>`
  }

  text(): string {
    return Array.from({ length: Math.floor(this.random() * 40) }, () =>
      this.pick("a", "b", "A", "B", "1", " ", "_", ".", "é", "É", "文", "😀", "\n", "\n")
    ).join("")
  }
}

describe("a pattern", () => {
  it("finds the lines and the places that a JavaScript expression finds", async () => {
    const writer = new Writer(11)
    for (let run = 0; run < runsOf(10_000, 150); run += 1) {
      const [pattern] = writer.expression(2)
      // JavaScript's engine finds `\\B` within a character of two units.
      const wide = pattern.includes("\\B") ? "文" : "😀"
      const ignoresCase = writer.pick(false, true)
      const compiled = await compile(pattern, ignoresCase)
      const expression = new RegExp(pattern, ignoresCase ? "iu" : "u")
      for (const text of [writer.text(), writer.text()].map((written) => written.replaceAll("😀", wide))) {
        assert.deepStrictEqual(
          matchesIn(compiled, text),
          nativeMatches(expression, text),
          `${expression} in ${JSON.stringify(text)}`
        )
      }
    }
  })

  it("finds the first match from a place in a line, with what precedes it in sight", async () => {
    const writer = new Writer(12)
    for (let run = 0; run < runsOf(4_000, 150); run += 1) {
      const [pattern] = writer.expression(1)
      const line = writer.text().replaceAll("\n", "").replaceAll("😀", "")
      const from = Math.floor(line.length / 2)
      const matcher = new PatternMatcher(await compile(pattern))
      const expression = new RegExp(pattern, "gu")
      expression.lastIndex = from
      const found = expression.exec(line)
      const expected = found === null ? undefined : { start: found.index, end: found.index + found[0].length }
      assert.deepStrictEqual(Work.runSync(matcher.span(line, from)), expected, `${expression} in ${line} from ${from}`)
      assert.strictEqual(Work.runSync(matcher.line(line, from)) !== undefined, found !== null)
    }
  })

  it("is found by a matcher that has forgotten what it learnt, too", async () => {
    const line = restless(sizeOf(20_000, 8_000))
    const matcher = new PatternMatcher(await compile("a(?:a|b){120}c|b{20}a"))
    assert.isUndefined(Work.runSync(matcher.line(line)))
    assert.isDefined(Work.runSync(matcher.line(`${line}${"b".repeat(20)}a`)))
  })

  it.each<readonly [pattern: string, line: string]>([
    ["(?i)error", "an ERROR"],
    ["(?i:error)s", "ERRORs"],
    ['f {x} \\"a\\"', 'f {x} "a"'],
    ["interface\\{", "interface{"],
    ["\\u{1F600}\\ud83d\\ude00\\u4e2d", "😀😀中"],
    ["[[:digit:]]+\\z", "a1"],
    ["\\p{Greek}\\pL\\P{L}", "αβ1"],
    ["^.$", "😀"],
    [".", "\udc80"]
  ])("in other dialects: %s", async (pattern, line) => {
    assert.strictEqual(matchesIn(await compile(pattern), line).length, 1)
  })
})

const refusal = (pattern: string) =>
  Effect.runPromise(
    Effect.map(Effect.flip(Patterns.compile(pattern, { ignoresCase: false })), ({ message }) => message)
  )

describe("a pattern that is refused", () => {
  const refused: ReadonlyArray<readonly [pattern: string, message: string]> = [
    ["a(?=b)", "look-ahead and look-behind are not supported"],
    ["a(?!b)", "look-ahead and look-behind are not supported"],
    ["(?<=a)b", "look-ahead and look-behind are not supported"],
    ["(?<!a)b", "look-ahead and look-behind are not supported"],
    ["(a)\\1", "back-references are not supported"],
    ["(?<a>a)\\k<a>", "back-references are not supported"],
    ["\\Qa\\E", "\\Q and \\E are not supported"],
    ["(a{1,1000}){1,1000}", "it repeats too much: written out it has more than 1,000 parts"],
    ["((a{9}){9}){9}b{300}", "it repeats too much: written out it has more than 1,000 parts"],
    [`(?:${"ab".repeat(400)}){2}`, "it repeats too much: written out it has more than 1,000 parts"],
    ["\\p{L}{30}".repeat(10), "it repeats too much: written out it has more than 1,000 parts"],
    ["[b-\u{1e942}]".repeat(100), "it repeats too much: written out it has more than 1,000 parts"],
    ["\\pL|".repeat(200), "it repeats too much: written out it has more than 1,000 parts"],
    ["a".repeat(1_000_000), "it has 1,000,000 characters; a pattern may have 1,000"],
    [Array.from({ length: 5_000 }, (_, n) => `w${n}`).join("|"), "it has 28,889 characters; a pattern may have 1,000"],
    ["a(b", "missing closing ): `a(b`"],
    ["[", "missing closing ]: `[`"],
    ["a**", "invalid nested repetition operator: `**`"],
    ["\\", "trailing backslash at end of expression"],
    ["(?<n>a)(?<n>b)", "duplicate capture group name: `n`"],
    ["\\p{No}{2\\p{Such}", "invalid character class range: `\\p{Such}`"]
  ]
  for (const [pattern, message] of refused) {
    it(`in one line: ${pattern.slice(0, 30)}`, async () => assert.strictEqual(await refusal(pattern), message))
  }

  it("is never compiled to more than its bound, whatever it looks like", async () => {
    const random = seededRandom(5)
    const pieces = [
      "a",
      "\\d",
      "(",
      ")",
      "(?:",
      "[",
      "]",
      "[^",
      "[]x]",
      "[[:alpha:]",
      "]",
      "{",
      "}",
      "{9}",
      "{1,30}",
      "{200}",
      "{2,}",
      "|",
      "*",
      "+?",
      "?",
      "\\",
      "\\]",
      "\\[",
      "\\x{61}",
      "\\pL",
      "\\p{Lu}",
      "é-文",
      "-",
      "^",
      "$",
      ".",
      ":",
      "\\u0041",
      "😀"
    ] as const
    let compiled = 0
    for (let run = 0; run < runsOf(30_000, 400); run += 1) {
      const pattern = Array.from(
        { length: 1 + random() * 12 },
        () => pieces[Math.floor(random() * pieces.length)]
      ).join("")
      const result = await Effect.runPromise(Effect.result(Patterns.compile(pattern, { ignoresCase: random() < 0.5 })))
      if (Result.isFailure(result)) assert.notInclude(result.failure.message, "\n")
      else {
        compiled += 1
        // And where a match begins and ends.
        assert.isAtMost(result.success.instructions.length, maxPatternParts + 4, pattern)
      }
    }
    assert.isAbove(compiled, 50)
  })
})

/** Patterns whose time on a text grows with a power of its length, or without bound, where an engine tries one way after the other. */
const hostile = [
  "\\w*\\w*\\w*\\d",
  "[^c]*[^c]*[^c]*c",
  "a*a*a*c",
  "(?:a{1,100}){1,4}c",
  "^(([a-z])+.)+[A-Z]",
  "(a+)+$",
  "(a|a)*b",
  "(a|aa)+$",
  "(.*)*x",
  "(?:a?){200}a{200}c",
  "(.*a){12}b",
  "([a-zA-Z]+)*\\d",
  "(a*)*(a*)*(a*)*c",
  "^(a?){100}$",
  ".*.*=.*;",
  "(x+x+)+y|a{3}b",
  "a.{200}c",
  "\\s+$|(a+)*c"
] as const

/** Characters among which no stretch is like another. */
const restless = (length: number): string => {
  const random = seededRandom(3)
  return Array.from({ length }, () => (random() < 0.5 ? "a" : "b")).join("")
}

/** A clock at each look of which a slice is over, however fast the machine is. */
const tickingClock = async (): Promise<Clock.Clock> => {
  let now = 0
  return {
    ...(await Effect.runPromise(Clock.Clock)),
    currentTimeMillisUnsafe: () => (now += Work.sliceMillis)
  }
}

describe("the time of a pattern", () => {
  it.each(hostile)("grows with the text, in short slices: %s", async (pattern) => {
    const compiled = await compile(pattern)
    const length = runsOf(99_000, 6_000)
    // No more than one move for each character, which looks at each instruction once at most.
    for (const line of [`${"a".repeat(length)}!`, `${restless(length)}=`]) {
      assert.isAtMost([...new PatternMatcher(compiled).line(line)].length, line.length / 32)
    }
    const places = [...new PatternMatcher(compiled).span("a".repeat(length), 0)].length
    assert.isTrue(Math.abs(places - length / 32) <= 1, `${places}`)
  })

  it("is that of a look at each character where the characters repeat, on a line of up to 100 MB", async () => {
    const line = "a".repeat(runsOf(100_000_000, 2_500_000))
    for (const pattern of hostile) {
      const pauses = [...new PatternMatcher(await compile(pattern)).line(line)].length
      assert.isAtLeast(pauses, Math.floor(line.length / 1_000_000))
      assert.isAtMost(pauses, line.length / 100_000)
    }
  })

  it("leaves other fibers their turns, and ends with interruption", async () => {
    const line = restless(sizeOf(200_000, 100_000))
    const pattern = await compile("a(?:a|b){200}c")
    let slices = 0
    const work = function* (): Work.SlicedWork<unknown> {
      for (const _ of new PatternMatcher(pattern).line(line)) {
        slices += 1
        yield
      }
      return undefined
    }
    const turnsWhile = Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Patterns.run(work()))
      let turns = 0
      for (; turns < sizeOf(200, 40); turns += 1) yield* Effect.yieldNow
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
      const before = slices
      for (let after = 0; after < 20; after += 1) yield* Effect.yieldNow
      return { before, turns }
    })
    const { before, turns } = await Effect.runPromise(
      Effect.provideService(turnsWhile, Clock.Clock, await tickingClock())
    )
    assert.strictEqual(slices, before)
    assert.isAbove(before, 0)
    assert.isAtMost(before, turns * 20)
  })

  it("of many at once is one turn of one of them at a time", async () => {
    const line = restless(sizeOf(4_000, 2_000))
    const pattern = await compile("a(?:a|b){100}c")
    let tick = 0
    const turns = new Map<number, Set<number>>()
    const count = Effect.forever(
      Effect.suspend(() => {
        tick += 1
        return Effect.yieldNow
      })
    )
    const search = (number: number) => {
      const work = function* (): Work.SlicedWork<unknown> {
        for (const _ of new PatternMatcher(pattern).line(line)) {
          turns.set(tick, (turns.get(tick) ?? new Set()).add(number))
          yield
        }
        return undefined
      }
      return Patterns.run(work())
    }
    const counting = Effect.runFork(count)
    const clock = await tickingClock()
    await Promise.all(
      Array.from({ length: 6 }, (_, number) =>
        Effect.runPromise(Effect.provideService(search(number), Clock.Clock, clock))
      )
    )
    await Effect.runPromise(Fiber.interrupt(counting))
    assert.isAbove(turns.size, 20)
    assert.isAtMost(Math.max(...[...turns.values()].map(({ size }) => size)), 1)
  })

  it("is bounded for a whole search", async () => {
    const clock = await tickingClock()
    const endless = function* (): Work.SlicedWork<never> {
      for (;;) yield
    }
    const { message } = await Effect.runPromise(
      Effect.flip(Patterns.run(endless())).pipe(Effect.provideService(Clock.Clock, clock))
    )
    assert.strictEqual(message, "it takes too long on this text; use a simpler one")
  })
})
