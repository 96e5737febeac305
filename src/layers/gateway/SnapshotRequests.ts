/** Asks the provider for a snapshot on behalf of a client, with the client's own headers. */

import { Effect } from "effect"
import { recallName } from "../../domain/gateway/RecallDeclaration.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"
import { readAnswer } from "../../domain/wire/RelayedAnswer.ts"
import { orReported } from "../../services/gateway/GatewayFailures.ts"
import type { AskUpstream } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer } from "./AnswerAccount.ts"
import { type ProxiedRequest, withText } from "./ProxiedRequest.ts"
import { holding, readable, readAll, typeOf, type Upstream, UpstreamFailed } from "./Upstream.ts"

const maxMillis = 300_000

/** Makes the function that asks. Its cost counts like the client's other requests. */
export const askFor = Effect.fnUntraced(function* (passing: ProxiedRequest, dialect: Dialect, model: string) {
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof accountAnswer>> | Upstream>()
  const ask: AskUpstream = (text) =>
    holding(
      maxMillis,
      Effect.fnUntraced(function* (holder) {
        const answer = yield* Effect.flatMap(withText(passing, text, true), readable)
        const body = (yield* readAll(answer, holder)).toString("utf8")
        if (answer.status !== 200) {
          return yield* new UpstreamFailed({
            message: `no snapshot by a model: the provider answered ${answer.status}`,
            status: 502,
            cause: undefined
          })
        }
        const read = readAnswer(wire[dialect].answers, recallName, body, typeOf(answer).includes("event-stream"))
        yield* accountAnswer(passing, {
          model,
          estimated: undefined,
          counts: read?.usage,
          tokens: estimateText(body)
        })
        return read
      }, Effect.scoped)
    ).pipe(orReported("code writes the snapshot", undefined), Effect.provideContext(context))
  return ask
})
