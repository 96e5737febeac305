import { Effect } from "effect"
import { entryId, sequenceOf, view, type ViewItem } from "../../src/domain/conversation/Conversation.ts"
import { projectMessages as realProject } from "../../src/domain/conversation/Projection.ts"
import { lawOfPlayed, notices, property, swappedTalks, talks, thousand, worldOf } from "../support/generate.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { isLegal, partsNoPair, type Project } from "./validByConstruction.ts"

/** Law 5 for messages in the wrong role, and that its checks notice what breaks it. */

describe("law 5: valid by construction", () => {
  it.effect.prop(
    "calls and responses in the wrong role keep the request valid",
    [swappedTalks],
    ([script]) => property(lawOfPlayed(...isLegal(realProject)), worldOf())(script),
    { arbitrary: thousand("law 5, roles", 200) }
  )

  describe("the checks detect", () => {
    const raw: Project = (conversation) =>
      view(conversation).map(({ entry }) => ({ entry: entry.id, content: entry.content }))

    it.effect("a projection without repairs", function* () {
      assert.isTrue(yield* notices(lawOfPlayed(...isLegal(raw)), worldOf(), talks))
    })

    it.effect("a patch that cuts through a pair", function* () {
      const world = worldOf({
        compression: (real) => ({
          ...real,
          compress: (request) =>
            Effect.map(real.compress(request), (ended) => {
              const { outcome } = ended
              if (outcome._tag !== "Compressed" || outcome.patch.drop === undefined) return ended
              const { from, to } = outcome.patch.drop
              const next = view(request.conversation).find(
                (item: ViewItem) => sequenceOf(item.entry.id) === sequenceOf(to) + 1
              )
              const drop = { from, to: next === undefined ? to : entryId(sequenceOf(to) + 1) }
              return { ...ended, outcome: { ...outcome, patch: { ...outcome.patch, drop } } }
            })
        })
      })
      assert.isTrue(yield* notices(lawOfPlayed(partsNoPair), world))
    })
  })
})
