/** Output of a command: the answer goes to stdout, everything else to stderr. */

import { Context, Effect, Fiber, Logger, References, Schema, Stdio, Stream } from "effect"
import { CliOutput, TerminalCapabilities } from "effect/cli"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { printableLine, visibleBlock, visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { number, plural, share, sizeText, tokensText } from "../../domain/text/NumberText.ts"
import { escapeUnprintable } from "../../domain/text/WorkspacePath.ts"
import { wrapLines, wrapStream } from "../../domain/text/Wrap.ts"
import { type Advance, ReportProgress } from "../../services/platform/Progress.ts"
import { telemetryMark } from "../../services/telemetry/Telemetry.ts"
import { ExitError, failed } from "./ExitError.ts"

// The line that shows how far long work is: a bar, what is done of what, the time left, and what the work is.

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const barWidth = 20
/** The elapsed time and the share done from which the time left is estimated. */
const guessMillis = 2_000
const guessShare = 0.05

const size = (bytes: number): string =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`

const amount = (value: number, unit: string): string => (unit === "bytes" ? size(value) : `${number(value)} ${unit}`)

const duration = (millis: number): string => {
  const seconds = Math.max(1, Math.ceil(millis / 1_000))
  return seconds < 100 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
}

/** The state of the work when a line is drawn. */
export interface ProgressState {
  readonly label: string
  /** The frame of the animation, from 0. */
  readonly frame: number
  /** Milliseconds since the work began. */
  readonly millis: number
  readonly advance: Advance | undefined
}

/** Returns the line. Figures come before the label, because a narrow terminal cuts the end. */
export const progressLine = ({ advance, frame, label, millis }: ProgressState): string => {
  const sign = spinner[frame % spinner.length] ?? ""
  const since = millis < 1_000 ? "" : ` ${Math.floor(millis / 1_000)} s`
  if (advance === undefined) return `${sign} ${label}${since}`
  const { done, total, unit } = advance
  if (total === undefined || total <= 0) return `${sign} ${amount(done, unit)}${since}, ${label}`
  const share = Math.min(1, Math.max(0, done / total))
  const full = Math.floor(share * barWidth)
  const left = ((1 - share) / share) * millis
  const guess = millis >= guessMillis && share >= guessShare && share < 1 ? `, ${duration(left)} left` : ""
  const count =
    unit === "bytes"
      ? `${size(done).replace(/ \w+$/, "")} of ${size(total)}`
      : `${number(done)} of ${amount(total, unit)}`
  return `${sign} ${"█".repeat(full)}${"░".repeat(barWidth - full)} ${Math.floor(share * 100)} %, ${count}${guess}: ${label}`
}

const errorCode = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

const writeStderr = Effect.fnUntraced(function* (value: string) {
  const stdio = yield* Stdio.Stdio
  yield* Stream.make(encode(value)).pipe(Stream.run(stdio.stderr({ endOnDone: false })), Effect.ignore)
})

/** Whether a progress line is on the terminal now. */
const Drawn = Context.Reference<{ is: boolean }>("palimpsest/cli/output/Drawn", { defaultValue: () => ({ is: false }) })

/** Erases the line of the cursor. */
const wiped = "\r\u001b[K"

/** Erases the progress line before other text is written. */
const wipe = Effect.flatMap(Drawn, (drawn) => {
  if (!drawn.is) return Effect.void
  drawn.is = false
  return writeStderr(wiped)
})

const writeStdout = Effect.fnUntraced(function* (value: Uint8Array) {
  const stdio = yield* Stdio.Stdio
  yield* wipe
  yield* Stream.make(value).pipe(
    Stream.run(stdio.stdout({ endOnDone: false })),
    Effect.mapError((error) =>
      errorCode(error.cause) === "EPIPE"
        ? new ExitError({ message: "", status: 0 })
        : failed(`the output could not be written: ${causeText(error)}`)
    )
  )
})

const causeText = (error: Error): string => (error.cause instanceof Error ? error.cause.message : error.message)

const stdoutIsTerminal = Effect.flatMap(Stdio.Stdio, (stdio) => stdio.stdoutIsTerminal)

/**
 * Writes bytes to stdout and waits until they are taken.
 *
 * A pipe or a file receives them unchanged. A terminal receives text in which control and invisible characters are escaped. A
 * closed pipe (`| head`) ends the command quietly. Returns whether the written text differs from the bytes.
 */
export const bytes = Effect.fnUntraced(function* (value: Uint8Array) {
  if (!(yield* stdoutIsTerminal)) return yield* Effect.as(writeStdout(value), false)
  const text = decode(value).text
  const escaped = visibleBlock(text)
  return yield* Effect.as(writeStdout(encode(escaped)), escaped !== text.replaceAll("\r\n", "\n"))
})

/** Writes a text from outside like `bytes`, and adds a final line break if it has none. */
export const exact = (value: string): Effect.Effect<boolean, ExitError, Stdio.Stdio> =>
  bytes(encode(value.endsWith("\n") ? value : `${value}\n`))

/** Columns of the terminals that the output goes to; undefined where it goes to none. */
export const TerminalColumns = Context.Reference<{
  readonly stdout: number | undefined
  readonly stderr: number | undefined
}>("palimpsest/cli/output/TerminalColumns", { defaultValue: () => ({ stdout: undefined, stderr: undefined }) })

/** Columns for a table on stdout: those of the terminal, else `otherwise`. */
export const tableColumns = (otherwise: number): Effect.Effect<number> =>
  Effect.map(TerminalColumns, ({ stdout }) => stdout ?? otherwise)

const writeLine = Effect.fnUntraced(function* (value: string, columns: number | undefined) {
  const line = value.endsWith("\n") ? value : `${value}\n`
  if (!(yield* stdoutIsTerminal)) return yield* writeStdout(encode(line))
  const shown = visibleExceptColours(line)
  yield* writeStdout(encode(columns === undefined ? shown : wrapLines(shown, columns, columnsOf)))
})

/**
 * Writes a text to stdout with a final line break. On a terminal, everything but our own colours is escaped, and lines are wrapped at their
 * spaces.
 */
export const text = (value: string): Effect.Effect<void, ExitError, Stdio.Stdio> =>
  Effect.flatMap(TerminalColumns, ({ stdout }) => writeLine(value, stdout))

/**
 * Returns a writer that prints a text to a terminal piece by piece, as `text` prints a whole one. `undefined` ends the text.
 * The writer has state.
 */
export const pieces = Effect.map(TerminalColumns, ({ stdout = Number.POSITIVE_INFINITY }) => {
  const escape = visibleStream()
  const wrapped = wrapStream(stdout, columnsOf)
  return (piece: string | undefined): Effect.Effect<string, ExitError, Stdio.Stdio> => {
    const rest = wrapped(escape(piece))
    const shown = piece === undefined ? rest + wrapped(undefined) : rest
    return shown === "" ? Effect.succeed(shown) : Effect.as(writeStdout(encode(shown)), shown)
  }
})

/** Writes a text like `text`, without wrapping: commands and diffs, which are copied. */
export const unwrapped = (value: string): Effect.Effect<void, ExitError, Stdio.Stdio> => writeLine(value, undefined)

/** Prints a value as the single JSON document of `--json`. */
export const json = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Type"]) =>
  Schema.encodeEffect(fromJson(Schema.toCodecJson(schema)))(value).pipe(
    Effect.orDie,
    // Escapes control characters within JSON strings; the value stays the same.
    Effect.flatMap((line) => writeLine(escapeUnprintable(line), undefined))
  )

/** Writes lines of our own to stderr. */
export const aside = (value: string): Effect.Effect<void, never, Stdio.Stdio> =>
  Effect.flatMap(TerminalColumns, ({ stderr }) => {
    const shown = visibleExceptColours(value.endsWith("\n") ? value : `${value}\n`)
    return Effect.andThen(wipe, writeStderr(stderr === undefined ? shown : wrapLines(shown, stderr, columnsOf)))
  })

/** Prints a notice: one line on stderr, whatever the text contains. */
export const notice = (value: string): Effect.Effect<void, never, Stdio.Stdio> =>
  aside(`palimpsest: ${printableLine(value)}`)

/** Makes a logger, which gets the words of each message, and whether it is a warning that reads as any other notice. */
export const logger = (
  write: (options: Logger.Options<unknown>, words: string, isNotice: boolean) => void
): Logger.Logger<unknown, void> =>
  Logger.make((options) => {
    // Telemetry goes to a collector.
    if (options.fiber.getRef(References.CurrentLogAnnotations)[telemetryMark] === true) return
    const words = [options.message].flat().map(String).join(" ")
    write(options, words, options.logLevel === "Warn" && options.cause.reasons.length === 0)
  })

/** Milliseconds before progress is shown, and between two frames. */
const delayMillis = 500
const frameMillis = 100

/**
 * Shows progress on stderr once work takes more than half a second: one line with how far the work is, as it says by
 * `ReportProgress`. The line is wiped when the work ends in any way. Writes nothing without a terminal.
 */
export const progress =
  (label: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Stdio.Stdio> =>
    Effect.gen(function* () {
      const stdio = yield* Stdio.Stdio
      if (!(yield* stdio.stderrIsTerminal)) return yield* work
      const drawn = { is: false }
      let advance: Advance | undefined
      const draw = Effect.gen(function* () {
        yield* Effect.sleep(delayMillis)
        for (let frame = 0; ; frame += 1) {
          const line = progressLine({
            label: printableLine(label),
            frame,
            millis: delayMillis + frame * frameMillis,
            advance
          })
          drawn.is = true
          // Without wrapping, a line wider than the terminal is cut and stays one line.
          yield* writeStderr(`\r\u001b[?7l${line}\u001b[K\u001b[?7h`)
          yield* Effect.sleep(frameMillis)
        }
      })
      return yield* Effect.acquireUseRelease(
        Effect.forkChild(draw),
        () =>
          work.pipe(
            Effect.provideService(ReportProgress, (now) => {
              advance = now
            }),
            Effect.provideService(Drawn, drawn)
          ),
        (fiber) => Effect.andThen(Fiber.interrupt(fiber), writeStderr(wiped))
      )
    })

/** Text styles. Without colours each returns its text unchanged. */
export interface Style {
  /** Headings. */
  readonly bold: (text: string) => string
  /** Secondary text. */
  readonly dim: (text: string) => string
  /** Warnings. */
  readonly warn: (text: string) => string
  /** Success and added lines. */
  readonly good: (text: string) => string
  /** Failure and removed lines. */
  readonly bad: (text: string) => string
}

/** Styles a text for a terminal with an SGR code. */
const ansi = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`
const unchanged = (text: string) => text

// oxlint-disable-next-line no-control-regex
const ourColours = /(\u001b\[(?:0|1|2|31|32|33)m)/

/** Escapes everything in a text of our own except our colours. */
const visibleExceptColours = (value: string): string =>
  value
    .split(ourColours)
    .map((piece, at) => (at % 2 === 1 ? piece : visibleBlock(piece)))
    .join("")

/** The style without colours. */
export const plain: Style = { bold: unchanged, dim: unchanged, warn: unchanged, good: unchanged, bad: unchanged }

/** The style with colours. */
export const coloured: Style = { bold: ansi(1), dim: ansi(2), warn: ansi(33), good: ansi(32), bad: ansi(31) }

/** The style for stdout: colours only on a terminal and without NO_COLOR. */
export const style: Effect.Effect<Style> = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canColor }) =>
  canColor ? coloured : plain
)

export { number, plural, share, sizeText, tokensText }

/** Turns a message into a sentence with a capital letter and a full stop. */
export const sentence = (message: string): string => {
  const line = printableLine(message)
  return `${line.slice(0, 1).toUpperCase()}${line.slice(1)}${/[.!?]$/.test(line) ? "" : "."}`
}

/** Width of a text in terminal columns. Printable ASCII, the common case, takes a fast path. */
export const columnsOf = (text: string): number => (/^[ -~…]*$/.test(text) ? text.length : CliOutput.displayWidth(text))

/**
 * Aligns rows in columns two spaces apart. `align` has one letter per column: `l` left (default) or `r` right. Lines have no
 * trailing white space.
 */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>, align = ""): string => {
  const widths: Array<number> = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, columnsOf(cell))
    })
  }
  const line = (row: ReadonlyArray<string>) =>
    row
      .map((cell, column) => {
        const gap = " ".repeat((widths[column] ?? 0) - columnsOf(cell))
        return align[column] === "r" ? gap + cell : cell + gap
      })
      .join("  ")
      .trimEnd()
  return rows.map(line).join("\n")
}

const bars = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

/** Draws values as a line of at most `width` bars. Where values share a bar, the largest counts. */
export const sparkline = (values: ReadonlyArray<number>, width = 60): string => {
  const largest = values.reduce((a, b) => Math.max(a, b), 0)
  if (largest === 0) return ""
  const columns = Math.min(width, values.length)
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns)
    const to = Math.floor(((column + 1) * values.length) / columns)
    const value = values.slice(from, to).reduce((a, b) => Math.max(a, b), 0)
    return bars[Math.min(bars.length - 1, Math.floor((value / largest) * bars.length))] ?? ""
  }).join("")
}
