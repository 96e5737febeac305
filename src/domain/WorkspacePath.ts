/** The rules of paths that need no disk. */

/** Why a path cannot be used as it is written; undefined: nothing is wrong with it. */
export const unusable = (given: string): string | undefined => {
  if (given.trim() === "") return "the path is empty"
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
