import { nearest } from "../../domain/Nearest.ts"
import { definitions } from "../Columns.ts"

/** What a person types behind a slash, and what it is short for. */

/** The commands there are: what they are called, what they take, and what they do. */
export const slashCommands = [
  {
    name: "compress",
    takes: "[focus]",
    does: "Make room now, keeping what matters most; all that leaves stays recallable"
  },
  { name: "undo", takes: "", does: "Take the last compression back" },
  { name: "redo", takes: "", does: "Compress again as it was before /undo" },
  { name: "context", takes: "", does: "Show where the tokens of the window go" },
  { name: "pin", takes: "[words]", does: "Keep words of yours, or your last message, exact for ever" },
  { name: "model", takes: "[name]", does: "Show the model, or go on with another" },
  { name: "tools", takes: "", does: "List the tools the model may use, and which of them ask first" },
  { name: "approve", takes: "[none|edits|all|plan]", does: "Show or change what runs without asking" },
  { name: "agents", takes: "", does: "List the agents the model may give work to" },
  {
    name: "memory",
    takes: "[show|list|add|refresh]",
    does: "Show what is remembered, add a fact (add project: …), or read the files anew"
  },
  { name: "save", takes: "<file> [format]", does: "Write the conversation to a file, also for another agent" },
  { name: "resume", takes: "[session]", does: "Go on with another session: latest, its number, title or id" },
  { name: "sessions", takes: "", does: "List the sessions" },
  { name: "copy", takes: "", does: "Copy the last answer to the clipboard" },
  { name: "stats", takes: "", does: "Show turns, tokens, compressions and cost" },
  { name: "clear", takes: "", does: "Begin a new session; this one is kept" },
  { name: "help", takes: "", does: "Show this" },
  { name: "quit", takes: "", does: "Leave" }
] as const

/** What a command is called. */
export type SlashName = (typeof slashCommands)[number]["name"]

/** What is said of keys and of what is no command. */
const keys = [
  ["\\ at the end", 'The message goes on in the next line; so does all between two lines """'],
  ["// at the start", "A message that begins with a slash"],
  ["Tab", "Completes commands, and paths after @"],
  ["Ctrl+C", "Cancels what is going on; twice on an empty line it leaves, as Ctrl+D does"]
] as const

/** What `/help` shows in so many columns. */
export const help = (columns: number): string =>
  definitions(
    [
      ...slashCommands.map(({ does, name, takes }) => [`/${name}${takes === "" ? "" : ` ${takes}`}`, does] as const),
      ...keys
    ],
    columns
  )

/** Other names that people know (spec 11). */
const aliases: Readonly<Record<string, SlashName>> = {
  summarize: "compress",
  compact: "compress",
  exit: "quit",
  new: "clear",
  "?": "help"
}

/** What a typed message is. */
export type Typed =
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Command"; readonly name: SlashName; readonly rest: string }
  | { readonly _tag: "Unknown"; readonly name: string; readonly nearest: SlashName | undefined }

const meant = (name: string): SlashName | undefined => {
  const names = slashCommands.map((command) => command.name)
  const prefixed = names.filter((known) => known.startsWith(name))
  return prefixed.length === 1 ? prefixed[0] : nearest(name, names, 2)
}

/**
 * Tells a command from a message. Only a single word of letters behind the slash is one, so that a path can be written
 * first; two slashes send what follows the first as it is.
 */
export const typed = (line: string): Typed => {
  if (line.startsWith("//")) return { _tag: "Message", text: line.slice(1) }
  const [, word, rest = ""] = /^\/([a-zA-Z]+|\?)(?:\s+([\s\S]*))?$/.exec(line) ?? []
  if (word === undefined) return { _tag: "Message", text: line }
  const name = word.toLowerCase()
  const known = slashCommands.find((command) => command.name === name)?.name ?? aliases[name]
  return known === undefined
    ? { _tag: "Unknown", name: word, nearest: meant(name) }
    : { _tag: "Command", name: known, rest: rest.trim() }
}

/** The commands that a word may become. */
export const completions = (word: string): ReadonlyArray<string> =>
  slashCommands.map(({ name }) => `/${name} `).filter((name) => name.startsWith(word))
