/** Returns the texts between pairs of a tag, without the blanks around them. A tag that is not closed begins none. */
export const textsBetween = (text: string, tag: string): ReadonlyArray<string> => {
  const [open, close] = [`<${tag}>`, `</${tag}>`]
  const texts: Array<string> = []
  for (let start = text.indexOf(open); start >= 0;) {
    const end = text.indexOf(close, start)
    if (end < 0) break
    texts.push(text.slice(start + open.length, end).trim())
    start = text.indexOf(open, end)
  }
  return texts
}

/**
 * Returns a text up to the end of the last match of a global pattern, which closes elements. A search for whole elements in it takes linear time:
 * behind that, each beginning would be followed to the end of the text.
 */
export const closedPart = (text: string, closing: RegExp): string => {
  let end = 0
  for (const { 0: match, index } of text.matchAll(closing)) end = index + match.length
  return text.slice(0, end)
}
