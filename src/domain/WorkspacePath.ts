/** The rules of paths that need no disk. */

/** Longer ones no system takes (PATH_MAX of Linux; others take less). */
const longest = 4_096

/** What breaks a line, steers a terminal or cannot be seen; joiners are parts of letters. */
const odd = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const oddCharacters = new RegExp(odd, "gu")

/** Characters as JSON writes them when they cannot stand for themselves. */
export const jsonEscaped = (characters: string): string =>
  characters
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("")

/** A text of one line with what is odd in it spelled out, as JSON does it; within JSON it means the same. */
export const spelledOut = (text: string): string => text.replace(oddCharacters, jsonEscaped)

/**
 * A name or a path as it is shown to a model or a person: as it is, or, where it could pass for more than a name, in quotes
 * and with what is odd in it spelled out, as JSON does it. Who reads it can give it back.
 */
export const quoted = (name: string): string => (odd.test(name) ? spelledOut(JSON.stringify(name)) : name)

/** Why a path cannot be used as it is written; undefined: nothing is wrong with it. */
export const unusable = (given: string): string | undefined => {
  if (given.trim() === "") return "the path is empty"
  if (given.length > longest)
    return `the path leads nowhere: it has ${given.length} characters, and none has more than ${longest}`
  if (given.includes("\0")) return `${JSON.stringify(given)} is no path: it has a NUL byte`
  // A shell would put the home folder there; nobody means a folder that is named so.
  return given === "~" || given.startsWith("~/") || given.startsWith("~\\")
    ? `${given}: ~ is not expanded here; give a path from the workspace or an absolute one`
    : undefined
}

/** Whether a place is a folder or lies below it. Both are absolute, with links followed. */
export const isWithin = (folder: string, place: string, separator: string): boolean =>
  place === folder || place.startsWith(folder.endsWith(separator) ? folder : `${folder}${separator}`)

/** A place as it is shown: from the root where it lies below it, with forward slashes; `.` is the root itself. */
export const shownFrom = (root: string, place: string, separator: string): string => {
  if (place === root) return "."
  const shown = isWithin(root, place, separator)
    ? place.slice(root.endsWith(separator) ? root.length : root.length + separator.length)
    : place
  return separator === "/" ? shown : shown.replaceAll(separator, "/")
}
