import { Deferred, Effect, Layer, Stream } from "effect"
import { cpus } from "node:os"
import { call, model as modelSays, response, text, user } from "../src/domain/content/Content.ts"
import { applyEvent, emptySession, type Session, type SessionEvent } from "../src/domain/session/Session.ts"
import * as Offline from "../src/layers/assembly/Offline.ts"
import { Chat } from "../src/services/chat/Chat.ts"
import { Model } from "../src/services/model/Model.ts"
import { estimateContents } from "../src/services/tokens/Calibrations.ts"
import { median, print, type Row } from "./table.ts"

/**
 * `npm run bench:prepare`: how long a user waits for a compression of 10,000 messages, with a model that takes 10 s for each of
 * the two calls of a snapshot: from a message to the request that answers it, with the snapshot prepared in the background and
 * without. `--seconds N` makes the model faster.
 */

const option = process.argv.indexOf("--seconds")
const seconds = option < 0 ? 10 : Number(process.argv[option + 1])
const messages = 10_000
const rounds = 5

let left: () => void = () => {}
const model = Layer.succeed(Model, {
  generate: () =>
    Effect.delay(
      Effect.succeed({
        content: modelSays(text("<state_snapshot><overall_goal>Make the build green.</overall_goal></state_snapshot>")),
        finishReason: "STOP",
        usage: null
      }),
      seconds * 1_000
    ),
  stream: () =>
    Stream.suspend(() => {
      left()
      return Stream.fromIterable([{ parts: [text("Done.")], finishReason: "STOP" }])
    }),
  countTokens: (request) => estimateContents(request)
})

const drafts = Array.from({ length: messages / 4 }, (_, turn) => [
  { content: user(text(`Go on with step ${turn}, please, and look at file ${turn}.`)) },
  { content: modelSays(text("Looking."), call("read_file", { path: `src/file${turn}.ts` }, `c${turn}`)) },
  { content: user(response("read_file", { output: `line of file ${turn}\n`.repeat(20) }, `c${turn}`)) },
  { content: modelSays(text(`Step ${turn}: the file declares what the one before uses.`)) }
]).flat()

const memory = (events: Array<SessionEvent>) => ({
  append: (event: SessionEvent) => Effect.sync(() => void events.push(event))
})

/** The session of 10,000 messages, and its tokens. */
const recorded = Effect.gen(function* () {
  const events: Array<SessionEvent> = []
  const chat = yield* Chat.make({ log: memory(events), session: emptySession })
  yield* chat.append(drafts)
  return { session: events.reduce(applyEvent, emptySession), tokens: (yield* chat.usage).tokens }
})

/** Milliseconds from a message that reaches the threshold to its request, which the compression precedes. */
const pauseOf = Effect.fnUntraced(function* (session: Session, tokens: number, prepareAt: number) {
  const events: Array<SessionEvent> = []
  // The conversation is at 98 % of the threshold.
  const chat = yield* Chat.make({
    log: memory(events),
    session,
    settings: { model: "gemini-2.5-flash", window: Math.ceil(tokens / 0.49), threshold: 0.5, prepareAt }
  })
  yield* Stream.runDrain(chat.send("Go on."))
  while ((yield* chat.usage).preparation === "running") yield* Effect.sleep("10 millis")
  // Meanwhile the user types.
  yield* Effect.sleep("1 second")
  const message = `Look at this too. ${"It is long, and it matters. ".repeat(tokens / 200)}`
  const at = yield* Deferred.make<number>()
  left = () => Deferred.doneUnsafe(at, Effect.succeed(performance.now()))
  const start = performance.now()
  yield* Stream.runDrain(chat.send(message))
  if (!events.some(({ _tag }) => _tag === "Compressed")) throw new Error("nothing was compressed")
  return (yield* Deferred.await(at)) - start
}, Effect.scoped)

const { prepared, waiting } = await Effect.runPromise(
  Effect.gen(function* () {
    const { session, tokens } = yield* recorded
    const prepared: Array<number> = []
    for (let round = 0; round < rounds; round += 1) prepared.push(yield* pauseOf(session, tokens, 0.8))
    return { prepared, waiting: yield* pauseOf(session, tokens, 0) }
  }).pipe(Effect.scoped, Effect.provide(Offline.layerWithModel(model)))
)
const pause = median(prepared)
const rows: ReadonlyArray<Row> = [
  {
    what: `a message that compresses ${messages.toLocaleString("en")} messages, to its request, the snapshot prepared`,
    value: `${pause.toFixed(1)} ms (${prepared.map((one) => one.toFixed(1)).join(", ")})`,
    bound: "50 ms",
    ok: pause <= 50
  },
  { what: "the same, the snapshot not prepared", value: `${waiting.toFixed(0)} ms`, bound: undefined, ok: true }
]
console.log(`Node ${process.version}, ${process.arch}, ${cpus().length} cores; a model that takes ${seconds} s a call`)
print(rows)
