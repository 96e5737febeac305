import type { Effect } from "effect"
import { unknownModelText } from "../model/ModelWindows.ts"
import type { SettingsNotice } from "../settings/Settings.ts"

/**
 * Something a user should know that is not part of an answer. It says what happened; a program adds what its user can do
 * about it.
 */
export type RuntimeNotice =
  /** A complete sentence: a broken file, a server that did not start, a hook that is new. */
  | { readonly _tag: "Message"; readonly text: string }
  /** A source of settings is ignored, in part or whole. */
  | { readonly _tag: "Settings"; readonly notice: SettingsNotice }
  /** Neither the table nor the provider knows the model, so a window of this many tokens is assumed. */
  | { readonly _tag: "UnknownModel"; readonly model: string; readonly window: number }
  /** The folder is not trusted, so these of its files were not loaded. `more`: how many others. */
  | { readonly _tag: "UntrustedFolder"; readonly files: ReadonlyArray<string>; readonly more: number }
  /** The folder of this memory file is not trusted, so the file was not loaded. */
  | { readonly _tag: "UntrustedMemory"; readonly file: string }
  /** Memory files have `count` problems beside those already reported. */
  | { readonly _tag: "MoreMemoryProblems"; readonly count: number }
  /** A call was denied: it needs approval for the reason `because`, and there is no one to ask. */
  | { readonly _tag: "ApprovalUnavailable"; readonly title: string; readonly because: string }

/** Receives notices as they happen. */
export type Notify = (notice: RuntimeNotice) => Effect.Effect<void>

/** A notice of one sentence. */
export const message = (text: string): RuntimeNotice => ({ _tag: "Message", text })

/** A notice in one line. Text from files and servers stands in it as it is: print it escaped on a terminal. */
export const noticeText = (notice: RuntimeNotice): string => {
  switch (notice._tag) {
    case "Message":
      return notice.text
    case "Settings":
      return notice.notice.text
    case "UnknownModel":
      return unknownModelText(notice.model, notice.window)
    case "UntrustedMemory":
      return `${notice.file}: its folder is not trusted, so it is ignored`
    case "UntrustedFolder": {
      const more = notice.more > 0 ? ` and ${notice.more} more` : ""
      const verb = notice.files.length === 1 && notice.more === 0 ? "is" : "are"
      return `this folder is not trusted, so ${notice.files.join(", ")}${more} ${verb} not loaded`
    }
    case "MoreMemoryProblems":
      return `${notice.count} more memory files have problems`
    case "ApprovalUnavailable":
      return `${notice.title} needs approval, because ${notice.because}`
  }
}
