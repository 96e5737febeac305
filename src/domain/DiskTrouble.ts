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

/** Why the disk said no, in words for a person, and where, if the system says so. A path in it cannot pass for more than one. */
export const diskTrouble = ({ reason }: PlatformError.PlatformError): string => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  const code = Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : undefined
  const words =
    (code === undefined ? undefined : said[code]) ?? (cause instanceof Error ? cause.message : reason.message)
  const place = "pathOrDescriptor" in reason ? reason.pathOrDescriptor : undefined
  if (typeof place !== "string" || place === "") return quoted(words)
  const shown = quoted(place)
  return words.includes(place) ? quoted(words.replaceAll(place, () => shown)) : `${shown}: ${quoted(words)}`
}
