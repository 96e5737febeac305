/** Reads the duration of sound and video from file headers. */

import { bigEndian, type Bytes, hasAscii, littleEndian, maxSegments } from "./Base64Bytes.ts"
import { isContainer } from "./ImageTokens.ts"

/** The maximum number of seconds that the API accepts: nine and a half hours. */
const maxSeconds = 34_200

const waveSeconds = (bytes: Bytes): number => {
  let rate = Number.NaN
  let place = 12
  for (let i = 0; i < maxSegments; i += 1) {
    const size = littleEndian(bytes, place + 4, 4)
    if (Number.isNaN(size)) break
    if (hasAscii(bytes, place, "fmt ")) rate = littleEndian(bytes, place + 16, 4)
    if (hasAscii(bytes, place, "data")) {
      // A stream written before its end was known states 0 or all ones.
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
/** Bytes after the tags in which the first frame must begin. */
const maxBytesBeforeFrame = 4_096

/** Seconds by the first frame: by its number of frames (variable rate) or by its bit rate. */
const frameSeconds = (bytes: Bytes, place: number): number => {
  const [second = -1, third = -1, fourth = -1] = [1, 2, 3].map((i) => bytes.at(place + i))
  const version = (second >> 3) & 3
  if (bytes.at(place) !== 0xff || second < 0xe0 || version === 1 || ((second >> 1) & 3) !== 1) return Number.NaN
  const kilobits = (version === 3 ? mp3Rates.first : mp3Rates.second)[third >> 4] ?? 0
  const samples = (mp3Rates.samples[(third >> 2) & 3] ?? Number.NaN) / (version === 3 ? 1 : version === 2 ? 2 : 4)
  if (third < 0 || fourth < 0 || Number.isNaN(samples)) return Number.NaN
  const mono = fourth >> 6 === 3
  const tag = place + 4 + (version === 3 ? (mono ? 17 : 32) : mono ? 9 : 17)
  const counted = hasAscii(bytes, tag, "Xing") || hasAscii(bytes, tag, "Info")
  const frames =
    counted && (bytes.at(tag + 7) & 1) === 1
      ? bigEndian(bytes, tag + 8, 4)
      : hasAscii(bytes, place + 36, "VBRI")
        ? bigEndian(bytes, place + 50, 4)
        : Number.NaN
  if (frames > 0) return (frames * (version === 3 ? 1_152 : 576)) / samples
  return kilobits === 0 ? Number.NaN : (bytes.length - place) / (kilobits * 125)
}

const mp3Seconds = (bytes: Bytes): number => {
  // The size of a tag has seven bits per byte.
  const tag = [6, 7, 8, 9].reduce((size, i) => size * 128 + (bytes.at(i) & 127), 0)
  const begin = hasAscii(bytes, 0, "ID3") ? 10 + tag : 0
  for (let place = begin; place < begin + maxBytesBeforeFrame && place < bytes.length; place += 1) {
    const seconds = frameSeconds(bytes, place)
    if (seconds > 0) return seconds
  }
  return Number.NaN
}

const flacSeconds = (bytes: Bytes): number => {
  const rate = bigEndian(bytes, 18, 3) >> 4
  return ((bytes.at(21) & 15) * 2 ** 32 + bigEndian(bytes, 22, 4)) / rate
}

/** The content of a box of a container, within `begin` to `end`. */
const findBox = (
  bytes: Bytes,
  name: string,
  begin: number,
  end: number
): { readonly begin: number; readonly end: number } | undefined => {
  let place = begin
  for (let i = 0; i < maxSegments && place + 8 <= end; i += 1) {
    const short = bigEndian(bytes, place, 4)
    const header = short === 1 ? 16 : 8
    const size = short === 1 ? bigEndian(bytes, place + 8, 8) : short === 0 ? end - place : short
    if (!(size >= header)) return undefined
    if (hasAscii(bytes, place + 4, name)) return { begin: place + header, end: Math.min(end, place + size) }
    place += size
  }
  return undefined
}

/** Seconds of MP4, M4A, MOV and similar files, by the movie header. */
const containerSeconds = (bytes: Bytes): number => {
  const film = findBox(bytes, "moov", 0, bytes.length)
  const header = film === undefined ? undefined : findBox(bytes, "mvhd", film.begin, film.end)
  if (header === undefined) return Number.NaN
  const [scaleAt, size] = bytes.at(header.begin) === 1 ? [20, 8] : [12, 4]
  const duration = bigEndian(bytes, header.begin + scaleAt + 4, size)
  // All ones: the duration was not known when the file was written.
  return duration >= 2 ** (8 * size) - 1 ? Number.NaN : duration / bigEndian(bytes, header.begin + scaleAt, 4)
}

/** Seconds by the header; NaN if it states none. */
export const statedSeconds = (bytes: Bytes): number => {
  if (hasAscii(bytes, 0, "RIFF") && hasAscii(bytes, 8, "WAVE")) return waveSeconds(bytes)
  if (hasAscii(bytes, 0, "fLaC")) return flacSeconds(bytes)
  if (isContainer(bytes) || hasAscii(bytes, 4, "moov") || hasAscii(bytes, 4, "mdat")) return containerSeconds(bytes)
  return hasAscii(bytes, 0, "ID3") || (bytes.at(0) === 0xff && bytes.at(1) >= 0xe0) ? mp3Seconds(bytes) : Number.NaN
}

/** Seconds by the header, or else by a typical bit rate. */
export const secondsOf = (bytes: Bytes, bytesPerSecond: number): number => {
  const stated = statedSeconds(bytes)
  const isKnown = stated > 0 && Number.isFinite(stated)
  return Math.min(maxSeconds, isKnown ? stated : bytes.length / bytesPerSecond)
}
