/**
 * Tokens of media by the rules that the Gemini API documents: images by tiles, documents by pages, sound and video by seconds.
 *
 * *Details*: sizes are read from the headers, and base64 is decoded only there. Torn, wrong or unknown bytes never fail: a stated
 * guess stands for what cannot be read. Models with a media resolution count otherwise; the counts that their API reports correct
 * the estimate (`Calibration`).
 */

import type { SlicedWork } from "../text/SlicedWork.ts"
import { type Bytes, bytesOf, hasAscii } from "./Base64Bytes.ts"
import { documentPages } from "./DocumentPages.ts"
import { imageBytesTokens, imageSize, isContainer, tileTokens } from "./ImageTokens.ts"
import { secondsOf, statedSeconds } from "./MediaDuration.ts"

/** Tokens of a page of a document. */
export const pageTokens = 258
/** Tokens of a second of sound. */
export const audioTokensPerSecond = 32
/** Tokens of a second of video: a frame of 258 and its time stamp, the rate that the API documents for counting. */
export const videoTokensPerSecond = 263

/** Assumed bytes per second where a header states no length: sound (128 kbit/s) and video (2 Mbit/s). */
const bytesPerSecond = { audio: 16_000, video: 250_000 }
/** Assumed size of media behind an address, which are not read. */
const assumedRemote = { pages: 10, seconds: 60 }

type Kind = "image" | "document" | "audio" | "video" | "unknown"

const timed = (seconds: number, tokens: number): number => Math.max(tokens, Math.ceil(seconds * tokens))

const namedKind = (mimeType: string): Kind => {
  if (mimeType.startsWith("image/")) return "image"
  if (mimeType.startsWith("audio/")) return "audio"
  if (mimeType.startsWith("video/")) return "video"
  return mimeType.startsWith("application/pdf") ? "document" : "unknown"
}

const sniffedKind = (bytes: Bytes): Kind => {
  if (hasAscii(bytes, 0, "%PDF")) return "document"
  if (imageSize(bytes) !== undefined) return "image"
  if (isContainer(bytes)) return hasAscii(bytes, 8, "M4A") ? "audio" : "video"
  return statedSeconds(bytes) > 0 ? "audio" : "unknown"
}

/** Tokens of base64 data. An unknown type is detected from the bytes; data of no known type counts as one tile. */
export function* inlineTokens(mimeType: string, data: string): SlicedWork<number> {
  yield
  const bytes = bytesOf(data)
  const declared = namedKind(mimeType.toLowerCase())
  switch (declared === "unknown" ? sniffedKind(bytes) : declared) {
    case "image":
      return imageBytesTokens(bytes)
    case "document":
      return pageTokens * (yield* documentPages(bytes))
    case "audio":
      return timed(secondsOf(bytes, bytesPerSecond.audio), audioTokensPerSecond)
    case "video":
      return timed(secondsOf(bytes, bytesPerSecond.video), videoTokensPerSecond)
    case "unknown":
      return tileTokens
  }
}

/** Tokens of media behind an address, of which only the type is known: an image of one tile, ten pages or a minute. */
export const remoteTokens = (mimeType: string): number => {
  switch (namedKind(mimeType.toLowerCase())) {
    case "document":
      return assumedRemote.pages * pageTokens
    case "audio":
      return assumedRemote.seconds * audioTokensPerSecond
    case "video":
      return assumedRemote.seconds * videoTokensPerSecond
    case "image":
    case "unknown":
      return tileTokens
  }
}

/** Whether a type is a text type: the API reads such bytes as text. */
const isTextType = (mimeType: string): boolean =>
  /^(?:text\/|application\/(?:json|xml|javascript|typescript|x-(?:javascript|typescript|python|yaml|sh)|yaml|rtf)\b|[^;]+\+(?:json|xml)\b)/iu.test(
    mimeType
  )

/** Bytes of an inline text that are counted; the rest is extrapolated. */
const maxSampledBytes = 65_536

/** Decodes the start of base64 data with a text type, and returns how many times as long the whole is. Undefined for any other type. */
export const sampleText = (
  mimeType: string,
  data: string
): { readonly sample: string; readonly times: number } | undefined => {
  if (!isTextType(mimeType)) return undefined
  const bytes = bytesOf(data)
  const length = Math.min(bytes.length, maxSampledBytes)
  const part = Uint8Array.from({ length }, (_, i) => Math.max(0, bytes.at(i)))
  return { sample: new TextDecoder().decode(part), times: length === 0 ? 1 : bytes.length / length }
}
