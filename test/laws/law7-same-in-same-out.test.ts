import { Effect, Random } from "effect"
import { changedSummaries, lawOfPlayed, notices, worldOf } from "../support/generate.ts"
import { assert, it } from "../support/vitest.ts"
import { sameAgain } from "./sameInSameOut.ts"

/** The check of law 7 notices what breaks it. */

const law = lawOfPlayed(sameAgain)

it.effect("law 7: same in, same out the checks detect a summarizer with random output", function* () {
  const summarizer = changedSummaries((text) =>
    Effect.map(Random.nextInt, (n) =>
      text.replaceAll("- ", `- ${n % 2 === 0 ? "even" : "odd"} ${"so ".repeat(Math.abs(n % 7))}`)
    )
  )
  assert.isTrue(yield* notices(law, worldOf({ summarizer })))
})
