/** How the settings of another program start this one, and how such a command is recognised. */

import { shellLine } from "../text/ShellWord.ts"

/** The words that start this program: its name, or the absolute paths of Node and of the program's file. */
export type OwnCommand = readonly [string, ...ReadonlyArray<string>]

/** The name of the program, which a PATH leads to where it is installed. */
export const programName = "palimpsest"

/** The command where the PATH leads to this program. */
export const bareCommand: OwnCommand = [programName]

const programFile = /[\\/]palimpsest\.mjs$/

/** Returns whether words start this program: the copy that runs now, or another one. */
const startsOwn = (words: ReadonlyArray<string>, command: OwnCommand): boolean => {
  const [program, file = ""] = words
  if (words.length === command.length && words.every((word, at) => word === command[at])) return true
  return words.length === 1 ? program === programName : words.length === 2 && programFile.test(file)
}

/** Returns whether words start this program with exactly these arguments, as `install` writes them. */
export const isOwnCall = (words: ReadonlyArray<string>, args: ReadonlyArray<string>, command: OwnCommand): boolean => {
  const at = words.length - args.length
  return at > 0 && args.every((word, index) => words[at + index] === word) && startsOwn(words.slice(0, at), command)
}

const quotedWord = String.raw`(?:'(?:[^']|'\\'')*'|"[^"]*"|[^\s'"&|;<>$\x60]+)`
const ownHookLine = new RegExp(
  String.raw`^(?:palimpsest|${quotedWord} (?=.*[\\/]palimpsest\.mjs['"]? hook$)${quotedWord}) hook$`
)

/** Returns the shell line of a hook. `separator` is that of the system's paths. */
export const hookLine = (command: OwnCommand, separator: string): string => shellLine([...command, "hook"], separator)

/** Returns whether a shell line is a hook that `install` writes, with the copy of this program that runs now or another one. */
export const isOwnHookLine = (line: string, current: string): boolean => line === current || ownHookLine.test(line)
