import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { call, type Content, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import * as PersistentList from "../../../src/domain/text/PersistentList.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf } from "../../support/runs.ts"

const id = Conversation.entryId

/** An entry whose parts count ten tokens each. */
const entry = (sequence: number, content: Content, author?: Conversation.Author): Conversation.Entry => ({
  id: id(sequence),
  content,
  tokens: content.parts.map(() => 10),
  handles: content.parts.map((_, part) =>
    Handle.make(
      `h_${String(sequence)
        .replace(/\d/g, (digit) => "abcdefghij".charAt(Number(digit)))
        .padEnd(9, "z")}${"abcdefghij".charAt(part)}`
    )
  ),
  ...(author === undefined ? {} : { author })
})
const of = (...list: ReadonlyArray<Conversation.Entry>) => list.reduce(Conversation.append, Conversation.empty)
const turns = (from: number, to: number): Array<Conversation.Entry> =>
  Array.from({ length: to - from + 1 }, (_, index) =>
    entry(
      from + index,
      (from + index) % 2 === 1 ? user(text(`ask ${from + index}`)) : model(text(`say ${from + index}`))
    )
  )
const six = of(...turns(1, 6))
const ids = (conversation: Conversation.Conversation) => Conversation.view(conversation).map((item) => item.entry.id)
const summary = (sequence: number) => entry(sequence, user(text(`what was before ${sequence}`)), "summary")
const over = (from: number, to: number, ...insert: ReadonlyArray<Conversation.Entry>): Conversation.Patch => ({
  drop: { from: id(from), to: id(to) },
  insert,
  shorten: []
})
const sumOf = (conversation: Conversation.Conversation) =>
  Conversation.view(conversation).reduce((sum, item) => sum + Conversation.itemTokens(item), 0)

/** Everything of a conversation that somebody can see, as plain values. */
const seen = (conversation: Conversation.Conversation) => ({
  log: Conversation.entries(conversation).map((one) => one.id),
  view: Conversation.view(conversation).map((item) => [item.entry.id, Conversation.itemParts(item)]),
  tokens: Conversation.viewTokens(conversation),
  next: conversation.next,
  canUndo: Conversation.canUndo(conversation),
  canRedo: Conversation.canRedo(conversation)
})

it("is not kept by a patch that was applied to it", async () => {
  setFlagsFromString("--expose-gc")
  const patch = over(1, 4, summary(7))
  const [self, next] = (() => {
    const before = of(...turns(1, 6))
    const after = Conversation.compressed(before, patch)
    assert.strictEqual(Conversation.compressed(before, patch), after)
    return [new WeakRef(before), new WeakRef(after)]
  })()
  await setImmediate()
  runInNewContext("gc()")
  assert.deepStrictEqual([self?.deref(), next?.deref(), patch.insert.length], [undefined, undefined, 1])
})

describe("append", () => {
  it("adds to log and view, counts the tokens, increments the version", () => {
    assert.deepStrictEqual(ids(six), [1, 2, 3, 4, 5, 6].map(id))
    assert.strictEqual(Conversation.viewTokens(six), 60)
    assert.strictEqual(six.next, 7)
    assert.strictEqual(six.version, 6)
  })

  it("does not count the environment message in the view", () => {
    const started = of(entry(1, user(text("Today is Monday")), "environment"), entry(2, user(text("Hello"))))
    assert.strictEqual(Conversation.viewTokens(started), 10)
    assert.strictEqual(Conversation.entries(started).length, 2)
  })
})

describe("a patch", () => {
  it("drops a range with both ends, and inserts there", () => {
    const compressed = Conversation.compressed(six, over(2, 4, summary(7)))
    assert.deepStrictEqual(ids(compressed), [1, 7, 5, 6].map(id))
    assert.strictEqual(Conversation.viewTokens(compressed), 40)
    assert.strictEqual(compressed.next, 8)
    assert.strictEqual(compressed.version, six.version + 1)
  })

  it("without a drop inserts at the beginning", () => {
    const patch: Conversation.Patch = { insert: [summary(7)], shorten: [] }
    assert.deepStrictEqual(ids(Conversation.compressed(six, patch)), [7, 1, 2, 3, 4, 5, 6].map(id))
  })

  it("never drops the environment message", () => {
    const started = of(entry(1, user(text("Today is Monday")), "environment"), ...turns(3, 6))
    const compressed = Conversation.compressed(started, over(1, 4, summary(7)))
    assert.isTrue(ids(compressed).includes(id(1)))
    assert.deepStrictEqual(new Set(ids(compressed)), new Set([1, 7, 5, 6].map(id)))
  })

  it("shortens single parts; the entry keeps its content and the view counts the difference", () => {
    const answers = of(
      entry(1, model(call("read", {}, "1"), call("read", {}, "2"))),
      entry(2, user(response("read", { output: "long" }, "1"), response("read", { output: "longer" }, "2")))
    )
    const shorter = response("read", { output: "l" }, "2")
    const compressed = Conversation.compressed(answers, {
      insert: [],
      shorten: [{ entry: id(2), part: 1, replacement: shorter, tokens: TokenCount.make(3) }]
    })
    const [, item] = Conversation.view(compressed)
    assert.deepStrictEqual(item === undefined ? [] : Conversation.itemParts(item), [
      response("read", { output: "long" }, "1"),
      shorter
    ])
    assert.deepStrictEqual(item?.entry.content, answers.log?.value.content)
    assert.strictEqual(Conversation.viewTokens(compressed), 33)
    const again = Conversation.compressed(compressed, {
      insert: [],
      shorten: [{ entry: id(2), part: 0, replacement: shorter, tokens: TokenCount.make(1) }]
    })
    assert.strictEqual(Conversation.viewTokens(again), 24)
    // What is shortened again is shown as it was shortened last.
    const shortest = { entry: id(2), part: 1, replacement: response("read", { output: "" }, "2") }
    const last = Conversation.masked(again, [{ ...shortest, tokens: TokenCount.make(2) }])
    const [, once] = Conversation.view(last)
    assert.deepStrictEqual(once === undefined ? [] : Conversation.itemParts(once), [shorter, shortest.replacement])
    assert.strictEqual(Conversation.viewTokens(last), 23)
    assert.strictEqual(Conversation.viewTokens(compressed), 33)
  })
})

describe("undo and redo", () => {
  const compressed = Conversation.compressed(six, over(1, 4, summary(7)))
  const grown = [entry(8, user(text("later"))), entry(9, model(text("answer")))].reduce(Conversation.append, compressed)

  const { redone, undone } = Conversation
  const later = Conversation.append(undone(compressed), entry(8, user(text("later"))))
  const other = Conversation.compressed(undone(compressed), over(1, 2, summary(8)))
  const second = Conversation.compressed(grown, over(7, 6, summary(10)))
  const last = entry(10, user(text("last")))

  it.each<readonly [rule: string, conversation: Conversation.Conversation, ids: ReadonlyArray<number>]>([
    ["undo restores the view", undone(compressed), [1, 2, 3, 4, 5, 6]],
    ["undo keeps later turns", undone(grown), [1, 2, 3, 4, 5, 6, 8, 9]],
    ["redo reapplies it before later turns", redone(undone(grown)), [7, 5, 6, 8, 9]],
    ["redo after later turns keeps them behind the summary", redone(later), [7, 5, 6, 8]],
    ["undo after that keeps them, too", undone(redone(later)), [1, 2, 3, 4, 5, 6, 8]],
    [
      "undo after redo keeps each turn once",
      undone(Conversation.append(redone(undone(grown)), last)),
      [1, 2, 3, 4, 5, 6, 8, 9, 10]
    ],
    ["a new compression clears redo", redone(other), [8, 3, 4, 5, 6]],
    ["several are undone newest first", undone(second), [7, 5, 6, 8, 9]],
    ["down to the first", undone(undone(second)), [1, 2, 3, 4, 5, 6, 8, 9]],
    ["and redone oldest first", redone(undone(undone(second))), [7, 5, 6, 8, 9]],
    ["up to the last", redone(redone(undone(undone(second)))), [10, 8, 9]]
  ])("%s", (_, conversation, expected) => {
    assert.deepStrictEqual(ids(conversation), expected.map(id))
    assert.strictEqual(Conversation.viewTokens(conversation), sumOf(conversation))
  })

  it("count as changes, and reuse no ids", () => {
    const back = undone(compressed)
    assert.deepStrictEqual([back.version, back.next], [compressed.version + 1, 8])
    assert.deepStrictEqual([Conversation.canUndo(back), Conversation.canRedo(back)], [false, true])
    assert.deepStrictEqual([Conversation.canRedo(later), Conversation.canRedo(other)], [true, false])
    assert.deepStrictEqual(seen(redone(undone(grown))), seen(grown))
  })

  it("inserted entries stay reachable after an undo", () => {
    const both = Conversation.undone(Conversation.compressed(grown, over(7, 6, summary(10))))
    assert.deepStrictEqual(
      Conversation.inserted(both).map((one) => one.id),
      [7, 10].map(id)
    )
  })
})

const Command = Schema.Literals(["ask", "say", "compress", "shorten", "undo", "redo"])

it.prop(
  "any history of changes leaves earlier versions unchanged, keeps sums exact, and loses no turn",
  [Schema.Array(Schema.Tuple([Command, Schema.Natural, Schema.Natural]))],
  ([commands]) => {
    let now = six
    const versions: Array<readonly [Conversation.Conversation, unknown]> = [[now, seen(now)]]
    for (const [command, a, b] of commands) {
      const view = Conversation.view(now)
      if (command === "ask") now = Conversation.append(now, entry(now.next, user(text(`${a}`))))
      else if (command === "say") now = Conversation.append(now, entry(now.next, model(text(`${a}`))))
      else if (command === "undo") now = Conversation.undone(now)
      else if (command === "redo") now = Conversation.redone(now)
      else {
        const [low, high] = [a % view.length, b % view.length].sort((x, y) => x - y)
        const from = view[low ?? 0]?.entry.id
        const to = view[high ?? 0]?.entry.id
        if (from === undefined || to === undefined) continue
        now = Conversation.compressed(
          now,
          command === "compress"
            ? { drop: { from, to }, insert: [summary(now.next)], shorten: [] }
            : { insert: [], shorten: [{ entry: to, part: 0, replacement: text("…"), tokens: TokenCount.make(1) }] }
        )
      }
      versions.push([now, seen(now)])
      assert.strictEqual(Conversation.viewTokens(now), sumOf(now))
    }
    for (const [version, was] of versions) assert.deepStrictEqual(seen(version), was)
    let back = now
    while (Conversation.canUndo(back)) back = Conversation.undone(back)
    assert.deepStrictEqual(
      ids(back),
      Conversation.entries(now).map((one) => one.id)
    )
    assert.strictEqual(PersistentList.length(now.log), Conversation.entries(back).length)
  },
  { arbitrary: { runs: runsOf(1_000), seed: "conversation", size: 16 } }
)

describe("pairing", () => {
  /** A message of calls is the model's, one of answers the user's. */
  const inTurn = (parts: ReadonlyArray<Part>) => ({
    role: parts.some((part) => part.functionCall !== undefined) ? ("model" as const) : ("user" as const),
    parts
  })
  const pairs = (...contents: ReadonlyArray<ReadonlyArray<Part>>) =>
    [...Conversation.pairing(contents.map(inTurn)).responseOf].map(
      ([from, to]) => `${from}>${Conversation.placeKey(to)}`
    )
  const asks = (name: string, callId?: string) => call(name, {}, callId)
  const gives = (name: string, callId?: string) => response(name, { output: "" }, callId)

  it.each<readonly [rule: string, contents: ReadonlyArray<ReadonlyArray<Part>>, expected: ReadonlyArray<string>]>([
    [
      "by id, in any order of responses",
      [
        [asks("a", "1"), asks("a", "2")],
        [gives("a", "2"), gives("a", "1")]
      ],
      ["0:1>1:0", "0:0>1:1"]
    ],
    ["by id rather than by name", [[asks("a", "1")], [gives("b", "1")]], ["0:0>1:0"]],
    [
      "without ids by name, first call first",
      [
        [asks("a"), asks("b"), asks("a")],
        [gives("a"), gives("a"), gives("b")]
      ],
      ["0:0>1:0", "0:2>1:1", "0:1>1:2"]
    ],
    [
      "a response with an unknown id takes an unanswered call of its name",
      [[asks("a")], [gives("a", "9")]],
      ["0:0>1:0"]
    ],
    ["a response without an id never takes a call that has one", [[asks("a", "1")], [gives("a")]], []],
    ["a call is answered at most once", [[asks("a", "1")], [gives("a", "1"), gives("a", "1")]], ["0:0>1:0"]],
    [
      "a call is answered only after it was made",
      [[gives("a", "1")], [asks("a", "1")], [gives("a", "1")]],
      ["1:0>2:0"]
    ],
    [
      "a repeated id names the open call",
      [[asks("a", "1")], [gives("a", "1")], [asks("b", "1")], [gives("b", "1")]],
      ["0:0>1:0", "2:0>3:0"]
    ]
  ])("%s", (_, contents, expected) => assert.deepStrictEqual(pairs(...contents), expected))

  it("callOf is the inverse of responseOf", () => {
    const contents = [
      [asks("a", "1"), asks("b")],
      [gives("b"), gives("a", "1"), gives("c", "7")]
    ].map(inTurn)
    const { callOf, responseOf } = Conversation.pairing(contents)
    assert.deepStrictEqual(
      new Map([...responseOf].map(([from, to]) => [Conversation.placeKey(to), from])),
      new Map([...callOf].map(([from, to]) => [from, Conversation.placeKey(to)]))
    )
    assert.strictEqual(callOf.size, 2)
  })
})
