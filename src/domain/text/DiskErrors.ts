/** Explains disk errors to the user, and tells which of them mean that a file does not exist. */

import { type PlatformError, Predicate } from "effect"
import { quotedPath } from "./WorkspacePath.ts"

/** Explanations of system error codes, with the remedy where there is one. */
const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space is left on the disk; free some space",
  EDQUOT: "the disk quota is used up; free some space",
  EFBIG: "the file reached the system's size limit",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the disk is read-only",
  ENOTDIR: "expected a folder, found a file",
  EISDIR: "expected a file, found a folder",
  ENOENT: "no such file or folder",
  EMFILE: "too many files are open",
  EIO: "the disk reported an error"
}

const codeOf = ({ reason }: PlatformError.PlatformError): string | undefined => {
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  return Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : undefined
}

/** Returns whether the file or folder does not exist. */
export const isNotFound = ({ reason }: PlatformError.PlatformError): boolean => reason._tag === "NotFound"

/** Returns whether the file or folder does not exist, or a part of its path is a file instead of a folder. */
export const isMissingPath = (error: PlatformError.PlatformError): boolean =>
  isNotFound(error) || codeOf(error) === "ENOTDIR"

/**
 * Returns the reason for a disk error in words, without the path. For callers that name the path themselves, or whose path is
 * a temporary name that means nothing to the user.
 */
export const diskErrorReason = (error: PlatformError.PlatformError): string => {
  const code = codeOf(error)
  return (code === undefined ? undefined : reasons[code]) ?? diskErrorText(error)
}

/**
 * Returns the reason for a disk error in words for the user, with the path if the system reports one. The path is escaped, so it
 * cannot pass for more than a path.
 */
export const diskErrorText = (error: PlatformError.PlatformError): string => {
  const { reason } = error
  const cause: unknown = "cause" in reason ? reason.cause : undefined
  const code = codeOf(error)
  const words =
    (code === undefined ? undefined : reasons[code]) ?? (cause instanceof Error ? cause.message : reason.message)
  const place = "pathOrDescriptor" in reason ? reason.pathOrDescriptor : undefined
  if (typeof place !== "string" || place === "") return quotedPath(words)
  const shown = quotedPath(place)
  return words.includes(place) ? quotedPath(words.replaceAll(place, () => shown)) : `${shown}: ${quotedPath(words)}`
}
