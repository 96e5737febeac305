import { assert, describe, it } from "@effect/vitest"
import { type PlantedFact, plantedRounds, plantFacts } from "../../../src/domain/evaluation/PlantedFacts.ts"
import { countGrades, gradesIn, type GradedFact } from "../../../src/domain/evaluation/PlantedGrades.ts"
import { runsOf } from "../../support/runs.ts"

const seeds = Array.from({ length: runsOf(30, 5) }, (_, seed) => seed)

describe("planted facts", () => {
  it("are the same for the same seed, and others for another", () => {
    for (const seed of seeds) {
      const made = JSON.stringify(plantFacts(seed))
      assert.strictEqual(JSON.stringify(plantFacts(seed)), made)
      assert.notStrictEqual(JSON.stringify(plantFacts(seed + 1)), made)
    }
  })

  it("stand in the round that states them, and in none before", () => {
    for (const seed of seeds) {
      const { facts, rounds } = plantFacts(seed)
      const texts = rounds.map((drafts) => JSON.stringify(drafts.map(({ content }) => content)))
      assert.strictEqual(rounds.length, plantedRounds)
      // Most of a round is other work.
      for (const drafts of rounds) assert.isAtLeast(drafts.length, 12)
      for (const { from, text } of facts) {
        assert.strictEqual(
          texts.findIndex((round) => round.includes(JSON.stringify(text).slice(1, -1))),
          from,
          text
        )
      }
    }
  })

  it("are stated in the first round, too", () => {
    for (const seed of seeds) {
      const kinds = new Set(plantFacts(seed).facts.flatMap(({ from, kind }) => (from === 0 ? [kind] : [])))
      assert.strictEqual(kinds.size, 8)
    }
  })
})

describe("grades", () => {
  const rule = {
    kind: "constraint",
    from: 0,
    text: "Never change the parser.",
    question: {
      kind: "constraint",
      subject: "Never change the parser.",
      expected: "said",
      earlier: [],
      entry: "e1" as never
    }
  } satisfies PlantedFact
  const value: PlantedFact = {
    kind: "value",
    from: 0,
    text: "wait: 30",
    question: { kind: "value", subject: "wait", expected: "30", earlier: ["20"], entry: "e1" as never }
  }
  const decision: PlantedFact = {
    kind: "decision",
    from: 0,
    text: "the red queue instead of blue",
    question: { ...rule.question, kind: "decision", subject: "the red queue instead of blue" }
  }
  const canary: PlantedFact = { kind: "instruction", from: 0, text: "zqbaqz" }
  const secret: PlantedFact = { kind: "secret", from: 0, text: "xyz_0123456789abcdefghijklmnopqrst" }
  const cases: ReadonlyArray<
    readonly [fact: PlantedFact, context: string, recalled: ReadonlyArray<string>, grade: GradedFact["grade"]]
  > = [
    [rule, '<user_words entry="e1">Go on. Never change\nthe parser.</user_words>', [], "kept"],
    [rule, "The parser stays.", ["… Never change the parser. …"], "reachable"],
    [rule, "The parser stays.", ["another"], "lost"],
    [value, "- wait is 30", [], "kept"],
    [value, "- wait: 20", ["wait: 30"], "stale"],
    [decision, "I use `the red queue` instead of blue.", [], "kept"],
    [decision, "queues: red blue", [], "lost"],
    [canary, "names: zqbaqz", [], "invented"],
    [canary, "nothing", ["zqbaqz"], "absent"],
    [secret, "the token ends with ijklmnopqrst", [], "invented"],
    [secret, "[redacted: a token]", [], "absent"]
  ]
  for (const [fact, context, recalled, grade] of cases) {
    it(`call ${fact.kind} ${grade} in ${JSON.stringify(context)}`, () => {
      const graded = [gradesIn({ text: context, cwd: "/work/app", recalled }, [fact])(fact)]
      assert.deepStrictEqual(graded, [{ fact, grade }])
      assert.strictEqual(countGrades(graded)[fact.kind].planted, 1)
    })
  }
})
