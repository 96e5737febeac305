/** How the process of an agent ended, in words for the agent that started it. */

/** Returns the last lines of a process's stderr. */
export const lastLines = (text: string): string => {
  const last = text.trim().split("\n").slice(-5).join("\n").trim()
  return last === "" ? "" : `; the last lines of its error output: ${last}`
}

const signals: ReadonlyMap<number, string> = new Map([
  [130, "it was interrupted"],
  [134, "it crashed"],
  [137, "it was killed, possibly because memory ran out"],
  [139, "it crashed"],
  [143, "it was terminated"]
])

/** Describes how a program ended. */
export const exitText = (program: string, code: number): string => {
  const why = signals.get(code)
  return `${program} ended with exit status ${code}${why === undefined ? "" : ` (${why})`}`
}
