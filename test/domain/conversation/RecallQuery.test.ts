import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readQuery, wordsIn } from "../../../src/domain/conversation/RecallQuery.ts"
import { PatternMatcher } from "../../../src/domain/text/Pattern.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { compileQuery } from "../../../src/services/session/TempStore.ts"

const compiled = (query: string) => Effect.runPromise(compileQuery(query))
const found = async (query: string, line: string): Promise<string | undefined> => {
  const { pattern } = await compiled(query)
  const match = Work.runSync(new PatternMatcher(pattern).span(line, 0))
  return match === undefined ? undefined : line.slice(match.start, match.end)
}

describe("a query", () => {
  it.each<readonly [string, string, string | undefined]>([
    ["time(out)?", "a timeout of 5 s", "timeout"],
    ["TIMEOUT", "a timeout", undefined],
    ["timeout", "A TIMEOUT", "TIMEOUT"],
    ["[A-Z]+_X", "max_x MAX_X", "MAX_X"],
    ["\\S+\\.ts", "See SRC/A.TS", "SRC/A.TS"],
    ["(?i)Error", "error: no", "error"],
    ["(?x)Error", "Error: no", "Error"],
    ["foo(bar", "call foo(bar)", "foo(bar"],
    [" b ", "ab a b c", " b "],
    ["^- ", "- item", "- "],
    ["^x", "ax", undefined],
    ["^.*lock.*$", "the lock is", "lock"],
    [".*", "any", ""],
    ["end\\.*", "the end...", "end..."]
  ])("%s in %s", async (query, line, expected) => {
    assert.strictEqual(await found(query, line), expected)
  })

  it.each(["", "  ", "(?i)"])("that is blank is none: %j", (query) => {
    assert.isUndefined(readQuery(query))
  })

  it.each(["(a{100}){100}", "(a)\\1", "a(?=b)", "a(b"])(
    "that is no pattern is searched for as text, and says why: %s",
    async (query) => {
      assert.notInclude((await compiled(query)).problem ?? "\n", "\n")
      assert.strictEqual(await found(query, `it says ${query} here`), query)
      assert.isUndefined(await found(query, "a".repeat(100_000)))
    }
  )

  it("that is too long is refused", async () => {
    const { message } = await Effect.runPromise(Effect.flip(compileQuery("(".repeat(1_001))))
    assert.strictEqual(message, "it has 1,001 characters; a pattern may have 1,000")
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
    assert.deepStrictEqual(readQuery(pattern)?.words, expected)
  })

  it("are counted on a line", () => {
    const counted = (words: ReadonlyArray<string>, line: string) => Work.runSync(wordsIn(words, line, 0, line.length))
    assert.deepStrictEqual(counted(["lock", "session"], "The SESSION has a lock"), {
      start: 18,
      end: 22,
      present: 2,
      whole: 2
    })
    assert.deepInclude(counted(["lock", "session"], "blocks of a session"), { present: 2, whole: 1 })
    assert.strictEqual(counted(["lock", "session"], "nothing").present, 0)
  })

  it("are found anywhere in a long text", () => {
    for (const at of [0, 32_760, 32_766, 32_768, 99_990]) {
      const line = `${"-".repeat(at)} session ${"-".repeat(50_000)}`
      assert.deepStrictEqual(Work.runSync(wordsIn(["session"], line, 0, line.length)), {
        start: at + 1,
        end: at + 8,
        present: 1,
        whole: 1
      })
    }
  })
})
