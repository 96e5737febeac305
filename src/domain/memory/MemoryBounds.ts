/** Limits how much of a request memory files take. */

import { firstUnits, lastUnits } from "../text/Bytes.ts"
import type { MemoryProblem } from "./MemoryProblem.ts"
import type { MemoryBlock } from "./MemoryText.ts"

/** Maximum characters of one file and of all files together, including imports. 0 means no limit. */
export interface MemoryBounds {
  readonly fileChars: number
  readonly totalChars: number
}

const unlessZero = (chars: number): number => (chars === 0 ? Infinity : chars)

/**
 * Cuts files that are too long. If all files together are too long, the files nearest to the working folder, which
 * come last, get room first. A marker in the text gives the number of characters left out and the file that has them.
 */
export const boundedMemory = (blocks: ReadonlyArray<MemoryBlock>, { fileChars, totalChars }: MemoryBounds) => {
  let left = unlessZero(totalChars)
  const problems: Array<MemoryProblem> = []
  const kept = blocks.toReversed().map((block) => {
    const room = Math.min(unlessZero(fileChars), left)
    left -= Math.min(block.text.length, room)
    if (block.text.length <= room) return block
    const setting = room === fileChars ? "fileChars" : "totalChars"
    const { shown, text } = block
    problems.unshift({
      text: `${shown}: has ${text.length} characters, of which ${room} are read (memory.${setting})`
    })
    return { ...block, text: cutText(block, room) }
  })
  return { blocks: kept.toReversed(), problems }
}

/** The share of the room for the end of a file, where facts are added. */
const tailShare = 0.25

/** The head and the tail of a file, with a marker between them. */
const cutText = ({ shown, text }: MemoryBlock, room: number): string => {
  const tail = lastUnits(text, Math.floor(room * tailShare))
  const head = firstUnits(text, room - tail.length)
  const left = text.length - head.length - tail.length
  const marker = `[${left} of ${text.length} characters are left out here; they are in ${shown}: read it before work that it may apply to]`
  return [head, marker, tail].filter((piece) => piece !== "").join("\n")
}
