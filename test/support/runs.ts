const isUnit = process.env["MODE"] === "unit"

/** Runs of a property in `npm run test:unit`, which has to be quick. */
const unitRuns = 20

/** The number of runs of a property: `full` in every tier except the unit tier. */
export const runsOf = (full: number, inUnit = unitRuns): number => (isUnit ? Math.min(inUnit, full) : full)

/** The size of an input: `full` in every tier except the unit tier. For tests of a bound, or of time that grows as the input does. */
export const sizeOf = (full: number, inUnit: number): number => (isUnit ? inUnit : full)
