import { Effect, Path, Result } from "effect"
import { formatFor, formatProblemText } from "../../../domain/transcripts/FileExtension.ts"
import { writeMarkdown } from "../../../domain/transcripts/MarkdownWriter.ts"
import { FormatName } from "../../../domain/transcripts/Transcript.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import * as TranscriptExport from "../../../services/transcripts/TranscriptExport.ts"
import { type ChatSession, nameOf, say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

const saveMarkdown = Effect.fnUntraced(function* (session: ChatSession, file: string) {
  const { chat, terminal } = session
  const path = yield* Path.Path
  const page = writeMarkdown((yield* chat.whole).conversation, yield* nameOf(session))
  yield* terminal.during(`writing ${file}`, () => TranscriptExport.writeText(path.resolve(file), page))
  yield* say(session, `Saved to ${file} as Markdown, for reading. /save talk.jsonl also keeps what can be recalled.`)
})

/** Writes the session in a format that can be imported again. */
const saveTranscript = Effect.fnUntraced(function* (session: ChatSession, file: string, format: FormatName) {
  const { id, terminal } = session
  const path = yield* Path.Path
  const events = yield* SessionStore.use((store) => store.events(id))
  const omitted = yield* terminal.during(`writing ${file}`, () =>
    TranscriptExport.write(path.resolve(file), format, events)
  )
  const kinds = Object.entries(omitted).map(([kind, count]) => `${kind} (${count})`)
  yield* say(
    session,
    `Saved to ${file} as ${format}.${kinds.length === 0 ? "" : ` The format cannot hold ${kinds.join(", ")}; the log beside it keeps that.`}`
  )
})

/** `/save <file> [format]`: writes the conversation to a file. Without a format, the file extension selects it. */
export const save: SlashCommand = {
  name: "save",
  usage: "<file> [format]",
  help: "Save the conversation to a file, also in the format of another agent",
  run: Effect.fnUntraced(function* (session, argument) {
    const [file, formatName] = argument.split(/\s+(?=\S+$)/)
    if (file === undefined || file === "") {
      return yield* say(session, "Give a file name: /save talk.md, /save talk.jsonl, or /save talk.jsonl claude")
    }
    const format = FormatName.literals.find((each) => each === formatName)
    if (formatName !== undefined && format === undefined) {
      return yield* say(session, `Unknown format ${formatName}. Formats: ${FormatName.literals.join(", ")}.`)
    }
    const written = formatFor(file, format)
    if (Result.isFailure(written)) return yield* say(session, `Not saved: ${formatProblemText(written.failure)}.`)
    yield* written.success === "markdown" ? saveMarkdown(session, file) : saveTranscript(session, file, written.success)
  })
}
