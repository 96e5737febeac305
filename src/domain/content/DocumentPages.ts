/** Counts the pages of PDF documents by their page tree. */

import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Bytes } from "./Base64Bytes.ts"

/** The maximum number of pages that the API accepts. */
const maxPages = 1_000

/** The estimate for a compressed document without readable pages. */
const bytesPerPage = 50_000

/** Bytes searched at the start and at the end of a long document, where its page tree is. */
const maxSearchedBytes = 4_194_304
/** Bytes that one step decodes. */
const pieceBytes = 65_536
/** Bytes shared by two pieces, so that no object of up to this length is missed between them. */
const overlapBytes = 8_192
/** Nodes of a page tree that are read per piece. */
const maxTreeNodes = 200

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

/** The object around a position: one node of a page tree. */
const objectAround = (text: string, place: number): string => {
  const before = text.slice(Math.max(0, place - overlapBytes), place)
  const after = text.slice(place, place + overlapBytes)
  const end = after.indexOf("endobj")
  return before.slice(before.lastIndexOf("endobj") + 1) + (end < 0 ? after : after.slice(0, end))
}

const streamBegin = /(?<!end)stream\r?\n/gu
/** Keys of streams that do not draw a page: fonts, images, functions, objects. */
const nonPageKeys = /\/(?:Type|Subtype|Length[12]|FunctionType|N|Width)\b/u
/** The longest dictionary of a stream that draws a page. */
const maxDrawingHeadChars = 512

/** How many streams that draw pages begin after `fresh`. */
const drawingsIn = (text: string, fresh: number): number => {
  let drawings = 0
  for (const { 0: match, index } of text.matchAll(streamBegin)) {
    const before = text.slice(Math.max(0, index - maxDrawingHeadChars), index)
    const begin = before.lastIndexOf(" obj")
    if (index + match.length > fresh && begin >= 0 && !nonPageKeys.test(before.slice(begin))) drawings += 1
  }
  return drawings
}

interface Pages {
  /** The largest page count in a page tree. */
  readonly counted: number
  /** The number of uncompressed page objects. */
  readonly pageObjects: number
  /** The number of streams that look like page content. */
  readonly drawn: number
}

/**
 * Counts the pages in a piece of a document. Objects that begin before `fresh` were counted with the previous piece.
 */
const pagesIn = (text: string, fresh: number): Pages => {
  const first = linearized.exec(text)?.[1]
  let counted = first === undefined ? 0 : Number(first)
  let nodes = 0
  for (const { index } of text.matchAll(pageTree)) {
    if ((nodes += 1) > maxTreeNodes) break
    const count = pageCount.exec(objectAround(text, index))?.[1]
    if (count !== undefined) counted = Math.max(counted, Number(count))
  }
  let pageObjects = 0
  for (const { 0: match, index } of text.matchAll(pageObject)) if (index + match.length > fresh) pageObjects += 1
  return { counted, pageObjects, drawn: drawingsIn(text, fresh) }
}

/**
 * The number of pages of a PDF: the count of its page tree, or else its page objects. If both are in compressed objects, the streams that draw pages
 * are counted, which is approximately right; if there are none, the number is estimated from the size.
 */
export function* documentPages(bytes: Bytes): SlicedWork<number> {
  let counted = 0
  let pageObjects = 0
  let drawn = 0
  let searched = 0
  let place = 0
  while (place < bytes.length) {
    const end = Math.min(bytes.length, place + pieceBytes)
    const begin = Math.max(0, place - overlapBytes)
    const piecePages = pagesIn(decoded(bytes, begin, end), place - begin)
    counted = Math.max(counted, piecePages.counted)
    pageObjects += piecePages.pageObjects
    drawn += piecePages.drawn
    searched += end - place
    yield
    place = end >= maxSearchedBytes && end < bytes.length - maxSearchedBytes ? bytes.length - maxSearchedBytes : end
  }
  const sampledPages = pageObjects > 0 ? pageObjects : drawn
  const pages = sampledPages > 0 ? sampledPages * (bytes.length / searched) : bytes.length / bytesPerPage
  return Math.min(maxPages, Math.max(1, counted > 0 ? counted : Math.ceil(pages)))
}
