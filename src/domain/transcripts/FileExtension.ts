/** Chooses the format in which a file is written: a given format, else that of its extension. */

import { Result } from "effect"
import { FormatName } from "./Transcript.ts"

/** A format that can be written: those that can be read back, and Markdown, which cannot. */
export type WrittenFormat = FormatName | "markdown"

/** The formats of each extension; the first is the default. */
const formatsByExtension: Readonly<Record<string, ReadonlyArray<WrittenFormat>>> = {
  ".md": ["markdown"],
  ".markdown": ["markdown"],
  ".json": ["contents", "gemini"],
  ".jsonl": ["palimpsest", "claude", "codex", "gemini", "pi"]
}

const listed = ".md (Markdown, for reading), .json (contents) or .jsonl (palimpsest, with all that can be recalled)"

const extensionOf = (file: string): string => /[^/\\](\.[^./\\]+)$/.exec(file)?.[1]?.toLowerCase() ?? ""

const extensionsFor = (format: FormatName): string =>
  Object.entries(formatsByExtension)
    .flatMap(([ending, formats]) => (formats.includes(format) ? [ending] : []))
    .join(" or ")

/**
 * Returns the format of a file to write, or why none can be chosen: what is wrong with the name, and which names fit. An extension of
 * another format is refused, and so is an unknown extension without a format, so that a file name always matches its content.
 */
export const formatFor = (file: string, format: FormatName | undefined): Result.Result<WrittenFormat, string> => {
  const extension = extensionOf(file)
  const formats = Object.hasOwn(formatsByExtension, extension) ? formatsByExtension[extension] : undefined
  const written = format ?? formats?.[0]
  if (written === undefined) {
    const what = extension === "" ? "the name has no ending" : `no format is written to ${extension}`
    return Result.fail(`${what}; end it in ${listed}, or name one of the formats ${FormatName.literals.join(", ")}`)
  }
  return formats === undefined || format === undefined || formats.includes(format)
    ? Result.succeed(written)
    : Result.fail(
        `${extension} is for ${formats.join(" or ")}; the format ${format} goes into ${extensionsFor(format)}`
      )
}
