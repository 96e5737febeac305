import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { isCall, isResponse, isText, isThought, payload } from "../../../src/domain/content/Content.ts"
import { claudeReader } from "../../../src/domain/transcripts/ClaudeReader.ts"
import { problemText } from "../../../src/domain/transcripts/Problem.ts"
import { bad, contents, drafts, ok, reading, shape } from "../../support/reading.ts"
import { runsOf } from "../../support/runs.ts"

const fixture = (name: string): Array<string> =>
  gunzipSync(readFileSync(new URL(`../../fixtures/sessions/${name}.jsonl.gz`, import.meta.url)))
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "")

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

describe("wire shape", () => {
  it("maps text, thinking, tool_use, tool_result and image to parts of the Gemini API", () => {
    const transcript = ok(
      readRecords([
        user("1", null, [
          { type: "text", text: "look" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }
        ]),
        assistant("2", "1", "m", [{ type: "thinking", thinking: "hm", signature: "sig" }]),
        assistant("3", "2", "m", use("t1", "Read", { file_path: "/a" })),
        user("4", "3", result("t1", "content of a"))
      ])
    )
    assert.deepStrictEqual(contents(transcript), [
      { role: "user", parts: [{ text: "look" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }] },
      {
        role: "model",
        parts: [
          { text: "hm", thought: true, thoughtSignature: "sig" },
          { functionCall: { id: "t1", name: "Read", args: { file_path: "/a" } } }
        ]
      },
      { role: "user", parts: [{ functionResponse: { id: "t1", name: "Read", response: { output: "content of a" } } }] }
    ])
  })

  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }
  const answers: ReadonlyArray<readonly [name: string, content: unknown, failed: boolean, expected: unknown]> = [
    ["a text", "out", false, { output: "out" }],
    ["a single text block", text("out"), false, { output: "out" }],
    ["no block", [], false, { output: "" }],
    ["no content", undefined, false, { output: "" }],
    ["a failure", "boom", true, { error: "boom" }],
    ["several blocks", [...text("a"), ...text("b")], false, { content: [...text("a"), ...text("b")] }],
    ["an image", [image], false, { content: [image] }],
    ["text and image", [...text("a"), image], false, { content: [...text("a"), image] }],
    ["a failure in blocks", [...text("a"), ...text("b")], true, { error: [...text("a"), ...text("b")] }]
  ]
  it.each(answers)("a tool result that is %s", (_, content, failed, expected) => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t", "Bash")),
        user("3", "2", result("t", content, { is_error: failed }))
      ])
    )
    assert.deepStrictEqual(contents(transcript)[2]?.parts, [
      { functionResponse: { id: "t", name: "Bash", response: expected } }
    ])
  })

  it("counts blocks that cannot be shown", () => {
    const transcript = ok(readRecords([user("1", null, [{ type: "hologram" }, ...text("x")])]))
    assert.deepStrictEqual(contents(transcript)[0]?.parts, [{ text: "x" }])
    assert.deepStrictEqual(transcript.skipped, { "block: hologram": 1 })
  })

  it("drafts have time, line and ids; the transcript has model, folder and session", () => {
    const timestamp = "2026-02-10T21:11:56.846Z"
    const transcript = ok(
      readRecords([
        other("0", null, "progress", { cwd: "/first" }),
        user("1", "0", "go", { timestamp, cwd: "/second" }),
        assistant("2", "1", "m", text("a")),
        assistant("3", "2", "m", text("b"))
      ])
    )
    assert.deepStrictEqual(
      drafts(transcript).map(({ at, origin }) => ({ at, origin })),
      [
        { at: Date.parse(timestamp), origin: { line: 2, ids: ["1"] } },
        { at: undefined, origin: { line: 3, ids: ["2", "3"] } }
      ]
    )
    assert.deepStrictEqual([transcript.model, transcript.cwd, transcript.session], ["claude-x", "/first", "s"])
  })
})

describe("turns", () => {
  it("joins the lines of one API message, also across progress lines", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", text("a")),
        other("p", "2", "progress"),
        assistant("3", "p", "m", text("b")),
        assistant("4", "3", "n", text("c"))
      ])
    )
    assert.strictEqual(shape(transcript), "u1 m2 m1")
    assert.deepStrictEqual(transcript.skipped, { progress: 1 })
  })

  it("reads parallel results on different lines of one message, in file order", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("4", "2", result("t1", "one")),
        user("5", "3", result("t2", "two")),
        assistant("6", "5", "n", text("done"))
      ])
    )
    assert.strictEqual(shape(transcript), "u1 m2 u2 m1")
    assert.deepStrictEqual(
      contents(transcript)[2]?.parts.map((part) => part.functionResponse?.id),
      ["t1", "t2"]
    )
    assert.deepStrictEqual(transcript.skipped, {})
  })

  it("reads assistant lines beside the chain that share its message id, with their results", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("5", "3", result("t2", "two")),
        user("4", "2", result("t1", "one")),
        assistant("6", "4", "n", text("done"))
      ])
    )
    assert.strictEqual(shape(transcript), "u1 m2 u2 m1")
    assert.deepStrictEqual(
      contents(transcript)[2]?.parts.map((part) => part.functionResponse?.id),
      ["t2", "t1"]
    )
  })

  it("adds lines beside the chain to the first of two turns with their message id, where a compaction repeats it", () => {
    const summary = { isCompactSummary: true, isVisibleInTranscriptOnly: true }
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t1", "A")),
        assistant("3", "2", "m", use("t2", "B")),
        user("5", "2", result("t1", "one")),
        user("6", "5", "This session is being continued", summary),
        assistant("7", "6", "m", use("t1", "A")),
        user("8", "7", result("t1", "one")),
        assistant("9", "8", "n", text("done"))
      ])
    )
    assert.deepStrictEqual(
      contents(transcript).map(({ parts }) => parts.map(({ functionCall }) => functionCall?.id).join()),
      ["", "t1,t2", "", "", "t1", "", ""]
    )
  })

  it("puts a result between two lines of a message behind the whole message", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t1", "A")),
        user("3", "2", result("t1", "one")),
        assistant("4", "3", "m", use("t2", "B")),
        user("5", "4", result("t2", "two"))
      ])
    )
    assert.strictEqual(shape(transcript), "u1 m2 u2")
  })

  it("ignores a result beside the chain when the chain answers the call itself", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("t1", "A")),
        user("3", "2", result("t1", "rejected")),
        user("4", "2", result("t1", "accepted")),
        assistant("5", "4", "n", text("done"))
      ])
    )
    assert.deepStrictEqual(contents(transcript)[2]?.parts[0]?.functionResponse?.response, { output: "accepted" })
    assert.deepStrictEqual(transcript.skipped, { "dead branch": 1 })
  })

  it("ignores results beside the chain, one of which the chain has", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", [...use("t1", "A"), ...use("t2", "B")]),
        user("3", "2", [...result("t1", "rejected"), ...result("t2", "late")]),
        user("4", "2", result("t1", "accepted")),
        assistant("5", "4", "n", text("done"))
      ])
    )
    assert.notInclude(JSON.stringify(contents(transcript)), "rejected")
    assert.deepStrictEqual(transcript.skipped, { "dead branch": 1 })
  })

  it("keeps an aborted assistant message without parts", () => {
    const transcript = ok(readRecords([user("1", null, "go"), assistant("2", "1", "m", []), user("3", "2", "again")]))
    assert.strictEqual(shape(transcript), "u1 m0 u1")
  })
})

describe("chain", () => {
  it("ignores abandoned branches; the last message is the leaf", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", text("first")),
        user("3", "2", "left"),
        assistant("4", "3", "n", text("left too")),
        user("5", "2", "taken")
      ])
    )
    assert.deepStrictEqual(
      contents(transcript).flatMap((content) => content.parts.map((part) => part.text)),
      ["go", "first", "taken"]
    )
    assert.deepStrictEqual(transcript.skipped, { "dead branch": 2 })
  })

  it("leaves out and counts sidechains", () => {
    const side = { isSidechain: true }
    const transcript = ok(
      readRecords([user("1", null, "go"), user("s1", null, "sub", side), assistant("s2", "s1", "x", text("y"), side)])
    )
    assert.strictEqual(shape(transcript), "u1")
    assert.deepStrictEqual(transcript.skipped, { sidechain: 2 })
  })

  it("reads a file with only a sidechain as a subagent's transcript", () => {
    const side = { isSidechain: true }
    const transcript = ok(readRecords([user("s1", null, "sub", side), assistant("s2", "s1", "x", text("y"), side)]))
    assert.strictEqual(shape(transcript), "u1 m1")
  })

  it("follows system and attachment lines in the chain, and counts them by kind", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        other("2", "1", "system", { subtype: "turn_duration" }),
        other("3", "2", "attachment"),
        user("4", "3", "more")
      ])
    )
    assert.strictEqual(shape(transcript), "u1 u1")
    assert.deepStrictEqual(transcript.skipped, { "system: turn_duration": 1, attachment: 1 })
  })

  it("gives lines that the program injected the author program; skips errors shown as messages", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "<reminder>", { isMeta: true }),
        assistant("2", "1", "m", text("API Error: 500"), { isApiErrorMessage: true }),
        user("3", "2", "go")
      ])
    )
    assert.deepStrictEqual(
      drafts(transcript).map((draft) => draft.author),
      ["program", undefined]
    )
    assert.deepStrictEqual(transcript.skipped, { "api error": 1 })
  })

  it("continues at the nearest earlier message when the parent is not in the file", () => {
    const transcript = ok(
      readRecords([
        user("1", "before the file", "one"),
        assistant("2", "1", "m", text("two")),
        user("4", "lost", "three")
      ])
    )
    assert.strictEqual(shape(transcript), "u1 m1 u1")
  })

  it("restarts the conversation at a root in the middle of the file", () => {
    const transcript = ok(readRecords([user("1", null, "old"), user("2", null, "new")]))
    assert.deepStrictEqual(contents(transcript), [{ role: "user", parts: [{ text: "new" }] }])
    assert.deepStrictEqual(transcript.skipped, { "dead branch": 1 })
  })

  it.each([
    ["itself", [user("1", "1", "x")], 1],
    ["a later line", [user("1", "3", "x"), user("2", "1", "y"), user("3", "2", "z")], 1]
  ] as const)("a parent that is %s is a problem that names the line", (_, records, line) => {
    const problem = bad(readRecords(records))
    assert.strictEqual(problem.line, line)
    assert.include(problemText(problem), "parentUuid")
  })

  it("counts a duplicated line once", () => {
    const transcript = ok(readRecords([user("1", null, "x"), user("1", null, "x")]))
    assert.strictEqual(shape(transcript), "u1")
    assert.deepStrictEqual(transcript.skipped, { "repeated line": 1 })
  })
})

describe("compaction", () => {
  const boundary = (logicalParentUuid: string) =>
    other("b", null, "system", {
      subtype: "compact_boundary",
      logicalParentUuid,
      compactMetadata: { trigger: "auto", preTokens: 170_251 }
    })
  const summary = user("c", "b", "This session is being continued", { isCompactSummary: true })

  it.each([["2"], ["missing from the file"]])(
    "goes on before the boundary through logicalParentUuid (%s)",
    (logical) => {
      const transcript = ok(
        readRecords([
          user("1", null, "one"),
          assistant("2", "1", "m", text("two")),
          boundary(logical),
          summary,
          assistant("3", "c", "n", text("three"))
        ])
      )
      assert.strictEqual(shape(transcript), "u1 m1 C m1")
      const step = transcript.steps[2]
      assert.strictEqual(step?._tag, "Compaction")
      if (step?._tag !== "Compaction") return
      assert.strictEqual(step.tokensBefore, 170_251)
      assert.strictEqual(step.trigger, "auto")
      assert.strictEqual(step.keptFrom, undefined)
      assert.strictEqual(step.insert[0]?.author, "summary")
      assert.deepStrictEqual(step.insert[0]?.content, {
        role: "user",
        parts: [{ text: "This session is being continued" }]
      })
      assert.deepStrictEqual(transcript.skipped, {})
    }
  )

  it("records that the user requested it", () => {
    const manual = other("b", null, "system", {
      subtype: "compact_boundary",
      logicalParentUuid: "1",
      compactMetadata: { trigger: "manual" }
    })
    const step = ok(readRecords([user("1", null, "one"), manual, summary])).steps[1]
    assert.deepStrictEqual(step?._tag === "Compaction" ? [step.trigger, step.tokensBefore] : [], ["manual", undefined])
  })

  it("ignores a boundary without a summary", () => {
    const transcript = ok(readRecords([user("1", null, "one"), boundary("1"), user("2", "b", "two")]))
    assert.strictEqual(shape(transcript), "u1 u1")
    assert.deepStrictEqual(transcript.skipped, { "system: compact_boundary": 1 })
  })
})

describe("recorded use", () => {
  const usage = (...counts: ReadonlyArray<unknown>) => ({
    usage: {
      input_tokens: counts[0],
      cache_creation_input_tokens: counts[1],
      cache_read_input_tokens: counts[2],
      output_tokens: counts[3]
    }
  })
  const line = (uuid: string, parentUuid: string, counts: object) => ({
    ...assistant(uuid, parentUuid, "m", text(uuid)),
    message: { id: "m", role: "assistant", model: "claude-x", content: text(uuid), ...counts }
  })
  const read = (...counts: ReadonlyArray<object>) =>
    drafts(ok(readRecords([user("0", null, "go"), ...counts.map((one, n) => line(String(n + 1), String(n), one))])))[1]

  it("adds up all three kinds of input, and takes the last of repeated lines", () => {
    const draft = read(usage(3, 13_835, 11_515, 1), usage(3, 13_835, 11_515, 13))
    assert.deepStrictEqual(draft?.usage, {
      prompt: 25_353,
      answer: 13,
      thoughts: 0,
      cached: 11_515,
      cacheWrite: 13_835
    })
    assert.strictEqual(draft?.model, "claude-x")
  })

  it.each<readonly [string, object, unknown]>([
    ["no cache", { usage: { input_tokens: 5, output_tokens: 2 } }, { prompt: 5, answer: 2, thoughts: 0, cached: 0 }],
    ["null for none", usage(5, null, null, 2), { prompt: 5, answer: 2, thoughts: 0, cached: 0 }],
    ["nothing at all", usage(0, 0, 0, 0), undefined],
    ["no usage", {}, undefined],
    ["a text", usage("5", 0, 0, 2), undefined],
    ["less than nothing", usage(-1, 0, 0, 2), undefined],
    ["more than can be counted", usage(2 ** 53, 0, 0, 2), undefined],
    ["a sum that cannot be counted", usage(2 ** 53 - 1, 2 ** 53 - 1, 0, 2), undefined],
    ["a part of one", usage(0.5, 0, 0, 2), undefined]
  ])("%s", (_, counts, expected) => {
    assert.deepStrictEqual(read(counts)?.usage, expected)
  })

  it("is absent without a model", () => {
    const [, draft] = drafts(
      ok(
        readRecords([
          user("1", null, "go"),
          { ...assistant("2", "1", "m", text("x")), message: { id: "m", model: "<synthetic>", content: text("x") } }
        ])
      )
    )
    assert.isUndefined(draft?.model)
  })
})

describe("our own records", () => {
  it("exact parts replace the record's own form, including the call's name and ids", () => {
    const part = { functionCall: { name: "Read", args: { n: 1 } }, later: 1 }
    const transcript = ok(
      readRecords([
        user("1", null, "go"),
        assistant("2", "1", "m", use("toolu_1", "Read", {}), { palimpsest: { parts: [part] } }),
        user("3", "2", result("toolu_1", "x"))
      ])
    )
    assert.deepStrictEqual(contents(transcript)[1]?.parts, [part])
    assert.strictEqual(contents(transcript)[2]?.parts[0]?.functionResponse?.name, "Read")
  })

  it("invalid exact parts are a problem that names the line", () => {
    const problem = bad(readRecords([user("1", null, "x", { palimpsest: { parts: [5] } })]))
    assert.strictEqual(problem.line, 1)
    assert.include(problemText(problem), "palimpsest.parts")
  })

  it.each([
    ["a list", []],
    ["a text", "x"],
    ["an invalid author", { author: "user" }],
    ["an invalid usage", { usage: { prompt: -1 } }]
  ])("marks that are %s are not ours", (_, palimpsest) => {
    const [draft] = drafts(ok(readRecords([user("1", null, "x", { palimpsest })])))
    assert.deepStrictEqual(
      [draft?.author, draft?.usage, draft?.content],
      [undefined, undefined, { role: "user", parts: [{ text: "x" }] }]
    )
  })

  it.each<readonly [string, object, string | undefined]>([
    ["says who wrote it", { author: "environment" }, "environment"],
    ["says that nobody else did", { author: null }, undefined]
  ])("a mark %s", (_, palimpsest, author) => {
    const [draft] = drafts(ok(readRecords([user("1", null, "x", { isMeta: true, palimpsest })])))
    assert.strictEqual(draft?.author, author)
  })

  it("keys beside role and parts are restored, and cannot change these", () => {
    const palimpsest = { keys: { hint: 1, role: "model", parts: [] } }
    const [draft] = drafts(ok(readRecords([user("1", null, "x", { palimpsest })])))
    assert.deepStrictEqual(draft?.content, { role: "user", parts: [{ text: "x" }], hint: 1 })
  })

  it("a repetition of a missing line, or without a compaction, is a message", () => {
    const transcript = ok(
      readRecords([
        user("1", null, "a"),
        user("2", "1", "b", { palimpsest: { again: "1" } }),
        user("3", "2", "c", { palimpsest: { inserted: true } }),
        other("b", null, "system", { subtype: "compact_boundary", logicalParentUuid: "3" }),
        user("4", "b", "s", { isCompactSummary: true }),
        user("5", "4", "d", { palimpsest: { again: "gone" } })
      ])
    )
    assert.strictEqual(shape(transcript), "u1 u1 u1 C u1")
  })
})

describe("names of responses", () => {
  it("a response takes the name of the nearest call before it, else of any other", () => {
    const transcript = ok(
      readRecords([
        assistant("1", null, "m", use("t", "First")),
        user("2", "1", result("t", "one")),
        assistant("3", "2", "n", use("t", "Second")),
        user("4", "3", result("t", "two")),
        user("5", "4", "go"),
        user("6", "5", result("later", "three")),
        assistant("7", "6", "o", use("later", "Third"))
      ])
    )
    assert.deepStrictEqual(
      contents(transcript)
        .flatMap((content) => content.parts.map((part) => part.functionResponse?.name ?? []))
        .flat(),
      ["First", "Second", "Third"]
    )
  })
})

describe("invalid records", () => {
  const cases: ReadonlyArray<readonly [name: string, record: unknown, says: string]> = [
    ["no record", 5, "expected a record"],
    ["no message", { type: "user", uuid: "1", parentUuid: null }, "message: expected"],
    ["content that is a number", user("1", null, 5), "message.content: expected"],
    ["a block without type", user("1", null, [{}]), "content[0]: expected a block"],
    ["a text that is none", user("1", null, [{ type: "text", text: 1 }]), "content[0].text: expected a text"],
    ["a call without a name", assistant("1", null, "m", [{ type: "tool_use" }]), "content[0].name: expected"],
    ["a result that is a number", user("1", null, result("t", 5)), "content[0].content: expected"]
  ]
  it.each(cases)("%s is a problem that names what was expected", (_, record, says) => {
    const problem = bad(read([JSON.stringify(record)]))
    assert.strictEqual(problem.line, 1)
    assert.include(problemText(problem), says)
    assert.notInclude(problemText(problem), "\n")
  })
})

describe("lossless", () => {
  const line = (input: string) =>
    `{"type":"assistant","uuid":"1","parentUuid":null,"message":{"id":"m","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"T","input":${input}}]}}`
  it.each([
    ["numbers beyond 2^53", '{"n":12345678901234567890}'],
    ["number-like keys", '{"2":"b","1":"a"}'],
    ["__proto__", '{"__proto__":{"x":1},"a":2.50}'],
    ["spelling", '{ "a" : "\\u00e9\\/" , "b":1e3 }'],
    ["escaped surrogates", '{"a":"\\udc80"}'],
    ["a repeated key", '{"a":1,"a":2}'],
    // V8 13 parses this key as a backslash after it has seen one there; the text is right all the same.
    ["a key that the engine mistakes", '{"q":{"w":false,"\\\\":1},"r":{"w":false,"\\u0000":1}}']
  ])("call arguments with %s come back exactly", (_, input) => {
    const [draft] = drafts(ok(read([line(input)])))
    const source = draft?.source?.["1"]
    const part = draft?.content.parts[1]
    assert.isDefined(part)
    if (part === undefined) return
    assert.strictEqual(payload(part, source).text, `{"functionCall":{"id":"t","name":"T","args":${input}}}`)
  })

  it("stores no copy where writing again gives the same", () => {
    const [draft] = drafts(ok(read([line('{"a":[1,2.5,"x"]}')])))
    assert.isUndefined(draft?.source)
  })

  it("restores several blocks of a result exactly", () => {
    const blocks = '[{"type":"text","text":"a"},{"2":1,"1":2.0,"type":"text","text":"b"}]'
    const [, draft] = drafts(
      ok(
        read([
          line("{}"),
          `{"type":"user","uuid":"2","parentUuid":"1","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":${blocks}}]}}`
        ])
      )
    )
    assert.strictEqual(
      draft?.source?.["0"],
      `{"functionResponse":{"id":"t","name":"T","response":{"content":${blocks}}}}`
    )
  })

  it.each([
    ["a text", (escape: string) => `[{"type":"text","text":"${escape}"}]`],
    ["a content", (escape: string) => `"${escape}"`],
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

describe("generated transcripts", () => {
  const Turn = Schema.Struct({
    ask: Schema.String,
    thought: Schema.String,
    say: Schema.String,
    calls: Schema.Array(
      Schema.Struct({
        args: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])),
        output: Schema.String,
        failed: Schema.Boolean
      })
    )
  })
  it.prop(
    "keep texts, calls and responses in order, whatever result the next line follows",
    { turns: Schema.Array(Turn), next: Schema.Natural },
    ({ turns, next }) => {
      const records: Array<object> = []
      const expected: Array<string> = []
      let parent: string | null = null
      const add = (record: { readonly uuid: string }) => {
        records.push(record)
        return record.uuid
      }
      for (const [t, turn] of turns.entries()) {
        parent = add(user(`u${t}`, parent, turn.ask))
        parent = add(assistant(`a${t}`, parent, `m${t}`, [{ type: "thinking", thinking: turn.thought }]))
        parent = add(assistant(`b${t}`, parent, `m${t}`, text(turn.say)))
        expected.push(`text ${turn.ask}`, `thought ${turn.thought}`, `text ${turn.say}`)
        const callers: Array<string> = []
        for (const [c, call] of turn.calls.entries()) {
          parent = add(assistant(`c${t}.${c}`, parent, `m${t}`, use(`t${t}.${c}`, `tool${c}`, call.args)))
          callers.push(parent)
          expected.push(JSON.stringify({ functionCall: { id: `t${t}.${c}`, name: `tool${c}`, args: call.args } }))
        }
        const results: Array<string> = []
        for (const [c, call] of turn.calls.entries()) {
          const content = result(`t${t}.${c}`, call.output, { is_error: call.failed })
          results.push(add(user(`r${t}.${c}`, callers[c] ?? null, content)))
          expected.push(
            `response t${t}.${c} tool${c} ${JSON.stringify({ [call.failed ? "error" : "output"]: call.output })}`
          )
        }
        if (results.length > 0) parent = results[next % results.length] ?? parent
      }
      const transcript = ok(readRecords(records))
      // A call is compared by its exact text: V8 13 may take one key with escapes for another while parsing.
      const found = drafts(transcript).flatMap(({ content, source }) =>
        content.parts.map((part, index) =>
          isCall(part)
            ? payload(part, source?.[String(index)]).text
            : isResponse(part)
              ? `response ${part.functionResponse.id} ${part.functionResponse.name} ${JSON.stringify(part.functionResponse.response)}`
              : `${isThought(part) ? "thought" : "text"} ${part.text}`
        )
      )
      assert.deepStrictEqual(found, expected)
      assert.strictEqual(
        transcript.steps.length,
        turns.reduce((n, turn) => n + 2 + (turn.calls.length > 0 ? 1 : 0), 0)
      )
      assert.deepStrictEqual(transcript.skipped, {})
    },
    { arbitrary: { runs: runsOf(300) } }
  )
})

describe("real files", () => {
  const names = ["claude-code-short", "claude-code-tools", "claude-code-subagent", "claude-code-1512-lines"]
  it.each(names)("%s: every call, result and text once, in pairs", (name) => {
    const lines = fixture(name)
    const transcript = ok(read(lines))
    const records = lines.map((line) => JSON.parse(line))
    const blocks = records
      .filter((record) => record.type === "user" || record.type === "assistant")
      .flatMap((record) =>
        typeof record.message.content === "string" ? text(record.message.content) : record.message.content
      )
    const ids = (type: string, key: string) =>
      blocks.filter((block) => block.type === type).map((block) => String(Reflect.get(block, key)))
    const parts = contents(transcript).flatMap((content) => [...content.parts])
    // No line of these files is on a dead branch: what is in the file is in the conversation.
    assert.sameMembers(
      parts.filter(isCall).map((part) => part.functionCall.id),
      ids("tool_use", "id")
    )
    assert.sameMembers(
      parts.filter(isResponse).map((part) => part.functionResponse.id),
      ids("tool_result", "tool_use_id")
    )
    assert.deepStrictEqual(
      parts.filter(isText).map((part) => part.text),
      blocks.filter((block) => block.type === "text").map((block) => String(Reflect.get(block, "text")))
    )
    assert.strictEqual(parts.filter(isThought).length, ids("thinking", "thinking").length)
    // Each turn of the model is answered by the turn right after it.
    const all = contents(transcript)
    all.forEach((content, index) => {
      const calls = content.parts.filter(isCall).map((part) => part.functionCall.id)
      if (calls.length === 0) return
      assert.sameMembers(
        (all[index + 1]?.parts ?? []).filter(isResponse).map((part) => part.functionResponse.id),
        calls
      )
    })
    // One Content a message id.
    const messageIds = new Set(
      records.filter((record) => record.type === "assistant").map((record) => record.message.id)
    )
    assert.strictEqual(all.filter((content) => content.role === "model").length, messageIds.size)
    // What was queued in these files stands in them as messages too.
    const messageTypes = ["user", "assistant", "queue-operation"]
    const notMessages = records.filter(
      (record) => !messageTypes.includes(record.type) && record.subtype !== "compact_boundary"
    )
    assert.strictEqual(
      Object.values(transcript.skipped).reduce((a, b) => a + b, 0),
      notMessages.length
    )
  })

  it.each(names)("%s: every answer has its model and counts", (name) => {
    const lines = fixture(name)
    const answers = drafts(ok(read(lines))).filter((draft) => draft.content.role === "model")
    const records = lines.map((line) => JSON.parse(line)).filter((record) => record.type === "assistant")
    for (const draft of answers) {
      const last = records.findLast((record) => draft.origin?.ids.includes(record.uuid)).message
      assert.strictEqual(draft.model, last.model)
      assert.deepStrictEqual(draft.usage, {
        prompt: last.usage.input_tokens + last.usage.cache_creation_input_tokens + last.usage.cache_read_input_tokens,
        answer: last.usage.output_tokens,
        thoughts: 0,
        cached: last.usage.cache_read_input_tokens,
        cacheWrite: last.usage.cache_creation_input_tokens,
        ...(last.usage.cache_creation.ephemeral_1h_input_tokens > 0
          ? { cacheWriteHour: last.usage.cache_creation.ephemeral_1h_input_tokens }
          : {})
      })
    }
  })

  it("finds the compaction of the long session without its logical parent in the file", () => {
    const transcript = ok(read(fixture("claude-code-1512-lines")))
    const compactions = transcript.steps.filter((step) => step._tag === "Compaction")
    assert.deepStrictEqual(
      compactions.map((step) => [step.tokensBefore, step.insert[0]?.origin?.line]),
      [[170_251, 755]]
    )
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
    const told = drafts(transcript).map(({ author, content: { parts, role } }) => {
      const words = parts.map((part) => part.text ?? (part.functionCall === undefined ? "result" : "call"))
      return `${author ?? role}: ${words.join(" | ")}`
    })
    return [told, transcript.skipped["queue-operation"]] as const
  }
  const opening = ["user: start", "model: call", "user: result"]

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
      "that the user took back, changed and sent",
      [queue("enqueue", "one"), queue("popAll", "one"), queue("enqueue", "one and two"), queue("remove")],
      ["user: one and two"],
      2
    ],
    [
      "that began the next turn without a record",
      [queue("enqueue", "go on"), assistant("4", "3", "n", text("ok")), user("5", "4", "go on")],
      ["model: ok", "user: go on"],
      0
    ],
    ["that is still waiting", [queue("enqueue", "go on")], [], 1],
    [
      "that is a command",
      [queue("enqueue", "/mcp"), queue("remove"), user("4", "3", "<command-name>/mcp</command-name>")],
      ["user: <command-name>/mcp</command-name>"],
      0
    ],
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
    ["of which another one is removed", [queue("enqueue", "a"), queue("remove", "b")], [], 2],
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
