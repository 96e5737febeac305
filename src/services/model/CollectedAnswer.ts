import { Effect, Stream } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { InvalidResponseError, type ModelAnswer, type ModelChunk, ModelError } from "./Model.ts"

/** What every provider's stream of chunks has to be, and the whole answer that it makes. */

/** The failure of an answer that did not end properly. */
export const unfinished = new ModelError({
  reason: new InvalidResponseError({ detail: "it ended without a finish reason" })
})

/** The chunks of an answer. Fails at its end if no finish reason came. */
export const finished = <E, R>(chunks: Stream.Stream<ModelChunk, E, R>): Stream.Stream<ModelChunk, E | ModelError, R> =>
  Stream.suspend(() => {
    let isFinished = false
    return chunks.pipe(
      Stream.tap(({ finishReason }) => Effect.sync(() => (isFinished ||= finishReason !== undefined))),
      Stream.concat(Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(unfinished))))
    )
  })

/** Whether a part has nothing but a text, of the same kind as the part before. */
const continues = (before: Part | undefined, part: Part): before is Part =>
  before?.text !== undefined &&
  part.text !== undefined &&
  before.thought === part.thought &&
  [before, part].every((each) => Object.keys(each).every((key) => key === "text" || key === "thought"))

/** The whole answer of a stream. Pieces of text in a row become one part. */
export const collect = <R>(
  answer: Stream.Stream<ModelChunk, ModelError, R>
): Effect.Effect<ModelAnswer, ModelError, R> =>
  Effect.map(Stream.runCollect(answer), (all) => {
    const parts: Array<Part> = []
    for (const part of all.flatMap((chunk) => chunk.parts)) {
      const last = parts.at(-1)
      if (continues(last, part)) parts[parts.length - 1] = { ...last, text: `${last.text}${part.text}` }
      else parts.push(part)
    }
    return {
      content: { role: "model", parts },
      finishReason: all.findLast(({ finishReason }) => finishReason !== undefined)?.finishReason ?? "",
      usage: all.findLast(({ usage }) => usage !== undefined)?.usage ?? null
    }
  })
