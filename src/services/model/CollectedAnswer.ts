/** Checks a provider's stream of chunks, and collects the whole answer from it. */

import { Effect, Stream } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { InvalidResponseError, type ModelAnswer, type ModelChunk, ModelError } from "./Model.ts"

const unusable = (detail: string) => new ModelError({ reason: new InvalidResponseError({ detail }) })

/** The failure of an answer that did not end properly. */
export const unfinished = unusable("it ended without a finish reason")

/** The failure of an answer without anything, as local servers give it: LM Studio, for a prompt that is longer than its context. */
const nothing = unusable(
  "its server sent nothing; check that it has loaded the model, with a context length that the conversation fits"
)

/** The chunks of an answer. Fails at its end if no finish reason came. */
export const finished = <E, R>(chunks: Stream.Stream<ModelChunk, E, R>): Stream.Stream<ModelChunk, E | ModelError, R> =>
  Stream.suspend(() => {
    let isFinished = false
    let isBegun = false
    return chunks.pipe(
      Stream.tap(({ finishReason, parts }) =>
        Effect.sync(() => {
          isFinished ||= finishReason !== undefined
          isBegun ||= parts.length > 0
        })
      ),
      Stream.concat(Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(isBegun ? unfinished : nothing))))
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
