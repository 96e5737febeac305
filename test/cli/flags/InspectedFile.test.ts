import { Effect } from "effect"
import { waitsFor } from "../../../src/cli/flags/InspectedFile.ts"
import { freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { HandleIndex } from "../../../src/services/session/EntryBuilder.ts"
import { lawOfPlayed, policyOf, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { it } from "../../support/vitest.ts"

const law = lawOfPlayed(({ moments }, script) =>
  Effect.gen(function* () {
    const compression = yield* Compression
    for (const { after } of moments) {
      for (const limit of [100, 2_000, 1_000_000]) {
        const policy = { ...policyOf(script), limit: TokenCount.make(limit) }
        const request = { conversation: after.conversation, memory: freshMemory, policy, held: new HandleIndex() }
        const automatic = yield* compression.plan({ ...request, forced: false })
        const forced = yield* compression.plan({ ...request, forced: true })
        const expected = automatic._tag === "Skip" ? automatic.reason : null
        const waits = waitsFor(forced, policy.threshold * policy.limit)
        if (waits !== expected) return `waits for ${waits}, the planner for ${expected}`
      }
    }
    return undefined
  })
)
it.effect.prop(
  "the next compression waits for the same conditions as the planner, though it is forced",
  [scripts],
  ([script]) => property(law, worldOf())(script),
  { arbitrary: thousand("inspect, next", 60) }
)
