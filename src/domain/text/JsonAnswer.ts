/** The JSON object that a model was asked for, out of whatever it wrapped it in. */

/**
 * The text from the first brace of an answer to the last: without the fence or the words that models put round an object.
 * Empty: there is none.
 */
export const jsonIn = (answer: string): string => {
  const from = answer.indexOf("{")
  return from < 0 ? "" : answer.slice(from, answer.lastIndexOf("}") + 1)
}
