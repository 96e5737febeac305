import { Cause, Duration, Effect, Schema } from "effect"
import { type BrokenRule, brokenRule, brokenRuleText } from "../../../domain/compression/BrokenRule.ts"
import { adopt, Compressed, ContentTruncated, Noop, Outcome, patchOf } from "../../../domain/compression/Compression.ts"
import { type Conversation, entryId, type Entry, type Patch, view } from "../../../domain/conversation/Conversation.ts"
import { projecting, requestTokens } from "../../../domain/conversation/Projection.ts"
import { droppedEntries } from "../../../domain/conversation/Recall.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { makeEntry, rangeHandle } from "../../session/EntryBuilder.ts"
import type { TempStore } from "../../session/TempStore.ts"
import { type TokenCountError, TokenCounter } from "../../tokens/TokenCounter.ts"
import type { CompressionResult, CompressRequest } from "./CompressRequest.ts"
import type { Assembled, RunnerServices, StrategyRunner, StrategySession } from "./StrategyRunner.ts"

/**
 * Checks a strategy that a program brought. Whatever it returns, the laws hold: ids, token counts and handles are made
 * here, and what breaks a rule is refused with the strategy's name, whereupon the default strategy takes over and the
 * outcome says so.
 */

/** How long a strategy may take for one compression (OpenClaw 2026.9: 180 s for a context engine). */
export const maxCompressTime: Duration.Duration = Duration.minutes(3)
/** How long a strategy may take before and after a request, which waits for it. */
export const maxAssembleTime: Duration.Duration = Duration.seconds(10)

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

/** Runs a strategy's effect for a limited time, and turns whatever goes wrong in it into a refusal. */
const refusing = <A, E, R>(
  strategy: string,
  limit: Duration.Duration,
  effect: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E | StrategyRefused, R> =>
  Effect.suspend(effect).pipe(
    Effect.timeoutOrElse({
      duration: limit,
      orElse: () => Effect.fail(new StrategyRefused({ strategy, why: `it took longer than ${Duration.format(limit)}` }))
    }),
    Effect.catchDefect((defect) =>
      Effect.logDebug("a strategy failed", Cause.die(defect)).pipe(
        Effect.andThen(Effect.fail(new StrategyRefused({ strategy, why: `it failed: ${firstLine(String(defect))}` })))
      )
    )
  )

/** Makes the patch that a strategy asked for, with ids, token counts and handles that are right. */
const remade = Effect.fnUntraced(function* (
  { conversation, held }: Pick<CompressRequest, "conversation" | "held">,
  { drop, insert, shorten }: Patch
): Effect.fn.Return<Patch, TokenCountError, TokenCounter | TempStore> {
  const counter = yield* TokenCounter
  const entries: Array<Entry> = []
  for (const { content } of insert) {
    const id = entryId(conversation.next + entries.length)
    entries.push(yield* makeEntry({ content, author: "summary" }, id, held))
  }
  const counted = yield* Effect.forEach(shorten, (one) =>
    Effect.map(counter.count([one.replacement]), ([tokens = 0]) => ({ ...one, tokens: TokenCount.make(tokens) }))
  )
  return { insert: entries, shorten: counted, ...(drop === undefined ? {} : { drop }) }
})

const sizeOf = (conversation: Conversation) =>
  Effect.map(Work.run(projecting(view(conversation))), (sent) => requestTokens(sent))

/** Returns the result with a patch that keeps the rules, or fails with the rule that it breaks. */
const checkedResult = Effect.fnUntraced(function* (
  strategy: string,
  request: CompressRequest,
  result: CompressionResult
): Effect.fn.Return<CompressionResult, StrategyRefused | TokenCountError, TokenCounter | TempStore> {
  const { outcome } = result
  const asked = patchOf(outcome)
  if (asked === undefined || (outcome._tag !== "Compressed" && outcome._tag !== "ContentTruncated")) return result
  const refuse = (broken: BrokenRule) => new StrategyRefused({ strategy, why: brokenRuleText(broken) })
  const broken = brokenRule(request.conversation, asked)
  if (broken !== undefined) return yield* refuse(broken)
  const patch = yield* remade(request, asked)
  const before = yield* sizeOf(request.conversation)
  const after = yield* sizeOf(adopt(request.conversation, { ...outcome, patch }))
  if (after >= before) return yield* refuse({ rule: "not smaller", entry: undefined })
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

/**
 * Makes a runner that checks another one, and uses `fallback` where that is refused.
 *
 * *When to use*: for a strategy that was not written here. `OwnStrategies` and `compressWith` do it for you.
 */
export const checkedRunner = (runner: StrategyRunner, fallback: StrategyRunner): StrategyRunner => {
  const { name } = runner.strategy
  const instead = (request: CompressRequest): CompressRequest => ({
    ...request,
    policy: { ...request.policy, strategy: fallback.strategy.name }
  })
  const guarded = <E>(
    request: CompressRequest,
    run: () => Effect.Effect<CompressionResult, E, RunnerServices>
  ): Effect.Effect<CompressionResult, E, RunnerServices> =>
    refusing(name, maxCompressTime, run).pipe(
      Effect.flatMap((result) => checkedResult(name, request, result)),
      Effect.catchIf(
        (error): error is StrategyRefused | TokenCountError => isOurs(error),
        (error) =>
          Effect.map(fallback.compress(instead(request)), (result) =>
            tookOver(
              result,
              error._tag === "StrategyRefused" ? error : new StrategyRefused({ strategy: name, why: error.message })
            )
          )
      )
    )
  return {
    strategy: runner.strategy,
    decide: (request) =>
      Effect.catchTag(
        refusing(name, maxCompressTime, () => runner.decide(request)),
        "StrategyRefused",
        () => fallback.decide(instead(request))
      ),
    compress: (request) => guarded(request, () => runner.compress(request)),
    apply: (request, plan) =>
      plan.strategy === name
        ? guarded(request, () => runner.apply(request, plan))
        : fallback.apply(instead(request), plan),
    ...(runner.open === undefined ? {} : { open: opened(name, runner.open) })
  }
}

const isOurs = (error: unknown): error is StrategyRefused | TokenCountError =>
  error instanceof StrategyRefused || (error instanceof Error && "_tag" in error && error._tag === "TokenCountError")

/** The session of a strategy that is checked. What it does wrong is logged, and changes nothing. */
const opened =
  (strategy: string, open: NonNullable<StrategyRunner["open"]>): NonNullable<StrategyRunner["open"]> =>
  (conversation) =>
    refusing(strategy, maxAssembleTime, () => open(conversation)).pipe(
      Effect.map(({ afterTurn, assemble }): StrategySession => ({
        ...(assemble === undefined
          ? {}
          : {
              assemble: (request) =>
                refusing(strategy, maxAssembleTime, () => assemble(request)).pipe(
                  Effect.flatMap((made) => checkedAssembly(strategy, request.conversation, made)),
                  Effect.catchTag("StrategyRefused", warn)
                )
            }),
        ...(afterTurn === undefined
          ? {}
          : {
              afterTurn: (now) =>
                Effect.catchTag(
                  refusing(strategy, maxAssembleTime, () => afterTurn(now)),
                  "StrategyRefused",
                  warn
                )
            })
      })),
      Effect.catchTag("StrategyRefused", (error) => Effect.as(warn(error), {}))
    )

const warn = ({ message }: StrategyRefused): Effect.Effect<undefined> =>
  Effect.as(Effect.logWarning(message), undefined)

const checkedAssembly = (
  strategy: string,
  conversation: Conversation,
  made: Assembled | undefined
): Effect.Effect<Assembled | undefined, StrategyRefused> => {
  if (made === undefined) return Effect.succeed(undefined)
  const [first] = view(conversation).filter(({ entry }) => entry.author !== "environment")
  const drop =
    made.dropThrough === undefined || first === undefined
      ? {}
      : { drop: { from: first.entry.id, to: made.dropThrough } }
  const broken = brokenRule(conversation, { ...drop, insert: [], shorten: made.shorten })
  return broken === undefined
    ? Effect.succeed(made)
    : Effect.fail(new StrategyRefused({ strategy, why: brokenRuleText(broken) }))
}
