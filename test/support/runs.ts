/** Runs of a property in `npm run test:unit`, which has to be quick. */
const unitRuns = 50

/** The number of runs of a property: `full` in every tier except the unit tier. */
export const runsOf = (full: number): number => (process.env["MODE"] === "unit" ? Math.min(unitRuns, full) : full)
