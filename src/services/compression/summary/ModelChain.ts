import { Effect } from "effect"
import type { FailedModel, SummaryCall } from "../../../domain/compression/Compression.ts"
import { contextLength } from "../../../domain/compression/Compression.ts"
import { type ModelNames, modelNames } from "../../../domain/compression/PolicyOptions.ts"
import { defaultModelName } from "../../../domain/conversation/FailureMemory.ts"
import { type AskRequest, Summarizer, SummarizerError, type SummaryRequest } from "./Summarizer.ts"
import { type VerifiedSnapshot, verifySnapshot } from "./WrittenSnapshot.ts"

/**
 * The summarizing models of one compression. When a model fails or returns nothing usable, the next one is asked, and
 * the failed one is not asked again in this compression.
 */
export interface ModelChain {
  /** The models in the order in which they are tried. Undefined: the default for the conversation's own model. */
  readonly models: ReadonlyArray<string | undefined>
  readonly failed: Set<string | undefined>
  /** Every call that was answered, in order. All of them are paid for. */
  readonly calls: Array<SummaryCall>
}

/** Makes the chain of a policy's models. */
export const chainOf = (names: ModelNames | undefined): ModelChain => ({
  models: names === undefined ? [undefined] : modelNames(names),
  failed: new Set(),
  calls: []
})

/** The answer of one model. A blank text is not usable. */
interface Given {
  readonly text: string
  readonly calls: ReadonlyArray<SummaryCall>
}

const emptySummary = { reason: "EmptySummary", message: "the model returned an empty summary" }

/** Returns the reasons of all failed models as one sentence. For a single model, its own reason. */
const failureText = (failed: ReadonlyArray<FailedModel>): string =>
  failed.length === 1
    ? (failed[0]?.message ?? "")
    : failed.map(({ message, model }) => `${model}: ${message.replace(/\.$/, "")}`).join("; ")

const nameOf = (model: string | undefined): string => model ?? defaultModelName

/** Tries the models in order until one returns a text. Returns the last result, whatever it is. */
const inOrder = Effect.fnUntraced(function* <A extends Given, R>(
  chain: ModelChain,
  attempt: (model: string | undefined, isLast: boolean) => Effect.Effect<A, SummarizerError, R>,
  isFinal: (error: SummarizerError) => boolean
) {
  const failed: Array<FailedModel> = []
  // Each failure is reported once, with the next call that was answered.
  let reported = 0
  const withFailures = (calls: ReadonlyArray<SummaryCall>): ReadonlyArray<SummaryCall> => {
    const [first, ...rest] = calls
    const unreported = failed.slice(reported)
    if (first === undefined || unreported.length === 0) return calls
    reported = failed.length
    return [{ ...first, failed: unreported }, ...rest]
  }
  const remaining = chain.models.filter((name) => !chain.failed.has(name))
  for (const [index, model] of remaining.entries()) {
    const isLast = index === remaining.length - 1
    const tried = yield* Effect.result(attempt(model, isLast))
    chain.calls.push(...withFailures(tried._tag === "Success" ? tried.success.calls : tried.failure.calls))
    if (tried._tag === "Success" && (isLast || tried.success.text.trim() !== ""))
      return { value: tried.success, failed }
    const { message, reason } = tried._tag === "Success" ? emptySummary : tried.failure
    failed.push({ model: nameOf(model), reason, message })
    if (tried._tag === "Failure" && (isLast || isFinal(tried.failure))) {
      const { cause } = tried.failure
      return yield* new SummarizerError({ reason, message: failureText(failed), cause, calls: [...chain.calls] })
    }
    chain.failed.add(model)
  }
  return yield* Effect.die("a chain without a model")
})

/**
 * Asks the models one question, in order, until one answers it. A question that is too long is not passed to the next
 * model: the strategy shortens it. The result, or the error, has all calls of the chain.
 */
export const askInOrder = <R>(
  chain: ModelChain,
  ask: (request: AskRequest) => Effect.Effect<SummaryCall, SummarizerError, R>,
  request: Omit<AskRequest, "model">
): Effect.Effect<string, SummarizerError, R> =>
  inOrder(
    chain,
    (model) => Effect.map(ask({ ...request, model }), (call) => ({ text: call.answer, calls: [call] })),
    ({ reason }) => reason === contextLength
  ).pipe(Effect.map(({ value }) => value.text))

/**
 * Asks the models in order until one writes a snapshot, which is then verified. If the request allows it, code writes
 * the snapshot when the last model fails.
 */
export const summarizeInOrder = Effect.fn("ModelChain.summarizeInOrder")(function* (
  names: ModelNames | undefined,
  request: SummaryRequest
): Effect.fn.Return<VerifiedSnapshot, SummarizerError, Summarizer> {
  const { summarize } = yield* Summarizer
  const chain = chainOf(request.by === "model" ? names : undefined)
  const { failed, value } = yield* inOrder(
    chain,
    (model, isLast) => {
      const sent = chain.models.length === 1 ? request : { ...request, model, fallback: isLast && request.fallback }
      return Effect.flatMap(summarize(sent), (summary) => verifySnapshot(summary, sent))
    },
    () => false
  )
  const { degraded } = value
  const last = nameOf(chain.models.at(-1))
  const all =
    degraded === null ? null : { ...degraded, message: failureText([...failed, { ...degraded, model: last }]) }
  const unusable = [...failed.map(({ model }) => model), ...(degraded === null || request.by !== "model" ? [] : [last])]
  return { ...value, degraded: all, calls: chain.calls, ...(unusable.length === 0 ? {} : { unusable }) }
})
