import { Effect, type FileSystem, Option } from "effect"
import { analyzeCommand, coversOf, grantsOf } from "../../../domain/tools/ShellCommand.ts"
import { inspect } from "../../platform/RegularFile.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { ShellGrammar } from "../ShellGrammar.ts"
import type { Question } from "../Tool.ts"

/** What the user is asked before a command runs. */

/** The number of folders in a path. */
const depthOf = (folder: string): number => folder.split("/").filter((part) => part !== "").length

/** What a grant for a command covers. Undefined: nothing, so every such command asks. */
const coverage = Effect.fnUntraced(function* (command: string, folder: string) {
  const workspace = yield* Workspace
  const grammar = yield* ShellGrammar
  const tree = yield* grammar.parse(command)
  const analyzed = tree === undefined ? undefined : analyzeCommand(command, tree)
  if (analyzed === undefined) return undefined
  // Counts `..` as a shell does that was started in a folder without links.
  const from = (base: string, place: string) => (place.startsWith("/") ? place : `${base}/${place}`)
  const within = (base: string, place: string) => workspace.path(from(base, place), "write")
  const places = Effect.gen(function* () {
    const here = analyzed.folder === undefined ? folder : yield* within(folder, analyzed.folder)
    const commands = yield* Effect.forEach(analyzed.commands, (command) =>
      command.folder === undefined
        ? Effect.succeed(command)
        : Effect.map(within(here, command.folder), (folder) => ({ ...command, folder }))
    )
    for (const read of analyzed.reads) {
      const place = yield* workspace.path(from(here, read), "read")
      yield* inspect(place, place)
    }
    for (const place of analyzed.makes) yield* within(here, place)
    return { here, commands }
  })
  const resolved = yield* Effect.option(places)
  if (Option.isNone(resolved)) return undefined
  const { commands, here } = resolved.value
  const depths = [folder, here, ...commands.flatMap(({ folder }) => folder ?? [])].map(depthOf)
  if (analyzed.climbs !== undefined && analyzed.climbs >= Math.min(...depths)) return undefined
  const shown = (place: string) => (place === workspace.root ? "this folder" : workspace.shown(place))
  const placed = { ...analyzed, commands }
  return { grants: grantsOf(placed, here, workspace.root), covers: coversOf(placed, shown(here), shown) }
})

/** The question before a command runs in a folder: the command as it will run, and what a grant would cover. */
export const commandQuestion = Effect.fnUntraced(function* (
  command: string,
  folder: string,
  isBackground: boolean
): Effect.fn.Return<Question, never, FileSystem.FileSystem | Workspace> {
  const workspace = yield* Workspace
  const where = folder === workspace.root ? "" : `\n(in ${workspace.shown(folder)})`
  const how = isBackground ? "\n(in the background)" : ""
  const { covers, grants } = (yield* coverage(command, folder)) ?? { covers: "this command", grants: [] }
  return { detail: `${command}${where}${how}`, grants, covers, edits: { argument: "command", text: command } }
})
