import { Effect } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { answerDialects } from "../../domain/gateway/DialectCodecs.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer } from "./AnswerAccount.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { type ProxiedRequest, withText } from "./ProxiedRequest.ts"
import { endToEnd, readAll } from "./UpstreamRequests.ts"

/** Reads a whole answer, and asks again as long as the model calls our tool. */
export const passWhole = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  sent: SentView,
  tool: string,
  first: IncomingMessage
) {
  const gateway = yield* Gateway
  const whole = answerDialects[sent.body.dialect].whole(tool)
  const { response } = passing
  let rounds = noRounds
  let answer = first
  for (;;) {
    const body = yield* readAll(answer)
    const read = answer.statusCode === 200 ? whole.push(body.toString("utf8")) : undefined
    if (read === undefined) {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", endToEnd(answer.rawHeaders))
      response.end(body)
      return
    }
    yield* accountAnswer(passing, sent.body.model, rounds.rounds.length === 0 ? sent.tokens : undefined, read.usage)
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      const text = Buffer.from(whole.finish(step.ending))
      response.writeHead(200, [
        ...endToEnd(answer.rawHeaders, ["content-length"]),
        "Content-Length",
        String(text.length)
      ])
      response.end(text)
      return
    }
    whole.next(step.note)
    rounds = step.rounds
    answer = yield* withText(passing, step.text, true)
  }
})
