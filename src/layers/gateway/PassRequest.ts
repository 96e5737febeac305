import { Cause, Effect, Metric } from "effect"
import { type Buffer, isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { isTooLong as isRefusedAsTooLong } from "../../domain/gateway/AnswerUsage.ts"
import type { Route } from "../../domain/gateway/Dialect.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { compressionsDone, tokensSaved } from "../../services/gateway/GatewayMetrics.ts"
import type { GatewayPlan } from "../../services/gateway/GatewayPlan.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { accountAnswer } from "./AnswerAccount.ts"
import { meter } from "./AnswerMeter.ts"
import { decoded } from "./BodyEncoding.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { asSent, type ProxiedRequest, passAnswer, passRead, typeOf, withText } from "./ProxiedRequest.ts"
import { passStream } from "./StreamedAnswers.ts"
import { readAll, type UpstreamFailed } from "./UpstreamRequests.ts"
import { passWhole } from "./WholeAnswers.ts"

/** Carries out one request: its plan, the provider's answer, and the retry after a refusal. */

/** The header by which a client names its conversation. It is not sent on. */
export const sessionHeader = "x-palimpsest-session"

/** Maximum size of a refusal's body that is inspected. */
const maxRefusalBytes = 65_536

/** Passes an answer on unchanged, and records its cost. */
const passUnread = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  { model, tokens }: { readonly model: string; readonly tokens: number | undefined },
  answer: IncomingMessage
) {
  const context = yield* Effect.context<Gateway | TenantLimiter>()
  if (answer.statusCode === 200 && passing.route?.asks === "answer") {
    meter(answer, (counts) => void Effect.runForkWith(context)(accountAnswer(passing, model, tokens, counts)))
  }
  yield* passAnswer(answer, passing.response)
})

/** Sends a request on, and its answer back. `retry` makes a plan for a request that the provider refused as too long. */
export const pass = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  plan: GatewayPlan,
  body: Buffer,
  retry: Effect.Effect<GatewayPlan | undefined, never, Gateway | TenantLimiter>
): Effect.fn.Return<void, UpstreamFailed, Gateway | TenantLimiter> {
  const isChanged = plan._tag === "Changed"
  const declaration = isChanged ? plan.sent.declaration : undefined
  const answer = isChanged
    ? yield* withText(passing, plan.text, declaration !== undefined)
    : yield* asSent(passing, body)
  const status = answer.statusCode ?? 502
  const size = Number(answer.headers["content-length"] ?? 0)
  if ((status === 400 || status === 413) && passing.route?.asks === "answer" && size < maxRefusalBytes) {
    const refusal = yield* readAll(answer)
    // Clients allow compressed answers, and refusals come compressed too.
    const plain = decoded(refusal, answer.headers["content-encoding"] ?? "identity", maxRefusalBytes)
    if (isRefusedAsTooLong(status, plain?.toString("utf8") ?? "")) {
      const next = yield* retry
      if (next?._tag === "Changed") return yield* pass(passing, next, body, Effect.undefined)
    } else if (isChanged && plan.before < plan.sent.limit) {
      // The provider may have refused what the gateway made of the request.
      yield* reportFailure(Cause.fail(new Error(`the provider refused a compressed request (${status})`)))
      return yield* pass(passing, { _tag: "Unchanged", model: plan.model, tokens: plan.before }, body, Effect.undefined)
    }
    return passRead(passing, answer, refusal)
  }
  const tokens = isChanged ? plan.after : plan.tokens
  if (!isChanged || declaration === undefined || status !== 200) {
    return yield* passUnread(passing, { model: plan.model, tokens }, answer)
  }
  if (typeOf(answer).includes("event-stream")) return yield* passStream(passing, plan.sent, declaration.name, answer)
  if (typeOf(answer).includes("json")) return yield* passWhole(passing, plan.sent, declaration.name, answer)
  return yield* passUnread(passing, { model: plan.model, tokens }, answer)
})

/** Returns the text of a body; undefined for invalid bytes or more than the limit. Codex compresses its bodies. */
const textOf = (body: Buffer, { headers }: IncomingMessage, maxBytes: number): string | undefined => {
  const plain = decoded(body, headers["content-encoding"] ?? "identity", maxBytes)
  return plain !== undefined && isUtf8(plain) ? plain.toString("utf8") : undefined
}

/** Decides what is sent for a request. If anything fails here, the request is sent unchanged. */
export const planFor = Effect.fnUntraced(function* (
  route: Route,
  owner: string,
  body: Buffer,
  request: IncomingMessage,
  { isTooLong, maxBodyBytes }: { readonly isTooLong: boolean; readonly maxBodyBytes: number }
) {
  const gateway = yield* Gateway
  const text = textOf(body, request, maxBodyBytes)
  const unchanged: GatewayPlan = { _tag: "Unchanged", model: route.model ?? "", tokens: undefined }
  if (text === undefined) return unchanged
  const session = request.headers[sessionHeader]
  const plan = yield* gateway
    .plan({ owner, route, text, isTooLong, ...(typeof session === "string" ? { session } : {}) })
    .pipe(Effect.catchCause((cause) => Effect.as(reportFailure(cause), unchanged)))
  if (plan._tag === "Changed") {
    yield* Metric.update(tokensSaved, Math.max(0, plan.before - plan.after))
    if (plan.isNew) yield* Metric.update(Metric.withAttributes(compressionsDone, { by: plan.by }), 1)
  }
  return plan
})
