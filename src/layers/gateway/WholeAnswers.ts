import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer, countedRound } from "./AnswerAccount.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { passRead, type ProxiedRequest, withText } from "./ProxiedRequest.ts"
import { readAll, type UpstreamAnswer } from "./Upstream.ts"

/** Reads a whole answer, and asks again as long as the model calls our tool. */
export const passWhole = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  sent: SentView,
  tool: string,
  first: UpstreamAnswer
) {
  const gateway = yield* Gateway
  const whole = wire[sent.body.dialect].relay.whole(tool)
  let rounds = noRounds
  let answer = first
  for (;;) {
    const body = yield* readAll(answer, passing.holder)
    const read = answer.status === 200 ? whole.push(body.toString("utf8")) : undefined
    if (read === undefined) return yield* passRead(passing, answer, body)
    yield* accountAnswer(passing, countedRound(sent, rounds.rounds.length === 0, read))
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      const text = Buffer.from(whole.finish(step.ending))
      const headers = [...withoutHeaders(answer.headers, ["content-length"]), "Content-Length", String(text.length)]
      return yield* passRead(passing, { ...answer, headers }, text)
    }
    whole.next(step.note)
    rounds = step.rounds
    answer = yield* withText(passing, step.text, true)
  }
})
