import type { Buffer } from "node:buffer"
import * as zlib from "node:zlib"

/** The bodies of requests that a client compressed. */

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer

const decoders: Readonly<Record<string, Decode>> = {
  identity: (body) => body,
  "": (body) => body,
  gzip: zlib.gunzipSync,
  "x-gzip": zlib.gunzipSync,
  deflate: zlib.inflateSync,
  br: zlib.brotliDecompressSync,
  // Since Node 22.15.
  ...("zstdDecompressSync" in zlib ? { zstd: zlib.zstdDecompressSync } : {})
}

const decoderOf = (encoding: string): Decode | undefined => {
  const name = encoding.trim().toLowerCase()
  return Object.hasOwn(decoders, name) ? decoders[name] : undefined
}

/** The encodings that this Node can decode, as a header names them. */
export const readableEncodings = Object.keys(decoders)
  .filter((name) => name !== "" && name !== "identity")
  .join(", ")

/** Whether this Node can decode bodies of an encoding. */
export const isReadable = (encoding: string): boolean => decoderOf(encoding) !== undefined

/** Decodes a body; undefined where it is damaged, larger than the bound, or in an encoding that this Node does not have. */
export const decoded = (body: Buffer, encoding: string, maxOutputLength: number): Buffer | undefined => {
  try {
    return decoderOf(encoding)?.(body, { maxOutputLength })
  } catch {
    return undefined
  }
}
