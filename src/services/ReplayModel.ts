import { Context, Effect, Layer, Semaphore, Stream } from "effect"
import { isThought, outputText, type Part, plainText } from "../domain/Content.ts"
import { recorded, type RequestSize, Requests, type Turn } from "../domain/Replay.ts"
import { partTokens } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { estimate } from "./Calibrations.ts"
import { InvalidRequestError, Model, type ModelChunk, ModelError } from "./Model.ts"
import { type LoadOptions, type TranscriptError, Transcripts } from "./Transcripts.ts"

const refuse = (detail: string) => new ModelError({ reason: new InvalidRequestError({ detail }) })

/** A plain text comes line by line, as a model's would; anything else whole. */
const pieces = (part: Part): ReadonlyArray<Part> =>
  part.text === undefined || Object.keys(part).length > 1
    ? [part]
    : part.text.split(/(?<=\n)/).map((line) => ({ text: line }))

const tokensOf = Effect.fnUntraced(function* (parts: ReadonlyArray<Part>) {
  let tokens = 0
  for (const part of parts) tokens += yield* Work.run(partTokens(part, outputText(part)))
  return tokens
})

/**
 * A model that answers what was recorded, whatever it is asked: a conversation can be held again without a key. Each answer
 * is given once; one that was not taken to its end is given again. It counts as the estimator does, and reports as its
 * usage what a request really had, so that a chat learns true numbers. It writes no summaries.
 */
export class ReplayModel extends Context.Service<
  ReplayModel,
  {
    /** What chats ask. `stream` answers; `generate` refuses, so that no compression uses up an answer. */
    readonly model: Model["Service"]
    /** The exchange whose answer comes next; undefined: the recording has ended. */
    readonly next: Effect.Effect<Turn | undefined>
    /** The words that were said where the next answer comes, as a prompt can show them; empty where no person spoke. */
    readonly prompt: Effect.Effect<string>
    /** Leaves the next answer out. */
    readonly skip: Effect.Effect<void>
    /** Every request so far, in the order in which they came. */
    readonly requests: Effect.Effect<ReadonlyArray<RequestSize>>
  }
>()("palimpsest/services/ReplayModel") {
  /** A model for these exchanges. */
  static readonly make = Effect.fn("ReplayModel.make")(function* (
    turns: ReadonlyArray<Turn>
  ): Effect.fn.Return<ReplayModel["Service"]> {
    const requests = new Requests()
    const measuring = yield* Semaphore.make(1)
    let at = 0
    const advance = Effect.sync(() => {
      at += 1
    })
    const next = Effect.sync(() => turns[at])

    const chunks = Effect.fnUntraced(function* (
      parts: ReadonlyArray<Part>,
      { prefix, tokens }: RequestSize
    ): Effect.fn.Return<ReadonlyArray<ModelChunk>> {
      const usage = {
        prompt: tokens,
        answer: yield* tokensOf(parts.filter((part) => !isThought(part))),
        thoughts: yield* tokensOf(parts.filter(isThought)),
        cached: prefix
      }
      return [...parts.flatMap(pieces).map((part) => ({ parts: [part] })), { parts: [], finishReason: "STOP", usage }]
    })

    const model = Model.of({
      generate: () => Effect.fail(refuse("a recording writes no summaries; use --summarizer extractive")),
      stream: (request) =>
        Effect.gen(function* () {
          const turn = yield* next
          if (turn === undefined) {
            const count = turns.length === 1 ? "its one answer was" : `all ${turns.length} answers were`
            return yield* refuse(`the recording has ended, ${count} given; begin it anew to hear them again`)
          }
          const size = yield* measuring.withPermit(Work.run(requests.add(request.contents)))
          return Stream.onEnd(Stream.fromIterable(yield* chunks(turn.answer.parts, size)), advance)
        }).pipe(Stream.unwrap),
      countTokens: Effect.fn("Model.countTokens")(estimate)
    })

    return {
      model,
      next,
      prompt: Effect.map(next, (turn) => (turn === undefined ? "" : plainText({ role: "user", parts: turn.message }))),
      skip: advance,
      requests: Effect.sync(() => [...requests.sizes])
    }
  })

  /** The model of a recorded file, for a chat that a person steps through: `chat --model replay:FILE`. */
  static readonly layer = (
    path: string,
    options?: LoadOptions
  ): Layer.Layer<Model | ReplayModel, TranscriptError, Transcripts> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const transcripts = yield* Transcripts
        const { session } = yield* transcripts.load(path, options)
        const replay = yield* ReplayModel.make(recorded(session.conversation))
        return Context.make(Model, replay.model).pipe(Context.add(ReplayModel, replay))
      })
    )
}
