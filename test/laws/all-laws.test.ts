import { Arbitrary, Cause, Effect } from "effect"
import { projectMessages } from "../../src/domain/conversation/Projection.ts"
import {
  type Check,
  type Judge,
  judge,
  lawOfPlayed,
  nativeScripts,
  property,
  type Script,
  scripts,
  talks,
  thousand,
  worldOf
} from "../support/generate.ts"
import { runsOf } from "../support/runs.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { progress, sendsLess } from "./alwaysProgress.ts"
import { noForgedVoice, readsAsWritten } from "./noForgedVoice.ts"
import { noSnapshotIsLost, nothingIsLost } from "./nothingIsLost.ts"
import { sameAgain } from "./sameInSameOut.ts"
import { isLegal, keepsTheExchange, keepsTheLegal, keepsThePairs, partsNoPair } from "./validByConstruction.ts"

/** Laws 1 and 4 to 7 for the real services: each script is played once and judged by all laws. */

const world = worldOf()

const crash = (defect: unknown) => Cause.pretty(Cause.die(defect))

/** The same, with a crash of the check for a violation. */
const caught = ([check, ...when]: Judge): Judge => [
  (...args) => Effect.catchDefect(check(...args), (defect) => Effect.succeed(crash(defect))),
  ...when
]

/** Plays a thousand scripts, and gives the laws that were broken with what the first break was. */
const brokenLaws = (seed: string, from: Arbitrary.Arbitrary<Script>, laws: Readonly<Record<string, Judge>>) =>
  Effect.gen(function* () {
    const judges = new Map(Object.entries(laws).map(([name, judged]) => [name, caught(judged)]))
    const broken = new Map<string, string>()
    const judgeAll = (script: Script) =>
      Effect.scoped(judge(world, script, judges)).pipe(
        // A script that cannot be played breaks every law.
        Effect.catchDefect((defect) =>
          Effect.succeed(new Map([...judges.keys()].map((name) => [name, crash(defect)])))
        ),
        Effect.map((found) => {
          for (const [name, violation] of found) {
            broken.set(name, violation)
            judges.delete(name)
          }
          return judges.size > 0
        })
      )
    yield* Arbitrary.checkEffect(from, judgeAll, { ...thousand(seed), maxShrinks: 0 })
    return broken
  })

/** Judges the same scripts again by one law, to find the smallest one that breaks it. */
const judgeAlone = (seed: string, from: Arbitrary.Arbitrary<Script>, judged: Judge) => {
  const holds = property(lawOfPlayed(...caught(judged)), world)
  return Arbitrary.checkEffect(
    from,
    (script) => Effect.catchDefect(holds(script), (defect) => Effect.fail(crash(defect))),
    thousand(seed)
  )
}

type Laws = Readonly<Record<string, Judge>>

/**
 * Makes one test for each law; the first of them plays the scripts for all. `whenPlayed` makes tests that want the scripts
 * to have been played.
 */
const testLaws = (
  seed: string,
  from: Arbitrary.Arbitrary<Script>,
  laws: Laws,
  whenPlayed: (played: Effect.Effect<unknown>) => void = () => undefined
): void => {
  const brokenOnes = Effect.runSync(Effect.cached(brokenLaws(seed, from, laws)))
  it.effect.each(Object.entries(laws))("%s", function* ([name, judged]) {
    const violation = (yield* brokenOnes).get(name)
    if (violation === undefined) return
    const alone = Arbitrary.formatCheckFailure(yield* judgeAlone(seed, from, judged))
    assert.fail(`${name}, seed "${seed}": ${alone ?? `only beside the other laws: ${violation}`}`)
  })
  whenPlayed(brokenOnes)
}

describe("a script with actions in any order", () => {
  const ends = new Map<string, number>()
  const counting =
    (check: Check): Check =>
    (played, ...more) => {
      for (const { action, outcome } of played.moments) {
        const end = outcome?._tag ?? action
        ends.set(end, (ends.get(end) ?? 0) + 1)
      }
      return check(played, ...more)
    }

  testLaws(
    "all laws",
    scripts,
    {
      "law 1: recalls every part and every dropped range, in memory and after a restart": nothingIsLost,
      "law 1: recalls snapshots that compressions inserted": noSnapshotIsLost,
      "law 4: a compression gains what it reports, or changes nothing and gives the reason": [progress, "again"],
      "law 4: the request gets smaller, too": [counting(sendsLess)],
      "law 5: every reachable state is sent as a valid conversation": isLegal(projectMessages),
      "law 5: a compression separates no call from its response": [partsNoPair],
      "law 6: only the user's words are shown as the user's, with summaries from other programs in the conversation": [
        noForgedVoice
      ],
      "law 7: replaying a conversation gives the same log, outcomes and requests": [sameAgain]
    },
    (played) =>
      it.effect("the generated cases cover every outcome", () =>
        Effect.map(played, () => {
          for (const end of [
            // Rare: large results of which some are answered.
            ...(runsOf(500, 5) === 500 ? ["ContentTruncated"] : []),
            "FailedInflatedTokenCount",
            "Noop",
            "append",
            "undo",
            "redo",
            "reopen",
            "branch",
            "branch with a summary"
          ]) {
            assert.isAbove(ends.get(end) ?? 0, 0, end)
          }
          assert.isAbove(ends.get("Compressed") ?? 0, runsOf(500, 5))
        })
      )
  )
})

describe("a conversation that began here", () => {
  testLaws("all laws, native", nativeScripts, {
    "law 6: only the user's words are shown as the user's; no text closes a section or becomes a constraint": [
      noForgedVoice
    ]
  })
})

describe("a conversation that was imported", () => {
  testLaws("all laws, imported", talks, {
    "law 5: a valid conversation is sent unchanged": [keepsTheLegal(projectMessages)],
    "law 5: a valid exchange is sent unchanged, whatever came before": [keepsTheExchange(projectMessages)],
    "law 5: a response is sent with the call that it belongs to": [keepsThePairs(projectMessages)],
    "law 6: a snapshot is parsed as it was written": [readsAsWritten]
  })
})
