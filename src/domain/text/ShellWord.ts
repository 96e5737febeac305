/** Quotes words for a shell. */

/** Characters that no POSIX shell interprets. A tilde at the beginning stands for a home folder. */
const plainWord = /^(?!~)[\w./:,@%+=~-]+$/

/** Returns a word as a POSIX shell reads it: unchanged where it is plain, else in single quotes. */
export const shellWord = (word: string): string => (plainWord.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** Windows has no single quotes, and a POSIX shell there removes a backslash that is not quoted. */
const windowsWord = (word: string): string => (/^[\w./:@+-]+$/.test(word) ? word : `"${word}"`)

/** Returns words as one line for the shell of the system whose paths have this separator. */
export const shellLine = (words: ReadonlyArray<string>, separator: string): string =>
  words.map(separator === "\\" ? windowsWord : shellWord).join(" ")
