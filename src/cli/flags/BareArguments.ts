/**
 * Accepts the flags of `chat` and `ask` without a command, in any order, and a question as the only argument. Also `palimpsest help COMMAND`,
 * as git and npm do.
 */

const printFlags = new Set(["-p", "--print", "--prompt"])
const resumeFlags = new Set(["-r", "--resume"])
/** Flags of other agents for the form of an answer. */
export const formatFlags: ReadonlySet<string> = new Set(["-o", "--output-format"])
/** Flags that only `ask` has. */
const askFlags = new Set(["--json", "--stream-json", ...formatFlags])
/** Flags that only `chat` has: an answer is always plain. */
const chatFlags = new Set(["--plain"])
/** Flags of the program that print something and end. */
const printing = new Set(["--help", "-h", "--version", "-v", "--completions"])

/** The flags of `chat`, `ask` and the program that take a value. `BareArguments.test.ts` compares them with the commands. */
export const valuedFlags: ReadonlySet<string> = new Set([
  ...formatFlags,
  "-m",
  "--model",
  "--session",
  "--threshold",
  "--strategy",
  "--compression-model",
  "--approve",
  "--add-dir",
  "--log-level",
  "--completions"
])

const formats: Readonly<Record<string, ReadonlyArray<string>>> = {
  text: [],
  json: ["--json"],
  "stream-json": ["--stream-json"]
}

/** An argument with what belongs to it. */
interface Part {
  /** The flag without its value; undefined for a word. */
  readonly flag: string | undefined
  readonly words: ReadonlyArray<string>
  /** The value of the flag, or the word. */
  readonly value: string | undefined
}

const partsOf = (args: ReadonlyArray<string>): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  const end = args.includes("--") ? args.indexOf("--") : args.length
  for (let at = 0; at < end; at += 1) {
    const argument = args[at] ?? ""
    const next = at + 1 < end ? args[at + 1] : undefined
    const [, name = argument, joined] = /^(-[^=]*)=(.*)$/s.exec(argument) ?? []
    if (!argument.startsWith("-") || argument === "-") {
      parts.push({ flag: undefined, words: [argument], value: argument })
    } else if (joined !== undefined) {
      parts.push({ flag: name, words: [argument], value: joined })
    } else if (next !== undefined && (valuedFlags.has(name) || (resumeFlags.has(name) && !next.startsWith("-")))) {
      // A flag whose value may be missing takes one only with an equals sign.
      parts.push({ flag: name, words: resumeFlags.has(name) ? [`${name}=${next}`] : [argument, next], value: next })
      at += 1
    } else parts.push({ flag: name, words: [argument], value: undefined })
  }
  return parts
}

const wordsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<string> => parts.flatMap(({ words }) => words)

/** `--output-format json` becomes `--json`, and `-p` goes. */
const askWords = (parts: ReadonlyArray<Part>): ReadonlyArray<string> =>
  parts.flatMap(({ flag = "", value, words }) => {
    if (printFlags.has(flag)) return value === undefined ? [] : [value]
    if (chatFlags.has(flag)) return []
    return (formatFlags.has(flag) ? formats[value ?? ""] : undefined) ?? words
  })

/**
 * Adds the command to arguments that begin with none: `ask` where `-p`, a flag of `ask` or a question says so, else `chat`. A question is a
 * single argument with white space: a word alone may be a command that was misspelt. `isCommand` knows the names of commands.
 */
export const withCommand = (
  args: ReadonlyArray<string>,
  isCommand: (name: string) => boolean
): ReadonlyArray<string> => {
  const [first] = args
  if (first === undefined) return args
  if (first === "help")
    return args[1] === undefined || isCommand(args[1]) ? [...args.slice(1), "--help"] : args.slice(1)
  const rest = args.includes("--") ? args.slice(args.indexOf("--")) : []
  if (isCommand(first)) {
    const parts = partsOf(args.slice(1))
    if (first === "ask") return ["ask", ...askWords(parts), ...rest]
    return first === "chat" ? ["chat", ...wordsOf(parts), ...rest] : args
  }
  const parts = partsOf(args)
  const has = (flags: ReadonlySet<string>) => parts.some(({ flag }) => flag !== undefined && flags.has(flag))
  if (has(printFlags)) return ["ask", ...askWords(parts), ...rest]
  const words = parts.filter(({ flag }) => flag === undefined)
  const [word] = words
  // Such a word may be the value of a flag that does not exist: `chat` says so.
  if (
    word !== undefined &&
    first.startsWith("-") &&
    !isCommand(word.value ?? "") &&
    !has(askFlags) &&
    !/\s/.test(word.value ?? "")
  ) {
    return ["chat", ...wordsOf(parts), ...rest]
  }
  if (word?.value !== undefined && (words.length > 1 || !/\s/.test(word.value.trim()))) {
    return [word.value, ...wordsOf(parts.filter((part) => part !== word)), ...rest]
  }
  if (word !== undefined || rest.length > 0 || has(askFlags)) return ["ask", ...askWords(parts), ...rest]
  const isProgram = parts.every(({ flag = "" }) => printing.has(flag) || flag === "--log-level")
  return isProgram && has(printing) ? args : ["chat", ...wordsOf(parts)]
}
