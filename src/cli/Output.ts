import { Duration, Effect, Fiber, Schema, Stdio, Stream } from "effect"
import { CliOutput, TerminalCapabilities } from "effect/cli"
import { fromJson } from "../domain/JsonText.ts"
import { decode, encode } from "../domain/Bytes.ts"
import { printable } from "../domain/Inspection.ts"
import { visibleBlock, visibleStream } from "../domain/Visible.ts"
import { spelledOut } from "../domain/WorkspacePath.ts"
import { ExitError, failed } from "./ExitError.ts"

/**
 * What goes to a person or to another program: the answer to stdout and nothing else there, everything about it to
 * stderr.
 */

const errorCode = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

const written = Effect.fnUntraced(function* (value: Uint8Array): Effect.fn.Return<void, ExitError, Stdio.Stdio> {
  const stdio = yield* Stdio.Stdio
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

const onTerminal = Effect.flatMap(Stdio.Stdio, (stdio) => stdio.stdoutIsTerminal)

/**
 * Writes bytes to stdout and waits until they are taken: into a pipe or a file as they are; on a terminal, which would act on
 * some of them, as text in which everything is seen. A reader that has gone (`| head`) ends the command quietly. Returns
 * whether what was written is something else than the bytes.
 */
export const bytes = Effect.fnUntraced(function* (
  value: Uint8Array
): Effect.fn.Return<boolean, ExitError, Stdio.Stdio> {
  if (!(yield* onTerminal)) return yield* Effect.as(written(value), false)
  const text = decode(value).text
  const seen = visibleBlock(text)
  return yield* Effect.as(written(encode(seen)), seen !== text.replaceAll("\r\n", "\n"))
})

/** `bytes` for a text of somebody else, with the end of its last line. */
export const exact = (value: string): Effect.Effect<boolean, ExitError, Stdio.Stdio> =>
  bytes(encode(value.endsWith("\n") ? value : `${value}\n`))

/** Writes a text to stdout and ends its last line: as it is, or on a terminal with everything in it seen but our colours. */
export const text = Effect.fnUntraced(function* (value: string): Effect.fn.Return<void, ExitError, Stdio.Stdio> {
  const line = value.endsWith("\n") ? value : `${value}\n`
  yield* written(encode((yield* onTerminal) ? besideColours(line) : line))
})

/** Writes a text to a terminal piece by piece, as `bytes` would write the whole; `undefined` ends it. Mutable. */
export const pieces = (): ((piece: string | undefined) => Effect.Effect<string, ExitError, Stdio.Stdio>) => {
  const seen = visibleStream()
  return (piece) => {
    const shown = seen(piece)
    return shown === "" ? Effect.succeed(shown) : Effect.as(written(encode(shown)), shown)
  }
}

/** Prints a value as the one JSON document of `--json`. */
export const json = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  value: S["Type"]
): Effect.Effect<void, ExitError, Stdio.Stdio> =>
  Schema.encodeEffect(fromJson(Schema.toCodecJson(schema)))(value).pipe(
    Effect.orDie,
    // The same value, with what could steer a terminal as escapes of JSON.
    Effect.flatMap((line) => text(spelledOut(line)))
  )

const note = Effect.fnUntraced(function* (value: string): Effect.fn.Return<void, never, Stdio.Stdio> {
  const stdio = yield* Stdio.Stdio
  yield* Stream.make(encode(value)).pipe(Stream.run(stdio.stderr({ endOnDone: false })), Effect.ignore)
})

/** Writes lines of ours to stderr, beside the answer. */
export const aside = (value: string): Effect.Effect<void, never, Stdio.Stdio> =>
  note(besideColours(value.endsWith("\n") ? value : `${value}\n`))

/** Tells the person something beside the answer: one line on stderr, whatever the text holds. */
export const notice = (value: string): Effect.Effect<void, never, Stdio.Stdio> =>
  note(`palimpsest: ${printable(value)}\n`)

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const patience = Duration.millis(500)

const spin = Effect.fnUntraced(function* (label: string) {
  yield* Effect.sleep(patience)
  for (let frame = 0; ; frame += 1) {
    const seconds = frame < 10 ? "" : ` ${Math.floor(frame / 10)} s`
    yield* note(`\r${spinner[frame % spinner.length] ?? ""} ${label}${seconds}\u001b[K`)
    yield* Effect.sleep("100 millis")
  }
})

/**
 * Shows on stderr what is going on once it takes more than half a second: a line that moves and is wiped at the end,
 * however that comes. Without a terminal nobody watches, and nothing is written.
 */
export const progress =
  (label: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Stdio.Stdio> =>
    Stdio.Stdio.use((stdio) => stdio.stderrIsTerminal).pipe(
      Effect.flatMap((isWatched) =>
        isWatched
          ? Effect.acquireUseRelease(
              Effect.forkChild(spin(printable(label))),
              () => work,
              (fiber) => Effect.andThen(Fiber.interrupt(fiber), note("\r\u001b[K"))
            )
          : work
      )
    )

/** Ways to set a piece of text off; each leaves it as it is where colours are not wanted. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly warn: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
}

/** Sets a text off on a terminal, by the code of a look. */
export const ansi = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`
const unchanged = (text: string) => text

// oxlint-disable-next-line no-control-regex
const ourColours = /(\u001b\[(?:0|1|2|31|32|33)m)/

/** A text of ours in which everything is seen that is no colour of ours. */
const besideColours = (value: string): string =>
  value
    .split(ourColours)
    .map((piece, at) => (at % 2 === 1 ? piece : visibleBlock(piece)))
    .join("")

/** Without colours. */
export const plain: Style = { bold: unchanged, dim: unchanged, warn: unchanged, good: unchanged, bad: unchanged }

/** With colours. */
export const coloured: Style = { bold: ansi(1), dim: ansi(2), warn: ansi(33), good: ansi(32), bad: ansi(31) }

/** Colours for stdout, only on a terminal and only without NO_COLOR. */
export const style: Effect.Effect<Style> = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canColor }) =>
  canColor ? coloured : plain
)

/** A number with its thousands set apart: `1,048,576`. */
export const number = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** A number of things: `1 message`, `1,024 messages`, `2 entries` where the word says so. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

/** A share in whole percent, or what is known about a very small one. */
export const share = (part: number, whole: number): string => {
  if (whole === 0 || part === 0) return "0 %"
  const percent = (part / whole) * 100
  return percent < 0.5 ? "< 1 %" : `${Math.round(percent)} %`
}

/** Columns of a terminal that a text takes; most are plain ASCII, which need no looking up. */
export const columnsOf = (text: string): number => (/^[ -~…]*$/.test(text) ? text.length : CliOutput.displayWidth(text))

/**
 * Rows with their columns aligned, two spaces apart. `align` has one letter a column: `l` left (default), `r` right.
 * No white space at the ends of lines.
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

/** Values as a line of bars, at most `width` of them; where values share a bar, the largest counts. */
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
