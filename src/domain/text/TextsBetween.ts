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
