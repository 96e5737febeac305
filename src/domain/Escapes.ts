const named: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" }

/**
 * A text that was escaped once more than it should have been, as models now and then send it, without that (spec 14: line
 * breaks, tabs, quotes, backticks, backslashes). All else stays.
 */
export const unescaped = (text: string): string =>
  text.replace(/\\([ntr'"`\\]|\n)/g, (_, escaped: string) => named[escaped] ?? escaped)

/**
 * What a model wants in a file, as it goes there: as it is, and where its author is known to escape too much (`aggressive`),
 * unescaped (spec 14, ensureCorrectFileContent without a model).
 */
export const fileContent = (content: string, aggressive: boolean): string => (aggressive ? unescaped(content) : content)
