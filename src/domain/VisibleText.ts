/** Comments in comments go as far as anybody writes them. */
const depths = 8

/** Without HTML comments. One that never ends is none. */
const uncommented = (text: string): string => {
  const kept: Array<string> = []
  let from = 0
  for (let opens = text.indexOf("<!--"); opens >= 0; opens = text.indexOf("<!--", from)) {
    const closes = text.indexOf("-->", opens + 4)
    if (closes < 0) break
    kept.push(text.slice(from, opens))
    from = closes + 3
  }
  return from === 0 ? text : kept.join("") + text.slice(from)
}

/** What anybody can see of a text (spec 1.5): no characters without width, no HTML comments, no white space around it. */
export const visibleText = (text: string): string => {
  let left = text.replace(/[\u200B-\u200F\uFEFF]/g, "")
  for (let depth = 0; depth < depths; depth += 1) {
    const less = uncommented(left)
    if (less === left) break
    left = less
  }
  return left.trim()
}
