/** Classifies files by extension and content. */

import { encodingOf } from "./FileText.ts"

/** How a file is given to the model. */
export type FileKind =
  | { readonly _tag: "Text" }
  | { readonly _tag: "Svg" }
  /** Sent as inline data beside the answer. */
  | { readonly _tag: "Media"; readonly mimeType: string; readonly what: "image" | "PDF" | "audio" | "video" }
  | { readonly _tag: "Binary" }

const media = (what: "image" | "PDF" | "audio" | "video", mimeType: string): FileKind => ({
  _tag: "Media",
  mimeType,
  what
})

const kindByEnding: Readonly<Record<string, FileKind>> = {
  ".png": media("image", "image/png"),
  ".jpg": media("image", "image/jpeg"),
  ".jpeg": media("image", "image/jpeg"),
  ".gif": media("image", "image/gif"),
  ".webp": media("image", "image/webp"),
  ".heic": media("image", "image/heic"),
  ".heif": media("image", "image/heif"),
  ".avif": media("image", "image/avif"),
  ".bmp": media("image", "image/bmp"),
  ".ico": media("image", "image/x-icon"),
  ".tif": media("image", "image/tiff"),
  ".tiff": media("image", "image/tiff"),
  ".pdf": media("PDF", "application/pdf"),
  ".mp3": media("audio", "audio/mpeg"),
  ".wav": media("audio", "audio/wav"),
  ".aac": media("audio", "audio/aac"),
  ".flac": media("audio", "audio/flac"),
  ".ogg": media("audio", "audio/ogg"),
  ".aif": media("audio", "audio/aiff"),
  ".aiff": media("audio", "audio/aiff"),
  ".m4a": media("audio", "audio/mp4"),
  ".mp4": media("video", "video/mp4"),
  ".mov": media("video", "video/quicktime"),
  ".avi": media("video", "video/x-msvideo"),
  ".webm": media("video", "video/webm"),
  ".mpg": media("video", "video/mpeg"),
  ".mpeg": media("video", "video/mpeg"),
  ".mkv": media("video", "video/x-matroska"),
  ".wmv": media("video", "video/x-ms-wmv")
}

/** Formats that are never read as text, whatever their first bytes look like. */
const binaries = new Set(
  (
    ".zip .tar .gz .bz2 .xz .7z .rar .zst .jar .war .exe .dll .so .dylib .class .o .a .lib .obj .bin .dat .wasm .pyc .pyo " +
    ".doc .docx .xls .xlsx .ppt .pptx .odt .ods .odp .sqlite .db .woff .woff2 .ttf .otf .eot"
  ).split(" ")
)

/** The video format of the same extension is rarer than TypeScript. */
const alwaysText = new Set([".ts", ".mts", ".cts"])

/** Bytes examined at the start of a file. */
const sniffedBytes = 4_096

/** Whether bytes are binary: a NUL among the first ones, or more than 30 % not printable. */
export const isBinary = (bytes: Uint8Array): boolean => {
  if (encodingOf(bytes) !== undefined) return false
  const first = bytes.subarray(0, sniffedBytes)
  let odd = 0
  for (const byte of first) {
    if (byte === 0) return true
    if (byte < 9 || (byte > 13 && byte < 32 && byte !== 27)) odd += 1
  }
  return odd > first.length * 0.3
}

const beginsAsPdf = (bytes: Uint8Array): boolean => {
  const first = String.fromCharCode(...bytes.subarray(0, 1_024))
  return first.includes("%PDF-")
}

/** The kind of a file by its extension (with the dot) and content. */
export const kindOf = (ending: string, bytes: Uint8Array): FileKind => {
  const lower = ending.toLowerCase()
  if (alwaysText.has(lower)) return { _tag: "Text" }
  if (lower === ".svg") return { _tag: "Svg" }
  const byEnding = kindByEnding[lower]
  if (byEnding?._tag === "Media" && byEnding.what === "PDF" && beginsAsPdf(bytes)) return byEnding
  // A text file with the extension of an image, such as a Git LFS pointer, is read as text.
  if (!isBinary(bytes)) return binaries.has(lower) && bytes.length > 0 ? { _tag: "Binary" } : { _tag: "Text" }
  return byEnding ?? { _tag: "Binary" }
}
