import { firstUnits } from "../text/Bytes.ts"

/** Texts of several tasks that are given to agents in one call. */

/** Stands in a task of a chain for the answer to the task before. */
export const previousPlaceholder = "{previous}"

/** A task of a chain, with the answer to the task before in place of the placeholder. */
export const chainedTask = (task: string, previous: string): string =>
  task.replaceAll(previousPlaceholder, () => previous)

/** Characters of all results together: below the length at which a tool result is shortened. */
const maxResultChars = 36_000

/** The results, numbered in the order of the tasks. Each gets an equal share of the room. */
export const numberedResults = (results: ReadonlyArray<string>): string => {
  const room = Math.floor(maxResultChars / Math.max(1, results.length))
  return results.map((result, index) => `${index + 1}. ${bounded(result, room)}`).join("\n\n")
}

const bounded = (text: string, room: number): string => {
  const shown = firstUnits(text, room)
  return shown.length === text.length ? text : `${shown}\n(${text.length - shown.length} more characters)`
}
