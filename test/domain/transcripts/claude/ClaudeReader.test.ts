import { assert, describe, it } from "@effect/vitest"
import { payload } from "../../../../src/domain/content/Content.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { problemText } from "../../../../src/domain/transcripts/Problem.ts"
import { corpus } from "../../../support/corpus.ts"
import { bad, contents, drafts, messageText, ok, reading, told } from "../../../support/reading.ts"

/** What is true of Claude Code's records alone: a tree of lines, a queue, blocks. `agentFormats.test.ts` has what holds for every agent. */

const read = reading(claudeReader)
const readRecords = (records: ReadonlyArray<object>) => read(records.map((record) => JSON.stringify(record)))

type Extra = Readonly<Record<string, unknown>>
const user = (uuid: string, parentUuid: string | null, content: unknown, extra: Extra = {}) => ({
  parentUuid,
  isSidechain: false,
  type: "user",
  message: { role: "user", content },
  uuid,
  sessionId: "s",
  ...extra
})
const assistant = (uuid: string, parentUuid: string | null, id: string, content: unknown, extra: Extra = {}) => ({
  parentUuid,
  isSidechain: false,
  type: "assistant",
  message: { id, role: "assistant", model: "claude-x", content },
  uuid,
  sessionId: "s",
  ...extra
})
const other = (uuid: string, parentUuid: string | null, type: string, extra: Extra = {}) => ({
  parentUuid,
  type,
  uuid,
  sessionId: "s",
  ...extra
})
const text = (value: string) => [{ type: "text", text: value }]
const use = (id: string, name: string, input: unknown = {}) => [{ type: "tool_use", id, name, input }]
const result = (tool_use_id: string, content: unknown, extra: Extra = {}) => [
  { type: "tool_result", tool_use_id, content, ...extra }
]

const records = (...list: ReadonlyArray<object>) => ok(readRecords(list))
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }
const side = { isSidechain: true }
const boundary = (logicalParentUuid: string, compactMetadata: object = { trigger: "auto", preTokens: 170_251 }) =>
  other("b", null, "system", { subtype: "compact_boundary", logicalParentUuid, compactMetadata })
const summary = user("c", "b", "so far", { isCompactSummary: true })
const keeping = (headUuid: string, tailUuid: string, anchorUuid = "c") => ({
  preservedSegment: { headUuid, anchorUuid, tailUuid }
})
const threeTurns = [
  user("1", null, "one"),
  assistant("2", "1", "m", text("two")),
  user("3", "2", "three"),
  assistant("4", "3", "n", text("four"))
]
const toldTurns = ["user: one", "model: two", "user: three", "model: four"]

describe("records become messages", () => {
  type Case = readonly [rule: string, records: ReadonlyArray<object>, told: ReadonlyArray<string>, skipped?: object]
  const cases: ReadonlyArray<Case> = [
    [
      "text and an image",
      [user("1", null, [...text("look"), image])],
      ['user: look | {"inlineData":{"mimeType":"image/png","data":"AA"}}']
    ],
    [
      "documents, and media by address",
      [
        user("1", null, [
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AA" } },
          { type: "image", source: { type: "url", url: "https://x/a" } }
        ])
      ],
      ['user: {"inlineData":{"mimeType":"application/pdf","data":"AA"}} | {"fileData":{"fileUri":"https://x/a"}}']
    ],
    [
      "an image of neither kind is counted",
      [user("1", null, [{ type: "image", source: { type: "file", id: "f" } }, ...text("x")])],
      ["user: x"],
      { "block: image": 1 }
    ],
    [
      "a redacted thought has its data as signature",
      [
        assistant("1", null, "m", [
          { type: "redacted_thinking", data: "enc" },
          { type: "thinking", thinking: "hm", signature: "sig" }
        ])
      ],
      ["model: ~^enc | ~hm^sig"]
    ],
    [
      "blocks that cannot be shown are counted",
      [user("1", null, [{ type: "hologram" }, ...text("x")])],
      ["user: x"],
      { "block: hologram": 1 }
    ],
    [
      "the lines of one API message are joined, also across progress lines",
      [
        user("1", null, "go"),
        assistant("2", "1", "m", text("a")),
        other("p", "2", "progress"),
        assistant("3", "p", "m", text("b")),
        assistant("4", "3", "n", text("c"))
      ],
      ["user: go", "model: a | b", "model: c"],
      { progress: 1 }
    ],
    [
      "parallel results on different lines of one message stand in file order",
      [
        assistant("2", null, "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("4", "2", result("t1", "one")),
        user("5", "3", result("t2", "two")),
        assistant("6", "5", "n", text("done"))
      ],
      ["model: A(t1 {}) | B(t2 {})", 'user: A[t1] {"output":"one"} | B[t2] {"output":"two"}', "model: done"]
    ],
    [
      "lines beside the chain that share a message id are read, with their results",
      [
        assistant("2", null, "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("5", "3", result("t2", "two")),
        user("4", "2", result("t1", "one")),
        assistant("6", "4", "n", text("done"))
      ],
      ["model: A(t1 {}) | B(t2 {})", 'user: B[t2] {"output":"two"} | A[t1] {"output":"one"}', "model: done"]
    ],
    [
      "of a message id that is used again, lines beside the chain belong to the first",
      [
        assistant("2", null, "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("4", "2", result("t1", "one")),
        assistant("5", "4", "n", text("x")),
        { ...boundary("5"), uuid: "b" },
        summary,
        assistant("6", "c", "m", text("again"))
      ],
      [
        "model: A(t1 {}) | B(t2 {})",
        'user: A[t1] {"output":"one"}',
        "model: x",
        "compaction (auto, 170251), kept from nothing",
        "+ summary: so far",
        "model: again"
      ]
    ],
    [
      "a result between two lines of a message follows the whole message",
      [
        assistant("2", null, "m", use("t1", "A")),
        user("3", "2", result("t1", "one")),
        assistant("4", "3", "m", use("t2", "B")),
        user("5", "4", result("t2", "two"))
      ],
      ["model: A(t1 {}) | B(t2 {})", 'user: A[t1] {"output":"one"} | B[t2] {"output":"two"}']
    ],
    [
      "a result beside the chain is ignored where the chain answers the call itself",
      [
        assistant("2", null, "m", use("t1", "A")),
        user("3", "2", result("t1", "rejected")),
        user("4", "2", result("t1", "accepted"))
      ],
      ["model: A(t1 {})", 'user: A[t1] {"output":"accepted"}'],
      { "dead branch": 1 }
    ],
    [
      "results beside the chain are ignored where the chain answers one of their calls",
      [
        assistant("2", null, "m", [...use("t1", "A"), ...use("t2", "B")]),
        user("3", "2", [...result("t1", "rejected"), ...result("t2", "late")]),
        user("4", "2", result("t1", "accepted"))
      ],
      ["model: A(t1 {}) | B(t2 {})", 'user: A[t1] {"output":"accepted"}'],
      { "dead branch": 1 }
    ],
    [
      "a result has the name of the nearest call before it, else of any other",
      [
        assistant("1", null, "m", use("t", "First")),
        user("2", "1", result("t", "1")),
        assistant("3", "2", "n", use("t", "Second")),
        user("4", "3", result("t", "2")),
        user("5", "4", "go"),
        user("6", "5", result("later", "3")),
        assistant("7", "6", "o", use("later", "Third"))
      ],
      [
        "model: First(t {})",
        'user: First[t] {"output":"1"}',
        "model: Second(t {})",
        'user: Second[t] {"output":"2"}',
        "user: go",
        'user: Third[later] {"output":"3"}',
        "model: Third(later {})"
      ]
    ],
    [
      "an aborted answer without parts stays",
      [assistant("2", null, "m", []), user("3", "2", "again")],
      ["model: ", "user: again"]
    ],
    [
      "side chains are left out and counted",
      [user("1", null, "go"), user("s1", null, "sub", side), assistant("s2", "s1", "x", text("y"), side)],
      ["user: go"],
      { sidechain: 2 }
    ],
    [
      "a file with nothing but a side chain is a subagent's",
      [user("s1", null, "sub", side), assistant("s2", "s1", "x", text("y"), side)],
      ["user: sub", "model: y"]
    ],
    [
      "in which a branch can be dead, too",
      [user("s1", null, "sub", side), assistant("s2", "s1", "x", text("y"), side), user("s3", "s1", "z", side)],
      ["user: sub", "user: z"],
      { "dead branch": 1 }
    ],
    [
      "system and attachment lines are links of the chain, counted by kind",
      [
        user("1", null, "go"),
        other("2", "1", "system", { subtype: "turn_duration" }),
        other("3", "2", "attachment"),
        user("4", "3", "more")
      ],
      ["user: go", "user: more"],
      { "system: turn_duration": 1, attachment: 1 }
    ],
    [
      "injected lines are a program's, and errors shown as messages are none",
      [
        user("1", null, "<reminder>", { isMeta: true }),
        assistant("2", "1", "m", text("API Error: 500"), { isApiErrorMessage: true }),
        user("3", "2", "go")
      ],
      ["program: <reminder>", "user: go"],
      { "api error": 1 }
    ],
    [
      "where the parent is not in the file, the nearest earlier message is",
      [user("1", "before the file", "one"), assistant("2", "1", "m", text("two")), user("4", "lost", "three")],
      ["user: one", "model: two", "user: three"]
    ],
    [
      "a root in the middle of the file begins anew",
      [user("1", null, "old"), user("2", null, "new")],
      ["user: new"],
      { "dead branch": 1 }
    ],
    [
      "a line that stands twice counts once",
      [user("1", null, "x"), user("1", null, "x")],
      ["user: x"],
      { "repeated line": 1 }
    ],
    [
      "a compaction goes on before its boundary",
      [
        user("1", null, "one"),
        assistant("2", "1", "m", text("two")),
        boundary("1"),
        summary,
        assistant("3", "c", "n", text("three"))
      ],
      ["user: one", "compaction (auto, 170251), kept from nothing", "+ summary: so far", "model: three"],
      { "dead branch": 1 }
    ],
    [
      "also where that parent is missing",
      [user("1", null, "one"), boundary("missing", { trigger: "manual" }), summary],
      ["user: one", "compaction (manual, ?), kept from nothing", "+ summary: so far"]
    ],
    [
      "a compaction keeps its last messages in their places, and what follows hangs on them",
      [...threeTurns, boundary("4", keeping("3", "4")), summary, user("5", "4", "more")],
      [...toldTurns, "compaction (auto, ?), kept from 2", "+ summary: so far", "user: more"]
    ],
    [
      "also where only their list names them",
      [
        ...threeTurns,
        boundary("4", { preservedMessages: { anchorUuid: "c", uuids: ["3"], allUuids: ["3", "4"] } }),
        summary,
        user("5", "4", "more")
      ],
      [...toldTurns, "compaction (auto, ?), kept from 2", "+ summary: so far", "user: more"]
    ],
    [
      "and where another compaction follows it",
      [
        ...threeTurns,
        boundary("4", keeping("3", "4")),
        summary,
        user("5", "4", "more"),
        { ...boundary("5", keeping("5", "5", "c2")), uuid: "b2" },
        { ...summary, uuid: "c2", parentUuid: "b2" },
        user("6", "5", "end")
      ],
      [
        ...toldTurns,
        "compaction (auto, ?), kept from 2",
        "+ summary: so far",
        "user: more",
        "compaction (auto, ?), kept from 4",
        "+ summary: so far",
        "user: end"
      ]
    ],
    [
      "kept messages that were not the last ones are shown again",
      [...threeTurns, boundary("4", keeping("1", "2")), summary, user("5", "2", "more")],
      [
        ...toldTurns,
        "compaction (auto, ?), kept from nothing",
        "+ summary: so far",
        "+ user: one",
        "+ model: two",
        "user: more"
      ]
    ],
    [
      "before the summary where that follows them",
      [...threeTurns, boundary("4", keeping("1", "2", "b")), summary, user("5", "c", "more")],
      [
        ...toldTurns,
        "compaction (auto, ?), kept from nothing",
        "+ user: one",
        "+ model: two",
        "+ summary: so far",
        "user: more"
      ]
    ],
    [
      "a file that begins with a compaction has the kept messages after it",
      [boundary("4", keeping("3", "4")), summary, ...threeTurns.slice(2), user("5", "4", "more")],
      ["compaction (auto, ?), kept from nothing", "+ summary: so far", "user: three", "model: four", "user: more"]
    ],
    [
      "a message that goes back behind a compaction does not follow it",
      [...threeTurns, boundary("4", keeping("3", "4")), summary, user("5", "4", "more"), user("6", "2", "else")],
      ["user: one", "model: two", "user: else"],
      { "dead branch": 4, "system: compact_boundary": 1 }
    ],
    [
      "a boundary without a summary is none",
      [user("1", null, "one"), boundary("1"), user("2", "b", "two")],
      ["user: one", "user: two"],
      { "system: compact_boundary": 1 }
    ],
    [
      "a repetition of a missing line, or without a compaction, is a message",
      [
        user("1", null, "a"),
        user("2", "1", "b", { palimpsest: { again: "1" } }),
        user("3", "2", "c", { palimpsest: { inserted: true } }),
        boundary("3", {}),
        summary,
        user("5", "c", "d", { palimpsest: { again: "gone" } })
      ],
      ["user: a", "user: b", "user: c", "compaction (auto, ?), kept from nothing", "+ summary: so far", "user: d"]
    ],
    [
      "exact parts replace a record's own form; its name and ids stay known",
      [
        assistant("2", null, "m", use("toolu_1", "Read"), {
          palimpsest: { parts: [{ functionCall: { name: "Read", args: { n: 1 } }, later: 1 }] }
        }),
        user("3", "2", result("toolu_1", "x"))
      ],
      ['model: Read( {"n":1})', 'user: Read[toolu_1] {"output":"x"}']
    ],
    [
      "a mark says who wrote it, or that nobody else did",
      [
        user("1", null, "x", { isMeta: true, palimpsest: { author: "environment" } }),
        user("2", "1", "x", { isMeta: true, palimpsest: { author: null } })
      ],
      ["environment: x", "user: x"]
    ]
  ]
  it.each(cases.map((one) => [one[0], one] as const))("%s", (_, [, list, expected, skipped = {}]) => {
    const transcript = records(...list)
    assert.deepStrictEqual(told(transcript), expected)
    assert.deepStrictEqual(transcript.skipped, skipped)
  })

  it.each<readonly [name: string, content: unknown, failed: boolean, expected: unknown]>([
    ["a single text block", text("out"), false, { output: "out" }],
    ["no content", undefined, false, { output: "" }],
    ["several blocks", [...text("a"), ...text("b")], false, { content: [...text("a"), ...text("b")] }],
    ["an image", [image], false, { content: [image] }],
    ["a failure in blocks", [...text("a"), image], true, { error: [...text("a"), image] }]
  ])("a result that is %s", (_, content, is_error, expected) => {
    const [, answer] = contents(
      records(assistant("2", null, "m", use("t", "Bash")), user("3", "2", result("t", content, { is_error })))
    )
    assert.deepStrictEqual(answer?.parts, [{ functionResponse: { id: "t", name: "Bash", response: expected } }])
  })

  it("a message has the ids of its lines and the time of the first; the folder is the first that is named", () => {
    const timestamp = "2026-02-10T21:11:56.846Z"
    const transcript = records(
      other("0", null, "progress", { cwd: "/first" }),
      user("1", "0", "go", { timestamp, cwd: "/second" }),
      assistant("2", "1", "m", text("a")),
      assistant("3", "2", "m", text("b"))
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, origin }) => [at, origin]),
      [
        [Date.parse(timestamp), { line: 2, ids: ["1"] }],
        [undefined, { line: 3, ids: ["2", "3"] }]
      ]
    )
    assert.deepStrictEqual([transcript.model, transcript.cwd, transcript.session], ["claude-x", "/first", "s"])
  })

  it("marks of another form are not ours, and keys beside role and parts cannot change these", () => {
    for (const palimpsest of [[], "x", { author: "user" }, { usage: { prompt: -1 } }]) {
      const [draft] = drafts(records(user("1", null, "x", { palimpsest })))
      assert.deepStrictEqual(
        [draft?.author, draft?.usage, draft?.content],
        [undefined, undefined, { role: "user", parts: [{ text: "x" }] }]
      )
    }
    const [draft] = drafts(
      records(user("1", null, "x", { palimpsest: { keys: { hint: 1, role: "model", parts: [] } } }))
    )
    assert.deepStrictEqual(draft?.content, { role: "user", parts: [{ text: "x" }], hint: 1 })
  })
})

describe("what the model was shown beside a message", () => {
  const beside = (uuid: string, parent: string, type: string, rest: object) =>
    other(uuid, parent, "attachment", { attachment: { type, ...rest } })
  const attachments = corpus<readonly [kind: string, rest: object, shown: string]>("claude-attachments")
  it.each(attachments)("%s", (kind, rest, shown) => {
    assert.deepStrictEqual(told(records(user("1", null, "go"), beside("2", "1", kind, rest), user("3", "2", "on"))), [
      "user: go",
      `program: ${shown}`,
      "user: on"
    ])
  })

  it("stands after the results that come with it, and what shows nothing is counted", () => {
    const transcript = records(
      assistant("1", null, "m", use("t1", "A")),
      beside("2", "1", "nested_memory", { path: "/m", content: { content: "A" } }),
      assistant("3", "2", "m", use("t2", "B")),
      user("4", "3", result("t1", "one")),
      beside("5", "4", "hook_success", { hookEvent: "PostToolUse", content: "unseen" }),
      beside("6", "5", "edited_text_file", { filename: "/a", snippet: "B" }),
      user("7", "6", result("t2", "two")),
      beside("8", "7", "toString", {}),
      assistant("9", "8", "n", text("done"))
    )
    assert.deepStrictEqual(told(transcript), [
      "model: A(t1 {}) | B(t2 {})",
      'user: A[t1] {"output":"one"} | B[t2] {"output":"two"}',
      "program: Contents of /m:\n\nA | /a was changed outside the conversation:\n\nB",
      "model: done"
    ])
    assert.deepStrictEqual(transcript.skipped, { "attachment: hook_success": 1, "attachment: toString": 1 })
  })
})

it("kinds of records that this program does not know are named, with the version that wrote them", () => {
  const { skipped, unknown } = records(
    { ...user("1", null, "go"), version: "2.1.300" },
    other("2", "1", "hologram"),
    other("3", "2", "system", { subtype: "hologram" }),
    other("4", "3", "attachment", { attachment: { type: "hologram" } }),
    other("5", "4", "system", { subtype: "turn_duration" }),
    { ...other("6", "5", "hologram"), version: "2.1.300" }
  )
  assert.deepStrictEqual(unknown, {
    program: "Claude Code 2.1.300",
    kinds: ["hologram", "system: hologram", "attachment: hologram"]
  })
  assert.strictEqual(skipped.hologram, 2)
  assert.isUndefined(records(user("1", null, "go"), other("2", "1", "progress")).unknown)
})

describe("recorded use", () => {
  const counts = (input: unknown, written: unknown, cached: unknown, output: unknown, rest: object = {}) => ({
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: written,
      cache_read_input_tokens: cached,
      output_tokens: output,
      ...rest
    }
  })
  const hour = { cache_creation: { ephemeral_1h_input_tokens: 9 } }
  it.each<readonly [string, ReadonlyArray<object>, unknown]>([
    [
      "of repeated lines, the last",
      [counts(3, 13_835, 11_515, 1), counts(3, 13_835, 11_515, 13)],
      { prompt: 25_353, answer: 13, thoughts: 0, cached: 11_515, cacheWrite: 13_835 }
    ],
    [
      "with what a cache keeps for an hour",
      [counts(3, 10, 0, 1, hour)],
      { prompt: 13, answer: 1, thoughts: 0, cached: 0, cacheWrite: 10, cacheWriteHour: 9 }
    ],
    [
      "of which there cannot be more than was written",
      [counts(3, 5, 0, 1, hour)],
      { prompt: 8, answer: 1, thoughts: 0, cached: 0, cacheWrite: 5, cacheWriteHour: 5 }
    ],
    ["no cache", [{ usage: { input_tokens: 5, output_tokens: 2 } }], { prompt: 5, answer: 2, thoughts: 0, cached: 0 }],
    ["nothing at all", [counts(0, 0, 0, 0)], undefined],
    ["no usage", [{}], undefined],
    ["a sum that cannot be counted", [counts(2 ** 53 - 1, 2 ** 53 - 1, 0, 2)], undefined]
  ])("%s", (_, list, expected) => {
    const lines = list.map((one, n) => {
      const line = assistant(String(n + 1), String(n), "m", text("x"))
      return { ...line, message: { ...line.message, ...one } }
    })
    const [, draft] = drafts(records(user("0", null, "go"), ...lines))
    assert.deepStrictEqual([draft?.usage, draft?.model], [expected, "claude-x"])
  })

  it("lines that no model wrote have none", () => {
    const message = { id: "m", model: "<synthetic>", content: text("x") }
    assert.isUndefined(drafts(records({ ...assistant("2", null, "m", []), message }))[0]?.model)
  })
})

describe("invalid records", () => {
  it.each<readonly [name: string, records: ReadonlyArray<unknown>, where: string]>([
    ["no record", [5], ""],
    ["no message", [{ type: "user", uuid: "1", parentUuid: null }], "message:"],
    ["content that is a number", [user("1", null, 5)], "message.content:"],
    ["a block without type", [user("1", null, [{}])], "message.content[0]:"],
    ["a result that is a number", [user("1", null, result("t", 5))], "message.content[0].content:"],
    ["exact parts that are none", [user("1", null, "x", { palimpsest: { parts: [5] } })], "palimpsest.parts[0]:"],
    ["a parent that is the line itself", [user("1", "1", "x")], ""],
    ["a parent that is a later line", [user("1", "3", "x"), user("2", "1", "y"), user("3", "2", "z")], ""]
  ])("%s is a problem of the line", (_, list, where) => {
    const problem = bad(read(list.map((record) => JSON.stringify(record))))
    assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [1, true], problemText(problem))
    assert.notInclude(problemText(problem), "\n")
  })

  it("a lenient reader goes over a circle of parents", () => {
    const reader = claudeReader(true)
    for (const [index, record] of [user("1", "2", "a"), user("2", "1", "b")].entries())
      reader.line(record, JSON.stringify(record), index + 1)
    assert.deepStrictEqual(told(ok(runSync(reader.end()))), ["user: a", "user: b"])
  })
})

describe("lossless", () => {
  it.each([
    ["a text", (escape: string) => `[{"type":"text","text":"${escape}"}]`],
    ["a thought", (escape: string) => `[{"type":"thinking","thinking":"${escape}"}]`],
    ["a result", (escape: string) => `[{"type":"tool_result","tool_use_id":"t","content":"${escape}"}]`],
    [
      "a result in a block",
      (escape: string) => `[{"type":"tool_result","content":[{"type":"text","text":"${escape}"}]}]`
    ]
  ])("%s with an escaped surrogate is distinguished from one with bytes that are not UTF-8", (_, content) => {
    const draftWith = (spelled: string) =>
      drafts(ok(read([`{"type":"user","uuid":"1","parentUuid":null,"message":{"content":${content(spelled)}}}`])))[0]
    const spelled = draftWith("\\udc80")
    const raw = draftWith("\uDC80")
    assert.isDefined(spelled?.source?.["0"])
    assert.deepStrictEqual(JSON.parse(spelled?.source?.["0"] ?? ""), spelled?.content.parts[0])
    const part = raw?.content.parts[0]
    assert.isDefined(part)
    if (part !== undefined) assert.strictEqual(payload(part, raw?.source?.["0"]).text, "\uDC80")
  })
})

describe("text the user typed while the agent worked", () => {
  const queue = (operation: string, content?: unknown) => ({
    type: "queue-operation",
    operation,
    timestamp: "2026-01-01T00:00:05Z",
    sessionId: "s",
    ...(content === undefined ? {} : { content })
  })
  const begin = [
    user("1", null, "start"),
    assistant("2", "1", "m", use("t1", "Bash")),
    user("3", "2", result("t1", "ok"))
  ]
  const said = (records: ReadonlyArray<object>) => {
    const transcript = ok(readRecords(records))
    return [drafts(transcript).map(messageText), transcript.skipped["queue-operation"]] as const
  }
  const opening = ["user: start", "model: Bash(t1 {})", 'user: Bash[t1] {"output":"ok"}']

  it("is placed where it was delivered: after the results sent with it, before the next answer", () => {
    const [first, second, third] = begin
    if (first === undefined || second === undefined || third === undefined) return assert.fail("expected three records")
    const records = [
      first,
      second,
      queue("enqueue", "also the tests"),
      queue("remove"),
      third,
      assistant("4", "3", "n", text("both"))
    ]
    assert.deepStrictEqual(said(records), [[...opening, "user: also the tests", "model: both"], undefined])
    const [, , , queued] = drafts(ok(readRecords(records)))
    assert.deepStrictEqual(queued?.origin, { line: 3, ids: [] })
    assert.strictEqual(queued?.at, Date.parse("2026-01-01T00:00:05Z"))
  })

  it.each<readonly [string, ReadonlyArray<object>, ReadonlyArray<string>, number]>([
    [
      "that became a message",
      [queue("enqueue", "go on"), queue("dequeue"), user("4", "3", "go on")],
      ["user: go on"],
      0
    ],
    [
      "that became one message with others",
      [
        queue("enqueue", "one"),
        queue("enqueue", "two"),
        queue("dequeue"),
        queue("dequeue"),
        user("4", "3", "one\ntwo"),
        assistant("5", "4", "n", text("ok"))
      ],
      ["user: one\ntwo", "model: ok"],
      0
    ],
    [
      "that stands as an attachment",
      [
        queue("enqueue", "go on"),
        queue("remove"),
        other("4", "3", "attachment", {
          attachment: { type: "queued_command", prompt: "go on", commandMode: "prompt" }
        }),
        assistant("5", "4", "n", text("ok"))
      ],
      ["user: go on", "model: ok"],
      0
    ],
    ["that the user took back", [queue("enqueue", "go on"), queue("popAll", "go on")], [], 2],
    [
      "that the user took back together, with a program's beside them",
      [
        queue("enqueue", "one"),
        queue("enqueue", "<task-notification>done</task-notification>"),
        queue("enqueue", "two"),
        queue("popAll", "one\ntwo"),
        queue("remove")
      ],
      ["program: <task-notification>done</task-notification>"],
      3
    ],
    [
      "that began the next turn without a record",
      [queue("enqueue", "go on"), assistant("4", "3", "n", text("ok")), user("5", "4", "go on")],
      ["model: ok", "user: go on"],
      0
    ],
    ["that is still waiting", [queue("enqueue", "go on")], [], 1],
    [
      "twice the same, of which one became a message",
      [
        queue("enqueue", "go on"),
        queue("remove"),
        queue("enqueue", "go on"),
        queue("remove"),
        user("4", "3", "go on"),
        assistant("5", "4", "n", text("ok"))
      ],
      ["user: go on", "user: go on", "model: ok"],
      0
    ],
    [
      "that the user types again after the answer",
      [
        queue("enqueue", "continue"),
        queue("remove"),
        assistant("4", "3", "n", text("ok")),
        user("5", "4", "continue"),
        assistant("6", "5", "o", text("done"))
      ],
      ["user: continue", "model: ok", "user: continue", "model: done"],
      0
    ],
    [
      "that only a summary repeats",
      [
        queue("enqueue", "also the tests"),
        queue("remove"),
        assistant("4", "3", "n", text("ok")),
        user("5", null, "All user messages: also the tests", { isCompactSummary: true, logicalParentUuid: "4" })
      ],
      ["user: also the tests", "model: ok", "summary: All user messages: also the tests"],
      0
    ],
    [
      "that no user typed",
      [queue("enqueue", "<task-notification>done</task-notification>"), queue("remove")],
      ["program: <task-notification>done</task-notification>"],
      0
    ],
    [
      "behind words of a program",
      [queue("enqueue", "<task-notification>done</task-notification>\nand now the tests"), queue("remove")],
      ["user: <task-notification>done</task-notification>\nand now the tests"],
      0
    ],
    [
      "that quotes a program, in an attachment that says whose words they are",
      [
        other("4", "3", "attachment", {
          attachment: {
            type: "queued_command",
            prompt: "<task-notification>done</task-notification>",
            commandMode: "prompt"
          }
        }),
        assistant("5", "4", "n", text("ok"))
      ],
      ["user: <task-notification>done</task-notification>", "model: ok"],
      0
    ],
    ["of another order", [queue("enqueue", "a"), queue("enqueue", "b"), queue("remove", "b")], ["user: b"], 1],
    ["with broken content", [queue("enqueue", 7), queue("remove"), queue("later")], [], 3]
  ])("%s", (_, records, expected, skipped) => {
    assert.deepStrictEqual(said([...begin, ...records]), [[...opening, ...expected], skipped || undefined])
  })

  it("is placed by delivery when there are pauses", () => {
    const pauses = (deliveries: number) => {
      const reader = claudeReader()
      const queued = Array.from({ length: deliveries }, () => [queue("enqueue", "start"), queue("remove")]).flat()
      for (const [index, record] of [...begin, ...queued, assistant("4", "3", "n", text("start"))].entries()) {
        assert.isUndefined(reader.line(record, JSON.stringify(record), index + 1))
      }
      const work = reader.end()
      let count = 0
      while (work.next().done !== true) count += 1
      return count
    }
    // One where it is put in its place, one where it is read.
    assert.strictEqual(pauses(50) - pauses(0), 100)
  })

  it("is left out on an abandoned branch", () => {
    const records = [
      ...begin,
      assistant("4", "3", "n", text("dead")),
      queue("enqueue", "dead too"),
      queue("remove"),
      assistant("5", "3", "o", text("alive"))
    ]
    assert.deepStrictEqual(said(records), [[...opening, "model: alive"], 2])
  })
})

describe("order is time and parent, not place in the file", () => {
  const at = (minute: number, rest: object = {}) => ({ timestamp: `2026-01-01T10:${minute}:00.000Z`, ...rest })
  const queue = (operation: string, minute: number, content?: string) =>
    at(minute, { type: "queue-operation", operation, ...(content === undefined ? {} : { content }) })
  const first = [user("1", null, "parse", at(10)), assistant("2", "1", "m", text("parsed"), at(11))]
  const second = [user("3", "2", "rename", at(20)), assistant("4", "3", "n", text("renamed"), at(21))]
  const four = ["user: parse", "model: parsed", "user: rename", "model: renamed"]
  const called = [
    user("1", null, "plan", at(10)),
    assistant("2", "1", "m", use("t", "Write"), at(11)),
    queue("enqueue", 12, "in British English"),
    user("3", "2", result("t", "ok"), at(13)),
    queue("remove", 14),
    assistant("4", "3", "n", text("written"), at(15))
  ]
  const again = [
    user("1b", null, "plan", at(10)),
    assistant("2b", "1b", "m", use("t", "Write"), at(11)),
    user("3b", "2b", result("t", "ok"), at(13)),
    assistant("4b", "3b", "n", text("written"), at(15))
  ]
  const plan = [
    "user: plan",
    "model: Write(t {})",
    'user: Write[t] {"output":"ok"}',
    "user: in British English",
    "model: written"
  ]
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<object>, ReadonlyArray<string>, object?]> = [
    [
      "a fork begins with the queue of its prompt, before the history that it copied",
      [queue("enqueue", 19, "rename"), queue("dequeue", 19), ...first, ...second],
      four
    ],
    [
      "also where the prompt was sent within the turn",
      [
        queue("enqueue", 15, "rename"),
        queue("remove", 16),
        ...first,
        assistant("5", "2", "o", text("renamed"), at(21))
      ],
      four
    ],
    [
      "also together with another one",
      [
        ...["rename", "test"].map((words) => queue("enqueue", 19, words)),
        queue("dequeue", 19),
        queue("dequeue", 19),
        ...first,
        user("3", "2", "rename\ntest", at(20))
      ],
      ["user: parse", "model: parsed", "user: rename\ntest"]
    ],
    [
      "a message leaves the queue before the last answer of the turn is written",
      [...first.slice(0, 1), queue("enqueue", 10, "rename"), queue("dequeue", 12), ...first.slice(1), ...second],
      four
    ],
    ["a file whose records are in another order", [...second, ...first].reverse(), four],
    [
      "a line of an answer that is written after the next request",
      [
        ...first,
        user("3", "2", "rename", at(20)),
        assistant("2b", "2", "m", text("see above"), at(12)),
        assistant("4", "3", "n", text("renamed"), at(21))
      ],
      ["user: parse", "model: parsed | see above", "user: rename", "model: renamed"]
    ],
    [
      "and after which nothing follows",
      [...first, user("3", "2", "rename", at(20)), assistant("2b", "2", "m", text("see above"), at(12))],
      ["user: parse", "model: parsed | see above", "user: rename"]
    ],
    [
      "a last record that is a moment older than its parent",
      [...first, user("3", "2", "rename", at(20)), user("4", "3", "and test", at(19))],
      ["user: parse", "model: parsed", "user: rename", "user: and test"]
    ],
    [
      "a message after a compaction that is older than its boundary, whose own parent is missing",
      [
        ...first,
        at(30, boundary("missing")),
        at(30, summary),
        user("5", "c", "rename", at(20)),
        assistant("6", "5", "n", text("renamed"), at(31))
      ],
      [...four.slice(0, 2), "compaction (auto, 170251), kept from nothing", "+ summary: so far", ...four.slice(2)]
    ],
    [
      "a history that was appended again under other ids",
      [...called, ...again, user("5", "4b", "next", at(20))],
      [...plan, "user: next"],
      { "repeated line": 2 }
    ],
    [
      "behind which nothing new follows",
      [...called, user("5", "4", "next", at(20)), ...again],
      [...plan, "user: next"],
      { "repeated line": 2 }
    ],
    [
      "and that goes on from the first copy",
      [...called, ...again.map((line) => (line.uuid === "1b" ? { ...line, parentUuid: "4" } : line))],
      plan,
      { "repeated line": 2 }
    ]
  ]
  it.each(cases.map((one) => [one[0], one] as const))("%s", (_, [, list, expected, skipped = {}]) => {
    const transcript = records(...list)
    assert.deepStrictEqual(told(transcript), expected)
    assert.deepStrictEqual(transcript.skipped, skipped)
  })
})
