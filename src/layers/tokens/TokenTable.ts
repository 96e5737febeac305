/** The estimator's table as a file, written by the build: computing it takes a sixth of the time of a short command. */

import { Effect, Layer } from "effect"
import { readFileSync, statSync } from "node:fs"
import { endianness } from "node:os"
import path from "node:path"
import { type Machine, machine, usePrepared } from "../../domain/tokens/TokenMachine.ts"

/** The file beside the program, in the folder of the part that reads it. */
export const fileName = "tokens.bin"

/** The number of UTF-16 units: the bytes of the classes, which come first. */
const units = 65_536

/** Returns the bytes of the table, in the byte order of this machine. */
export const encoded = ({ classOf, steps }: Machine = machine()): Uint8Array =>
  Buffer.concat([classOf, new Uint8Array(steps.buffer, steps.byteOffset, steps.byteLength)])

/** Reads a table. Returns undefined if there is none for this machine's byte order; then it is computed. */
export const read = (file: string): Machine | undefined => {
  if (endianness() !== "LE" || statSync(file, { throwIfNoEntry: false }) === undefined) return undefined
  const { buffer, byteLength, byteOffset } = readFileSync(file)
  // A view of numbers has to begin at a multiple of their size.
  const bytes = byteOffset % Int32Array.BYTES_PER_ELEMENT === 0 ? buffer : buffer.slice(byteOffset)
  const start = bytes === buffer ? byteOffset : 0
  return {
    classOf: new Uint8Array(bytes, start, units),
    steps: new Int32Array(bytes, start + units, (byteLength - units) / Int32Array.BYTES_PER_ELEMENT)
  }
}

/** Takes the table from the program's files, where they have one. */
export const layer = Layer.effectDiscard(
  Effect.sync(() => usePrepared(() => read(path.join(import.meta.dirname, fileName))))
)
