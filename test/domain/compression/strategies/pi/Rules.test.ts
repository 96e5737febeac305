import { assert, describe, it } from "@effect/vitest"
import { fileLists, fileListText, withoutFileLists } from "../../../../../src/domain/compression/FileLists.ts"
import type { PolicyOptions } from "../../../../../src/domain/compression/PolicyOptions.ts"
import { serialized } from "../../../../../src/domain/compression/SerializedConversation.ts"
import {
  keepRecentIn,
  maxResultChars,
  pi,
  piPlan,
  summaryTokens
} from "../../../../../src/domain/compression/strategies/pi/Pi.ts"
import {
  firstPrompt,
  message,
  prefixPrompt,
  updatePrompt,
  withPrefix
} from "../../../../../src/domain/compression/strategies/pi/Prompts.ts"
import { defaultPolicy } from "../../../../../src/domain/compression/strategies/Policy.ts"
import { cutOf, summaryPlan } from "../../../../../src/domain/compression/SummaryPlan.ts"
import { call, type Content, model, response, text, user } from "../../../../../src/domain/content/Content.ts"
import { cleanCuts } from "../../../../../src/domain/conversation/CleanCuts.ts"
import {
  type Conversation,
  type Entry,
  entryId,
  viewItem
} from "../../../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../../../src/domain/conversation/FailureMemory.ts"
import { projectMessages, requestTokens } from "../../../../../src/domain/conversation/Projection.ts"
import * as Work from "../../../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../../../src/domain/tokens/Tokens.ts"
import { conversationOf, entriesOf, entryOf } from "../../../../support/entries.ts"

/** The rules of Pi as they are decided, one test a rule. `docs/strategies.md` lists them by these titles. */

const items = (contents: ReadonlyArray<Content>, tokens = 100) => entriesOf(contents, tokens).map(viewItem)

const asks = (words = "go on") => user(text(words))
const says = (words = "done") => model(text(words))
const calls = (id: string) => model(call("read_file", { path: `${id}.ts` }, id))
const answers = (id: string, output = "…") => user(response("read_file", { output }, id))

/** A prompt and a long tool loop. */
const loop = [asks("Do everything."), ...["a", "b", "c", "d"].flatMap((id) => [calls(id), answers(id)])]

const decided = (conversation: Conversation, change: Partial<PolicyOptions>, forced = false) =>
  Work.runSync(summaryPlan(piPlan, conversation, { ...defaultPolicy, ...change }, { forced, memory: freshMemory }))

describe("when a conversation is compacted", () => {
  it("pi: when the request has more than the window less 16,384 tokens, not at that (Pi 0.73)", () => {
    assert.strictEqual(pi.trigger(200_000), 183_617)
    const conversation = conversationOf(entriesOf([...loop, asks()], 10_000))
    const size = requestTokens(projectMessages(conversation))
    const limit = TokenCount.make(200_000)
    const threshold = pi.trigger(limit) / limit
    const at = (tokens: number) => decided(conversation, { limit, threshold, overhead: TokenCount.make(tokens - size) })
    assert.deepInclude(at(183_616), { _tag: "Skip", reason: "below threshold" })
    assert.strictEqual(at(183_617)._tag, "Go")
  })

  it("pi: 16,384 tokens stay free for the answer (Pi 0.73; ours: at most a quarter of the window, so that small windows work)", () => {
    assert.deepStrictEqual(
      [65_536, 65_000, 16_000, 4].map((window) => window - pi.trigger(window) + 1),
      [16_384, 16_250, 4_000, 1]
    )
  })

  it("pi: only the newest message is left, or a summary: nothing to compress (Pi 0.73; ours: also for a single message)", () => {
    const alone = conversationOf(entriesOf([asks()], 90_000))
    const summary = entriesOf([asks("<summary>\nBefore.\n</summary>"), asks()], 30_000).map((entry, index): Entry =>
      index === 0 ? { ...entry, author: "summary" } : entry
    )
    for (const conversation of [alone, conversationOf(summary)]) {
      assert.deepInclude(decided(conversation, { limit: TokenCount.make(40_000) }, true), {
        _tag: "Skip",
        reason: "nothing to compress"
      })
    }
  })

  it("pi: when everything fits into what stays, an empty conversation is summarised (Pi 0.73; ours: nothing to compress)", () => {
    const tiny = conversationOf(entriesOf([asks(), says()], 10))
    assert.deepInclude(decided(tiny, { limit: TokenCount.make(200_000) }, true), {
      _tag: "Skip",
      reason: "nothing to compress"
    })
  })
})

describe("where it is cut", () => {
  it("pi: the newest 20,000 tokens stay (Pi 0.73; ours: at most half of the trigger, so that small windows work)", () => {
    assert.deepStrictEqual([1_000_000, 200_000, 40_000, 8_000].map(keepRecentIn), [20_000, 20_000, 15_000, 3_000])
    const turns = Array.from({ length: 20 }, () => [asks(), says()]).flat()
    assert.strictEqual(cutOf(items(turns, 1_000), 20_000).at, 20)
  })

  it("pi: the cut is before the first message at or after that point that is no tool result (Pi 0.73)", () => {
    // 250 tokens from the end lie within the result of call c, 350 within the call.
    assert.deepStrictEqual(cutOf(items(loop), 250), { at: 7, turn: 0 })
    assert.deepStrictEqual(cutOf(items(loop), 350), { at: 5, turn: 0 })
  })

  it("pi: never between a call and its result (Pi 0.73; ours: not even when messages stand between them)", () => {
    const late = [asks(), calls("a"), asks("still there?"), says("yes"), answers("a"), says()]
    for (let keep = 1; keep < 600; keep += 50) {
      const { at } = cutOf(items(late), keep)
      assert.isTrue(at <= 1 || at >= 5, `keeping ${keep} it cuts at ${at}`)
    }
  })

  it("pi: when everything fits, all stays (Pi 0.73)", () => {
    assert.deepStrictEqual(cutOf(items(loop), 10_000), { at: 0, turn: 0 })
  })

  it("pi: when the last message is a giant result all stays, which frees nothing (Pi 0.73; ours: the cut is before its call)", () => {
    const giant = [asks(), says(), asks(), calls("a"), answers("a", "x")]
    const sized = items(giant).map((item, index) =>
      index === 4 ? viewItem({ ...item.entry, tokens: [60_000] }) : item
    )
    assert.deepStrictEqual(cutOf(sized, 20_000), { at: 3, turn: 2 })
  })

  it("pi: calls that still wait for their results stay (ours)", () => {
    assert.strictEqual(cutOf(items([asks(), says(), asks(), calls("a")]), 0).at, 3)
  })

  it("a cut keeps calls with their results and what waits for an answer, in any conversation, however much stays", () => {
    const steps = { ask: asks(), say: says(), call: calls("a"), answer: answers("a") }
    const names = ["ask", "say", "call", "answer"] as const
    const all = (length: number): ReadonlyArray<ReadonlyArray<(typeof names)[number]>> =>
      length === 0 ? [[]] : all(length - 1).flatMap((before) => names.map((name) => [...before, name]))
    for (const conversation of [0, 1, 2, 3, 4, 5].flatMap(all)) {
      const list = items(conversation.map((name) => steps[name]))
      const clean = cleanCuts(list)
      for (const keep of [0, 1, 100, 101, 250, 1_000]) {
        const { at, turn } = cutOf(list, keep)
        const about = `${conversation.join()} keeping ${keep}: ${at}, ${turn}`
        assert.isTrue(at === 0 || clean[at], about)
        assert.isAtMost(turn, at, about)
        if (keep > 100 * list.length) assert.strictEqual(at, 0, about)
        if (conversation.at(-1) === "ask" || conversation.at(-1) === "call")
          assert.isTrue(at < list.length || list.length === 0, about)
      }
    }
  })

  it("pi: a message that has no answer yet stays, however large (ours)", () => {
    const sized = items([asks(), says(), asks()]).map((item, index) =>
      index === 2 ? viewItem({ ...item.entry, tokens: [60_000] }) : item
    )
    assert.strictEqual(cutOf(sized, 20_000).at, 2)
  })

  it("pi: a cut within a turn splits it: its beginning is summarised on its own (Pi 0.73)", () => {
    const talk = [asks("first"), says(), ...loop]
    assert.deepStrictEqual(cutOf(items(talk), 250), { at: 9, turn: 2 })
    assert.deepStrictEqual(cutOf(items([...loop, asks("next"), says()]), 200), { at: 9, turn: 9 })
  })
})

describe("what the model is asked", () => {
  it("pi: summaries have at most 13,107, 8,192 and 2,048 tokens: history, a split turn's beginning, a branch (Pi 0.73)", () => {
    assert.deepStrictEqual(summaryTokens, { history: 13_107, prefix: 8_192 })
  })

  it("pi: tool results are cut to 2,000 characters and say how much is missing; nothing else is cut (Pi 0.73)", () => {
    const long = "x".repeat(5_000)
    const shown = Work.runSync(
      serialized(entriesOf([asks(`user ${long}`), says(`model ${long}`), answers("a", long)]), {
        maxResultChars,
        thoughts: true,
        media: false
      })
    )
    assert.include(shown, `[User]: user ${long}`)
    assert.include(shown, `[Assistant]: model ${long}`)
    const result = shown.slice(shown.indexOf("[Tool result]: "))
    assert.match(result, /^\[Tool result\]: x{2000}\n\[… 3000 more characters\]$/)
  })

  it("pi: thoughts, text and calls of an answer in this order, each with its label; images are left out (Pi 0.73)", () => {
    const answer = model(
      call("edit", { path: "a.ts", line: 3 }, "1"),
      text("Now I edit."),
      { text: "Which file?", thought: true },
      call("ls", {}, "2")
    )
    const image = user(text("Look."), { inlineData: { mimeType: "image/png", data: "aGVsbG8=" } })
    assert.strictEqual(
      Work.runSync(serialized(entriesOf([image, answer]), { maxResultChars, thoughts: true, media: false })),
      '[User]: Look.\n\n[Assistant thinking]: Which file?\n\n[Assistant]: Now I edit.\n\n[Assistant tool calls]: edit(path="a.ts", line=3); ls()'
    )
  })

  it("pi: the request is the conversation, the earlier summary, the instructions, and what the user wants kept (Pi 0.73)", () => {
    assert.strictEqual(
      message("[User]: hi", "Summarise.", { previous: "Before.", focus: "the errors" }),
      "<conversation>\n[User]: hi\n</conversation>\n\n<previous-summary>\nBefore.\n</previous-summary>\n\nSummarise.\n\nAdditional focus: the errors"
    )
    assert.notInclude(message("[User]: hi", "Summarise."), "previous-summary")
  })

  it("pi: the sections are Pi's: goal, constraints, progress, decisions, next steps, critical context (Pi 0.73; ours: own words)", () => {
    const headings = (prompt: string) => [...prompt.matchAll(/^#{2,3} (.+)$/gm)].map(([, name]) => name)
    const all = [
      "Goal",
      "Constraints & Preferences",
      "Progress",
      "Done",
      "In Progress",
      "Blocked",
      "Key Decisions",
      "Next Steps",
      "Critical Context"
    ]
    assert.deepStrictEqual(headings(firstPrompt), all)
    assert.deepStrictEqual(headings(updatePrompt), all)
    assert.deepStrictEqual(headings(prefixPrompt), ["Original Request", "Early Progress", "Context for Suffix"])
    for (const prompt of [firstPrompt, updatePrompt, prefixPrompt]) assert.match(prompt, /exactly/)
  })

  it("pi: the summary of a split turn's beginning follows that of the history, after a rule and a heading (Pi 0.73)", () => {
    assert.match(withPrefix("History.", "Beginning."), /^History\.\n\n---\n\n\*\*.+:\*\*\n\nBeginning\.$/)
  })
})

describe("the lists of files", () => {
  const edit = (path: string, id: string) => [
    model(call("edit", { path }, id)),
    user(response("edit", { output: "ok" }, id))
  ]
  const read = (path: string, id: string, answer: object = { output: "…" }) => [
    model(call("read_file", { path }, id)),
    user(response("read_file", answer, id))
  ]

  it("pi: files that were read, without those that were modified, both sorted (Pi 0.73)", () => {
    const entries = entriesOf([...read("b.ts", "1"), ...read("a.ts", "2"), ...edit("c.ts", "3"), ...edit("b.ts", "4")])
    assert.deepStrictEqual(fileLists(entries), { read: ["a.ts"], modified: ["b.ts", "c.ts"] })
  })

  it("pi: only the tools read, write and edit count, also when they failed (Pi 0.73; ours: other agents' names too, failed calls not)", () => {
    const entries = entriesOf([
      ...read("a.ts", "1", { error: "no such file" }),
      model(call("Write", { file_path: "new.ts", content: "" }, "2")),
      user(response("Write", { output: "ok" }, "2"))
    ])
    assert.deepStrictEqual(fileLists(entries), { read: [], modified: ["new.ts"] })
  })

  it("pi: the lists stand at the end of the summary and are carried from compaction to compaction (Pi 0.73; ours: never shown to the model twice)", () => {
    const lists = fileListText({ read: ["a.ts"], modified: ["b.ts"] })
    assert.strictEqual(lists, "<read-files>\na.ts\n</read-files>\n\n<modified-files>\nb.ts\n</modified-files>")
    const summary = entryOf(1, user(text(`<summary>\nBefore.\n\n${lists}\n</summary>`)), { author: "summary" })
    const later = entriesOf(edit("a.ts", "1")).map((entry, index) => ({ ...entry, id: entryId(index + 2) }))
    assert.deepStrictEqual(fileLists([summary, ...later]), { read: [], modified: ["a.ts", "b.ts"] })
    const carried = (...texts: ReadonlyArray<string>) =>
      fileLists(texts.map((words, index) => entryOf(index + 1, user(text(words)), { author: "summary" })))
    // From its first character on, of two summaries, and not without its end.
    assert.deepStrictEqual(carried(lists), { read: ["a.ts"], modified: ["b.ts"] })
    assert.deepStrictEqual(carried(lists, lists.replaceAll("a.ts", "c.ts")), {
      read: ["a.ts", "c.ts"],
      modified: ["b.ts"]
    })
    assert.deepStrictEqual(carried("<read-files>\na.ts\n"), { read: [], modified: [] })
    assert.strictEqual(withoutFileLists(`Before.\n\n${lists}`), "Before.")
  })
})
