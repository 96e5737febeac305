import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, type Content, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle, mentions } from "../../../src/domain/content/Handle.ts"
import * as Conversation from "../../../src/domain/conversation/Conversation.ts"
import {
  type FoundParts,
  type HiddenPart,
  hiddenParts,
  type PartKind,
  searching
} from "../../../src/domain/conversation/RecallSearch.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { compileQuery } from "../../../src/services/session/TempStore.ts"

const letters = "abcdefghijklmnopqrstuvwxyz"
const handleOf = (n: number): Handle =>
  Handle.make(`h_${[...String(n).padStart(10, "0")].map((digit) => letters[Number(digit)]).join("")}`)

const compiled = (pattern: string) => Effect.runPromise(compileQuery(pattern))

const search = async (
  parts: ReadonlyArray<HiddenPart>,
  pattern: string,
  options: { readonly maxTokens?: number; readonly isRedacted?: boolean } = {}
): Promise<FoundParts> =>
  Work.runSync(searching(parts, await compiled(pattern), { maxTokens: 4_000, isRedacted: false, ...options }))

const part = (n: number, kind: PartKind, written: string): HiddenPart => ({
  handle: handleOf(n),
  entry: `e${n}`,
  at: undefined,
  kind,
  label: kind,
  text: () => written
})

const entry = (n: number, content: Content, rest: Partial<Conversation.Entry> = {}): Conversation.Entry => ({
  id: Conversation.entryId(n),
  content,
  tokens: content.parts.map(() => 1),
  handles: content.parts.map((_, index) => handleOf(10 * n + index)),
  ...rest
})
const appended = (entries: ReadonlyArray<Conversation.Entry>) => entries.reduce(Conversation.append, Conversation.empty)
const said = (n: number, words: string) => entry(n, user(text(words)))
const hiddenIn = (conversation: Conversation.Conversation) => Work.runSync(hiddenParts(conversation))
const textsIn = (conversation: Conversation.Conversation) => hiddenIn(conversation).map((each) => each.text())
const drop = (from: number, to: number, summary: number): Conversation.Patch => ({
  drop: { from: Conversation.entryId(from), to: Conversation.entryId(to) },
  insert: [entry(summary, user(text(`summary ${summary}`)), { author: "summary" })],
  shorten: []
})

it.each([
  ["the first of equal ones", "walnuts walnuts walnuts walnuts walnuts", "1 2 3", 5],
  ["all of three", "walnuts walnuts walnuts", "1 2 3", 0],
  ["whole words before parts", "walnuts walnuts walnuts walnuts walnut walnuts", "1 2 5", 6],
  ["the first of equal whole words", "walnuts walnut walnut walnut walnut", "2 3 4", 5]
] as const)("of many matching lines are shown: %s", async (_, lines, expected, count) => {
  const found = await search([part(1, "output", lines.replaceAll(" ", "\n"))], "walnut")
  assert.strictEqual((found.text.match(/(?<=^ {2})\d+(?=:)/gm) ?? []).join(" "), expected)
  assert.strictEqual(/(\d+) matches/.exec(found.text)?.[1] ?? "0", `${count}`)
})

it.each([0, 1, 200, 399, 449])("the best of very many parts is shown first, wherever it stands (%i)", async (at) => {
  const parts = Array.from({ length: 450 }, (_, n) => part(n, n === at ? "user" : "output", "the walnut is here"))
  const found = await search(parts, "walnut")
  assert.isTrue(found.text.startsWith(handleOf(at)), found.text.slice(0, 80))
})

describe("what the window no longer shows", () => {
  const two = appended([said(1, "one"), said(2, "two")])

  it("is what was dropped, at any depth, each once, the newest first", () => {
    const once = Conversation.compressed(two, drop(1, 2, 3))
    assert.deepStrictEqual(textsIn(once), ["two", "one"])
    const more = [said(4, "four"), said(5, "five")].reduce(Conversation.append, once)
    const twice = Conversation.compressed(more, drop(3, 4, 6))
    assert.deepStrictEqual(textsIn(twice), ["four", "summary 3", "two", "one"])
    assert.deepStrictEqual(textsIn(Conversation.undone(twice)), ["summary 6", "two", "one"])
  })

  it("is what was shortened, and not the rest of its message", () => {
    const log = appended([entry(1, user(response("read", { output: "long output" }), text("beside")))])
    const shorten = { entry: Conversation.entryId(1), part: 0, replacement: text("short"), tokens: log.next as never }
    assert.deepStrictEqual(textsIn(Conversation.masked(log, [shorten])), ["long output"])
  })

  it("is no text that the window shows elsewhere, no environment message, and media by their kind", () => {
    const same = entry(3, user(text("one")), { handles: [handleOf(10)] })
    const log = appended([
      entry(1, user(text("one"), { inlineData: { mimeType: "image/png", data: "abc=" } })),
      entry(2, user(text("folders")), { author: "environment" }),
      same
    ])
    assert.deepStrictEqual(textsIn(Conversation.compressed(log, drop(1, 2, 4))), ["[image/png of 2 bytes]"])
  })

  it("has authors", () => {
    const authored = (given: Content, rest: Partial<Conversation.Entry> = {}) => {
      const log = appended([entry(1, given, rest), said(2, "x")])
      const [last] = hiddenIn(Conversation.compressed(log, drop(1, 1, 3)))
      return [last?.kind, last?.label]
    }
    const cases: ReadonlyArray<readonly [Part, "user" | "model", string, string]> = [
      [text("a"), "user", "user", "user"],
      [text("a"), "model", "agent", "agent"],
      [{ text: "a", thought: true }, "model", "agent", "agent, thinking"],
      [call("read", {}), "model", "arguments", "arguments of read"],
      [response("read", { output: "a" }), "user", "output", "output of read"],
      [call("recall", {}), "model", "copy", "arguments of recall"],
      [response("recall", { output: "a" }), "user", "copy", "output of recall"]
    ]
    for (const [each, role, kind, label] of cases) {
      assert.deepStrictEqual(authored({ role, parts: [each] }), [kind, label])
    }
    assert.deepStrictEqual(authored(user(text("a")), { author: "program" }), ["output", "program"])
    assert.deepStrictEqual(authored(user(text("a")), { author: "summary" }), ["copy", "summary"])
  })
})

describe("an answer", () => {
  it("shows handle, message, time, author and numbered lines with a line of context", async () => {
    const written = "one\ntwo lock\nthree\nfour\nfive\nsix lock\n \t\nseven"
    const [only] = [{ ...part(1, "output", written), at: Date.parse("2026-01-02T03:04:05Z"), label: "output of read" }]
    assert.deepStrictEqual(await search([only], "lock"), {
      text: `${handleOf(1)}  e1  2026-01-02 03:04  output of read\n  1- one\n  2: two lock\n  3- three\n  …\n  5- five\n  6: six lock`,
      searched: 1,
      matched: 1
    })
  })

  it("shows no time that is no date", async () => {
    assert.match((await search([{ ...part(1, "user", "lock"), at: 1e300 }], "lock")).text, /^h_\w+ {2}e1 {2}user\n/)
  })

  it("ranks by author, then whole words, then the newest", async () => {
    const parts = [
      part(9, "copy", "lock"),
      part(8, "output", "lock"),
      part(7, "arguments", "lock"),
      part(6, "agent", "locks"),
      part(5, "agent", "lock"),
      part(4, "agent", "lock"),
      part(3, "user", "unlocked"),
      part(2, "user", "nothing")
    ]
    assert.deepStrictEqual(mentions((await search(parts, "lock")).text), [3, 5, 4, 6, 7, 8, 9].map(handleOf))
  })

  it("takes a pattern that is none as text, and says so", async () => {
    const { matched, text: answer } = await search([part(1, "user", "call f(x now")], "f(x")
    assert.strictEqual(matched, 1)
    assert.match(answer, /^\(Searched as plain text: missing closing \)/)
  })

  it("falls back to texts with all of the words, those on one line first, and says so", async () => {
    const parts = [
      part(3, "output", "the lock\nof a session"),
      part(2, "output", "a session has its lock"),
      part(1, "output", "only a session")
    ]
    const { text: answer } = await search(parts, "session lock")
    assert.match(answer, /^\(No line matches the pattern\. These parts have all of its words: session, lock\)/)
    assert.deepStrictEqual(mentions(answer), [2, 3].map(handleOf))
    assert.notInclude(
      (await search([...parts, part(4, "copy", "session lock")], "session lock")).text,
      "all of its words"
    )
  })

  it("says how much was searched without a match", async () => {
    assert.deepStrictEqual(await search([part(1, "user", "a"), part(2, "user", "b"), part(2, "user", "b")], "zzz"), {
      text: "No match in the 2 parts that left the window.",
      searched: 2,
      matched: 0
    })
  })

  it("stays within its tokens and counts what it leaves out", async () => {
    const parts = Array.from({ length: 150 }, (_, n) =>
      part(n, n % 2 === 0 ? "agent" : "output", `lock ${"word ".repeat(60)}`)
    )
    for (const maxTokens of [200, 500, 1_000, 4_000]) {
      const { matched, text: answer } = await search(parts, "lock", { maxTokens })
      assert.isAtMost(estimateText(answer), maxTokens)
      const left = [...answer.matchAll(/(\d+) (?:texts? of the agent|outputs?)/g)].reduce(
        (all, [, n]) => all + Number(n),
        0
      )
      assert.strictEqual(mentions(answer).length + left, 150)
      assert.strictEqual(matched, 150)
    }
  })

  it("says when more match than are ranked, and ranks the best of all", async () => {
    const parts = [...Array.from({ length: 900 }, (_, n) => part(n, "output", "lock")), part(999, "user", "lock")]
    const { text: answer } = await search(parts, "lock")
    assert.strictEqual(mentions(answer)[0], handleOf(999))
    assert.match(answer, /More than 200 parts match/)
  })

  it("cuts long lines around the match", async () => {
    const line = (before: number, after: number) => `${"x".repeat(before)}locks${"y".repeat(after)}`
    for (const [before, after, x, y] of [
      [117, 118, 117, 118],
      [117, 119, 117, 118],
      [118, 118, 117, 118],
      [118, 119, 117, 118],
      [0, 900, 0, 235],
      [900, 0, 235, 0]
    ] as const) {
      const { text: answer } = await search([part(1, "arguments", line(before, after))], "locks")
      const shown = `${before > x ? "…" : ""}${line(x, y)}${after > y ? "…" : ""}`
      assert.strictEqual(answer.split("\n")[1], `  1: ${shown}`)
    }
    const places = [1, 2, 3, 4].map((n) => `${"x".repeat(500)} lock${n} `).join("")
    const shown = (await search([part(1, "arguments", places)], "lock")).text
    assert.deepStrictEqual(shown.match(/lock\d/g), ["lock1", "lock2", "lock3"])
    assert.deepStrictEqual(shown.match(/^ {2}1: /gm)?.length, 3)
    // Half a shown line lies between two matches of a line.
    const near = [119, 120].map((gap) => `lock1${"x".repeat(gap)}lock2${"y".repeat(300)}`)
    const found = await Promise.all(near.map((one) => search([part(1, "arguments", one)], "lock\\d")))
    assert.deepStrictEqual(
      found.map(({ text: each }) => each.split("\n").length),
      [2, 3]
    )
  })

  it("leaves secrets out, and finds none by their characters", async () => {
    const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    const parts = [part(1, "output", `the token is ${token}`)]
    assert.include((await search(parts, "token is")).text, token)
    const redacted = await search(parts, "token is", { isRedacted: true })
    assert.notInclude(redacted.text, token)
    assert.include(redacted.text, "[redacted: ")
    for (const pattern of [token, "ghp_16C", "16c7e42f292c6912"]) {
      assert.deepStrictEqual((await search(parts, pattern, { isRedacted: true })).matched, 0)
    }
  })
})

describe("the time of a search", () => {
  it("reads each part once, however often the conversation was compressed", async () => {
    const reads = async (compressions: number) => {
      let conversation = appended([said(1, "first")])
      for (let n = 0; n < compressions; n += 1) {
        conversation = Conversation.append(conversation, said(conversation.next, `message ${n}`))
        const items = Conversation.view(conversation)
        const [first, last] = [items[0], items.at(-1)].map((item) =>
          Conversation.sequenceOf(item?.entry.id ?? Conversation.entryId(1))
        )
        conversation = Conversation.compressed(conversation, drop(first ?? 1, last ?? 1, conversation.next))
      }
      let count = 0
      const counted = hiddenIn(conversation).map((each) => ({
        ...each,
        text: () => {
          count += 1
          return each.text()
        }
      }))
      await search(counted, "no such words")
      return [count, counted.length] as const
    }
    // The messages, and every summary but the one that is shown.
    assert.deepStrictEqual(await reads(1), [2, 2])
    assert.deepStrictEqual(await reads(50), [100, 100])
  })

  it.each([1, 5, 40])(
    "finds each of 40 messages by its words and by its pattern, over %i compressions",
    async (compressions) => {
      let conversation = Conversation.empty
      for (let n = 0; n < 40; n += 1) {
        const words = `The ${n % 3 === 0 ? "constraint" : "remark"} number${n} of the user`
        conversation = Conversation.append(conversation, said(conversation.next, words))
        if ((n + 1) % Math.floor(40 / compressions) !== 0) continue
        const shown = Conversation.view(conversation).map((item) => Conversation.sequenceOf(item.entry.id))
        conversation = Conversation.compressed(conversation, drop(shown[0] ?? 0, shown.at(-1) ?? 0, conversation.next))
      }
      const hidden = hiddenIn(conversation)
      for (let n = 0; n < 40; n += 1) {
        for (const pattern of [`number${n}\\b`, `user number${n} of`]) {
          const { text: answer } = await search(hidden, pattern, { maxTokens: 300 })
          assert.match(answer, new RegExp(`h_\\w+ {2}e\\d+ {2}user\\n {2}1: The \\w+ number${n} `))
        }
      }
    }
  )

  it("is interruptible: no slice is long", async () => {
    const output = Array.from({ length: 40_000 }, (_, n) => `line ${n} of a long output`).join("\n")
    const query = await compiled("li.*ne 7 .*zz")
    const work = searching([part(1, "output", output)], query, { maxTokens: 100, isRedacted: false })
    let pauses = 0
    while (work.next().done !== true) pauses += 1
    assert.isAbove(pauses, 15)
  })
})

describe("what a search returns", () => {
  it("has the line before and after each match, a mark where lines are left out, and no blank line", async () => {
    const lines = ["zero", "walnut one", "two", "three", "four", "walnut five\r", "walnut six", "", "eight"]
    const [header, ...shown] = (await search([part(1, "output", lines.join("\n"))], "walnut")).text.split("\n")
    assert.strictEqual(header, `${handleOf(1)}  e1  output`)
    assert.deepStrictEqual(shown, [
      "  1- zero",
      "  2: walnut one",
      "  3- two",
      "  …",
      "  5- four",
      "  6: walnut five",
      "  7: walnut six"
    ])
    const last = (await search([part(1, "output", "a\nb\nc\nwalnut")], "walnut")).text.split("\n").slice(1)
    assert.deepStrictEqual(last, ["  3- c", "  4: walnut"])
    const blank = await search([part(1, "output", "walnut one\n\nthree\n\nwalnut five")], "walnut")
    assert.deepStrictEqual(blank.text.split("\n").slice(1), ["  1: walnut one", "  …", "  5: walnut five"])
  })

  it("names the parts whose excerpts do not fit, and counts by kind those whose names do not", async () => {
    const kinds = ["user", "agent", "arguments", "output"] as const
    const parts = kinds.flatMap((kind, row) =>
      Array.from({ length: 6 }, (_, n) => part(100 * row + n, kind, `walnut ${n} ${"of the harbour ".repeat(12)}`))
    )
    const ways = new Set<string>()
    const { text: few } = await search(parts, "walnut", { maxTokens: 100 })
    assert.match(few, /\d texts of the agent/)
    for (const maxTokens of [100, 150, 200, 300, 600, 4_000]) {
      const { text: found } = await search(parts, "walnut", { maxTokens })
      assert.isAtMost(estimateText(found), maxTokens, String(maxTokens))
      const [head = "", left = ""] = found.split("Left out: ")
      const [excerpts = "", names = ""] = head.split("More parts that match:\n")
      const shown = mentions(excerpts).length
      const named = mentions(names).length
      const leftOut = [...left.matchAll(/(\d+) (?:message|text|call|output)/g)].reduce(
        (sum, [, n]) => sum + Number(n),
        0
      )
      assert.strictEqual(shown + named + leftOut, parts.length, found)
      // What the user said comes first.
      const places = [...mentions(excerpts), ...mentions(names)].map((handle) =>
        parts.findIndex((one) => one.handle === handle)
      )
      assert.deepStrictEqual(
        places,
        places.toSorted((one, other) => one - other)
      )
      ways.add(`${shown > 0} ${named > 0} ${leftOut > 0}`)
    }
    assert.includeMembers([...ways], ["true true true", "true false false"])
  })
})
