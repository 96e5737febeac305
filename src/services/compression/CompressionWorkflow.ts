/** The compression workflow over all strategies, loaded when the layer of `Compression` is built. */

import { Context, Effect } from "effect"
import * as Domain from "../../domain/compression/Compression.ts"
import { InvalidOption } from "../../domain/compression/InvalidOption.ts"
import { type Conversation, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { annotateConversation, SpanConversation } from "../model/ModelSpans.ts"
import { TempStore } from "../session/TempStore.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { firePreCompress, postCompress, triggerOf } from "./PreCompress.ts"
import { checkedRunner } from "./strategies/CheckedRunner.ts"
import { noop } from "./strategies/CompressionResults.ts"
import { type CompressionResult, type CompressRequest, PlanRefused } from "./strategies/CompressRequest.ts"
import { ImageReducer } from "./strategies/ImageReducer.ts"
import type { RunnerServices, StrategyRunner } from "./strategies/StrategyRunner.ts"
import { OwnStrategies, runners } from "./strategies/StrategyRunners.ts"
import { bounded, Summarizer } from "./summary/Summarizer.ts"

/** Finds the runner of a strategy. Fails when there is none, so that no program gets another strategy under that name. */
const finding = (all: ReadonlyArray<StrategyRunner>) => (name: string) => {
  const runner = all.find(({ strategy }) => strategy.name === name)
  const names = all.map(({ strategy }) => strategy.name)
  return runner === undefined
    ? Effect.fail(new InvalidOption({ message: `no strategy is called ${name}; expected ${names.join(" or ")}` }))
    : Effect.succeed(runner)
}

/** Where the hooks of a compression run. */
const placeOf = ({ cwd }: CompressRequest) => Effect.map(SpanConversation, (session) => ({ cwd, session }))

/** Adds the decision of hooks to the request. Hooks are asked once, and only count for a strategy that heeds them. */
const withHookDecision = Effect.fnUntraced(function* (runner: StrategyRunner, request: CompressRequest) {
  const hooks = yield* HookSystem
  const { policy } = request
  const place = yield* placeOf(request)
  const hookDecision =
    request.hookDecision ??
    (yield* firePreCompress({ has: hooks.has, fire: (event) => hooks.fire(event, place) }, request))
  const focus = hookDecision.specific["focus"]
  const isHeeded = runner.strategy.heedsHooks && policy.focus === undefined
  return isHeeded && typeof focus === "string" && focus.trim() !== ""
    ? { ...request, hookDecision, policy: { ...policy, focus } }
    : { ...request, hookDecision }
})

/** Fires PostCompress however the work ends, which fires PreCompress itself. A chat fires both. */
const withPostCompress = <E, R>(request: CompressRequest, work: Effect.Effect<CompressionResult, E, R>) =>
  request.hookDecision !== undefined || view(request.conversation).length === 0
    ? work
    : Effect.gen(function* () {
        const hooks = yield* HookSystem
        const place = yield* placeOf(request)
        const ended = (outcome?: Domain.Outcome) => postCompress(triggerOf(request), outcome, request.promptId)
        return yield* work.pipe(
          Effect.tap(({ outcome }) => hooks.fire(ended(outcome), place)),
          Effect.tapError(() => hooks.fire(ended(), place)),
          Effect.onInterrupt(() => hooks.fireAside(ended(), place))
        )
      })

/** Returns why hooks veto this compression, when they may. */
const vetoOf = ({ strategy }: StrategyRunner, { hookDecision, mustFit = false }: CompressRequest): string | undefined =>
  mustFit || !strategy.heedsHooks ? undefined : (hookDecision?.stopped ?? hookDecision?.blocked)

/** A runner from another program is checked. */
const trusted = (runner: StrategyRunner): StrategyRunner =>
  Object.values(runners).includes(runner) ? runner : checkedRunner(runner, runners.palimpsest)

/**
 * Compresses with this strategy, whatever the policy names. `Compression.compress` takes the runner from the registry; a
 * program with its own strategy calls this function with its runner.
 *
 * **Example** (Compressing by a strategy of your own)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Compression, Content, Palimpsest } from "palimpsest"
 *
 * const lastTen = Compression.ownRunner({
 *   name: Compression.OwnStrategyName.make("last-ten"),
 *   description: "Keeps ten messages",
 *   cut: (items) => items.length - 10,
 *   write: (gone) => Effect.succeed(`${gone.length} earlier messages are left out.`)
 * })
 * const drafts = Array.from({ length: 40 }, (_, n) => ({
 *   content: (n % 2 === 0 ? Content.user : Content.model)(
 *     Content.text(`Message ${n}. ${"Of oak. ".repeat(60)}`)
 *   )
 * }))
 * const program = Effect.gen(function* () {
 *   const request = yield* Compression.requestFor(drafts)
 *   const { outcome } = yield* Compression.compressWith(lastTen, { ...request, forced: true })
 *   return outcome._tag
 * })
 * console.log(await Effect.runPromise(Effect.provide(program, Palimpsest.layer()))) // => Compressed
 * ```
 */
export const compressWith = Effect.fn("Compression.compress")(function* (
  strategyRunner: StrategyRunner,
  original: CompressRequest
): Effect.fn.Return<CompressionResult, never, HookSystem | RunnerServices> {
  const runner = trusted(strategyRunner)
  const { conversation, forced } = original
  yield* Effect.annotateCurrentSpan({ tokens: viewTokens(conversation), forced })
  return yield* withPostCompress(original, compressBy(runner, original)).pipe(
    Effect.updateService(Summarizer, bounded),
    Effect.tap(annotateResult(runner))
  )
})

/** Says in the span what came of a compression: names and numbers, no text. */
const annotateResult =
  ({ strategy }: StrategyRunner) =>
  ({ outcome }: CompressionResult) =>
    Effect.andThen(
      annotateConversation,
      Effect.annotateCurrentSpan({
        "gen_ai.operation.name": "compress",
        outcome: Domain.statusOf(outcome),
        strategy: strategy.name,
        ...Domain.tokensOf(outcome)
      })
    )

const compressBy = Effect.fnUntraced(function* (runner: StrategyRunner, original: CompressRequest) {
  if (view(original.conversation).length === 0) return noop("empty", 0)
  const request = yield* withHookDecision(runner, original)
  const veto = vetoOf(runner, request)
  if (veto === undefined) return yield* runner.compress(request)
  // When there was nothing to do, the outcome reports that and not the veto.
  const decision = yield* runner.decide(request)
  return decision._tag === "Skip"
    ? noop(decision.reason, decision.before)
    : noop("vetoed by a hook", decision.plan.before, veto)
})

/** Carries out an existing plan of this strategy. */
export const applyWith = Effect.fn("Compression.apply")(function* (
  strategyRunner: StrategyRunner,
  original: CompressRequest,
  plan: Domain.Plan
): Effect.fn.Return<CompressionResult, PlanRefused, HookSystem | RunnerServices> {
  const runner = trusted(strategyRunner)
  const { version } = original.conversation
  if (plan.version !== version) return yield* new PlanRefused({ planned: plan.version, current: version })
  return yield* withPostCompress(original, applyBy(runner, original, plan)).pipe(
    Effect.updateService(Summarizer, bounded),
    Effect.tap(annotateResult(runner))
  )
})

const applyBy = Effect.fnUntraced(function* (runner: StrategyRunner, original: CompressRequest, plan: Domain.Plan) {
  // Only a user's request leads to carrying out a plan.
  const { forced } = original
  const request = { ...(yield* withHookDecision(runner, { ...original, forced: true })), forced }
  const veto = vetoOf(runner, request)
  return veto === undefined ? yield* runner.apply(request, plan) : noop("vetoed by a hook", plan.before, veto)
})

/** Makes the methods of `Compression`. */
export const make = Effect.gen(function* () {
  const context = Context.mergeAll(
    Context.make(HookSystem, yield* HookSystem),
    Context.make(Summarizer, yield* Summarizer),
    Context.make(TokenCounter, yield* TokenCounter),
    Context.make(TempStore, yield* TempStore),
    Context.make(ImageReducer, yield* ImageReducer)
  )
  const provide = Effect.provideContext(context)
  const find = finding([...Object.values(runners), ...(yield* OwnStrategies).map(trusted)])
  const runner = (name: string) => Effect.orDie(find(name))
  return {
    runner: find,
    open: (name: string, conversation: Conversation) =>
      Effect.flatMap(runner(name), ({ open }) =>
        open === undefined ? Effect.succeed({}) : provide(open(conversation))
      ),
    plan: (request: CompressRequest) =>
      Effect.flatMap(runner(request.policy.strategy), ({ decide }) => decide(request)),
    compress: (request: CompressRequest) =>
      provide(Effect.flatMap(runner(request.policy.strategy), (found) => compressWith(found, request))),
    apply: (request: CompressRequest, plan: Domain.Plan) =>
      provide(Effect.flatMap(runner(plan.strategy), (found) => applyWith(found, request, plan)))
  }
})
