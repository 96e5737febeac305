import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import { defaultModelName, freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { recall } from "../../../src/domain/conversation/Recall.ts"
import {
  applyEvents,
  emptySession,
  entriesOf,
  logVersion,
  recallableOf,
  type Session,
  SessionEvent,
  minSpillBytes,
  applyEvent
} from "../../../src/domain/session/Session.ts"
import { toArray } from "../../../src/domain/text/PersistentList.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"

const id = Conversation.entryId
const tokens = (n: number) => TokenCount.make(n)
const handleOf = (sequence: number) => Handle.make(`h_aaaaaaaaa${"abcdefghij".charAt(sequence)}`)
const range = Handle.make("h_zzzzzzzzzz")

const entry = (sequence: number): Conversation.Entry => ({
  id: id(sequence),
  content: sequence % 2 === 1 ? user(text(`ask ${sequence}`)) : model(text(`say ${sequence}`)),
  tokens: [100],
  handles: [handleOf(sequence)]
})
const started: SessionEvent = { _tag: "Started", version: logVersion, session: "s", at: 1, estimator: "e", cwd: "/w" }
const appended = (sequence: number): SessionEvent => ({ _tag: "Appended", entry: entry(sequence) })
const compressed = (from: number, to: number, insert: number, trigger: "manual" | "auto" = "auto"): SessionEvent => ({
  _tag: "Compressed",
  at: 2,
  status: "COMPRESSED",
  strategy: "palimpsest",
  trigger,
  before: tokens(400),
  after: tokens(200),
  patch: { drop: { from: id(from), to: id(to) }, insert: [{ ...entry(insert), author: "summary" }], shorten: [] },
  dropped: range
})
const failed = (status: string, forced: boolean, count: number, unusable?: ReadonlyArray<string>): SessionEvent => ({
  _tag: "CompressionFailed",
  at: 3,
  status,
  forced,
  tokens: tokens(count),
  ...(unusable === undefined ? {} : { unusable })
})
const undone: SessionEvent = { _tag: "Undone", at: 4 }
const redone: SessionEvent = { _tag: "Redone", at: 5 }

const fold = (...events: ReadonlyArray<SessionEvent>): Session => events.reduce(applyEvent, emptySession)
const four = [started, appended(1), appended(2), appended(3), appended(4)]
const ids = (session: Session) => Conversation.view(session.conversation).map((item) => item.entry.id)

describe("the fold", () => {
  it("Compressed applies the patch and clears the failure memory", () => {
    const session = fold(...four, failed("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", false, 400), compressed(1, 2, 5))
    assert.deepStrictEqual(ids(session), [5, 3, 4].map(id))
    assert.deepStrictEqual(session.memory, freshMemory)
  })

  it("a truncation is not a success: the failure memory stays", () => {
    const truncated: SessionEvent = {
      _tag: "Compressed",
      at: 2,
      status: "CONTENT_TRUNCATED",
      strategy: "gemini",
      trigger: "auto",
      before: tokens(400),
      after: tokens(390),
      patch: { insert: [], shorten: [{ entry: id(2), part: 0, replacement: text("…"), tokens: tokens(1) }] }
    }
    const session = fold(...four, failed("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", false, 400), truncated)
    assert.isTrue(session.memory.failed)
    assert.strictEqual(Conversation.viewTokens(session.conversation), 301)
    assert.strictEqual(session.ranges, undefined)
  })

  it("CompressionFailed changes only the failure memory", () => {
    const session = fold(...four, failed("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", false, 400))
    assert.deepStrictEqual(session.memory, { failed: true, waitUntil: 441 })
    assert.strictEqual(session.conversation.version, 4)
    assert.deepStrictEqual(
      fold(...four, failed("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", true, 400)).memory,
      freshMemory
    )
  })

  it("Undone restores the view and waits for growth; Redone reapplies it", () => {
    const back = fold(...four, compressed(1, 2, 5), appended(6), undone)
    assert.deepStrictEqual(ids(back), [1, 2, 3, 4, 6].map(id))
    assert.isAbove(back.memory.waitUntil, Conversation.viewTokens(back.conversation))
    assert.deepStrictEqual(ids(applyEvent(back, redone)), [5, 3, 4, 6].map(id))
  })

  it("an undo without a compression changes nothing", () => {
    const session = fold(...four)
    assert.strictEqual(applyEvent(session, undone).conversation, session.conversation)
  })

  it("law 1: dropped entries are recalled by one handle, after an undo or another compression too", () => {
    const expected = '{"role":"user","parts":[{"text":"ask 1"}]}\n{"role":"model","parts":[{"text":"say 2"}]}\n'
    for (const session of [
      fold(...four, compressed(1, 2, 5)),
      fold(...four, compressed(1, 2, 5), undone),
      fold(...four, compressed(1, 2, 5), appended(6), undone, redone)
    ]) {
      assert.strictEqual(recall(recallableOf(session), range)?.text, expected)
      assert.strictEqual(recall(recallableOf(session), handleOf(1))?.text, "ask 1")
      assert.strictEqual(recall(recallableOf(session), handleOf(5))?.text, "ask 5")
    }
  })

  it("law 7: the same events give the same session", () => {
    const events = [...four, compressed(1, 2, 5), appended(6), undone, redone, failed("FAILED_SUMMARIZER", false, 9)]
    assert.deepStrictEqual(fold(...events), fold(...events))
  })
})

describe("what a session knows besides its messages", () => {
  const sent = (words: string, opens: boolean): SessionEvent => ({ _tag: "EnvironmentSent", at: 2, text: words, opens })
  const branched = (from: number | null, summary?: Conversation.Entry): SessionEvent => ({
    _tag: "Branched",
    at: 2,
    from: from === null ? null : id(from),
    ...(summary === undefined ? {} : { summary })
  })
  const switched: SessionEvent = { _tag: "ModelSwitched", at: 2, model: "m2" }
  const changed = (path: string): SessionEvent => ({
    _tag: "FileChanged",
    at: 2,
    path,
    before: null,
    after: null,
    by: "tool",
    ignorable: true
  })
  const pinned: SessionEvent = { _tag: "Pinned", at: 2, pin: { entry: id(1), part: 0, start: 0, end: 3 } }
  const opened = [...four, sent("old", true), sent("new", false)]

  it.each<readonly [string, ReadonlyArray<SessionEvent>, Session["environment"]]>([
    ["the first one opens, whatever it says", [sent("a", false)], { opening: "a", told: "a" }],
    ["one that opens replaces both", [sent("a", true), sent("b", true)], { opening: "b", told: "b" }],
    ["one that does not is told", [sent("a", true), sent("b", false)], { opening: "a", told: "b" }],
    ["it stays known with messages", [...opened, appended(5)], { opening: "old", told: "new" }],
    ["and with another model", [...opened, switched], { opening: "old", told: "new" }],
    ["a compression drops what was told", [...opened, compressed(1, 2, 5)], { opening: "old", told: "old" }],
    ["so does an undo", [...four, compressed(1, 2, 5), ...opened.slice(5), undone], { opening: "old", told: "old" }],
    [
      "and a redo",
      [...four, compressed(1, 2, 5), undone, sent("old", true), sent("new", false), redone],
      { opening: "old", told: "old" }
    ],
    ["and a branch", [...opened, branched(2)], { opening: "old", told: "old" }],
    ["without one there is none", [...four, compressed(1, 2, 5), undone, redone], undefined]
  ])("the environment: %s", (_, events, environment) => {
    assert.deepStrictEqual(fold(...events).environment, environment)
  })

  it("an answer comes with its message and all that is attached, in order", () => {
    const answered: SessionEvent = {
      _tag: "Answered",
      message: entry(1),
      attached: [entry(2), entry(3)],
      answer: entry(4)
    }
    assert.deepStrictEqual(ids(fold(started, answered)), [1, 2, 3, 4].map(id))
    assert.deepStrictEqual(entriesOf(answered), [1, 2, 3, 4].map(entry))
    assert.deepStrictEqual(fold(started, answered), applyEvents(emptySession, [started, answered]))
  })

  it("a branch goes back, with a summary of what was left or without", () => {
    assert.deepStrictEqual(ids(fold(...four, branched(2))), [1, 2].map(id))
    assert.deepStrictEqual(ids(fold(...four, branched(null))), [])
    const event = branched(2, { ...entry(5), author: "summary" })
    assert.deepStrictEqual(ids(fold(...four, event)), [1, 2, 5].map(id))
    assert.deepStrictEqual(
      entriesOf(event).map((one) => one.id),
      [id(5)]
    )
  })

  it("changes of files stand before the next message, pins and labels in their order", () => {
    const label = (entry: number, name: string | null): SessionEvent => ({
      _tag: "Labelled",
      at: 2,
      entry: id(entry),
      label: name
    })
    const session = fold(
      started,
      changed("a"),
      appended(1),
      changed("b"),
      changed("c"),
      appended(2),
      pinned,
      label(1, "x"),
      label(1, null)
    )
    assert.deepStrictEqual(
      toArray(session.changes).map(({ path, position }) => [path, position]),
      [
        ["a", 1],
        ["b", 2],
        ["c", 2]
      ]
    )
    assert.deepStrictEqual(
      toArray(session.pins).map(({ entry: of }) => of),
      [id(1)]
    )
    assert.deepStrictEqual(toArray(session.labels), [
      { entry: id(1), label: "x" },
      { entry: id(1), label: null }
    ])
  })

  it("the model is the first one, or the one switched to; a switch lets every model be asked again", () => {
    const named = { ...started, model: "m1" }
    assert.deepStrictEqual([fold(named).model, fold(named, switched).model], ["m1", "m2"])
    const unusable = failed("FAILED_SUMMARIZER", false, 9, ["a"])
    assert.deepStrictEqual(fold(...four, unusable, unusable).memory.unusable, { a: 2 })
    assert.isUndefined(fold(...four, unusable, unusable, switched).memory.unusable)
  })

  it("a model that wrote a summary at last is usable; one whose calls gave nothing is not", () => {
    const unusable = failed("FAILED_SUMMARIZER", false, 9, ["a"])
    const written = (...gaveNothing: ReadonlyArray<string>): SessionEvent => {
      const event = compressed(1, 2, 5)
      if (event._tag !== "Compressed") return event
      return { ...event, calls: [{ model: "a", usage: null }], unusable: gaveNothing }
    }
    assert.isUndefined(fold(...four, unusable, written()).memory.unusable)
    assert.deepStrictEqual(fold(...four, unusable, written("a")).memory.unusable, { a: 2 })
    assert.deepStrictEqual(fold(...four, unusable, compressed(1, 2, 5)).memory.unusable, { a: 1 })
    assert.deepStrictEqual(fold(...four, unusable, written(defaultModelName)).memory.unusable, {
      a: 1,
      [defaultModelName]: 1
    })
  })
})

describe("events", () => {
  it("match their schema", () => {
    for (const event of [...four, compressed(1, 2, 5), undone, redone, failed("NOOP", true, 0)]) {
      assert.isTrue(Schema.is(SessionEvent)(event), event._tag)
    }
    assert.isFalse(Schema.is(SessionEvent)({ _tag: "Undone" }))
    assert.isFalse(Schema.is(SessionEvent)({ ...compressed(1, 2, 5), trigger: "often" }))
  })
  it("a part of 8 KiB is stored apart", () => {
    assert.strictEqual(minSpillBytes, 8_192)
  })
})
