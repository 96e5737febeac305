/** The slash commands `/export` and `/copy`: write the conversation to a file, and the last answer to the clipboard. */

import { Effect, FileSystem, Path, Result } from "effect"
import { isCall, plainText } from "../../../domain/content/Content.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { formatFor } from "../../../domain/transcripts/FileExtension.ts"
import { writeMarkdown } from "../../../domain/transcripts/MarkdownWriter.ts"
import { FormatName } from "../../../domain/transcripts/Transcript.ts"
import { locateLogs } from "../../../services/session/SessionFiles.ts"
import { SessionStore } from "../../../services/session/SessionStore.ts"
import * as TranscriptExport from "../../../services/transcripts/TranscriptExport.ts"
import { kindsText } from "../../output/WrittenExport.ts"
import { type ChatSession, nameOf, say, type SlashCommand } from "./ChatSession.ts"

const saveMarkdown = Effect.fnUntraced(function* (session: ChatSession, file: string) {
  const { chat, terminal } = session
  const path = yield* Path.Path
  const page = writeMarkdown((yield* chat.whole).conversation, yield* nameOf(session))
  yield* terminal.during(`writing ${file}`, () => TranscriptExport.writeText(path.resolve(file), page))
  yield* say(session, `Saved to ${file} as Markdown, for reading. /export talk.jsonl also keeps what can be recalled.`)
})

/** Writes the session in a format that can be imported again. */
const saveTranscript = Effect.fnUntraced(function* (session: ChatSession, file: string, format: FormatName) {
  const { id, terminal } = session
  const path = yield* Path.Path
  const events = yield* SessionStore.use((store) => store.events(id))
  const unheld = yield* terminal.during(`writing ${file}`, () =>
    TranscriptExport.write(path.resolve(file), format, events)
  )
  const kinds = kindsText(unheld)
  yield* say(
    session,
    `Saved to ${file} as ${format}.${kinds === "" ? "" : ` The format cannot hold ${kinds}; the log beside it keeps that.`}`
  )
})

/** Writes the session as a page, which `inspect` makes of its log. */
const savePage = Effect.fnUntraced(function* ({ id, terminal, writePage }: ChatSession, file: string) {
  const path = yield* Path.Path
  const log = (yield* locateLogs)(id)
  if (log === undefined) {
    return "Not saved: a page is made from a log. /export talk.jsonl first, then: palimpsest inspect talk.jsonl --html talk.html"
  }
  yield* terminal.during(`drawing ${file}`, () => writePage(log, path.resolve(file)))
  return `Saved to ${file} as a page for your browser.`
})

/** Most characters of a title in the name of a file. */
const maxNameChars = 40

/** A file name made of a title. */
export const fileNameOf = (title: string): string => {
  const words = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, maxNameChars)
    .replace(/^-+|-+$/g, "")
  return words === "" ? "conversation" : words
}

/** A file in the working folder that does not exist yet. */
const freeFile = Effect.fnUntraced(function* (session: ChatSession) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = fileNameOf(yield* nameOf(session))
  for (let count = 1; ; count += 1) {
    const file = `${name}${count === 1 ? "" : `-${count}`}.md`
    if (!(yield* Effect.orElseSucceed(fs.exists(path.resolve(file)), () => false))) return file
  }
})

/** The command `/export [file] [format]`. Without a format, the file extension selects it. */
export const exportCommand: SlashCommand = {
  name: "export",
  aliases: ["save"],
  usage: "[file] [format]",
  help: "Write the conversation to a file: Markdown, .html, .jsonl, or the format of another agent",
  run: Effect.fnUntraced(function* (session, argument) {
    const [fileArgument = "", formatName] = argument.split(/\s+(?=\S+$)/)
    if (fileArgument === "-") {
      return yield* say(
        session,
        `Not saved: name a file, or leave it out. In a shell, "palimpsest export ${session.id} -" writes to standard output.`
      )
    }
    const file = fileArgument === "" ? yield* freeFile(session) : fileArgument
    if (/\.html?$/i.test(file) && formatName === undefined) return yield* say(session, yield* savePage(session, file))
    const format = FormatName.literals.find((each) => each === formatName)
    if (formatName !== undefined && format === undefined) {
      return yield* say(session, `Unknown format ${formatName}. Formats: ${FormatName.literals.join(", ")}.`)
    }
    const written = formatFor(file, format)
    if (Result.isFailure(written)) return yield* say(session, `Not saved: ${written.failure}.`)
    yield* written.success === "markdown" ? saveMarkdown(session, file) : saveTranscript(session, file, written.success)
  })
}

/** `/copy`: copies the last answer to the clipboard. */
export const copy: SlashCommand = {
  name: "copy",
  help: "Copy the last answer to the clipboard",
  run: Effect.fnUntraced(function* (session) {
    const { chat, terminal } = session
    const { conversation } = yield* chat.whole
    const answer = entries(conversation).findLast(
      ({ content }) => content.role === "model" && !content.parts.some(isCall) && plainText(content) !== ""
    )
    if (answer === undefined) return yield* say(session, "There is no answer yet.")
    const text = plainText(answer.content)
    yield* say(
      session,
      (yield* terminal.copy(text))
        ? "Copied the last answer to the clipboard."
        : "Not copied: that needs a terminal or a clipboard program, and long answers need the latter. Use /export to write a file."
    )
  })
}
