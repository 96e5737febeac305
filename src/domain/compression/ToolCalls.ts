import { Predicate } from "effect"
import { isErrorResponse, type Part } from "../content/Content.ts"
import { responseText } from "../content/MediaBlocks.ts"

/**
 * An action of a tool call, read from its name, arguments and response. Covers the tools of Gemini CLI, Claude Code, Codex
 * and Pi, and any other tool with the same names.
 *
 * One file: the tables of tool names, argument keys and shell programs are read together.
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

/** One entry of the agent's todo list, with the status in the agent's own words. */
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

const stringAt = (args: unknown, keys: ReadonlyArray<string>): string | undefined => {
  if (!Predicate.isObject(args)) return undefined
  for (const key of keys) {
    const value = args[key]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

const pathKeys = ["file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file"]

const isPattern = (path: string): boolean => /[*?{}]/.test(path)

/** Returns the files that arguments name. Patterns among several paths do not count. */
const pathsOf = (args: unknown): ReadonlyArray<string> => {
  const one = stringAt(args, pathKeys)
  if (one !== undefined) return [one]
  const many = Predicate.isObject(args) ? (args.paths ?? args.include) : undefined
  return Array.isArray(many) ? many.filter((path) => typeof path === "string" && !isPattern(path)) : []
}

const commandOf = (args: unknown): string | undefined => {
  const text = stringAt(args, ["command", "cmd", "script"])
  if (text !== undefined) return text
  const words = Predicate.isObject(args) ? args.command : undefined
  if (!Array.isArray(words)) return undefined
  const parts = words.filter((word) => typeof word === "string")
  // `["bash", "-lc", "the command"]`
  return /(?:^|\/)(?:ba|z|da)?sh$/.test(parts[0] ?? "") && (parts[1] ?? "").startsWith("-") ? parts[2] : parts.join(" ")
}

/** Returns the whole response of a tool as text. */
export const answerText = (part: Part | undefined): string => {
  return part === undefined ? "" : responseText(part)
}

/** Matches responses that come before the end of a command or in place of one (Claude Code, Codex, Gemini CLI). */
const unfinished =
  /^(?:Command (?:running in background with ID|was manually backgrounded|moved to background|was (?:automatically )?cancelled)|(?:Chunk ID: .*\n)?Wall time: .*\nProcess running with session ID)/

/** Codex's forms of an exit code, anchored where Codex writes them, so that command output cannot match. */
const codexForms = [
  /^Exit code: (-?\d+)\nWall time: /,
  /^(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)/,
  /^\{"output":[\s\S]*"metadata":\s*\{"exit_code":\s*(-?\d+)[^{}]*\}\}\s*$/
]

/**
 * Claude Code's and Pi's forms of an exit code, in errors only: a successful response holds command output and nothing else.
 */
const errorForms = [/^Exit code:? (-?\d+)/i, /(?:^|\n)Command exited with code (-?\d+)\s*$/]

const labelledForm = /^(?:Command|Output): /
const label = /^(Exit Code|Signal|Background PIDs|Process Group PGID): (.*)$/

/**
 * Returns the exit code from Gemini CLI's labelled form. Only the labels after the output come from the tool. Newer versions
 * omit a code of 0 or none; `otherwise` is the value for that case.
 */
const labelledExit = (text: string, otherwise: number | undefined): number | undefined => {
  const labels = new Map<string, string>()
  for (const line of text.trimEnd().split("\n").reverse()) {
    const [, name, value] = label.exec(line) ?? []
    if (name === undefined || value === undefined || labels.has(name)) break
    labels.set(name, value)
  }
  if ((labels.get("Signal") ?? "(none)") !== "(none)") return undefined
  const code = labels.get("Exit Code")
  if (code === undefined) return otherwise
  return /^-?\d+$/.test(code) ? Number(code) : undefined
}

/**
 * Returns the exit code that a shell's response reports, or 0 for a response without an error or a code. Undefined when
 * there is no exit code: no response yet, still running, ended by a signal or otherwise without an exit.
 */
export const exitCode = (answer: Part | undefined): number | undefined => {
  if (answer === undefined) return undefined
  const text = answerText(answer)
  const edges = text.length > 2_000 ? `${text.slice(0, 1_000)}\n${text.slice(-1_000)}` : text
  if (unfinished.test(edges)) return undefined
  const isError = isErrorResponse(answer)
  for (const form of isError ? [...codexForms, ...errorForms] : codexForms) {
    const code = form.exec(edges)?.[1]
    if (code !== undefined) return Number(code)
  }
  const otherwise = isError ? undefined : 0
  return labelledForm.test(edges) ? labelledExit(edges, otherwise) : otherwise
}

const printedNothing = /^(?:Stdout|Stderr|Output|Error): (?:\(none\)|\(empty\))$/

/**
 * Returns the lines that a command printed, verbatim. In the labelled form of Gemini CLI, which our tools share, the lines
 * that name the command and its result are left out. In any other form it is the whole response.
 *
 * `text` may be cut at its end.
 */
export const printedText = (text: string): string => {
  if (!labelledForm.test(text)) return text
  const lines = text.split("\n")
  const first = text.startsWith("Command: ") ? lines.findIndex((line) => line.startsWith("Directory: ")) + 1 : 0
  let last = lines.length
  while (last > first && (label.test(lines[last - 1] ?? "") || lines[last - 1]?.trim() === "")) last -= 1
  return lines
    .slice(first, last)
    .filter((line) => !printedNothing.test(line))
    .join("\n")
}

/** A simple command of a shell line. */
interface SimpleCommand {
  readonly words: Array<string>
  /** The files that its output is redirected to. */
  readonly targets: Array<string>
  /** Number of enclosing subshells. */
  readonly depth: number
}

const heredoc = /(?<!<)<<(-?)[ \t]*\\?["']?([A-Za-z_][\w-]*)/g

/** Returns the text without the bodies of its here-documents. */
const withoutBodies = (text: string): string => {
  const awaited: Array<{ readonly end: string; readonly isIndented: boolean }> = []
  const isKept = (line: string): boolean => {
    const [body] = awaited
    if (body === undefined) {
      for (const [, dash, end = ""] of line.matchAll(heredoc)) awaited.push({ end, isIndented: dash === "-" })
      return true
    }
    if ((body.isIndented ? line.replace(/^\t+/, "") : line) === body.end) awaited.shift()
    return false
  }
  return text.includes("<<") ? text.split("\n").filter(isKept).join("\n") : text
}

/** Matches the tokens of a shell line. An unclosed quote reaches to the end. */
const shellToken = new RegExp(
  [
    // The pieces of a word: bare, double-quoted, single-quoted, an escaped character. A number before a redirect belongs to
    // the redirect, and a comment is not a word.
    /((?!\d+[<>]|#)[^\s"'\\;&|<>()]+)/,
    /"((?:[^"\\]|\\[\s\S])*)(?:"|$)/,
    /'([^']*)(?:'|$)/,
    /\\([^\n])/,
    /(&&|\|[|&]?|[;\n()]|&(?!>))/,
    // `2>&1` names no file: it matches here, outside the groups.
    /\d*[<>]&[\d-]+/,
    /((?:\d+|&)?>[>|&]?)/,
    /(\d*<(?:<<|<-?|[>&])?)/,
    /(?:[ \t\r]|\\\n)+|#[^\n]*/
  ]
    .map((form) => form.source)
    .join("|"),
  "g"
)

/** Only this many characters of a longer command are read. */
const maxCommandChars = 20_000

/** Returns the simple commands of a shell line, in order, without the contents of here-documents. */
const simpleCommands = (line: string): Array<SimpleCommand> => {
  let command: SimpleCommand = { words: [], targets: [], depth: 0 }
  const commands = [command]
  let word: string | undefined
  let role: "word" | "output" | "input" = "word"
  const endWord = (): void => {
    if (word === undefined) return
    if (role === "word") command.words.push(word)
    else if (role === "output") command.targets.push(word)
    word = undefined
    role = "word"
  }
  for (const match of withoutBodies(line).slice(0, maxCommandChars).matchAll(shellToken)) {
    const [, bare, double, single, escaped, separator, output, input] = match
    const piece = bare ?? single ?? escaped ?? double?.replace(/\\(["\\$`\n])/g, "$1")
    if (piece !== undefined) {
      word = `${word ?? ""}${piece}`
      continue
    }
    endWord()
    if (output !== undefined) role = "output"
    else if (input !== undefined) role = "input"
    else if (separator !== undefined) {
      role = "word"
      const deeper = separator === "(" ? 1 : separator === ")" ? -1 : 0
      command = { words: [], targets: [], depth: Math.max(0, command.depth + deeper) }
      commands.push(command)
    }
  }
  endWord()
  return commands
}

const isPlainPath = (path: string): boolean => /[\w]/.test(path) && !/[*?$`{}]/.test(path) && !path.startsWith("/dev/")

/** Whether a word stands before the name of a program. */
const isPrefix = (word: string): boolean => word === "git" || word === "sudo" || /^[A-Za-z_]\w*=/.test(word)

const removed = (path: string): Action => ({ _tag: "Delete", path })
const written = (path: string, created?: boolean): Action => ({ _tag: "Write", path, created })

/**
 * Returns source and target of each operand of `mv` and `cp`. The target is a folder when there are several sources or its
 * name says so.
 */
const transfers = (operands: ReadonlyArray<string>): ReadonlyArray<readonly [from: string, to: string]> => {
  const to = operands.at(-1)
  const sources = operands.slice(0, -1)
  if (to === undefined) return []
  const isFolder = sources.length > 1 || /(?:^|\/)\.{0,2}$/.test(to)
  return sources.map((from) => {
    const name = from.replace(/\/+$/, "").replace(/^.*\//, "")
    return [from, isFolder ? `${to.replace(/\/+$/, "")}/${name}` : to]
  })
}

/** Whether an option of `mv` or `cp` names the target folder, which then comes first. Such commands are not read. */
const namesTarget = (options: ReadonlyArray<string>): boolean =>
  options.some((option) => /^(?:-[a-zA-Z]*t|--target-directory)/.test(option))

/** The effects of each program on files when it succeeds. */
const programs = new Map<
  string,
  (operands: ReadonlyArray<string>, options: ReadonlyArray<string>) => ReadonlyArray<Action>
>([
  ["rm", (operands, options) => (options.includes("--cached") ? [] : operands.map(removed))],
  ["unlink", (operands) => operands.map(removed)],
  [
    "mv",
    (operands, options) =>
      namesTarget(options) ? [] : transfers(operands).flatMap(([from, to]) => [removed(from), written(to, true)])
  ],
  ["cp", (operands, options) => (namesTarget(options) ? [] : transfers(operands).map(([, to]) => written(to)))],
  [
    "touch",
    // `-d`, `-r` and `-t` take an operand each.
    (operands, options) =>
      operands.slice(options.filter((option) => /^-[a-zA-Z]*[drt]$/.test(option)).length).map((path) => written(path))
  ],
  ["tee", (operands) => operands.map((path) => written(path))],
  [
    "sed",
    (operands, options) => {
      if (!options.some((option) => /^(?:-[nErsuz]*i|--in-place)/.test(option))) return []
      // `-e` and `-f` take an operand each; without them the first operand is the script.
      const scripts = options.filter((option) => /^(?:-\w*[ef]|--expression|--file)$/.test(option)).length
      return operands.slice(Math.max(1, scripts)).map((path): Action => ({ _tag: "Edit", path }))
    }
  ]
])

/** Returns the effects of one command on files, with the paths as the command names them. */
const commandEffects = ({ targets, words }: SimpleCommand): ReadonlyArray<Action> => {
  const first = words.findIndex((word) => !isPrefix(word))
  const effects = first < 0 ? undefined : programs.get(words[first] ?? "")
  const redirected = targets.map((path) => written(path))
  if (effects === undefined) return redirected
  const rest = words.slice(first + 1)
  const dashes = rest.indexOf("--")
  const [open, closed] = dashes < 0 ? [rest, []] : [rest.slice(0, dashes), rest.slice(dashes + 1)]
  const operands = [...open.filter((word) => !word.startsWith("-")), ...closed].filter((word) => word !== "")
  return [
    ...redirected,
    ...effects(
      operands,
      open.filter((word) => word.startsWith("-"))
    )
  ]
}

/** Returns `path`, relative to `folder`, as seen from the shell's first folder; undefined when `folder` is unknown. */
const pathFrom = (folder: string | undefined, path: string): string | undefined => {
  if (folder === "" || /^[/~]/.test(path)) return path
  if (folder === undefined) return undefined
  const segments: Array<string> = []
  for (const segment of `${folder}/${path}`.split("/")) {
    if (segment === ".." && /[^.]/.test(segments.at(-1) ?? "")) segments.pop()
    else if (segment !== "." && (segment !== "" || segments.length === 0)) segments.push(segment)
  }
  return segments.join("/")
}

/** Returns the folder after `cd` from `folder`. */
const folderAfter = (folder: string | undefined, [target]: ReadonlyArray<string>): string | undefined =>
  target === undefined || target.startsWith("-") || /[*?$`{}]/.test(target) ? undefined : pathFrom(folder, target)

/**
 * Returns the effects of a successful shell command on files, as far as its text shows them. Paths are relative to the
 * shell's first folder.
 */
export const shellFileActions = (command: string): Array<Action> => {
  const actions: Array<Action> = []
  /** The folder of each open subshell, outermost first. */
  const folders: Array<string | undefined> = [""]
  for (const simple of simpleCommands(command)) {
    folders.length = Math.min(folders.length, simple.depth + 1)
    while (folders.length <= simple.depth) folders.push(folders.at(-1))
    const folder = folders[simple.depth]
    if (simple.words[0] === "cd") folders[simple.depth] = folderAfter(folder, simple.words.slice(1))
    for (const action of commandEffects(simple)) {
      if (!("path" in action) || !isPlainPath(action.path)) continue
      const path = pathFrom(folder, action.path)
      if (path !== undefined) actions.push({ ...action, path })
    }
  }
  return actions
}

const patchedFile = /^\*\*\* (Add|Update|Delete) File: (.+)$(?:\n\*\*\* Move to: (.+)$)?/gm

/** Returns the actions of a patch in Codex's form. A moved file counts as deleted and created. */
const patchActions = (patch: string): Array<Action> =>
  [...patch.matchAll(patchedFile)].flatMap(([, kind, file = "", moved]): Array<Action> => {
    const path = file.trim()
    if (kind === "Delete") return [removed(path)]
    if (kind === "Add") return [written(path, true)]
    return moved === undefined ? [{ _tag: "Edit", path }] : [removed(path), written(moved.trim(), true)]
  })

const todosOf = (args: unknown): ReadonlyArray<Todo> => {
  const list = Predicate.isObject(args) ? (args.todos ?? args.plan ?? args.items) : undefined
  if (!Array.isArray(list)) return []
  return list.filter(Predicate.isObject).flatMap((todo) => {
    const text = stringAt(todo, ["content", "description", "step", "text", "title"])
    return text === undefined ? [] : [{ text, status: stringAt(todo, ["status", "state"]) ?? "pending" }]
  })
}

/**
 * Whether the tool reports that it created the file: decided by the first verb of the first line that is not part of a path.
 */
const createdBy = (path: string, answer: Part | undefined): boolean | undefined => {
  const [line = ""] = answerText(answer).slice(0, 2_000).split("\n", 1)
  const withoutPaths = line.replaceAll(path, "").replace(/\S*[/\\]\S*/g, "")
  const verb = /\b(created|updated|overwrote|overwritten|modified)\b/i.exec(withoutPaths)?.[1]
  return verb === undefined ? undefined : verb.toLowerCase() === "created"
}

/** An edit that replaces nothing may have created the file. */
const editedOrCreated = (path: string, answer: Part | undefined): Action =>
  createdBy(path, answer) === true ? written(path, true) : { _tag: "Edit", path }

const brief = (value: unknown): string => {
  const text = Predicate.isObject(value)
    ? Object.entries(value)
        .map(([key, field]) => `${key}=${typeof field === "string" ? field : JSON.stringify(field)}`)
        .join(", ")
    : JSON.stringify(value ?? "")
  const line = text.replace(/\s+/g, " ")
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

/**
 * Returns the actions of a call, given its response (undefined when there is none). A failed call did nothing to files; a
 * shell command is reported whatever its result.
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
  if (writers.has(name)) return done ? paths.map((path) => written(path, createdBy(path, answer))) : []
  if (editors.has(name)) return done ? paths.map((path) => editedOrCreated(path, answer)) : []
  if (name === "delete_file" || name === "delete") return done ? paths.map(removed) : []
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
