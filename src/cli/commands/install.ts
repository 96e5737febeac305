import { Config, Effect, FileSystem, Option, Path, Stdio } from "effect"
import { Argument, Command, Prompt } from "effect/cli"
import { hookFile, isHooked, withHooks, withoutHooks } from "../../domain/settings/CompactionHookSettings.ts"
import { clients, type McpClient, type SetupFile, setupFile } from "../../domain/settings/McpClients.ts"
import { type SetupResult, withoutServer, withServer } from "../../domain/settings/McpClientSettings.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { printableLine, visibleBlock } from "../../domain/text/InvisibleCharacters.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The commands `install` and `uninstall`, which connect this program to other agents. */

/** An agent that this program can be added to. */
type Agent = McpClient | "pi"

/** The paths of this machine that `install` uses. */
export interface InstallPlaces {
  /** The user's home folder. */
  readonly home: string
  /** Reads our plugin for an agent that loads code. */
  readonly plugin: (agent: "pi" | "opencode") => Effect.Effect<string>
}

/** A file of an agent's settings, and how it changes. `after` is undefined when the file goes. */
interface Change {
  readonly file: string
  readonly before: string
  readonly after: string | undefined
}

type Edit = readonly [file: string, edit: (text: string) => SetupResult | { readonly _tag: "Removed" }]

/** The folder of Codex's settings. */
const codexFolder = (home: string) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const own = yield* Effect.orElseSucceed(Config.option(Config.NonEmptyString("CODEX_HOME")), () => Option.none())
    return Option.getOrElse(own, () => path.join(home, ".codex"))
  })

const placeOf = Effect.fnUntraced(function* ({ base, path: place }: SetupFile, folder: string, home: string) {
  const path = yield* Path.Path
  return path.join(base === "codex" ? yield* codexFolder(home) : folder, place)
})

/** Returns the settings file with a client's MCP servers, and how to edit it. */
const serverEdit = Effect.fnUntraced(function* (client: McpClient, isAdded: boolean, folder: string, home: string) {
  const edit: Edit = [
    yield* placeOf(setupFile(client), folder, home),
    (text) => (isAdded ? withServer(text, client, "palimpsest") : withoutServer(text, client))
  ]
  return edit
})

/** The text by which a plugin of this program is recognised. */
const pluginMark = 'process.env.PALIMPSEST_PROGRAM ?? "palimpsest"'

/** The file from which an agent loads our plugin. */
const pluginEdit = (file: string, plugin: string, isAdded: boolean): Edit => [
  file,
  (text) => {
    if (text === (isAdded ? plugin : "")) return { _tag: "Unchanged" }
    if (text !== "" && !text.includes(pluginMark)) {
      return { _tag: "Refused", reason: "another file has this name" }
    }
    return isAdded ? { _tag: "Written", text: plugin } : { _tag: "Removed" }
  }
]

const pluginFolders = { pi: ".pi/extensions", opencode: ".opencode/plugins" } as const

const isPlugged = (agent: Agent): agent is keyof typeof pluginFolders => agent in pluginFolders

/** All files that an agent's installation changes. */
const editsOf = Effect.fnUntraced(function* (
  agent: Agent,
  isAdded: boolean,
  folder: string,
  { home, plugin }: InstallPlaces
) {
  const path = yield* Path.Path
  const edits: Array<Edit> = agent === "pi" ? [] : [yield* serverEdit(agent, isAdded, folder, home)]
  if (agent !== "pi" && isHooked(agent)) {
    const file = yield* placeOf(hookFile(agent), folder, home)
    edits.push([file, (text) => (isAdded ? withHooks(text, agent) : withoutHooks(text, agent))])
  }
  if (isPlugged(agent)) {
    const file = path.join(folder, pluginFolders[agent], "palimpsest.js")
    edits.push(pluginEdit(file, yield* plugin(agent), isAdded))
  }
  return edits
})

/** Whether a text contains no settings, so that its file is removed. */
const isBlank = (text: string): boolean => /^\s*(?:\{\s*\}\s*)?$/.test(text)

/** Returns the text of a file to write; that of a new file is formatted. */
const laidOut = (file: string, before: string, after: string): string => {
  const value = before === "" && file.endsWith(".json") ? parsedOrUndefined(after) : undefined
  return value === undefined ? after : `${JSON.stringify(value, undefined, 2)}\n`
}

/** Reads settings files and applies the edits. Several edits of a file are one change. */
const changesOf = Effect.fnUntraced(function* (edits: ReadonlyArray<Edit>) {
  const fs = yield* FileSystem.FileSystem
  const changes = new Map<string, Change>()
  for (const [file, edit] of edits) {
    const planned = changes.get(file)
    const before =
      planned?.before ??
      (yield* fs.readFileString(file).pipe(
        Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed("")),
        Effect.mapError(({ message }) => failed(message))
      ))
    const result = edit(planned?.after ?? before)
    if (result._tag === "Refused") {
      return yield* failed(`${printableLine(file)}: ${result.reason}; nothing was changed`)
    }
    if (result._tag !== "Unchanged") {
      const after = result._tag === "Removed" || isBlank(result.text) ? undefined : laidOut(file, before, result.text)
      changes.set(file, { file, before, after })
    }
  }
  return [...changes.values()]
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
  if (after === undefined) return yield* Effect.mapError(fs.remove(file), ({ message }) => failed(message))
  yield* fs.makeDirectory(path.dirname(file), { recursive: true }).pipe(
    Effect.andThen(Effect.option(fs.realPath(file))),
    // Write to the target of a link, so that the link stays.
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

/** What the user still has to do in the agent itself. */
const remaining = (agent: Agent): string =>
  agent === "codex" ? "; restart codex, and trust the hook there (/hooks)" : `; start ${agent} again`

const change = Effect.fnUntraced(function* (
  { agent, yes }: { readonly agent: Agent; readonly yes: boolean },
  isAdded: boolean,
  places: InstallPlaces
) {
  const path = yield* Path.Path
  const changes = yield* changesOf(yield* editsOf(agent, isAdded, path.resolve("."), places))
  if (changes.length === 0)
    return yield* Output.notice(isAdded ? "it is installed already" : "it is not installed here")
  for (const { after = "", before, file } of changes) {
    yield* Output.text(`${visibleBlock(fileDiff(file.replace(/^[/\\]/, ""), before, after).diff.trimEnd())}`)
  }
  if (!yes && !(yield* confirmed(changes.length))) return yield* Output.notice("nothing was changed")
  yield* Effect.forEach(changes, apply, { discard: true })
  const files = changes.map(({ file }) => printableLine(file)).join(" and ")
  yield* Output.notice(`changed ${files}${isAdded ? remaining(agent) : `; start ${agent} again`}`)
})

/** Adds the MCP server to a client's settings, without asking. */
export const writeServer = Effect.fnUntraced(function* (client: McpClient, folder: string, home: string) {
  const changes = yield* changesOf([yield* serverEdit(client, true, folder, home)])
  yield* Effect.forEach(changes, apply, { discard: true })
  yield* changes.length === 0
    ? Output.notice("it is installed already")
    : Output.notice(`changed ${changes.map(({ file }) => printableLine(file)).join(" and ")}; start ${client} again`)
})

const agents: ReadonlyArray<Agent> = [...clients, "pi"]

const agent = Argument.Literals("agent", agents).pipe(Argument.withDescription(`Agent: ${agents.join(", ")}`))
const yes = Input.flag("yes", "Write without asking")

/** The command `palimpsest install AGENT`. */
export const install = (places: InstallPlaces) =>
  Command.make(
    "install",
    { agent, yes },
    Effect.fn("cli.install")((input) => change(input, true, places))
  ).pipe(
    Command.withExamples([
      {
        command: "palimpsest install claude",
        description: "Add the MCP server and the compaction hooks to Claude Code in this folder"
      },
      {
        command: "palimpsest install pi --yes",
        description: "Let code write Pi's compactions in this folder; do not ask before writing"
      }
    ])
  )

/** The command `palimpsest uninstall AGENT`. */
export const uninstall = (places: InstallPlaces) =>
  Command.make(
    "uninstall",
    { agent, yes },
    Effect.fn("cli.uninstall")((input) => change(input, false, places))
  )
