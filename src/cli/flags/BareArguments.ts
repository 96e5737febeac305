/**
 * Accepts flags without a command, as other agents' programs do (`palimpsest -p "…"` is `ask`, `palimpsest -c` is `chat`), and
 * `palimpsest help COMMAND`, as git and npm do.
 */

const printFlags = new Set(["-p", "--print", "--prompt"])
const openingFlags = new Set([...printFlags, "-r", "--resume", "-c", "--continue", "-m", "--model"])
const formatFlags = new Set(["-o", "--output-format"])

const formats: Readonly<Record<string, ReadonlyArray<string>>> = {
  text: [],
  json: ["--json"],
  "stream-json": ["--stream-json"]
}

const resumeFlags = new Set(["-r", "--resume"])

const nameOf = (argument: string): string => /^(-[^=]*)=/.exec(argument)?.[1] ?? argument

/**
 * Adds the command to arguments that begin with a flag of `ask` or `chat`: `-p "…"` (`--print`, `--prompt`) is `ask "…"`, and
 * `-c`, `-r`, `-m` without it are `chat` with that flag. `--output-format json` beside `-p` becomes `--json`. `help` becomes
 * `--help`. Other arguments are returned unchanged.
 */
export const withCommand = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (args[0] === "help") return [...args.slice(1), "--help"]
  if (args[0] === undefined || !openingFlags.has(nameOf(args[0]))) return args
  if (!args.some((argument) => printFlags.has(nameOf(argument)))) return ["chat", ...args]
  const rest: Array<string> = []
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? ""
    const name = nameOf(argument)
    const value = name === argument ? undefined : argument.slice(name.length + 1)
    if (printFlags.has(name)) {
      if (value !== undefined) rest.push(value)
      continue
    }
    const format = formatFlags.has(name) ? formats[value ?? args[at + 1] ?? ""] : undefined
    if (format === undefined) rest.push(argument)
    else {
      rest.push(...format)
      if (value === undefined) at += 1
    }
  }
  return ["ask", ...rest]
}

/** Attaches the session that follows `--resume`: a flag whose value may be missing takes one only with an equals sign. */
export const withResume = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [command] = args
  if (command !== "chat" && command !== "ask") return args
  const words: Array<string> = []
  const end = args.includes("--") ? args.indexOf("--") : args.length
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? ""
    const value = args[at + 1]
    if (at < end && resumeFlags.has(argument) && value !== undefined && !value.startsWith("-")) {
      words.push(`${argument}=${value}`)
      at += 1
    } else words.push(argument)
  }
  return words
}
