/** The `read_file` tool, and the answers for files that other tools give, too. */

import { Effect, FileSystem, type Path, Schema } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { type ToolResult, textDisplay } from "../../../domain/tools/ToolResult.ts"
import { type FileKind, kindOf } from "../../../domain/workspace/FileKind.ts"
import { decodeFile, type ShownLines, showLines, maxLineChars } from "../../../domain/workspace/FileText.ts"
import { read } from "../../platform/RegularFile.ts"
import type { FileSettings } from "../../workspace/FileLimits.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { fileReadFailure, make, pathArgument, type Tool, ToolFailure } from "../Tool.ts"
import { fileReader, withoutNulls } from "./FolderToolArguments.ts"

const LineNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const parameters = Schema.Struct({
  file_path: Schema.String.annotate({ description: "The file, absolute or relative to the root of the workspace" }),
  start_line: Schema.optionalKey(LineNumber).annotate({ description: "The first line to read, counted from 1" }),
  end_line: Schema.optionalKey(LineNumber).annotate({ description: "The last line to read, inclusive" })
})
type Parameters = typeof parameters.Type

/** Maximum size of an SVG file that is shown as text. */
export const maxSvgBytes = 1_048_576

/** Accepts the older names `absolute_path`, and `offset` (from 0) with `limit`. Null means absent. */
const older = ({
  absolute_path,
  end_line,
  file_path,
  limit,
  offset,
  start_line,
  ...rest
}: Readonly<Record<string, unknown>>): unknown => {
  const start = start_line ?? (typeof offset === "number" ? offset + 1 : offset)
  const first = typeof start === "number" ? start : 1
  const end = end_line ?? (typeof limit === "number" ? first + limit - 1 : limit)
  return withoutNulls({ ...rest, file_path: file_path ?? absolute_path, start_line: start, end_line: end })
}

const failure = (type: string, message: string) => new ToolFailure({ message, type })

/** The range shown: `lines 1-2000 of 4500`. */
const rangeOf = (part: ShownLines): string => `lines ${part.from}-${part.to} of ${part.total}`

/** The notice on a text that is shown in part: how much is shown, and how to read on. */
export const partialNotice = (part: ShownLines, shown: string, widest: number = maxLineChars): string =>
  [
    `This is only part of ${shown}: ${rangeOf(part)}.`,
    ...(part.hasCutLines ? [`Lines of more than ${widest.toLocaleString("en-US")} characters are cut.`] : []),
    ...(part.to < part.total ? [`To read on, call read_file with start_line ${part.to + 1}.`] : [])
  ].join(" ")

/** How much of a text to show. */
type TextLimits = Pick<FileSettings, "lineLength" | "lines">

const textResult = Effect.fnUntraced(function* (
  text: string,
  shown: string,
  { end_line, start_line = 1 }: Parameters,
  { lineLength, lines }: TextLimits
) {
  if (text === "") return { value: `(${shown} is empty)`, display: textDisplay(`${shown} is empty`) }
  const part = showLines(text, start_line, end_line ?? start_line + lines - 1, lineLength)
  if (part.from > part.total) {
    return yield* failure(
      "invalid_tool_params",
      `${shown} has ${part.total} lines; start_line ${part.from} is after its end`
    )
  }
  if (!part.isPart) return { value: part.text }
  return {
    value: `${partialNotice(part, shown, lineLength)}\n\n--- CONTENT ---\n${part.text}`,
    display: textDisplay(`${rangeOf(part)} from ${shown}${part.hasCutLines ? " (some lines are cut)" : ""}`)
  }
})

/** The answer for a file, by its kind. */
export const fileResult = (
  kind: FileKind,
  bytes: Uint8Array,
  shown: string,
  params: Parameters,
  shape: TextLimits
): Effect.Effect<ToolResult<string>, ToolFailure> => {
  switch (kind._tag) {
    case "Text":
      return textResult(decodeFile(bytes), shown, params, shape)
    case "Svg":
      return bytes.length > maxSvgBytes
        ? Effect.succeed({ value: `${shown} is a drawing (SVG) of more than 1 MiB and is not shown.` })
        : textResult(decodeFile(bytes), shown, params, shape)
    case "Media":
      return Effect.succeed({
        value: `${shown} (${kind.what}) is attached.`,
        media: [{ inlineData: { mimeType: kind.mimeType, data: Base64.encode(bytes) } }],
        display: textDisplay(`${kind.what} ${shown}`)
      })
    case "Binary":
      return Effect.succeed({ value: `${shown} is binary (${bytes.length} bytes) and cannot be shown as text.` })
  }
}

/** The `read_file` tool: reads text by lines, and attaches images, PDFs, audio and video as they are. */
export const readFile: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const { fs, limits, path, workspace } = yield* fileReader
    return make({
      name: "read_file",
      description: `Reads a file of the workspace. Returns up to ${limits.lines} lines of a text at a time and says how to continue; pass start_line and end_line for a part. Attaches images, PDFs, audio and video unchanged.`,
      parameters,
      result: Schema.String,
      kind: "read",
      adaptArguments: older,
      title: ({ end_line, file_path, start_line }) =>
        start_line === undefined && end_line === undefined
          ? file_path
          : `${file_path} lines ${start_line ?? 1}-${end_line ?? ""}`,
      run: Effect.fn("ReadFile.run")(function* (params) {
        const { end_line, file_path, start_line = 1 } = params
        if (end_line !== undefined && end_line < start_line) {
          return yield* failure("invalid_tool_params", `end_line ${end_line} is before start_line ${start_line}`)
        }
        const place = yield* pathArgument(workspace, file_path, "read")
        const shown = workspace.shown(place)
        const bytes = yield* read(place, shown, limits.bytes).pipe(
          Effect.provideService(FileSystem.FileSystem, fs),
          Effect.mapError(fileReadFailure)
        )
        return yield* fileResult(kindOf(path.extname(place), bytes), bytes, shown, params, limits)
      })
    })
  }
)
