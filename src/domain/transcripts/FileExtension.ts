import { Result } from "effect"
import { FormatName } from "./Transcript.ts"

/** Chooses the format in which a file is written: a given format, else that of its extension. */

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

/** The extensions of a format. */
const extensionsFor = (format: FormatName): string =>
  Object.entries(formatsByExtension)
    .flatMap(([ending, formats]) => (formats.includes(format) ? [ending] : []))
    .join(" or ")

/**
 * Returns the format of a file to write. An extension of another format is refused, and so is an unknown extension without a
 * format, so that a file name always matches its content.
 */
export const formatFor = (file: string, format: FormatName | undefined): Result.Result<WrittenFormat, string> => {
  const ending = extensionOf(file)
  const formats = Object.hasOwn(formatsByExtension, ending) ? formatsByExtension[ending] : undefined
  const [defaultFormat] = formats ?? []
  if (format === undefined) {
    const what = ending === "" ? "the name has no ending" : `no format is written to ${ending}`
    return defaultFormat === undefined
      ? Result.fail(`${what}; end it in ${listed}, or name one of the formats ${FormatName.literals.join(", ")}`)
      : Result.succeed(defaultFormat)
  }
  return formats === undefined || formats.includes(format)
    ? Result.succeed(format)
    : Result.fail(`${ending} is for ${formats.join(" or ")}; the format ${format} goes into ${extensionsFor(format)}`)
}
