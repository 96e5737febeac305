import { isErrorResponse, outputText, type Part } from "./Content.ts"

/**
 * What a tool call did, read from its name, its arguments and its answer: the tools of Gemini CLI, Claude Code, Codex
 * and Pi, and any other that names them alike (seed 004; spec transcripts).
 */
export type Action =
  | { readonly _tag: "Read"; readonly path: string }
  | { readonly _tag: "Write"; readonly path: string; readonly created: boolean | undefined }
  | { readonly _tag: "Edit"; readonly path: string }
  | { readonly _tag: "Delete"; readonly path: string }
  | { readonly _tag: "Command"; readonly command: string; readonly exit: number | undefined }
  | { readonly _tag: "Search"; readonly query: string }
  | { readonly _tag: "Todos"; readonly todos: ReadonlyArray<Todo> }
  | { readonly _tag: "Other"; readonly summary: string }

export interface Todo {
  readonly text: string
  readonly status: string
}

const readers = new Set(["read", "read_file", "readfile", "view", "notebookread", "read_many_files", "cat"])
const writers = new Set(["write", "write_file", "create_file", "writefile", "create"])
const editors = new Set(["edit", "multiedit", "replace", "str_replace", "notebookedit", "edit_file", "apply_diff"])
const shells = new Set(["bash", "shell", "run_shell_command", "shell_command", "exec_command", "local_shell", "exec"])
const searches = new Set([
  "grep",
  "glob",
  "search_file_content",
  "grep_search",
  "list_directory",
  "ls",
  "find",
  "websearch",
  "google_web_search",
  "web_fetch",
  "webfetch"
])
const todoLists = new Set(["todowrite", "write_todos", "update_plan", "todo_write"])

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const stringAt = (args: unknown, keys: ReadonlyArray<string>): string | undefined => {
  if (!isRecord(args)) return undefined
  for (const key of keys) {
    const value = args[key]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

const pathKeys = ["file_path", "path", "absolute_path", "notebook_path", "filename", "file"]

const pathsOf = (args: unknown): ReadonlyArray<string> => {
  const one = stringAt(args, pathKeys)
  if (one !== undefined) return [one]
  const many = isRecord(args) ? (args.paths ?? args.include) : undefined
  return Array.isArray(many) ? many.filter((path) => typeof path === "string") : []
}

const commandOf = (args: unknown): string | undefined => {
  const text = stringAt(args, ["command", "cmd", "script"])
  if (text !== undefined) return text
  const words = isRecord(args) ? args.command : undefined
  if (!Array.isArray(words)) return undefined
  const parts = words.filter((word) => typeof word === "string")
  // `["bash", "-lc", "the command"]`
  return /(?:^|\/)(?:ba|z|da)?sh$/.test(parts[0] ?? "") && (parts[1] ?? "").startsWith("-") ? parts[2] : parts.join(" ")
}

/** The whole answer of a tool as text. */
export const answerText = (part: Part | undefined): string => {
  if (part === undefined) return ""
  return outputText(part) ?? JSON.stringify(part.functionResponse?.response ?? "")
}

const exitPatterns = [
  /^Exit code:? (-?\d+)/i,
  /(?:^|\n)Exit Code: (-?\d+)/,
  /(?:^|\n)Command exited with code (-?\d+)\s*$/,
  /"exit_code":\s*(-?\d+)/,
  /(?:^|\n)Process exited with code (-?\d+)/
]

/** The exit code a shell's answer tells; 0 when it answered without an error and told none. */
export const exitCode = (answer: Part | undefined): number | undefined => {
  if (answer === undefined) return undefined
  const text = answerText(answer)
  const edges = text.length > 2_000 ? `${text.slice(0, 1_000)}\n${text.slice(-1_000)}` : text
  for (const pattern of exitPatterns) {
    const code = pattern.exec(edges)?.[1]
    if (code !== undefined) return Number(code)
  }
  return isErrorResponse(answer) ? undefined : 0
}

const word = /"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\s"'\\;&|<>()]|\\.)+)|(&&|\|\||[;|\n]|>>?|<<?)/g

/** The simple commands of a shell line, as words; here-documents are cut off. */
const simpleCommands = (line: string): Array<Array<string>> => {
  const heredoc = line.indexOf("<<")
  const text =
    heredoc < 0 ? line : line.slice(0, line.indexOf("\n", heredoc) < 0 ? undefined : line.indexOf("\n", heredoc))
  const commands: Array<Array<string>> = [[]]
  // `2>&1` and `&>/dev/null` name no file.
  for (const match of text
    .slice(0, 20_000)
    .replace(/\d*>&\d?|&>\s*\/dev\/null/g, " ")
    .matchAll(word)) {
    const operator = match[4]
    const value = match[1] ?? match[2] ?? match[3] ?? operator ?? ""
    if (operator !== undefined && !operator.startsWith(">") && !operator.startsWith("<")) commands.push([])
    else commands[commands.length - 1]?.push(value)
  }
  return commands.filter((words) => words.length > 0)
}

const isPlainPath = (path: string): boolean => /[\w]/.test(path) && !/[*?$`{}]/.test(path) && !path.startsWith("/dev/")

/** What a shell command that succeeded did to files, as far as its words say. */
export const shellFileActions = (command: string): Array<Action> => {
  const actions: Array<Action> = []
  for (const words of simpleCommands(command)) {
    const redirect = words.findIndex((value) => value === ">" || value === ">>")
    const target = redirect < 0 ? undefined : words[redirect + 1]
    if (target !== undefined && isPlainPath(target) && !target.startsWith("&")) {
      actions.push({ _tag: "Write", path: target, created: undefined })
    }
    const [program, ...rest] = words[0] === "git" || words[0] === "sudo" ? words.slice(1) : words
    const operands = (redirect < 0 ? rest : rest.slice(0, Math.max(0, redirect - 1))).filter(
      (value) => !value.startsWith("-") && isPlainPath(value)
    )
    if (program === "rm" || program === "unlink") {
      for (const path of operands) actions.push({ _tag: "Delete", path })
    } else if (program === "mv" && operands.length === 2) {
      const [from = "", to = ""] = operands
      actions.push({ _tag: "Delete", path: from }, { _tag: "Write", path: to, created: true })
    } else if (program === "touch") {
      for (const path of operands) actions.push({ _tag: "Write", path, created: undefined })
    }
  }
  return actions
}

const patchActions = (patch: string): Array<Action> =>
  [...patch.matchAll(/^\*\*\* (Add|Update|Delete) File: (.+)$/gm)].map(([, kind, path = ""]) =>
    kind === "Delete"
      ? { _tag: "Delete", path: path.trim() }
      : kind === "Add"
        ? { _tag: "Write", path: path.trim(), created: true }
        : { _tag: "Edit", path: path.trim() }
  )

const todosOf = (args: unknown): ReadonlyArray<Todo> => {
  const list = isRecord(args) ? (args.todos ?? args.plan ?? args.items) : undefined
  if (!Array.isArray(list)) return []
  return list.filter(isRecord).flatMap((todo) => {
    const text = stringAt(todo, ["content", "description", "step", "text", "title"])
    return text === undefined ? [] : [{ text, status: stringAt(todo, ["status", "state"]) ?? "pending" }]
  })
}

const createdBy = (answer: Part | undefined): boolean | undefined => {
  const text = answerText(answer).slice(0, 500)
  if (/\bcreated\b/i.test(text)) return true
  return /\b(?:updated|overwr[io]te?|modified)\b/i.test(text) ? false : undefined
}

const brief = (value: unknown): string => {
  const text = isRecord(value)
    ? Object.entries(value)
        .map(([key, field]) => `${key}=${typeof field === "string" ? field : JSON.stringify(field)}`)
        .join(", ")
    : JSON.stringify(value ?? "")
  const line = text.replace(/\s+/g, " ")
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

/**
 * What the call did, given its answer (undefined: none came). A call that failed did nothing to files; a shell command
 * is reported whatever its end.
 */
export const actionsOf = (call: Part, answer: Part | undefined): ReadonlyArray<Action> => {
  const made = call.functionCall
  if (made === undefined) return []
  const name = made.name.toLowerCase()
  const failed = answer !== undefined && isErrorResponse(answer)
  if (shells.has(name)) {
    const command = commandOf(made.args) ?? ""
    const exit = exitCode(answer)
    if (name !== "bash" && command.includes("*** Begin Patch")) return exit === 0 ? patchActions(command) : []
    const action: Action = { _tag: "Command", command, exit }
    return exit === 0 ? [action, ...shellFileActions(command)] : [action]
  }
  if (todoLists.has(name)) return failed ? [] : [{ _tag: "Todos", todos: todosOf(made.args) }]
  const done = answer !== undefined && !failed
  if (name === "apply_patch")
    return done ? patchActions(stringAt(made.args, ["input", "patch"]) ?? String(made.args)) : []
  const paths = pathsOf(made.args)
  if (readers.has(name)) return done ? paths.map((path) => ({ _tag: "Read", path })) : []
  if (writers.has(name)) return done ? paths.map((path) => ({ _tag: "Write", path, created: createdBy(answer) })) : []
  if (editors.has(name)) return done ? paths.map((path) => ({ _tag: "Edit", path })) : []
  if (name === "delete_file" || name === "delete") return done ? paths.map((path) => ({ _tag: "Delete", path })) : []
  if (searches.has(name)) {
    return [
      {
        _tag: "Search",
        query: stringAt(made.args, ["pattern", "query", "url", "prompt", ...pathKeys]) ?? brief(made.args)
      }
    ]
  }
  return [{ _tag: "Other", summary: brief(made.args) }]
}
