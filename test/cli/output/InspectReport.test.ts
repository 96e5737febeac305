import { assert, describe, it } from "@effect/vitest"
import { CliOutput } from "effect/cli"
import { describe as text } from "../../../src/cli/commands/inspect.ts"
import type { Report } from "../../../src/cli/output/InspectReport.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"

describe("the text of inspect", () => {
  const report: Report = {
    file: "f",
    format: "claude",
    bytes: 12_345,
    session: null,
    model: "m",
    cwd: null,
    messages: 2,
    turns: 1,
    tokens: { all: 1_000, view: 400, environment: 7 },
    roles: [{ role: "user", messages: 2, tokens: 1_000, view: 400 }],
    kinds: [{ kind: "output", parts: 1, tokens: 1_000, view: 400 }],
    tools: [{ tool: "t", calls: 0, arguments: 0, outputs: 1, output: 1_000, view: 400 }],
    largest: [
      {
        entry: entryId(2),
        part: 0,
        kind: "output",
        tool: "t",
        tokens: 1_000,
        handle: Handle.make("h_aaaaaaaaab"),
        preview: "the beginning"
      }
    ],
    growth: [],
    compactions: [
      {
        after: null,
        tokens: { before: 9, after: 1 },
        strategy: "palimpsest",
        trigger: "auto",
        rating: { verdict: "bad", why: "it lost port 9090" },
        dropped: { messages: 11, tokens: 8 },
        kept: { messages: 22, tokens: 1 },
        inserted: { messages: 33, tokens: 1 },
        shortened: { parts: 44, saved: 1 },
        facts: { dropped: 200, kept: 150 }
      }
    ],
    reads: [{ path: "src/a.ts", reads: 3, tokens: 900, repeated: 600, entries: [entryId(2)] }],
    usage: {
      answers: 4,
      recorded: { prompt: 40_000, answer: 500, thoughts: 60, cached: 30_000, cacheWrite: 7_000 },
      points: [{ entry: entryId(2), recorded: 10_000, ours: 400 }],
      overhead: 9_512.4,
      factor: 1.218,
      error: 0.034
    },
    cost: {
      currency: "USD",
      table: "built in, long ago",
      total: 1_234.5,
      models: [
        { model: "m", requests: 3, prompt: 1, cached: 2, cacheWrite: 3, answer: 4, thoughts: 5, cost: 1_234.5 },
        { model: "other", requests: 1, prompt: 1, cached: 0, cacheWrite: 0, answer: 0, thoughts: 0, cost: null }
      ],
      estimated: true,
      unpriced: ["other"]
    },
    compressing: {
      currency: "USD",
      table: "built in, long ago",
      total: 0.5,
      models: [
        { model: "m", requests: 2, prompt: 1_200, cached: 0, cacheWrite: 0, answer: 30, thoughts: 4, cost: 0.5 }
      ],
      estimated: false,
      unpriced: []
    },
    dropped: [{ handle: Handle.make("h_aaaaaaaaaa"), messages: 2, from: entryId(1), to: entryId(2) }],
    broken: { calls: [], responses: [] },
    skipped: { progress: 3 },
    next: { waits: "below threshold", forced: { before: 410, after: 90, messages: 1 } },
    torn: 9
  }

  /** The lines of a section. */
  const section = (shown: string, title: string): ReadonlyArray<string> => {
    const sections = shown.split(/\n\n(?=\S)/)
    const body = sections.find((part) => part.startsWith(`${title}\n`))
    assert.isDefined(body, `no section ${title} in ${shown}`)
    return (body?.split("\n") ?? []).slice(1).map((line) => line.replace(/ +/g, " ").trim())
  }

  it("has a text for every section", () => {
    const shown = text(report, [10, 400])
    for (const part of ["12,345 bytes", "2 messages, 1 prompt", "environment", "By kind", "By role", "By tool"]) {
      assert.include(shown, part)
    }
    assert.notMatch(shown, / $/m)
    assert.deepStrictEqual(section(shown, "Growth"), [
      "▁█",
      "over 2 messages, 1 prompt: at most 400 tokens in the view, now 400"
    ])
    assert.deepStrictEqual(section(shown, "Largest parts").slice(2), [
      "e2 tool output t 1,000 h_aaaaaaaaab the beginning",
      "print one with: palimpsest recall FILE HANDLE"
    ])
    assert.deepStrictEqual(section(shown, "Read more than once"), [
      "Reading 1 file again used 600 tokens, 60 %.",
      "",
      "Files by tokens in repeated reads",
      "file reads tokens repeats",
      "src/a.ts 3 900 600"
    ])
    assert.deepStrictEqual(section(shown, "Compactions"), [
      "Compactions in force, newest first",
      "after before after dropped kept inserted shortened facts kept by",
      "the start 9 1 11 · 8 22 · 1 33 · 1 44 parts, −1 150 of 200 palimpsest, auto",
      "",
      "Ratings, newest first",
      "after rating",
      "the start rated bad: it lost port 9090",
      "",
      "Dropped messages, recallable in full by handle",
      "from to messages handle",
      "e1 e2 2 h_aaaaaaaaaa"
    ])
    assert.deepStrictEqual(section(shown, "Recorded use"), [
      "The provider's count is about 1.22 times ours and 9,512 tokens more, for instructions and tools",
      "that are not in the transcript: 3 % off on average.",
      "",
      "Totals over 4 answers with recorded counts",
      "what tokens",
      "sent, over all requests 40,000",
      "of which read from a cache 30,000",
      "of which written to a cache 7,000",
      "answers 500",
      "thoughts 60"
    ])
    assert.deepStrictEqual(section(shown, "Cost"), [
      "At least $1,234.50 in all. The agent recorded no counts: these are our estimates, without",
      "instructions, tools and caching. $0.50 of it for 2 compression calls: 1,200 tokens sent, 34",
      "answered.",
      "",
      "Prices: built in, long ago (--prices FILE for others)",
      "model requests sent cached answered cost",
      "m 3 1 2 9 $1,234.50",
      "other 1 1 0 0 –",
      "no price for other"
    ])
    assert.strictEqual(section(shown, "The next compression")[0], "Not due: below threshold.")
    assert.deepStrictEqual(section(shown, "Irregularities"), [
      "Records of the file that are not part of the conversation",
      "kind records",
      "progress 3",
      "Line 9, the last one, is incomplete and is ignored."
    ])
  })

  it("says that the model saw a summary of what is shown in full", () => {
    const shown = text({ ...report, skipped: { "marble-origami-commit": 2 } }, [])
    assert.include(section(shown, "Irregularities").join(" "), "a summary in place of 2 spans that are read in full")
  })

  it("compares no counts that do not follow our estimates", () => {
    const usage = report.usage === null ? null : { ...report.usage, factor: 0.001 }
    assert.strictEqual(
      section(text({ ...report, usage }, []), "Recorded use")[0],
      "Totals over 4 answers with recorded counts"
    )
  })

  it("omits empty sections", () => {
    const { cost, ...rest } = report
    const shown = text(
      {
        ...rest,
        tools: [],
        largest: [],
        reads: [],
        compactions: [],
        dropped: [],
        usage: null,
        skipped: {},
        torn: null,
        cost: { ...cost, models: [] }
      },
      []
    )
    assert.deepStrictEqual(
      shown.split("\n").filter((line) => /^[A-Z]/.test(line)),
      ["Where the tokens went", "The next compression"]
    )
  })

  it.each([
    ["measured", { total: 0.25, estimated: false, unpriced: [] }, "$0.25 in all."],
    ["small", { total: 0.0123, estimated: false, unpriced: [] }, "$0.0123 in all."],
    ["next to nothing", { total: 0.00001, estimated: false, unpriced: [] }, "less than $0.0001 in all."],
    ["free", { total: 0, estimated: false, unpriced: [] }, "$0.00 in all."],
    ["unknown", { total: null, estimated: false, unpriced: ["m"] }, "No price is known."],
    ["in part", { total: 3, estimated: false, unpriced: ["m"] }, "At least $3.00 in all."]
  ] as const)("prints a cost that is %s", (_name, cost, expected) => {
    const shown = text(
      { ...report, compressing: { ...report.compressing, models: [] }, cost: { ...report.cost, ...cost } },
      []
    )
    const [line = ""] = section(shown, "Cost")
    assert.isTrue(line.startsWith(expected), line)
  })

  const wide = "漢字かな🚀".repeat(40)
  it.each([
    ["long", "abc/def_".repeat(60)],
    ["wide", wide],
    ["full of what a terminal acts on", `\u001b[2J\u001b]0;owned\u0007\u202e\r\n\u0000${"x".repeat(200)}`]
  ] as const)(
    "fits 100 columns and 15 rows per section, without terminal escapes, when names are %s",
    (_name, word) => {
      const many = <A>(one: A): ReadonlyArray<A> => Array.from({ length: 40 }, () => one)
      const big = Number.MAX_SAFE_INTEGER
      const hostile: Report = {
        ...report,
        file: word,
        session: word,
        model: word,
        cwd: word,
        tools: many({
          tool: word,
          calls: 1_000_000,
          arguments: 10_000_000,
          outputs: 1,
          output: 10_000_000,
          view: 10_000_000
        }),
        largest: report.largest.map((part) => ({ ...part, tool: word, tokens: 10_000_000, preview: wide })),
        reads: many({ path: word, reads: 1_000_000, tokens: 10_000_000, repeated: 10_000_000, entries: [] }),
        compactions: report.compactions.flatMap((one) =>
          many({ ...one, strategy: word, after: entryId(100_000), tokens: { before: 1_000_000, after: 1_000_000 } })
        ),
        dropped: report.dropped.flatMap((one) => many(one)),
        usage:
          report.usage === null
            ? null
            : { ...report.usage, overhead: 1e6, recorded: { ...report.usage.recorded, prompt: big } },
        cost: {
          ...report.cost,
          table: word,
          models: many({
            model: word,
            requests: 1_000_000,
            prompt: 1e10,
            cached: 1e10,
            cacheWrite: 0,
            answer: 1e9,
            thoughts: 0,
            cost: 1e6
          }),
          unpriced: many(word)
        },
        skipped: Object.fromEntries(many(word).map((kind, n) => [`${n}${kind}`, n])),
        broken: {
          calls: many({ entry: entryId(100_000), part: 0, tool: word }),
          responses: many({ entry: entryId(100_000), part: 0, tool: word })
        }
      }
      const shown = text(hostile, [1, 2])
      assert.notMatch(shown, /[^\P{C}\n]/u)
      for (const line of shown.split("\n")) assert.isAtMost(CliOutput.displayWidth(line), 100, line)
      for (const part of shown.split("\n\n")) assert.isAtMost(part.split("\n").length, 21, part)
    }
  )
})
