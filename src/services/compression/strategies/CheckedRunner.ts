/**
 * Checks a strategy from another program, so that the guarantees of compression hold whatever it returns
 * (docs/laws.md). Ids, token counts and handles are computed here. A result that breaks a rule is rejected with the
 * strategy's name; the default strategy then takes over, and the outcome says so.
 */

import { Cause, Duration, Effect, Fiber, Result, Schema, Scope } from "effect"
import { brokenRule } from "../../../domain/compression/BrokenRule.ts"
import {
  adopt,
  Compressed,
  ContentTruncated,
  type Decision,
  Noop,
  Outcome,
  patchOf,
  Plan
} from "../../../domain/compression/Compression.ts"
import { OwnStrategyName } from "../../../domain/compression/strategies/Strategies.ts"
import type { Strategy } from "../../../domain/compression/Strategy.ts"
import { isMedia, type Part } from "../../../domain/content/Content.ts"
import {
  type Conversation,
  itemParts,
  type Patch,
  view,
  type ViewItem
} from "../../../domain/conversation/Conversation.ts"
import { indexedView } from "../../../domain/conversation/IndexedView.ts"
import { droppedEntries } from "../../../domain/conversation/Recall.ts"
import { runtimeMark } from "../../../domain/text/RuntimeMark.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { rangeHandle } from "../../session/EntryBuilder.ts"
import type { TempStore } from "../../session/TempStore.ts"
import { type TokenCountError, TokenCounter } from "../../tokens/TokenCounter.ts"
import { summaryEntries } from "./CompressionResults.ts"
import { type CompressionResult, type CompressRequest, PlanRefused } from "./CompressRequest.ts"
import type { Assembled, RunnerServices, ShownPart, StrategyRunner, StrategySession } from "./StrategyRunner.ts"

/** Maximum duration of one compression by a strategy (OpenClaw 2026.9: 180 s for a context engine). */
const maxCompressTime: Duration.Duration = Duration.minutes(3)
/** Maximum duration of a strategy's work before and after a request, which waits for it. */
const maxAssembleTime: Duration.Duration = Duration.seconds(10)
/** Maximum number of attempts to shrink a request that the model rejects as too long. */
const maxOverflowAttempts = 10

/** A strategy was not used, and why. */
export class StrategyRefused extends Schema.TaggedError<StrategyRefused>()("StrategyRefused", {
  strategy: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `the strategy ${this.strategy} was not used: ${this.why}`
  }
}

const firstLine = (text: string): string => (text.split("\n")[0] ?? "").slice(0, 200)

/** A strategy may throw any value, including one that cannot be printed. */
const reasonOf = (failure: unknown): string =>
  Result.getOrElse(
    Result.try(() => firstLine(failure instanceof Error && failure.message !== "" ? failure.message : String(failure))),
    () => "it gave no reason"
  )

/** Runs an effect and turns every failure, defect or interruption of it into a refusal of the strategy. */
const refusing = <A, R>(strategy: string, effect: () => Effect.Effect<A, unknown, R>) =>
  Effect.suspend(effect).pipe(
    Effect.catchCause((cause) => {
      const failure = Cause.squash(cause)
      if (failure instanceof StrategyRefused) return Effect.fail(failure)
      const why = Cause.hasInterruptsOnly(cause) ? "it interrupted itself" : `it failed: ${reasonOf(failure)}`
      return Effect.andThen(
        Effect.logDebug("a strategy failed", cause),
        Effect.fail(new StrategyRefused({ strategy, why }))
      )
    })
  )

/** Runs an effect of a strategy with a time limit, and then checks its result. */
const checking = <A, B, R, R2>(
  strategy: string,
  limit: Duration.Duration,
  effect: () => Effect.Effect<A, unknown, R>,
  check: (made: A) => Effect.Effect<B, unknown, R2>
) =>
  refusing(strategy, () =>
    Effect.suspend(effect).pipe(
      Effect.timeoutOrElse({
        duration: limit,
        orElse: () =>
          Effect.fail(new StrategyRefused({ strategy, why: `it took longer than ${Duration.format(limit)}` }))
      }),
      Effect.flatMap(check)
    )
  )

/** Rebuilds the patch of a strategy with correct ids, token counts and handles. */
const remade = Effect.fnUntraced(function* (
  request: Pick<CompressRequest, "conversation" | "held">,
  { drop, insert, shorten }: Patch
) {
  const counter = yield* TokenCounter
  const entries = yield* summaryEntries(
    request,
    insert.map(({ content }) => content)
  )
  const counted = yield* Effect.forEach(shorten, (one) =>
    Effect.map(counter.count([one.replacement]), ([tokens = 0]) => ({ ...one, tokens: TokenCount.make(tokens) }))
  )
  return { insert: entries, shorten: counted, ...(drop === undefined ? {} : { drop }) }
})

const sizeOf = (conversation: Conversation) =>
  Effect.map(Work.run(indexedView(conversation.view)), ({ requestTokens }) => requestTokens)

/** Returns the result with a patch that keeps the rules. Fails with the rule that it breaks. */
const checkedResult = Effect.fnUntraced(function* (
  strategy: string,
  request: CompressRequest,
  result: CompressionResult
) {
  const { outcome } = result
  if (!isOutcome(outcome)) return yield* new StrategyRefused({ strategy, why: "it returned no outcome" })
  const proposed = patchOf(outcome)
  if (proposed === undefined || (outcome._tag !== "Compressed" && outcome._tag !== "ContentTruncated")) return result
  const refuse = (why: string) => new StrategyRefused({ strategy, why })
  const broken = brokenRule(request.conversation, proposed)
  if (broken !== undefined) return yield* refuse(broken)
  const patch = yield* remade(request, proposed)
  const before = yield* sizeOf(request.conversation)
  const after = yield* sizeOf(adopt(request.conversation, { ...outcome, patch }))
  if (after >= before) return yield* refuse("its result is no smaller than what it replaces")
  const counts = { before: total(request, before), after: total(request, after), patch }
  const dropped =
    patch.drop === undefined ? undefined : yield* rangeHandle(droppedEntries(view(request.conversation), patch.drop))
  return {
    outcome:
      outcome._tag === "Compressed"
        ? Compressed.make({ ...outcome, ...counts })
        : ContentTruncated.make({ ...outcome, ...counts }),
    dropped
  }
})

const isOutcome = Schema.is(Outcome)

const total = ({ policy }: CompressRequest, tokens: number): TokenCount =>
  TokenCount.make(Math.max(0, Math.round(policy.overhead + tokens)))

/** Adds to an outcome of the default strategy why it took over. */
const tookOver = (result: CompressionResult, { message }: StrategyRefused): CompressionResult => {
  const degraded = { reason: "StrategyRefused", message }
  return {
    ...result,
    outcome: Outcome.matchOrElse(
      result.outcome,
      {
        Compressed: (outcome): Outcome => Compressed.make({ ...outcome, degraded }),
        ContentTruncated: (outcome) => ContentTruncated.make({ ...outcome, degraded }),
        Noop: (outcome) => Noop.make({ ...outcome, detail: message })
      },
      (outcome) => outcome
    )
  }
}

/** Reports a refusal that the outcome cannot carry, because nothing was compressed. */
const reported = (result: CompressionResult, refused: StrategyRefused) =>
  Effect.as(patchOf(result.outcome) === undefined ? warn(refused) : Effect.void, tookOver(result, refused))

/** Returns a decision that can be carried out. Fails with what is wrong with it. */
const checkedDecision = (strategy: string, { conversation }: CompressRequest, decision: Decision) =>
  decision._tag === "Skip" ||
  (Schema.is(Plan)(decision.plan) &&
    decision.plan.strategy === strategy &&
    decision.plan.version === conversation.version)
    ? Effect.succeed(decision)
    : Effect.fail(new StrategyRefused({ strategy, why: "its plan is not for this conversation" }))

/** Returns a strategy's description whose trigger and number of attempts are valid, whatever the strategy returns. */
const checkedStrategy = (strategy: Strategy, fallback: Strategy): Strategy => ({
  ...strategy,
  trigger: (window) => {
    const trigger = Result.getOrElse(
      Result.try(() => strategy.trigger(window)),
      () => Number.NaN
    )
    return Number.isFinite(trigger) ? Math.min(window, Math.max(1, trigger)) : fallback.trigger(window)
  },
  overflowAttempts: Math.min(maxOverflowAttempts, Math.max(0, strategy.overflowAttempts || 0))
})

/**
 * Makes a runner that checks another one, and uses `fallback` when it is rejected.
 *
 * *When to use*: for a strategy that is not built in. `OwnStrategies` and `compressWith` do it for you.
 */
export const checkedRunner = (runner: StrategyRunner, fallback: StrategyRunner): StrategyRunner => {
  const { name } = runner.strategy
  const withFallback = (request: CompressRequest): CompressRequest => ({
    ...request,
    policy: { ...request.policy, strategy: OwnStrategyName.make(fallback.strategy.name) }
  })
  const guarded = (
    request: CompressRequest,
    run: () => Effect.Effect<CompressionResult, PlanRefused, RunnerServices>
  ): Effect.Effect<CompressionResult, PlanRefused, RunnerServices> =>
    checking(
      name,
      maxCompressTime,
      () => Effect.catchTag(run(), "PlanRefused", Effect.succeed),
      (
        result
      ): Effect.Effect<
        Result.Result<CompressionResult, PlanRefused>,
        StrategyRefused | TokenCountError,
        TempStore | TokenCounter
      > =>
        result instanceof PlanRefused
          ? Effect.succeed(Result.fail(result))
          : Effect.map(checkedResult(name, request, result), (checked) => Result.succeed(checked))
    ).pipe(
      Effect.catchTag("StrategyRefused", (refused) =>
        Effect.flatMap(fallback.compress(withFallback(request)), (result) =>
          Effect.map(reported(result, refused), (outcome) => Result.succeed(outcome))
        )
      ),
      Effect.flatMap(Effect.fromResult)
    )
  return {
    strategy: checkedStrategy(runner.strategy, fallback.strategy),
    decide: (request) =>
      checking(
        name,
        maxCompressTime,
        () => runner.decide(request),
        (decision) => checkedDecision(name, request, decision)
      ).pipe(
        Effect.catchTag("StrategyRefused", (refused) =>
          Effect.andThen(warn(refused), fallback.decide(withFallback(request)))
        )
      ),
    compress: (request) => Effect.orDie(guarded(request, () => Effect.orDie(runner.compress(request)))),
    apply: (request, plan) =>
      plan.strategy === name
        ? guarded(request, () => runner.apply(request, plan))
        : fallback.apply(withFallback(request), plan),
    ...(runner.open === undefined ? {} : { open: opened(name, runner.open) })
  }
}

/** Runs an effect of a session. A failure is logged and changes nothing. */
const harmless = <A, B = A, R = never>(
  strategy: string,
  effect: () => Effect.Effect<A, unknown, R>,
  check: (made: A) => Effect.Effect<B, StrategyRefused>
) => Effect.catchTag(checking(strategy, maxAssembleTime, effect, check), "StrategyRefused", warn)

/** Opens the session of a checked strategy. Closing its scope has a time limit. */
const opened = (strategy: string, open: NonNullable<StrategyRunner["open"]>): NonNullable<StrategyRunner["open"]> =>
  Effect.fnUntraced(function* (conversation) {
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer((exit) =>
      Effect.gen(function* () {
        // A finalizer cannot be interrupted, so one that hangs is left running.
        const closing = yield* Effect.forkDetach(Scope.close(scope, exit))
        yield* harmless(strategy, () => Effect.interruptible(Fiber.join(closing)), Effect.succeed)
      })
    )
    const session = yield* harmless(strategy, () => Scope.provide(open(conversation), scope), Effect.succeed)
    const { afterTurn, assemble, ingest } = session ?? {}
    return {
      ...(ingest !== undefined && {
        ingest: (items) =>
          Effect.map(
            harmless(
              strategy,
              () => ingest(items),
              (made) => checkedIngest(strategy, items, made)
            ),
            (made = []) => made
          )
      }),
      ...(assemble !== undefined && {
        assemble: (request) =>
          harmless(
            strategy,
            () => assemble(request),
            (made) => checkedAssembly(strategy, request.conversation, made)
          )
      }),
      ...(afterTurn !== undefined && {
        afterTurn: (now) => Effect.asVoid(harmless(strategy, () => afterTurn(now), Effect.succeed))
      })
    } satisfies StrategySession
  })

const warn = ({ message }: StrategyRefused) => Effect.as(Effect.logWarning(message), undefined)

const checkedIngest = (strategy: string, items: ReadonlyArray<ViewItem>, made: ReadonlyArray<ShownPart>) => {
  const shown = new Map<string, ReadonlyArray<Part>>(items.map((item) => [item.entry.id, itemParts(item)]))
  const isRight = ({ entry, part, replacement }: ShownPart): boolean => {
    const before = shown.get(entry)?.[part]
    return (
      before !== undefined &&
      isMedia(before) &&
      (isMedia(replacement) || replacement.text?.startsWith(runtimeMark) === true)
    )
  }
  return made.every(isRight)
    ? Effect.succeed(made)
    : Effect.fail(new StrategyRefused({ strategy, why: "it changed something other than media of a message" }))
}

const checkedAssembly = (strategy: string, conversation: Conversation, made: Assembled | undefined) => {
  if (made === undefined) return Effect.succeed(undefined)
  const [first] = view(conversation).filter(({ entry }) => entry.author !== "environment")
  const drop =
    made.dropThrough === undefined || first === undefined
      ? {}
      : { drop: { from: first.entry.id, to: made.dropThrough } }
  const broken = brokenRule(conversation, { ...drop, insert: [], shorten: made.shorten })
  return broken === undefined ? Effect.succeed(made) : Effect.fail(new StrategyRefused({ strategy, why: broken }))
}
