import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { distance } from "../../../src/domain/text/EditDistance.ts"
import { edit, type EditStrategy, hasCrLf } from "../../../src/domain/tools/Edit.ts"
import { corpus } from "../../support/corpus.ts"
import { runsOf } from "../../support/runs.ts"

const once = (content: string, oldText: string, newText: string) => edit(content, { oldText, newText, places: 1 })

/** What came of an edit: `strategy: text`, or the fault and how many places were found. */
const told = (result: ReturnType<typeof edit>): string =>
  Result.isSuccess(result)
    ? `${result.success.strategy}: ${result.success.text}`
    : `${result.failure.type} ${result.failure.found}`

const cases =
  corpus<
    readonly [rule: string, content: string, oldText: string, newText: string, strategy: EditStrategy, after: string]
  >("replaced-texts")

describe("an edit", () => {
  for (const [rule, content, oldText, newText, strategy, after] of cases) {
    it(`${strategy}: ${rule}`, () => {
      assert.strictEqual(told(once(content, oldText, newText)), `${strategy}: ${after}`)
    })
  }

  it("no match", () => {
    assert.strictEqual(told(once("one\ntwo\n", "three", "four")), "edit_no_occurrence_found 0")
    assert.strictEqual(
      told(once("one\ntwo\n", "quite another text than this file holds", "x")),
      "edit_no_occurrence_found 0"
    )
    assert.strictEqual(told(once("", "a", "b")), "edit_no_occurrence_found 0")
    assert.strictEqual(told(once("a\n", "\n\n  \n", "b")), "edit_no_occurrence_found 0")
  })

  it("more matches than expected", () => {
    assert.strictEqual(told(once("a\na\n", "a", "b")), "edit_expected_occurrence_mismatch 2")
    assert.strictEqual(told(once("  x()\n\tx()\n", "   x()\n", "y()\n")), "edit_expected_occurrence_mismatch 2")
    assert.strictEqual(
      told(edit("a\na\na\n", { oldText: "a", newText: "b", places: 2 })),
      "edit_expected_occurrence_mismatch 3"
    )
  })

  it("all matches on request", () => {
    assert.strictEqual(told(edit("a-a-a", { oldText: "a", newText: "aa", places: "any" })), "exact: aa-aa-aa")
    assert.strictEqual(told(edit("a-a-a", { oldText: "a", newText: "b", places: 3 })), "exact: b-b-b")
    assert.strictEqual(
      told(edit(" x( )\n   x( )\n", { oldText: "x()", newText: "y()", places: "any" })),
      "regex:  y()\n   y()\n"
    )
  })

  it.each([
    ["", false],
    ["a\r\nb\n", false],
    ["\na\r\nb\r\n", true],
    ["\n\na\r\n", false],
    ["a\r\n", true],
    ["\r\n", true]
  ])("the lines of %j end with CR LF: %s", (text, expected) => assert.strictEqual(hasCrLf(text), expected))

  it("no change", () => {
    assert.strictEqual(told(once("a\n", "a", "a")), "edit_no_change 0")
    assert.strictEqual(told(once("a\r\nb\r\n", "a\nb", "a\r\nb")), "edit_no_change 1")
  })

  it("a word does not match within a longer one", () => {
    assert.strictEqual(told(once("callx( )\n", "call x()", "y")), "edit_no_occurrence_found 0")
    assert.strictEqual(told(once("foo( )Bar\n", "foo()B", "y")), "edit_no_occurrence_found 0")
  })

  it("tokens match only at the beginning of lines", () => {
    assert.strictEqual(told(once("z = f( 1 )\n", "f(1)", "g(1)")), "edit_no_occurrence_found 0")
  })

  it("up to a tenth may differ, white space counts a tenth of that, and short texts must match", () => {
    const line = "0123456789".repeat(4)
    assert.strictEqual(told(once(`${line}\n`, `wxyz${line.slice(4)}`, "new")), "fuzzy: new\n")
    assert.strictEqual(told(once(`${line}\n`, `vwxyz${line.slice(5)}`, "new")), "edit_no_occurrence_found 0")
    const spaced = `${line.slice(0, 20)}          ${line.slice(20)}`
    assert.strictEqual(told(once(`${spaced}\n`, `wx${line.slice(2)}`, "new")), "fuzzy: new\n")
    assert.strictEqual(told(once("abcdefghi\n", "abcdefghX", "new")), "edit_no_occurrence_found 0")
    // 41 characters: four that differ and one blank are a tenth.
    const odd = `wxyz${line.slice(4)}e`
    assert.strictEqual(told(once(`${line} e\n`, odd, "new")), "fuzzy: new\n")
    assert.strictEqual(told(once(`${line}  e\n`, odd, "new")), "edit_no_occurrence_found 0")
  })

  it("keeps the better of two overlapping matches, and both of two separate ones", () => {
    const content = "first line of the text\nfirst line of the test\n"
    assert.strictEqual(told(once(content, "first line of the texts", "x")), "edit_expected_occurrence_mismatch 2")
    const twice = "alpha beta gamma delta\nalpha beta gamma delta\nalpha beta gamma delta\n"
    const two = "alpha beta gamma delte\nalpha beta gamma delta"
    assert.strictEqual(told(once(twice, two, "x")), "fuzzy: x\nalpha beta gamma delta\n")
  })
})

describe("an edit of a large file", () => {
  // Work is counted, not time: the cap is what bounds it. Without it these would take minutes.
  const line = (n: number) => `  value${n % 7} = compute(value${n % 5}, ${n % 3}) // and so on and on\n`
  const same = Array.from({ length: 30_000 }, (_, n) => line(n)).join("")

  it("gives up on a text that resembles all of it", () => {
    const wanted = Array.from({ length: 60 }, (_, n) => line(n + 3).replace("compute", "compare")).join("")
    assert.strictEqual(told(once(same, wanted, "x")), "edit_no_occurrence_found 0")
  })

  it("finds one match", () => {
    const content = `${same}// The one and only place of its kind in here\n${same}`
    const result = once(content, "// The one and only plaice of its kind in here", "// gone")
    assert.isTrue(told(result) === `fuzzy: ${same}// gone\n${same}`)
  })

  it("is fast with endless blank lines", () => {
    const content = "\n".repeat(200_000)
    assert.strictEqual(told(once(content, `${"\n".repeat(2_000)}x\n`, "y")), "edit_no_occurrence_found 0")
  })

  it("beyond 4 MiB matches only exactly", () => {
    const content = `${"x".repeat(5 * 1024 * 1024)}\n  last( )\n`
    assert.strictEqual(told(once(content, "last()", "first()")), "edit_no_occurrence_found 0")
    assert.isTrue(told(once(content, "last( )", "first()")) === `exact: ${content.replace("last( )", "first()")}`)
    const most = content.slice(-4 * 1024 * 1024)
    assert.isTrue(told(once(most, "last()", "first()")) === `regex: ${most.replace("last( )", "first()")}`)
  })
})

const Lines = Schema.Array(
  Schema.Literals(["a", "b", "  a", "\tb ", "", " ", "f(x)", "f( x )", "a b", "ab", "$1", "\\n", "ä", "a\r"])
)
const Small = Schema.Literals(["a", "b\n", "a\nb", "f(x)", "", "\n", "  a\n  b\n", "$&", "ä"])

describe("edits of any text", () => {
  it.prop(
    "a single exact match equals String.replace",
    [Lines, Small, Lines],
    ([before, newText, after]) => {
      const oldText = "<unique>\n  here"
      const content = [...before, oldText, ...after].join("\n").replaceAll("\r", "")
      assert.strictEqual(told(once(content, oldText, newText)), `exact: ${content.replace(oldText, () => newText)}`)
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.prop(
    "keeps lines before and after the match, whatever their line ends",
    [Lines, Lines, Schema.Literals(["\n", "\r\n"])],
    ([before, after, end]) => {
      const head = before.map((line) => `${line}${end}`).join("")
      const tail = after.map((line) => `${end}${line}`).join("")
      for (const [inFile, oldText, strategy] of [
        [`    here {${end}\t  there${end}    }`, "here {\nthere  \n}", "flexible"],
        [`    here{ there${end}    }`, "here {\n  there\n}", "regex"],
        [`    here it is, the very place {${end}    }`, "here is it, the very place {\n}", "fuzzy"]
      ] as const) {
        const result = once(head + inFile + tail, oldText, "now {\n  then\n}")
        const withEnds = (ends: string, last = end) =>
          `${strategy}: ${head}    now {${ends}      then${last}    }${tail}`
        // Among lines of both ends, those that are written may take either.
        const isMixed = end === "\n" && /\r\n/.test(head + tail)
        const ends = inFile.includes("\r") || end === "\r\n" ? "\r\n" : "\n"
        if (isMixed) {
          const either = ["\n", "\r\n"] as const
          assert.include(
            either.flatMap((ends) => either.map((last) => withEnds(ends, last))),
            told(result)
          )
        } else assert.strictEqual(told(result), withEnds(ends))
      }
    },
    { arbitrary: { runs: runsOf(300) } }
  )

  it.prop(
    "lines that repeat are found wherever they begin, each once",
    [Schema.Array(Schema.Literals(["a", "a", "b"])), Schema.NonEmptyArray(Schema.Literals(["a", "a", "b"]))],
    ([some, wanted]) => {
      // Also where a part of them precedes them.
      const lines = [...some, ...wanted.slice(0, -1), ...wanted, ...some]
      const after: Array<string> = []
      for (let at = 0; at < lines.length;) {
        const isHere = wanted.every((line, index) => lines[at + index] === line)
        after.push(isHere ? "  c" : `  ${lines[at]}`)
        at += isHere ? wanted.length : 1
      }
      const places = after.filter((line) => line === "  c").length
      const change = { oldText: ` ${wanted.join("\n")} `, newText: "c" }
      for (const given of ["any", Math.max(1, places)] as const) {
        assert.strictEqual(
          told(edit(lines.map((line) => `  ${line}`).join("\n"), { ...change, places: given })),
          places > 0 ? `flexible: ${after.join("\n")}` : "edit_no_occurrence_found 0"
        )
      }
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.prop(
    "always returns, and a successful edit changes something",
    [Lines, Small, Small],
    ([lines, oldText, newText]) => {
      const content = lines.join("\n")
      const result = edit(content, { oldText, newText, places: "any" })
      if (Result.isSuccess(result)) assert.notStrictEqual(result.success.text, content)
      else assert.notStrictEqual(result.failure.type, "edit_expected_occurrence_mismatch")
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )
})

const plainDistance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j - 1] ?? 0) + same, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const Word = Schema.Array(Schema.Literals(["a", "b", "c", "ab", "ca"]))

it.prop(
  "the distance is Levenshtein's, up to its limit",
  [Word, Word],
  ([one, other]) => {
    const [a, b] = [one.join(""), other.join("")]
    const plain = plainDistance(a, b)
    for (const most of [0, 1, 2, 5, 17, 40, 100, Math.max(0, plain - 1), plain, plain + 1]) {
      assert.strictEqual(distance(a, b, most), Math.min(plain, most + 1), `at most ${most}`)
    }
  },
  { arbitrary: { runs: runsOf(1_000) } }
)
