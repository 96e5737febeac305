/** Path rules that need no disk access. */

/** Maximum path length: Linux's PATH_MAX; other systems accept less. */
const maxPathChars = 4_096

/** Characters that break a line, control a terminal or are invisible. Joiners are excluded: they are parts of letters. */
const unprintable = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const unprintables = new RegExp(`${unprintable.source}`, "gu")

/** Escapes characters as JSON does. */
export const jsonEscapes = (characters: string): string =>
  characters
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("")

/** Escapes the unprintable characters of a line as JSON does; within JSON it means the same. */
export const escapeUnprintable = (text: string): string => text.replace(unprintables, jsonEscapes)

/**
 * Returns a name or path as shown to a model or user: unchanged, or, where it could pass for more than a name, quoted and with its
 * unprintable characters escaped as in JSON. The reader can pass it back.
 */
export const quotedPath = (name: string): string =>
  unprintable.test(name) ? escapeUnprintable(JSON.stringify(name)) : name

/** Returns why a path cannot be used as written; undefined when it can. */
export const pathProblem = (path: string): string | undefined => {
  if (path.trim() === "") return "the path is empty"
  if (path.length > maxPathChars)
    return `the path is too long: it has ${path.length} characters, and the maximum is ${maxPathChars}`
  if (path.includes("\0")) return `${JSON.stringify(path)} is not a path: it contains a NUL byte`
  // A shell would expand this to the home folder; a folder of that name is not meant.
  return path === "~" || path.startsWith("~/") || path.startsWith("~\\")
    ? `${path}: ~ is not expanded here; give a path from the workspace or an absolute one`
    : undefined
}

/** Returns whether a path is a folder or lies below it. Both are absolute, with links followed. */
export const isWithin = (folder: string, place: string, separator: string): boolean =>
  place === folder || place.startsWith(folder.endsWith(separator) ? folder : `${folder}${separator}`)

/** Whether a relative path leads out of its folder: `../a`, but not the file `..a`. */
export const leadsOut = (relative: string): boolean => /^\.\.(?:[\\/]|$)/.test(relative)

/** Returns the deepest of these folders that a path lies in; an empty text when it lies in none. */
export const innermostFolder = (folders: ReadonlyArray<string>, place: string, separator: string): string =>
  folders
    .filter((folder) => isWithin(folder, place, separator))
    .reduce((innermost, folder) => (folder.length > innermost.length ? folder : innermost), "")

const onDrive = /^(?:[A-Za-z]:[\\/]|\\\\)/

/** A path of Windows with slashes, also in the forms of its Unix shells: `/c/w`, `/mnt/c/w`. */
const withSlashes = (path: string): string =>
  path.replaceAll("\\", "/").replace(/^\/(?:mnt\/)?([A-Za-z])(?=\/|$)/, (_, drive: string) => `${drive.toUpperCase()}:`)

/**
 * Returns a path below a folder relative to it, and any other path unchanged. On Windows, the relative path has slashes, and case
 * does not tell folders apart.
 */
export const relativePath = (path: string, folder: string | undefined): string => {
  if (folder === undefined || folder === "" || folder === "/") return path
  const isWindows = onDrive.test(folder)
  const [shown, parent] = isWindows ? [withSlashes(path), withSlashes(folder)] : [path, folder]
  const root = parent.endsWith("/") ? parent : `${parent}/`
  const [whole, start] = isWindows ? [shown.toLowerCase(), root.toLowerCase()] : [shown, root]
  if (whole.startsWith(start) && whole.length > start.length) return shown.slice(root.length)
  return isWindows && !onDrive.test(path) && !path.startsWith("/") ? shown : path
}

/** Returns a path for display: relative to the root if it lies below it, with forward slashes. `.` is the root itself. */
export const shownFrom = (root: string, place: string, separator: string): string => {
  if (place === root) return "."
  const shown = isWithin(root, place, separator)
    ? place.slice(root.endsWith(separator) ? root.length : root.length + separator.length)
    : place
  return separator === "/" ? shown : shown.replaceAll(separator, "/")
}
