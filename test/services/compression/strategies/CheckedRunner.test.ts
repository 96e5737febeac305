import { Deferred, Effect, Fiber, Layer, Logger, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { brokenRule } from "../../../../src/domain/compression/BrokenRule.ts"
import { ContentTruncated, patchOf, type Plan } from "../../../../src/domain/compression/Compression.ts"
import {
  OwnStrategyName,
  strategyNamed,
  StrategyName,
  waitsForGrowth
} from "../../../../src/domain/compression/strategies/Strategies.ts"
import type { Strategy } from "../../../../src/domain/compression/Strategy.ts"
import { call, model, type Part, response, text, user, withOutput } from "../../../../src/domain/content/Content.ts"
import {
  type Draft,
  entries,
  type Entry,
  entryId,
  type Patch,
  view,
  type EntryId,
  viewItem
} from "../../../../src/domain/conversation/Conversation.ts"
import { recall, recallable } from "../../../../src/domain/conversation/Recall.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../../src/services/compression/Compression.ts"
import { applyWith, compressWith } from "../../../../src/services/compression/CompressionWorkflow.ts"
import { checkedRunner } from "../../../../src/services/compression/strategies/CheckedRunner.ts"
import type {
  CompressionResult,
  CompressRequest
} from "../../../../src/services/compression/strategies/CompressRequest.ts"
import type {
  Assembled,
  AssembleRequest,
  StrategyRunner,
  StrategySession
} from "../../../../src/services/compression/strategies/StrategyRunner.ts"
import { OwnStrategies, runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { Summarizer } from "../../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../../src/services/hooks/HookSystem.ts"
import { TokenCounter, TokenCountError } from "../../../../src/services/tokens/TokenCounter.ts"
import { subscribed } from "../../../support/hooks.ts"
import { sizeOf } from "../../../support/runs.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** Strategies of other programs that do what no strategy may do: each is refused with one line, and nothing is lost. */

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n} of a long output`).join("\n")

const messages: ReadonlyArray<Draft> = [
  { content: user(text("Make the build green. Never touch src/legacy.")) },
  ...[1, 2, 3, 4].flatMap((n) => [
    { content: model(call("read_file", { path: `src/f${n}.ts` }, `c${n}`)) },
    { content: user(response("read_file", { output: lines(200) }, `c${n}`)) },
    { content: model(text(`I have read file ${n}. ${"It says a lot. ".repeat(40)}`)) }
  ]),
  { content: user(text("And now run the tests, please.")) }
]
const last = entryId(messages.length)

const strategy: Strategy = {
  name: "mine",
  description: "by a foreign program",
  defaults: { minGain: 0, outputForm: "last-lines" },
  countsByReport: false,
  waitsForGrowth: true,
  trigger: (window) => window / 2,
  overflowAttempts: 1,
  heedsHooks: true,
  hasSnapshotBudget: false
}

const planOf = ({ conversation }: CompressRequest): Plan => ({
  version: conversation.version,
  strategy: "mine",
  rung: 0,
  steps: [],
  before: TokenCount.make(4_000),
  after: TokenCount.make(1)
})

const entry = (content: Entry["content"], id = 99): Entry => ({ id: entryId(id), content, tokens: [], handles: [] })
const summary = entry(user(text("They read four files.")))

const resultOf = (request: CompressRequest, patch: Patch): CompressionResult => {
  const plan = planOf(request)
  return {
    outcome: ContentTruncated.make({
      before: plan.before,
      after: plan.after,
      plan,
      patch,
      degraded: null,
      calls: []
    }),
    dropped: undefined
  }
}

const good: Patch = { drop: { from: entryId(2), to: entryId(7) }, insert: [summary], shorten: [] }

const runnerWith = (parts: Partial<StrategyRunner>): StrategyRunner => ({
  strategy,
  decide: (request) => Effect.succeed({ _tag: "Go", plan: planOf(request) }),
  compress: (request) => Effect.succeed(resultOf(request, good)),
  apply: (request) => Effect.succeed(resultOf(request, good)),
  ...parts
})

/** What a program written without types may return. */
const untyped = <T>(value: unknown): T => (isClaimed<T>(value) ? value : untyped(value))
const isClaimed = <T>(_value: unknown): _value is T => true

const patching =
  (patch: Patch): StrategyRunner["compress"] =>
  (request) =>
    Effect.succeed(resultOf(request, patch))

const shortening = (part: Patch["shorten"][number]["replacement"], sequence: number): StrategyRunner["compress"] =>
  patching({
    insert: [],
    shorten: [{ entry: entryId(sequence), part: 0, replacement: part, tokens: TokenCount.make(1) }]
  })

/** What a strategy does wrong in one compression, and why it is refused. */
const faults: ReadonlyArray<readonly [what: string, compress: StrategyRunner["compress"], why: string]> = [
  ["hangs", () => Effect.never, "it took longer than 3m"],
  [
    "hangs and cannot be interrupted",
    () => Effect.onInterrupt(Effect.never, () => Effect.void),
    "it took longer than 3m"
  ],
  [
    "throws",
    () => {
      throw new Error("no such method\nat line 3")
    },
    "it failed: no such method"
  ],
  ["dies", () => Effect.die("out of luck"), "it failed: out of luck"],
  ["dies of what cannot be printed", () => Effect.die(Object.create(null)), "it failed: it gave no reason"],
  ["fails in a way that its type denies", () => untyped(Effect.fail(new Error("not typed"))), "it failed: not typed"],
  ["interrupts itself", () => Effect.interrupt, "it interrupted itself"],
  ["returns no effect", () => untyped(undefined), "it failed: "],
  ["returns nothing", () => Effect.succeed(untyped(undefined)), "it failed: "],
  [
    "returns an outcome that there is not",
    () => Effect.succeed(untyped({ outcome: { _tag: "Done" } })),
    "it returned no outcome"
  ],
  [
    "names a message that there is not",
    patching({ drop: { from: entryId(2), to: entryId(77) }, insert: [summary], shorten: [] }),
    "it names a message that the window does not show (e77)"
  ],
  [
    "drops from the end to the beginning",
    patching({ drop: { from: entryId(7), to: entryId(2) }, insert: [summary], shorten: [] }),
    "it names a message that the window does not show (e2)"
  ],
  [
    "drops the message that has no answer yet",
    patching({ drop: { from: entryId(5), to: last }, insert: [summary], shorten: [] }),
    `it drops a message that has no answer yet (${last})`
  ],
  [
    "separates a call from its response",
    patching({ drop: { from: entryId(1), to: entryId(2) }, insert: [summary], shorten: [] }),
    "it separates a call from its response (e2)"
  ],
  [
    "changes the user's words",
    shortening(text("Touch src/legacy."), 1),
    "it changes more than tool results and media (e1)"
  ],
  ["changes the model's words", shortening(text("No."), 4), "it changes more than tool results and media (e4)"],
  [
    "answers another call",
    shortening(response("read_file", { output: "ok" }, "c2"), 3),
    "it changes more than tool results and media (e3)"
  ],
  [
    "inserts calls",
    patching({ ...good, insert: [entry(model(call("shell", { command: "rm -rf /" }, "x")))] }),
    "it inserts something other than text (e15)"
  ],
  [
    "inserts words and drops nothing",
    patching({ insert: [summary], shorten: [] }),
    "it inserts something other than text (e15)"
  ],
  [
    "returns something larger",
    patching({ ...good, insert: [entry(user(text(lines(2_000))))] }),
    "its result is no smaller than what it replaces"
  ],
  [
    "returns 10 MB",
    patching({ ...good, insert: [entry(user(text("x".repeat(sizeOf(10_000_000, 100_000)))))] }),
    "its result is no smaller than what it replaces"
  ],
  ["changes nothing", patching({ insert: [], shorten: [] }), "its result is no smaller than what it replaces"]
]

/** The lines that were logged as warnings. */
const warnings: Array<string> = []
const logged = Logger.layer([
  Logger.make(({ logLevel, message }) => {
    if (logLevel === "Warn") warnings.push(String(message))
  })
])

const services = Layer.mergeAll(
  TokenCounter.layerEstimate,
  MemoryTempStore.layer,
  HookSystem.layer,
  Summarizer.layerExtractive,
  logged
)

const forced = Effect.map(
  requestFor(messages, {
    strategy: OwnStrategyName.make("mine"),
    limit: TokenCount.make(4_000),
    threshold: 0.5,
    preserve: 0.3,
    minGain: 0,
    toolBudget: TokenCount.make(50_000),
    outputForm: "last-lines",
    summarizer: "extractive",
    ladder: true,
    overhead: TokenCount.make(0)
  }),
  (request): CompressRequest => ({ ...request, forced: true })
)

/** Runs an effect to its end, whatever time limits it has to wait for. */
const afterLimits = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const running = yield* Effect.forkChild(effect, { startImmediately: true })
    for (let n = 0; n < 8; n += 1) yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(running)
  })

const refusal = (why: string) => `the strategy mine was not used: ${why}`

/** Checks that the default took over, said why in one line, and lost nothing. */
const checkTakenOver = (request: CompressRequest, { dropped, outcome }: CompressionResult, why: string) => {
  if (outcome._tag !== "Compressed") return assert.fail(`the outcome is ${outcome._tag}`)
  assert.strictEqual(outcome.plan.strategy, "palimpsest")
  assert.strictEqual(outcome.degraded?.reason, "StrategyRefused")
  const message = outcome.degraded?.message ?? ""
  assert.isTrue(message.startsWith(refusal(why)), message)
  assert.notInclude(message, "\n")
  assert.isBelow(message.length, 300)
  assert.isUndefined(brokenRule(request.conversation, outcome.patch))
  assert.isDefined(dropped)
  const all = recallable(request.conversation)
  for (const { handles } of entries(request.conversation)) {
    assert.isTrue(handles.every((handle) => recall(all, handle) !== undefined))
  }
  return undefined
}

describe("a compression by a strategy that", () => {
  it.effect.each(faults)("%s is done by the default, which says why", services, function* ([, compress, why]) {
    const request = yield* forced
    const before = view(request.conversation)
    const result = yield* afterLimits(compressWith(runnerWith({ compress }), request))
    checkTakenOver(request, result, why)
    assert.deepStrictEqual(view(request.conversation), before)
  })

  // The same check: a fault of the call and one of the patch.
  it.effect.each(faults.filter(([what]) => what === "hangs" || what === "inserts calls"))(
    "%s when it carries out its plan is done by the default",
    services,
    function* ([, apply, why]) {
      const request = yield* forced
      const result = yield* afterLimits(applyWith(runnerWith({ apply }), request, planOf(request)))
      checkTakenOver(request, result, why)
    }
  )

  it.effect("keeps the rules is used; its counts and handles are made here", services, function* () {
    const request = yield* forced
    const { dropped, outcome } = yield* compressWith(runnerWith({}), request)
    if (outcome._tag !== "ContentTruncated") return assert.fail(outcome._tag)
    assert.strictEqual(outcome.plan.strategy, "mine")
    assert.isNull(outcome.degraded)
    assert.isAbove(outcome.after, 100)
    assert.isBelow(outcome.after, outcome.before)
    assert.deepInclude(outcome.patch.insert[0], { id: entryId(15), author: "summary" })
    assert.isDefined(dropped)
    return undefined
  })

  it.effect("only shortens results is used, too", services, function* () {
    const request = yield* forced
    const original = messages[2]?.content.parts[0] ?? {}
    const { outcome } = yield* compressWith(
      runnerWith({ compress: shortening(withOutput(original, "200 lines"), 3) }),
      request
    )
    assert.strictEqual(patchOf(outcome)?.shorten[0]?.entry, entryId(3))
  })

  it.effect("fails below the threshold of the default is reported, though nothing changes", services, function* () {
    warnings.length = 0
    const request = { ...(yield* forced), forced: false }
    const roomy = { ...request, policy: { ...request.policy, limit: TokenCount.make(100_000) } }
    const { outcome } = yield* compressWith(runnerWith({ compress: () => Effect.die("bad luck") }), roomy)
    assert.deepInclude(outcome, { _tag: "Noop", reason: "below threshold", detail: refusal("it failed: bad luck") })
    assert.deepStrictEqual(warnings, [refusal("it failed: bad luck")])
  })
})

describe("a plan by a strategy that", () => {
  const plans: ReadonlyArray<readonly [what: string, decide: StrategyRunner["decide"], why: string]> = [
    ["hangs", () => Effect.never, "it took longer than 3m"],
    ["dies", () => Effect.die(new Error("no plan")), "it failed: no plan"],
    ["returns nothing", () => Effect.succeed(untyped(undefined)), "it failed: "],
    [
      "plans for another version",
      (request) => Effect.succeed({ _tag: "Go", plan: { ...planOf(request), version: 7_000 } }),
      "its plan is not for this conversation"
    ],
    [
      "plans under another name",
      (request) => Effect.succeed({ _tag: "Go", plan: { ...planOf(request), strategy: "palimpsest" } }),
      "its plan is not for this conversation"
    ]
  ]

  it.effect.each(plans)("%s is made by the default, with a warning", services, function* ([, decide, why]) {
    warnings.length = 0
    const request = yield* forced
    const checked = checkedRunner(runnerWith({ decide }), runners.palimpsest)
    const decision = yield* afterLimits(checked.decide(request))
    if (decision._tag === "Skip") return assert.fail(decision.reason)
    assert.strictEqual(decision.plan.strategy, "palimpsest")
    assert.isTrue(warnings.length === 1 && warnings[0]?.startsWith(refusal(why)), warnings.join())
    // The default's plan is carried out by the default.
    const { outcome } = yield* checked.apply(request, decision.plan)
    assert.strictEqual(outcome._tag, "Compressed")
    return undefined
  })
})

describe("a session of a strategy that", () => {
  type Open = NonNullable<StrategyRunner["open"]>
  const assembling = (assemble: (request: AssembleRequest) => Effect.Effect<Assembled | undefined, TokenCountError>) =>
    (() => Effect.succeed({ assemble })) satisfies Open

  const assembled = (made: Assembled) => assembling(() => Effect.succeed(made))
  const tokenCounts = new TokenCountError({ message: "it cannot count", cause: "?" })

  const sessions: ReadonlyArray<readonly [what: string, open: Open, why: string]> = [
    ["hangs when it is opened", () => Effect.never, "it took longer than 10s"],
    ["dies when it is opened", () => Effect.die("closed"), "it failed: closed"],
    ["returns no session", () => Effect.succeed(untyped(undefined)), ""],
    ["hangs before a request", assembling(() => Effect.never), "it took longer than 10s"],
    ["dies before a request", assembling(() => Effect.die("bad luck")), "it failed: bad luck"],
    ["cannot count", assembling(() => Effect.fail(tokenCounts)), "it failed: it cannot count"],
    [
      "shows other words of the user",
      assembled({ shorten: [{ entry: entryId(1), part: 0, replacement: text("Touch it.") }] }),
      "it changes more than tool results and media (e1)"
    ],
    [
      "shortens what there is not",
      assembled({ shorten: [{ entry: entryId(1), part: 9, replacement: text("?") }] }),
      "it names a message that the window does not show (e1)"
    ],
    [
      "drops a call and keeps its result",
      assembled({ shorten: [], dropThrough: entryId(2) }),
      "it separates a call from its response (e2)"
    ],
    [
      "drops everything",
      assembled({ shorten: [], dropThrough: last }),
      `it drops a message that has no answer yet (${last})`
    ]
  ]

  it.effect.each(sessions)("%s changes nothing, with a warning", services, function* ([, open, why]) {
    warnings.length = 0
    const { conversation } = yield* forced
    const checked = checkedRunner(runnerWith({ open }), runners.palimpsest)
    const session = yield* afterLimits(checked.open?.(conversation) ?? Effect.die("no session"))
    const made = yield* afterLimits(
      session.assemble?.({
        conversation,
        window: 8_000,
        scale: 1,
        at: 0,
        policy: undefined,
        masking: undefined,
        unmaskedTools: []
      }) ?? Effect.succeed(undefined)
    )
    assert.isUndefined(made)
    assert.deepStrictEqual(
      warnings.map((line) => line.startsWith(refusal(why))),
      why === "" ? [] : [true],
      warnings.join()
    )
  })

  const image = { inlineData: { mimeType: "image/png", data: "AAAA" } }
  const showing =
    (entry: EntryId, part: number, replacement: Part): NonNullable<StrategySession["ingest"]> =>
    () =>
      Effect.succeed([{ entry, part, replacement }])
  const other = "it changed something other than media of a message"
  it.effect.each([
    ["hangs", () => Effect.never, "it took longer than 10s"],
    ["dies", () => Effect.die("tired"), "it failed: tired"],
    ["names a message that there is not", showing(entryId(99), 1, image), other],
    ["names a part that there is not", showing(entryId(1), 7, image), other],
    ["changes the user's words", showing(entryId(1), 0, text("Touch it.")), other],
    ["puts words into the place of an image", showing(entryId(1), 1, text("a cat")), other],
    ["makes a call of an image", showing(entryId(1), 1, call("shell", {}, "x")), other]
  ] as const)("%s when a message comes changes nothing, with a warning", services, function* ([, ingest, why]) {
    warnings.length = 0
    const { conversation } = yield* forced
    const checked = checkedRunner(runnerWith({ open: () => Effect.succeed({ ingest }) }), runners.palimpsest)
    const session = yield* checked.open?.(conversation) ?? Effect.die("no session")
    const item = viewItem({ id: entryId(1), content: user(text("Look."), image), tokens: [1, 258], handles: [] })
    assert.deepStrictEqual(yield* afterLimits(session.ingest?.([item]) ?? Effect.succeed(undefined)), [])
    assert.deepStrictEqual(
      warnings.map((line) => line.startsWith(refusal(why))),
      [true],
      warnings.join()
    )
  })

  it.effect.each([
    ["hangs", () => Effect.never, "it took longer than 10s"],
    ["dies", () => Effect.die("tired"), "it failed: tired"]
  ] as const)("%s after a turn ends the turn with a warning", services, function* ([, afterTurn, why]) {
    warnings.length = 0
    const { conversation } = yield* forced
    const checked = checkedRunner(runnerWith({ open: () => Effect.succeed({ afterTurn }) }), runners.palimpsest)
    const session = yield* checked.open?.(conversation) ?? Effect.die("no session")
    yield* afterLimits(session.afterTurn?.(conversation) ?? Effect.void)
    assert.deepStrictEqual(warnings, [refusal(why)])
  })

  it.effect.each([
    ["hangs", Effect.never, "it took longer than 10s"],
    ["dies", Effect.die("stuck"), "it failed: stuck"]
  ] as const)("%s when it is closed lets its conversation close", services, function* ([, closing, why]) {
    warnings.length = 0
    const { conversation } = yield* forced
    const open: Open = () =>
      Effect.as(
        Effect.addFinalizer(() => closing),
        {}
      )
    const checked = checkedRunner(runnerWith({ open }), runners.palimpsest)
    yield* afterLimits(Effect.scoped(checked.open?.(conversation) ?? Effect.void))
    assert.deepStrictEqual(warnings, [refusal(why)])
  })

  it.effect("is interrupted while it opens closes what it had opened", services, function* () {
    const { conversation } = yield* forced
    const opened = yield* Deferred.make<void>()
    const closed = yield* Deferred.make<void>()
    const open: Open = () =>
      Effect.addFinalizer(() => Deferred.succeed(closed, undefined)).pipe(
        Effect.andThen(Deferred.succeed(opened, undefined)),
        Effect.andThen(Effect.never)
      )
    const checked = checkedRunner(runnerWith({ open }), runners.palimpsest)
    const opening: Effect.Effect<unknown, never, Scope.Scope | Layer.Success<typeof services>> =
      checked.open?.(conversation) ?? Effect.void
    const running = yield* Effect.forkChild(Effect.scoped(opening))
    yield* Deferred.await(opened)
    yield* Fiber.interrupt(running)
    yield* Deferred.await(closed)
  })
})

describe("a strategy that heeds hooks", () => {
  it.effect("can be vetoed by one, and another cannot", services, function* () {
    const seen = yield* subscribed(yield* HookSystem, { PreCompress: { decision: "block", reason: "not now" } })
    const request = yield* forced
    const vetoed = yield* compressWith(runnerWith({}), request)
    assert.deepInclude(vetoed.outcome, { reason: "vetoed by a hook", detail: "not now" })
    const deaf = runnerWith({ strategy: { ...strategy, heedsHooks: false } })
    assert.strictEqual((yield* compressWith(deaf, request)).outcome._tag, "ContentTruncated")
    assert.deepStrictEqual(
      seen.map(({ _tag }) => _tag),
      ["PreCompress", "PostCompress", "PreCompress", "PostCompress"]
    )
  })

  it.effect("takes a hook's focus", services, function* () {
    yield* subscribed(yield* HookSystem, { PreCompress: { hookSpecificOutput: { focus: "errors" } } })
    const focuses: Array<string | undefined> = []
    const compress: StrategyRunner["compress"] = (request) => {
      focuses.push(request.policy.focus)
      return Effect.succeed(resultOf(request, good))
    }
    yield* compressWith(runnerWith({ compress }), yield* forced)
    assert.deepStrictEqual(focuses, ["errors"])
  })
})

it.effect("a plan for another version is refused before the strategy runs", services, function* () {
  const request = yield* forced
  const apply = () => Effect.die("it ran")
  const refused = yield* Effect.flip(applyWith(runnerWith({ apply }), request, { ...planOf(request), version: 99 }))
  assert.include(refused.message, "version 99")
})

it.each(["halving", "", "Palimpsest", "toString"])("there is no built-in strategy %j", (name) => {
  assert.isUndefined(strategyNamed(name))
  assert.isFalse(Schema.is(StrategyName)(name))
  // A name from the log of another version.
  assert.isTrue(waitsForGrowth(name))
})

describe("the description of a strategy", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("no window")
      },
      0.5
    ],
    ["is no number", () => Number.NaN, 0.5],
    ["is below 1", () => -5, 1 / 10_000],
    ["is above the window", (window: number) => window * 2, 1],
    ["is fine", (window: number) => window * 0.7, 0.7]
  ] as const)("with a trigger that %s is used within bounds", (_, trigger, share) => {
    const checked = checkedRunner(runnerWith({ strategy: { ...strategy, trigger } }), runners.palimpsest)
    assert.closeTo(checked.strategy.trigger(10_000), 10_000 * share, 1e-6)
  })

  it.each([
    [Infinity, 10],
    [-1, 0],
    [Number.NaN, 0],
    [2, 2]
  ])("with %s attempts gets %s", (given, used) => {
    const own = { ...strategy, overflowAttempts: given }
    assert.strictEqual(checkedRunner(runnerWith({ strategy: own }), runners.palimpsest).strategy.overflowAttempts, used)
  })

  it.effect("cannot take the name of a built-in one", services, function* () {
    const taken = runnerWith({ strategy: { ...strategy, name: "gemini" } })
    const compression = Compression.layer.pipe(Layer.provide(Layer.succeed(OwnStrategies, [taken, runnerWith({})])))
    yield* Effect.gen(function* () {
      const service = yield* Compression
      assert.strictEqual(yield* service.runner("gemini"), runners.gemini)
      assert.strictEqual((yield* service.runner("mine")).strategy.description, strategy.description)
    }).pipe(Effect.provide(compression))
  })
})
