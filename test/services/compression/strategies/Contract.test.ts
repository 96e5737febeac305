import { describe, it } from "@effect/vitest"
import { Arbitrary } from "effect"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import { strategyContract } from "../../../../src/layers/testing/StrategyContract.ts"
import { runners } from "../../../../src/services/compression/strategies/StrategyRunners.ts"
import { openingDrafts, talks } from "../../../support/generate.ts"
import { runsOf } from "../../../support/runs.ts"

/** Every built-in strategy passes the contract that strategies of other programs are tested with. */

for (const runner of Object.values(runners)) {
  strategyContract(
    { describe, it },
    {
      runner,
      tempStore: MemoryTempStore.layer,
      runs: runsOf(60, 6),
      conversations: Arbitrary.map(talks, openingDrafts)
    }
  )
}
