/** Estimates the tokens of images by the size in their headers. */

import { bigEndian, type Bytes, find, hasAscii, littleEndian, maxSegments } from "./Base64Bytes.ts"

/** Tokens of an image that fits one tile, and of every tile of a larger one. */
export const tileTokens = 258

/** The longest side of an image that counts as one tile. */
const maxSingleTilePixels = 384

/** Larger images are cut into squares of the shorter side / 1.5, within these bounds, and each is scaled to 768 × 768. */
const tileUnit = { share: 1.5, minPixels: 256, maxPixels: 768 }

/** The maximum number of tiles per side, whatever a header states. */
const maxTilesPerSide = 16

/** Tokens of an image of a size in pixels. */
export const imageTokens = (width: number, height: number): number => {
  if (width <= maxSingleTilePixels && height <= maxSingleTilePixels) return tileTokens
  const unit = Math.min(
    tileUnit.maxPixels,
    Math.max(tileUnit.minPixels, Math.floor(Math.min(width, height) / tileUnit.share))
  )
  const tiles = (side: number): number => Math.min(maxTilesPerSide, Math.max(1, Math.ceil(side / unit)))
  return tiles(width) * tiles(height) * tileTokens
}

interface Size {
  readonly width: number
  readonly height: number
}

/** Bytes from the start in which a HEIC or AVIF file states its size. */
const maxHeaderBytes = 65_536

const jpegSize = (bytes: Bytes): Size | undefined => {
  let place = 2
  for (let i = 0; i < maxSegments; i += 1) {
    while (bytes.at(place) === 0xff && bytes.at(place + 1) === 0xff) place += 1
    if (bytes.at(place) !== 0xff) return undefined
    const marker = bytes.at(place + 1)
    const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (frame) return { height: bigEndian(bytes, place + 5, 2), width: bigEndian(bytes, place + 7, 2) }
    const alone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    const length = alone ? 0 : bigEndian(bytes, place + 2, 2)
    if (marker === 0xd9 || marker === 0xda || !(alone || length >= 2)) return undefined
    place += 2 + length
  }
  return undefined
}

const webpSize = (bytes: Bytes): Size | undefined => {
  if (hasAscii(bytes, 12, "VP8X"))
    return { width: littleEndian(bytes, 24, 3) + 1, height: littleEndian(bytes, 27, 3) + 1 }
  if (hasAscii(bytes, 12, "VP8L")) {
    const bits = littleEndian(bytes, 21, 4)
    return { width: (bits % 16_384) + 1, height: (Math.floor(bits / 16_384) % 16_384) + 1 }
  }
  return hasAscii(bytes, 12, "VP8 ")
    ? { width: littleEndian(bytes, 26, 2) % 16_384, height: littleEndian(bytes, 28, 2) % 16_384 }
    : undefined
}

const bmpSize = (bytes: Bytes): Size =>
  littleEndian(bytes, 14, 4) === 12
    ? { width: littleEndian(bytes, 18, 2), height: littleEndian(bytes, 20, 2) }
    : // Rows from the top down are written as a negative height.
      { width: littleEndian(bytes, 18, 4), height: Math.abs(littleEndian(bytes, 22, 4) | 0) }

/** The size of the largest image in a HEIC or AVIF file: the others are its tiles and thumbnails. */
const heicSize = (bytes: Bytes): Size | undefined => {
  let largest: Size | undefined
  const end = Math.min(bytes.length, maxHeaderBytes)
  for (let place = find(bytes, "ispe", 0, end); place >= 0; place = find(bytes, "ispe", place + 4, end)) {
    const size = { width: bigEndian(bytes, place + 8, 4), height: bigEndian(bytes, place + 12, 4) }
    if (largest === undefined || size.width * size.height > largest.width * largest.height) largest = size
  }
  return largest
}

/** Whether the bytes are an ISO container: MP4, MOV, HEIC, AVIF. */
export const isContainer = (bytes: Bytes): boolean => hasAscii(bytes, 4, "ftyp")
const isStillContainer = (bytes: Bytes): boolean =>
  isContainer(bytes) && ["heic", "heix", "mif1", "msf1", "avif", "avis"].some((brand) => hasAscii(bytes, 8, brand))

const statedSize = (bytes: Bytes): Size | undefined => {
  if (bytes.at(0) === 0x89 && hasAscii(bytes, 1, "PNG") && hasAscii(bytes, 12, "IHDR"))
    return { width: bigEndian(bytes, 16, 4), height: bigEndian(bytes, 20, 4) }
  if (bytes.at(0) === 0xff && bytes.at(1) === 0xd8) return jpegSize(bytes)
  if (hasAscii(bytes, 0, "GIF8")) return { width: littleEndian(bytes, 6, 2), height: littleEndian(bytes, 8, 2) }
  if (hasAscii(bytes, 0, "RIFF") && hasAscii(bytes, 8, "WEBP")) return webpSize(bytes)
  if (hasAscii(bytes, 0, "BM")) return bmpSize(bytes)
  return isStillContainer(bytes) ? heicSize(bytes) : undefined
}

/** The image size in pixels from its header. Undefined if the header states none. */
export const imageSize = (bytes: Bytes): Size | undefined => {
  const size = statedSize(bytes)
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
}

/** Tokens of an image; one tile if its header states no size. */
export const imageBytesTokens = (bytes: Bytes): number => {
  const size = imageSize(bytes)
  return size === undefined ? tileTokens : imageTokens(size.width, size.height)
}
