import { Result } from "effect"
import { FormatName } from "./Transcript.ts"

/** Which format a file gets: its ending decides, unless a format is given. */

/** A format that can be written: those that can be read back, and Markdown, which cannot. */
export type WrittenFormat = FormatName | "markdown"

/** What each ending may hold; the first is the default. */
const byEnding: Readonly<Record<string, ReadonlyArray<WrittenFormat>>> = {
  ".md": ["markdown"],
  ".markdown": ["markdown"],
  ".json": ["contents", "gemini"],
  ".jsonl": ["palimpsest", "claude", "codex", "gemini", "pi"]
}

const listed = ".md (Markdown, for reading), .json (contents) or .jsonl (palimpsest, with all that can be recalled)"

const endingOf = (file: string): string => /[^/\\](\.[^./\\]+)$/.exec(file)?.[1]?.toLowerCase() ?? ""

/** Where a format is at home: the endings that may hold it. */
const endingsFor = (format: FormatName): string =>
  Object.entries(byEnding)
    .flatMap(([ending, formats]) => (formats.includes(format) ? [ending] : []))
    .join(" or ")

/**
 * The format of a file to be written. An ending that means another format is refused, and so is an unknown ending where
 * no format is given: nobody finds JSON behind a name that promises something else.
 */
export const formatFor = (file: string, wanted: FormatName | undefined): Result.Result<WrittenFormat, string> => {
  const ending = endingOf(file)
  const formats = Object.hasOwn(byEnding, ending) ? byEnding[ending] : undefined
  const [usual] = formats ?? []
  if (wanted === undefined) {
    const what = ending === "" ? "the name has no ending" : `no format is written to ${ending}`
    return usual === undefined
      ? Result.fail(`${what}; end it in ${listed}, or name one of the formats ${FormatName.literals.join(", ")}`)
      : Result.succeed(usual)
  }
  return formats === undefined || formats.includes(wanted)
    ? Result.succeed(wanted)
    : Result.fail(`${ending} is for ${formats.join(" or ")}; the format ${wanted} goes into ${endingsFor(wanted)}`)
}
