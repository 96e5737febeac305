import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Random } from "effect"
import { Summarizer } from "../../src/services/compression/summary/Summarizer.ts"
import { lawOfPlayed, notices, worldOf } from "../support/generate.ts"
import { sameAgain } from "./sameInSameOut.ts"

/** The check of law 7 notices what breaks it. */

const law = lawOfPlayed(sameAgain)

const summarizing = (change: (text: string) => Effect.Effect<string>) =>
  worldOf({
    summarizer: Layer.effect(
      Summarizer,
      Effect.map(Summarizer, (real) => ({
        ask: () => Effect.die("unexpected call"),
        count: () => Effect.die("unexpected call"),
        summarize: Effect.fnUntraced(function* (request) {
          const summary = yield* real.summarize(request)
          return { ...summary, text: yield* change(summary.text) }
        })
      }))
    ).pipe(Layer.provide(Summarizer.layerExtractive))
  })

describe("law 7: same in, same out", () => {
  describe("the checks detect", () => {
    it.effect("a summarizer with random output", () =>
      Effect.gen(function* () {
        const world = summarizing((text) =>
          Effect.map(Random.nextInt, (n) =>
            text.replaceAll("- none", `- ${n % 2 === 0 ? "even" : "odd"} ${"so ".repeat(Math.abs(n % 7))}`)
          )
        )
        assert.isTrue(yield* notices(law, world))
      })
    )
  })
})
