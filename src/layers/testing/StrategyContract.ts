/** The contract suite of compression strategies. */

import { Arbitrary, Deferred, Effect, Fiber, Layer, Record, Schema } from "effect"
import assert from "node:assert/strict"
import { brokenRule } from "../../domain/compression/BrokenRule.ts"
import { adopt, Outcome, patchOf, statusOf, type SummaryCall, tokensOf } from "../../domain/compression/Compression.ts"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import { OwnStrategyName } from "../../domain/compression/strategies/Strategies.ts"
import type { Strategy } from "../../domain/compression/Strategy.ts"
import { text, user } from "../../domain/content/Content.ts"
import {
  compressed,
  type Conversation,
  type Draft,
  entries,
  entryId,
  masked,
  type Patch,
  sum,
  view
} from "../../domain/conversation/Conversation.ts"
import { projecting, requestTokens } from "../../domain/conversation/Projection.ts"
import { droppedEntries, recall, recallable } from "../../domain/conversation/Recall.ts"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { applyWith } from "../../services/compression/CompressionWorkflow.ts"
import type { CompressRequest } from "../../services/compression/strategies/CompressRequest.ts"
import type {
  Assembled,
  AssembleRequest,
  RunnerServices,
  StrategyRunner
} from "../../services/compression/strategies/StrategyRunner.ts"
import { Summarizer, SummarizerError } from "../../services/compression/summary/Summarizer.ts"
import { requestFor } from "../../services/conversation/KnownConversation.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { makeEntry, rangeHandle } from "../../services/session/EntryBuilder.ts"
import type { TempStore } from "../../services/session/TempStore.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import { checkProperty, defineTests, ending, type TestFunctions, type TestSteps } from "./ContractTests.ts"
import { sampleConversations, turns } from "./SampleConversations.ts"

/** A strategy, as the contract suite tests it. */
export interface StrategyVariant {
  readonly runner: StrategyRunner
  /** Where the bytes behind handles are kept, for example `MemoryTempStore.layer`. */
  readonly tempStore: Layer.Layer<TempStore>
  /** Cases of each property. Default: 40. */
  readonly runs?: number
  /** More conversations than the suite's own. */
  readonly conversations?: Arbitrary.Arbitrary<ReadonlyArray<Draft>>
}

/** How the summarizing model answers. */
const modelAnswers = {
  "a summary": "<state_snapshot><overall_goal>Go on with the work.</overall_goal></state_snapshot>",
  "a long summary": `A long summary. ${"It goes on about src/part1.ts and what was decided. ".repeat(400)}`,
  nothing: "  ",
  "a failure": undefined
} as const

const Answer = Schema.Literals(["a summary", "a long summary", "nothing", "a failure"])

const tooManyRequests = new SummarizerError({ reason: "RateLimitError", message: "too much", cause: "429", calls: [] })

const callOf = (purpose: SummaryCall["purpose"], answer: string): SummaryCall => ({
  purpose,
  model: "summarizer",
  messages: 1,
  answer,
  finishReason: "STOP",
  usage: null
})

/** A summarizer whose model gives the same answer to everything. */
const answering = (answer: typeof Answer.Type): Layer.Layer<Summarizer> => {
  const written = modelAnswers[answer]
  return Layer.effect(
    Summarizer,
    Effect.gen(function* () {
      const { summarize: byCode } = yield* Summarizer
      return {
        summarize: (request) =>
          request.by === "extractive"
            ? byCode(request)
            : written === undefined
              ? Effect.fail(tooManyRequests)
              : Effect.succeed({ text: written, calls: [callOf("generate", written)] }),
        ask: ({ purpose }) =>
          written === undefined ? Effect.fail(tooManyRequests) : Effect.succeed(callOf(purpose, written)),
        count: () => Effect.fail(tooManyRequests)
      }
    })
  ).pipe(Layer.provide(Summarizer.layerExtractive))
}

const servicesOver =
  (tempStore: Layer.Layer<TempStore>) =>
  (summarizer: Layer.Layer<Summarizer>): Layer.Layer<RunnerServices | HookSystem> =>
    Layer.mergeAll(TokenCounter.layerEstimate, tempStore, HookSystem.layer, summarizer)

/** The options of the compressions of one case. */
const Options = Schema.Struct({
  limit: Schema.Literals([8_000, 2_000, 40_000, 200_000]),
  // With 0 the user asks that nothing stays, not even an unanswered message.
  preserve: Schema.Literals([0.3, 0.05, 0.6]),
  summarizer: Schema.Literals(["extractive", "model"]),
  answer: Answer,
  ladder: Schema.Boolean,
  forced: Schema.Literals([true, true, true, false])
})
type Options = typeof Options.Type

const policyFor = (
  strategy: Strategy,
  limit: number,
  { answer: _answer, forced: _forced, limit: _limit, ...rest }: Partial<Options>
): Policy => ({
  ...defaultPolicy,
  ...strategy.defaults,
  ...rest,
  strategy: OwnStrategyName.make(strategy.name),
  limit: TokenCount.make(limit),
  threshold: Math.min(1, strategy.trigger(limit) / limit)
})

const sentTokens = (conversation: Conversation) =>
  Effect.map(Work.run(projecting(view(conversation))), (sent) => requestTokens(sent))

/** A conversation as a value that can be compared: what is sent, and what is kept. */
const described = (conversation: Conversation) => ({
  version: conversation.version,
  entries: entries(conversation),
  view: view(conversation).map(({ entry, shortened }) => [entry.id, [...shortened]])
})

const newRequest = (strategy: Strategy, messages: ReadonlyArray<Draft>, options: Options) =>
  Effect.map(requestFor(messages, policyFor(strategy, options.limit, options)), (request): CompressRequest => ({
    ...request,
    forced: options.forced
  }))

/** Checks that a change keeps the rules, and that what it drops comes back by handle. */
const checkPatch = Effect.fnUntraced(function* ({ conversation }: CompressRequest, patch: Patch, after: Conversation) {
  assert.strictEqual(brokenRule(conversation, patch), undefined)
  assert.ok(
    patch.insert.every(({ id }, at) => id === entryId(conversation.next + at)),
    "inserted messages have other ids than the next ones"
  )
  const stored = recallable(after)
  const gone = patch.drop === undefined ? [] : droppedEntries(view(conversation), patch.drop)
  const shortened = patch.shorten.flatMap(({ entry, part }) =>
    view(conversation).flatMap((item) => (item.entry.id === entry ? [item.entry.handles[part]] : []))
  )
  for (const handle of [...gone.flatMap(({ handles }) => handles), ...shortened]) {
    assert.ok(handle !== undefined && recall(stored, handle) !== undefined, `${handle} recalls nothing`)
  }
  return gone
})

/** The share by which a strategy's own count of a request may differ. */
const maxErrorShare = 0.2

/** Checks one compression: it shrinks the request and loses nothing, or says why it changed nothing. */
const checkCompression = Effect.fnUntraced(function* (runner: StrategyRunner, request: CompressRequest) {
  const before = described(request.conversation)
  const { dropped, outcome } = yield* runner.compress(request)
  assert.deepStrictEqual(described(request.conversation), before, "the request was changed")
  assert.ok(Schema.is(Outcome)(outcome), `an unknown outcome: ${JSON.stringify(outcome)}`)
  const patch = patchOf(outcome)
  if ("plan" in outcome && outcome.plan !== undefined) {
    assert.strictEqual(outcome.plan.version, request.conversation.version, "the plan is of another version")
  }
  if (patch === undefined) return assert.strictEqual(dropped, undefined)
  const after = adopt(request.conversation, outcome)
  const gone = yield* checkPatch(request, patch, after)
  if (gone.length > 0) assert.strictEqual(dropped, yield* rangeHandle(gone), "the handle does not recall what left")
  const [tokensBefore, tokensAfter] = [yield* sentTokens(request.conversation), yield* sentTokens(after)]
  // A strategy that uses the provider's counts compares with those; the chat checks the size again.
  assert.ok(
    runner.strategy.countsByReport || tokensAfter < tokensBefore,
    `${statusOf(outcome)} from ${tokensBefore} to ${tokensAfter} tokens`
  )
  const stated = tokensOf(outcome).after - request.policy.overhead
  assert.ok(
    runner.strategy.countsByReport || Math.abs(stated - tokensAfter) <= 16 + tokensAfter * maxErrorShare,
    `it states ${stated} tokens after the compression; there are ${tokensAfter}`
  )
  return undefined
})

/** Applies a strategy's view of a request, as the chat does. Returns undefined when nothing gets smaller. */
const assembledWith = Effect.fnUntraced(function* (request: CompressRequest, made: Assembled) {
  const { conversation, held } = request
  const counter = yield* TokenCounter
  const items = new Map(view(conversation).map((item) => [item.entry.id, item]))
  const shorten: Array<Patch["shorten"][number]> = []
  for (const { entry, part, replacement } of made.shorten) {
    const item = items.get(entry)
    const tokens = item?.shortened.get(part)?.tokens ?? item?.entry.tokens[part] ?? 0
    const now = sum(yield* counter.count([replacement]))
    if (now < tokens) shorten.push({ entry, part, replacement, tokens: TokenCount.make(now) })
  }
  const [first] = view(conversation).filter(({ entry }) => entry.author !== "environment")
  if (made.dropThrough === undefined || first === undefined) {
    return shorten.length === 0 ? undefined : { patch: { insert: [], shorten }, after: masked(conversation, shorten) }
  }
  const drop = { from: first.entry.id, to: made.dropThrough }
  const note = { content: user(text(`${runtimeMark} Older messages left the window.`)), author: "summary" as const }
  const insert = [yield* makeEntry(note, entryId(conversation.next), held)]
  const gone = new Set(droppedEntries(view(conversation), drop).map(({ id }) => id))
  const patch = { drop, insert, shorten: shorten.filter(({ entry }) => !gone.has(entry)) }
  return { patch, after: compressed(conversation, patch) }
})

const assembleRequest = (conversation: Conversation, window: number): AssembleRequest => ({
  conversation,
  window,
  scale: 1,
  at: 1_763_000_000_000,
  masking: { protect: 2_000, least: 500 },
  unmaskedTools: [],
  policy: undefined
})

/** Checks what a strategy does before a request: it only shortens or drops the oldest messages, and a second call changes nothing. */
const checkAssembly = Effect.fnUntraced(function* (runner: StrategyRunner, request: CompressRequest, window: number) {
  if (runner.open === undefined) return
  const before = described(request.conversation)
  const { afterTurn, assemble } = yield* runner.open(request.conversation)
  if (assemble !== undefined) {
    const made = yield* assemble(assembleRequest(request.conversation, window))
    assert.deepStrictEqual(described(request.conversation), before, "the conversation was changed")
    const done = made === undefined ? undefined : yield* assembledWith(request, made)
    if (done !== undefined) {
      yield* checkPatch(request, done.patch, done.after)
      const again = yield* assemble(assembleRequest(done.after, window))
      const more =
        again === undefined ? undefined : yield* assembledWith({ ...request, conversation: done.after }, again)
      const changed = more?.patch.shorten.map(({ entry, tokens }) => `${entry} to ${tokens} tokens`).join(", ")
      assert.ok(more === undefined, `asked again at the same time, it changes more: ${changed ?? "it drops messages"}`)
    }
  }
  if (afterTurn !== undefined) yield* afterTurn(request.conversation)
})

/** A window that the conversation of `turns` fits, and whose trigger it does not reach by itself. */
const roomyWindow = 200_000

/** Makes a request whose size is this many tokens away from the trigger. */
const requestAround = (strategy: Strategy, messages: ReadonlyArray<Draft>, distance: number) =>
  Effect.gen(function* () {
    const policy = policyFor(strategy, roomyWindow, {})
    const request = yield* requestFor(messages, policy)
    const tokens = Math.ceil(strategy.trigger(roomyWindow)) + distance
    const overhead = TokenCount.make(tokens - (yield* sentTokens(request.conversation)))
    return { ...request, policy: { ...policy, overhead, promptTokens: TokenCount.make(tokens) } }
  })

/** Rules that hold for every request. */
const laws: Readonly<
  Record<
    string,
    (runner: StrategyRunner, request: CompressRequest, options: Options) => TestSteps<RunnerServices | HookSystem>
  >
> = {
  *"decides the same for the same request, and changes nothing"(runner, request) {
    const before = described(request.conversation)
    const decision = yield* runner.decide(request)
    assert.deepStrictEqual(yield* runner.decide(request), decision)
    assert.deepStrictEqual(described(request.conversation), before)
    if (decision._tag === "Skip") return
    assert.strictEqual(decision.plan.strategy, runner.strategy.name)
    assert.strictEqual(decision.plan.version, request.conversation.version)
  },
  *"compresses to a smaller result that breaks no rule, or returns a reason"(runner, request) {
    yield* checkCompression(runner, request)
  },
  *"compresses what it has compressed, under the same rules"(runner, request) {
    const { outcome } = yield* runner.compress(request)
    const conversation = adopt(request.conversation, outcome)
    yield* checkCompression(runner, { ...request, conversation, forced: true })
  },
  *"applies a plan like a compression, and refuses a plan of another version"(runner, request) {
    const plain = { ...request, policy: { ...request.policy, ladder: false } }
    const decision = yield* runner.decide(plain)
    if (decision._tag === "Skip") {
      const { outcome } = yield* runner.compress(plain)
      return assert.strictEqual(outcome._tag === "Noop" ? outcome.reason : outcome._tag, decision.reason)
    }
    const { plan } = decision
    const [applied, direct] = [yield* runner.apply(plain, plan), yield* runner.compress(plain)]
    assert.deepStrictEqual(patchOf(applied.outcome), patchOf(direct.outcome))
    assert.deepStrictEqual([statusOf(applied.outcome), applied.dropped], [statusOf(direct.outcome), direct.dropped])
    const error = yield* Effect.flip(applyWith(runner, plain, { ...plan, version: plan.version + 1 }))
    return assert.strictEqual(error._tag, "PlanRefused")
  },
  *"shortens a request before it is sent, and only once"(runner, request, { limit }) {
    yield* Effect.scoped(checkAssembly(runner, request, limit))
  }
}

/** Rules that one request shows. */
const examples: Readonly<Record<string, (runner: StrategyRunner) => TestSteps<RunnerServices | HookSystem>>> = {
  // oxlint-disable-next-line require-yield
  *"describes itself within bounds"(runner) {
    assert.match(runner.strategy.name, /^[a-z][a-z0-9-]*$/)
    for (const window of [1, 1_000, 32_768, 1_048_576]) {
      const trigger = runner.strategy.trigger(window)
      assert.ok(trigger > 0 && trigger <= window, `the trigger of ${window} tokens is ${trigger}`)
    }
    assert.ok(Number.isInteger(runner.strategy.overflowAttempts) && runner.strategy.overflowAttempts >= 0)
  },
  *"does nothing below its trigger, and compresses at it"(runner) {
    const messages = turns(120)
    const below = yield* runner.decide(yield* requestAround(runner.strategy, messages, -1))
    assert.deepStrictEqual([below._tag, below._tag === "Skip" && below.reason], ["Skip", "below threshold"])
    const { outcome } = yield* runner.compress(yield* requestAround(runner.strategy, messages, -1))
    assert.strictEqual(outcome._tag, "Noop")
    const at = yield* runner.decide(yield* requestAround(runner.strategy, messages, 0))
    assert.strictEqual(at._tag, "Go", JSON.stringify(at))
  },
  *"does nothing for an empty conversation"(runner) {
    const request = yield* requestFor([], policyFor(runner.strategy, 8_000, {}))
    assert.strictEqual((yield* runner.decide({ ...request, forced: true }))._tag, "Skip")
    yield* checkCompression(runner, { ...request, forced: true })
  }
}

const endsItsCalls = (runner: StrategyRunner, servicesWith: ReturnType<typeof servicesOver>) =>
  Effect.gen(function* () {
    const isAsked = yield* Deferred.make<void>()
    let open = 0
    const hanging = Effect.acquireUseRelease(
      Effect.sync(() => void (open += 1)),
      () => Effect.andThen(Deferred.succeed(isAsked, undefined), Effect.never),
      () => Effect.sync(() => void (open -= 1))
    )
    const summarizer = Layer.succeed(Summarizer, {
      summarize: () => hanging,
      ask: () => hanging,
      count: () => hanging
    })
    yield* Effect.gen(function* () {
      const policy = policyFor(runner.strategy, 40_000, { summarizer: "model", ladder: false })
      const request = yield* requestFor(turns(120), policy)
      const running = yield* Effect.forkChild(runner.compress({ ...request, forced: true }))
      // A strategy that calls no model ends by itself.
      yield* Effect.raceFirst(Deferred.await(isAsked), Fiber.await(running))
      yield* Fiber.interrupt(running)
      assert.strictEqual(open, 0, "a call continues after the interruption")
    }).pipe(Effect.provide(servicesWith(summarizer)))
  })

/**
 * Defines the tests that every strategy passes.
 *
 * *When to use*: to test a strategy of your own. See `TestFunctions` for an example. The suite tests the runner itself, without
 * the checks that the workflow adds for strategies that a program brings.
 *
 * @example
 * import { describe, it } from "vitest"
 *
 * strategyContract({ describe, it }, { runner: myStrategy, tempStore: MemoryTempStore.layer })
 */
export const strategyContract = (
  functions: TestFunctions,
  { conversations, runner: given, runs = 40, tempStore }: StrategyVariant
) => {
  const runner: StrategyRunner = {
    ...given,
    compress: (request) => ending(given, given.compress(request)),
    apply: (request, plan) => ending(given, given.apply(request, plan))
  }
  const { strategy } = runner
  const servicesWith = servicesOver(tempStore)
  const allSamples = [sampleConversations, ...(conversations === undefined ? [] : [conversations])]
  /** Checks a law for generated conversations, each with new services. */
  const holds = (law: (typeof laws)[string], name: string) =>
    function* () {
      for (const messages of allSamples) {
        const cases = Arbitrary.all({ messages, options: Arbitrary.schema(Options) })
        yield* checkProperty(
          cases,
          runs,
          ({ messages, options }) =>
            newRequest(strategy, messages, options).pipe(
              Effect.flatMap((request) => Effect.gen(() => law(runner, request, options))),
              Effect.provide(Layer.fresh(servicesWith(answering(options.answer))))
            ),
          name
        )
      }
    }
  defineTests(functions, `the strategy ${strategy.name}`, {
    ...Record.map(
      examples,
      (example) =>
        function* () {
          yield* Effect.provide(
            Effect.gen(() => example(runner)),
            servicesWith(Summarizer.layerExtractive)
          )
        }
    ),
    ...Record.map(laws, holds),
    *"ends its calls when it is interrupted"() {
      yield* endsItsCalls(runner, servicesWith)
    }
  })
}
