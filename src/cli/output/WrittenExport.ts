/** A conversation in a file of any format. The name `-` stands for standard output. */

import { Effect, FileSystem } from "effect"
import { applyEvent, emptySession, type SessionEvent } from "../../domain/session/Session.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { writeMarkdown } from "../../domain/transcripts/MarkdownWriter.ts"
import type { SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import type { FormatName } from "../../domain/transcripts/Transcript.ts"
import { redactEvents } from "../../services/transcripts/RedactSession.ts"
import * as Export from "../../services/transcripts/TranscriptExport.ts"
import { badInput, failed } from "./ExitError.ts"
import * as Output from "./Output.ts"
import { tellUnsearched } from "./RedactionNotices.ts"

/** Fails as bad input when nothing can be written there. Call it before work that takes long or costs money. */
export const checkPlace = (file: string) =>
  file === "-" ? Effect.void : Effect.mapError(Export.checkPlace(file), (error) => badInput(error.message))

/** Whether two names lead to one file that exists. */
export const isSameFile = (one: string, other: string) =>
  FileSystem.FileSystem.use((fs) =>
    Effect.forEach([one, other], (name) => fs.realPath(name)).pipe(
      Effect.map(([first, second]) => first === second),
      Effect.orElseSucceed(() => false)
    )
  )

/** Writes a text to a file, or to standard output. */
export const writeText = (file: string, text: string) =>
  file === "-"
    ? Effect.asVoid(Output.bytes(encode(text)))
    : Effect.mapError(Export.writeText(file, text), (error) => failed(error.message))

/** Returns the events without their secrets, and how many were replaced. Prints what could not be searched. */
export const redactedCopy = Effect.fnUntraced(function* (
  events: ReadonlyArray<SessionEvent>,
  secrets: SessionSecrets | undefined
) {
  if (secrets === undefined) return { copy: events, replaced: 0 }
  const made = yield* Effect.mapError(redactEvents(events, secrets), ({ message }) => failed(message))
  yield* tellUnsearched(made.unsearched)
  return made
})

/** Lists kinds of content with their counts. */
export const kindsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([kind, count]) => `${printableLine(kind)} (${Output.number(count)})`)
    .join(", ")

/** Writes a conversation in a format that can be read back, and tells what the format cannot hold. */
export const writeTranscript = Effect.fnUntraced(function* (
  file: string,
  format: FormatName,
  events: ReadonlyArray<SessionEvent>,
  options?: Parameters<typeof Export.write>[3]
) {
  if (file === "-") return yield* writeText(file, `${(yield* Export.lines(format, events)).join("\n")}\n`)
  const unheld = yield* Export.write(file, format, events, options).pipe(
    Output.progress(`writing ${file}`),
    Effect.mapError((error) => failed(error.message))
  )
  const kinds = kindsText(unheld)
  if (kinds !== "") yield* Output.notice(`the format ${format} cannot hold: ${kinds}; the log beside the file keeps it`)
})

/** Runs `write`, and tells that the file was written, or that one of this name was overwritten. */
export const withNotice = <A, E, R>(file: string, write: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const isThere = yield* Effect.orElseSucceed(fs.exists(file), () => false)
    const written = yield* write
    if (file !== "-") yield* Output.notice(`${isThere ? "overwrote" : "wrote"} ${file}`)
    return written
  })

/** Writes a conversation, and tells what the format cannot hold. `title` is the heading of a Markdown page. */
export const writeExport = Effect.fnUntraced(
  function* (
    file: string,
    format: FormatName | "markdown",
    events: ReadonlyArray<SessionEvent>,
    title: string,
    secrets: SessionSecrets | undefined
  ) {
    if (format === "markdown") {
      const heading = secrets === undefined ? title : Work.runSync(secrets.replace(title, false)).text
      const page = writeMarkdown(events.reduce(applyEvent, emptySession).conversation, printableLine(heading))
      return yield* writeText(file, page)
    }
    yield* writeTranscript(file, format, events)
  },
  (write, file) => withNotice(file, write)
)
