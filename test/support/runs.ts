const isUnit = process.env["MODE"] === "unit"

/** Runs of a property in `npm run test:unit`, which has to be quick. */
const unitRuns = 20

/** The number of runs of a property: `full` in every tier except the unit tier. */
export const runsOf = (full: number, inUnit = unitRuns): number => (isUnit ? Math.min(inUnit, full) : full)

/** The share of the runs of costly properties outside of `npm run test:laws`, which has all of them. */
const restShare = 1 / 3

/** The runs of a property that plays whole conversations: all in the laws tier, the first third in others. */
export const scriptRuns = (full: number, inUnit: number): number =>
  runsOf(process.env["MODE"] === "laws" ? full : Math.ceil(full * restShare), inUnit)

/** The size of an input: `full` in every tier except the unit tier. For tests of a bound, or of time that grows as the input does. */
export const sizeOf = (full: number, inUnit: number): number => (isUnit ? inUnit : full)
