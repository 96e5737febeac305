import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { call, type Content, model, type Part, response, text, user } from "../../src/domain/Content.ts"
import * as Conversation from "../../src/domain/Conversation.ts"
import { Handle } from "../../src/domain/Handle.ts"
import { Inspection, inspect, preview, printable, viewSizes } from "../../src/domain/Inspection.ts"
import { TokenCount } from "../../src/domain/Tokens.ts"
import * as Work from "../../src/domain/Work.ts"

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
const report = (conversation: Conversation.Conversation) => Work.runSync(inspect(conversation))

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

describe("inspect", () => {
  const found = report(session)

  it("counts messages, turns and tokens, the environment message apart", () => {
    assert.strictEqual(found.messages, 8)
    assert.strictEqual(found.turns, 2)
    assert.deepStrictEqual(found.tokens, { all: 639, view: 639, environment: 500 })
  })

  it("sums to the whole by role and by kind", () => {
    const total = (sums: ReadonlyArray<{ readonly tokens: number }>) => sums.reduce((n, { tokens }) => n + tokens, 0)
    assert.strictEqual(total(found.roles), 639)
    assert.strictEqual(total(found.kinds), 639)
    assert.deepStrictEqual(
      found.kinds.map(({ kind, parts, tokens }) => [kind, parts, tokens]),
      [
        ["output", 1, 300],
        ["media", 1, 258],
        ["call", 2, 50],
        ["user", 2, 12],
        ["model", 2, 7],
        ["program", 1, 7],
        ["thought", 1, 5]
      ]
    )
    assert.deepStrictEqual(
      found.roles.map(({ messages, role }) => [role, messages]),
      [
        ["user", 4],
        ["model", 3]
      ]
    )
  })

  it("tells tools apart", () => {
    assert.deepStrictEqual(found.tools, [
      { tool: "read", calls: 1, arguments: 20, outputs: 1, output: 300, view: 320 },
      { tool: "exec", calls: 1, arguments: 30, outputs: 0, output: 0, view: 30 }
    ])
  })

  it("lists the largest parts with their handles", () => {
    assert.deepStrictEqual(found.largest[0], {
      entry: Conversation.entryId(4),
      part: 0,
      kind: "output",
      tool: "read",
      tokens: 300,
      handle: handle(4, 0),
      preview: "line"
    })
    assert.strictEqual(found.largest.length, 10)
  })

  it("keeps the ten largest of many", () => {
    const many = of(...Array.from({ length: 3_000 }, (_, n) => entry(n + 1, user(text("x")), [(n * 7_919) % 3_001])))
    assert.deepStrictEqual(
      report(many).largest.map(({ tokens }) => tokens),
      [...Array(3_000).keys()]
        .map((n) => (n * 7_919) % 3_001)
        .sort((a, b) => b - a)
        .slice(0, 10)
    )
  })

  it("says how large the view was after each turn", () => {
    assert.deepStrictEqual(found.growth, [
      { turn: 1, entry: Conversation.entryId(6), tokens: 607 },
      { turn: 2, entry: Conversation.entryId(8), tokens: 639 }
    ])
  })

  it("finds calls without response and responses without call", () => {
    assert.deepStrictEqual(found.broken, {
      calls: [{ entry: Conversation.entryId(8), part: 0, tool: "exec" }],
      responses: []
    })
    assert.deepStrictEqual(report(of(entry(1, user(response("read", { output: "" }, "9")), [1]))).broken.responses, [
      { entry: Conversation.entryId(1), part: 0, tool: "read" }
    ])
  })

  it("takes the name of a tool from its call where the response has none", () => {
    const nameless: Part = { functionResponse: { id: "1", response: { output: "x" } } }
    const { tools } = report(of(entry(1, model(call("read", {}, "1")), [1]), entry(2, user(nameless), [1])))
    assert.deepStrictEqual(
      tools.map(({ outputs, tool }) => [tool, outputs]),
      [["read", 1]]
    )
  })

  it("has nothing to say of nothing", () => {
    const nothing = report(Conversation.empty)
    assert.deepStrictEqual(nothing.tokens, { all: 0, view: 0, environment: 0 })
    assert.deepStrictEqual(nothing.growth, [])
  })

  it("is what its schema says", () => {
    const json = Schema.fromJsonString(Schema.toCodecJson(Inspection))
    const text = Schema.encodeSync(json)(found)
    assert.deepStrictEqual(Schema.decodeSync(json)(text), found)
  })
})

describe("compactions", () => {
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

  it("are told with the tokens before and after", () => {
    assert.deepStrictEqual(report(longer).compactions, [
      { after: Conversation.entryId(8), tokens: { before: 639, after: 81 } },
      { after: Conversation.entryId(10), tokens: { before: 141, after: 96 } }
    ])
  })

  it("count the inserted summaries, in the view only the one that is shown", () => {
    const { kinds, tokens } = report(longer)
    const summaries = kinds.find(({ kind }) => kind === "summary")
    assert.deepStrictEqual(summaries, { kind: "summary", parts: 2, tokens: 45, view: 5 })
    assert.strictEqual(tokens.view, 196)
    assert.strictEqual(
      kinds.reduce((total, { view }) => total + view, 0),
      tokens.view
    )
  })

  it("show as drops in the growth", () => {
    assert.deepStrictEqual(viewSizes(longer), [0, 268, 297, 597, 604, 607, 609, 639, 141, 196])
  })

  it("no longer count when undone", () => {
    assert.deepStrictEqual(report(Conversation.undone(compressed)).compactions, [])
  })
})

describe("previews", () => {
  it("carry nothing that a terminal acts on", () => {
    assert.strictEqual(printable("a\u001b[31mred\u001b[0m\u0007\nb\u202e\u0000c\u009b2J\ud800"), "ared bc2J")
    assert.strictEqual(printable("\u001b]0;title\u0007x"), "]0;titlex")
  })

  it("are short and say that they were cut", () => {
    const cut = preview(text("x".repeat(1_000_000)))
    assert.strictEqual(cut, `${"x".repeat(59)}…`)
    assert.strictEqual(preview(call("read", { path: "a" })), '{"path":"a"}')
    assert.strictEqual(preview(response("read", { output: "out" })), "out")
  })
})
