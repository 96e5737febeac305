const mode = process.env["MODE"]

/** Runs of a property in `npm run test:unit`, which has to be quick. */
const unitRuns = 30

/** The share of the runs of a property in `npm test` and `npm run test:e2e`. */
const restShare = 1 / 20

/**
 * The number of runs of a property: `full` in `npm run test:laws`, at most `inUnit` in the unit tier, and the first twentieth elsewhere,
 * but not fewer than in the unit tier. The cases of a tier are the same in every run. Also the size of an input, where a smaller one
 * shows the same.
 */
export const runsOf = (full: number, inUnit = unitRuns): number => {
  if (mode === "laws") return full
  return Math.min(full, mode === "unit" ? inUnit : Math.max(inUnit, Math.ceil(full * restShare)))
}

/** Every n-th of many similar steps, such as suspension points: all in the laws tier, few in the unit tier. */
export const strideOf = (inUnit: number, elsewhere: number): number =>
  mode === "laws" ? 1 : mode === "unit" ? inUnit : elsewhere

/** Whether this is the unit tier, which leaves out the few tests that need an input of full size or play sessions of many compressions. */
export const isUnitTier = mode === "unit"

/** The size of an input: `full` in every tier except the unit tier. For tests of a bound, or of time that grows as the input does. */
export const sizeOf = (full: number, inUnit: number): number => (isUnitTier ? inUnit : full)
