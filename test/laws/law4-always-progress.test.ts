import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Layer } from "effect"
import type { Outcome } from "../../src/domain/compression/Compression.ts"
import { outputText, type Part, text, user } from "../../src/domain/content/Content.ts"
import { type Conversation, itemParts, view } from "../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../src/domain/conversation/Projection.ts"
import type { Session } from "../../src/domain/session/Session.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { partTokens, TokenCount } from "../../src/domain/tokens/Tokens.ts"
import { Summarizer } from "../../src/services/compression/summary/Summarizer.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import {
  type Beat,
  described,
  draftsOf,
  type Law,
  lawOfPlayed,
  notices,
  play,
  policyOf,
  property,
  type Script,
  scripts,
  thousand,
  worldOf
} from "../support/generate.ts"

/** Law 4: a compression shrinks the request by the stated minimum or says why not, and it never loops. */

const estimate = (parts: ReadonlyArray<Part>): number =>
  parts.reduce((tokens, part) => tokens + Work.runSync(partTokens(part, outputText(part))), 0)

/** Tokens of the view, counted anew. */
const recount = (conversation: Conversation): number =>
  view(conversation).reduce(
    (tokens, item) => (item.entry.author === "environment" ? tokens : tokens + estimate(itemParts(item))),
    0
  )

/** Tokens of the request, counted anew. */
const sentTokens = (conversation: Conversation): number => {
  const environment = new Set(
    view(conversation).flatMap(({ entry }) => (entry.author === "environment" ? [entry.id] : []))
  )
  return projectMessages(conversation).reduce(
    (tokens, { content, entry }) => (environment.has(entry) ? tokens : tokens + estimate(content.parts)),
    0
  )
}

const unremembered = (session: Session): string => described({ ...session, memory: { failed: false, waitUntil: 0 } })

const shrank = (outcome: Outcome): outcome is Extract<Outcome, { _tag: "Compressed" | "ContentTruncated" }> =>
  outcome._tag === "Compressed" || outcome._tag === "ContentTruncated"

/** Whether a failure states its reason, and the reason is true. */
const saysWhy = (outcome: Outcome): boolean => {
  switch (outcome._tag) {
    case "FailedInflatedTokenCount":
      return outcome.reason === (outcome.after >= outcome.before ? "inflated" : "below minimum gain")
    case "FailedSummarizer":
      return outcome.reason !== "" && outcome.message !== ""
    case "FailedTokenCountError":
      return outcome.message !== ""
    default:
      return true
  }
}

/** What a compression reports is true, and one that reports no change changed nothing. */
const claims = (script: Script, outcome: Outcome, before: Session, after: Session): string | undefined => {
  const { minGain, overhead } = policyOf(script)
  if (!shrank(outcome)) {
    if (unremembered(before) !== unremembered(after)) return `${outcome._tag} changed the conversation`
    if (outcome._tag === "Noop" && described(before) !== described(after)) return "Noop changed what is remembered"
    return saysWhy(outcome) ? undefined : `${outcome._tag} does not say why: ${JSON.stringify(outcome).slice(0, 200)}`
  }
  const counts = [recount, sentTokens].map((count) => [
    overhead + count(before.conversation),
    overhead + count(after.conversation)
  ])
  // The view or the request: either, but the same for both counts.
  if (!counts.some(([was, is]) => outcome.before === was && outcome.after === is)) {
    return `counted ${outcome.before} and ${outcome.after} for what is ${counts.map(([was, is]) => `${was} and ${is}`).join(" or ")}`
  }
  return outcome.after <= outcome.before * (1 - minGain)
    ? undefined
    : `from ${outcome.before} to ${outcome.after} is less than the minimum gain`
}

const progress: Law = lawOfPlayed(
  Effect.fnUntraced(function* ({ chat, moments }, script) {
    for (const { after, before, outcome } of moments) {
      const problem = outcome === undefined ? undefined : claims(script, outcome, before, after)
      if (problem !== undefined) return problem
    }
    // Two more compressions: each ends, and none enlarges the conversation.
    for (let again = 0; again < 2; again += 1) {
      const before = yield* chat.session
      const outcome = yield* Effect.orDie(chat.compress({ policy: policyOf(script), forced: true }))
      const after = yield* chat.session
      if (recount(after.conversation) > recount(before.conversation)) return "compressing again made it larger"
      const problem = claims(script, outcome, before, after)
      if (problem !== undefined) return `again: ${problem}`
    }
    return undefined
  })
)

/** The request is not larger after a compression: the view is not all that counts. */
const sendsLess: Law = lawOfPlayed(
  Effect.fnUntraced(function* ({ moments }) {
    for (const { after, before, outcome } of moments) {
      if (outcome === undefined || !shrank(outcome)) continue
      const was = sentTokens(before.conversation)
      const is = sentTokens(after.conversation)
      if (is >= was) return `${outcome.before} to ${outcome.after} in the view, but ${was} to ${is} in the request`
    }
    return undefined
  })
)

/** Twenty compressions with a few messages before each stay within the window. */
const staysBounded: Law = lawOfPlayed(
  Effect.fnUntraced(function* ({ chat }, script) {
    const policy = { ...policyOf(script), ladder: true }
    const limit = TokenCount.make(6_000)
    const beats: ReadonlyArray<Beat> = [
      { kind: "asks", saying: { words: "constraint", size: "once" } },
      { kind: "exchange", saying: { words: "plain", size: "page" } },
      { kind: "writes a file", saying: { words: "emoji", size: "once" } },
      { kind: "answers", saying: { words: "plain", size: "paragraph" } }
    ]
    for (let round = 1; round <= 20; round += 1) {
      yield* Effect.orDie(chat.append(draftsOf(beats, round * 100)))
      yield* Effect.orDie(chat.compress({ policy: { ...policy, limit }, forced: true }))
      const tokens = policy.overhead + recount(yield* chat.conversation)
      if (tokens > limit) return `${tokens} tokens after ${round} compressions`
    }
    return undefined
  })
)

/** The extractive summarizer, with `change` applied to each summary. */
const summarizing = (change: (text: string) => string) =>
  Layer.effect(
    Summarizer,
    Effect.map(Summarizer, (real) => ({
      answers: () => Effect.die("unexpected call"),
      count: () => Effect.die("unexpected call"),
      summarize: (request) =>
        Effect.map(real.summarize(request), (summary) => ({ ...summary, text: change(summary.text) }))
    }))
  ).pipe(Layer.provide(Summarizer.layerExtractive))

describe("law 4: always progress", () => {
  it.effect.prop(
    "a compression gains what it reports, or changes nothing and gives the reason",
    [scripts],
    ([script]) => property(progress, worldOf())(script),
    { arbitrary: thousand("law 4") }
  )

  it.effect.prop("the request gets smaller, too", [scripts], ([script]) => property(sendsLess, worldOf())(script), {
    arbitrary: thousand("law 4, sent", 500)
  })

  it.effect.prop(
    "twenty compressions in a row stay within the window",
    [scripts],
    ([script]) => property(staysBounded, worldOf())(script),
    { arbitrary: thousand("law 4, twenty", 50) }
  )

  it.effect.prop(
    "holds for a summarizer that writes more than its input, or nothing",
    [scripts],
    ([script]) =>
      Effect.andThen(
        property(
          progress,
          worldOf({ summarizer: summarizing((text) => text + "and so on and so forth ".repeat(2_000)) })
        )(script),
        property(progress, worldOf({ summarizer: summarizing(() => " ") }))(script)
      ),
    { arbitrary: thousand("law 4, bad summarizers", 100) }
  )

  it.effect("the generated cases cover every outcome", () =>
    Effect.gen(function* () {
      const ends = new Map<string, number>()
      for (const script of yield* Arbitrary.sampleEffect(scripts, { count: 200, size: 24, seed: "reach" })) {
        const world = worldOf()
        const { moments } = yield* play(world, script).pipe(Effect.scoped, Effect.provide(Layer.fresh(world.services)))
        for (const { action, outcome } of moments) {
          const end = outcome?._tag ?? action
          ends.set(end, (ends.get(end) ?? 0) + 1)
        }
      }
      for (const end of ["ContentTruncated", "FailedInflatedTokenCount", "Noop", "append", "undo", "redo", "reopen"]) {
        assert.isAbove(ends.get(end) ?? 0, 0, end)
      }
      assert.isAbove(ends.get("Compressed") ?? 0, 100)
    })
  )

  describe("the checks detect", () => {
    it.effect("a counter that counts new messages lower than old ones", () =>
      Effect.gen(function* () {
        const counter = Layer.succeed(TokenCounter, {
          count: (parts) =>
            Effect.succeed(
              parts.map((part) => Math.ceil(estimate([part]) / (part.text?.startsWith(runtimeMark) === true ? 2 : 1)))
            )
        })
        assert.isTrue(yield* notices(progress, worldOf({ counter })))
      })
    )

    it.effect("a compression that accepts any gain", () =>
      Effect.gen(function* () {
        const world = worldOf({
          compression: (real) => ({
            ...real,
            compress: (request) => real.compress({ ...request, policy: { ...request.policy, minGain: 0 } })
          })
        })
        assert.isTrue(yield* notices(progress, world))
      })
    )

    it.effect("a compression that fails and adds a message", () =>
      Effect.gen(function* () {
        const world = worldOf({
          chat: (chat) => ({
            ...chat,
            compress: (options) =>
              Effect.tap(chat.compress(options), (outcome) =>
                shrank(outcome) ? Effect.void : Effect.orDie(chat.append([{ content: user(text("It failed.")) }]))
              )
          })
        })
        assert.isTrue(yield* notices(progress, world))
      })
    )

    it.effect("a compression that grows the window", () =>
      Effect.gen(function* () {
        const world = worldOf({
          chat: (chat) => ({
            ...chat,
            compress: (options) =>
              Effect.tap(chat.compress(options), () =>
                Effect.orDie(chat.append([{ content: user(text("and so on ".repeat(4_000))) }]))
              )
          })
        })
        assert.isTrue(yield* notices(staysBounded, world))
      })
    )
  })
})
