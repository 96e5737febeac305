import type { Buffer } from "node:buffer"
import * as zlib from "node:zlib"

/** The bodies of requests that a client compressed. */

/** Decodes a body; undefined where it is damaged, larger than the bound, or in an encoding that this Node does not have. */
export const decoded = (body: Buffer, encoding: string, maxOutputLength: number): Buffer | undefined => {
  try {
    switch (encoding) {
      case "identity":
        return body
      case "gzip":
      case "x-gzip":
        return zlib.gunzipSync(body, { maxOutputLength })
      case "deflate":
        return zlib.inflateSync(body, { maxOutputLength })
      case "br":
        return zlib.brotliDecompressSync(body, { maxOutputLength })
      case "zstd":
        // Since Node 22.15.
        return "zstdDecompressSync" in zlib ? zlib.zstdDecompressSync(body, { maxOutputLength }) : undefined
      default:
        return undefined
    }
  } catch {
    return undefined
  }
}
