import { type UnknownKey, unknownKeyText } from "../../domain/settings/SettingsKey.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"

/** Notices about settings, as data. They say what happened; a program adds what its user can do about it. */

/** Why an existing settings file is ignored. */
export type LeftOutReason =
  /** `folder` is where a link leads; undefined for the working folder itself. */
  | { readonly _tag: "Untrusted"; readonly folder: string | undefined }
  /** The answers about trust cannot be read. */
  | { readonly _tag: "TrustUnknown"; readonly detail: string }

/** Something a user should know about a source of settings. `source` is a file or an environment variable. */
export type SettingsNotice =
  | { readonly _tag: "LeftOut"; readonly source: string; readonly reason: LeftOutReason }
  | { readonly _tag: "UnknownKey"; readonly source: string; readonly key: UnknownKey }
  /** A value uses a variable that is not set, or that is withheld from a folder's settings. */
  | {
      readonly _tag: "MissingVariable"
      readonly source: string
      readonly key: string
      readonly name: string
      readonly isWithheld: boolean
    }
  /** The key counts in the home folder's file only. */
  | { readonly _tag: "HomeOnly"; readonly source: string; readonly key: string; readonly homeFile: string }
  /** A variable that looks like ours. `nearest` is a known name that is spelled alike. */
  | { readonly _tag: "UnknownVariable"; readonly source: string; readonly nearest: string | undefined }

/** Why a file is ignored, in words. */
export const leftOutText = (reason: LeftOutReason): string => {
  if (reason._tag === "TrustUnknown") return `could not find out whether the folder is trusted: ${reason.detail}`
  return reason.folder === undefined
    ? "the folder is not trusted"
    : `it is in ${quotedPath(reason.folder)}, which is not trusted`
}

/** A notice in one line. */
export const settingsNoticeText = (notice: SettingsNotice): string => {
  const source = quotedPath(notice.source)
  switch (notice._tag) {
    case "LeftOut":
      return `${source} is ignored: ${leftOutText(notice.reason)}`
    case "UnknownKey":
      return `${source}: ${unknownKeyText(notice.key)}; it is ignored`
    case "MissingVariable": {
      const why = notice.isWithheld ? "is not available to the settings of a folder" : "is not set"
      return `${source}, ${notice.key}: $${notice.name} ${why}; it stays as it is written`
    }
    case "HomeOnly":
      return `${source}: ${notice.key} counts in ${quotedPath(notice.homeFile)} only; it is ignored`
    case "UnknownVariable":
      return `${source} is no variable of this program${notice.nearest === undefined ? "" : ` (did you mean ${notice.nearest}?)`}`
  }
}
