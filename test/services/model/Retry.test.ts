import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  AnswerTooLargeError,
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  ModelError,
  type ModelErrorReason,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  RequestBytesError,
  TimeoutError
} from "../../../src/services/model/Model.ts"
import { briefRetries, isRetryable, retrySchedule } from "../../../src/services/model/Retry.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Every failure of a call: whether it is made again, and what its message has to name. */
const reasons: ReadonlyArray<readonly [reason: ModelErrorReason, isRetried: boolean, named: string]> = [
  [new NetworkError({ detail: "ECONNREFUSED, host" }), true, "could not be reached (ECONNREFUSED, host)"],
  [new NetworkError({ detail: "x", isBegun: true }), true, "lost in the middle"],
  [new TimeoutError({ seconds: 7 }), false, "7 s"],
  [new RateLimitError({}), true, "in a while"],
  [new RateLimitError({ retryAfter: Duration.seconds(42) }), true, "in 42s"],
  [new QuotaExhaustedError({ detail: "PerDay" }), false, "(PerDay)"],
  [new AuthenticationError({ kind: "MissingKey" }), false, "no model is configured"],
  [new AuthenticationError({ kind: "MissingKey", variable: "A_KEY" }), false, "set A_KEY"],
  [new AuthenticationError({ kind: "InvalidKey", variable: "A_KEY" }), false, "check A_KEY"],
  [new AuthenticationError({ kind: "InsufficientPermissions" }), false, "permissions"],
  [new ContentPolicyError({ finishReason: "SAFETY" }), false, "(SAFETY)"],
  [new InvalidRequestError({ detail: "no such field" }), false, "no such field"],
  [new ContextLengthError({ tokens: 9, limit: 8 }), false, "(9 of 8 tokens)"],
  [new ContextLengthError({ tokens: 9 }), false, "(9 of ? tokens)"],
  [new RequestBytesError({}), false, "more bytes"],
  [new InternalProviderError({ status: 529 }), true, "(529)"],
  [new InvalidResponseError({ detail: "it is not JSON" }), false, "it is not JSON"],
  [new AnswerTooLargeError({ unit: "bytes", limit: 2 * 1024 * 1024 }), false, "more than 2 MiB;"],
  [new AnswerTooLargeError({ unit: "parts", limit: 128_000 }), false, "128,000 parts"],
  [new AnswerTooLargeError({ unit: "calls", limit: 5 }), false, "5 calls"],
  [new AnswerTooLargeError({ unit: "tokens", limit: 4_000 }), false, "4,000 tokens"],
  [new AnswerTooLargeError({ unit: "levels", limit: 1_000 }), false, "1,000 levels"],
  [new AnswerTooLargeError({ unit: "extras", limit: 1024 * 1024 }), false, "1 MiB beside"],
  [new AnswerTooLargeError({ unit: "media", limit: 1024 * 1024 }), false, "1 MiB of images"],
  [new AnswerTooLargeError({ unit: "name", limit: 2_000 }), false, "2,000 characters"]
]

describe("a call that failed", () => {
  it.each(reasons.map((row, at) => [at, row] as const))(
    "is made again only where it may succeed later (%i)",
    (_, row) => {
      const [reason, isRetried, named] = row
      const error = new ModelError({ reason })
      assert.strictEqual(isRetryable(error), isRetried)
      assert.include(error.message, named)
    }
  )

  it.effect("waits as long as the server asks, up to a bound", function* () {
    const { maxServerDelayMillis: bound } = briefRetries
    for (const [asked, calls] of [
      [0, 3],
      [bound, 3],
      [bound + 1, 1]
    ] as const) {
      let made = 0
      const reason = new RateLimitError({ retryAfter: Duration.millis(asked) })
      const call = Effect.suspend(() => {
        made += 1
        return Effect.fail(new ModelError({ reason }))
      })
      const fiber = yield* Effect.forkChild(Effect.exit(Effect.retry(call, retrySchedule(briefRetries))))
      yield* TestClock.adjust(asked - 1)
      assert.strictEqual(made, asked === 0 ? 3 : 1)
      yield* TestClock.adjust(2 * bound)
      yield* Fiber.join(fiber)
      assert.strictEqual(made, calls)
    }
  })
})
