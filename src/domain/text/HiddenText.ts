/** Removes what a text holds beside its visible words: zero-width characters and HTML comments. */

/** Maximum nesting of comments; real text does not nest them deeper. */
const maxCommentDepth = 8

/** Removes HTML comments. An unterminated comment is kept as text. */
const withoutComments = (text: string): string => {
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

/** Returns the visible part of a text: without zero-width characters, HTML comments and surrounding white space. */
export const withoutHiddenText = (text: string): string => {
  let left = text.replace(/[\u200B-\u200F\uFEFF]/g, "")
  for (let depth = 0; depth < maxCommentDepth; depth += 1) {
    const less = withoutComments(left)
    if (less === left) break
    left = less
  }
  return left.trim()
}
