import { type PlatformError, Schema } from "effect"
import { oneLine, shortLine } from "../../domain/text/OneLine.ts"

/**
 * A conversation could not be read.
 *
 * Details: `message` names the file, the line and what was expected, in one line. `kind` says what a caller can do: read a file
 * with a `BrokenLine` leniently, name the format of an `UnknownFormat`, give the program more memory for a `TooLarge` one, list
 * the sessions for an `UnknownSession`, and read the conversation of a `NotASession`, which no agent wrote.
 */
export class TranscriptError extends Schema.TaggedError<TranscriptError>()("TranscriptError", {
  path: Schema.String,
  /** From 1; 0 when the error concerns the whole file. */
  line: Schema.Natural,
  kind: Schema.Literals(["BrokenLine", "UnknownFormat", "TooLarge", "UnknownSession", "NotASession", "Unusable"]),
  message: Schema.String,
  /** Bytes of memory that reading a `TooLarge` file needs. */
  memory: Schema.optionalKey(Schema.Natural)
}) {}

/** Returns what messages call a file; `-` is standard input. */
export const inputName = (path: string): string => (path === "-" ? "standard input" : path)

const placeText = (path: string, line: number): string =>
  `${oneLine(inputName(path))}${line > 0 ? `, line ${line}` : ""}: `

/** Maximum length of what a message says about a file. */
export const maxDetailChars = 300

/** Makes an error in a line of a file; line 0 is the whole file. */
export const transcriptError = (
  path: string,
  line: number,
  message: string,
  kind: TranscriptError["kind"] = "Unusable",
  memory?: number
): TranscriptError =>
  new TranscriptError({
    path,
    line,
    kind,
    message: placeText(path, line) + shortLine(message, maxDetailChars),
    ...(memory === undefined ? {} : { memory: Math.ceil(memory) })
  })

/** Returns the same error in a line of another file. */
export const errorAt = (path: string, line: number, error: TranscriptError): TranscriptError =>
  transcriptError(path, line, error.message.slice(placeText(error.path, error.line).length), error.kind, error.memory)

/** Makes the error for a file that cannot be opened or read. */
export const unreadable = (path: string, error: PlatformError.PlatformError): TranscriptError => {
  const { reason } = error
  switch (reason._tag) {
    case "NotFound":
      return transcriptError(path, 0, "no such file")
    case "PermissionDenied":
      return transcriptError(path, 0, "permission denied")
    default:
      return transcriptError(path, 0, `cannot be read (${reason.description ?? reason._tag})`)
  }
}
