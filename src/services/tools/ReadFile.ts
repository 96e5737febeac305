import { Effect, FileSystem, Path, Schema } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { type FileKind, kindOf } from "../../domain/FileKind.ts"
import { decodeFile, type Shown, showLines, widestLine } from "../../domain/FileText.ts"
import { type ToolResult, words } from "../../domain/ToolResult.ts"
import { FileLimits, type FileSettings } from "../FileLimits.ts"
import { read } from "../RegularFile.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"
import { Workspace } from "../Workspace.ts"

const LineNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const parameters = Schema.Struct({
  file_path: Schema.String.annotate({ description: "The file, absolute or from the root of the workspace" }),
  start_line: Schema.optionalKey(LineNumber).annotate({ description: "The first line wanted, counted from 1" }),
  end_line: Schema.optionalKey(LineNumber).annotate({ description: "The last line wanted; it is included" })
})
type Wanted = typeof parameters.Type

/** Larger drawings are no text anybody reads (spec 6). */
export const mostDrawing = 1_048_576

/** Names that were used before: `absolute_path`, and `offset` from 0 with `limit` (spec 6). Absent and null are the same. */
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
  const named = { file_path: file_path ?? absolute_path, start_line: start, end_line: end }
  return {
    ...rest,
    ...Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined && value !== null))
  }
}

const failure = (type: string, message: string) => new ToolFailure({ message, type })

/** Which lines of a text are shown: `lines 1-2000 of 4500`. */
const rangeOf = (part: Shown): string => `lines ${part.from}-${part.to} of ${part.total}`

/** What is said of a text that is shown in part, and how to read on. */
export const noticeOf = (part: Shown, shown: string, widest: number = widestLine): string =>
  [
    `This is only part of ${shown}: ${rangeOf(part)}.`,
    ...(part.hasCutLines ? [`Lines of more than ${widest.toLocaleString("en-US")} characters are cut.`] : []),
    ...(part.to < part.total ? [`To read on, call read_file with start_line ${part.to + 1}.`] : [])
  ].join(" ")

/** How much of a text is shown. */
type Shape = Pick<FileSettings, "lineLength" | "lines">

const textResult = Effect.fnUntraced(function* (
  text: string,
  shown: string,
  { end_line, start_line = 1 }: Wanted,
  { lineLength, lines }: Shape
): Effect.fn.Return<ToolResult<string>, ToolFailure> {
  if (text === "") return { value: `(${shown} is empty)`, display: words(`${shown} is empty`) }
  const part = showLines(text, start_line, end_line ?? start_line + lines - 1, lineLength)
  if (part.from > part.total) {
    return yield* failure(
      "invalid_tool_params",
      `${shown} has ${part.total} lines; start_line ${part.from} is behind its end`
    )
  }
  if (!part.isPart) return { value: part.text }
  return {
    value: `${noticeOf(part, shown, lineLength)}\n\n--- CONTENT ---\n${part.text}`,
    display: words(`${rangeOf(part)} from ${shown}${part.hasCutLines ? " (some lines are cut)" : ""}`)
  }
})

/** A file as an answer, by what kind of file it is. */
export const fileResult = (
  kind: FileKind,
  bytes: Uint8Array,
  shown: string,
  wanted: Wanted,
  shape: Shape
): Effect.Effect<ToolResult<string>, ToolFailure> => {
  switch (kind._tag) {
    case "Text":
      return textResult(decodeFile(bytes), shown, wanted, shape)
    case "Svg":
      return bytes.length > mostDrawing
        ? Effect.succeed({ value: `${shown} is a drawing (SVG) of more than 1 MiB and is not shown.` })
        : textResult(decodeFile(bytes), shown, wanted, shape)
    case "Media":
      return Effect.succeed({
        value: `${shown} (${kind.what}) is attached.`,
        media: [{ inlineData: { mimeType: kind.mimeType, data: Base64.encode(bytes) } }],
        display: words(`${kind.what} ${shown}`)
      })
    case "Binary":
      return Effect.succeed({ value: `${shown} is binary (${bytes.length} bytes) and cannot be shown as text.` })
  }
}

/** Reads one file: text by lines, images, PDFs, sound and film as they are (spec 6). */
export const readFile: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const path = yield* Path.Path
    const workspace = yield* Workspace
    const fs = workspace.files(yield* FileSystem.FileSystem)
    const limits = yield* FileLimits
    return make({
      name: "read_file",
      description: `Shows a file of the workspace. Of a text you get up to ${limits.lines} lines at a time, with a word on how to read on; name start_line and end_line for a part. Images, PDFs, sound and film are attached as they are.`,
      parameters,
      result: Schema.String,
      kind: "read",
      older,
      title: ({ end_line, file_path, start_line }) =>
        start_line === undefined && end_line === undefined
          ? file_path
          : `${file_path} lines ${start_line ?? 1}-${end_line ?? ""}`,
      run: Effect.fn("ReadFile.run")(function* (wanted) {
        const { end_line, file_path, start_line = 1 } = wanted
        if (end_line !== undefined && end_line < start_line) {
          return yield* failure("invalid_tool_params", `end_line ${end_line} lies before start_line ${start_line}`)
        }
        const place = yield* workspace.path(file_path, "read")
        const shown = workspace.shown(place)
        const bytes = yield* read(place, shown, limits.bytes).pipe(Effect.provideService(FileSystem.FileSystem, fs))
        return yield* fileResult(kindOf(path.extname(place), bytes), bytes, shown, wanted, limits)
      })
    })
  }
)
