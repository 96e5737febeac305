import { Effect, FileSystem, Option, Path, Stdio, Stream } from "effect"
import { Argument, Command, Prompt } from "effect/cli"
import { claudeSettings, withHooks, withoutHooks } from "../../domain/settings/ClaudeHooks.ts"
import {
  clients,
  type McpClient,
  setupFile,
  type SetupResult,
  withoutServer,
  withServer
} from "../../domain/settings/McpClients.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { printableLine, visibleBlock } from "../../domain/text/InvisibleCharacters.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { answerHook } from "../../services/transcripts/CompactionHook.ts"
import * as Input from "../input/Input.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The commands `install`, `uninstall` and `hook`: other agents use ours where they let programs in. */

/** A file of an agent's settings, and how it changes. */
interface Change {
  readonly file: string
  readonly before: string
  readonly after: string
}

type Edit = readonly [file: string, edit: (text: string) => SetupResult]

/** The settings in which a client has its servers. */
const serverEdit = Effect.fnUntraced(function* (client: McpClient, isAdded: boolean, folder: string, home: string) {
  const path = yield* Path.Path
  const { base, path: place } = setupFile(client)
  const edit: Edit = [
    path.join(base === "home" ? home : folder, place),
    (text) => (isAdded ? withServer(text, client, "palimpsest") : withoutServer(text, client))
  ]
  return edit
})

/** Reads settings, and what they become. */
const changesOf = Effect.fnUntraced(function* (edits: ReadonlyArray<Edit>) {
  const fs = yield* FileSystem.FileSystem
  const changes: Array<Change> = []
  for (const [file, edit] of edits) {
    const before = yield* fs.readFileString(file).pipe(
      Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed("")),
      Effect.mapError(({ message }) => failed(message))
    )
    const result = edit(before)
    if (result._tag === "Refused") {
      return yield* failed(`${printableLine(file)}: ${result.reason}; nothing was changed`)
    }
    if (result._tag === "Written") changes.push({ file, before, after: result.text })
  }
  return changes
})

const confirmed = Effect.fnUntraced(function* (count: number) {
  const stdio = yield* Stdio.Stdio
  if (!((yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal))) {
    return yield* badInput("cannot ask for confirmation here; use --yes to write")
  }
  const files = count === 1 ? "this file" : "these files"
  return yield* Prompt.run(Prompt.Confirm({ message: `Change ${files}?` })).pipe(
    Effect.catchTag("QuitError", () => Effect.succeed(false))
  )
})

const apply = Effect.fnUntraced(function* ({ after, file }: Change) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(path.dirname(file), { recursive: true }).pipe(
    Effect.andThen(Effect.option(fs.realPath(file))),
    // A link keeps leading where it led.
    Effect.flatMap((real) =>
      AtomicFile.write(
        Option.getOrElse(real, () => file),
        encode(after),
        undefined
      )
    ),
    Effect.mapError(({ message }) => failed(message))
  )
})

const change = Effect.fnUntraced(function* (
  { agent, yes }: { readonly agent: McpClient; readonly yes: boolean },
  isAdded: boolean,
  home: string
) {
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const changes = yield* changesOf([
    yield* serverEdit(agent, isAdded, folder, home),
    ...(agent === "claude" ? [[path.join(folder, claudeSettings), isAdded ? withHooks : withoutHooks] as const] : [])
  ])
  if (changes.length === 0)
    return yield* Output.notice(isAdded ? "it is installed already" : "it is not installed here")
  for (const { after, before, file } of changes) {
    yield* Output.text(`${visibleBlock(fileDiff(file.replace(/^[/\\]/, ""), before, after).diff.trimEnd())}`)
  }
  if (!yes && !(yield* confirmed(changes.length))) return yield* Output.notice("nothing was changed")
  yield* Effect.forEach(changes, apply, { discard: true })
  yield* Output.notice(`changed ${changes.map(({ file }) => printableLine(file)).join(" and ")}; start ${agent} again`)
})

/** Adds the MCP server to a client's settings, without asking. */
export const writeServer = Effect.fnUntraced(function* (client: McpClient, folder: string, home: string) {
  const changes = yield* changesOf([yield* serverEdit(client, true, folder, home)])
  yield* Effect.forEach(changes, apply, { discard: true })
  yield* changes.length === 0
    ? Output.notice("it is installed already")
    : Output.notice(`changed ${changes.map(({ file }) => printableLine(file)).join(" and ")}; start ${client} again`)
})

const agent = Argument.Literals("agent", clients).pipe(Argument.withDescription(`Agent: ${clients.join(", ")}`))
const yes = Input.flag("yes", "Write without asking")

/** The command `palimpsest install AGENT`. `home`: the user's home folder. */
export const install = (home: string) =>
  Command.make(
    "install",
    { agent, yes },
    Effect.fn("cli.install")((input) => change(input, true, home))
  ).pipe(
    Command.withExamples([
      {
        command: "palimpsest install claude",
        description: "Give Claude Code, in this folder, its memory back: an MCP server, and hooks around compactions"
      },
      { command: "palimpsest install codex --yes", description: "Add the MCP server to Codex without asking" }
    ])
  )

/** The command `palimpsest uninstall AGENT`. */
export const uninstall = (home: string) =>
  Command.make(
    "uninstall",
    { agent, yes },
    Effect.fn("cli.uninstall")((input) => change(input, false, home))
  )

/** The command `palimpsest hook`, which an agent runs. */
export const hook = Command.make(
  "hook",
  {},
  Effect.fn("cli.hook")(function* () {
    const stdio = yield* Stdio.Stdio
    if (yield* stdio.stdinIsTerminal) {
      return yield* badInput('an agent runs this command; "palimpsest install claude" sets it up')
    }
    const input = yield* Effect.mapError(Stream.mkString(Stream.decodeText(stdio.stdin)), ({ message }) =>
      failed(message)
    )
    const text = yield* Effect.mapError(answerHook(input), ({ message }) => failed(message))
    if (text !== "") yield* Output.text(text)
  })
)
