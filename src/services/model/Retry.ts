/** Which failed calls of a model are made again, how often, and after which delays. */

import { Duration, Effect, Random, Schedule } from "effect"
import type { ModelError } from "./Model.ts"

/**
 * Whether the same call may succeed later.
 *
 * **Example** (Deciding whether to ask again)
 *
 * ```ts
 * import { Models } from "palimpsest"
 *
 * const busy = new Models.ModelError({ reason: new Models.RateLimitError({}) })
 * const wrong = new Models.ModelError({ reason: new Models.InvalidRequestError({ detail: "no such field" }) })
 * console.log(Models.isRetryable(busy), Models.isRetryable(wrong)) // => true false
 * ```
 */
export const isRetryable = ({ reason }: ModelError): boolean =>
  reason._tag === "NetworkError" || reason._tag === "RateLimitError" || reason._tag === "InternalProviderError"

/** How often and after which delays a call is retried. */
export interface RetryPolicy {
  /** The number of calls, including the first. */
  readonly attempts: number
  /** The delay before the second call; it doubles each time, with jitter. */
  readonly initialDelayMillis: number
  /** The longest delay of the doubling. */
  readonly maxDelayMillis: number
  /** The longest delay that a server may request. If it requests more, its error is final. */
  readonly maxServerDelayMillis: number
}

/** For unimportant calls that the user waits for. */
export const briefRetries: RetryPolicy = {
  attempts: 3,
  initialDelayMillis: 1_000,
  maxDelayMillis: 15_000,
  maxServerDelayMillis: 15_000
}

/** A schedule of this many attempts, with doubling delays and jitter. */
export const backoff = ({
  attempts,
  initialDelayMillis: first,
  maxDelayMillis: maxDelay
}: Omit<RetryPolicy, "maxServerDelayMillis">): Schedule.Schedule<unknown> =>
  Schedule.exponential(first).pipe(
    Schedule.modifyDelay(({ duration }) =>
      Effect.map(Random.next, (random) =>
        Duration.millis(Math.min(Duration.toMillis(duration) * (0.75 + random * 0.5), maxDelay))
      )
    ),
    Schedule.while(({ attempt }) => attempt < attempts)
  )

/**
 * Retries what may succeed later (`isRetryable`), with doubling delays and jitter, or the delay that the server requests. Pass it to `Effect.retry`;
 * every delay is interruptible.
 */
export const retrySchedule = (patience: RetryPolicy): Schedule.Schedule<unknown, ModelError> =>
  backoff(patience).pipe(
    Schedule.setInputType<ModelError>(),
    Schedule.modifyDelay(({ duration, input: { reason } }) =>
      Effect.succeed("retryAfter" in reason ? (reason.retryAfter ?? duration) : duration)
    ),
    Schedule.while(
      ({ duration, input }) =>
        isRetryable(input) &&
        Duration.toMillis(duration) <= Math.max(patience.maxServerDelayMillis, patience.maxDelayMillis)
    )
  )
