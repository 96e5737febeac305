import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, response, text } from "../../../src/domain/content/Content.ts"
import { allEntries, branched, left, tipOf } from "../../../src/domain/conversation/Branches.ts"
import {
  canRedo,
  canUndo,
  entries,
  type EntryId,
  entryId,
  redone,
  undone,
  view
} from "../../../src/domain/conversation/Conversation.ts"
import { currentPath } from "../../../src/domain/session/CurrentPath.ts"
import { applyEvent, emptySession, entriesOf, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { branchLeft, sessionTree } from "../../../src/domain/session/SessionTree.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import {
  appended,
  entry,
  histories,
  sessionOf,
  started,
  visibleState,
  compressedBy
} from "../../../src/layers/testing/SessionHistories.ts"
import { runsOf } from "../../support/runs.ts"

const talk = (...numbers: ReadonlyArray<number>) => numbers.map((n) => appended(n, text(`turn ${n}`)))
const back = (from: number | null): SessionEvent => ({
  _tag: "Branched",
  at: 1,
  from: from === null ? null : entryId(from)
})
const compressed = (sequence: number, from: number, to: number): SessionEvent =>
  compressedBy({
    drop: { from: entryId(from), to: entryId(to) },
    insert: [{ ...entry(sequence, [text("snapshot")]), author: "summary" }],
    shorten: []
  })
const label = (id: number, words: string | null): SessionEvent => ({
  _tag: "Labelled",
  at: 1,
  entry: entryId(id),
  label: words
})
const conversationOf = (...events: ReadonlyArray<SessionEvent>) => sessionOf([started("s"), ...events]).conversation
const shownIds = (...events: ReadonlyArray<SessionEvent>) =>
  view(conversationOf(...events)).map((item) => item.entry.id)
const shape = (...events: ReadonlyArray<SessionEvent>) =>
  [...sessionTree(sessionOf([started("s"), ...events])).nodes.values()].map(
    ({ id, isOnPath, parent }) => `${parent ?? ""}-${id}${isOnPath ? "*" : ""}`
  )

describe("a branch", () => {
  it("continues after the entry that it went back to, and keeps what it left", () => {
    const conversation = conversationOf(...talk(1, 2, 3, 4), back(2), ...talk(5, 6))
    assert.deepStrictEqual(
      entries(conversation).map(({ id }) => id),
      ["e1", "e2", "e5", "e6"]
    )
    assert.deepStrictEqual(
      left(conversation).map(({ id }) => id),
      ["e3", "e4"]
    )
  })

  it("shows an entry before a compression with what the compression had dropped", () => {
    assert.deepStrictEqual(shownIds(...talk(1, 2, 3), compressed(4, 1, 2), ...talk(5), back(3)), ["e1", "e2", "e3"])
  })

  it("shows an entry after a compression with its snapshot, and the snapshot's own moment too", () => {
    const events = [...talk(1, 2, 3), compressed(4, 1, 2), ...talk(5, 6)]
    assert.deepStrictEqual(shownIds(...events, back(5)), ["e4", "e3", "e5"])
    assert.deepStrictEqual(shownIds(...events, back(4)), ["e4", "e3"])
  })

  it("shows an entry as it was left there last, also after an undo", () => {
    const events = [...talk(1, 2, 3), compressed(4, 1, 2), ...talk(5), { _tag: "Undone", at: 1 } as const]
    assert.deepStrictEqual(shownIds(...events, back(1), back(5)), ["e1", "e2", "e3", "e5"])
    assert.deepStrictEqual(shownIds(...events, back(1), back(4)), ["e4", "e3"])
  })

  it("goes back to the beginning, and nowhere when there is no such entry", () => {
    assert.deepStrictEqual(shownIds(...talk(1, 2), back(null)), [])
    assert.deepStrictEqual(shownIds(...talk(1, 2), back(7)), ["e1", "e2"])
  })

  it.effect.prop(
    "there and back, from any entry to any other, the view is the same",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const { conversation } = sessionOf(events)
        const home = tipOf(conversation)
        for (let n = 0; n < conversation.next; n += 1) {
          const there = branched(conversation, n === 0 ? null : entryId(n))
          const again = branched(there, home)
          assert.strictEqual(again.view, conversation.view)
          assert.strictEqual(again.log, conversation.log)
          assert.strictEqual(branched(again, n === 0 ? null : entryId(n)).view, there.view)
        }
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.effect.prop(
    "nothing that was ever appended or inserted is lost",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const held = allEntries(sessionOf(events).conversation).map(({ id }) => id)
        assert.deepStrictEqual(
          held.toSorted(),
          events.flatMap((event) => entriesOf(event).map(({ id }) => id)).toSorted()
        )
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it.effect.prop(
    "the current path alone leads to the same view, with the same undo and redo",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const whole = sessionOf(events).conversation
        const path = sessionOf(currentPath(events)).conversation
        const shown = (conversation: typeof whole) =>
          visibleState({ ...emptySession, conversation: { ...conversation, next: 0, version: 0 } })
        assert.deepStrictEqual(shown(path), shown(whole))
        assert.deepStrictEqual([canUndo(path), canRedo(path)], [canUndo(whole), canRedo(whole)])
        assert.deepStrictEqual(shown(undone(path)), shown(undone(whole)))
        assert.deepStrictEqual(shown(redone(path)), shown(redone(whole)))
        assert.deepStrictEqual(entries(path), entries(whole))
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )
})

describe("the tree of a session", () => {
  it("has a node for each message and each compression, after the one that it followed", () => {
    assert.deepStrictEqual(shape(...talk(1, 2), compressed(3, 1, 1), ...talk(4), back(2), ...talk(5)), [
      "-e1*",
      "e1-e2*",
      "e2-e3",
      "e3-e4",
      "e2-e5*"
    ])
  })

  it("shows a compression that was undone at once as a branch of its own", () => {
    const events = [...talk(1, 2), compressed(3, 1, 1), { _tag: "Undone", at: 1 } as const, ...talk(4)]
    assert.deepStrictEqual(shape(...events), ["-e1*", "e1-e2*", "e2-e3", "e2-e4*"])
  })

  it("shows of each entry whose it is, its first line, when it came, and the label that it was given last", () => {
    const calls = [text("  "), call("f", {}), response("g", "x"), { functionResponse: { response: {} } }]
    const image = { inlineData: { mimeType: "image/png", data: "AAAA" } }
    const events: ReadonlyArray<SessionEvent> = [
      appended(1, text(`${runtimeMark}  a\nb\u200b\u0007${" ".repeat(300)}${"c".repeat(300)}`)),
      appended(2, ...calls, image),
      appended(3, response("f", "x"), text("")),
      { _tag: "Appended", entry: { ...entry(4, [text("d")]), author: "program", at: 4 } },
      { _tag: "Appended", entry: { ...entry(5, [text("e")]), author: "program", at: 5 } },
      compressed(6, 1, 2),
      label(1, "f"),
      label(2, "g"),
      label(1, "h\ni"),
      label(2, null),
      label(6, "j"),
      back(1)
    ]
    const { nodes, tip } = sessionTree(sessionOf([started("s"), ...events]))
    assert.strictEqual(tip, "e1")
    const rows = [...nodes.values()].map((node) => Object.values(node).join("|"))
    assert.deepStrictEqual(rows, [
      `e1||e2|user|a b\\u{200b}\\u{7} ${"c".repeat(183)}||h i|true`,
      "e2|e1|e3|model|f, g, a tool, media|||false",
      "e3|e2|e4|results|f|||false",
      "e4|e3|e5|model|d|4||false",
      "e5|e4|e6|program|e|5||false",
      "e6|e5||compression|snapshot||j|false"
    ])
  })

  it("knows what a way back leaves", () => {
    const tree = sessionTree(sessionOf([started("s"), ...talk(1, 2, 3), back(2), ...talk(4, 5, 6)]))
    const left = [5, 3, 6, null].map((to) => branchLeft(tree, to === null ? null : entryId(to)).join(" "))
    assert.deepStrictEqual(left, ["e6", "e4 e5 e6", "", "e1 e2 e4 e5 e6"])
    assert.deepStrictEqual(branchLeft({ ...tree, tip: null }, entryId(2)), [])
  })

  it.effect.prop(
    "is one tree over everything that was appended, and its path holds the log",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const session = sessionOf(events)
        const { nodes, tip } = sessionTree(session)
        assert.strictEqual(tip, tipOf(session.conversation))
        const before = new Set<EntryId | null>([null])
        for (const { children, id, parent } of nodes.values()) {
          assert.isTrue(before.has(parent), `${id} comes before its parent`)
          before.add(id)
          for (const child of children) assert.strictEqual(nodes.get(child)?.parent, id)
        }
        const messages = events.flatMap((event) => (event._tag === "Compressed" ? [] : entriesOf(event)))
        for (const { id } of messages) assert.isTrue(nodes.has(id), `${id} is missing`)
        for (const { id } of entries(session.conversation))
          assert.isTrue(nodes.get(id)?.isOnPath, `${id} is off the path`)
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it("takes a long history with many branches in linear time", () => {
    let session = sessionOf([started("s")])
    for (let n = 1; n <= 20_000; n += 1) {
      session = applyEvent(session, appended(n, text("x")))
      if (n % 10 === 0) session = applyEvent(session, back(n - 5))
    }
    assert.strictEqual(sessionTree(session).nodes.size, 20_000)
    assert.strictEqual(entries(session.conversation).length, 10_000)
  })
})
