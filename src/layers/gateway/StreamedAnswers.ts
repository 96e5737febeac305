import { Effect } from "effect"
import type { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import type { AnswerStream } from "../../domain/gateway/Answer.ts"
import { answerDialects } from "../../domain/gateway/DialectCodecs.ts"
import { type SseEvent, SseSplitter } from "../../domain/gateway/SseEvents.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer } from "./AnswerAccount.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { type ProxiedRequest, typeOf, withText, write } from "./ProxiedRequest.ts"
import { endToEnd, maxAnswerBytes, readAll, tooLarge, UpstreamFailed } from "./UpstreamRequests.ts"

/** Passes an answer on to the client while it is read. */
const relay = (answer: IncomingMessage, { response }: ProxiedRequest, stream: AnswerStream) =>
  Effect.callback<void, UpstreamFailed>((resume) => {
    const splitter = new SseSplitter()
    const decoder = new TextDecoder()
    const failed = (cause: unknown) =>
      resume(Effect.fail(new UpstreamFailed({ message: "the provider closed the connection", status: 502, cause })))
    const pass = (event: SseEvent) => {
      const text = stream.push(event)
      // One piece may contain many events, so one listener handles them all.
      if (text === "" || response.write(text) || answer.isPaused()) return
      answer.pause()
      response.once("drain", () => answer.resume())
    }
    // An exception in a listener would end the process.
    const safely = (work: () => void): void => {
      try {
        work()
      } catch (cause) {
        answer.destroy()
        resume(Effect.die(cause))
      }
    }
    answer.on("data", (piece: Buffer) =>
      safely(() => {
        splitter.push(decoder.decode(piece, { stream: true })).forEach(pass)
        if (splitter.pending <= maxAnswerBytes) return
        answer.destroy()
        resume(Effect.fail(tooLarge("an event")))
      })
    )
    answer.once("end", () =>
      safely(() => {
        splitter.push(decoder.decode()).forEach(pass)
        splitter.end().forEach(pass)
        resume(Effect.void)
      })
    )
    answer.once("error", failed)
    answer.once("close", () => {
      if (!answer.complete) failed(undefined)
    })
    return Effect.sync(() => void answer.destroy())
  })

const isEventStream = (answer: IncomingMessage): boolean =>
  answer.statusCode === 200 && typeOf(answer).includes("event-stream")

/** Reads a stream of events while it passes it on, and asks again as long as the model calls our tool. */
export const passStream = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  sent: SentView,
  tool: string,
  first: IncomingMessage
) {
  const gateway = yield* Gateway
  const { response } = passing
  const stream = answerDialects[sent.body.dialect].stream(tool)
  response.writeHead(first.statusCode ?? 200, first.statusMessage ?? "", endToEnd(first.rawHeaders, ["content-length"]))
  response.flushHeaders()
  let rounds = noRounds
  let answer = first
  for (;;) {
    yield* relay(answer, passing, stream)
    const read = stream.read()
    yield* accountAnswer(passing, sent.body.model, rounds.rounds.length === 0 ? sent.tokens : undefined, read.usage)
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      yield* write(response, stream.finish(step.ending))
      response.end()
      return
    }
    rounds = step.rounds
    yield* write(response, stream.next(step.note))
    answer = yield* withText(passing, step.text, true)
    if (isEventStream(answer)) continue
    const body = (yield* readAll(answer)).toString("utf8")
    yield* write(response, stream.failure(answer.statusCode ?? 502, body))
    response.end()
    return
  }
})
