import { avoidableReads } from "./AvoidableReads.ts"
import { groundedEdits } from "./Edits.ts"
import { groundedActions } from "./GroundedActions.ts"
import { keptUserMessages } from "./KeptUserMessages.ts"
import type { Measure } from "./Measure.ts"
import { stateOfWork } from "./StateMeasure.ts"
import { waste } from "./Waste.ts"

/** The measures that `eval` runs, in the order of its columns. To add one, add a file beside this one and an entry here. */
export const measures: ReadonlyArray<Measure> = [
  groundedActions,
  groundedEdits,
  stateOfWork,
  keptUserMessages,
  avoidableReads,
  waste
]
