import { Effect } from "effect"
import type { FailedModel, SummaryCall } from "../../../domain/compression/Compression.ts"
import { type ModelNames, modelNames } from "../../../domain/compression/PolicyOptions.ts"
import { type AskRequest, contextLength, Summarizer, SummarizerError, type SummaryRequest } from "./Summarizer.ts"
import { type VerifiedSnapshot, verifySnapshot } from "./WrittenSnapshot.ts"

/**
 * The summarizing models of one compression. When one fails or answers nothing usable, the next one is asked, and the one that
 * failed is not asked again in this compression.
 */
export interface ModelChain {
  /** In the order in which they are tried. Undefined: the model that the conversation's own model decides. */
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

/** What one model gave. A blank text is not usable. */
interface Given {
  readonly text: string
  readonly calls: ReadonlyArray<SummaryCall>
}

const emptySummary = { reason: "EmptySummary", message: "the model returned an empty summary" }

/** The reasons of all models that failed, as one sentence; of a single one, its own. */
const failureText = (failed: ReadonlyArray<FailedModel>): string =>
  failed.length === 1
    ? (failed[0]?.message ?? "")
    : failed.map(({ message, model }) => `${model}: ${message.replace(/\.$/, "")}`).join("; ")

const nameOf = (model: string | undefined): string => model ?? "the default model"

/** Tries the models in order until one gives a text. The last one's result stands, whatever it is. */
const inOrder = Effect.fnUntraced(function* <A extends Given, R>(
  chain: ModelChain,
  attempt: (model: string | undefined, isLast: boolean) => Effect.Effect<A, SummarizerError, R>,
  isFinal: (error: SummarizerError) => boolean
): Effect.fn.Return<{ readonly value: A; readonly failed: ReadonlyArray<FailedModel> }, SummarizerError, R> {
  const failed: Array<FailedModel> = []
  // Each failure is told once, by the next call that was answered.
  let untold = 0
  const noted = (calls: ReadonlyArray<SummaryCall>): ReadonlyArray<SummaryCall> => {
    const [first, ...rest] = calls
    const news = failed.slice(untold)
    if (first === undefined || news.length === 0) return calls
    untold = failed.length
    return [{ ...first, failed: news }, ...rest]
  }
  const left = chain.models.filter((name) => !chain.failed.has(name))
  for (const [index, model] of left.entries()) {
    const isLast = index === left.length - 1
    const tried = yield* Effect.result(attempt(model, isLast))
    chain.calls.push(...noted(tried._tag === "Success" ? tried.success.calls : tried.failure.calls))
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
 * Asks one question of the first model that answers it. A question that is too long is not given to the next model: the strategy
 * makes it shorter. The calls are those of the chain, also in an error.
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
 * Has the first model that can write a snapshot, which is verified. Where the request allows code to write it, code does so after
 * the last model.
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
      const wanted = chain.models.length === 1 ? request : { ...request, model, fallback: isLast && request.fallback }
      return Effect.flatMap(summarize(wanted), (summary) => verifySnapshot(summary, wanted))
    },
    () => false
  )
  const { degraded } = value
  const last = nameOf(chain.models.at(-1))
  const all =
    degraded === null ? null : { ...degraded, message: failureText([...failed, { ...degraded, model: last }]) }
  return { ...value, degraded: all, calls: chain.calls }
})
