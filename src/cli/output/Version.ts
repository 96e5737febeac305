/** The version of this program, which the build puts in. */

/** Defined by scripts/build.mjs. */
declare const PALIMPSEST_VERSION: string | undefined
/** The version of this program. */
export const version = typeof PALIMPSEST_VERSION === "string" ? PALIMPSEST_VERSION : "0.0.0-source"
