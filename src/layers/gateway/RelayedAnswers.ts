import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import { recallName } from "../../domain/gateway/RecallDeclaration.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"
import type { ReadAnswer, RelayedStream } from "../../domain/wire/RelayedAnswer.ts"
import { SseSplitter } from "../../domain/wire/SseEvents.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer, countedRound } from "./AnswerAccount.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { finish, passPieces, passRead, type ProxiedRequest, withText, write, writeHead } from "./ProxiedRequest.ts"
import { maxAnswerBytes, readAll, tooLarge, typeOf, type UpstreamAnswer } from "./Upstream.ts"

/** Reads answers while it passes them on, and asks the provider again as long as the model calls our tool. */

/** Passes an answer on to the client while `stream` reads it. */
const relay = (answer: UpstreamAnswer, passing: ProxiedRequest, stream: RelayedStream) =>
  Effect.suspend(() => {
    const splitter = new SseSplitter()
    const decoder = new TextDecoder()
    let pending = 0
    return passPieces(answer, passing, (piece) => {
      const events = [
        ...splitter.push(decoder.decode(piece, { stream: piece !== undefined })),
        ...(piece === undefined ? splitter.end() : [])
      ]
      passing.holder.add(splitter.pending - pending)
      pending = splitter.pending
      if (pending > maxAnswerBytes) return tooLarge("an event")
      return events.map((event) => stream.push(event)).join("")
    })
  })

/** Reads an answer that has arrived, streamed or not. Undefined if it has an unknown form. */
export const readAnswer = (dialect: Dialect, text: string, isStream: boolean): ReadAnswer | undefined => {
  const { stream: open, whole } = wire[dialect].relay
  if (!isStream) return whole(recallName).push(text)
  const stream = open(recallName)
  const splitter = new SseSplitter()
  for (const event of [...splitter.push(text), ...splitter.end()]) stream.push(event)
  return stream.read()
}

const isEventStream = (answer: UpstreamAnswer): boolean =>
  answer.status === 200 && typeOf(answer).includes("event-stream")

/** Reads a stream of events while it passes it on, and asks again as long as the model calls our tool. */
export const passStream = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  sent: SentView,
  tool: string,
  first: UpstreamAnswer
) {
  const gateway = yield* Gateway
  const stream = wire[sent.body.dialect].relay.stream(tool)
  writeHead(passing, first, ["content-length"])
  let rounds = noRounds
  let answer = first
  for (;;) {
    const isFirst = rounds.rounds.length === 0
    // Also where the client leaves before the end.
    const account = Effect.suspend(() => accountAnswer(passing, countedRound(sent, isFirst, stream.read())))
    yield* Effect.ensuring(relay(answer, passing, stream), account)
    const read = stream.read()
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      return yield* finish(passing, stream.finish(step.ending))
    }
    rounds = step.rounds
    yield* write(passing, stream.next(step.note))
    answer = yield* withText(passing, step.text, true)
    if (isEventStream(answer)) continue
    const body = (yield* readAll(answer, passing.holder)).toString("utf8")
    return yield* finish(passing, stream.failure(answer.status, body))
  }
})

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
