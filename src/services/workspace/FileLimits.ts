/** The limits of what tools show of files, and which files they ignore. */

import { Context } from "effect"
import { defaultMaxLines, maxLineChars } from "../../domain/workspace/FileText.ts"
import { maxFileBytes } from "../platform/RegularFile.ts"

/** How much of a file tools show, and which files they ignore by default (`Settings.files`). */
export interface FileSettings {
  /** Most lines shown of a text at once. */
  readonly lines: number
  /** Longest line shown, in characters. */
  readonly lineLength: number
  /** Largest file read, in bytes. */
  readonly bytes: number
  /** Whether Git's ignore rules apply. */
  readonly respectGitIgnore: boolean
  /** Whether the workspace's own ignore rules apply. */
  readonly respectGeminiIgnore: boolean
}

/** Read when tools are created. The defaults are those of Gemini CLI (March 2026). */
export const FileLimits = Context.Reference<FileSettings>("palimpsest/services/workspace/FileLimits", {
  defaultValue: () => ({
    lines: defaultMaxLines,
    lineLength: maxLineChars,
    bytes: maxFileBytes,
    respectGitIgnore: true,
    respectGeminiIgnore: true
  })
})
