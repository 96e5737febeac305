/** The list of all slash commands: parses typed lines, completes the names of commands, writes the text of `/help`. */

import { Effect } from "effect"
import { fuzzyRank } from "../../../domain/text/FuzzyMatch.ts"
import { closestName } from "../../../domain/text/SpellingSuggestion.ts"
import type { Completion } from "../../../services/terminal/ChatTerminal.ts"
import { definitions } from "../../output/Columns.ts"
import { approvals, approve } from "./approve.ts"
import { bug } from "./bug.ts"
import { type SlashCommand, tableColumns } from "./ChatSession.ts"
import { compress, pin, rate, redo, undo } from "./compress.ts"
import { context, recall } from "./context.ts"
import { copy, exportCommand } from "./export.ts"
import { init, memory } from "./memory.ts"
import { model } from "./model.ts"
import { clear, quit, resume, sessions } from "./resume.ts"
import { rewind } from "./rewind.ts"
import { cost, stats } from "./stats.ts"
import { tasks } from "./tasks.ts"
import { theme } from "./theme.ts"
import { agents, mcp, tools } from "./tools.ts"
import { label, tree } from "./tree.ts"

const help: SlashCommand = {
  name: "help",
  aliases: ["?"],
  help: "Show this help",
  run: (session) => Effect.flatMap(tableColumns(session), (columns) => session.terminal.write(`${helpText(columns)}\n`))
}

/** All slash commands, in the order of `/help`. To add one, write it and name it here. */
export const slashCommands: ReadonlyArray<SlashCommand> = [
  compress,
  undo,
  redo,
  rate,
  context,
  recall,
  pin,
  rewind,
  tree,
  label,
  model,
  tools,
  mcp,
  tasks,
  approve,
  approvals,
  agents,
  memory,
  init,
  exportCommand,
  resume,
  sessions,
  copy,
  theme,
  stats,
  cost,
  clear,
  bug,
  help,
  quit
]

const keyHelp: ReadonlyArray<readonly [string, string]> = [
  ["Shift+Enter", 'Begin a new line; so do Alt+Enter, Ctrl+J, a \\ at the end, and all lines between two lines """'],
  ["! at the start", "Run a command in your shell; its output joins your message if you want"],
  ["// at the start", "Send a message that begins with a slash"],
  ["/ or @", "List commands or files while you type; Tab completes"],
  ["Esc", "Cancel what is running; what you queued comes back into the editor"],
  ["Shift+Tab", "Change what runs without asking: nothing, edits, or only a plan"],
  ["Ctrl+O", "Open or close the outputs of tools"],
  ["Ctrl+R", "Search your earlier messages; Up recalls the last one"],
  ["Ctrl+G", "Write the message in your editor (EDITOR)"],
  ["Ctrl+Z", "Stop the program; fg in the shell continues it"],
  ["Ctrl+C", "Cancel what is running; on an empty line, press it twice to leave (or Ctrl+D)"]
]

/** The text of `/help`, in lines of at most `columns` columns. */
export const helpText = (columns: number): string =>
  definitions(
    [
      ...slashCommands.map(
        ({ help, name, usage }) => [`/${name}${usage === undefined ? "" : ` ${usage}`}`, help] as const
      ),
      ...keyHelp
    ],
    columns
  )

/** A line as the user typed it. */
export type ParsedLine =
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Command"; readonly command: SlashCommand; readonly argument: string }
  | { readonly _tag: "Shell"; readonly command: string }
  | { readonly _tag: "Unknown"; readonly name: string; readonly nearest: string | undefined }

const suggestion = (name: string): string | undefined => {
  const names = slashCommands.map((command) => command.name)
  const prefixed = names.filter((each) => each.startsWith(name))
  return prefixed.length === 1 ? prefixed[0] : closestName(name, names, 2)
}

/**
 * Distinguishes commands from messages. Only a single word of letters after the slash is a command, so a message can begin with
 * a path. Two slashes send the rest, with one slash, as a message. An exclamation mark runs the rest in the user's shell.
 */
export const parseLine = (line: string): ParsedLine => {
  const shell = /^!\s*(\S[\s\S]*)$/.exec(line)?.[1]
  if (shell !== undefined) return { _tag: "Shell", command: shell }
  if (line.startsWith("//")) return { _tag: "Message", text: line.slice(1) }
  const [, word, argument = ""] = /^\/([a-zA-Z]+|\?)(?:\s+([\s\S]*))?$/.exec(line) ?? []
  if (word === undefined) return { _tag: "Message", text: line }
  const name = word.toLowerCase()
  const command = slashCommands.find((each) => each.name === name || each.aliases?.includes(name) === true)
  return command === undefined
    ? { _tag: "Unknown", name: word, nearest: suggestion(name) }
    : { _tag: "Command", command, argument: argument.trim() }
}

/** Completes the name of a command, with a description of each candidate. A command that needs an argument gets a space. */
export const completeCommand = (word: string): Completion => {
  const typed = word.slice(1).toLowerCase()
  const all = slashCommands.map(({ aliases = [], help, name, usage }) => ({
    candidate: `/${name}${usage?.startsWith("<") === true ? " " : ""}`,
    help,
    // An alias matches only by its beginning.
    rank: fuzzyRank(typed, name) ?? (aliases.some((alias) => typed !== "" && alias.startsWith(typed)) ? 0 : undefined)
  }))
  const matching = all.flatMap((one) => (one.rank === undefined ? [] : [{ ...one, rank: one.rank }]))
  const sorted = matching.sort((one, other) => one.rank - other.rank)
  return {
    candidates: sorted.map(({ candidate }) => candidate),
    replaced: word,
    about: Object.fromEntries(sorted.map(({ candidate, help }) => [candidate, help]))
  }
}
