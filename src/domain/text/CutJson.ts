/** Mends a JSON document of a list whose end is missing, as a crash leaves it. */

// One character each: a pattern of whole strings needs a stack as long as the longest of them.
const tokens = /\\[^]|["[\]{}]/g

/** Lists of messages stand at the top of a document, or in its object. */
const maxListDepth = 2

/** Returns the text up to the last whole object of its list, closed; undefined when it has none. */
export const mendedJson = (text: string): string | undefined => {
  const open: Array<string> = []
  let end = 0
  let closing = ""
  let isQuoted = false
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (token === "[" || token === "{") open.push(token)
    else if (token === "]" || token === "}") {
      open.pop()
      if (token === "}" && open.at(-1) === "[" && open.length <= maxListDepth) {
        end = index + 1
        closing = open
          .map((one) => (one === "[" ? "]" : "}"))
          .reverse()
          .join("")
      }
    }
  }
  return end === 0 || open.length === 0 ? undefined : text.slice(0, end) + closing
}
