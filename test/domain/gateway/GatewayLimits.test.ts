import { assert, it } from "@effect/vitest"
import { compressFrom } from "../../../src/domain/gateway/GatewayLimits.ts"

it.each([
  ["at the threshold", {}, 750],
  ["a tenth of the window after the last compression", { tokensAfterLast: 800 }, 900],
  ["at the threshold after a compression that left little", { tokensAfterLast: 100 }, 750],
  ["before the window is full, whatever the last compression left", { tokensAfterLast: 1_000 }, 950],
  ["not before the conversation has grown after a compression that found nothing to do", { retryAt: 880 }, 880],
  ["at the threshold after a failed compression that was long ago", { retryAt: 500 }, 750]
])("a conversation is compressed %s", (_rule, { retryAt, tokensAfterLast }: Before, tokens) => {
  assert.strictEqual(compressFrom(1_000, 0.75, tokensAfterLast, retryAt), tokens)
})

interface Before {
  readonly tokensAfterLast?: number
  readonly retryAt?: number
}
