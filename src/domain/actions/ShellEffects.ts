/** What a shell command did to files, as far as its text shows: in shells of Unix, in PowerShell and in `cmd`. */

import { type Action, removed, written } from "./Action.ts"
import { isDryRun, taskWords } from "./ProgramTask.ts"
import { type SimpleCommand, simpleCommands } from "./ShellLine.ts"

const isPlainPath = (path: string): boolean => /[\w]/.test(path) && !/[*?$`{}]/.test(path) && !path.startsWith("/dev/")

/** Whether a word stands before the name of a program. */
const isPrefix = (word: string): boolean => word === "sudo" || /^[A-Za-z_]\w*=/.test(word)

/**
 * Returns source and target of each operand of `mv` and `cp`. The target is a folder when there are several sources or its
 * name says so.
 */
const transfers = (operands: ReadonlyArray<string>): ReadonlyArray<readonly [from: string, to: string]> => {
  const to = operands.at(-1)
  const sources = operands.slice(0, -1)
  if (to === undefined) return []
  const isFolder = sources.length > 1 || /(?:^|[\\/])\.{0,2}$/.test(to)
  return sources.map((from) => {
    const name = from.replace(/[\\/]+$/, "").replace(/^.*[\\/]/, "")
    return [from, isFolder ? `${to.replace(/[\\/]+$/, "")}/${name}` : to]
  })
}

/** Whether an option of `mv` or `cp` names the target folder, which then comes first. Such commands are not read. */
const namesTarget = (options: ReadonlyArray<string>): boolean =>
  options.some((option) => /^(?:-[a-zA-Z]*t|--target-directory)/.test(option))

const restored = (path: string): Action => ({ _tag: "Restore", path })
/** A name such as `v1.2` is that of a tag. */
const isFile = (operand = ""): boolean => operand === "." || /\w\.[a-z]\w*$/i.test(operand)
/** What is staged, a part, or the state of another commit. */
const restoresOther = /^(?:-\w*[Ssp]|--(?:staged|source|patch)\b)/

/** The effects of a program on files when it succeeds. `words`: operands and options in their order. */
type Effects = (
  operands: ReadonlyArray<string>,
  options: ReadonlyArray<string>,
  words: ReadonlyArray<string>
) => ReadonlyArray<Action>

/** Those of git's own tasks: `git mv` and `git rm` do as the programs do. */
const gitTasks = new Map<string, Effects>([
  ["restore", (operands, options) => (options.some((each) => restoresOther.test(each)) ? [] : operands.map(restored))],
  // A first operand without an extension is a branch, whose files these are.
  [
    "checkout",
    (operands, options) => {
      const files = operands.filter((each) => each !== "HEAD")
      return isFile(files[0]) && options.length === 0 ? files.map(restored) : []
    }
  ],
  // What `git stash` puts away is brought back: no more is known of it.
  ["reset", (_, options) => (options.includes("--hard") ? [restored(".")] : [])],
  // Without `-d` it leaves folders alone; with `-e` or `-X`, more than its text shows.
  [
    "clean",
    (operands, options) => {
      const flags = options.map((each) => (each === "--force" ? "-f" : each)).join("")
      const isRead = /f/.test(flags) && !/[eX]/.test(flags)
      const places = operands.length === 0 ? ["."] : operands
      return isRead && (flags.includes("d") || places.every((each) => each !== "." && isFile(each)))
        ? places.map((path): Action => ({ _tag: "Restore", path, ofNew: true }))
        : []
    }
  ]
])

/**
 * Edits in place by a script (`perl -pi -e`): of the options before the first operand, one has `i` behind letters without a value,
 * and each `-e` takes an operand. A script in a file has options and operands of its own.
 */
const editsInPlace: Effects = (_operands, _options, words) => {
  let at = 0
  let isInPlace = false
  let hasScript = false
  for (let word = words[0]; word?.startsWith("-") === true && word !== "--"; word = words[at]) {
    const isScript = /^-[0-7lnpaws]*[eE]/.test(word)
    isInPlace ||= /^-[0-7lnpaws]*i/.test(word)
    hasScript ||= isScript
    at += isScript && /[eE]$/.test(word) ? 2 : 1
  }
  return isInPlace && hasScript
    ? words.slice(at).flatMap((path): ReadonlyArray<Action> => (path.startsWith("-") ? [] : [{ _tag: "Edit", path }]))
    : []
}

const programs = new Map<string, Effects>([
  ["perl", editsInPlace],
  ["ruby", editsInPlace],
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
    "rename",
    // The new name is in the folder of the file.
    ([from, to]) =>
      from === undefined || to === undefined
        ? []
        : [removed(from), written(/[\\/]/.test(to) ? to : from.replace(/[^\\/]*$/, to), true)]
  ],
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

/** The programs of PowerShell and `cmd` that change files, by the program of Unix that does the same. */
const windowsPrograms: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "rm remove-item ri del erase rd rmdir",
    "mv move-item mi move",
    "rename ren rename-item rni",
    "cp copy-item cpi copy xcopy",
    "tee set-content sc add-content ac clear-content clc out-file tee-object new-item ni",
    "cat get-content gc type"
  ].flatMap((line) => {
    const [same = "", ...names] = line.split(" ")
    return names.map((name) => [name, same])
  })
)
/** Parameters of PowerShell that name a file, the target of a copy, and those that take no value. The value of any other one names no file. */
const pathParameter = /^-(?:path|literalpath|filepath)$/i
const targetParameter = /^-(?:destination|newname)$/i
const switchParameter = /^-(?:force|recurse|confirm|passthru|append|nonewline|raw|verbose|noclobber|wait)(?::.*)?$/i
/** What `New-Item` makes that is no file. */
const notAFile = /^(?:directory|junction|symboliclink|hardlink)$/i

/** Returns the operands of a command of PowerShell or `cmd`, the target last. */
const windowsOperands = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const operands: Array<string> = []
  const targets: Array<string> = []
  let name: string | undefined
  for (const [index, word] of words.entries()) {
    const before = words[index - 1] ?? ""
    if (/^(?:-[A-Za-z]|\/[A-Za-z](?::\S*)?$)/.test(word)) continue
    if (/^-(?:item)?type$/i.test(before) && notAFile.test(word)) return []
    if (targetParameter.test(before)) targets.push(word)
    else if (/^-name$/i.test(before)) name = word
    else if (!before.startsWith("-") || pathParameter.test(before) || switchParameter.test(before)) operands.push(word)
  }
  return name === undefined ? [...operands, ...targets] : [`${operands[0] ?? "."}/${name}`]
}

/** `sc` is PowerShell's `Set-Content` with these parameters only: elsewhere it controls services. */
const setContentParameter = /^-(?:path|literalpath|value)$/i

/** A static method of .NET that changes a file, in PowerShell. */
const dotnetMethod = /\[(?:System\.)?IO\.File\]::(Write|Append|Create|Delete)\w*$/i

/** Returns the effect of a call of .NET on the file that its first argument names. In shells of Unix such a call is quoted text. */
const dotnetEffects = (commands: ReadonlyArray<SimpleCommand>, index: number): ReadonlyArray<Action> => {
  const call = commands[index]
  const method = dotnetMethod.exec(call?.bare.at(-1) ?? "")?.[1]?.toLowerCase()
  if (call === undefined || method === undefined) return []
  // The arguments may begin on another line.
  const inParentheses = commands.find(({ words }, at) => at > index && words.length > 0)
  const [bare = ""] = inParentheses?.bare ?? []
  const [word = ""] = inParentheses?.words ?? []
  if (inParentheses?.depth !== call.depth + 1 || !bare.startsWith("''")) return []
  const path = bare === "''" ? word : word.replace(/,.*$/s, "")
  if (!isPlainPath(path)) return []
  return [method === "delete" ? removed(path) : written(path)]
}

const read = (path: string): Action => ({ _tag: "Read", path })

/** Programs that print a file, and how many operands come before its name. */
const readers: Readonly<Record<string, (options: ReadonlyArray<string>) => number>> = {
  cat: () => 0,
  nl: (options) => options.filter((option) => /^-[bvwis]$/.test(option)).length,
  bat: () => 0,
  less: () => 0,
  head: (options) => options.filter((option) => /^-[nc]$/.test(option)).length,
  tail: (options) => options.filter((option) => /^-[nc]$/.test(option)).length,
  sed: (options) => (options.some((option) => /^-[a-zA-Z]*n/.test(option)) ? 1 : Number.POSITIVE_INFINITY)
}

/** A command from its program on; one of git from its task on, with the folder in which git is told to work. */
interface CalledProgram {
  readonly words: ReadonlyArray<string>
  readonly git?: { readonly folder: string | undefined }
}

const calledProgram = ({ words }: SimpleCommand): CalledProgram => {
  const own = words.slice(words.findIndex((word) => !isPrefix(word)))
  if (!/^git(?:\.exe)?$/i.test(own[0] ?? "")) return { words: own }
  const task = taskWords("git", own.slice(1))
  const at = own.slice(0, -task.length || own.length).indexOf("-C")
  return { words: task, git: { folder: at < 0 ? undefined : own[at + 1] } }
}

/** Returns the effects of one command on files, with the paths as the command names them. `isShown`: it prints to the agent. */
const commandEffects = ({ git, words }: CalledProgram, isShown: boolean): ReadonlyArray<Action> => {
  const [word = "", ...rest] = words
  if (git === undefined ? isDryRun(word, rest) : isDryRun("git", words)) return []
  const name = word.toLowerCase().replace(/\.exe$/, "")
  const unixName =
    name === "sc" && !words.some((each) => setContentParameter.test(each)) ? undefined : windowsPrograms[name]
  const effects = (git === undefined ? undefined : gitTasks.get(word)) ?? programs.get(unixName ?? word)
  const reader = isShown ? readers[unixName ?? word] : undefined
  if (effects === undefined && reader === undefined) return []
  const dashes = rest.indexOf("--")
  const [open, closed] = dashes < 0 ? [rest, []] : [rest.slice(0, dashes), rest.slice(dashes + 1)]
  const options = unixName === undefined ? open.filter((each) => each.startsWith("-")) : []
  const own = unixName === undefined ? open.filter((each) => !each.startsWith("-")) : windowsOperands(open)
  const operands = [...own, ...closed].filter((each) => each !== "")
  // What is piped into PowerShell's writers is no operand of theirs, but their value may be.
  const files = unixName === "tee" ? operands.slice(0, 1) : operands
  return [
    ...(effects?.(files, options, rest) ?? []),
    ...(reader === undefined ? [] : files.slice(reader(options)).map(read))
  ]
}

/** Programs that only choose which lines of their input are shown. */
const viewers = new Set(["sed", "head", "tail", "cat", "nl", "less", "more"])

/** Whether the agent sees what the command at a place prints: no program but viewers takes it. */
const isShownAt = (commands: ReadonlyArray<SimpleCommand>, index: number): boolean => {
  for (let at = index; commands[at]?.after === "|"; at += 1) {
    if (!viewers.has(commands[at + 1]?.words[0] ?? "")) return false
  }
  return true
}

/** Returns `path`, relative to `folder`, as seen from the shell's first folder; undefined when `folder` is unknown. */
const pathFrom = (folder: string | undefined, path: string): string | undefined => {
  if (folder === "" || /^(?:[/~\\]|[A-Za-z]:)/.test(path)) return path.replace(/^(?:\.[\\/]+)+(?=.)/, "")
  if (folder === undefined) return undefined
  const segments: Array<string> = []
  for (const segment of `${folder}/${path}`.split(/[\\/]/)) {
    if (segment === ".." && /[^.]/.test(segments.at(-1) ?? "")) segments.pop()
    else if (segment !== "." && (segment !== "" || segments.length === 0)) segments.push(segment)
  }
  return segments.join("/")
}

/** Returns the folder after `cd` from `folder`. */
const folderAfter = (folder: string | undefined, [target]: ReadonlyArray<string>): string | undefined =>
  target === undefined || target.startsWith("-") || /[*?$`{}]/.test(target) ? undefined : pathFrom(folder, target)

/**
 * The shells that may be given a command: the option before it, all options, and those that take a value. `takesRest`: all words
 * that follow are the command, not the next one alone.
 */
const innerShells: ReadonlyArray<{
  readonly name: RegExp
  readonly command: RegExp
  readonly option: RegExp
  readonly valued?: RegExp
  readonly takesRest: boolean
}> = [
  {
    name: /^(?:.*[\\/])?(?:ba|z|da)?sh(?:\.exe)?$/i,
    command: /^-[a-z]{0,3}c$/,
    option: /^[-+]./,
    valued: /^(?:[-+][a-zA-Z]*[oO]|--rcfile|--init-file)$/,
    takesRest: false
  },
  {
    name: /^(?:.*[\\/])?(?:powershell|pwsh)(?:\.exe)?$/i,
    command: /^[-/]c(?:ommand)?$/i,
    option: /^[-/]./,
    valued: /^[-/](?:ep|ex\w*|w\w*|v\w*|(?:input|output)format|\w+name|\w{2,}file)$/i,
    takesRest: true
  },
  { name: /^(?:.*[\\/])?cmd(?:\.exe)?$/i, command: /^\/c$/i, option: /^\/./, takesRest: true }
]

/** Returns the command that a shell is given: `bash -lc "rm a"`, `powershell -Command "Remove-Item a"`, `cmd /c del a`. */
const innerCommand = ({ words }: SimpleCommand): string | undefined => {
  const first = words.findIndex((word) => !isPrefix(word))
  const shell = innerShells.find(({ name }) => name.test(words[first] ?? ""))
  if (shell === undefined) return undefined
  const { command, option, takesRest, valued } = shell
  const rest = words.slice(first + 1)
  // The first operand is a script, and what follows that is the script's.
  const at = rest.findIndex(
    (word, index) => command.test(word) || !(option.test(word) || valued?.test(rest[index - 1] ?? "") === true)
  )
  if (!command.test(rest[at] ?? "")) return undefined
  return takesRest ? rest.slice(at + 1).join(" ") : rest[at + 1]
}

/** Returns the folder of each command, as seen from the shell's first one; undefined where it is unknown. A subshell goes back to its own. */
const foldersOf = (commands: ReadonlyArray<SimpleCommand>): ReadonlyArray<string | undefined> => {
  const folders: Array<string | undefined> = [""]
  return commands.map(({ depth, words: [word = "", ...operands] }) => {
    folders.length = Math.min(folders.length, depth + 1)
    while (folders.length <= depth) folders.push(folders.at(-1))
    const folder = folders[depth]
    if (/^(?:cd|set-location|sl|pushd)$/i.test(word)) folders[depth] = folderAfter(folder, operands)
    return folder
  })
}

/** A task of git in a command line. */
export interface GitTask {
  /** The task, its operands and its options. */
  readonly words: ReadonlyArray<string>
  /** The folder in which git is told to work (`-C`), or the absolute one to which the shell went; undefined for any other. */
  readonly folder: string | undefined
}

/** Returns the tasks that git is given by a command line, in order, also within the command of an inner shell. */
export const gitTasksOf = (command: string): ReadonlyArray<GitTask> => {
  if (!command.includes("git")) return []
  const commands = simpleCommands(command)
  const folders = foldersOf(commands)
  return commands.flatMap((simple, index): ReadonlyArray<GitTask> => {
    const place = folders[index] ?? ""
    const folder = /^(?:\/|[A-Za-z]:)/.test(place) ? place : undefined
    const inner = innerCommand(simple)
    if (inner !== undefined) return gitTasksOf(inner).map((task) => ({ ...task, folder: task.folder ?? folder }))
    const { git, words } = calledProgram(simple)
    return git === undefined ? [] : [{ words, folder: git.folder ?? folder }]
  })
}

/** Returns actions with their paths as seen from the shell's first folder, none where a folder is unknown. */
const inFolder = (folder: string | undefined, effects: ReadonlyArray<Action>): ReadonlyArray<Action> =>
  effects.flatMap((action): ReadonlyArray<Action> => {
    if (!("path" in action) || !(isPlainPath(action.path) || (action._tag === "Restore" && action.path === ".")))
      return []
    const path = pathFrom(folder, action.path)
    return path === undefined ? [] : [{ ...action, path }]
  })

/**
 * Returns the effects of a successful shell command on files, as far as its text shows them. Paths are relative to the
 * shell's first folder. `withReads`: also the files that it printed.
 */
export const shellFileActions = (command: string, { withReads = false } = {}): Array<Action> => {
  const actions: Array<Action> = []
  const commands = simpleCommands(command)
  const folders = foldersOf(commands)
  for (const [index, simple] of commands.entries()) {
    const folder = folders[index]
    const inner = innerCommand(simple)
    const isShown = withReads && simple.targets.length === 0 && isShownAt(commands, index)
    const called = calledProgram(simple)
    const effects =
      inner === undefined ? commandEffects(called, isShown) : shellFileActions(inner, { withReads: isShown })
    actions.push(
      ...inFolder(
        folder,
        simple.targets.map((path) => written(path))
      )
    )
    const gitFolder = called.git?.folder
    actions.push(...inFolder(gitFolder === undefined ? folder : folderAfter(folder, [gitFolder]), effects))
    // `cd` in PowerShell is not the folder of .NET.
    actions.push(...dotnetEffects(commands, index))
  }
  return actions
}
