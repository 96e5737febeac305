/**
 * Analyzes what a shell command line does, as far as that can be determined without running it, and what a grant for it covers. The
 * command runs in bash, or in sh where there is no bash. The analysis gives up on everything that the two might read differently, and
 * on everything it does not understand completely. Such a line asks every time.
 *
 * One file: whether a command is covered by a grant is decided here alone, so that a review of it reads one file.
 */

import { fetchers, gitGlobals, runners, shellWords, type Usage, usages, type Word } from "./ShellPrograms.ts"

/** A node of a bash syntax tree. Positions are string offsets. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  /** Whether the parser inserted the node or could not read it. */
  readonly isFaulty: boolean
  readonly children: ReadonlyArray<SyntaxNode>
}

/** One command of a line that can be granted. */
interface GrantedCommand {
  /** `git status`, `npm run test`, `ls`; for `words` the command itself, quoted where necessary. */
  readonly name: string
  /** The folder of `-C`. */
  readonly folder?: string | undefined
  /** Whether its effect depends on the folder. */
  readonly isLocal?: boolean | undefined
  /** `words`: a grant covers only these exact words. */
  readonly effects: Usage["effects"] | "words"
}

/** A line whose commands can all be granted. */
export interface ShellCommand {
  /** The distinct commands, in order. */
  readonly commands: ReadonlyArray<GrantedCommand>
  /** The folder of a leading `cd`. */
  readonly folder?: string | undefined
  /** Files that redirections read. They have to be regular files of the workspace. */
  readonly reads: ReadonlyArray<string>
  /** Paths that the line creates. They have to lie in the workspace. */
  readonly makes: ReadonlyArray<string>
  /**
   * A word may lead to a special file, or to a folder of special files, when the command starts in a folder of at most this depth.
   * Absent: no word does.
   */
  readonly climbs?: number | undefined
}

/** Longer lines always ask: users do not read them, and parsing may take long. */
export const maxLineChars = 16_384

const maxNodes = 4_000
const maxDepth = 64

const knownNodes: ReadonlySet<string> = new Set(
  (
    "program list pipeline command command_name redirected_statement file_redirect file_descriptor word number concatenation " +
    'string string_content raw_string comment && || | ; < > >> >& "'
  ).split(" ")
)

/** A token of a line. */
interface Leaf {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** Returns the tokens of a tree in order; undefined when it contains syntax that is not analyzed. */
const leavesOf = (tree: SyntaxNode): ReadonlyArray<Leaf> | undefined => {
  const leaves: Array<Leaf> = []
  const left: Array<readonly [node: SyntaxNode, depth: number]> = [[tree, 0]]
  let nodes = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [node, depth] = next
    nodes += 1
    if (node.isFaulty || !knownNodes.has(node.type) || nodes > maxNodes || depth > maxDepth) return undefined
    if (node.type === "string") {
      if (
        node.children.some(
          ({ isFaulty, type }) => isFaulty || (type !== '"' && type !== "string_content" && type !== "$")
        )
      )
        return undefined
      leaves.push(node)
    } else if (node.children.length === 0) leaves.push(node)
    else for (const child of [...node.children].reverse()) left.push([child, depth + 1])
  }
  return leaves
}

/** Characters that are invisible, that a terminal may act on, or that only some shells treat as blanks. */
const invisible = /[^\P{C}\n\t]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|[\u2800\ufff0-\uffff]/u

/** An unquoted part of a word in which nothing is special to a shell, except patterns and `~`. */
const barePart = /^(?:[A-Za-z0-9_./:,@%+=~^*?[\]-]|\\[!-/:-@[-`{-~])+$/
/** Like `barePart`, with non-ASCII letters. */
const foreignPart = /^(?:[A-Za-z0-9_./:,@%+=~-]|[^\P{L}\p{ASCII}]|[^\P{N}\p{ASCII}]|\p{M})+$/u
/** In other encodings (GBK, Shift JIS) the sign after a letter can be part of it. */
const swallowed = /[^\n\t -~][@[-`{-~]/
/** Bytes that some systems treat as blanks. */
const blankBytes = /%(?:85|A0)/
const isForeign = (raw: string): boolean =>
  foreignPart.test(raw) && !swallowed.test(raw) && !blankBytes.test(encodeURIComponent(raw))
const singleQuoted = /^'[^']*'$/
/** A double-quoted part without expansions, with a backslash only where all shells agree on its meaning. */
const doubleQuoted = /^"(?:[^"\\$`]|\$(?=[" |)])|\\["\\$`]|\\[A-Za-z0-9. ()[\]{}|*+?/^<>-])*"$/

interface WordPart {
  readonly text: string
  readonly isBare: boolean
}

const wordPartOf = (raw: string): WordPart | undefined => {
  if (raw.startsWith("'")) return singleQuoted.test(raw) ? { text: raw.slice(1, -1), isBare: false } : undefined
  if (raw.startsWith('"')) {
    // In some locales a byte of such a letter swallows the backslash after it.
    if (!doubleQuoted.test(raw) || (raw.includes("\\") && /[^\n\t -~]/.test(raw))) return undefined
    return { text: raw.slice(1, -1).replace(/\\(["\\$`])/g, "$1"), isBare: false }
  }
  return raw === "!" || barePart.test(raw) || isForeign(raw) ? { text: raw, isBare: true } : undefined
}

/** Joins parts to a word; undefined when a shell may read it differently. */
const wordOf = (parts: ReadonlyArray<WordPart>): Word | undefined => {
  let text = ""
  let pattern: Word["pattern"]
  let patternAt: number | undefined
  let isHome = false
  for (const [index, part] of parts.entries()) {
    if (!part.isBare) {
      text += part.text
      continue
    }
    for (let at = 0; at < part.text.length; at += 1) {
      const char = part.text[at] ?? ""
      if (char === "\\") {
        at += 1
        text += part.text[at] ?? ""
      } else if (char === "~") {
        if (text === "" && index === 0) {
          // `~name` and `~+` are other folders.
          if (!/^~(?:\/|$)/.test(part.text) || (part.text === "~" && parts.length > 1)) return undefined
          isHome = true
        } else if (!/^\w[^=:]*$/.test(text)) return undefined
        text += char
      } else {
        if ((char === "*" || char === "?" || char === "[") && pattern === undefined) {
          pattern = /^[\w./]/.test(text) || isHome ? "prefixed" : "open"
          patternAt = text.length
        }
        text += char
      }
    }
  }
  return { text, pattern, patternAt, isHome }
}

/** A path segment that leads up, also directly after an option letter. */
const upward = /(?:^|[^.])\.\.$/
const specialName = /^(?:dev|proc|sys|inet[46]?)$/

/**
 * Returns whether a word has an absolute path, at any position, to a device, a connection or another process. A pattern may expand
 * to one.
 */
const isSpecial = ({ isHome = false, pattern, patternAt, text }: Word): boolean => {
  if (text === "/dev/null") return false
  if (/(?:^|[=:,])\/+(?:\.\/+)*(?:dev|proc|sys|inet[46]?)(?:\/|$)/.test(text)) return true
  if (text.startsWith("-") && /\/(?:dev|proc|sys|inet[46]?)(?:\/|$)/.test(text)) return true
  if (pattern !== undefined && /(?:^|[=:,]|^-.*)\/+(?:\.\/+)*[^/]*$/.test(text.slice(0, patternAt))) return true
  return (isHome || /(?:^|[=:,]|^-.*)\//.test(text)) && climbOf({ text, pattern }) > 0
}

/** Returns how many folders a word goes up before it may reach a special file; -1 when it reaches none. */
const climbOf = ({ pattern, text }: Pick<Word, "pattern" | "text">): number => {
  const parts = text.split(/[/=:,]/)
  const ups = parts.filter((part) => upward.test(part))
  const isAbove = ups.length > 0 && parts.every((part) => /^(?:|\.|-.*)$/.test(part) || upward.test(part))
  return isAbove || pattern !== undefined || parts.some((part) => specialName.test(part)) ? ups.length : -1
}

interface SimpleCommand {
  readonly words: ReadonlyArray<Word>
  readonly reads: ReadonlyArray<string>
  /** Whether another command writes its input. */
  readonly isPiped: boolean
  /** The operator after the command. */
  readonly operator: string
}

/**
 * Splits a line into commands using only its tokens, so that a wrongly built tree changes nothing. The methods return false where a
 * shell may read the line differently.
 */
class CommandSplitter {
  readonly commands: Array<SimpleCommand> = []
  private readonly line: string
  private words: Array<Word> = []
  private reads: Array<string> = []
  private parts: Array<WordPart> = []
  /** The operator of a redirection whose file is still missing. */
  private redirect: string | undefined
  /** The number before a redirection. */
  private descriptor: string | undefined
  private hasRedirect = false
  private previous = ""
  private at = 0

  constructor(line: string) {
    this.line = line
  }

  take({ end, start, type }: Leaf): boolean {
    if (start < this.at || end <= start || !this.gap(start)) return false
    this.at = end
    const raw = this.line.slice(start, end)
    switch (type) {
      case "&&":
      case "||":
      case "|":
      case ";":
        return raw === type && this.endCommand(type)
      case "<":
      case ">":
      case ">>":
      case ">&":
        return raw === type && this.beginRedirect(type, start)
      case "file_descriptor":
        return this.takeDescriptor(raw, start)
      case "comment":
        return this.comment(raw, start)
      case "word":
      case "number":
      case "string":
      case "raw_string":
        return this.wordPart(raw)
      default:
        return false
    }
  }

  end(): boolean {
    return !/[^ \t\n]/.test(this.line.slice(this.at)) && this.endCommand("") && this.commands.length > 0
  }

  private gap(start: number): boolean {
    // A line continuation: all shells drop both characters. Between blanks that changes nothing.
    const gap = this.line.slice(this.at, start).replace(/(?<=[ \t])\\\n|\\\n(?=[ \t])/g, "")
    if (gap === "") return true
    if (/[^ \t\n]/.test(gap) || this.descriptor !== undefined) return false
    if (this.redirect === ">&" && this.parts.length === 0) return false
    return this.endWord() && (!gap.includes("\n") || this.endCommand("\n"))
  }

  private wordPart(raw: string): boolean {
    const part = wordPartOf(raw)
    if (part === undefined || this.descriptor !== undefined) return false
    if (part.isBare && swallowed.test(this.line.slice(this.at - 1, this.at + 1))) return false
    this.parts.push(part)
    return true
  }

  private endWord(): boolean {
    const { parts, redirect } = this
    if (parts.length === 0) return true
    this.parts = []
    const word = wordOf(parts)
    if (word === undefined || isSpecial(word)) return false
    if (redirect !== undefined) return this.endRedirect(redirect, word, parts)
    this.words.push(word)
    return true
  }

  private takeDescriptor(raw: string, start: number): boolean {
    this.descriptor = raw
    return /^[012]$/.test(raw) && this.parts.length === 0 && /^$|[\s;&|]/.test(this.line.charAt(start - 1))
  }

  private beginRedirect(operator: string, start: number): boolean {
    const { descriptor } = this
    // Digits before it would name a file descriptor.
    if (descriptor === undefined && /(?:^|[\s;&|<>])\d+$/.test(this.line.slice(0, start))) return false
    if (!this.endWord() || this.redirect !== undefined) return false
    this.descriptor = undefined
    this.redirect = operator
    return operator !== "<" || descriptor === undefined || descriptor === "0"
  }

  private endRedirect(operator: string, word: Word, parts: ReadonlyArray<WordPart>): boolean {
    this.redirect = undefined
    this.hasRedirect = true
    if (operator === "<") {
      this.reads.push(word.text)
      return word.pattern === undefined && word.isHome !== true && word.text !== "" && word.text !== "/dev/null"
    }
    // Compared as written: bash reads quoted ones differently.
    if (parts.length > 1 || parts[0]?.isBare !== true) return false
    return operator === ">&" ? /^[12]$/.test(word.text) : word.text === "/dev/null"
  }

  private comment(raw: string, start: number): boolean {
    if (!/^#[^\n]*$/.test(raw) || !/^$|[\s;]/.test(this.line.charAt(start - 1))) return false
    return /^(?:\n|$)/.test(this.line.charAt(this.at)) && this.endWord()
  }

  private endCommand(operator: string): boolean {
    if (!this.endWord() || this.redirect !== undefined || this.descriptor !== undefined) return false
    const { hasRedirect, previous, reads, words } = this
    if (words.length === 0) {
      if (hasRedirect) return false
      // Where a command is missing, only line breaks are allowed, or the end of the line after a `;`.
      return operator === "\n" || (operator === "" && (previous === ";" || previous === "\n"))
    }
    this.commands.push({ words, reads, isPiped: previous === "|", operator })
    this.words = []
    this.reads = []
    this.hasRedirect = false
    this.previous = operator
    return true
  }
}

const commandsOf = (line: string, leaves: ReadonlyArray<Leaf>): ReadonlyArray<SimpleCommand> | undefined => {
  const splitter = new CommandSplitter(line)
  return leaves.every((leaf) => splitter.take(leaf)) && splitter.end() ? splitter.commands : undefined
}

const plainWord = /^[\w./:,@%+=-]+$/

/** Quotes words so that they can be typed again. */
const quotedWords = (words: ReadonlyArray<Word>): string =>
  words.map(({ text }) => (plainWord.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)).join(" ")

/** Returns whether a call has only harmless options and operands. */
const isCovered = (usage: Usage, words: ReadonlyArray<Word>): boolean => {
  const { hasLongShorts = false, joinsValues = false, judgesRest = false, options, refuses } = usage
  if (refuses !== undefined && words.some(({ text }) => refuses.test(text))) return false
  const operands: Array<Word> = []
  let isRest = false
  for (let at = 0; ; at += 1) {
    const word = words[at]
    if (word === undefined) break
    const { pattern, text } = word
    if (isRest || !text.startsWith("-") || text === "-") {
      // A file name may look like an option.
      if (pattern === "open" && options !== "any" && !isRest) return false
      operands.push(word)
      continue
    }
    // `--include=*.ts` stays that option, whatever files exist.
    if (pattern !== undefined && options !== "any" && !/^--[a-z][a-z-]*=/.test(text)) return false
    if (text === "--") {
      isRest = !judgesRest
      continue
    }
    if (options === "any" || /^-\d+$/.test(text)) continue
    // The word that an option may take next is a value, unless it looks like another option.
    const takesNext = (): boolean => {
      const next = words[at + 1]
      if (next === undefined) return true
      if (next.text.startsWith("-") && !/^-\d+$/.test(next.text)) return next.text === "-"
      if (next.pattern !== undefined) return false
      at += 1
      return true
    }
    if (text.startsWith("--") || hasLongShorts) {
      const equals = text.indexOf("=")
      const name = equals < 0 ? text : text.slice(0, equals)
      const kind = options.get(name)
      if (kind === undefined || (equals >= 0 && kind === "none")) return false
      if (equals < 0 && kind === "value" && !takesNext()) return false
      continue
    }
    for (let index = 1; index < text.length; index += 1) {
      const kind = options.get(`-${text[index]}`)
      if (kind === undefined) return false
      if (kind === "none") continue
      const isLast = index === text.length - 1
      if (kind === "value" && (isLast ? !takesNext() : !joinsValues)) return false
      break
    }
  }
  return usage.operands?.(operands) ?? true
}

/** Returns the paths that a call creates. */
const createdPlaces = (usage: Usage, words: ReadonlyArray<Word>): ReadonlyArray<string> =>
  usage.makesOperands === true ? words.flatMap(({ text }) => (/^-./.test(text) ? [] : [text])) : []

/**
 * Returns whether a path is visible and below the folder. A leading dot marks files that steer programs, and a leading dash may be
 * taken for an option.
 */
const isVisible = (place: string): boolean =>
  place !== "" && !place.startsWith("/") && !place.split("/").some((part) => /^[.-]/.test(part) && part !== ".")

const scriptName = /^[A-Za-z0-9][\w:.-]*$/

interface CommandUsage {
  readonly name: string
  readonly usage: Usage
  readonly rest: ReadonlyArray<Word>
  readonly folder?: string | undefined
}

const isLiteral = ({ isHome = false, pattern }: Word): boolean => pattern === undefined && !isHome

/** Looks a command up in the table by as many of its words as possible. */
const commandUsage = (words: ReadonlyArray<Word>): CommandUsage | undefined => {
  const [program, ...args] = words
  if (program === undefined) return undefined
  let from = 0
  let folder: string | undefined
  if (program.text === "git") {
    for (; from < args.length; from += 1) {
      const text = args[from]?.text ?? ""
      if (gitGlobals.has(text)) continue
      // Another folder, in the same way as a `cd`.
      const place = args[from + 1]
      if (text !== "-C" || folder !== undefined || place === undefined || !isLiteral(place)) break
      if (place.text === "" || place.text.startsWith("-")) break
      folder = place.text
      from += 1
    }
  }
  const [first, second] = args.slice(from)
  const lookup = (name: string, consumed: number): CommandUsage | undefined => {
    const usage = usages.get(name)
    // A grant for this folder does not cover code of another folder.
    if (usage === undefined || (folder !== undefined && usage.effects !== "reads")) return undefined
    return { name, usage, rest: args.slice(from + consumed), folder }
  }
  if (first === undefined || !isLiteral(first)) return lookup(program.text, 0)
  if (second !== undefined && isLiteral(second)) {
    const two = lookup(`${program.text} ${first.text} ${second.text}`, 2)
    if (two !== undefined) return two
    const script = scriptName.test(second.text) ? lookup(`${program.text} ${first.text} *`, 2) : undefined
    if (script !== undefined) return { ...script, name: `${program.text} ${first.text} ${second.text}` }
  }
  return lookup(`${program.text} ${first.text}`, 1) ?? lookup(program.text, 0)
}

/** An acceptable program name: letters, digits and path characters. */
const plainName = /^[\w./:][\w./+@:%-]*$/

interface CommandGrant {
  readonly command: GrantedCommand
  readonly makes: ReadonlyArray<string>
}

/** Returns what a grant for one command covers; undefined when the command always asks. */
const grantedOf = ({ isPiped, reads, words }: SimpleCommand): CommandGrant | undefined => {
  const [program] = words
  if (program === undefined || !isLiteral(program) || !plainName.test(program.text)) return undefined
  const isFed = isPiped || reads.length > 0
  const entry = commandUsage(words)
  if (entry !== undefined && isCovered(entry.usage, entry.rest)) {
    const { folder, name, rest, usage } = entry
    const { effects, isLocal } = usage
    const makes = createdPlaces(usage, rest)
    // Input from another command may be code for this program.
    if (makes.every(isVisible) && !(usage.effects === "runs" && isFed)) {
      return { command: { name, effects, folder, isLocal }, makes }
    }
  }
  const base = program.text.slice(program.text.lastIndexOf("/") + 1)
  if (isFed || base === "" || shellWords.has(program.text) || runners.has(base)) return undefined
  const fetching = Object.hasOwn(fetchers, base) ? fetchers[base] : undefined
  if (words.some((word) => !isLiteral(word) || fetching?.has(word.text) === true)) return undefined
  return { command: { name: quotedWords(words), effects: "words" }, makes: [] }
}

/**
 * Analyzes a line whose every part is understood: simple commands in pipes and lists, with plain or quoted words and without
 * expansions. Returns undefined otherwise, and the line asks each time: a wrong analysis would let something run without asking.
 */
export const analyzeCommand = (line: string, tree: SyntaxNode): ShellCommand | undefined => {
  if (line.length > maxLineChars || invisible.test(line)) return undefined
  const leaves = leavesOf(tree)
  const simple = leaves === undefined ? undefined : commandsOf(line, leaves)
  if (simple === undefined) return undefined
  const commands = new Map<string, GrantedCommand>()
  const makes: Array<string> = []
  const [head] = simple
  let folder: string | undefined
  let rest = simple
  if (head?.words[0]?.text === "cd") {
    const [, target, ...more] = head.words
    // Accepted only where the commands that follow run in that folder or not at all.
    if (target === undefined || more.length > 0 || head.reads.length > 0 || target.text.startsWith("-"))
      return undefined
    if (target.text === "" || !isLiteral(target)) return undefined
    if (head.operator !== "&&" && simple.length > 1) return undefined
    folder = target.text
    rest = simple.slice(1)
    // `cd a && ls; rm x`: if the folder is missing, the command after `;` would run outside it.
    if (rest.slice(0, -1).some(({ operator }) => operator !== "&&" && operator !== "|")) return undefined
    if (rest.length === 0) commands.set("cd", { name: "cd", effects: "reads" })
  }
  for (const command of rest) {
    const granted = grantedOf(command)
    if (granted === undefined) return undefined
    const { effects, folder: at = "", name } = granted.command
    commands.set([effects, name, at].join("\0"), granted.command)
    makes.push(...granted.makes)
  }
  const climbs = Math.max(...simple.flatMap(({ words }) => words.map(climbOf)))
  return {
    commands: [...commands.values()],
    folder,
    reads: rest.flatMap(({ reads }) => reads),
    makes,
    climbs: climbs < 0 ? undefined : climbs
  }
}

/**
 * Returns the grants of a line, one per command: `shell:cat`; for commands that depend on a folder, also the folder:
 * `shell:npm run test in /home/me/project`, `shell:git status in /home/me/project`, or
 * `shell:git -C /home/me/project/sub status` below the root of the workspace; for exact words `shell:/home/me/project $ npm ci`.
 */
export const grantsOf = ({ commands }: ShellCommand, folder: string, root: string = folder): ReadonlyArray<string> =>
  commands.map(({ effects, folder: at = folder, isLocal = false, name }) => {
    switch (effects) {
      case "reads":
      case "makes":
        if (!isLocal) return `shell:${name}`
        // A different form, so that a grant without a folder does not cover it.
        return at === root ? `shell:${name} in ${at}` : `shell:${name.replace(" ", ` -C ${at} `)}`
      case "runs":
        return `shell:${name} in ${at}`
      case "words":
        return `shell:${at} $ ${name}`
    }
  })

/** Describes what these grants cover. `here` is the folder as displayed; `shown` returns the display form of a `-C` folder. */
export const coversOf = (
  { commands }: ShellCommand,
  here: string,
  shown: (folder: string) => string = (folder) => folder
): string => {
  const parts = (
    effects: GrantedCommand["effects"],
    isLocal: boolean,
    words: (list: string, where: string) => string
  ): ReadonlyArray<string> => {
    const places = new Map<string, Array<string>>()
    for (const command of commands) {
      if (command.effects !== effects || (command.isLocal ?? false) !== isLocal) continue
      const where = command.folder === undefined ? here : shown(command.folder)
      places.set(where, [...(places.get(where) ?? []), command.name])
    }
    return [...places].map(([where, names]) => words(names.join(", "), where))
  }
  const exact = commands.flatMap(({ effects, name }) => (effects === "words" ? [`"${name}"`] : []))
  return [
    ...parts("reads", true, (list, where) => `${list} in ${where} with options that only read`),
    ...parts("reads", false, (list) => `${list}, as long as it only reads; it can read all that you can`),
    ...parts("makes", true, (list, where) => `${list} in ${where} with plain options`),
    ...parts("makes", false, (list) => `${list} with plain options, in the workspace`),
    ...parts("runs", false, (list, where) => `${list} with plain options in ${where}, whatever that runs`),
    ...(exact.length === 0 ? [] : [`exactly ${exact.join(", ")} in ${here}`])
  ].join("; ")
}

/** The folder at the end of a grant for a folder's code. */
const inFolder = / in \/.*$/su

/**
 * Returns the wider grants that also cover this one. `shell:git`, as earlier versions stored it, covers only the read-only
 * sub-commands of git in the root of the workspace; `shell:npm run test`, as users may write it, covers that command in every folder.
 */
export const widerGrants = (grant: string): ReadonlyArray<string> => {
  if (!grant.startsWith("shell:") || / \$ /.test(grant)) return []
  const name = grant.slice("shell:".length).replace(inFolder, "")
  const [program = ""] = name.split(" ")
  const isReading = usages.get(name)?.effects === "reads"
  return [
    ...(grant === `shell:${name}` ? [] : [`shell:${name}`]),
    ...(isReading && program !== name ? [`shell:${program}`] : [])
  ]
}
