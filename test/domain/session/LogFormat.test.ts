import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { call, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle, Hash } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import {
  checkpointMark,
  type DecodedLine,
  decodeLine,
  encodeLine,
  lineProblemText,
  restoreSpilled,
  type LineProblem,
  spillableParts,
  spillKey,
  type SpilledParts
} from "../../../src/domain/session/LogFormat.ts"
import { logVersion, SessionEvent, minSpillBytes, entriesOf } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf } from "../../support/runs.ts"

const id = Conversation.entryId
const handle = Handle.make("h_abcdefghij")
const hash = Hash.make("a".repeat(52))
const entryOf = (parts: ReadonlyArray<Part>, source?: Record<string, string>): Conversation.Entry => ({
  id: id(1),
  content: user(...parts),
  tokens: parts.map(() => 1),
  handles: parts.map(() => handle),
  ...(source === undefined ? {} : { source })
})
const appended = (entry: Conversation.Entry): SessionEvent => ({ _tag: "Appended", entry })
const compressed = (entry: Conversation.Entry): SessionEvent => ({
  _tag: "Compressed",
  at: 1,
  status: "COMPRESSED",
  strategy: "palimpsest",
  trigger: "auto",
  before: TokenCount.make(9),
  after: TokenCount.make(3),
  patch: { drop: { from: id(1), to: id(1) }, insert: [{ ...entry, id: id(2) }], shorten: [] }
})
const events: ReadonlyArray<SessionEvent> = [
  { _tag: "Started", version: logVersion, session: "s", at: 1, estimator: "e", importedFrom: { format: "pi" } },
  appended(entryOf([text("a\n"), call("read", { n: 1 }, "1"), { odd: [1, { x: null }] }])),
  { _tag: "Answered", message: entryOf([text("q")]), answer: { ...entryOf([text("a")]), id: id(2), model: "m" } },
  { _tag: "ModelSwitched", at: 1, model: "m" },
  { _tag: "Pinned", at: 1, pin: { entry: id(1), part: 0, start: 0, end: 1 } },
  compressed(entryOf([text("s")])),
  { _tag: "CompressionFailed", at: 1, status: "FAILED_SUMMARIZER", forced: true, tokens: TokenCount.make(3) },
  { _tag: "Undone", at: 1 },
  { _tag: "Redone", at: 1 }
]

const decoded = (line: string): DecodedLine | undefined =>
  Result.getOrThrowWith(decodeLine(JSON.parse(line)), (problem) => new Error(JSON.stringify(problem)))
const problem = (value: unknown): LineProblem => {
  const result = decodeLine(value)
  if (Result.isSuccess(result)) throw new Error("expected a problem")
  return result.failure
}

describe("a line", () => {
  it.each(events)("$_tag: one line of JSON, decoded to the same value", (event) => {
    const line = encodeLine(event)
    assert.notInclude(line, "\n")
    assert.deepStrictEqual(decoded(line), { event, spilled: new Map() })
  })

  it.prop(
    "law 1: any text is decoded unchanged, from one line",
    [Schema.String],
    ([value]) => {
      const event = appended(entryOf([text(value), response("read", { output: value }, "1")]))
      const line = encodeLine(event)
      assert.notMatch(line, /[\n\r]/)
      assert.deepStrictEqual(decoded(line)?.event, event)
    },
    { arbitrary: { runs: runsOf(1_000), seed: "lines" } }
  )

  it("of an unknown kind is rejected", () => {
    assert.deepStrictEqual(problem({ _tag: "Moved", at: 1 }), { _tag: "UnknownEvent", event: "Moved" })
    assert.strictEqual(problem({ _tag: "Moved", ignorable: "true" })._tag, "UnknownEvent")
  })

  it("of an unknown kind marked as optional is skipped", () => {
    assert.isUndefined(decoded('{"_tag":"Moved","ignorable":true,"at":1}'))
  })

  it("of a known kind is never skipped, whatever its marks", () => {
    assert.deepStrictEqual(decoded('{"_tag":"Undone","at":1,"ignorable":true}')?.event, { _tag: "Undone", at: 1 })
    assert.strictEqual(problem({ _tag: "Undone", ignorable: true })._tag, "Malformed")
  })

  it("of a newer version is rejected with that version", () => {
    const newer = { _tag: "Started", version: logVersion + 1, session: "s", at: 1, estimator: "e" }
    assert.deepStrictEqual(problem(newer), { _tag: "NewerVersion", version: logVersion + 1 })
    assert.deepStrictEqual(problem({ _tag: "Started", version: 99 }), { _tag: "NewerVersion", version: 99 })
  })

  it("of this version is read", () => {
    for (const event of events) assert.deepStrictEqual(decoded(encodeLine(event))?.event, event)
  })

  it.each([
    null,
    1,
    "x",
    [],
    {},
    { _tag: 3 },
    { _tag: "Undone" },
    { _tag: "Appended", entry: {} },
    { _tag: "Started", version: "1" }
  ])("%j is malformed, and the message says why", (value) => {
    const found = problem(value)
    assert.strictEqual(found._tag, "Malformed")
    assert.isTrue(found._tag === "Malformed" && found.message.length > 5)
  })

  /** A message with everything it may carry, and what stands in one of its places instead. */
  const places: ReadonlyArray<readonly [string, (entry: Record<string, unknown>, value: unknown) => unknown]> = [
    ["a message", (entry) => entry],
    ...[
      "id",
      "content",
      "at",
      "author",
      "source",
      "model",
      "usage",
      "origin",
      "tokens",
      "handles",
      "later",
      "__proto__"
    ].map(
      (key) =>
        [
          key,
          (entry: Record<string, unknown>, value: unknown) => {
            const changed = JSON.parse(JSON.stringify(entry))
            Object.defineProperty(changed, key, { value, enumerable: true, configurable: true, writable: true })
            return changed
          }
        ] as const
    ),
    ["role", (entry, role) => ({ ...entry, content: { role, parts: [] } })],
    ["parts", (entry, parts) => ({ ...entry, content: { role: "user", parts } })],
    ["a part", (entry, part) => ({ ...entry, content: { role: "user", parts: [part], more: 1 } })],
    ...["text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData", "x"].map(
      (key) =>
        [
          `part.${key}`,
          (entry: Record<string, unknown>, value: unknown) => ({
            ...entry,
            content: { role: "model", parts: [{ [key]: value }] }
          })
        ] as const
    )
  ]
  const values: ReadonlyArray<unknown> = [
    null,
    true,
    "",
    "e1",
    "e0",
    "h_abcdefghij",
    "model",
    "summary",
    0,
    -1,
    1.5,
    1e300,
    Infinity,
    [],
    [1],
    ["h_abcdefghij"],
    ["H_abcdefghij"],
    [null],
    [[]],
    {},
    { "0": "x" },
    { name: "n" },
    { name: 1 },
    { id: "i", name: "n", args: 1, response: null, parts: 3, later: {} },
    { id: 3, name: "n" },
    { mimeType: 1 },
    { data: [] },
    { fileUri: "u", mimeType: "m" },
    { line: 1, ids: ["a"] },
    { prompt: 1, answer: 2, thoughts: 3, cached: 4 },
    { prompt: 1, answer: 2, thoughts: 3 },
    { prompt: 1, answer: 2, thoughts: 3, cached: 4, cacheWrite: 5 },
    { prompt: 1, answer: 2, thoughts: 3, cached: 4, cacheWrite: "5" },
    { prompt: 1, answer: 2, thoughts: 3, cached: 4, later: 5 },
    { role: "user", parts: [] },
    { role: "tool", parts: [] }
  ]
  const bySchema = Schema.decodeUnknownResult(SessionEvent)

  it.each(places)("is validated as strictly as by the schema: %s", (_, change) => {
    let good = 0
    for (const value of values) {
      const entry = { ...entryOf([text("a")]) }
      const changed = change(entry, value)
      for (const line of [
        { _tag: "Appended", entry: changed },
        { _tag: "Answered", message: entry, answer: changed },
        { _tag: "Answered", message: changed, answer: entry }
      ]) {
        const wanted = bySchema(line)
        const found = decodeLine(line)
        assert.strictEqual(found._tag, wanted._tag, JSON.stringify(line))
        if (Result.isSuccess(found) && Result.isSuccess(wanted)) {
          good += 1
          assert.deepStrictEqual(found.success?.event, wanted.success, JSON.stringify(line))
        }
      }
    }
    assert.isAbove(good, 0)
  })

  it("ends with its checkpoint, recognizable by its bytes", () => {
    const event = compressed(entryOf([text(checkpointMark)]))
    const checkpoint = {
      ranges: [[0, 10] as const],
      ids: ["e1-e2"],
      next: 3,
      version: 2,
      memory: { failed: false, waitUntil: 0 },
      pins: []
    }
    assert.notInclude(encodeLine(event), checkpointMark)
    const line = encodeLine(event, undefined, checkpoint)
    assert.include(line, checkpointMark)
    assert.deepStrictEqual(decoded(line), {
      event,
      spilled: new Map(),
      checkpoint: JSON.parse(JSON.stringify(checkpoint))
    })
  })

  it("with an invalid note of a stored part is malformed", () => {
    const line = { ...JSON.parse(encodeLine(appended(entryOf([text("a")])))), spilled: { "e1:0": { hash: "x" } } }
    assert.strictEqual(problem(line)._tag, "Malformed")
  })
})

describe("stored parts", () => {
  const exact = '{"functionCall":{"name":"n","args":{"n":12345678901234567890}}}'
  const parts: ReadonlyArray<readonly [name: string, part: Part, source: string | undefined]> = [
    ["a text", { text: "long", thoughtSignature: "s" }, undefined],
    ["a tool's text", response("read", { output: "long" }, "1"), undefined],
    ["a tool's error", response("read", { error: "long" }, "1"), undefined],
    ["a tool's bare text", response("read", "long", "1"), undefined],
    ["a call", call("write", { content: "long" }, "1"), undefined],
    ["a call whose JSON is kept", { functionCall: { name: "n", args: { n: 12345678901234567000 } } }, exact],
    ["media", { inlineData: { mimeType: "image/png", data: "AAAA" } }, undefined],
    ["a tool's answer with more than a text", response("read", { output: "long", lines: 3 }, "1"), undefined],
    ["an empty text", { text: "" }, undefined]
  ]

  it.each(parts)("law 1: %s is taken out of the line and restored unchanged", (_, part, source) => {
    for (const event of [appended, compressed].map((make) =>
      make(entryOf([text("before"), part], source === undefined ? undefined : { "1": source }))
    )) {
      const [entry] = entriesOf(event)
      const all = spillableParts(event, 0)
      const key = spillKey(entry?.id ?? id(1), 1)
      const found = all.find((one) => one.key === key)
      assert.isDefined(found)
      const spilled: SpilledParts = new Map([[key, { hash, size: 1, form: found?.form ?? "json" }]])
      const line = encodeLine(event, spilled)
      if (JSON.stringify(part).includes("long")) assert.notInclude(line, "long")
      if (source !== undefined) assert.notInclude(line, "12345678901234567")
      const read = decoded(line)
      if (read === undefined) throw new Error("expected a line")
      assert.deepStrictEqual([...read.spilled], [...spilled])
      const back = restoreSpilled(read, new Map([[key, found?.text ?? ""]]))
      assert.deepStrictEqual(Result.getOrThrow(back), event)
    }
  })

  it("rejects bytes that are not the original JSON", () => {
    const event = appended(entryOf([call("write", { content: "long" })]))
    const key = spillKey(id(1), 0)
    const back = restoreSpilled(
      { event, spilled: new Map([[key, { hash, size: 1, form: "json" }]]) },
      new Map([[key, "{ broken"]])
    )
    assert.isTrue(Result.isFailure(back) && lineProblemText(back.failure).includes(hash))
  })

  it("that were not fetched stay empty", () => {
    const event = appended(entryOf([text("")]))
    const spilled: SpilledParts = new Map([[spillKey(id(1), 0), { hash, size: 1, form: "text" }]])
    assert.deepStrictEqual(restoreSpilled({ event, spilled }, new Map()), Result.succeed(event))
  })

  it("stores parts of 8 KiB and more, counted in bytes", () => {
    const keys = (value: string) =>
      spillableParts(appended(entryOf([text("short"), text(value)])), minSpillBytes).map((one) => one.key)
    assert.deepStrictEqual(keys("a".repeat(8_191)), [])
    assert.deepStrictEqual(keys("a".repeat(8_192)), ["e1:1"])
    assert.deepStrictEqual(keys("é".repeat(4_095)), [])
    assert.deepStrictEqual(keys("é".repeat(4_096)), ["e1:1"])
    assert.deepStrictEqual(keys("中".repeat(2_730)), [])
    assert.deepStrictEqual(keys("中".repeat(2_731)), ["e1:1"])
  })

  it("law 1: stores bytes that are not UTF-8 as they are in the text", () => {
    const [one] = spillableParts(appended(entryOf([text("\uDC80".repeat(minSpillBytes))])), minSpillBytes)
    assert.deepStrictEqual(one, { key: "e1:0", form: "text", text: "\uDC80".repeat(minSpillBytes) })
  })
})
