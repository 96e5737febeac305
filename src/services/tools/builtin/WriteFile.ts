/** The `write_file` tool: writes whole files. */

import { Context, Effect, type FileSystem, type Path, Schema } from "effect"
import { hasCrLf, withCrLf } from "../../../domain/tools/Edit.ts"
import { unescapedContent } from "../../../domain/tools/ModelEscapes.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { makePrepared, type Tool } from "../Tool.ts"
import { FileChangeResult, fileChanges } from "./FileChange.ts"

/** Whether to unescape content before writing it, for models that escape too much. Default: false. */
export const UnescapesContent = Context.Reference<boolean>("palimpsest/services/tools/WriteFile/UnescapesContent", {
  defaultValue: () => false
})

const byteOrderMark = "\uFEFF"

/**
 * Keeps CR LF in a file whose lines all end with it, and a byte order mark: models write LF and no mark, whatever they read.
 */
const inSameForm = (before: string | undefined, content: string): string => {
  if (before === undefined) return content
  const lines = !content.includes("\r") && hasCrLf(before) ? withCrLf(content) : content
  return before.startsWith(byteOrderMark) && !lines.startsWith(byteOrderMark) ? `${byteOrderMark}${lines}` : lines
}

/** The `write_file` tool: a new file, or another text in place of all that it has. */
export const writeFile: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const prepare = yield* fileChanges
    const aggressive = yield* UnescapesContent
    return makePrepared({
      name: "write_file",
      description:
        "Writes a text to a file, replacing its whole content. Creates the file and its folders if they do not exist. To change part of a file, use replace.",
      parameters: Schema.Struct({
        file_path: Schema.String.annotate({ description: "The file, absolute or relative to the workspace" }),
        content: Schema.String.annotate({ description: "The complete content of the file" })
      }),
      result: FileChangeResult,
      kind: "edit",
      title: ({ file_path }) => file_path,
      prepare: ({ content, file_path }) =>
        prepare(file_path, ({ text }) => Effect.succeed(inSameForm(text, unescapedContent(content, aggressive))))
    })
  }
)
