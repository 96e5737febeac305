/** Reads answers while it passes them on, and asks the provider again as long as the model calls our tool. */

import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { type Ending, type ReadAnswer, RelayedBody, type RelayedStream } from "../../domain/wire/RelayedAnswer.ts"
import { SseSplitter } from "../../domain/wire/SseEvents.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { SentView } from "../../services/gateway/GatewayPlan.ts"
import { accountAnswer, countedRound } from "./AnswerAccount.ts"
import { finish, passPieces, passRead, type ProxiedRequest, withText, write, writeHead } from "./ProxiedRequest.ts"
import {
  maxAnswerBytes,
  readable,
  readAll,
  tooLarge,
  typeOf,
  type UpstreamAnswer,
  type UpstreamFailed
} from "./Upstream.ts"

/** How the client gets its answer, which one or more of the provider make. */
interface Passage {
  /** Passes on what can be passed on of an answer of the provider, and reads it. Undefined where it cannot be read: then the client's answer ends with it. */
  readonly take: (answer: UpstreamAnswer) => Effect.Effect<ReadAnswer | undefined, UpstreamFailed>
  /** Goes on to the provider's next answer, after a text of the gateway. */
  readonly next: (note: string) => Effect.Effect<void>
  readonly end: (ending: Ending, last: UpstreamAnswer) => Effect.Effect<void>
}

/** Passes the events of an answer on to the client while `stream` reads them. */
const relay = (answer: UpstreamAnswer, passing: ProxiedRequest, stream: RelayedStream) =>
  Effect.suspend(() => {
    const splitter = new SseSplitter()
    const decoder = new TextDecoder()
    let pending = 0
    let length = 0
    return passPieces(answer, passing, (piece) => {
      const events = [
        ...splitter.push(decoder.decode(piece, { stream: piece !== undefined })),
        ...(piece === undefined ? splitter.end() : [])
      ]
      passing.holder.add(splitter.pending - pending)
      pending = splitter.pending
      if (pending > maxAnswerBytes) return tooLarge("an event")
      length += piece?.length ?? 0
      if (length > maxAnswerBytes) return tooLarge("an answer")
      return events.map((event) => stream.push(event)).join("")
    })
  })

const isEventStream = (answer: UpstreamAnswer): boolean => typeOf(answer).includes("event-stream")

/** The client gets events as they arrive. */
const streamed = (passing: ProxiedRequest, stream: RelayedStream): Passage => ({
  take: Effect.fnUntraced(function* (answer) {
    if (answer.status === 200 && isEventStream(answer)) {
      yield* relay(answer, passing, stream)
      return stream.read()
    }
    const body = (yield* readAll(answer, passing.holder)).toString("utf8")
    yield* finish(passing, stream.failure(answer.status, body))
    return undefined
  }),
  next: (note) => write(passing, stream.next(note)),
  end: (ending) => finish(passing, stream.finish(ending))
})

/** The client gets one body, when the provider has nothing to add. */
const whole = (passing: ProxiedRequest, body: RelayedBody): Passage => ({
  take: Effect.fnUntraced(function* (answer) {
    const bytes = yield* readAll(answer, passing.holder)
    const read = answer.status === 200 ? body.push(bytes.toString("utf8")) : undefined
    if (read === undefined) yield* passRead(passing, answer, bytes)
    return read
  }),
  next: (note) => Effect.sync(() => body.next(note)),
  end: (ending, last) => {
    const text = Buffer.from(body.finish(ending))
    const headers = [...withoutHeaders(last.headers, ["content-length"]), "Content-Length", String(text.length)]
    return passRead(passing, { ...last, headers }, text)
  }
})

/** Passes an answer on while it is read, and asks again as long as the model calls our tool. */
export const passRelayed = Effect.fnUntraced(function* (
  passing: ProxiedRequest,
  sent: SentView,
  tool: string,
  first: UpstreamAnswer
) {
  const gateway = yield* Gateway
  const { answers } = wire[sent.body.dialect]
  let answer = yield* readable(first)
  const relayed = isEventStream(first) ? answers.stream(tool) : new RelayedBody(answers, tool)
  const passage = "failure" in relayed ? streamed(passing, relayed) : whole(passing, relayed)
  if (isEventStream(first)) writeHead(passing, answer, ["content-length"])
  let rounds = noRounds
  for (;;) {
    const isFirst = rounds.rounds.length === 0
    // Also where the client leaves before the end.
    const account = Effect.suspend(() => accountAnswer(passing, countedRound(sent, isFirst, relayed.read())))
    const read = yield* Effect.ensuring(passage.take(answer), answer.status === 200 ? account : Effect.void)
    if (read === undefined) return
    const step = yield* nextStep(gateway, sent, rounds, read)
    if (step._tag === "End") return yield* passage.end(step.ending, answer)
    rounds = step.rounds
    yield* passage.next(step.note)
    answer = yield* Effect.flatMap(withText(passing, step.text, true), readable)
  }
})
