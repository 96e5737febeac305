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

const extensionsFor = (format: FormatName): string =>
  Object.entries(formatsByExtension)
    .flatMap(([ending, formats]) => (formats.includes(format) ? [ending] : []))
    .join(" or ")

/** Why no format can be chosen. */
export type FormatProblem =
  /** `extension` is empty when the name has none. */
  | { readonly _tag: "UnknownExtension"; readonly extension: string }
  | {
      readonly _tag: "OtherFormat"
      readonly extension: string
      /** The formats of the extension. */
      readonly formats: ReadonlyArray<WrittenFormat>
      readonly format: FormatName
    }

/** A problem in words: what is wrong with the name, and which names fit. */
export const formatProblemText = (problem: FormatProblem): string => {
  const { extension } = problem
  if (problem._tag === "OtherFormat") {
    const { format, formats } = problem
    return `${extension} is for ${formats.join(" or ")}; the format ${format} goes into ${extensionsFor(format)}`
  }
  const what = extension === "" ? "the name has no ending" : `no format is written to ${extension}`
  return `${what}; end it in ${listed}, or name one of the formats ${FormatName.literals.join(", ")}`
}

/**
 * Returns the format of a file to write. An extension of another format is refused, and so is an unknown extension without a
 * format, so that a file name always matches its content.
 */
export const formatFor = (
  file: string,
  format: FormatName | undefined
): Result.Result<WrittenFormat, FormatProblem> => {
  const extension = extensionOf(file)
  const formats = Object.hasOwn(formatsByExtension, extension) ? formatsByExtension[extension] : undefined
  const [defaultFormat] = formats ?? []
  if (format === undefined) {
    return defaultFormat === undefined
      ? Result.fail({ _tag: "UnknownExtension", extension })
      : Result.succeed(defaultFormat)
  }
  return formats === undefined || formats.includes(format)
    ? Result.succeed(format)
    : Result.fail({ _tag: "OtherFormat", extension, formats, format })
}
