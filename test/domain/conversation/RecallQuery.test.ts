import { assert, describe, it } from "@effect/vitest"
import { matchIn, parseQuery, type RecallQuery, wordsIn } from "../../../src/domain/conversation/RecallQuery.ts"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { runsOf } from "../../support/runs.ts"

const parsed = (pattern: string): RecallQuery => parseQuery(pattern) ?? assert.fail(`${pattern} is blank`)
const found = (pattern: string, line: string): string | undefined => {
  const match = Work.runSync(matchIn(parsed(pattern), line))
  return match === undefined ? undefined : line.slice(match.start, match.end)
}

describe("a pattern", () => {
  it.each<readonly [string, string, string | undefined]>([
    ["time(out)?", "a timeout of 5 s", "timeout"],
    ["TIMEOUT", "a timeout", undefined],
    ["timeout", "A TIMEOUT", "TIMEOUT"],
    ["[A-Z]+_X", "max_x MAX_X", "MAX_X"],
    ["\\S+\\.ts", "See SRC/A.TS", "SRC/A.TS"],
    ["(?i)Error", "Error: no", "Error"],
    ["foo(bar", "call foo(bar)", "foo(bar"],
    [" b ", "ab a b c", " b "],
    ["^- ", "- item", "- "],
    ["^x", "ax", undefined],
    ["^.*lock.*$", "the lock is", "lock"],
    [".*", "any", ""],
    ["end\\.*", "the end...", "end..."]
  ])("%s in %s", (pattern, line, expected) => {
    assert.strictEqual(found(pattern, line), expected)
  })

  it.each(["", "  ", "(?i)"])("that is blank is none: %j", (pattern) => {
    assert.isUndefined(parseQuery(pattern))
  })

  it.each([
    "(a+)+$",
    "(a|a)*b",
    "(\\w+\\s?)*!",
    "((a{9}){9}){9}",
    "a{1000}",
    "(.*)*x",
    "a*a*a*a*b",
    "x*x*x*x*x*x*",
    "(?:a?){40}a",
    "(a*)\\1*(b\\1)+"
  ])("that could take too long is searched as text: %s", (pattern) => {
    const { problem } = parsed(pattern)
    assert.match(problem ?? "", /could take too long/)
    assert.strictEqual(found(pattern, `it says ${pattern} here`), pattern)
    assert.isUndefined(found(pattern, "a".repeat(100_000)))
  })

  it.each([
    "a.*b",
    "(foo|bar)",
    "(ab)+",
    "[(+*]+",
    "\\(\\+\\)*",
    "(?<n>x)?",
    "\\d{4}-\\d\\d",
    "(\\w+) = (\\w+)",
    "a|b|c",
    "(?:^|\\W)x"
  ])("that cannot take long is searched as it is: %s", (pattern) => {
    assert.isUndefined(parsed(pattern).problem)
  })

  it("matches where the regular expression does, and never throws", () => {
    const random = seededRandom(7)
    const text = (alphabet: string, length: number) =>
      Array.from(
        { length: Math.floor(random() * length) },
        () => alphabet[Math.floor(random() * alphabet.length)]
      ).join("")
    let compared = 0
    for (let run = 0; run < runsOf(20_000, 1_000); run += 1) {
      const pattern = text("ab.*+?|()[]^$\\\\{}12,", 9)
      const query = parseQuery(pattern)
      if (query === undefined) continue
      const line = text("ab.*12()", 12)
      const match = Work.runSync(matchIn(query, line)) !== undefined
      if (query.problem === undefined) compared += 1
      const expected = query.problem === undefined ? new RegExp(pattern, "iu").test(line) : line.includes(pattern)
      assert.strictEqual(match, expected, `${pattern} in ${line}`)
    }
    assert.isAbove(compared, 100)
  })

  it("takes little time on the worst line, in slices", () => {
    for (const pattern of ["a*b", "a*a*b", "a*a*a*b", "a?a?a?a?a?a?a?a?a?a?a?a?b"]) {
      const work = matchIn(parsed(pattern), "a".repeat(200))
      let longest = 0
      for (let done = false; !done;) {
        const start = performance.now()
        done = work.next().done === true
        longest = Math.max(longest, performance.now() - start)
      }
      assert.isBelow(longest, 1_500, pattern)
    }
  })

  it("finds matches anywhere in a long line, with their place", () => {
    for (const at of [0, 1_999, 2_000, 3_999, 7_000, 49_990]) {
      const line = `${" ".repeat(at)}needle${" ".repeat(50_000 - at)}`
      assert.deepStrictEqual(Work.runSync(matchIn(parsed("need.?le"), line)), { start: at, end: at + 6, weight: 2 })
    }
    assert.strictEqual(found("x$", `x${"-".repeat(9_000)}`), undefined)
    assert.strictEqual(found("-$", `x${"-".repeat(9_000)}`), "-")
    assert.strictEqual(found("^-", `x${"-".repeat(9_000)}`), undefined)
  })

  it("weighs whole words more", () => {
    assert.strictEqual(Work.runSync(matchIn(parsed("test"), "the test runs"))?.weight, 2)
    assert.strictEqual(Work.runSync(matchIn(parsed("test"), "tests run"))?.weight, 1)
  })
})

describe("the words of a pattern", () => {
  it.each<readonly [string, ReadonlyArray<string>]>([
    ["session lock retries", ["session", "lock", "retries"]],
    ["\\bsrc/a.ts\\b: broken", ["src/a.ts", "broken"]],
    ["is it so", []],
    ["timeout", []],
    ["timeout(", ["timeout"]],
    ["Lock lock LOCK x1y", ["lock", "x1y"]]
  ])("%s", (pattern, expected) => {
    assert.deepStrictEqual(parsed(pattern).words, expected)
  })

  it("are counted on a line", () => {
    assert.deepStrictEqual(wordsIn(parsed("lock session"), "The SESSION has a lock"), { start: 18, end: 22, weight: 4 })
    assert.strictEqual(wordsIn(parsed("lock session"), "blocks of a session")?.weight, 3)
    assert.isUndefined(wordsIn(parsed("lock session"), "nothing"))
  })
})
