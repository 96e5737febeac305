/**
 * Takes out of a server's message what it quotes of a request. Servers, and proxies before them, answer with the request that they refused; such a
 * message goes into spans, logs and reports, which hold no text of a conversation.
 */

/** Words in a row that are a quotation and no coincidence. A word with digits, such as a number of a card, is one alone. */
const quotedWords = 3
const minDigitWord = 4
/** Letters of scripts without spaces between words. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u
const word = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}\p{M}]+/gu

interface Word {
  readonly text: string
  readonly from: number
  readonly to: number
}

const escapes = /\\u([\da-f]{4})|\\([nrtbf"\\/])|((?:%[\da-f]{2})+)/giu

const percentDecoded = (text: string): string => {
  const bytes = Uint8Array.from(text.split("%").slice(1), (code) => Number.parseInt(code, 16))
  return new TextDecoder().decode(bytes)
}

/** A text with what JSON and URLs write for characters decoded, and where each of its characters stands in the message. */
const decoded = (message: string): { readonly text: string; readonly at: (index: number) => number } => {
  let text = ""
  const places: Array<number> = []
  const add = (piece: string, from: number, isWritten: boolean) => {
    for (let at = 0; at < piece.length; at += 1) places.push(isWritten ? from + at : from)
    text += piece
  }
  let end = 0
  for (const found of message.matchAll(escapes)) {
    const [whole, code, sign, percents] = found
    add(message.slice(end, found.index), end, true)
    end = found.index + whole.length
    const character =
      code !== undefined
        ? String.fromCharCode(Number.parseInt(code, 16))
        : percents !== undefined
          ? percentDecoded(percents)
          : `"/\\`.includes(sign ?? "")
            ? (sign ?? "")
            : " "
    add(character, found.index, false)
  }
  add(message.slice(end), end, true)
  return { text, at: (index) => places[index] ?? message.length }
}

const wordsOf = (message: string): ReadonlyArray<Word> => {
  const { at, text } = decoded(message)
  return [...text.matchAll(word)].map(({ 0: found, index }) => ({
    text: found.normalize("NFKC").toUpperCase().toLowerCase(),
    from: at(index),
    to: at(index + found.length)
  }))
}

const isAlone = (text: string): boolean =>
  text.length >= minDigitWord && /\d/.test(text) && !/^(?:19|20)?\d\d$/.test(text)
const runOf = (words: ReadonlyArray<{ readonly text: string }>, at: number): string =>
  words
    .slice(at, at + quotedWords)
    .map(({ text }) => text)
    .join(" ")

/** What of a message is looked for in a request. */
interface Wanted {
  readonly runs: ReadonlySet<string>
  readonly alone: ReadonlySet<string>
  readonly words: ReadonlySet<string>
}

/** Which of the wanted words and runs occur in these texts. */
const foundIn = (texts: Iterable<string>, wanted: Wanted): Wanted => {
  const runs = new Set<string>()
  const alone = new Set<string>()
  const words = new Set<string>()
  for (const text of texts) {
    let last: ReadonlyArray<{ readonly text: string }> = []
    for (const [found] of text.matchAll(word)) {
      const one = { text: found.normalize("NFKC").toUpperCase().toLowerCase() }
      last = [...last.slice(1 - quotedWords), one]
      if (wanted.words.has(one.text)) words.add(one.text)
      if (wanted.alone.has(one.text)) alone.add(one.text)
      const run = runOf(last, 0)
      if (last.length === quotedWords && wanted.runs.has(run)) runs.add(run)
    }
  }
  return { runs, alone, words }
}

/** Quotations and JSON, where a single word of the request is enough. */
const quotation = /"(?:[^"\\]|\\.){3,}"?|`[^`]{3,}`?|(?<![\p{L}\p{N}])'[^']{3,}'|[[{]\s*["{[][\s\S]*/gu

/** Names of parameters and values, which servers quote by right. */
const isName = (text: string): boolean => /^["'`][\w.$/:[\]-]+["'`]?$/.test(text) && !/\d{4}/.test(text)

/** The message with "…" in the place of what these texts of a request say. */
export const withoutEcho = (message: string, texts: () => Iterable<string>): string => {
  const words = wordsOf(message)
  if (words.length === 0) return message
  const found = foundIn(texts(), {
    runs: new Set(words.map((_, at) => runOf(words, at))),
    alone: new Set(words.flatMap(({ text }) => (isAlone(text) ? [text] : []))),
    words: new Set(words.flatMap(({ text }) => (text.length > 3 || unspaced.test(text) ? [text] : [])))
  })
  const spans: Array<readonly [from: number, to: number]> = []
  for (const [at, { from, text, to }] of words.entries()) {
    if (found.alone.has(text)) spans.push([from, to])
    if (found.runs.has(runOf(words, at))) spans.push([from, words[at + quotedWords - 1]?.to ?? to])
  }
  for (const { 0: quoted, index } of message.matchAll(quotation)) {
    const inside = wordsOf(quoted)
    if (!isName(quoted) && inside.some(({ text }) => found.words.has(text) || found.alone.has(text))) {
      spans.push([index + 1, index + quoted.length - (/["'`]$/.test(quoted) ? 1 : 0)])
    }
  }
  let out = ""
  let end = 0
  for (const [from, to] of spans.sort(([a], [b]) => a - b)) {
    // Pieces of one quotation, between which are signs alone, are one.
    if (from > end || end === 0) {
      const between = message.slice(end, from)
      out += end > 0 && !/[\p{L}\p{N}]/u.test(between) ? "" : `${between}…`
    }
    end = Math.max(end, to)
  }
  return out + message.slice(end)
}
