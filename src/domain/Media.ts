import type { Work } from "./Work.ts"

/**
 * What media cost by the rules the Gemini API documents, read from the headers of their bytes: images by tiles, documents
 * by pages, sound and film by seconds. Base64 is decoded only where a header is looked for. Bytes that are torn, wrong or
 * of an unknown kind never fail: a stated guess stands for what cannot be read. Newer models with a media resolution
 * count otherwise; what their API reports corrects the estimate (Calibration.ts).
 */

/** Tokens of an image that fits one tile, and of every tile of a larger one. */
export const tileTokens = 258
/** Tokens of a page of a document. */
export const pageTokens = 258
/** Tokens of a second of sound. */
export const soundTokens = 32
/** Tokens of a second of film: a frame of 258 and what marks its time; the rate the API documents for counting. */
export const filmTokens = 263

/** An image is one tile as long as neither side is longer. */
const smallSide = 384
/** Larger ones are cut into squares of the shorter side / 1.5, within these bounds, and each is scaled to 768 × 768. */
const cut = { share: 1.5, least: 256, most: 768 }
/** No header makes an image larger than this many tiles a side. */
const mostTiles = 16
/** The API takes documents of up to this many pages, */
const mostPages = 1_000
/** and at most this many seconds of sound or film: nine and a half hours. */
const mostSeconds = 34_200

/** Guesses for what cannot be read: bytes of a page of a compressed document, of a second of sound (128 kbit) and film (2 Mbit). */
const guessed = { page: 50_000, sound: 16_000, film: 250_000 }
/** What lies elsewhere is not read: ten pages, a minute. */
const elsewhere = { pages: 10, seconds: 60 }

/** Tokens of an image of a size in pixels. */
export const imageTokens = (width: number, height: number): number => {
  if (width <= smallSide && height <= smallSide) return tileTokens
  const unit = Math.min(cut.most, Math.max(cut.least, Math.floor(Math.min(width, height) / cut.share)))
  const tiles = (side: number): number => Math.min(mostTiles, Math.max(1, Math.ceil(side / unit)))
  return tiles(width) * tiles(height) * tileTokens
}

// --- bytes within base64 ------------------------------------------------------------------------------------------------------

/** Bytes behind a text of base64, decoded one by one where asked. */
interface Bytes {
  readonly length: number
  /** The byte at a place; −1 where there is none. */
  readonly at: (place: number) => number
}

/** The six bits of a character of base64, also of its form for addresses; −1 for any other. */
const sixBits = (code: number): number => {
  if (code >= 65 && code <= 90) return code - 65
  if (code >= 97 && code <= 122) return code - 71
  if (code >= 48 && code <= 57) return code + 4
  if (code === 43 || code === 45) return 62
  return code === 47 || code === 95 ? 63 : -1
}

/** Base64 in lines has its first break early. */
const firstLine = 1_024

/** Where the letters of base64 stand, when it comes in lines of one length, as mail writes it. */
const linesOf = (text: string): { readonly length: number; readonly width: number } => {
  const first = /^([^\s]+)(\s+)/u.exec(text.slice(0, firstLine))
  return first === null
    ? { length: text.length + 1, width: text.length + 1 }
    : { length: first[1]?.length ?? 1, width: first[0].length }
}

const bytesOf = (data: string): Bytes => {
  const text = data.trim()
  const { length: line, width } = linesOf(text)
  const whole = Math.floor(text.length / width)
  let letters = whole * line + Math.min(line, text.length - whole * width)
  for (let i = 1; i <= 2 && text.charCodeAt(text.length - i) === 61; i += 1) letters -= 1
  const length = Math.floor((letters * 3) / 4)
  const bits = (letter: number): number => sixBits(text.charCodeAt(letter + Math.floor(letter / line) * (width - line)))
  const at = (place: number): number => {
    if (!(place >= 0 && place < length)) return -1
    const within = place % 3
    const letter = Math.floor(place / 3) * 4 + within
    const left = bits(letter)
    const right = bits(letter + 1)
    if (left < 0 || right < 0) return -1
    if (within === 0) return (left << 2) | (right >> 4)
    return within === 1 ? ((left & 15) << 4) | (right >> 2) : ((left & 3) << 6) | right
  }
  return { length, at }
}

/** A number of some bytes, the highest first; NaN where a byte is missing. */
const big = (bytes: Bytes, place: number, size: number): number => {
  let value = 0
  for (let i = 0; i < size; i += 1) {
    const byte = bytes.at(place + i)
    if (byte < 0) return Number.NaN
    value = value * 256 + byte
  }
  return value
}

/** The same, the lowest byte first. */
const little = (bytes: Bytes, place: number, size: number): number => {
  let value = 0
  for (let i = size - 1; i >= 0; i -= 1) {
    const byte = bytes.at(place + i)
    if (byte < 0) return Number.NaN
    value = value * 256 + byte
  }
  return value
}

const says = (bytes: Bytes, place: number, letters: string): boolean => {
  for (let i = 0; i < letters.length; i += 1) if (bytes.at(place + i) !== letters.charCodeAt(i)) return false
  return true
}

/** Where letters next stand at `place` or behind it, before `end`; −1 where nowhere. */
const find = (bytes: Bytes, letters: string, place: number, end: number): number => {
  for (let i = place; i < end; i += 1) if (says(bytes, i, letters)) return i
  return -1
}

// --- images -------------------------------------------------------------------------------------------------------------------

interface Size {
  readonly width: number
  readonly height: number
}

/** Segments of a JPEG, and boxes of a container, that are looked at. */
const mostSegments = 1_000
/** Bytes at the beginning in which a HEIC or AVIF says its size. */
const mostHeader = 65_536

const jpegSize = (bytes: Bytes): Size | undefined => {
  let place = 2
  for (let i = 0; i < mostSegments; i += 1) {
    while (bytes.at(place) === 0xff && bytes.at(place + 1) === 0xff) place += 1
    if (bytes.at(place) !== 0xff) return undefined
    const marker = bytes.at(place + 1)
    const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (frame) return { height: big(bytes, place + 5, 2), width: big(bytes, place + 7, 2) }
    const alone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    const length = alone ? 0 : big(bytes, place + 2, 2)
    if (marker === 0xd9 || marker === 0xda || !(alone || length >= 2)) return undefined
    place += 2 + length
  }
  return undefined
}

const webpSize = (bytes: Bytes): Size | undefined => {
  if (says(bytes, 12, "VP8X")) return { width: little(bytes, 24, 3) + 1, height: little(bytes, 27, 3) + 1 }
  if (says(bytes, 12, "VP8L")) {
    const bits = little(bytes, 21, 4)
    return { width: (bits % 16_384) + 1, height: (Math.floor(bits / 16_384) % 16_384) + 1 }
  }
  return says(bytes, 12, "VP8 ")
    ? { width: little(bytes, 26, 2) % 16_384, height: little(bytes, 28, 2) % 16_384 }
    : undefined
}

const bmpSize = (bytes: Bytes): Size =>
  little(bytes, 14, 4) === 12
    ? { width: little(bytes, 18, 2), height: little(bytes, 20, 2) }
    : // Rows from the top down are written as a negative height.
      { width: little(bytes, 18, 4), height: Math.abs(little(bytes, 22, 4) | 0) }

/** The largest of the images in a HEIC or AVIF: the others are its tiles and thumbnails. */
const heicSize = (bytes: Bytes): Size | undefined => {
  let largest: Size | undefined
  const end = Math.min(bytes.length, mostHeader)
  for (let place = find(bytes, "ispe", 0, end); place >= 0; place = find(bytes, "ispe", place + 4, end)) {
    const size = { width: big(bytes, place + 8, 4), height: big(bytes, place + 12, 4) }
    if (largest === undefined || size.width * size.height > largest.width * largest.height) largest = size
  }
  return largest
}

const isContainer = (bytes: Bytes): boolean => says(bytes, 4, "ftyp")
const isStillContainer = (bytes: Bytes): boolean =>
  isContainer(bytes) && ["heic", "heix", "mif1", "msf1", "avif", "avis"].some((brand) => says(bytes, 8, brand))

const writtenSize = (bytes: Bytes): Size | undefined => {
  if (bytes.at(0) === 0x89 && says(bytes, 1, "PNG") && says(bytes, 12, "IHDR"))
    return { width: big(bytes, 16, 4), height: big(bytes, 20, 4) }
  if (bytes.at(0) === 0xff && bytes.at(1) === 0xd8) return jpegSize(bytes)
  if (says(bytes, 0, "GIF8")) return { width: little(bytes, 6, 2), height: little(bytes, 8, 2) }
  if (says(bytes, 0, "RIFF") && says(bytes, 8, "WEBP")) return webpSize(bytes)
  if (says(bytes, 0, "BM")) return bmpSize(bytes)
  return isStillContainer(bytes) ? heicSize(bytes) : undefined
}

/** The size an image says it has, if it says one. */
const imageSize = (bytes: Bytes): Size | undefined => {
  const size = writtenSize(bytes)
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
}

const imageBytesTokens = (bytes: Bytes): number => {
  const size = imageSize(bytes)
  return size === undefined ? tileTokens : imageTokens(size.width, size.height)
}

// --- sound and film -----------------------------------------------------------------------------------------------------------

const waveSeconds = (bytes: Bytes): number => {
  let rate = Number.NaN
  let place = 12
  for (let i = 0; i < mostSegments; i += 1) {
    const size = little(bytes, place + 4, 4)
    if (Number.isNaN(size)) break
    if (says(bytes, place, "fmt ")) rate = little(bytes, place + 16, 4)
    if (says(bytes, place, "data")) {
      // A stream that was written without knowing its end says 0 or all ones.
      const rest = bytes.length - place - 8
      return (size === 0 || size === 0xffff_ffff ? rest : size) / rate
    }
    place += 8 + size + (size % 2)
  }
  return Number.NaN
}

const mp3Rates = {
  /** MPEG 1, layer III: kbit a second. */
  first: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  /** MPEG 2 and 2.5, layer III. */
  second: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  samples: [44_100, 48_000, 32_000]
}
/** Bytes behind the tags in which the first frame must begin. */
const mostBeforeFrame = 4_096

/** Seconds by the first frame: by the number of frames it says (variable rate), or by its rate. */
const frameSeconds = (bytes: Bytes, place: number): number => {
  const [second = -1, third = -1, fourth = -1] = [1, 2, 3].map((i) => bytes.at(place + i))
  const version = (second >> 3) & 3
  if (bytes.at(place) !== 0xff || second < 0xe0 || version === 1 || ((second >> 1) & 3) !== 1) return Number.NaN
  const kilobits = (version === 3 ? mp3Rates.first : mp3Rates.second)[third >> 4] ?? 0
  const samples = (mp3Rates.samples[(third >> 2) & 3] ?? Number.NaN) / (version === 3 ? 1 : version === 2 ? 2 : 4)
  if (third < 0 || fourth < 0 || Number.isNaN(samples)) return Number.NaN
  const mono = fourth >> 6 === 3
  const tag = place + 4 + (version === 3 ? (mono ? 17 : 32) : mono ? 9 : 17)
  const counted = says(bytes, tag, "Xing") || says(bytes, tag, "Info")
  const frames =
    counted && (bytes.at(tag + 7) & 1) === 1
      ? big(bytes, tag + 8, 4)
      : says(bytes, place + 36, "VBRI")
        ? big(bytes, place + 50, 4)
        : Number.NaN
  if (frames > 0) return (frames * (version === 3 ? 1_152 : 576)) / samples
  return kilobits === 0 ? Number.NaN : (bytes.length - place) / (kilobits * 125)
}

const mp3Seconds = (bytes: Bytes): number => {
  // The size of a tag is written with seven bits a byte.
  const tag = [6, 7, 8, 9].reduce((size, i) => size * 128 + (bytes.at(i) & 127), 0)
  const begin = says(bytes, 0, "ID3") ? 10 + tag : 0
  for (let place = begin; place < begin + mostBeforeFrame && place < bytes.length; place += 1) {
    const seconds = frameSeconds(bytes, place)
    if (seconds > 0) return seconds
  }
  return Number.NaN
}

const flacSeconds = (bytes: Bytes): number => {
  const rate = big(bytes, 18, 3) >> 4
  return ((bytes.at(21) & 15) * 2 ** 32 + big(bytes, 22, 4)) / rate
}

/** Where the content of a box of a container begins and ends, within `begin` to `end`. */
const findBox = (
  bytes: Bytes,
  name: string,
  begin: number,
  end: number
): { readonly begin: number; readonly end: number } | undefined => {
  let place = begin
  for (let i = 0; i < mostSegments && place + 8 <= end; i += 1) {
    const short = big(bytes, place, 4)
    const header = short === 1 ? 16 : 8
    const size = short === 1 ? big(bytes, place + 8, 8) : short === 0 ? end - place : short
    if (!(size >= header)) return undefined
    if (says(bytes, place + 4, name)) return { begin: place + header, end: Math.min(end, place + size) }
    place += size
  }
  return undefined
}

/** Seconds of MP4, M4A, MOV and their like, by the header of the film. */
const containerSeconds = (bytes: Bytes): number => {
  const film = findBox(bytes, "moov", 0, bytes.length)
  const header = film === undefined ? undefined : findBox(bytes, "mvhd", film.begin, film.end)
  if (header === undefined) return Number.NaN
  const [scaleAt, size] = bytes.at(header.begin) === 1 ? [20, 8] : [12, 4]
  const duration = big(bytes, header.begin + scaleAt + 4, size)
  // All ones: not known when it was written.
  return duration >= 2 ** (8 * size) - 1 ? Number.NaN : duration / big(bytes, header.begin + scaleAt, 4)
}

const writtenSeconds = (bytes: Bytes): number => {
  if (says(bytes, 0, "RIFF") && says(bytes, 8, "WAVE")) return waveSeconds(bytes)
  if (says(bytes, 0, "fLaC")) return flacSeconds(bytes)
  if (isContainer(bytes) || says(bytes, 4, "moov") || says(bytes, 4, "mdat")) return containerSeconds(bytes)
  return says(bytes, 0, "ID3") || (bytes.at(0) === 0xff && bytes.at(1) >= 0xe0) ? mp3Seconds(bytes) : Number.NaN
}

/** Seconds as the header says, or as many as so many bytes mostly are. */
const secondsOf = (bytes: Bytes, bytesASecond: number): number => {
  const written = writtenSeconds(bytes)
  const known = written > 0 && Number.isFinite(written)
  return Math.min(mostSeconds, known ? written : bytes.length / bytesASecond)
}

const timed = (seconds: number, tokens: number): number => Math.max(tokens, Math.ceil(seconds * tokens))

// --- documents ----------------------------------------------------------------------------------------------------------------

/** Of a long document the beginning and the end are searched, this many bytes each: its page tree stands there. */
const mostSearched = 4_194_304
/** Bytes of a document that one step decodes. */
const pieceLength = 65_536
/** Bytes that a piece has in common with the one before, so that no object of up to this length is missed between them. */
const overlap = 8_192
/** Nodes of a page tree that are looked at in a piece. */
const mostNodes = 200

const decoded = (bytes: Bytes, begin: number, end: number): string => {
  const parts: Array<string> = []
  for (let place = begin; place < end; place += 4_096) {
    const codes: Array<number> = []
    for (let i = place; i < Math.min(end, place + 4_096); i += 1) codes.push(Math.max(0, bytes.at(i)))
    parts.push(String.fromCharCode(...codes))
  }
  return parts.join("")
}

const pageTree = /\/Type\s*\/Pages\b/gu
const pageCount = /\/Count\s+(\d{1,9})/u
const pageObject = /\/Type\s*\/Page(?![A-Za-z])/gu
const linearized = /\/Linearized\b[^>]{0,256}?\/N\s+(\d{1,9})/u

/** The object around a place: what one node of a page tree says. */
const objectAround = (text: string, place: number): string => {
  const before = text.slice(Math.max(0, place - overlap), place)
  const behind = text.slice(place, place + overlap)
  const end = behind.indexOf("endobj")
  return before.slice(before.lastIndexOf("endobj") + 1) + (end < 0 ? behind : behind.slice(0, end))
}

const streamBegin = /(?<!end)stream\r?\n/gu
/** What streams say that are not the drawing of a page: fonts, images, functions, objects. */
const notDrawing = /\/(?:Type|Subtype|Length[12]|FunctionType|N|Width)\b/u
/** The longest dictionary of a stream that draws a page. */
const drawingHead = 512

/** How many streams that draw pages begin behind `fresh`. */
const drawingsIn = (text: string, fresh: number): number => {
  let drawings = 0
  for (const { 0: found, index } of text.matchAll(streamBegin)) {
    const before = text.slice(Math.max(0, index - drawingHead), index)
    const begin = before.lastIndexOf(" obj")
    if (index + found.length > fresh && begin >= 0 && !notDrawing.test(before.slice(begin))) drawings += 1
  }
  return drawings
}

interface Pages {
  /** The most pages that a page tree counts. */
  readonly counted: number
  /** Pages that are written out. */
  readonly begun: number
  /** Streams that look like what draws a page. */
  readonly drawn: number
}

/** What a piece of a document says; what begins before `fresh` is known from the piece before. */
const pagesIn = (text: string, fresh: number): Pages => {
  const first = linearized.exec(text)?.[1]
  let counted = first === undefined ? 0 : Number(first)
  let nodes = 0
  for (const { index } of text.matchAll(pageTree)) {
    if ((nodes += 1) > mostNodes) break
    const count = pageCount.exec(objectAround(text, index))?.[1]
    if (count !== undefined) counted = Math.max(counted, Number(count))
  }
  let begun = 0
  for (const { 0: found, index } of text.matchAll(pageObject)) if (index + found.length > fresh) begun += 1
  return { counted, begun, drawn: drawingsIn(text, fresh) }
}

/**
 * Pages of a PDF: what its page tree counts, else the pages that are written out. Where both lie in compressed objects, the
 * streams that draw pages are counted, which is about right; where there are none, it is a guess by size.
 */
function* documentPages(bytes: Bytes): Work<number> {
  let counted = 0
  let begun = 0
  let drawn = 0
  let searched = 0
  let place = 0
  while (place < bytes.length) {
    const end = Math.min(bytes.length, place + pieceLength)
    const begin = Math.max(0, place - overlap)
    const found = pagesIn(decoded(bytes, begin, end), place - begin)
    counted = Math.max(counted, found.counted)
    begun += found.begun
    drawn += found.drawn
    searched += end - place
    yield 2 * (end - place)
    place = end >= mostSearched && end < bytes.length - mostSearched ? bytes.length - mostSearched : end
  }
  const seen = begun > 0 ? begun : drawn
  const pages = seen > 0 ? seen * (bytes.length / searched) : bytes.length / guessed.page
  return Math.min(mostPages, Math.max(1, counted > 0 ? counted : Math.ceil(pages)))
}

// --- what a part carries ------------------------------------------------------------------------------------------------------

type Kind = "image" | "document" | "sound" | "film" | "unknown"

const namedKind = (mimeType: string): Kind => {
  if (mimeType.startsWith("image/")) return "image"
  if (mimeType.startsWith("audio/")) return "sound"
  if (mimeType.startsWith("video/")) return "film"
  return mimeType.startsWith("application/pdf") ? "document" : "unknown"
}

const sniffedKind = (bytes: Bytes): Kind => {
  if (says(bytes, 0, "%PDF")) return "document"
  if (imageSize(bytes) !== undefined) return "image"
  if (isContainer(bytes)) return says(bytes, 8, "M4A") ? "sound" : "film"
  return writtenSeconds(bytes) > 0 ? "sound" : "unknown"
}

/** Tokens of bytes in base64. Where the type says nothing, the bytes do; what nobody knows counts as one tile. */
export function* inlineTokens(mimeType: string, data: string): Work<number> {
  yield 100
  const bytes = bytesOf(data)
  const named = namedKind(mimeType.toLowerCase())
  switch (named === "unknown" ? sniffedKind(bytes) : named) {
    case "image":
      return imageBytesTokens(bytes)
    case "document":
      return pageTokens * (yield* documentPages(bytes))
    case "sound":
      return timed(secondsOf(bytes, guessed.sound), soundTokens)
    case "film":
      return timed(secondsOf(bytes, guessed.film), filmTokens)
    case "unknown":
      return tileTokens
  }
}

/** Tokens of media that lie elsewhere, of which only the kind is known: an image of one tile, ten pages, a minute. */
export const addressTokens = (mimeType: string): number => {
  switch (namedKind(mimeType.toLowerCase())) {
    case "document":
      return elsewhere.pages * pageTokens
    case "sound":
      return elsewhere.seconds * soundTokens
    case "film":
      return elsewhere.seconds * filmTokens
    case "image":
    case "unknown":
      return tileTokens
  }
}

/** Whether a type is that of text: the API reads such bytes as text. */
const isTextType = (mimeType: string): boolean =>
  /^(?:text\/|application\/(?:json|xml|javascript|typescript|x-(?:javascript|typescript|python|yaml|sh)|yaml|rtf)\b|[^;]+\+(?:json|xml)\b)/iu.test(
    mimeType
  )

/** Bytes of an inline text that are looked at. */
const sampled = 65_536

/**
 * The text of bytes in base64 whose type says that they are text: its beginning, and how many times as long all of it
 * is. Undefined for bytes of any other type.
 */
export const inlineText = (
  mimeType: string,
  data: string
): { readonly sample: string; readonly times: number } | undefined => {
  if (!isTextType(mimeType)) return undefined
  const bytes = bytesOf(data)
  const length = Math.min(bytes.length, sampled)
  const part = Uint8Array.from({ length }, (_, i) => Math.max(0, bytes.at(i)))
  return { sample: new TextDecoder().decode(part), times: length === 0 ? 1 : bytes.length / length }
}
