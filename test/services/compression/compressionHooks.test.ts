import { Cause, Context, Effect, Exit, Layer } from "effect"
import { patchOf, statusOf } from "../../../src/domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { type HookEvent, type HookOutcome, emptyOutcome } from "../../../src/domain/hooks/Hook.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import type { CompressRequest } from "../../../src/services/compression/strategies/CompressRequest.ts"
import { extractiveSummary, Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { type Answers, subscribed } from "../../support/hooks.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** PreCompress: what hooks may say to a compression, and what becomes of it. */

const conversation: ReadonlyArray<Draft> = [
  { content: user(text("Make the build green. Never touch src/legacy.")) },
  ...Array.from({ length: 12 }, (_, n) => [
    { content: model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)) },
    { content: user(response("read_file", { output: `line of file ${n}\n`.repeat(60) }, `c${n}`)) }
  ]).flat(),
  { content: model(text("The build is green.")) }
]

const policy: Policy = { ...defaultPolicy, limit: TokenCount.make(4_000) }

/** A compression, with hooks that answer so; `seen`: the focus of each snapshot that was asked for. */
const compressing = Effect.fnUntraced(function* (
  answers: Answers,
  more: Partial<CompressRequest> = {},
  change: Partial<Policy> = {}
) {
  const focus: Array<string | undefined> = []
  const counting = Layer.merge(TokenCounter.layerEstimate, MemoryTempStore.layer)
  const services = yield* Layer.build(
    Compression.layer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          counting,
          HookSystem.layer,
          Layer.succeed(Summarizer, {
            summarize: (request) => {
              focus.push(request.focus)
              return extractiveSummary(request)
            },
            ask: () => Effect.die("unexpected call"),
            count: () => Effect.die("unexpected call")
          })
        )
      )
    )
  )
  const told = yield* subscribed(Context.get(services, HookSystem), answers)
  const compression = Context.get(services, Compression)
  const request = { ...(yield* Effect.provide(requestFor(conversation, { ...policy, ...change }), services)), ...more }
  return { compression, focus, request, told, ended: yield* compression.compress(request) }
})

/** The name and the trigger of each event. */
const brief = (told: ReadonlyArray<HookEvent>) =>
  told.map((event) => `${event._tag} ${"trigger" in event ? event.trigger : ""}`)

const veto: HookOutcome = { ...emptyOutcome, blocked: "not during the release" }

const snapshot = (body: string): string => `<state_snapshot>\n${body}\n</state_snapshot>`

const given = snapshot(
  "<overall_goal>\n- green build, ticket 4711\n</overall_goal>\n<active_constraints>\n- be quick\n</active_constraints>\n<key_knowledge>\n- src/file3.ts is the culprit\n</key_knowledge>"
)

describe("strategy palimpsest", () => {
  it.effect.each([
    ["blocks", { decision: "block", reason: "not now" }, "not now"],
    ["stops", { continue: false, stopReason: "not ever" }, "not ever"]
  ] as const)("a hook that %s vetoes it, even when the user requested it", function* ([, answer, why]) {
    const { ended, focus, told } = yield* compressing({ PreCompress: answer }, { forced: true })
    assert.deepInclude(ended.outcome, { _tag: "Noop", reason: "vetoed by a hook", detail: why })
    assert.strictEqual(statusOf(ended.outcome), "NOOP")
    assert.deepStrictEqual(focus, [])
    assert.deepStrictEqual(brief(told), ["PreCompress manual", "PostCompress manual"])
  })

  it.effect.each([true, false])(
    "palimpsest: messages for which a model was paid in vain are not paid for again unless by hand: code writes their snapshot, or nothing changes, and one line says so (ours): with its ladder %s",
    function* (ladder) {
      const { compression, ended, request } = yield* compressing({}, {}, { summarizer: "model", ladder })
      const drop = patchOf(ended.outcome)?.drop
      assert.isDefined(drop)
      const tried = drop === undefined ? [] : [drop]
      const again = (forced: boolean) =>
        Effect.map(compression.compress({ ...request, forced, memory: { ...request.memory, tried } }), ({ outcome }) =>
          outcome._tag === "Compressed" ? [outcome._tag, outcome.degraded?.message] : [outcome._tag, ""]
        )
      const [status, why = ""] = yield* again(false)
      assert.strictEqual(status, ladder ? "Compressed" : "Noop")
      assert.strictEqual(why.startsWith("an earlier call for these messages"), ladder)
      assert.deepStrictEqual(yield* again(true), ["Compressed", undefined])
    }
  )

  it.effect("unknown strategy names fall back to no other strategy, also from untyped programs", function* () {
    const { compression, request } = yield* compressing({}, { forced: true })
    const untyped: { readonly strategy?: "palimpsest" } = JSON.parse('{"strategy": "word"}')
    const wanted = { ...request, policy: { ...request.policy, ...untyped } }
    const died = yield* Effect.exit(compression.compress(wanted))
    assert.include(
      Exit.isFailure(died) ? Cause.pretty(died.cause) : "",
      "no strategy is called word; expected palimpsest or gemini or pi or openclaw"
    )
    assert.isTrue(Exit.isFailure(yield* Effect.exit(compression.plan(wanted))))
    const decision = yield* compression.plan(request)
    const plan = decision._tag === "Go" ? { ...decision.plan, ...untyped } : undefined
    if (plan === undefined) return yield* Effect.die(new Error("a plan was expected"))
    assert.isTrue(Exit.hasDies(yield* Effect.exit(compression.apply(request, plan))))
  })

  it.effect("below the threshold there is nothing to veto", function* () {
    const { ended, told } = yield* compressing(
      { PreCompress: { decision: "block", reason: "no" } },
      {},
      { limit: TokenCount.make(1_000_000) }
    )
    assert.deepInclude(ended.outcome, { _tag: "Noop", reason: "below threshold" })
    assert.deepStrictEqual(brief(told), ["PreCompress auto", "PostCompress auto"])
  })

  it.effect("a necessary compression cannot be vetoed", function* () {
    const { ended, told } = yield* compressing(
      { PreCompress: { decision: "block", reason: "no" } },
      { forced: true, mustFit: true }
    )
    assert.strictEqual(ended.outcome._tag, "Compressed")
    assert.deepStrictEqual(brief(told), ["PreCompress auto", "PostCompress auto"])
  })

  it.effect("hooks are not called twice for one event; their answer is used", function* () {
    const { ended, told } = yield* compressing({}, { forced: true, hookDecision: veto })
    assert.deepInclude(ended.outcome, { reason: "vetoed by a hook", detail: "not during the release" })
    assert.deepStrictEqual(told, [])
  })

  it.effect("a plan made earlier can be vetoed, too", function* () {
    const { compression, request } = yield* compressing({}, { forced: true })
    const decision = yield* compression.plan(request)
    if (decision._tag !== "Go") return assert.fail(decision.reason)
    const { outcome } = yield* compression.apply({ ...request, hookDecision: veto }, decision.plan)
    assert.deepInclude(outcome, { _tag: "Noop", reason: "vetoed by a hook" })
    const done = yield* compression.apply({ ...request, hookDecision: emptyOutcome }, decision.plan)
    assert.strictEqual(done.outcome._tag, "Compressed")
  })

  it.effect("a plan of another version of the conversation is refused without a hook", function* () {
    const { compression, request, told } = yield* compressing({}, { forced: true })
    const decision = yield* compression.plan(request)
    if (decision._tag !== "Go") return assert.fail(decision.reason)
    const before = told.length
    const plan = { ...decision.plan, version: decision.plan.version + 1 }
    yield* Effect.flip(compression.apply(request, plan))
    assert.deepStrictEqual(brief(told.slice(before)), [])
    yield* compression.apply(request, decision.plan)
    assert.deepStrictEqual(brief(told.slice(before)), ["PreCompress manual", "PostCompress manual"])
  })

  it.effect.each([
    ["a focus is taken from a hook where the user gave none", {}, "error texts"],
    ["the user's own focus comes first", { focus: "paths" }, "paths"]
  ] as const)("%s", function* ([, change, expected]) {
    const { ended, focus } = yield* compressing(
      { PreCompress: { hookSpecificOutput: { focus: "error texts" } } },
      { forced: true },
      change
    )
    assert.strictEqual(ended.outcome._tag, "Compressed")
    assert.strictEqual(focus[0], expected)
  })

  it.effect("a hook's snapshot replaces the summarizer's, and is verified like a model's", function* () {
    const { ended, focus } = yield* compressing(
      { PreCompress: { hookSpecificOutput: { snapshot: `Here it is:\n${given}` } } },
      { forced: true }
    )
    const { outcome } = ended
    if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
    assert.deepStrictEqual(focus, [])
    assert.strictEqual(outcome.by, "hook")
    assert.include(outcome.snapshot, "src/file3.ts is the culprit")
    // Nobody spoke of a ticket; the constraint is not the user's.
    assert.include(outcome.doubts.removed, "4711")
    assert.notInclude(outcome.snapshot, "4711")
    assert.include(outcome.snapshot, "written by a model: be quick")
    // What the user demanded was left out, and stands there all the same.
    assert.include(outcome.snapshot, "Never touch src/legacy.")
    assert.isAbove(outcome.audit.anchors, 0)
    assert.isNull(outcome.degraded)
    assert.isBelow(outcome.after, outcome.before * 0.9)
  })

  it.effect("an excessive snapshot is cut to the budget", function* () {
    const lines = Array.from({ length: 20_000 }, (_, n) => `- fact number ${n} that nobody needs`).join("\n")
    const { ended } = yield* compressing(
      {
        PreCompress: {
          hookSpecificOutput: { snapshot: snapshot(`<key_knowledge>\n${lines}\n</key_knowledge>`) }
        }
      },
      { forced: true }
    )
    const { outcome } = ended
    if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
    assert.isAtMost(outcome.after, policy.limit)
  })

  it.effect.each([
    ["is no snapshot", "Dear model, all is well.", "no snapshot"],
    ["is not closed", "<state_snapshot><key_knowledge>- a", "not closed"],
    ["has two", `${given}${given}`, "more than one snapshot"],
    ["is empty", "", "no snapshot"],
    ["is far too long", "x".repeat(1_000_001), "1000001 characters"]
  ] as const)("%s is reported, and the default snapshot written", function* ([, words, why]) {
    const { ended } = yield* compressing({ PreCompress: { hookSpecificOutput: { snapshot: words } } }, { forced: true })
    const { outcome } = ended
    if (outcome._tag !== "Compressed") return assert.fail(outcome._tag)
    assert.strictEqual(outcome.by, "extractive")
    assert.strictEqual(outcome.degraded?.reason, "InvalidOutputError")
    assert.include(outcome.degraded?.message, why)
  })

  it.effect("a value that is not text is neither snapshot nor focus", function* () {
    const { ended, focus } = yield* compressing(
      { PreCompress: { hookSpecificOutput: { snapshot: { a: 1 }, focus: 7 } } },
      { forced: true }
    )
    assert.deepInclude(ended.outcome, { _tag: "Compressed", by: "extractive", degraded: null })
    assert.deepStrictEqual(focus, [undefined])
  })
})

describe("strategy gemini", () => {
  for (const forced of [true, false]) {
    it.effect(
      `gemini: calls hooks and ignores their answers, ${forced ? "forced" : "automatic"} (Gemini CLI)`,
      function* () {
        const seeds = { strategy: "gemini", minGain: 0, outputForm: "head-tail-chars" } as const
        const plain = yield* compressing({}, { forced }, seeds)
        const { ended, told } = yield* compressing(
          {
            PreCompress: {
              continue: false,
              decision: "block",
              reason: "no",
              hookSpecificOutput: { snapshot: given, focus: "paths" }
            }
          },
          { forced },
          seeds
        )
        assert.deepStrictEqual(
          told.map(({ _tag }) => _tag),
          ["PreCompress", "PostCompress"]
        )
        assert.strictEqual(JSON.stringify(ended), JSON.stringify(plain.ended))
      }
    )
  }
})
