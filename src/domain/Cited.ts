/** A text with the numbers of its sources in it, and the list of those at its end (spec 14, google_web_search). */

/** A page that a text goes back to. */
export interface CitedSource {
  readonly uri: string
  readonly title: string
}

/** Which sources a passage goes back to that ends with this byte of the text (UTF-8); they are counted from 0. */
export interface Support {
  readonly end: number
  readonly sources: ReadonlyArray<number>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** What stands after a passage: `[1][3]`. A source that is not listed is left out. */
const marks = (sources: ReadonlyArray<number>, known: number): string =>
  [...new Set(sources)]
    .filter((source) => source < known)
    .map((source) => `[${source + 1}]`)
    .join("")

/** The place of a passage's end, after the character it lies in. */
const afterCharacter = (bytes: Uint8Array, at: number): number => {
  let end = Math.min(at, bytes.length)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end += 1
  return end
}

/** One line of a title or an address that somebody else wrote. */
const inLine = (text: string): string => text.replace(/\s+/g, " ").trim()

/** The text with its sources. Without any it is the text itself. */
export const cited = (text: string, sources: ReadonlyArray<CitedSource>, supports: ReadonlyArray<Support>): string => {
  if (sources.length === 0) return text
  const bytes = encoder.encode(text)
  const places = supports
    .map((support) => ({ at: afterCharacter(bytes, support.end), marks: marks(support.sources, sources.length) }))
    .sort((one, other) => one.at - other.at)
  const pieces: Array<string> = []
  let from = 0
  for (const place of places) {
    pieces.push(decoder.decode(bytes.subarray(from, place.at)), place.marks)
    from = place.at
  }
  pieces.push(decoder.decode(bytes.subarray(from)))
  const list = sources.map(({ title, uri }, index) =>
    inLine(title) === "" ? `[${index + 1}] ${inLine(uri)}` : `[${index + 1}] ${inLine(title)} (${inLine(uri)})`
  )
  return `${pieces.join("")}\n\nSources:\n${list.join("\n")}`
}
