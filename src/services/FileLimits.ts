import { Context } from "effect"
import { usualLines, widestLine } from "../domain/FileText.ts"
import { mostBytes } from "./RegularFile.ts"

/** How much of files the tools show, and which they leave out where a call says nothing else (`Settings.files`). */
export interface FileSettings {
  /** Lines that are shown of a text at once. */
  readonly lines: number
  /** Characters that are shown of a line. */
  readonly lineLength: number
  /** Bytes of the largest file that is read. */
  readonly bytes: number
  /** Whether the ignore rules of git leave files out. */
  readonly respectGitIgnore: boolean
  /** Whether the workspace's own ignore rules do. */
  readonly respectGeminiIgnore: boolean
}

/** Read when the tools are made; as in spec 6 and 13 unless a layer says otherwise. */
export const FileLimits = Context.Reference<FileSettings>("palimpsest/services/FileLimits", {
  defaultValue: () => ({
    lines: usualLines,
    lineLength: widestLine,
    bytes: mostBytes,
    respectGitIgnore: true,
    respectGeminiIgnore: true
  })
})
