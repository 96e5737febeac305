/** Citations for `google_web_search`: source numbers in a text, and the list of sources at its end. */

/** A page that a text cites. */
export interface CitedSource {
  readonly uri: string
  readonly title: string
}

/** The sources of the passage that ends at this byte of the text (UTF-8). Sources are numbered from 0. */
export interface CitedPassage {
  readonly end: number
  readonly sources: ReadonlyArray<number>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Returns the marks after a passage: `[1][3]`. A source that is not listed is left out. */
const citationMarks = (sources: ReadonlyArray<number>, sourceCount: number): string =>
  [...new Set(sources)]
    .filter((source) => source < sourceCount)
    .map((source) => `[${source + 1}]`)
    .join("")

/** Returns the byte after the character in which a passage ends. */
const afterCharacter = (bytes: Uint8Array, at: number): number => {
  let end = Math.min(at, bytes.length)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end += 1
  return end
}

/** Returns a title or an address on one line. */
const onOneLine = (text: string): string => text.replace(/\s+/g, " ").trim()

/** Returns the text with its citations, or the text itself when there are no sources. */
export const withCitations = (
  text: string,
  sources: ReadonlyArray<CitedSource>,
  supports: ReadonlyArray<CitedPassage>
): string => {
  if (sources.length === 0) return text
  const bytes = encoder.encode(text)
  const places = supports
    .map((support) => ({
      at: afterCharacter(bytes, support.end),
      marks: citationMarks(support.sources, sources.length)
    }))
    .sort((one, other) => one.at - other.at)
  const pieces: Array<string> = []
  let from = 0
  for (const place of places) {
    pieces.push(decoder.decode(bytes.subarray(from, place.at)), place.marks)
    from = place.at
  }
  pieces.push(decoder.decode(bytes.subarray(from)))
  const list = sources.map(({ title, uri }, index) =>
    onOneLine(title) === ""
      ? `[${index + 1}] ${onOneLine(uri)}`
      : `[${index + 1}] ${onOneLine(title)} (${onOneLine(uri)})`
  )
  return `${pieces.join("")}\n\nSources:\n${list.join("\n")}`
}
