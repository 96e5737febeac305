const mode = process.env["MODE"]

/**
 * The number of runs of a property: `full` in `npm run test:laws`, and the first `quick` of them elsewhere. The cases of a tier are the
 * same in every run. Also the size of an input, where a smaller one shows the same.
 */
export const runsOf = (full: number, quick = 30): number => (mode === "laws" ? full : Math.min(full, quick))

/** Every n-th of many similar steps, such as suspension points, and all of them in the laws tier. */
export const strideOf = (stride: number): number => (mode === "laws" ? 1 : stride)

/** Whether this is the unit tier, which leaves out the few tests that need an input of full size or play sessions of many compressions. */
export const isUnitTier = mode === "unit"

/** The size of an input: `full` in the laws tier. For tests of a bound, or of time that grows as the input does. */
export const sizeOf = (full: number, quick: number): number => (mode === "laws" ? full : quick)
