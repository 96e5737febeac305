import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { viewSizes } from "../../../src/domain/evaluation/Compactions.ts"
import { inspect } from "../../../src/domain/evaluation/Inspection.ts"
import { Survey } from "../../../src/domain/evaluation/Survey.ts"
import { emptySession, type SessionEvent, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { histories } from "../../../src/layers/testing/SessionHistories.ts"
import { lawOfPlayed, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { runsOf } from "../../support/runs.ts"

const about = { model: "gemini-2.5-pro", cwd: "/home/user/work" }

/** What a survey finds, and what holding everything does: without the facts, which a survey does not look for. */
const both = (history: ReadonlyArray<SessionEvent>) => {
  // A log with branches is never surveyed.
  const events = history.filter(({ _tag }) => _tag !== "Branched")
  const survey = new Survey()
  for (const event of events) survey.add(event, 100)
  const session = events.reduce(applyEvent, emptySession)
  const found = Work.runSync(survey.finish(about))
  const held = Work.runSync(inspect(session.conversation, { ...about, events }))
  return {
    survey,
    session,
    found: { ...found.inspection, sizes: Array.from(found.sizes) },
    held: {
      ...held,
      compactions: held.compactions.map((one) => ({ ...one, facts: null })),
      sizes: [...viewSizes(session.conversation)]
    }
  }
}

describe("a survey", () => {
  it("equals the report with everything in memory where there is nothing", () => {
    const { found, held } = both([])
    assert.deepStrictEqual(found, held)
  })

  it.effect.prop(
    "equals the report with everything in memory, after any history",
    [histories],
    ([events]) =>
      Effect.sync(() => {
        const { found, held } = both(events)
        assert.deepStrictEqual(found, held)
      }),
    { arbitrary: { runs: runsOf(1_000) } }
  )

  const law = lawOfPlayed(({ events }) =>
    Effect.sync(() => {
      const { found, held, session, survey } = both(events)
      assert.deepStrictEqual(found, held)
      assert.deepStrictEqual(survey.shown?.conversation, session.conversation)
      return undefined
    })
  )
  it.effect.prop(
    "equals the report with everything in memory, for any conversation",
    [scripts],
    ([script]) => property(law, worldOf())(script),
    { arbitrary: thousand("survey", 200) }
  )
})
