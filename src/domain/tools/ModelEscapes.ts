/** Removes escapes that models add to texts by mistake. */

const charactersByEscape: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" }

/**
 * Removes one level of escaping that a model added by mistake: before line breaks, tabs, quotes, backticks and backslashes.
 * Everything else stays.
 */
export const withoutExtraEscapes = (text: string): string =>
  text.replace(/\\([ntr'"`\\]|\n)/g, (_, escaped: string) => charactersByEscape[escaped] ?? escaped)

/**
 * Returns the content that a model gives for a file: unchanged, or unescaped when the model is known to escape too much
 * (`aggressive`).
 */
export const unescapedContent = (content: string, aggressive: boolean): string =>
  aggressive ? withoutExtraEscapes(content) : content
