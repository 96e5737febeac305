/** The commands `install` and `uninstall`, which connect this program to other agents. */

import { Config, Effect, Option, Path } from "effect"
import { Argument, Command } from "effect/cli"
import {
  agentFiles,
  type InstallAgent,
  installAgents,
  type PluginAgent,
  serverFile
} from "../../domain/settings/AgentFiles.ts"
import { type McpClient, setupLine } from "../../domain/settings/McpClients.ts"
import { printableLine, visibleBlock } from "../../domain/text/InvisibleCharacters.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import { type OwnProgram, ownProgram, type ProcessStart } from "../../services/platform/OwnProgram.ts"
import {
  applyPlan,
  type InstallError,
  type InstallPlaces,
  isChange,
  locateFiles,
  type LocatedFile,
  type PlannedFile,
  planFiles
} from "../../services/settings/AgentInstall.ts"
import * as Input from "../flags/SharedFlags.ts"
import { canConfirm, confirm, confirmOrFail } from "../output/Confirm.ts"
import { failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** What `install` uses of this machine. */
export interface InstallHost {
  /** The user's home folder. */
  readonly home: string
  /** The folder of this program's data. */
  readonly data: Effect.Effect<string>
  /** How this process was started. */
  readonly start: ProcessStart
  /** Reads our plugin for an agent that loads code. */
  readonly plugin: (agent: PluginAgent) => Effect.Effect<string>
}

const placesOf = Effect.fnUntraced(function* (folder: string, { data, home }: InstallHost) {
  const path = yield* Path.Path
  const codex = yield* Effect.orElseSucceed(Config.option(Config.NonEmptyString("CODEX_HOME")), () => Option.none())
  const places: InstallPlaces = {
    folder,
    codex: path.resolve(Option.getOrElse(codex, () => path.join(home, ".codex"))),
    records: path.join(yield* data, "installed.json")
  }
  return places
})

const orFailed = Effect.mapError(({ message }: InstallError) => failed(message))

const leadsOut = ({ expectedPath, file }: LocatedFile): string =>
  `${printableLine(expectedPath)} leads out of its folder, to ${printableLine(file)}`

/** Names the files outside the agent's folder, and asks whether to go on. Without a question, they are refused. */
const mayLeadOut = Effect.fnUntraced(function* (files: ReadonlyArray<LocatedFile>, yes: boolean) {
  const outside = files.filter(({ isOutside }) => isOutside)
  const [first] = outside
  if (first === undefined) return true
  if (yes || !(yield* canConfirm)) {
    return yield* failed(`${leadsOut(first)}; nothing was changed: run this on a terminal, without --yes, to be asked`)
  }
  yield* Effect.forEach(outside, (file) => Output.notice(leadsOut(file)), { discard: true })
  return yield* confirm("Go on with the file there?")
})

const filesText = (files: ReadonlyArray<PlannedFile>): string =>
  files.map(({ file }) => printableLine(file)).join(" and ")

/** Names what the user has in the place of ours. */
const sayForeign = (planned: ReadonlyArray<PlannedFile>) =>
  Effect.forEach(
    planned.flatMap(({ file, foreign }) => foreign.map((what) => ({ file, what }))),
    ({ file, what }) => Output.notice(`${printableLine(file)} has ${what} of your own, which stays as it is`),
    { discard: true }
  )

/** Says how the agents start the program where they cannot do so by its name. */
const sayCommand = Effect.fnUntraced(function* ({ command, isCached }: OwnProgram) {
  if (command.length === 1) return
  yield* Output.notice(`palimpsest is not on the PATH; the command is ${printableLine(command.join(" "))}`)
  if (isCached) {
    yield* Output.notice(
      "it runs from a cache that may be emptied; npm install --global palimpsest-cli, and run this again"
    )
  }
})

/** What the user still has to do in the agent itself. */
const remaining = (agent: InstallAgent, isAdded: boolean): string =>
  agent === "codex" && isAdded ? "restart codex, and trust the hook there (/hooks)" : `start ${agent} again`

const unchanged = Output.notice("nothing was changed")

/** Says what was done. `next`: what the user does then. */
const sayDone = Effect.fnUntraced(function* (planned: ReadonlyArray<PlannedFile>, next: string, isAdded: boolean) {
  const changes = planned.filter(isChange)
  const stays = planned.filter((file) => file.stays)
  if (changes.length > 0) yield* Output.notice(`changed ${filesText(changes)}; ${next}`)
  if (stays.length > 0) {
    yield* Output.notice(`${filesText(stays)} had it before install, so it stays; run uninstall again to remove it`)
  }
  if (changes.length > 0 || stays.length > 0) return
  if (planned.some(({ foreign }) => foreign.length > 0)) return yield* unchanged
  yield* Output.notice(
    isAdded ? "nothing to change: it is installed already" : "nothing to change: it is not installed here"
  )
})

const change = Effect.fnUntraced(function* (
  { agent, yes }: { readonly agent: InstallAgent; readonly yes: boolean },
  isAdded: boolean,
  host: InstallHost
) {
  const path = yield* Path.Path
  const places = yield* placesOf(path.resolve("."), host)
  const program = yield* ownProgram(host.start)
  const plugins = yield* Effect.all({ pi: host.plugin("pi"), opencode: host.plugin("opencode") })
  const files = agentFiles(agent, { command: program.command, separator: path.sep, plugins })
  const located = yield* orFailed(locateFiles(files, places))
  if (!(yield* mayLeadOut(located, yes))) return yield* unchanged
  const planned = yield* orFailed(planFiles(located, isAdded, places))
  const changes = planned.filter(isChange)
  // Written first where nothing is asked: what reads the output may stop reading.
  if (yes) yield* orFailed(applyPlan(planned, places))
  yield* sayForeign(planned)
  for (const { after = "", before = "", file } of changes) {
    yield* Output.unwrapped(visibleBlock(fileDiff(file.replace(/^[/\\]/, ""), before, after).diff.trimEnd()))
  }
  if (changes.length > 0 && isAdded) yield* sayCommand(program)
  if (!yes) {
    if (
      changes.length > 0 &&
      !(yield* confirmOrFail(`Change ${changes.length === 1 ? "this file" : "these files"}?`, "write"))
    )
      return yield* unchanged
    yield* orFailed(applyPlan(planned, places))
  }
  yield* sayDone(planned, remaining(agent, isAdded), isAdded)
})

/** Prints the line that adds the MCP server to a client. */
export const setup = Effect.fnUntraced(function* (client: McpClient, { start }: InstallHost) {
  const { sep } = yield* Path.Path
  const program = yield* ownProgram(start)
  yield* Output.unwrapped(setupLine(client, program.command, sep))
  yield* sayCommand(program)
})

/** Adds the MCP server to a client's settings, without asking. */
export const writeServer = Effect.fnUntraced(function* (client: McpClient, folder: string, host: InstallHost) {
  const places = yield* placesOf(folder, host)
  const program = yield* ownProgram(host.start)
  const located = yield* orFailed(locateFiles([serverFile(client, program.command)], places))
  yield* mayLeadOut(located, true)
  const planned = yield* orFailed(planFiles(located, true, places))
  yield* sayForeign(planned)
  if (planned.some(isChange)) yield* sayCommand(program)
  yield* orFailed(applyPlan(planned, places))
  yield* sayDone(planned, `start ${client} again`, true)
})

const agent = Argument.Literals("agent", installAgents).pipe(
  Argument.withDescription(`Agent: ${installAgents.join(", ")}`)
)
const yes = Input.flag("yes", "Write without asking")

/** The command `palimpsest install AGENT`. */
export const install = (host: InstallHost) =>
  Command.make(
    "install",
    { agent, yes },
    Effect.fn("cli.install")((input) => change(input, true, host))
  ).pipe(
    Input.withExamples({
      "palimpsest install claude": "Add the MCP server and the compaction hooks to Claude Code in this folder",
      "palimpsest install pi --yes": "Compact Pi's sessions in this folder without a model; do not ask before writing"
    })
  )

/** The command `palimpsest uninstall AGENT`. */
export const uninstall = (host: InstallHost) =>
  Command.make(
    "uninstall",
    { agent, yes },
    Effect.fn("cli.uninstall")((input) => change(input, false, host))
  )
