/** The model that a replay asks, which gives the recorded answers. */

import { Context, Effect, Layer, Semaphore, Stream } from "effect"
import { isThought, type Part, plainText } from "../../domain/content/Content.ts"
import {
  recordedTurns,
  type RecordedTurn,
  RequestPrefixes,
  type RequestSize,
  tokensOf
} from "../../domain/evaluation/Replay.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import type { Usage } from "../../domain/tokens/Tokens.ts"
import { InvalidRequestError, Model, type ModelChunk, ModelError } from "../model/Model.ts"
import { estimateContents } from "../tokens/Calibrations.ts"
import type { LoadOptions } from "../transcripts/LoadedTranscript.ts"
import type { TranscriptError } from "../transcripts/TranscriptError.ts"
import { Transcripts } from "../transcripts/Transcripts.ts"

const refuse = (detail: string) => new ModelError({ reason: new InvalidRequestError({ detail }) })

/** A plain text arrives line by line, like a model's stream; any other part arrives whole. */
const linesOf = (part: Part): ReadonlyArray<Part> =>
  part.text === undefined || Object.keys(part).length > 1
    ? [part]
    : part.text.split(/(?<=\n)/).map((line) => ({ text: line }))

/**
 * A model that returns recorded answers to any request, so that a conversation can be replayed without an API key.
 * Each answer is returned once; an answer that was not read to its end is returned again. It counts tokens as the
 * estimator does, and reports the real size of each request as its usage, so that a chat learns correct numbers. It
 * writes no summaries.
 */
export class ReplayModel extends Context.Service<
  ReplayModel,
  {
    /** The model for chats. `stream` answers; `generate` refuses, so that no compression uses up an answer. */
    readonly model: Model["Service"]
    /** The exchange of the next answer; undefined when the recording has ended. */
    readonly next: Effect.Effect<RecordedTurn | undefined>
    /** The user's words before the next answer, as a prompt can show them; empty when the user wrote none. */
    readonly prompt: Effect.Effect<string>
    /** Skips the next answer. */
    readonly skip: Effect.Effect<void>
    /** The sizes of all requests so far, in order. */
    readonly requests: Effect.Effect<ReadonlyArray<RequestSize>>
    /** The usage that was reported for each of them. */
    readonly usages: Effect.Effect<ReadonlyArray<Usage>>
  }
>()("palimpsest/services/evaluation/ReplayModel") {
  /** Makes a model for these exchanges. `piecesOf`: the pieces in which a part of an answer arrives. Default: whole. `isPaid`: answers cost what their model costs. */
  static readonly make = Effect.fn("ReplayModel.make")(function* (
    turns: ReadonlyArray<RecordedTurn>,
    piecesOf: (part: Part) => ReadonlyArray<Part> = (part) => [part],
    { isPaid = true } = {}
  ): Effect.fn.Return<ReplayModel["Service"]> {
    const requests = new RequestPrefixes()
    const usages: Array<Usage> = []
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
        answer: yield* Work.run(tokensOf(parts.filter((part) => !isThought(part)))),
        thoughts: yield* Work.run(tokensOf(parts.filter(isThought))),
        cached: prefix
      }
      usages.push(usage)
      const paid = isPaid ? usage : { ...usage, cost: 0 }
      return [
        ...parts.flatMap(piecesOf).map((part) => ({ parts: [part] })),
        { parts: [], finishReason: "STOP", usage: paid }
      ]
    })

    const model = Model.of({
      generate: () => Effect.fail(refuse("a recording writes no summaries")),
      stream: (request) =>
        Effect.gen(function* () {
          const turn = yield* next
          if (turn === undefined) {
            const count = turns.length === 1 ? "its one answer was" : `all ${turns.length} answers were`
            return yield* refuse(`the recording has ended, ${count} returned; restart it to replay them`)
          }
          const size = yield* measuring.withPermit(Work.run(requests.add(request.contents)))
          return Stream.onEnd(Stream.fromIterable(yield* chunks(turn.answer.parts, size)), advance)
        }).pipe(Stream.unwrap),
      countTokens: Effect.fn("Model.countTokens")(estimateContents)
    })

    return {
      model,
      next,
      prompt: Effect.map(next, (turn) => (turn === undefined ? "" : plainText({ role: "user", parts: turn.message }))),
      skip: advance,
      requests: Effect.sync(() => [...requests.sizes]),
      usages: Effect.sync(() => [...usages])
    }
  })

  /** The model of a recorded file, for a chat that a user steps through: `chat --model replay:FILE`. */
  static readonly layer = (
    path: string,
    options?: LoadOptions
  ): Layer.Layer<Model | ReplayModel, TranscriptError, Transcripts> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const transcripts = yield* Transcripts
        const { session } = yield* transcripts.load(path, options)
        const replay = yield* ReplayModel.make(recordedTurns(session.conversation), linesOf, { isPaid: false })
        return Context.make(Model, replay.model).pipe(Context.add(ReplayModel, replay))
      })
    )
}
