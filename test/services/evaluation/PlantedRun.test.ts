import { Effect } from "effect"
import type { PlantedKind } from "../../../src/domain/evaluation/PlantedFacts.ts"
import type { GradedFact } from "../../../src/domain/evaluation/PlantedGrades.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { plantedChecks, runPlanted } from "../../../src/services/evaluation/PlantedRun.ts"
import { isUnitTier, runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What a snapshot that code writes carries on over twenty compressions, with nothing else kept. */

const seeds = [10, 9, 1, 2, 3, 4, 5, 6, 7, 8].slice(0, runsOf(10, 2))
const play = (seed: number) =>
  runPlanted({ seed, strategy: "palimpsest", budget: 4_000, preserve: 0 }).pipe(Effect.provide(Offline.layer))

const played = Effect.runSync(Effect.cached(Effect.forEach(seeds, play)))

/** The facts of these kinds with a grade, in the words of a failed assertion. */
const failed = (kinds: ReadonlyArray<PlantedKind>, grades: ReadonlyArray<GradedFact["grade"]>) =>
  Effect.map(played, (runs) =>
    runs.flatMap((checks, index) =>
      checks.flatMap(({ compressions, graded }) =>
        graded
          .filter(({ fact, grade }) => kinds.includes(fact.kind) && grades.includes(grade))
          .map(({ fact, grade }) => `seed ${seeds[index]}, after ${compressions}: ${fact.kind} ${grade}: ${fact.text}`)
      )
    )
  )

describe.skipIf(isUnitTier)("planted facts", () => {
  it.effect("are graded after 1, 3, 10 and 20 compressions, the same for the same seed", function* () {
    const [first = []] = yield* played
    assert.deepStrictEqual(
      first.map(({ compressions }) => compressions),
      plantedChecks
    )
    assert.deepStrictEqual(yield* play(seeds[0] ?? 1), first)
  })
  it.effect("no constraint is lost", () =>
    Effect.map(failed(["constraint"], ["lost"]), (all) => assert.deepStrictEqual(all, []))
  )
  it.effect("no secret is in a snapshot", () =>
    Effect.map(failed(["secret"], ["invented"]), (all) => assert.deepStrictEqual(all, []))
  )
  it.effect("no open item is lost", () =>
    Effect.map(failed(["open item"], ["lost"]), (all) => assert.deepStrictEqual(all, []))
  )
  it.effect("no instruction of a tool's output is in a snapshot", () =>
    Effect.map(failed(["instruction"], ["invented"]), (all) => assert.deepStrictEqual(all, []))
  )
})
