/**
 * The tools of the agents: which name, with which arguments, does what. Everything that reads what an agent did (evidence,
 * inspection, `find`, replays) reads this table, and no other file names a tool or an argument of another agent.
 */

import { Predicate } from "effect"

/** What a tool does. */
export type ToolKind =
  | "read"
  | "write"
  | "edit"
  | "patch"
  | "delete"
  | "command"
  | "script"
  | "search"
  /** Asks how something goes on in the background, or stops it. */
  | "follow"
  | "ask"
  /** Shows a plan to the user, who approves it. */
  | "approve"
  | "plan"
  /** Makes or changes one item of the todo list. */
  | "item"
  | "delegate"

/** The names of some tools of an agent that do the same, and the versions that have them. */
interface AgentTools {
  readonly agent: string
  /** The first and the last version; without them, all that we know. */
  readonly versions?: string
  readonly kind: ToolKind
  readonly names: string
}

/** Names are compared without case. The same name does the same in every agent, but for `exec` (see `toolKind`). */
const agentTools: ReadonlyArray<AgentTools> = [
  { agent: "Gemini CLI", kind: "read", names: "read_file read_many_files" },
  { agent: "Gemini CLI", kind: "write", names: "write_file" },
  { agent: "Gemini CLI", kind: "edit", names: "replace" },
  { agent: "Gemini CLI", kind: "command", names: "run_shell_command" },
  { agent: "Gemini CLI", kind: "search", names: "glob list_directory google_web_search web_fetch" },
  { agent: "Gemini CLI", versions: "to 0.26", kind: "search", names: "search_file_content" },
  { agent: "Gemini CLI", versions: "from 0.27", kind: "search", names: "grep_search" },
  { agent: "Gemini CLI", kind: "plan", names: "write_todos" },
  { agent: "Gemini CLI", versions: "from 0.32", kind: "item", names: "tracker_create_task tracker_update_task" },
  { agent: "Gemini CLI", versions: "from 0.28", kind: "ask", names: "ask_user" },
  { agent: "Gemini CLI", versions: "from 0.28", kind: "approve", names: "exit_plan_mode" },
  { agent: "Gemini CLI", kind: "delegate", names: "delegate_to_agent codebase_investigator invoke_agent" },
  { agent: "Claude Code", kind: "read", names: "Read NotebookRead View" },
  { agent: "Claude Code", kind: "write", names: "Write" },
  { agent: "Claude Code", kind: "edit", names: "Edit MultiEdit NotebookEdit" },
  { agent: "Claude Code", kind: "command", names: "Bash" },
  { agent: "Claude Code", versions: "from 2.1, on Windows", kind: "command", names: "PowerShell" },
  { agent: "Claude Code", kind: "search", names: "Grep Glob LS WebFetch WebSearch ToolSearch LSP" },
  { agent: "Claude Code", kind: "follow", names: "BashOutput KillBash KillShell TaskOutput TaskStop" },
  { agent: "Claude Code", kind: "plan", names: "TodoWrite" },
  { agent: "Claude Code", versions: "from 2.1.16", kind: "item", names: "TaskCreate TaskUpdate" },
  { agent: "Claude Code", kind: "ask", names: "AskUserQuestion" },
  { agent: "Claude Code", kind: "approve", names: "ExitPlanMode" },
  { agent: "Claude Code", kind: "delegate", names: "Task Agent" },
  { agent: "Claude Code", versions: "in Zed", kind: "read", names: "mcp__acp__Read" },
  { agent: "Claude Code", versions: "in Zed", kind: "write", names: "mcp__acp__Write" },
  { agent: "Claude Code", versions: "in Zed", kind: "edit", names: "mcp__acp__Edit mcp__acp__MultiEdit" },
  { agent: "Claude Code", versions: "in Zed", kind: "command", names: "mcp__acp__Bash" },
  { agent: "Codex", versions: "to 0.60", kind: "command", names: "shell container.exec" },
  { agent: "Codex", kind: "command", names: "shell_command exec_command local_shell" },
  { agent: "Codex", versions: "from 0.140", kind: "script", names: "exec" },
  { agent: "Codex", kind: "patch", names: "apply_patch" },
  { agent: "Codex", kind: "read", names: "read_file view_image" },
  { agent: "Codex", kind: "search", names: "web_search grep_files list_dir" },
  { agent: "Codex", kind: "follow", names: "write_stdin" },
  { agent: "Codex", kind: "plan", names: "update_plan" },
  { agent: "Codex", kind: "ask", names: "request_user_input" },
  { agent: "Codex", kind: "delegate", names: "spawn_agent wait_agent wait" },
  { agent: "opencode", kind: "read", names: "read" },
  { agent: "opencode", kind: "write", names: "write" },
  { agent: "opencode", kind: "edit", names: "edit multiedit" },
  { agent: "opencode", kind: "patch", names: "apply_patch patch" },
  { agent: "opencode", kind: "command", names: "bash" },
  { agent: "opencode", kind: "search", names: "grep glob list webfetch websearch codesearch" },
  { agent: "opencode", kind: "plan", names: "todowrite" },
  { agent: "opencode", kind: "ask", names: "question" },
  { agent: "opencode", kind: "approve", names: "plan_exit" },
  { agent: "opencode", kind: "delegate", names: "task" },
  { agent: "Pi", kind: "read", names: "read" },
  { agent: "Pi", kind: "write", names: "write" },
  { agent: "Pi", kind: "edit", names: "edit" },
  { agent: "Pi", kind: "command", names: "bash" },
  { agent: "Pi", kind: "search", names: "grep find ls" },
  { agent: "Pi", versions: "extensions", kind: "ask", names: "question questionnaire" },
  { agent: "Pi", versions: "extensions", kind: "delegate", names: "subagent" },
  { agent: "others", kind: "read", names: "readfile cat mcp__filesystem__read_file mcp__filesystem__read_text_file" },
  { agent: "others", kind: "write", names: "create_file writefile create mcp__filesystem__write_file" },
  { agent: "others", kind: "edit", names: "str_replace edit_file apply_diff mcp__filesystem__edit_file" },
  { agent: "others", kind: "command", names: "pwsh" },
  { agent: "others", kind: "delete", names: "delete_file delete" },
  { agent: "others", kind: "ask", names: "ask_user_question ask_question" },
  { agent: "others", kind: "plan", names: "todo_write" }
]

const kinds: ReadonlyMap<string, ToolKind> = new Map(
  agentTools.flatMap(({ kind, names }) => names.split(" ").map((name) => [name.toLowerCase(), kind] as const))
)

/** Tools of Codex's shells: Codex has no tool that reads a file, so its commands are how it reads. */
const readingShells = new Set(["shell", "shell_command", "exec_command", "local_shell", "container.exec"])

/** Tools of Codex that answer with the states of agents, in JSON alone. */
const stateTools = new Set(["spawn_agent", "wait_agent", "wait"])

/** Whether a tool answers with the states of agents, and says nothing else of them. */
export const answersInStates = (name: string): boolean => stateTools.has(name.toLowerCase())

/** The arguments that mean the same, by the names that agents and their versions have for them. */
const argumentNames = {
  /** Gemini CLI until 0.20 has `absolute_path`; opencode has `filePath`. */
  path: ["file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file"],
  /** `command` may be a list of words (Codex until 2025). */
  command: ["command", "cmd", "script"],
  patch: ["input", "patch", "patchText"],
  query: ["pattern", "query", "url", "prompt"],
  /** The text that an edit replaces. */
  before: ["old_string", "old_str", "oldString", "oldText", "old_text"],
  after: ["new_string", "new_str", "newString", "newText", "new_text"],
  content: ["content", "file_text", "new_source"]
} as const

/** Arguments that hold what the agent makes up, and not what it refers to. */
export const bodyArguments: ReadonlySet<string> = new Set([
  ...argumentNames.before,
  ...argumentNames.after,
  ...argumentNames.content,
  "prompt",
  "plan",
  "edits",
  "todos",
  "patch",
  "patchText"
])

/** The arguments that name what a call is about, the most telling first. */
export const subjectArguments: ReadonlyArray<string> = [...argumentNames.path, "pattern", "query", "url"]

const stringAt = (args: unknown, names: ReadonlyArray<string>): string | undefined => {
  if (!Predicate.isObject(args)) return undefined
  for (const name of names) {
    const value = args[name]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

/** Returns what a tool does; undefined for a tool of no agent that we know. */
export const toolKind = (name: string, args?: unknown): ToolKind | undefined => {
  const kind = kinds.get(name.toLowerCase())
  // Codex waits for agents, and for a script that runs on.
  if (kind === "delegate" && Predicate.isObject(args) && "cell_id" in args) return "follow"
  // Codex's `exec` takes a script; another agent's takes a command.
  return kind === "script" && commandIn(args) !== undefined ? "command" : kind
}

/** Whether the commands of a shell tool are also how its agent reads files. */
export const readsByCommand = (name: string): boolean => readingShells.has(name.toLowerCase())

const isPattern = (path: string): boolean => /[*?{}]/.test(path)

/** Returns the files that arguments name. Patterns among several paths do not count. */
export const pathsIn = (args: unknown): ReadonlyArray<string> => {
  const one = stringAt(args, argumentNames.path)
  if (one !== undefined) return [one]
  const many = Predicate.isObject(args) ? (args.paths ?? args.include) : undefined
  return Array.isArray(many) ? many.filter((path) => typeof path === "string" && !isPattern(path)) : []
}

/** Matches a shell that is given a command: `bash -lc`, `powershell.exe -Command`, `cmd /c`. */
const shellProgram = /(?:^|[\\/])(?:(?:ba|z|da)?sh|powershell|pwsh|cmd)(?:\.exe)?$/i

/** Returns the command that arguments hold, without the shell that runs it. */
export const commandIn = (args: unknown): string | undefined => {
  const text = stringAt(args, argumentNames.command)
  if (text !== undefined) return text
  const words = Predicate.isObject(args) ? args.command : undefined
  if (!Array.isArray(words)) return undefined
  const parts = words.filter((word) => typeof word === "string")
  if (!shellProgram.test(parts[0] ?? "")) return parts.join(" ")
  // `["bash", "-lc", "the command"]`, `["powershell.exe", "-NoProfile", "-Command", "the command"]`
  const first = parts.findIndex((word, index) => index > 0 && !/^(?:-|\/[a-z]$)/i.test(word))
  return first > 1 ? parts.slice(first).join(" ") : parts.join(" ")
}

/** Whether arguments hold a command, however it is written. */
export const isCommand = (args: unknown): boolean =>
  Predicate.isObject(args) && argumentNames.command.some((name) => name in args)

/** Returns the patch that arguments hold. */
export const patchIn = (args: unknown): string =>
  typeof args === "string" ? args : (stringAt(args, argumentNames.patch) ?? "")

/** Returns what arguments search for, or look at. */
export const queryIn = (args: unknown): string | undefined =>
  stringAt(args, [...argumentNames.query, ...argumentNames.path])

/** Returns the texts that arguments replace, with what stands in their place. */
export const replacementsIn = (args: unknown): ReadonlyArray<readonly [before: string, after: string]> => {
  if (!Predicate.isObject(args)) return []
  const before = stringAt(args, argumentNames.before) ?? ""
  const after = stringAt(args, [...argumentNames.after, ...argumentNames.content]) ?? ""
  const several = args.edits
  return [
    ...(before === "" && after === "" ? [] : [[before, after] as const]),
    ...(Array.isArray(several) ? several.flatMap(replacementsIn) : [])
  ]
}

/** The change of one item of a todo list: what the call says of it. */
interface ItemChange {
  /** Undefined: no answer names it. */
  readonly id: string | undefined
  readonly text: string | undefined
  readonly status: string | undefined
}

/** Returns what a call changes in an item of a todo list; undefined for any other call. A new item has its number from the answer. */
export const itemChangeIn = (name: string, args: unknown, answer: () => string): ItemChange | undefined => {
  if (toolKind(name) !== "item" || !Predicate.isObject(args)) return undefined
  const [, number, key] = /#(\d+)|^Created task (\w+):/.exec(answer().slice(0, 200)) ?? []
  const isNew = /create/i.test(name)
  const givenId = args.taskId ?? args.id
  const id = isNew ? (number ?? key) : givenId === undefined ? undefined : String(givenId)
  return {
    id,
    text: stringAt(args, isNew ? ["subject", "title", "description"] : ["subject", "title"]),
    status: stringAt(args, ["status"])
  }
}

/** Returns the items of a list of work. */
export const todosIn = (args: unknown): ReadonlyArray<{ readonly text: string; readonly status: string }> => {
  const list = Predicate.isObject(args) ? (args.todos ?? args.plan ?? args.items) : undefined
  if (!Array.isArray(list)) return []
  return list.filter(Predicate.isObject).flatMap((todo) => {
    const text = stringAt(todo, ["content", "description", "step", "text", "title"])
    return text === undefined ? [] : [{ text, status: stringAt(todo, ["status", "state"]) ?? "pending" }]
  })
}
