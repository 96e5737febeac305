import { type PlatformError, Predicate } from "effect"
import { quoted } from "./WorkspacePath.ts"

/** What the codes of the system mean, and where there is something, what to do. */
const said: Readonly<Record<string, string>> = {
  ENOSPC: "no space is left on the disk; make room there",
  EDQUOT: "the disk's quota is used up; make room there",
  EFBIG: "the file may not grow any further; the system limits its size",
  EACCES: "you are not allowed to; check its permissions",
  EPERM: "you are not allowed to; check its permissions",
  EROFS: "the disk can only be read",
  ENOTDIR: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
  ENOENT: "there is no such file or folder",
  EMFILE: "too many files are open",
  EIO: "the disk failed"
}

const codeOf = ({ reason }: PlatformError.PlatformError): string | undefined => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  return Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : undefined
}

/** There is no such file or folder. */
export const isNotFound = ({ reason }: PlatformError.PlatformError): boolean => reason._tag === "NotFound"

/** There is no such file or folder, or on the way to it a file stands in the place of a folder. */
export const isNotThere = (error: PlatformError.PlatformError): boolean =>
  isNotFound(error) || codeOf(error) === "ENOTDIR"

/** Why the disk said no, in words, without the place. For callers that name it, and whose own temporary names are no news. */
export const diskWords = (error: PlatformError.PlatformError): string => {
  const code = codeOf(error)
  return (code === undefined ? undefined : said[code]) ?? diskTrouble(error)
}

/** Why the disk said no, in words for a person, and where, if the system says so. A path in it cannot pass for more than one. */
export const diskTrouble = (error: PlatformError.PlatformError): string => {
  const { reason } = error
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  const code = codeOf(error)
  const words =
    (code === undefined ? undefined : said[code]) ?? (cause instanceof Error ? cause.message : reason.message)
  const place = "pathOrDescriptor" in reason ? reason.pathOrDescriptor : undefined
  if (typeof place !== "string" || place === "") return quoted(words)
  const shown = quoted(place)
  return words.includes(place) ? quoted(words.replaceAll(place, () => shown)) : `${shown}: ${quoted(words)}`
}
