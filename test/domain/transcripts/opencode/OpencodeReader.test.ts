import { assert, describe, it } from "@effect/vitest"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { opencodeReader, readOpencodeDocument } from "../../../../src/domain/transcripts/opencode/OpencodeReader.ts"
import { isProblem } from "../../../../src/domain/transcripts/Problem.ts"
import { drafts, ok, reading, told } from "../../../support/reading.ts"

type Row = Readonly<Record<string, unknown>>

/** A message and its parts. Its time is the number in its id, and its place in the database another one. */
type Message = readonly [id: string, data: Row, ...parts: ReadonlyArray<Row>]

const user = (id: string, ...parts: ReadonlyArray<Row>): Message => [id, { role: "user" }, ...parts]
const model = (id: string, more: Row, ...parts: ReadonlyArray<Row>): Message => [
  id,
  { role: "assistant", modelID: "m-1", ...more },
  ...parts
]
const text = (words: string, more: Row = {}) => ({ type: "text", text: words, ...more })
const tool = (callID: string, state: Row) => ({
  type: "tool",
  callID,
  tool: "read",
  state: { input: { n: 1 }, ...state }
})
const png = { type: "file", mime: "image/png", url: "data:image/png;base64,aGk=" }

const messages: ReadonlyArray<Message> = [
  user(
    "m1",
    text("Look at this."),
    png,
    text("ignored", { ignored: true }),
    text("<file>", { synthetic: true }),
    { type: "file", filename: "a.txt", url: "file:///a.txt" },
    text("Thanks."),
    { type: "subtask", prompt: "Find it." }
  ),
  model(
    "m2",
    { tokens: { input: 10, output: 3, reasoning: 4, cache: { read: 20, write: 30 } } },
    { type: "step-start" },
    { type: "reasoning", text: "Hm." },
    text("I look."),
    tool("c1", { status: "completed", output: "seen", attachments: [png, 7] }),
    tool("c2", { status: "error", error: "gone" }),
    tool("c3", { status: "running" }),
    text("Done."),
    { type: "file", url: "file:///b" }
  ),
  user("m3", text("Only a program's.", { synthetic: true })),
  user("m4", { type: "compaction", auto: false, tail_start_id: "m3" }),
  model("m5", { parentID: "m4", summary: true }, text("unfinished")),
  model(
    "m6",
    { parentID: "m4", summary: true, finish: "stop" },
    text("They looked."),
    { type: "x" },
    text("It is gone.")
  ),
  user("m7", { type: "compaction", auto: true }),
  model("m8", { parentID: "m7", summary: true, finish: "stop", modelID: "m-2" }),
  user("m9", { type: "compaction" }),
  ["n1", { role: "critic" }, text("?")],
  user("n2", text("Undone.")),
  model("n3", {}, text("Undone, too."))
]

const session = { id: "ses_1", directory: "/p", revert: { messageID: "n2" } }
const timeOf = (index: number) => 1_000 + index

/** The session as the rows of its database: the last first, in the tables' own order. */
const rows: ReadonlyArray<unknown> = [
  ...messages.flatMap(([id, , ...parts]) => parts.map((data) => ({ kind: "part", id: "p", message_id: id, data }))),
  { kind: "session", ...session, revert: JSON.stringify(session.revert) },
  { kind: "session", id: "ses_2", directory: "/other" },
  { kind: "todo" },
  { kind: "part", id: "p", message_id: "nowhere", data: text("lost") },
  ...messages.map(([id, data], at) => ({ kind: "message", id, time_created: timeOf(at), data })).toReversed()
]

const document = {
  info: session,
  messages: messages.map(([id, data, ...parts], at) => ({
    info: { ...data, id, time: { created: timeOf(at) } },
    parts: [...parts, "no part"]
  }))
}

const readRows = (all: ReadonlyArray<unknown>) => {
  const reader = opencodeReader()
  const problems = all.flatMap((row, at) => reader.line(row, JSON.stringify(row), at + 1) ?? [])
  return { problems, read: ok(runSync(reader.end())) }
}

const skipped = {
  "message: critic": 1,
  "part: step-start": 1,
  "part: text": 1,
  "reverted message": 2,
  "unfinished compaction": 1
}

it.each([
  [0, '{"output":"x"}'],
  [1, '{"error":"x"}'],
  [null, '{"error":"x"}'],
  [undefined, '{"output":"x"}']
])("a command that ends with %s is answered with %s", (exit, answer) => {
  const state = { status: "completed", input: {}, output: "x", metadata: { exit } }
  const parts = [{ type: "tool", tool: "bash", callID: "c", state }]
  const messages = [{ info: { id: "m", role: "assistant" }, parts }]
  const read = ok(runSync(readOpencodeDocument({ info: { id: "s" }, messages })))
  assert.strictEqual(told(read).at(-1), `user: bash[c] ${answer}`)
})

describe("a session of opencode", () => {
  it("has beside a result that was cleared what the model saw in its place", () => {
    const part = (callID: string, time: object) => ({
      type: "tool",
      tool: "read",
      callID,
      state: { status: "completed", input: {}, output: "x", time }
    })
    const parts = [part("a", { start: 1, end: 2, compacted: 3 }), part("b", { start: 1, end: 2 })]
    const messages = [{ info: { id: "m", role: "assistant" }, parts }]
    const read = ok(runSync(readOpencodeDocument({ info: { id: "s" }, messages })))
    assert.deepStrictEqual(read.shown, new Map([["a", "[Old tool result content cleared]"]]))
  })

  it("is read alike from the rows of its database and from the document", () => {
    const { problems, read } = readRows(rows)
    const exported = ok(runSync(readOpencodeDocument(document)))
    assert.deepStrictEqual(problems, [])
    assert.deepStrictEqual(read.skipped, { ...exported.skipped, "row: todo": 1, "part without a message": 1 })
    assert.deepInclude(read, { format: "opencode", session: "ses_1", cwd: "/p", model: "m-2" })
    assert.deepStrictEqual(exported.skipped, skipped)
    const image = '{"inlineData":{"mimeType":"image/png","data":"aGk="}}'
    for (const one of [read, exported]) {
      assert.deepStrictEqual(told(one), [
        `user: Look at this. | ${image}`,
        "program: <file> | [file a.txt]",
        "user: Thanks. | Find it.",
        'model: ~Hm. | I look. | read(c1 {"n":1}) | read(c2 {"n":1}) | read(c3 {"n":1})',
        `user: read[c1] {"output":"seen"} | ${image} | read[c2] {"error":"gone"}`,
        "model: Done. | [file file:///b]",
        "program: Only a program's.",
        "model: unfinished",
        "compaction (manual, ?), kept from 6",
        "+ summary: They looked.\n\nIt is gone.",
        "compaction (auto, ?), kept from nothing"
      ])
      const said = drafts(one)
      assert.deepStrictEqual(
        said.map(({ at }) => at),
        [0, 0, 0, 1, 1, 1, 2, 4, 5].map(timeOf)
      )
      assert.deepInclude(said[3], {
        model: "m-1",
        usage: { prompt: 60, answer: 3, thoughts: 4, cached: 20, cacheWrite: 30 }
      })
      assert.deepStrictEqual(said[3]?.origin?.ids, ["m2"])
    }
  })

  const noRows: ReadonlyArray<readonly [unknown]> = [
    [[]],
    [7],
    [{ kind: "message", data: {} }],
    [{ kind: "part", id: "p" }],
    [{ kind: "message", id: "m", data: [] }]
  ]
  it.each(noRows)("%j is no row", (row) => {
    const { problems } = readRows([{ kind: "session" }, row])
    assert.deepStrictEqual(problems.map(isProblem), [true])
    assert.include(JSON.stringify(problems), "2")
  })

  it.each([
    [{}],
    [{ info: {} }],
    [{ info: [], messages: [] }],
    [{ info: {}, messages: [7] }],
    [{ info: {}, messages: [{ info: { id: 7 } }] }]
  ])("%j is no document", (value) => {
    assert.isTrue(isProblem(runSync(readOpencodeDocument(value))))
  })
})

describe("parts that stand where opencode does not put them", () => {
  const partsOf = (role: string, ...parts: ReadonlyArray<Row>) => {
    const read = ok(
      runSync(readOpencodeDocument({ info: { id: "s" }, messages: [{ info: { id: "m", role }, parts }] }))
    )
    return [read.steps.length, read.skipped]
  }
  it.each([
    ["user", tool("c", {}), 0, { "part: tool": 1 }],
    ["user", { type: "reasoning", text: "Hm." }, 0, { "part: reasoning": 1 }],
    ["user", text("x", { ignored: true }), 0, { "part: text": 1 }],
    ["assistant", text("x", { ignored: true }), 1, {}],
    ["assistant", { type: "subtask", prompt: "x" }, 0, { "part: subtask": 1 }],
    ["assistant", { type: "compaction" }, 0, { "part: compaction": 1 }]
  ] as const)("%s: %j", (role, part, steps, skipped) => assert.deepStrictEqual(partsOf(role, part), [steps, skipped]))

  it("messages of the same time stand in the order of their ids", () => {
    const row = (id: string) => ({ kind: "message", id, time_created: 1, data: { role: "user" } })
    const said = (id: string) => ({ kind: "part", id: "p", message_id: id, data: text(id) })
    const lines = [row("m2"), row("m1"), row("m3"), said("m1"), said("m2"), said("m3")].map((one) =>
      JSON.stringify(one)
    )
    assert.deepStrictEqual(told(ok(reading(opencodeReader)(lines))), ["user: m1", "user: m2", "user: m3"])
  })

  it("a message without a role and parts is a message of an unknown kind", () => {
    const read = ok(runSync(readOpencodeDocument({ info: { id: "s" }, messages: [{ info: { id: "m" } }] })))
    assert.deepStrictEqual(read.skipped, { "message: undefined": 1 })
  })
})
