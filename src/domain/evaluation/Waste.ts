/** What a snapshot spends on words that tell an agent nothing, and on lists of names. */

import { anchorKindOf } from "../compression/Anchors.ts"
import type { Measure } from "./Measure.ts"
import { isStandardName } from "./StandardNames.ts"
import { withoutBraces } from "./WholeWords.ts"

const htmlTag =
  /^<?\/?(?:a|article|aside|body|br|button|code|div|em|footer|form|h[1-6]|head|header|html|i|img|input|label|li|link|main|nav|ol|option|p|path|pre|script|section|select|small|span|strong|style|svg|table|tbody|td|template|textarea|th|thead|tr|ul)\/?>?$/i

const bareNumber = /^\d[\d,.]*$/

/** A folder that is named in full more often than this could be named once. */
const maxPrefixRepeats = 2
const minPrefixSegments = 3

const trimmed = (word: string): string => word.replace(/^[([{"'`*]+|[()\]}"'`*,.;:!?]+$/g, "")

/** Returns the folder of a path with at least three folders. */
const deepFolder = (word: string): string | undefined => {
  const folder = /^[~.]?\/?((?:[\w@.+-]+\/)+)[\w@.+-]+/.exec(word)?.[1]
  return folder !== undefined && folder.split("/").length > minPrefixSegments ? folder : undefined
}

/** A count of words, and of those that say nothing. */
export interface WasteCount {
  readonly words: number
  readonly wasted: number
}

/** Counts bare numbers, HTML tags, names of standard libraries, and repeats of one folder. The numbers of list items do not count. */
export const countWaste = (text: string): WasteCount => {
  const folders = new Map<string, number>()
  let words = 0
  let wasted = 0
  for (const line of text.split("\n")) {
    for (const raw of line.replace(/^\s*\d+[.)]\s/, "").split(/\s+|,(?!\d)/)) {
      if (!/[\p{L}\p{N}]/u.test(raw)) continue
      words += 1
      const word = trimmed(raw)
      const folder = deepFolder(word)
      const times = folder === undefined ? 0 : (folders.get(folder) ?? 0) + 1
      if (folder !== undefined) folders.set(folder, times)
      if (
        bareNumber.test(word) ||
        (/[<>/]/.test(raw) && htmlTag.test(word)) ||
        isStandardName(word) ||
        times > maxPrefixRepeats
      ) {
        wasted += 1
      }
    }
  }
  return { words, wasted }
}

const minListNames = 6
const minLabelledNames = 2
const minNameShare = 0.8

/** Whether a line is a list of names: nearly all of its words are names. A label before a colon, such as a file, does not count. */
export const isListOfNames = (line: string): boolean => {
  const [, label = "", list = ""] = /^\s*(?:[-*] )?([^\s:]+:\s)?(.*)$/.exec(withoutBraces(line)) ?? []
  const words = list.split(/[\s,]+/).filter((word) => /\w/.test(word))
  if (words.length < (label === "" ? minListNames : minLabelledNames)) return false
  const names = words.filter((word) => anchorKindOf(trimmed(word)) !== undefined || /^\d+$/.test(word))
  return names.length >= words.length * minNameShare
}

/** Returns the characters of the lines that are lists of names. */
export const indexChars = (text: string): number =>
  text
    .split("\n")
    .filter(isListOfNames)
    .reduce((sum, line) => sum + line.length + 1, 0)

/** Waste: the share of a snapshot's words that tell nothing. Index: the share of its characters in lists of names. */
export const waste: Measure = {
  figures: [
    { key: "waste", title: "waste", unit: "share" },
    { key: "index", title: "index", unit: "share" }
  ],
  *prepare() {
    return function* ({ snapshot: { original } }) {
      const { wasted, words } = countWaste(original)
      return [{ waste: { part: wasted, whole: words }, index: { part: indexChars(original), whole: original.length } }]
    }
  }
}
