import { decode, encode, joinBytes } from "../../domain/text/Bytes.ts"

/** Splits bytes into lines. A line that spans chunks is copied once, when it is complete. */
export class LineSplitter {
  private pieces: Array<Uint8Array> = []
  /** Bytes of the incomplete line. */
  pending = 0

  /** Returns the lines that are complete with this chunk, without their line breaks. */
  push(chunk: Uint8Array): Array<Uint8Array> {
    const lines: Array<Uint8Array> = []
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.keep(chunk.subarray(from, end))
      lines.push(this.rest())
      from = end + 1
    }
    this.keep(chunk.subarray(from))
    return lines
  }

  /** Returns the bytes after the last line break. */
  rest(): Uint8Array {
    const line = joinBytes(this.pieces)
    this.pieces = []
    this.pending = 0
    return line
  }

  private keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    this.pieces.push(piece)
    this.pending += piece.length
  }
}

/** Returns a function that takes the bytes of a file, chunk by chunk, and gives them in UTF-8: `>` in PowerShell writes UTF-16. */
export const inUtf8 = (): ((chunk: Uint8Array) => Uint8Array) => {
  let decoder: InstanceType<typeof TextDecoder> | null | undefined
  return (chunk) => {
    if (decoder === undefined) {
      const mark = (chunk[0] ?? 0) * 256 + (chunk[1] ?? 0)
      decoder = mark === 0xfffe ? new TextDecoder("utf-16le") : mark === 0xfeff ? new TextDecoder("utf-16be") : null
    }
    return decoder === null ? chunk : encode(decoder.decode(chunk, { stream: true }))
  }
}

/**
 * Returns the text of a line or a document, without a carriage return at its end or a byte order mark at the beginning of
 * the file.
 */
export const lineText = (bytes: Uint8Array, number: number): string => {
  const end = bytes.at(-1) === 13 ? bytes.length - 1 : bytes.length
  const { text } = decode(bytes.subarray(0, end))
  return number === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text
}
