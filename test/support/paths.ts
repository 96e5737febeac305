import path from "node:path"

/** The root folder of the project. */
export const root = path.resolve(import.meta.dirname, "../..")
