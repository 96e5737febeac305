import { type Action, removed, written } from "./Action.ts"
import { type SimpleCommand, simpleCommands } from "./ShellLine.ts"

/** What a shell command did to files, as far as its text shows: in shells of Unix, in PowerShell and in `cmd`. */

const isPlainPath = (path: string): boolean => /[\w]/.test(path) && !/[*?$`{}]/.test(path) && !path.startsWith("/dev/")

/** Whether a word stands before the name of a program. */
const isPrefix = (word: string): boolean => word === "git" || word === "sudo" || /^[A-Za-z_]\w*=/.test(word)

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

/** A static method of .NET that changes a file, in PowerShell. */
const dotnetCall = /\[(?:System\.)?IO\.File\]::(Write|Append|Create|Delete)\w*\(\s*(["'])([^"'$]+)\2/gi

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

/** Returns the effects of one command on files, with the paths as the command names them. `isShown`: it prints to the agent. */
const commandEffects = ({ targets, words }: SimpleCommand, isShown: boolean): ReadonlyArray<Action> => {
  const first = words.findIndex((word) => !isPrefix(word))
  const word = words[first] ?? ""
  const unixName = windowsPrograms[word.toLowerCase().replace(/\.exe$/, "")]
  const effects = programs.get(unixName ?? word)
  const reader = isShown && targets.length === 0 ? readers[unixName ?? word] : undefined
  const redirected = targets.map((path) => written(path))
  if (effects === undefined && reader === undefined) return redirected
  const rest = words.slice(first + 1)
  const dashes = rest.indexOf("--")
  const [open, closed] = dashes < 0 ? [rest, []] : [rest.slice(0, dashes), rest.slice(dashes + 1)]
  const options = unixName === undefined ? open.filter((each) => each.startsWith("-")) : []
  const own = unixName === undefined ? open.filter((each) => !each.startsWith("-")) : windowsOperands(open)
  const operands = [...own, ...closed].filter((each) => each !== "")
  // What is piped into PowerShell's writers is no operand of theirs, but their value may be.
  const files = unixName === "tee" ? operands.slice(0, 1) : operands
  return [
    ...redirected,
    ...(effects?.(files, options) ?? []),
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

/** A shell that is given a command, and the option before that. */
const innerShell = /^(?:.*[\\/])?(?:(?:ba|z|da)?sh|powershell|pwsh|cmd)(?:\.exe)?$/i
const commandOption = /^(?:-[a-z]{0,3}c|-command|\/c)$/i

/** Returns the command that a shell is given: `bash -lc "rm a"`, `powershell -Command "Remove-Item a"`, `cmd /c del a`. */
const innerCommand = ({ words }: SimpleCommand): string | undefined => {
  const first = words.findIndex((word) => !isPrefix(word))
  const option = innerShell.test(words[first] ?? "") ? words.findIndex((word) => commandOption.test(word)) : -1
  return option < 0 ? undefined : words.slice(option + 1).join(" ")
}

/**
 * Returns the effects of a successful shell command on files, as far as its text shows them. Paths are relative to the
 * shell's first folder. `withReads`: also the files that it printed.
 */
export const shellFileActions = (command: string, { withReads = false } = {}): Array<Action> => {
  const actions: Array<Action> = []
  /** The folder of each open subshell, outermost first. */
  const folders: Array<string | undefined> = [""]
  const commands = simpleCommands(command)
  for (const [index, simple] of commands.entries()) {
    folders.length = Math.min(folders.length, simple.depth + 1)
    while (folders.length <= simple.depth) folders.push(folders.at(-1))
    const folder = folders[simple.depth]
    if (/^(?:cd|set-location|sl|pushd)$/i.test(simple.words[0] ?? ""))
      folders[simple.depth] = folderAfter(folder, simple.words.slice(1))
    const inner = innerCommand(simple)
    const effects =
      inner === undefined
        ? commandEffects(simple, withReads && isShownAt(commands, index))
        : shellFileActions(inner, { withReads })
    for (const action of effects) {
      if (!("path" in action) || !isPlainPath(action.path)) continue
      const path = pathFrom(folder, action.path)
      if (path !== undefined) actions.push({ ...action, path })
    }
  }
  for (const [, method = "", , path = ""] of command.matchAll(dotnetCall)) {
    actions.push(method.toLowerCase() === "delete" ? removed(path) : written(path))
  }
  return actions
}
