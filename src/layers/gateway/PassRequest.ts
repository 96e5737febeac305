/** Carries out one request: its plan, the provider's answer, and the retry after a refusal. */

import { Cause, Effect, Metric, type Scope } from "effect"
import { Buffer, isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { headerOf } from "../../domain/gateway/HeaderList.ts"
import { recallName } from "../../domain/gateway/RecallDeclaration.ts"
import type { Route } from "../../domain/gateway/Route.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { excessOf, faultOf } from "../../domain/wire/ProviderFault.ts"
import { readAnswer } from "../../domain/wire/RelayedAnswer.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { orReported, reportFailure, unchangedRequest } from "../../services/gateway/GatewayFailures.ts"
import { compressionsDone, tokensSaved } from "../../services/gateway/GatewayMetrics.ts"
import type { GatewayPlan } from "../../services/gateway/GatewayPlan.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { decoded } from "../platform/ContentEncoding.ts"
import { accountAnswer, type Used } from "./AnswerAccount.ts"
import { collectText, meter } from "./AnswerMeter.ts"
import { asSent, passAnswer, passRead, type ProxiedRequest, withText } from "./ProxiedRequest.ts"
import { passRelayed } from "./RelayedAnswers.ts"
import {
  beginningOf,
  encodingOf,
  readAll,
  typeOf,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamFailed
} from "./Upstream.ts"

/** Answers that may say that a request was too long: relays fail where their provider refuses. */
const refusals: ReadonlySet<number> = new Set([400, 413, 422, 429, 500])
/** Maximum size of a refusal's body that is inspected. */
const maxRefusalBytes = 65_536

/** How an error begins that a server sends with the status of success, as LM Studio does in place of the events of an answer. */
const errorBeginning = /^\s*(?:event: ?error\b|(?:data: ?)?\{\s*"(?:error"\s*:\s*[{"]|type"\s*:\s*"error"))/

/** The JSON of the first event in a text; the text itself, where it has none. */
const firstData = (text: string): string => /^data: ?(\{.*)$/m.exec(text)?.[1] ?? text

/** Passes an answer on unchanged, and records what it used. */
export const passUnread = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  { estimated, model }: Pick<Used, "estimated" | "model">,
  answer: UpstreamAnswer
) {
  const context = yield* Effect.context<Gateway | TenantLimiter>()
  if (answer.status < 300 && passing.route?.asks === "answer") {
    meter(answer, (metered) => {
      Effect.runForkWith(context)(accountAnswer(passing, { ...metered, model, estimated }))
    })
    const { keeper } = passing
    if (keeper !== undefined) {
      collectText(answer, (text) => void Effect.runForkWith(context)(keepAnswer(keeper, text)))
    }
  }
  yield* passAnswer(passing, answer)
})

/** Keeps the items of an answer that was passed on unread. */
const keepAnswer = Effect.fnUntraced(
  function* ({ isStored, owner }: NonNullable<ProxiedRequest["keeper"]>, text: string) {
    const { keep } = yield* Gateway
    const read = readAnswer(wire.responses.answers, recallName, text, !text.startsWith("{"))
    if (read !== undefined) yield* keep(owner, read, isStored)
  },
  orReported("references to this answer are not known", undefined)
)

/** A client's body, and its text where it can be read. Mutable: both are let go once no other request can be made of them. */
export interface KeptBody {
  bytes: Buffer
  text: string | undefined
  /** The bytes that it is counted with. */
  held: number
}

/** Looks at how an answer begins. `isRead`: its whole body can be, if it is a refusal. */
const looked = (passing: ProxiedRequest) =>
  Effect.fnUntraced(function* (answer: UpstreamAnswer) {
    const size = Number(headerOf(answer.headers, "content-length") ?? 0)
    const isRead = passing.route?.asks === "answer" && size < maxRefusalBytes
    const isError = isRead && answer.status === 200 && errorBeginning.test(yield* beginningOf(answer))
    return { answer, isError, isRead }
  })

/** Sends a request on, and its answer back. `retry` makes a plan for a request that the provider refused as too long. */
export const pass = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  plan: GatewayPlan,
  body: KeptBody,
  retry: Effect.Effect<GatewayPlan | undefined, never, Gateway | TenantLimiter>
): Effect.fn.Return<void, UpstreamFailed, Gateway | Scope.Scope | TenantLimiter | Upstream> {
  const isChanged = plan._tag === "Changed"
  const declaration = isChanged ? plan.sent.declaration : undefined
  const { model } = plan
  const estimated = isChanged ? plan.sent.tokens : plan.tokens
  const sent = Effect.suspend(() =>
    isChanged ? withText(passing, plan.text, declaration !== undefined) : asSent(passing, body.bytes)
  )
  // A client that leaves before the answer begins does not get the request for nothing.
  const unanswered = accountAnswer(passing, { model, estimated, counts: undefined, tokens: 0 })
  const { answer, isError, isRead } = yield* Effect.onInterrupt(Effect.flatMap(sent, looked(passing)), () => unanswered)
  const status = isError ? 400 : answer.status
  if (isRead && refusals.has(status)) {
    const refusal = yield* readAll(answer, passing.holder)
    // Clients allow compressed answers, and refusals come compressed too.
    const plain = decoded(refusal, encodingOf(answer), maxRefusalBytes)
    if (excessOf(status, faultOf(firstData(plain?.toString("utf8") ?? "")))?._tag === "TooManyTokens") {
      const next = yield* retry
      if (next?._tag === "Changed") return yield* pass(passing, next, body, Effect.undefined)
    } else if (answer.status < 429 && !isError && isChanged && plan.before.total < plan.sent.limit) {
      // The provider may have refused what the gateway made of the request.
      const refused = new Error(`the provider refused a compressed request (${status})`)
      yield* reportFailure(Cause.fail(refused), unchangedRequest)
      return yield* pass(passing, { _tag: "Unchanged", model, tokens: plan.before }, body, Effect.undefined)
    }
    return yield* passRead(passing, answer, refusal)
  }
  passing.holder.add(-body.held)
  body.held = 0
  body.bytes = Buffer.alloc(0)
  body.text = undefined
  // The texts of a request do not stay in memory as long as its answer, and the end of that does not wait for their classes.
  if (status === 200 && passing.route?.asks === "answer" && estimated !== undefined) {
    yield* Effect.forkDetach(Work.run(estimated.features()))
  }
  if (isChanged && declaration !== undefined && status === 200 && /event-stream|json/.test(typeOf(answer))) {
    return yield* passRelayed(passing, plan.sent, declaration.name, answer)
  }
  return yield* passUnread(passing, { model, estimated }, answer)
})

/** Returns the text of a body; undefined for invalid bytes or more than the limit. Codex compresses its bodies. */
export const textOf = (body: Buffer, { headers }: IncomingMessage, maxBytes: number): string | undefined => {
  const plain = decoded(body, headers["content-encoding"] ?? "identity", maxBytes)
  return plain !== undefined && isUtf8(plain) ? plain.toString("utf8") : undefined
}

/** Decides what is sent for a request with this body. If it cannot be read, the request is sent unchanged. */
export const planFor = Effect.fnUntraced(function* (
  route: Route,
  owner: string,
  text: string | undefined,
  isTooLong: boolean
) {
  const gateway = yield* Gateway
  if (text === undefined) return { _tag: "Unchanged" as const, model: route.model ?? "", tokens: undefined }
  const plan = yield* gateway.plan({ owner, route, text, isTooLong })
  if (plan._tag === "Changed") {
    yield* Metric.update(tokensSaved, Math.max(0, plan.before.total - plan.sent.tokens.total))
    if (plan.isNew) yield* Metric.update(Metric.withAttributes(compressionsDone, { by: plan.by }), 1)
  }
  return plan
})
