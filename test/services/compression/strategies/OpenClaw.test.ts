import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { adopt, failedModelsOf, type Outcome } from "../../../../src/domain/compression/Compression.ts"
import { contextLength } from "../../../../src/domain/compression/Compression.ts"
import { headings } from "../../../../src/domain/compression/strategies/openclaw/Audit.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { type Content, plainText, text, user } from "../../../../src/domain/content/Content.ts"
import { view } from "../../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import { compressWith } from "../../../../src/services/compression/CompressionWorkflow.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { type AskRequest, SummarizerError } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { type Answer, limited, scripted, servicesWith, turns } from "../../../support/compressing.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** The workflow of a compaction by openclaw, with a scripted model. */

const record = `${headings.join("\nNone.\n")}\nThe billing module: src/file0.ts src/file1.ts src/file2.ts src/file3.ts src/file4.ts src/file5.ts src/file6.ts src/file7.ts src/file8.ts src/file9.ts src/file10.ts src/file11.ts question`

const played = Effect.fnUntraced(function* (
  contents: ReadonlyArray<Content>,
  answer: (request: AskRequest, index: number) => Answer,
  policy: Partial<Policy> = {}
) {
  const { asked, summarizer } = scripted(answer)
  return yield* Effect.gen(function* () {
    const request = yield* requestFor(
      contents.map((content) => ({ content })),
      {
        ...defaultPolicy,
        strategy: "openclaw",
        summarizer: "model",
        ladder: false,
        minGain: 0,
        limit: TokenCount.make(32_000),
        ...policy
      }
    )
    const { outcome } = yield* compressWith(runners.openclaw, { ...request, forced: true })
    const shown = view(adopt(request.conversation, outcome)).map(({ entry }) => plainText(entry.content))
    return { outcome, asked, shown, bodies: asked.map(({ contents: [body] }) => plainText(body ?? user())) }
  }).pipe(Effect.provide(servicesWith(summarizer)))
})

describe("a compaction by openclaw", () => {
  it.effect(
    "openclaw: puts the summary in the user's role, marked as written by the runtime, without an acknowledgement (OpenClaw 2026.9)",
    function* () {
      const { outcome, shown } = yield* played(turns(20, 200), () => record)
      assert.strictEqual(outcome._tag, "Compressed")
      assert.match(shown[0] ?? "", /left the window[^]*<summary>\n## Decisions[^]*<\/summary>$/)
      assert.notInclude(shown[1] ?? "", "Understood")
      assert.include(shown[0] ?? "", "## Recent turns\n- User: question")
      assert.match(shown[0] ?? "", /<read-files>\nsrc\/file0\.ts\n/)
    }
  )

  it.effect(
    "openclaw: writes two parts and merges them where one request is too small, each chunk from the record so far (OpenClaw 2026.9)",
    function* () {
      const { asked, bodies, outcome } = yield* played(turns(30, 200), () => record)
      assert.strictEqual(outcome._tag, "Compressed")
      assert.include(
        asked.map(({ purpose }) => purpose),
        "merge"
      )
      const merge = bodies[asked.findIndex(({ purpose }) => purpose === "merge")] ?? ""
      assert.include(merge, "[Part 1 of 2]")
      assert.isTrue(bodies.some((body) => body.includes("[Earlier record]: ## Decisions")))
    }
  )

  it.effect(
    "openclaw: asks again with the reasons when the audit fails, and completes what is still missing (OpenClaw 2026.9)",
    function* () {
      const { bodies, outcome, shown } = yield* played(turns(4, 60), () => "All is well.", { preserve: 0 })
      assert.strictEqual(bodies.length, 2)
      assert.include(bodies[1] ?? "", "An earlier answer could not be used: these sections are missing")
      assert.deepInclude(outcome, { _tag: "Compressed" })
      assert.strictEqual(outcome._tag === "Compressed" ? outcome.degraded?.reason : "", "audit")
      for (const heading of headings) assert.include(shown[0] ?? "", heading)
    }
  )

  it.effect("openclaw: starts from the earlier summary, whichever strategy wrote it (OpenClaw 2026.9)", function* () {
    const earlier = {
      content: user(text("<summary>\nThe migration is done.\n</summary>")),
      author: "summary" as const
    }
    const { bodies } = yield* played([earlier.content, ...turns(4, 60)], () => record, { preserve: 0 })
    assert.include(bodies[0] ?? "", "The migration is done.")
  })

  it.effect(
    "openclaw: says what a record covers when a later chunk fails; fails when the first one does (OpenClaw 2026.9)",
    function* () {
      const later = yield* played(turns(30, 200), (_, index) => (index === 1 ? limited : record))
      assert.strictEqual(later.outcome._tag, "Compressed")
      assert.isTrue(later.bodies.some((body) => body.includes("[This record covers 1 of")))
      const first = yield* played(turns(10, 200), () => limited)
      assert.deepInclude(first.outcome, { _tag: "FailedSummarizer", reason: "RateLimitError" })
    }
  )

  it.effect("openclaw: gives each request 180 s (OpenClaw 2026.9)", function* () {
    const waiting = yield* Effect.forkChild(played(turns(10, 200), () => Effect.never))
    yield* TestClock.adjust("179 seconds")
    assert.isUndefined(waiting.pollUnsafe())
    yield* TestClock.adjust("1 second")
    const { outcome } = yield* Fiber.join(waiting)
    assert.deepInclude(outcome, { _tag: "FailedSummarizer", reason: "TimeoutError" })
  })

  it.effect("openclaw: an empty answer leaves the conversation as it is (OpenClaw 2026.9)", function* () {
    const { outcome } = yield* played(turns(4, 60), () => "", { preserve: 0 })
    assert.strictEqual(outcome._tag, "FailedEmptySummary")
  })

  const notFound = new SummarizerError({
    reason: "InvalidRequestError",
    message: "no such model",
    cause: "404",
    calls: []
  })
  const overloaded = new SummarizerError({ reason: "InternalProviderError", message: "503", cause: "503", calls: [] })
  const tooLong = new SummarizerError({ reason: contextLength, message: "too long", cause: "400", calls: [] })
  const chain = { preserve: 0, model: ["first", "second", "third"] } as const
  const failedIn = (outcome: Outcome) => failedModelsOf(outcome).map(({ model, reason }) => `${model}: ${reason}`)

  it.effect.each([
    ["a rate limit", limited],
    ["a model that is not found", notFound],
    ["an overloaded provider", overloaded],
    ["an answer without words", "  "],
    ["no answer within its time", Effect.never]
  ] as const)(
    "openclaw: asks the next summary model after %s, and the outcome names both (OpenClaw 2026.9; ours: also where models are named)",
    function* ([, bad]) {
      const answer = ({ model: name }: AskRequest) => (name === "first" ? bad : record)
      const playing = yield* Effect.forkChild(played(turns(4, 60), answer, chain))
      yield* TestClock.adjust("4 minutes")
      const { asked, outcome } = yield* Fiber.join(playing)
      assert.deepStrictEqual(
        asked.map((request) => request.model),
        ["first", "second"]
      )
      assert.strictEqual(outcome._tag, "Compressed")
      const reason =
        bad instanceof SummarizerError ? bad.reason : typeof bad === "string" ? "EmptySummary" : "TimeoutError"
      assert.deepStrictEqual(failedIn(outcome), [`first: ${reason}`])
    }
  )

  it.effect("openclaw: a summary model that failed is not asked again in the same compaction (ours)", function* () {
    const { asked, outcome } = yield* played(
      turns(30, 200),
      ({ model: name }) => (name === "first" ? overloaded : record),
      chain
    )
    assert.isAbove(asked.length, 3)
    assert.strictEqual(asked.filter(({ model: name }) => name === "first").length, 1)
    assert.deepStrictEqual(failedIn(outcome), ["first: InternalProviderError"])
  })

  it.effect(
    "openclaw: when every summary model fails, nothing changes and each failure is reported (OpenClaw 2026.9)",
    function* () {
      const failures = [limited, notFound, overloaded]
      const { asked, outcome } = yield* played(turns(4, 60), (_, index) => failures[index] ?? "unexpected", chain)
      assert.strictEqual(asked.length, 3)
      assert.deepInclude(outcome, {
        _tag: "FailedSummarizer",
        reason: "InternalProviderError",
        message: "first: slow down; second: no such model; third: 503"
      })
    }
  )

  it.effect(
    "openclaw: a request that is too long is not given to the next summary model (OpenClaw 2026.9)",
    function* () {
      const { asked, outcome } = yield* played(turns(4, 60), () => tooLong, chain)
      assert.strictEqual(asked.length, 1)
      assert.deepInclude(outcome, { _tag: "FailedSummarizer", reason: contextLength, message: "too long" })
    }
  )
})
