/** The `export` command: writes a session or a conversation to a file, in any format. */

import { Effect, FileSystem, Path, Result } from "effect"
import { Command } from "effect/cli"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { leadsOut, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { formatFor } from "../../domain/transcripts/FileExtension.ts"
import type { SecretSearch, SessionSecrets } from "../../domain/transcripts/RecordSecrets.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import { earlierParts } from "../../services/transcripts/CodexHistory.ts"
import { secretsOf, secretsOfEvents } from "../../services/transcripts/FindSecrets.ts"
import type { FoundSession } from "../../services/transcripts/FindSessions.ts"
import { redactFile } from "../../services/transcripts/RedactSession.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import * as RedactionFlags from "../flags/RedactionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { tellUnreadable, tellUnsearched } from "../output/RedactionNotices.ts"
import { checkPlace, isSameFile, redactedCopy, withNotice, writeExport, writeText } from "../output/WrittenExport.ts"

/** Writes a copy of another agent's file in its own format, line by line as it is. */
const copyFile = Effect.fnUntraced(function* (source: string, file: string, secrets: SessionSecrets | undefined) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(fs.readFileString(source), ({ message }) => badInput(message))
  const made =
    secrets === undefined
      ? { copy: text, replaced: 0, unsearched: [] }
      : yield* Effect.mapError(redactFile(text, secrets), ({ message }) =>
          failed(`${printableLine(source)}: ${message}; nothing was written`)
        )
  yield* writeText(file, made.copy)
  yield* tellUnsearched(made.unsearched, file)
  return made.replaced
})

/**
 * Writes copies of the files that a session has beside its own: those of subagents, and large outputs. They go into the folder
 * that has the copy's name without its ending, as with the agent's own sessions. Secrets in their names are replaced too.
 */
const copyOthers = Effect.fnUntraced(function* (
  { files, path: own }: FoundSession,
  file: string,
  secrets: SessionSecrets | undefined
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const stem = (name: string) => name.slice(0, name.length - path.extname(name).length)
  let replaced = 0
  for (const other of files.slice(1)) {
    const relative = path.relative(stem(own), other.path)
    const place = leadsOut(relative) ? path.basename(other.path) : relative
    const copy = path.join(stem(file), secrets === undefined ? place : secrets.replaceInPath(place))
    yield* Effect.mapError(fs.makeDirectory(path.dirname(copy), { recursive: true }), ({ message }) => failed(message))
    replaced += yield* copyFile(other.path, copy, secrets)
  }
  if (files.length > 1) {
    yield* Output.notice(`${Output.plural(files.length - 1, "file")} of subagents and outputs in ${stem(file)}`)
  }
  return replaced
})

/** Returns the format to write: the given one, or that of the file's ending. */
const formatOf = (file: string, to: FormatName | undefined) =>
  file === "-" && to === undefined
    ? badInput(`standard output has no ending; add --to with one of the formats ${FormatName.literals.join(", ")}`)
    : Effect.fromResult(formatFor(file, to)).pipe(
        Effect.mapError((problem) => badInput(`${quotedPath(file)}: ${problem}`))
      )

/** Writes a conversation that is no session: in its own format where the file has that format's ending. */
const writeOther = Effect.fnUntraced(function* (
  { events, format, name }: Extract<ConversationInput.Chosen, { readonly _tag: "Conversation" }>,
  file: string,
  to: FormatName | undefined,
  search: SecretSearch | undefined
) {
  const isHeld = (own: FormatName) => file === "-" || Result.isSuccess(formatFor(file, own))
  const own = format !== "opencode" && isHeld(format) ? format : undefined
  const written = yield* formatOf(file, to ?? own)
  const found =
    search === undefined
      ? undefined
      : yield* Output.progress("searching for secrets")(secretsOfEvents(events, name, search))
  const { copy, replaced } = yield* redactedCopy(events, found?.secrets)
  yield* writeExport(file, written, copy, name, found?.secrets)
  return replaced
})

/** Reads the conversation and writes it in a format. */
const writeConversation = Effect.fnUntraced(function* (
  session: FoundSession,
  file: string,
  format: FormatName | "markdown",
  secrets: SessionSecrets | undefined
) {
  const loaded = yield* ConversationInput.load({ file: session.path, from: undefined, lenient: false })
  const { copy, replaced } = yield* redactedCopy(loaded.events, secrets)
  yield* writeExport(file, format, copy, session.title ?? session.id, secrets)
  return replaced
})

/** The command `palimpsest export <session> <file>`. */
export const exported = Command.make(
  "export",
  {
    session: Input.argument("session", "File or id of a session, as find lists it, or - for standard input"),
    file: Input.argument("file", "File to write or overwrite; - for standard output"),
    from: Input.from,
    to: Input.choice(
      "to",
      FormatName.literals,
      "Format (default: the session's own where FILE has its ending, else by the ending: Markdown for .md)"
    ),
    redact: Input.flag("redact", "Replace secrets, personal data and account names with placeholders"),
    only: RedactionFlags.only,
    all: Input.flag("all", "Also copy the files of its subagents and its large outputs, into a folder named after FILE")
  },
  Effect.fn("cli.export")(function* ({ all, file, from, only, redact, session: name, to }) {
    yield* checkPlace(file)
    if (only !== undefined && !redact) return yield* badInput("--only needs --redact")
    const chosen = yield* ConversationInput.chooseAny(name, from)
    const source = chosen._tag === "Session" ? chosen.session.path : name
    if (yield* isSameFile(source, file)) {
      return yield* badInput(`${file} is the session itself; write the copy to another file`)
    }
    const search = redact ? yield* RedactionFlags.sharedSearchOf(only) : undefined
    if (chosen._tag === "Conversation") {
      if (all) return yield* badInput(`--all copies the files beside a session; ${chosen.name} has none`)
      const count = yield* writeOther(chosen, file, to, search)
      if (redact) yield* Output.notice(`replaced ${Output.plural(count, "secret")}`)
      return
    }
    const { session } = chosen
    const found =
      search === undefined ? undefined : yield* Output.progress("searching for secrets")(secretsOf(session, search))
    yield* tellUnreadable(found?.problems ?? [])
    const secrets = found?.secrets
    const isFile = session.agent !== "palimpsest" && session.agent !== "opencode"
    const ending = (name: string) => /\.[^./\\]+$/.exec(name)?.[0]
    const isOther = isFile && to === undefined && (file === "-" || ending(file) === ending(session.path))
    // A copy of a file that goes on from another one has to stand alone.
    const { parts } =
      isOther && !all && session.agent === "codex"
        ? yield* Effect.mapError(earlierParts(session.path), ConversationInput.unreadable)
        : { parts: [] }
    const own = parts.length > 0 ? "codex" : session.agent === "palimpsest" && file === "-" ? session.agent : undefined
    const format = isOther && parts.length === 0 ? undefined : yield* formatOf(file, to ?? own)
    if (all && file === "-") return yield* badInput("--all copies files: name FILE, not standard output")
    if (all && !isOther) {
      return yield* badInput(
        "--all copies files as they are: omit --to, and give FILE the ending of the session's file"
      )
    }
    const count =
      format === undefined
        ? yield* withNotice(file, copyFile(session.path, file, secrets))
        : yield* writeConversation(session, file, format, secrets)
    const replaced = count + (all ? yield* copyOthers(session, file, secrets) : 0)
    if (redact) yield* Output.notice(`replaced ${Output.plural(replaced, "secret")}; ${name} is unchanged`)
  })
).pipe(
  Input.withExamples({
    "palimpsest export 491e126e talk.jsonl --redact": "Write a copy to share",
    "palimpsest export 491e126e talk.md --redact": "Write a page for reading",
    "palimpsest export 491e126e talk.jsonl --to codex": "Write it for another agent"
  })
)
