import { Effect, Layer } from "effect"
import { defaultPolicy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import {
  compressed,
  type Draft,
  entries,
  type EntryId,
  entryId,
  inserted,
  sequenceOf,
  view
} from "../../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import { carryOutWith } from "../../../../src/services/compression/strategies/CarryOutPlan.ts"
import type { CompressRequest } from "../../../../src/services/compression/strategies/CompressRequest.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { Summarizer, type SummaryRequest } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { servicesWith } from "../../../support/compressing.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const token = ["gh", "p_", "q7".repeat(18)].join("")
const key = ["AK", "IA", "ABCDEFGHIJ234567"].join("")
const said = (n: number): ReadonlyArray<Draft> => [
  { content: user(text(`Wish ${n}: build part ${n}.`)) },
  { content: model(call("read_file", { path: `src/f${n}.ts` }, `c${n}`)) },
  { content: user(response("read_file", { output: `${n === 2 ? token : ""} ${`file ${n} `.repeat(200)}` }, `c${n}`)) },
  { content: model(text(`Answer ${n}.`)) }
]
const environment: Draft = { content: user(text("folder /w")), author: "environment" }
const program: Draft = { content: user(text("a note of a program")), author: "program" }
const snapshot = "<state_snapshot><task_state>\n- parts 2 and 3 are built\n</task_state></state_snapshot>"

const unused = Layer.succeed(Summarizer, {
  summarize: () => Effect.die("unexpected call"),
  ask: () => Effect.die("unexpected call")
})

/** Five turns, of which the first left before, after an environment message; what the summarizer is asked, and the result. */
const carriedOut = Effect.fnUntraced(function* (change: Partial<CompressRequest["policy"]> = {}, written = snapshot) {
  const drafts = [environment, ...said(1), program, ...said(2), ...said(3), ...said(4), ...said(5)]
  const policy = {
    ...defaultPolicy,
    summarizer: "model" as const,
    limit: TokenCount.make(6_000),
    overhead: TokenCount.make(300),
    minGain: 0,
    preserve: 0.5,
    ...change
  }
  const begun = yield* requestFor(drafts, policy)
  const summary = { ...entries(begun.conversation)[1], id: entryId(23), author: "summary" as const }
  const conversation = compressed(begun.conversation, {
    drop: { from: entryId(2), to: entryId(5) },
    insert: [{ content: user(text("earlier")), tokens: [5], handles: [], ...summary }],
    shorten: []
  })
  const request = { ...begun, conversation, forced: true, promptId: "p", cwd: "/w" }
  const decision = yield* runners.palimpsest.decide(request)
  if (decision._tag !== "Go") return yield* Effect.die(decision.reason)
  const asked: Array<SummaryRequest> = []
  const write = (_: CompressRequest, one: SummaryRequest) =>
    Effect.sync(() => {
      asked.push(one)
      const audit = { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 }
      const doubts = { removed: [], unknown: [] }
      return { text: written, by: "model" as const, audit, doubts, degraded: null, calls: [] }
    })
  const { outcome } = yield* carryOutWith(write)(request, decision.plan)
  return { asked: asked[0], conversation, outcome, request }
})

const services = servicesWith(unused)
const ids = (all: ReadonlyArray<{ readonly id: EntryId }> = []) => all.map(({ id }) => id)

describe("a plan that is carried out", () => {
  it.effect(
    "asks for what leaves, with what stays, what left before and what the user wrote until then",
    services,
    function* () {
      const { asked, conversation, outcome } = yield* carriedOut()
      if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
      const { drop, insert } = outcome.patch
      const shown = view(conversation).map(({ entry }) => entry)
      const to = shown.findIndex(({ id }) => id === drop?.to)
      assert.isAbove(to, 2)
      assert.isBelow(to, shown.length - 3)
      // The environment message stays, and is told to nobody.
      assert.deepStrictEqual(ids(asked?.entries), ids(shown.slice(1, to + 1)))
      assert.deepStrictEqual(drop, { from: shown[1]?.id, to: shown[to]?.id })
      assert.strictEqual(asked?.kept.length, shown.length - to - 1)
      assert.strictEqual(asked?.kept[0], shown[to + 1]?.content.parts[0]?.text)
      assert.strictEqual(asked?.kept.at(-1), "Answer 5.")
      assert.deepStrictEqual(
        ids(asked?.earlier),
        ["e1", "e2", "e3", "e4", "e5"].map((id) => id as EntryId)
      )
      const last = Math.max(...ids(asked?.entries.filter(({ author }) => author === undefined)).map(sequenceOf))
      const wishes = entries(conversation).filter(
        ({ content, id }) => content.parts[0]?.text?.startsWith("Wish") === true && sequenceOf(id) <= last
      )
      assert.deepStrictEqual(
        asked?.messages?.map(({ entry }) => entry),
        ids(wishes)
      )
      assert.isBelow(wishes.length, 5)
      assert.deepInclude(asked, { by: "model", promptId: "p", cwd: "/w", verify: true, fallback: true })
      // New ids follow those of the log, one after the other.
      assert.deepStrictEqual(
        ids(insert),
        insert.map((_, at) => entryId(conversation.next + at))
      )
    }
  )

  it.effect("counts with the overhead, before and after", services, function* () {
    const { conversation, outcome, request } = yield* carriedOut()
    if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
    assert.isAbove(outcome.before, 300)
    const next = compressed(conversation, outcome.patch)
    const tokens = view(next)
      .slice(1)
      .reduce((sum, { entry }) => sum + entry.tokens.reduce((all, one) => all + one, 0), 0)
    assert.strictEqual(outcome.after, request.policy.overhead + tokens)
    assert.strictEqual(inserted(next).length, inserted(conversation).length + outcome.patch.insert.length)
  })

  it.effect("leaves the secrets of a snapshot out, and counts them with those of the messages", services, function* () {
    const { outcome } = yield* carriedOut({}, snapshot.replace("built", `built with ${key}`))
    if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
    assert.notInclude(JSON.stringify(outcome.patch), key)
    assert.notInclude(outcome.snapshot, key)
    assert.deepStrictEqual(outcome.secrets, { "GitHub token": 1, "AWS key": 1 })
  })

  it.effect("fails where the snapshot is blank", services, function* () {
    assert.strictEqual((yield* carriedOut({}, " \n")).outcome._tag, "FailedEmptySummary")
  })
})
