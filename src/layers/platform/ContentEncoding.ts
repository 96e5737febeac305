/** Bodies of HTTP messages that their sender compressed, in the encodings that this Node can decode. */

import type { Buffer } from "node:buffer"
import { pipeline, type Readable, type Transform } from "node:stream"
import * as zlib from "node:zlib"

interface Decoder {
  readonly whole: (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer
  readonly pieces: () => Transform
}

const gzip: Decoder = { whole: zlib.gunzipSync, pieces: zlib.createGunzip }

const decoders: Readonly<Record<string, Decoder>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { whole: zlib.inflateSync, pieces: zlib.createInflate },
  br: { whole: zlib.brotliDecompressSync, pieces: zlib.createBrotliDecompress },
  // Since Node 22.15.
  ...("zstdDecompressSync" in zlib
    ? { zstd: { whole: zlib.zstdDecompressSync, pieces: zlib.createZstdDecompress } }
    : {})
}

const nameOf = (encoding: string): string => encoding.trim().toLowerCase()

const decoderOf = (encoding: string): Decoder | undefined => {
  const name = nameOf(encoding)
  return Object.hasOwn(decoders, name) ? decoders[name] : undefined
}

/** The encodings that this Node can decode, as a header names them. */
export const readableEncodings = Object.keys(decoders).join(", ")

/** Whether a body of this encoding is compressed at all. */
const isCompressed = (encoding: string): boolean => !["", "identity"].includes(nameOf(encoding))

/** Whether bodies of an encoding can be read. */
export const isReadable = (encoding: string): boolean => !isCompressed(encoding) || decoderOf(encoding) !== undefined

/** Decodes a body; undefined where it is damaged, larger than the bound, or in an encoding that this Node does not have. */
export const decoded = (body: Buffer, encoding: string, maxOutputLength: number): Buffer | undefined => {
  if (!isCompressed(encoding)) return body
  try {
    return decoderOf(encoding)?.whole(body, { maxOutputLength })
  } catch {
    return undefined
  }
}

/** Makes what decodes a body in pieces; undefined for one that is not compressed, or in an encoding that this Node does not have. */
export const pieceDecoder = (encoding: string): Transform | undefined => decoderOf(encoding)?.pieces()

/** The bytes of a body as they were before its sender compressed them, with the backpressure of whoever reads them. */
export const decodedStream = (body: Readable, encoding: string): Readable => {
  const decoder = pieceDecoder(encoding)
  if (decoder === undefined) return body
  // A reader gets the error as an event. Without a listener it would end the process.
  decoder.on("error", () => {})
  pipeline(body, decoder, () => {})
  return decoder
}
