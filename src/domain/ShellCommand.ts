import { fetchers, gitGlobals, runners, shellWords, type Usage, usages, type Word } from "./ShellPrograms.ts"

/**
 * What a line for a shell does, as far as that can be told without running it, and what a grant for it covers. bash runs it, or
 * sh where there is no bash: what the two might read differently is given up on, as is all that is not understood completely.
 * What is given up on is asked for every time.
 */

/** A node of a syntax tree of bash. Positions count as a string's do. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  /** The parser put it in, or could not read it. */
  readonly isFaulty: boolean
  readonly children: ReadonlyArray<SyntaxNode>
}

/** One command of a line that can be granted. */
export interface GrantedCommand {
  /** `git status`, `npm run test`, `ls`; for `words` the command itself, quoted where it has to be. */
  readonly name: string
  /** Where `-C` leads. */
  readonly folder?: string | undefined
  /** What it does depends on the folder. */
  readonly isLocal?: boolean | undefined
  /** `words`: nothing but these very words is covered. */
  readonly effects: Usage["effects"] | "words"
}

/** A line of which each command can be granted. */
export interface ShellCommand {
  /** Each once, in their order. */
  readonly commands: ReadonlyArray<GrantedCommand>
  /** The folder that a `cd` at the beginning goes to. */
  readonly folder?: string | undefined
  /** Files that redirections read: they have to be regular files of the workspace. */
  readonly reads: ReadonlyArray<string>
  /** Places that are made: they have to lie in the workspace. */
  readonly makes: ReadonlyArray<string>
  /**
   * A word may be a special file, or hold all of them, where it begins in a folder of no more parts than this. Absent: nowhere.
   */
  readonly climbs?: number | undefined
}

/** Longer lines are asked for each time: nobody reads them, and a parser may take long. */
export const maxLineChars = 16_384

const maxNodes = 4_000
const maxDepth = 64

const knownNodes: ReadonlySet<string> = new Set(
  (
    "program list pipeline command command_name redirected_statement file_redirect file_descriptor word number concatenation " +
    'string string_content raw_string comment && || | ; < > >> >& "'
  ).split(" ")
)

/** A part of a line that is not divided further. */
interface Leaf {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The leaves of a tree in their order; undefined: it holds what is not judged here. */
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

/** Nobody can see these, a terminal may act on them, or they are blanks to some shells only. */
const unseen = /[^\P{C}\n\t]|[^\P{Z} ]|\p{Default_Ignorable_Code_Point}|[\u2800\ufff0-\uffff]/u

/** A piece of a word without quotes: nothing in it means anything to a shell, save patterns and `~`. */
const barePiece = /^(?:[A-Za-z0-9_./:,@%+=~^*?[\]-]|\\[!-/:-@[-`{-~])+$/
/** The same with letters beyond ASCII. */
const foreignPiece = /^(?:[A-Za-z0-9_./:,@%+=~-]|[^\P{L}\p{ASCII}]|[^\P{N}\p{ASCII}]|\p{M})+$/u
/** In another encoding (GBK, Shift JIS) the sign behind a letter can be a part of it. */
const swallowed = /[^\n\t -~][@[-`{-~]/
/** Some systems take these bytes for blanks. */
const blankBytes = /%(?:85|A0)/
const isForeign = (raw: string): boolean =>
  foreignPiece.test(raw) && !swallowed.test(raw) && !blankBytes.test(encodeURIComponent(raw))
const singleQuoted = /^'[^']*'$/
/** Without expansions; with a backslash only where all shells agree on it. */
const doubleQuoted = /^"(?:[^"\\$`]|\$(?=[" |)])|\\["\\$`]|\\[A-Za-z0-9. ()[\]{}|*+?/^<>-])*"$/

interface Piece {
  readonly text: string
  readonly isBare: boolean
}

const pieceOf = (raw: string): Piece | undefined => {
  if (raw.startsWith("'")) return singleQuoted.test(raw) ? { text: raw.slice(1, -1), isBare: false } : undefined
  if (raw.startsWith('"')) {
    // In some locales a byte of such a letter swallows the backslash behind it.
    if (!doubleQuoted.test(raw) || (raw.includes("\\") && /[^\n\t -~]/.test(raw))) return undefined
    return { text: raw.slice(1, -1).replace(/\\(["\\$`])/g, "$1"), isBare: false }
  }
  return raw === "!" || barePiece.test(raw) || isForeign(raw) ? { text: raw, isBare: true } : undefined
}

/** A word of these pieces; undefined: a shell may make something else of it. */
const wordOf = (pieces: ReadonlyArray<Piece>): Word | undefined => {
  let text = ""
  let pattern: Word["pattern"]
  let patternAt: number | undefined
  let isHome = false
  for (const [index, piece] of pieces.entries()) {
    if (!piece.isBare) {
      text += piece.text
      continue
    }
    for (let at = 0; at < piece.text.length; at += 1) {
      const char = piece.text[at] ?? ""
      if (char === "\\") {
        at += 1
        text += piece.text[at] ?? ""
      } else if (char === "~") {
        if (text === "" && index === 0) {
          // `~name` and `~+` are other folders.
          if (!/^~(?:\/|$)/.test(piece.text) || (piece.text === "~" && pieces.length > 1)) return undefined
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

/** A part that leads up, also behind the letter of an option. */
const upward = /(?:^|[^.])\.\.$/
const specialName = /^(?:dev|proc|sys|inet[46]?)$/

/** Devices, connections and other processes, by an absolute path wherever it stands in a word; a pattern may become one. */
const isSpecial = ({ isHome = false, pattern, patternAt, text }: Word): boolean => {
  if (text === "/dev/null") return false
  if (/(?:^|[=:,])\/+(?:\.\/+)*(?:dev|proc|sys|inet[46]?)(?:\/|$)/.test(text)) return true
  if (text.startsWith("-") && /\/(?:dev|proc|sys|inet[46]?)(?:\/|$)/.test(text)) return true
  if (pattern !== undefined && /(?:^|[=:,]|^-.*)\/+(?:\.\/+)*[^/]*$/.test(text.slice(0, patternAt))) return true
  return (isHome || /(?:^|[=:,]|^-.*)\//.test(text)) && climbOf({ text, pattern }) > 0
}

/** How many folders a word goes up before it may come to a special file; -1: it comes to none. */
const climbOf = ({ pattern, text }: Pick<Word, "pattern" | "text">): number => {
  const parts = text.split(/[/=:,]/)
  const ups = parts.filter((part) => upward.test(part))
  const isAbove = ups.length > 0 && parts.every((part) => /^(?:|\.|-.*)$/.test(part) || upward.test(part))
  return isAbove || pattern !== undefined || parts.some((part) => specialName.test(part)) ? ups.length : -1
}

/** One simple command of a line. */
interface Simple {
  readonly words: ReadonlyArray<Word>
  readonly reads: ReadonlyArray<string>
  /** Another command writes what it reads. */
  readonly isPiped: boolean
  /** What stands behind it. */
  readonly operator: string
}

/** The commands of a line by its leaves alone: a tree that is built wrongly changes nothing. */
const commandsOf = (line: string, leaves: ReadonlyArray<Leaf>): ReadonlyArray<Simple> | undefined => {
  const commands: Array<Simple> = []
  let words: Array<Word> = []
  let reads: Array<string> = []
  let pieces: Array<Piece> = []
  let redirect: { readonly operator: string; readonly end: number } | undefined
  let descriptor: { readonly text: string; readonly end: number } | undefined
  let hasRedirect = false
  let previous = ""
  let at = 0

  const endWord = (): boolean => {
    if (pieces.length === 0) return true
    const word = wordOf(pieces)
    const isOneBare = pieces.length === 1 && pieces[0]?.isBare === true
    pieces = []
    if (word === undefined || isSpecial(word)) return false
    if (redirect === undefined) {
      words.push(word)
      return true
    }
    const { operator } = redirect
    redirect = undefined
    hasRedirect = true
    if (operator === "<") {
      if (word.pattern !== undefined || word.isHome === true || word.text === "" || word.text === "/dev/null")
        return false
      reads.push(word.text)
      return true
    }
    // As they are written: bash reads quoted ones in another way.
    return isOneBare && (operator === ">&" ? /^[12]$/.test(word.text) : word.text === "/dev/null")
  }
  const endCommand = (operator: string): boolean => {
    if (!endWord() || redirect !== undefined || descriptor !== undefined) return false
    if (words.length === 0) {
      if (hasRedirect) return false
      // Nothing but line breaks, or the end of the line after a `;`, may stand where a command is missing.
      if (operator === "\n") return true
      return operator === "" && (previous === ";" || previous === "\n")
    }
    commands.push({ words, reads, isPiped: previous === "|", operator })
    words = []
    reads = []
    hasRedirect = false
    previous = operator
    return true
  }

  for (const { end, start, type } of leaves) {
    // A line that goes on: all shells leave out both signs. Between blanks that changes nothing.
    const gap = line.slice(at, start).replace(/(?<=[ \t])\\\n|\\\n(?=[ \t])/g, "")
    if (start < at || end <= start || /[^ \t\n]/.test(gap)) return undefined
    const raw = line.slice(start, end)
    if (gap !== "") {
      if (descriptor !== undefined) return undefined
      if (redirect === undefined || pieces.length > 0) {
        if (!endWord()) return undefined
      } else if (redirect.operator === ">&") return undefined
      if (gap.includes("\n") && !endCommand("\n")) return undefined
    }
    at = end
    switch (type) {
      case "&&":
      case "||":
      case "|":
      case ";":
        if (raw !== type || !endCommand(type)) return undefined
        break
      case "<":
      case ">":
      case ">>":
      case ">&":
        // Digits before it would name a stream.
        if (
          raw !== type ||
          (descriptor === undefined && gap === "" && /(?:^|[\s;&|<>])\d+$/.test(line.slice(0, start)))
        ) {
          return undefined
        }
        if (!endWord() || redirect !== undefined) return undefined
        if (type === "<" && descriptor !== undefined && descriptor.text !== "0") return undefined
        descriptor = undefined
        redirect = { operator: type, end }
        break
      case "file_descriptor":
        if (
          !/^[012]$/.test(raw) ||
          pieces.length > 0 ||
          !/^$|[\s;&|]/.test(line.slice(Math.max(0, start - 1), start))
        ) {
          return undefined
        }
        descriptor = { text: raw, end }
        break
      case "comment":
        if (!/^#[^\n]*$/.test(raw) || !/^$|[\s;]/.test(line.slice(Math.max(0, start - 1), start))) return undefined
        if (!/^(?:\n|$)/.test(line.slice(end, end + 1)) || !endWord()) return undefined
        break
      case "word":
      case "number":
      case "string":
      case "raw_string": {
        const piece = pieceOf(raw)
        if (piece === undefined || descriptor !== undefined) return undefined
        if (piece.isBare && swallowed.test(line.slice(end - 1, end + 1))) return undefined
        pieces.push(piece)
        break
      }
      default:
        return undefined
    }
  }
  if (/[^ \t\n]/.test(line.slice(at))) return undefined
  return endCommand("") && commands.length > 0 ? commands : undefined
}

const plainWord = /^[\w./:,@%+=-]+$/

/** Words as they may be typed again. */
const typed = (words: ReadonlyArray<Word>): string =>
  words.map(({ text }) => (plainWord.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)).join(" ")

/** Whether a call has nothing but harmless options and operands. */
const isCovered = (usage: Usage, words: ReadonlyArray<Word>): boolean => {
  const { hasLongShorts = false, joinsValues = false, judgesRest = false, options, refuses } = usage
  if (refuses !== undefined && words.some(({ text }) => refuses.test(text))) return false
  const operands: Array<Word> = []
  let isRest = false
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]
    if (word === undefined) break
    const { pattern, patternAt = 0, text } = word
    if (isRest || !text.startsWith("-") || text === "-") {
      // The name of a file may be an option.
      if (pattern === "open" && options !== "any" && !isRest) return false
      operands.push(word)
      continue
    }
    // `--include=*.ts` stays that option, whatever files there are.
    if (pattern !== undefined && options !== "any" && !/^--[a-z][a-z-]*=/.test(text.slice(0, patternAt))) return false
    if (text === "--") {
      isRest = !judgesRest
      continue
    }
    if (options === "any" || /^-\d+$/.test(text)) continue
    // What an option may take next is a value, unless it looks like another option.
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

/** The places that a call makes. */
const madeBy = (usage: Usage, words: ReadonlyArray<Word>): ReadonlyArray<string> =>
  usage.makesOperands === true ? words.flatMap(({ text }) => (/^-./.test(text) ? [] : [text])) : []

/** Visible, and below the folder: what begins with a dot steers programs, and with a dash it may be taken for an option. */
const isVisible = (place: string): boolean =>
  place !== "" && !place.startsWith("/") && !place.split("/").some((part) => /^[.-]/.test(part) && part !== ".")

const scriptName = /^[A-Za-z0-9][\w:.-]*$/

interface Found {
  readonly name: string
  readonly usage: Usage
  readonly rest: ReadonlyArray<Word>
  readonly folder?: string | undefined
}

const isLiteral = ({ isHome = false, pattern }: Word): boolean => pattern === undefined && !isHome

/** How the table knows a command: by as many of its words as it can. */
const found = (words: ReadonlyArray<Word>): Found | undefined => {
  const [program, ...args] = words
  if (program === undefined) return undefined
  let from = 0
  let folder: string | undefined
  if (program.text === "git") {
    for (; from < args.length; from += 1) {
      const text = args[from]?.text ?? ""
      if (gitGlobals.has(text)) continue
      // Another folder, as `cd` goes to it.
      const place = args[from + 1]
      if (text !== "-C" || folder !== undefined || place === undefined || !isLiteral(place)) break
      if (place.text === "" || place.text.startsWith("-")) break
      folder = place.text
      from += 1
    }
  }
  const [first, second] = args.slice(from)
  const known = (name: string, taken: number): Found | undefined => {
    const usage = usages.get(name)
    // Code of another folder is none of this one's.
    if (usage === undefined || (folder !== undefined && usage.effects !== "reads")) return undefined
    return { name, usage, rest: args.slice(from + taken), folder }
  }
  if (first === undefined || !isLiteral(first)) return known(program.text, 0)
  if (second !== undefined && isLiteral(second)) {
    const two = known(`${program.text} ${first.text} ${second.text}`, 2)
    if (two !== undefined) return two
    const script = scriptName.test(second.text) ? known(`${program.text} ${first.text} *`, 2) : undefined
    if (script !== undefined) return { ...script, name: `${program.text} ${first.text} ${second.text}` }
  }
  return known(`${program.text} ${first.text}`, 1) ?? known(program.text, 0)
}

/** How a program may be called: letters, digits and what paths have. */
const plainName = /^[\w./:][\w./+@:%-]*$/

interface Granted {
  readonly command: GrantedCommand
  readonly makes: ReadonlyArray<string>
}

/** What a grant for one command covers; undefined: it is asked for each time. */
const grantedOf = ({ isPiped, reads, words }: Simple): Granted | undefined => {
  const [program] = words
  if (program === undefined || !isLiteral(program) || !plainName.test(program.text)) return undefined
  const isFed = isPiped || reads.length > 0
  const known = found(words)
  if (known !== undefined && isCovered(known.usage, known.rest)) {
    const { folder, name, rest, usage } = known
    const { effects, isLocal } = usage
    const makes = madeBy(usage, rest)
    // What another command writes may be code to what runs here.
    if (makes.every(isVisible) && !(usage.effects === "runs" && isFed)) {
      return { command: { name, effects, folder, isLocal }, makes }
    }
  }
  const base = program.text.slice(program.text.lastIndexOf("/") + 1)
  if (isFed || base === "" || shellWords.has(program.text) || runners.has(base)) return undefined
  const fetching = Object.hasOwn(fetchers, base) ? fetchers[base] : undefined
  if (words.some((word) => !isLiteral(word) || fetching?.has(word.text) === true)) return undefined
  return { command: { name: typed(words), effects: "words" }, makes: [] }
}

/**
 * What a line does, where every part of it is understood: simple commands in pipes and lists, of plain or quoted words without
 * expansions. Undefined where it cannot be told: then it is asked for each time, as a wrong answer would let something run unasked.
 */
export const judge = (line: string, tree: SyntaxNode): ShellCommand | undefined => {
  if (line.length > maxLineChars || unseen.test(line)) return undefined
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
    // Only where what comes next runs there or not at all.
    if (target === undefined || more.length > 0 || head.reads.length > 0 || target.text.startsWith("-"))
      return undefined
    if (target.text === "" || !isLiteral(target)) return undefined
    if (head.operator !== "&&" && simple.length > 1) return undefined
    folder = target.text
    rest = simple.slice(1)
    // `cd a && ls; rm x`: where the folder is missing, what follows a `;` would run outside it.
    if (rest.some(({ operator }) => operator === ";" || operator === "\n" || operator === "||")) {
      const last = rest.at(-1)
      const isAfter = rest.slice(0, -1).some(({ operator }) => operator !== "&&" && operator !== "|")
      if (isAfter || last === undefined) return undefined
    }
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
 * The grants of a line, one for each of its commands: `shell:cat`; for what depends on a folder also where: `shell:npm run test
 * in /home/me/project`, `shell:git status in /home/me/project`, `shell:git -C /home/me/project/sub status` below the root of the
 * workspace; for the very same words `shell:/home/me/project $ npm ci`.
 */
export const grantsOf = ({ commands }: ShellCommand, folder: string, root: string = folder): ReadonlyArray<string> =>
  commands.map(({ effects, folder: at = folder, isLocal = false, name }) => {
    switch (effects) {
      case "reads":
      case "makes":
        if (!isLocal) return `shell:${name}`
        // Written otherwise, so that a grant without a folder does not cover it.
        return at === root ? `shell:${name} in ${at}` : `shell:${name.replace(" ", ` -C ${at} `)}`
      case "runs":
        return `shell:${name} in ${at}`
      case "words":
        return `shell:${at} $ ${name}`
    }
  })

/** What these grants cover, in words. `here` is the folder as it is shown, `shown` shows one that `-C` leads to. */
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
  return [
    ...parts("reads", true, (list, where) => `${list} in ${where} with options that only read`),
    ...parts("reads", false, (list) => `${list} with options that only read, any file that you can read`),
    ...parts("makes", true, (list, where) => `${list} in ${where} with plain options`),
    ...parts("makes", false, (list) => `${list} with plain options, within the workspace`),
    ...parts(
      "runs",
      false,
      (list, where) => `${list} with plain options in ${where}, whatever its files make that run`
    ),
    ...commands.flatMap(({ effects, name }) => (effects === "words" ? [`exactly "${name}" in ${here}`] : []))
  ].join("; ")
}

/** Where a grant of a folder's code ends and its folder begins. */
const inFolder = / in \/.*$/su

/**
 * Wider grants that cover one too. `shell:git`, as earlier versions kept it, covers the sub-commands of git that only read in
 * the root of the workspace, and no more; `shell:npm run test`, as a person may write it, covers that in every folder.
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
