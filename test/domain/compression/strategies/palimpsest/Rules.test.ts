import { assert, describe, it } from "@effect/vitest"
import type { Decision } from "../../../../../src/domain/compression/Compression.ts"
import type { PolicyOptions } from "../../../../../src/domain/compression/PolicyOptions.ts"
import { palimpsest } from "../../../../../src/domain/compression/strategies/palimpsest/Palimpsest.ts"
import { plan, type PlanOptions } from "../../../../../src/domain/compression/strategies/palimpsest/Plan.ts"
import { rungCount, shortenedText } from "../../../../../src/domain/compression/strategies/palimpsest/Shortening.ts"
import { defaultPolicy } from "../../../../../src/domain/compression/strategies/Policy.ts"
import {
  call,
  type Content,
  isResponse,
  model,
  response,
  text,
  user
} from "../../../../../src/domain/content/Content.ts"
import {
  append,
  type Conversation,
  empty,
  type Entry,
  entryId,
  viewItem
} from "../../../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../../../src/domain/conversation/FailureMemory.ts"
import { projectMessages, requestTokens } from "../../../../../src/domain/conversation/Projection.ts"
import { defaultSize } from "../../../../../src/domain/conversation/ToolOutputShortening.ts"
import { runSync } from "../../../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../../../src/domain/tokens/Tokens.ts"
import { conversationOf as ofEntries, entriesOf, handle } from "../../../../support/entries.ts"

/** The rules of the default strategy as they are decided, one test a rule. `docs/strategies.md` lists them by these titles. */

const tokens = (count: number) => TokenCount.make(count)

const conversationOf = (contents: ReadonlyArray<Content>, size = 1_000) => ofEntries(entriesOf(contents, size))

/** The same with another number of tokens, or another author, at one place. */
const changedAt = (contents: ReadonlyArray<Content>, at: number, change: Partial<Entry>): Conversation =>
  ofEntries(entriesOf(contents, 1_000).map((entry, index) => (index === at ? { ...entry, ...change } : entry)))

const asks = (words = "Please mend the parser now.") => user(text(words))
const says = (words = "done") => model(text(words))
const calls = (id: string) => model(call("read_file", { path: `${id}.ts` }, id))
const output = Array.from({ length: 200 }, (_, at) => `line ${at} of what the tool wrote`).join("\n")
const answers = (id: string, written = output) => user(response("read_file", { output: written }, id))
const steps = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => [calls(`f${from + at}`), answers(`f${from + at}`)]).flat()

const turns = (count: number) =>
  Array.from({ length: count }, (_, at) => [asks(`Please change part ${at} of it.`), says()]).flat()

const decided = (conversation: Conversation, change: Partial<PolicyOptions>, options: Partial<PlanOptions> = {}) =>
  runSync(
    plan(conversation, { ...defaultPolicy, ...change }, { forced: true, memory: freshMemory, rung: 0, ...options })
  )

const stepsOf = (decision: Decision) => (decision._tag === "Go" ? decision.plan.steps : [])
const only = <Tag extends ReturnType<typeof stepsOf>[number]["_tag"]>(decision: Decision, tag: Tag) =>
  stepsOf(decision).filter((step): step is Extract<typeof step, { _tag: Tag }> => step._tag === tag)

/** The first message that stays, by its number from 0. */
const keptFrom = (decision: Decision, length: number) => length - (only(decision, "Layout")[0]?.kept.length ?? length)

describe("when a conversation is compressed", () => {
  it("palimpsest: from half of the window on (ours)", () => {
    assert.strictEqual(palimpsest.trigger(200_000), 100_000)
    const conversation = conversationOf([...steps(0, 20), asks()])
    const size = requestTokens(projectMessages(conversation))
    const at = (request: number) =>
      decided(conversation, { limit: tokens(200_000), overhead: tokens(request - size) }, { forced: false })
    assert.deepInclude(at(99_999), { _tag: "Skip", reason: "below threshold" })
    assert.strictEqual(at(100_000)._tag, "Go")
  })

  it("palimpsest: after a failure it waits until the conversation has grown, unless it is forced (ours)", () => {
    const conversation = conversationOf([...steps(0, 20), asks()])
    const memory = { ...freshMemory, waitUntil: 1e6 }
    const limit = tokens(60_000)
    assert.deepInclude(decided(conversation, { limit }, { forced: false, memory }), { reason: "waiting for growth" })
    assert.strictEqual(decided(conversation, { limit }, { forced: true, memory })._tag, "Go")
  })

  it("palimpsest: an empty conversation has nothing to compress (ours)", () => {
    assert.deepInclude(decided(empty, {}), { _tag: "Skip", reason: "empty" })
  })

  it("palimpsest: a snapshot is not summarised alone, nor with a single message of the model (ours)", () => {
    const after = (count: number) =>
      changedAt([asks("<state_snapshot/>"), says(), ...turns(2)].slice(0, count), 0, { author: "summary" })
    const of = (count: number) => decided(after(count), { limit: tokens(2_000), preserve: 0 })
    assert.deepInclude(of(1), { reason: "nothing to compress" })
    assert.deepInclude(of(2), { reason: "nothing to compress" })
    assert.isNotEmpty(only(of(4), "Summarize"))
  })

  it("palimpsest: a compression has to save a tenth of the request, else nothing changes (ours)", () => {
    assert.strictEqual(palimpsest.defaults.minGain, 0.1)
  })
})

describe("what stays", () => {
  it("palimpsest: 30 % of the tokens stay, and never more than fit beside the snapshot (ours)", () => {
    const conversation = conversationOf(turns(50))
    assert.strictEqual(keptFrom(decided(conversation, {}), 100), 70)
    // 0.45 of the window, half of it for the snapshot, leaves 9,000 tokens.
    assert.isAtLeast(keptFrom(decided(conversation, { limit: tokens(40_000) }), 100), 91)
  })

  it("palimpsest: the cut is never between a call and its response (ours)", () => {
    const loop = [asks(), ...steps(0, 10), says()]
    for (let preserve = 0; preserve <= 1; preserve += 0.05) {
      const at = keptFrom(decided(conversationOf(loop, 100), { preserve }), loop.length)
      assert.isTrue(at === loop.length || at === loop.length - 1 || at % 2 === 1 || at === 0, `${preserve}: ${at}`)
    }
  })

  it("palimpsest: the cut moves to the beginning of a turn when that costs at most 40 % of what may stay (ours)", () => {
    const keptOf = (last: number) => {
      const contents = [...turns(20), asks(), ...steps(0, 20 - last), says(), asks(), ...steps(50, last), says()]
      return (
        contents.length - keptFrom(decided(conversationOf(contents, 100), { toolBudget: tokens(1e6) }), contents.length)
      )
    }
    // 84 messages, of which 25.2 may stay. The last turn has 2 more messages than its calls and responses.
    assert.strictEqual(keptOf(7), 16)
    assert.strictEqual(keptOf(6), 25)
  })

  it("palimpsest: within a turn the cut moves to a commit or a closed item, else to where another file is changed (ours)", () => {
    const edits = (path: string, id: string) => [
      model(call("replace", { file_path: path, old_string: "a", new_string: "b" }, id)),
      user(response("replace", { output: "done" }, id))
    ]
    const commits = (output: object) => [
      model(call("run_shell_command", { command: "git add -A && git commit -m 'Mend it'" }, "c")),
      user(response("run_shell_command", output, "c"))
    ]
    const lists = (...done: ReadonlyArray<string>) => [
      model(call("write_todos", { todos: done.map((content) => ({ content, status: "completed" })) }, "t")),
      user(response("write_todos", { output: "ok" }, "t"))
    ]
    const closes = lists("mend")
    const readOnly = steps(80, 1)
    // Of 65 messages 19 may stay, and the cut may move where 12 stay. `piece` ends 17 messages before the end.
    const keptOf = (piece: ReadonlyArray<Content>, then: ReadonlyArray<Content> = readOnly, last = steps(50, 7)) => {
      const rest = [...then, ...last]
      const contents = [asks(), ...steps(0, (63 - rest.length - piece.length) / 2), ...piece, ...rest, says()]
      return (
        contents.length - keptFrom(decided(conversationOf(contents, 100), { toolBudget: tokens(1e6) }), contents.length)
      )
    }
    const nowhere = keptOf(readOnly)
    assert.isAbove(nowhere, 17)
    assert.strictEqual(keptOf(commits({ output: "[main 1a2b3c4] Mend it", exit_code: 0 })), 17)
    assert.strictEqual(keptOf(commits({ error: "nothing to commit" })), nowhere)
    assert.strictEqual(keptOf(closes), 17)
    // A list that closes nothing ends nothing.
    assert.strictEqual(keptOf([...lists("mend"), ...steps(70, 1), ...lists("mend")]), nowhere)
    assert.strictEqual(keptOf([...lists("mend"), ...steps(70, 1), ...lists("mend", "test")]), 17)
    assert.strictEqual(keptOf(edits("a.ts", "e1"), edits("b.ts", "e2")), 17)
    assert.strictEqual(keptOf(edits("a.ts", "e1"), edits("a.ts", "e2")), nowhere)
    assert.strictEqual(keptOf([...closes, ...edits("a.ts", "e1")], edits("b.ts", "e2")), 19)
    // The change that comes next may be far behind.
    const late = [...steps(50, 2), ...edits("b.ts", "e2"), ...steps(52, 4)]
    assert.strictEqual(keptOf(edits("a.ts", "e1"), readOnly, late), 17)
  })

  it("palimpsest: a message that has no answer yet stays, however large (ours)", () => {
    const conversation = changedAt([...turns(10), asks()], 20, { tokens: [90_000] })
    assert.strictEqual(keptFrom(decided(conversation, { limit: tokens(100_000) }), 21), 20)
  })

  it("palimpsest: with 0 to keep nothing stays but what has no answer yet: a message, or calls that wait for their responses (ours)", () => {
    assert.strictEqual(keptFrom(decided(conversationOf(turns(10)), { preserve: 0 }), 20), 20)
    assert.strictEqual(keptFrom(decided(conversationOf([...turns(10), asks(), calls("a")]), { preserve: 0 }), 22), 21)
    assert.strictEqual(keptFrom(decided(conversationOf([...turns(10), asks()]), { preserve: 0 }), 21), 20)
    assert.strictEqual(keptFrom(decided(conversationOf([...turns(10), asks(), asks()]), { preserve: 0 }), 22), 20)
  })
})

describe("old tool results", () => {
  it("palimpsest: the newest 50,000 tokens of results stay whole, older ones that stay are shortened (ours)", () => {
    const contents = [...turns(2), ...steps(0, 10)]
    const shortened = only(
      decided(conversationOf(contents, 12_000), { preserve: 1, limit: tokens(2_000_000) }),
      "Shorten"
    )
    assert.deepStrictEqual(
      shortened.map(({ entry }) => entry).toSorted(),
      [0, 1, 2, 3, 4, 5].map((at) => entryId(6 + 2 * at)).toSorted()
    )
  })

  it("palimpsest: old results take at most half of the available room (ours)", () => {
    // 0.45 of the window are 18,000 tokens; half of that are four results of 2,000.
    const conversation = entriesOf([...turns(2), ...steps(0, 10)], 10)
      .map((entry) => (entry.content.parts.some(isResponse) ? { ...entry, tokens: [2_000] } : entry))
      .reduce(append, empty)
    const shortened = only(decided(conversation, { limit: tokens(40_000), preserve: 1 }), "Shorten")
    assert.strictEqual(shortened[0]?.entry, entryId(16))
  })

  it("palimpsest: a result without an answer yet stays whole while the request fits the window, and else fills what is left (ours)", () => {
    const waiting = (size: number, limit: number, rung = 0) =>
      decided(
        entriesOf([...turns(2), ...steps(0, 2)], 500)
          .map((entry, at) => (at === 7 ? { ...entry, tokens: [size] } : entry))
          .reduce(append, empty),
        { limit: tokens(limit), threshold: 0.5 },
        { rung }
      )
    const last = entryId(8)
    const shortened = (decision: Decision) => only(decision, "Shorten").filter(({ entry }) => entry === last)
    for (const rung of [0, 1, 2]) assert.deepStrictEqual(shortened(waiting(12_000, 30_000, rung)), [])
    for (const limit of [2_000, 3_000]) {
      const decision = waiting(4_000, limit)
      const [step] = shortened(decision)
      assert.strictEqual(step?.form, "head-tail-chars")
      assert.isAbove(step?.chars ?? 0, output.length / 5)
      assert.isAtMost(decision._tag === "Go" ? decision.plan.after : Infinity, limit)
    }
    // After a failure, what does not fit is shortened like any other result.
    const forms = [1, 2].map((rung) => shortened(waiting(4_000, 3_000, rung))[0]?.form)
    assert.deepStrictEqual(forms, ["last-lines", "note"])
  })

  it("palimpsest: a shortened result is its last 30 lines and the handle of the whole (ours)", () => {
    const item = viewItem(entriesOf([answers("a")], 9_000)[0] ?? assert.fail("no entry"))
    const shown = shortenedText(item, 0, "last-lines", defaultSize) ?? ""
    assert.include(shown, handle)
    assert.strictEqual(shown.split("\n").filter((line) => line.startsWith("line ")).length, 30)
    assert.include(shown, "line 199 of")
  })

  it("palimpsest: a result that would shrink by less than a tenth stays whole (ours)", () => {
    const small = [...turns(2), ...Array.from({ length: 9 }, (_, at) => [calls(`f${at}`), answers(`f${at}`, "short")])]
    assert.isEmpty(only(decided(conversationOf(small.flat(), 40), { toolBudget: tokens(0), preserve: 1 }), "Shorten"))
  })
})

describe("the snapshot", () => {
  it("palimpsest: has at most 60 % of what it replaces, half of the room, and 12,000 tokens (ours)", () => {
    const budget = (contents: ReadonlyArray<Content>, change: Partial<PolicyOptions> = {}) =>
      only(decided(conversationOf(contents), { preserve: 0, ...change }), "Summarize")[0]?.budget
    assert.strictEqual(budget(turns(5)), 6_000)
    assert.strictEqual(budget(turns(500)), 12_000)
    assert.strictEqual(budget(turns(500), { limit: tokens(40_000) }), 9_000)
    assert.strictEqual(budget(turns(500), { snapshotBudget: tokens(777) }), 777)
  })

  it("palimpsest: quotes the original request, the latest one that leaves, and what the user pinned (ours)", () => {
    const conversation = conversationOf([asks("hi"), says(), ...turns(20)])
    const pins = [{ entry: entryId(7), part: 0, start: 0, end: 6 }]
    const decision = decided(conversation, { limit: tokens(20_000) }, { pins })
    const cut = keptFrom(decision, 42)
    assert.deepStrictEqual(
      only(decision, "Pin").map(({ entry, why }) => [entry, why]),
      [
        [entryId(3), "original request"],
        [entryId(cut % 2 === 0 ? cut - 1 : cut), "latest request"],
        [entryId(7), "pinned by the user"]
      ]
    )
  })

  it("palimpsest: an earlier snapshot that leaves is merged into the next one (ours)", () => {
    const promptOf = (change: Partial<Entry>) =>
      only(decided(changedAt([asks("<state_snapshot/>"), ...turns(20)], 0, change), {}), "Summarize")[0]?.prompt
    assert.strictEqual(promptOf({}), "create")
    assert.strictEqual(promptOf({ author: "summary" }), "merge")
  })

  it("palimpsest: two stronger plans follow, which keep 40 % of that and then nothing (ours)", () => {
    const conversation = conversationOf(turns(50))
    const kept = Array.from(
      { length: rungCount },
      (_, rung) => 100 - keptFrom(decided(conversation, {}, { rung }), 100)
    )
    assert.deepStrictEqual(kept, [30, 12, 0])
  })

  it("palimpsest: the same conversation has the same plan (ours)", () => {
    const made = () => decided(conversationOf([...turns(10), ...steps(0, 10)]), { limit: tokens(20_000) })
    assert.deepStrictEqual(made(), made())
  })
})
