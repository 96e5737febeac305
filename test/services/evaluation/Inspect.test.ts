import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { viewSizes } from "../../../src/domain/evaluation/Compactions.ts"
import { type InspectionContext, Inspection } from "../../../src/domain/evaluation/Inspection.ts"
import { preview } from "../../../src/domain/evaluation/PartKind.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { tokensOfCost } from "../../../src/domain/tokens/Prices.ts"
import { TokenCount, type Usage } from "../../../src/domain/tokens/Tokens.ts"
import { inspect } from "../../../src/services/evaluation/Inspect.ts"
import { lawOfPlayed, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const handle = (sequence: number, part: number) =>
  Handle.make(
    `h_${`${sequence}`.replace(/\d/g, (digit) => "abcdefghij".charAt(Number(digit))).padEnd(9, "a")}${"abcdefg".charAt(part)}`
  )

/** An entry whose parts count as many tokens as they say. */
const entry = (
  sequence: number,
  content: Content,
  tokens: ReadonlyArray<number>,
  author?: Conversation.Author
): Conversation.Entry => ({
  id: Conversation.entryId(sequence),
  content,
  tokens,
  handles: content.parts.map((_, part) => handle(sequence, part)),
  ...(author === undefined ? {} : { author })
})

const of = (...entries: ReadonlyArray<Conversation.Entry>) => entries.reduce(Conversation.append, Conversation.empty)
const report = (conversation: Conversation.Conversation, about?: InspectionContext) =>
  Effect.runSync(inspect(conversation, about))
const id = Conversation.entryId
const encoded = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(Inspection)))

const thought: Part = { text: "hm", thought: true }
const image: Part = { inlineData: { mimeType: "image/png", data: "" } }

const session = of(
  entry(1, user(text("The setup")), [500], "environment"),
  entry(2, user(text("Fix the build"), image), [10, 258]),
  entry(3, model(thought, text("Let me see"), call("read", { path: "a.ts" }, "1")), [5, 4, 20]),
  entry(4, user(response("read", { output: "line" }, "1")), [300]),
  entry(5, user(text("<reminder>")), [7], "program"),
  entry(6, model(text("Done")), [3]),
  entry(7, user(text("Thanks")), [2]),
  entry(8, model(call("exec", { command: "make" }, "2")), [30])
)

const summary = entry(9, user(text("What was")), [40], "summary")
const compressed = Conversation.compressed(session, {
  drop: { from: Conversation.entryId(2), to: Conversation.entryId(4) },
  insert: [summary],
  shorten: [{ entry: Conversation.entryId(7), part: 0, replacement: text("T"), tokens: TokenCount.make(1) }]
})
const grown = Conversation.append(compressed, entry(10, user(response("exec", { output: "ok" }, "2")), [60]))
const twice = Conversation.compressed(grown, {
  drop: { from: Conversation.entryId(9), to: Conversation.entryId(6) },
  insert: [entry(11, user(text("Less")), [5], "summary")],
  shorten: []
})
const longer = Conversation.append(twice, entry(12, model(text("More")), [100]))

const counts = (prompt: number, more: Partial<Usage> = {}): Usage => ({
  prompt,
  answer: 10,
  thoughts: 0,
  cached: 0,
  ...more
})
const asks = (sequence: number, tokens: number) => entry(sequence, user(text("q")), [tokens])
const answers = (sequence: number, usage?: Usage, more: Partial<Conversation.Entry> = {}): Conversation.Entry => ({
  ...entry(sequence, model(text("a")), [10]),
  ...(usage === undefined ? {} : { usage }),
  ...more
})
const prices = { source: "test", table: { models: { m: { input: 1_000_000, output: 10_000_000 } } } }
const about = { prices, model: "m" }

/** A call and its answer, as two messages. */
const read = (sequence: number, args: unknown, tokens: number, name = "Read", value: unknown = { output: "x" }) => [
  entry(sequence, model(call(name, args, `c${sequence}`)), [1]),
  entry(sequence + 1, user(response(name, value, `c${sequence}`)), [tokens])
]

const twoModels = of(asks(1, 1), answers(2, counts(5), { model: "other" }), asks(3, 1), answers(4, counts(6)))

/** A part of the session in another form. */
const shorter = (part: number, tokens: number, sequence = 3) => ({
  entry: id(sequence),
  part,
  replacement: text("…"),
  tokens: TokenCount.make(tokens)
})
const dropping = (from: number, to: number, more: Partial<Conversation.Patch> = {}): Conversation.Patch => ({
  drop: { from: id(from), to: id(to) },
  insert: [],
  shorten: [],
  ...more
})
const paths = (...all: ReadonlyArray<string>) => ({ paths: all })

const cases: Readonly<Record<string, readonly [conversation: Conversation.Conversation, about?: InspectionContext]>> = {
  "all kinds of parts, with a call that is open": [session],
  "a response without a call": [of(entry(1, user(response("read", { output: "" }, "9")), [1]))],
  "a tool's name from its call, where the response has none": [
    of(
      entry(1, model(call("read", {}, "1")), [1]),
      entry(2, user({ functionResponse: { id: "1", response: { output: "x" } } }), [1])
    )
  ],
  nothing: [Conversation.empty, about],
  "two compressions, the second of the first one's summary": [longer],
  // 20 to 5, and 5 to 9: a replacement may be longer than what it replaces.
  "parts that are shortened twice, and one that is dropped": [
    Conversation.compressed(
      session,
      dropping(2, 2, { shorten: [shorter(2, 10), shorter(2, 5), shorter(0, 9), shorter(0, 0, 2)] })
    )
  ],
  "an environment message within a dropped range stays": [Conversation.compressed(session, dropping(1, 2))],
  "reads of files, of which some were read before": [
    of(
      ...read(1, { file_path: "a.ts" }, 100),
      ...read(3, { file_path: "b.ts" }, 10),
      ...read(5, { file_path: "a.ts", offset: 10, limit: 5 }, 7),
      ...read(7, { file_path: "b.ts" }, 30),
      ...read(9, { file_path: "b.ts" }, 40),
      ...read(11, { file_path: "once.ts" }, 9_999)
    )
  ],
  "reads that failed, that nothing answered, and calls of no reader": [
    of(
      ...read(1, { path: "a.ts" }, 5),
      ...read(3, { path: "a.ts" }, 5, "Read", { error: "no such file" }),
      ...read(5, { path: "a.ts" }, 5, "Edit"),
      ...read(7, { command: "cat a.ts" }, 5, "Bash"),
      entry(9, model(call("Read", { path: "a.ts" }, "open")), [1])
    )
  ],
  "calls that read several files, with all tokens divided": [
    of(
      ...read(1, paths("a.ts", "b.ts", "./a.ts"), 11, "read_many_files"),
      ...read(3, paths("b.ts", "a.ts"), 4, "read_many_files")
    )
  ],
  "a read that a compression inserts again": [
    Conversation.compressed(
      of(...read(1, { path: "a.ts" }, 5)),
      dropping(1, 2, { insert: read(3, { path: "a.ts" }, 5) })
    )
  ],
  "recorded counts that are zero": [of(asks(1, 5), answers(2, counts(0, { answer: 0 })))],
  "recorded counts": [
    of(
      asks(1, 100),
      answers(2, counts(1_100, { cached: 50, cacheWrite: 1_000, thoughts: 3 })),
      asks(3, 90),
      answers(4, counts(1_200, { cached: 1_100 }))
    )
  ],
  "an answer in several messages": [of(asks(1, 100), answers(2), answers(3, counts(500)), answers(4, counts(520)))],
  "counts before and after a compression": [
    [asks(4, 30), answers(5, counts(1_080))].reduce(
      Conversation.append,
      Conversation.compressed(
        of(asks(1, 1_000), answers(2, counts(2_000))),
        dropping(1, 2, { insert: [entry(3, user(text("s")), [50], "summary")] })
      )
    )
  ],
  "the cost of recorded answers, without those that were not counted": [
    of(asks(1, 100), answers(2), asks(3, 5), answers(4, counts(7, { answer: 2, thoughts: 1 }))),
    about
  ],
  "a cost that is estimated: a request of the view before each answer": [
    of(asks(1, 100), { ...entry(2, model(thought, text("a")), [3, 4]) }, asks(3, 5), answers(4)),
    about
  ],
  "an estimate of an answer in several messages, and of none that no model wrote": [
    of(asks(1, 100), answers(2), answers(3), asks(4, 1), entry(5, model(text("Got it.")), [3], "summary")),
    about
  ],
  "the cost by the model of the answer, else of the conversation": [twoModels, about],
  "the cost by the model of the answer, else of nobody": [twoModels, { prices }]
}

it("a conversation has this report: see `test/golden/inspection.txt`, and take a new one with `vitest -u`", () => {
  const lines = Object.entries(cases).flatMap(([name, [conversation, given]]) => [
    `# ${name}`,
    ...Object.entries(report(conversation, { cwd: "/work/app", prices, ...given })).map(
      ([key, value]) => `${key} ${JSON.stringify(value)}`
    )
  ])
  return expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/inspection.txt")
})

it("inspect keeps the ten largest of many", () => {
  const sizeOfPart = (n: number) => 3_000 - ((n * 7_919) % 3_001)
  // The largest comes first.
  const many = of(...Array.from({ length: 3_000 }, (_, n) => entry(n + 1, model(text("x")), [sizeOfPart(n)])))
  assert.deepStrictEqual(
    report(many).largest.map(({ tokens }) => tokens),
    [...Array(3_000).keys()]
      .map(sizeOfPart)
      .sort((a, b) => b - a)
      .slice(0, 10)
  )
})

describe("compactions", () => {
  const decided = (strategy: string, trigger: "manual" | "auto"): SessionEvent => ({
    _tag: "Compressed",
    at: 0,
    status: "COMPRESSED",
    strategy,
    trigger,
    before: TokenCount.make(0),
    after: TokenCount.make(0),
    patch: { insert: [], shorten: [] }
  })
  const undone: SessionEvent = { _tag: "Undone", at: 0 }
  const redone: SessionEvent = { _tag: "Redone", at: 0 }
  for (const [name, events, expected] of [
    ["the last one", [decided("a", "auto")], ["a", "auto"]],
    ["not one that was undone", [decided("a", "auto"), decided("b", "manual"), undone], ["a", "auto"]],
    ["not one that was replaced", [decided("a", "auto"), undone, decided("b", "manual")], ["b", "manual"]],
    ["one that was laid again", [decided("a", "auto"), undone, redone], ["a", "auto"]],
    [
      "not what can no longer be laid again",
      [decided("a", "auto"), undone, decided("b", "manual"), redone],
      ["b", "manual"]
    ],
    ["whatever is undone too often", [undone, undone, decided("c", "auto")], ["c", "auto"]]
  ] as const) {
    it(`name their origin: ${name}`, () => {
      const [found] = report(compressed, { events }).compactions
      assert.deepStrictEqual([found?.strategy, found?.trigger], [...expected])
    })
  }

  it("name their origin: several, each its own", () => {
    const events = [decided("a", "auto"), undone, decided("b", "auto"), redone, decided("c", "manual")]
    assert.deepStrictEqual(
      report(longer, { events }).compactions.map(({ strategy, trigger }) => [strategy, trigger]),
      [
        ["b", "auto"],
        ["c", "manual"]
      ]
    )
  })

  const facts = (before: ReadonlyArray<Content>, left: ReadonlyArray<Content>, summary: string) => {
    const said = of(
      ...[...before, ...left].map((content, index) =>
        entry(
          index + 1,
          content,
          content.parts.map(() => 1)
        )
      )
    )
    const conversation = Conversation.compressed(said, {
      drop: { from: id(1), to: id(before.length) },
      insert: [entry(before.length + left.length + 1, user(text(summary)), [1], "summary")],
      shorten: []
    })
    return report(conversation).compactions[0]?.facts
  }
  for (const [name, before, left, summary, expected] of [
    ["those in the summary stand", [model(text("src/a.ts and src/b.ts"))], [], "about src/a.ts", [2, 1]],
    ["those in what was kept stand", [user(text("src/a.ts"))], [model(text("I read src/a.ts"))], "", [1, 1]],
    [
      "those in an answer that was kept stand",
      [model(call("read", { path: "src/a.ts" }))],
      [user(response("read", { output: "src/a.ts:1" }))],
      "",
      [1, 1]
    ],
    ["what only a tool showed is no fact", [user(response("read", { output: "src/a.ts" }))], [], "", [0, 0]],
    ["a thought is the agent's own", [model({ text: "src/a.ts", thought: true })], [], "", [1, 0]]
  ] as const) {
    it(`look for facts: ${name}`, () => {
      assert.deepStrictEqual(facts(before, left, summary), { dropped: expected[0], kept: expected[1] })
    })
  }

  it("look for facts: keep the 200 used most and last of very many", () => {
    const many = Array.from({ length: 300 }, (_, n) => model(text(`src/file${n}.ts`)))
    assert.deepStrictEqual(
      facts([model(text("src/file7.ts src/file7.ts")), ...many], [], "src/file7.ts src/file299.ts"),
      {
        dropped: 200,
        kept: 1
      }
    )
    const often = user(text("src/often.ts ".repeat(50)))
    assert.deepStrictEqual(facts([...many.slice(0, 150), often, ...many.slice(150)], [], "src/often.ts"), {
      dropped: 200,
      kept: 1
    })
  })

  it("look for facts: rank what the user named above the agent's", () => {
    const names = [0, 1].map((part) =>
      text(Array.from({ length: 125 }, (_, n) => `src/f${part * 125 + n}.ts`).join(" "))
    )
    assert.deepStrictEqual(facts([user(text("src/asked.ts")), model(...names)], [], "src/asked.ts"), {
      dropped: 200,
      kept: 1
    })
  })

  it("look for facts: a shortened part holds only what is shown", () => {
    const said = of(
      entry(1, user(text("src/a.ts src/b.ts")), [1]),
      entry(2, model(call("ls", {}, "1")), [1]),
      entry(3, user(response("ls", { output: "src/a.ts src/b.ts" }, "1")), [10])
    )
    const shorter = Conversation.compressed(said, {
      drop: { from: id(1), to: id(1) },
      insert: [],
      shorten: [
        {
          entry: id(3),
          part: 0,
          replacement: response("ls", { output: "src/b.ts" }, "1"),
          tokens: TokenCount.make(5)
        }
      ]
    })
    assert.deepStrictEqual(report(shorter).compactions[0]?.facts, { dropped: 2, kept: 1 })
  })

  it("look for facts at the end of a long dropped range", () => {
    const talk = Array.from({ length: 60 }, () => model(text("word ".repeat(400))))
    assert.deepStrictEqual(facts([user(text("src/first.ts")), ...talk, user(text("src/last.ts"))], [], ""), {
      dropped: 1,
      kept: 0
    })
  })

  it("look for no facts without a dropped range", () => {
    const conversation = Conversation.compressed(session, { insert: [summary], shorten: [] })
    assert.isNull(report(conversation).compactions[0]?.facts)
  })

  it("look for no facts in too large a range", () => {
    const large = of(entry(1, user(text("src/a.ts")), [4_000_001]), entry(2, user(text("b")), [1]))
    const conversation = Conversation.compressed(large, { drop: { from: id(1), to: id(1) }, insert: [], shorten: [] })
    assert.isNull(report(conversation).compactions[0]?.facts)
  })

  it("appear as drops in the growth", () => {
    assert.deepStrictEqual(viewSizes(longer), [0, 268, 297, 597, 604, 607, 609, 639, 141, 196])
  })
})

it("previews are short and mark the cut", () => {
  const cut = preview(text("x".repeat(1_000_000)))
  assert.strictEqual(cut, `${"x".repeat(59)}…`)
  assert.strictEqual(preview(text("x".repeat(60))), "x".repeat(60))
  assert.strictEqual(preview(call("read", { path: "a" })), '{"path":"a"}')
  assert.strictEqual(preview(response("read", { output: "out" })), "out")
})

describe("repeated reads", () => {
  const reads = (...entries: ReadonlyArray<ReadonlyArray<Conversation.Entry>>) =>
    report(of(...entries.flat()), { cwd: "/work/app" }).reads

  it("count what was read before, and not the rest of the output", () => {
    const shows = (...lines: ReadonlyArray<string>) => ({
      output: lines.map((line, n) => `${n + 1}→${line}`).join("\n")
    })
    const repeatsOf = (...second: ReadonlyArray<string>) =>
      reads(
        read(1, { file_path: "a.ts" }, 100, "Read", shows("one", "two", "three")),
        read(3, { file_path: "a.ts", offset: 3 }, 900, "Read", shows(...second))
      ).map(({ repeated }) => repeated)
    assert.deepStrictEqual(repeatsOf("six", "ten", "four"), [0])
    assert.deepStrictEqual(repeatsOf("one", "two"), [900])
    assert.deepStrictEqual(repeatsOf("two", "six"), [450])
  })

  for (const [one, other, path] of [
    ["src/a.ts", "./src/a.ts", "src/a.ts"],
    ["/work/app/src/a.ts", "src/a.ts", "src/a.ts"],
    ["/work/app/src/./a.ts", "././src/.//a.ts", "src/a.ts"],
    ["/work/other/a.ts", "/work/./other/a.ts", "/work/other/a.ts"],
    ["__proto__", "./__proto__", "__proto__"],
    ["../a.ts", "../a.ts", "../a.ts"]
  ] as const) {
    it(`treat ${one} and ${other} as one file`, () => {
      assert.deepStrictEqual(
        reads(read(1, { path: one }, 5), read(3, { path: other }, 5)).map((file) => file.path),
        [path]
      )
    })
  }

  for (const [name, one, other] of [
    ["of different files", { path: "a.ts" }, { path: "b.ts" }],
    ["in a folder whose name only begins alike", { path: "/work/application/a.ts" }, { path: "lication/a.ts" }],
    ["of no file", {}, {}]
  ] as const) {
    it(`are none ${name}`, () => {
      assert.deepStrictEqual(reads(read(1, one, 5), read(3, other, 5)), [])
    })
  }
})

describe("recorded use", () => {
  /** What is fitted where views before answers have these sizes, each with what was recorded for it. */
  const fit = (points: Readonly<Record<number, number>>) => {
    const pairs = Object.entries(points).map(([ours, recorded]) => [Number(ours), recorded] as const)
    const conversation = of(
      ...pairs.flatMap(([ours, recorded], n) => {
        const before = n === 0 ? 0 : (pairs[n - 1]?.[0] ?? 0) + 10
        return [asks(2 * n + 1, ours - before), answers(2 * n + 2, counts(recorded))]
      })
    )
    const { usage } = report(conversation)
    assert.isNotNull(usage)
    return { overhead: usage?.overhead ?? -1, factor: usage?.factor ?? -1, error: usage?.error ?? -1 }
  }

  it.each<readonly [name: string, points: Readonly<Record<number, number>>, overhead: number, factor: number]>([
    ["a line", { 100: 5_150, 200: 5_300, 400: 5_600 }, 5_000, 1.5],
    ["two points", { 100: 1_080, 300: 1_240 }, 1_000, 0.8],
    ["one point: our count is right", { 100: 1_100 }, 1_000, 1],
    ["one point below our count: nothing is left for an overhead", { 100: 80 }, 0, 0.8],
    ["views of one size", { 100: 1_000, 110: 1_010 }, 900, 1],
    // What each is off weighs by its own size: 100/50 and 200/250 over their squares.
    ["a line with an overhead below 0 goes through 0", { 100: 50, 200: 250 }, 0, (2 + 0.8) / (4 + 0.64)],
    // 1,900 and 800 beyond our counts; the smaller request weighs four times as much.
    ["requests that shrink while views grow", { 100: 2_000, 200: 1_000 }, (1_900 + 4 * 800) / 5, 1],
    ["a slope that no estimate has", { 100: 1_000, 110: 2_000 }, (4 * 900 + 1_890) / 5, 1]
  ])("fits %s", (_, points, overhead, factor) => {
    const found = fit(points)
    assert.closeTo(found.overhead, overhead, 1e-6)
    assert.closeTo(found.factor, factor, 1e-9)
  })

  it("fits views of equal size", () => {
    const alike = of(
      asks(1, 100),
      answers(2, counts(1_000), { tokens: [0] }),
      answers(3, counts(1_200), { tokens: [0] })
    )
    const { usage } = report(alike)
    const recorded = (1_000 * 1.44 + 1_200) / 2.44
    assert.closeTo(usage?.overhead ?? 0, recorded - 100, 1e-9)
    assert.strictEqual(usage?.factor, 1)
    assert.closeTo(usage?.error ?? 0, ((recorded - 1_000) / 1_000 + (1_200 - recorded) / 1_200) / 2, 1e-9)
  })

  it("reports the error of the fit", () => {
    assert.closeTo(fit({ 100: 1_100, 200: 1_200, 300: 1_300 }).error, 0, 1e-9)
    assert.isAbove(fit({ 100: 1_000, 200: 1_400, 300: 1_200 }).error, 0.05)
    // Small requests tell the overhead: large ones that are a little off do not drown it.
    assert.closeTo(fit({ 10: 2_010, 50: 2_050, 100_000: 110_000, 200_000: 199_000 }).overhead, 2_000, 10)
  })

  it("accepts numbers that no provider ever counted", () => {
    const most = Number.MAX_SAFE_INTEGER
    const huge = counts(most, { answer: most, thoughts: most, cached: most, cacheWrite: most })
    const found = report(of(asks(1, 1), answers(2, huge), asks(3, 1), answers(4, huge)), { model: "gpt-5" })
    assert.strictEqual(found.usage?.recorded.prompt, most)
    assert.doesNotThrow(() => encoded(found))
  })

  it.effect.prop(
    "sums and fits any counts",
    [
      Schema.Array(
        Schema.Struct({
          asked: Schema.Natural.check(Schema.isLessThan(1_000_000)),
          prompt: Schema.Natural,
          answer: Schema.Natural,
          model: Schema.optionalKey(Schema.Literals(["gpt-5", "somebody's", "__proto__"]))
        })
      )
    ],
    ([turns]) =>
      Effect.sync(() => {
        const conversation = of(
          ...turns.flatMap(({ answer, asked, model: name, prompt }, n) => [
            asks(2 * n + 1, asked),
            answers(2 * n + 2, counts(prompt, { answer }), name === undefined ? {} : { model: name })
          ])
        )
        const found = report(conversation)
        const counted = turns.filter(({ answer, prompt }) => answer + prompt > 0)
        assert.strictEqual(found.usage?.answers ?? 0, counted.length)
        assert.strictEqual(
          found.cost.models.reduce((total, { requests }) => total + requests, 0),
          counted.length === 0 ? turns.length : counted.length
        )
        if (found.usage !== null) {
          assert.isAtLeast(found.usage.overhead, 0)
          assert.isAtLeast(found.usage.factor, 0)
          assert.isTrue(Number.isFinite(found.usage.error))
        }
        encoded(found)
      }),
    { arbitrary: { runs: runsOf(500), seed: "usage" } }
  )

  it("the cost includes the calls that compressed, also of a failed attempt, and lists them apart", () => {
    const usage = (prompt: number) => ({ prompt, answer: 1, thoughts: 0, cached: 0 })
    const before = TokenCount.make(9)
    const calls = [
      { model: "m", usage: usage(100) },
      { model: "m", usage: null }
    ]
    const events: ReadonlyArray<SessionEvent> = [
      {
        _tag: "Compressed",
        at: 0,
        status: "COMPRESSED",
        strategy: "palimpsest",
        trigger: "manual",
        before,
        after: before,
        patch: { insert: [], shorten: [] },
        calls
      },
      { _tag: "Undone", at: 0 },
      {
        _tag: "CompressionFailed",
        at: 0,
        status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
        forced: true,
        tokens: before,
        calls: [{ model: "small", usage: usage(50) }]
      }
    ]
    const { compressing, cost } = report(of(asks(1, 100), answers(2, counts(7, { answer: 2, thoughts: 1 }))), {
      ...about,
      events
    })
    assert.deepStrictEqual(tokensOfCost(compressing), { requests: 2, sent: 150, cached: 0, answered: 2 })
    assert.deepStrictEqual(tokensOfCost(cost), { requests: 3, sent: 157, cached: 0, answered: 5 })
    assert.deepStrictEqual([compressing.total, cost.total, cost.unpriced], [110, 147, ["small"]])
  })
})

describe("any conversation", () => {
  const total = (sums: ReadonlyArray<{ readonly tokens: number; readonly view: number }>) => ({
    all: sums.reduce((sum, { tokens }) => sum + tokens, 0),
    view: sums.reduce((sum, { view }) => sum + view, 0)
  })

  /** What is wrong with the report about a conversation, if anything. */
  const wrong = (
    conversation: Conversation.Conversation,
    events: ReadonlyArray<SessionEvent> | undefined
  ): string | undefined => {
    const found = report(conversation, { events, cwd: "/work/project" })
    const { all, view } = found.tokens
    for (const [name, sums] of [
      ["roles", total(found.roles)],
      ["kinds", total(found.kinds)]
    ] as const) {
      if (sums.all !== all || sums.view !== view)
        return `${name} sum to ${JSON.stringify(sums)}, not ${all} and ${view}`
    }
    if (found.compactions.length !== Conversation.compressions(conversation).length) return "a compression is missing"
    for (const { dropped, facts, inserted, kept, shortened, strategy, tokens } of found.compactions) {
      if (dropped.tokens + kept.tokens !== tokens.before) return `dropped and kept are not the ${tokens.before} before`
      if (kept.tokens + inserted.tokens - shortened.saved !== tokens.after) return `what is left is not ${tokens.after}`
      if ((strategy === null) !== (events === undefined)) return "nobody decided"
      if (facts !== null && facts.kept > facts.dropped) return "more facts stand than there were"
    }
    for (const file of found.reads) {
      if (file.reads < 2 || file.entries.length !== file.reads || file.repeated > file.tokens)
        return `${file.path} was misread`
    }
    if (viewSizes(conversation).length !== found.messages) return "a message has no size"
    encoded(found)
    return undefined
  }

  const law = lawOfPlayed(({ events, moments }) =>
    Effect.sync(() => {
      const last = moments.at(-1)
      if (last !== undefined) {
        const violation = wrong(last.after.conversation, events)
        if (violation !== undefined) return violation
      }
      return moments
        .map(({ after }) => wrong(after.conversation, undefined))
        .find((violation) => violation !== undefined)
    })
  )
  it.effect.prop(
    "has a report whose sums agree, after compressions, undo and redo",
    [scripts],
    ([script]) => property(law, worldOf())(script),
    { arbitrary: thousand("inspection", 300) }
  )
})

it("a very long conversation is inspected in time that does not grow with its square", () => {
  const long = (messages: number) =>
    of(
      ...Array.from({ length: messages }, (_, n) =>
        n % 2 === 0
          ? entry(n + 1, model(call("Read", { path: `src/file${n % 400}.ts` }, `c${n}`)), [20])
          : entry(n + 1, user(response("Read", { output: "line\n" }, `c${n - 1}`)), [50])
      )
    )
  // Work that grew with the square of the messages would take longer than a test may.
  const { reads } = report(long(sizeOf(100_000, 10_000)))
  assert.strictEqual(reads.length, 200)
})
