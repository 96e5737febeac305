/** Splits a line of a shell into its simple commands: the one parser for what agents ran, in shells of Unix and of Windows. */

/** A simple command of a shell line. */
export interface SimpleCommand {
  readonly words: Array<string>
  /** The words as they were written outside quotes: `''` stands for each quoted text. */
  readonly bare: Array<string>
  /** The files that its output is redirected to. */
  readonly targets: Array<string>
  /** Number of enclosing subshells. */
  readonly depth: number
  /** What follows it: an operator, a line break, or nothing. */
  after: string
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

const tokenForms = (bare: RegExp, double: RegExp, escaped: RegExp): RegExp =>
  new RegExp(
    [
      // The pieces of a word: bare, double-quoted, single-quoted, an escaped character. A number before a redirect belongs to
      // the redirect, and a comment is not a word.
      bare,
      double,
      /'([^']*)(?:'|$)/,
      escaped,
      /(&&|\|[|&]?|[;\n()]|&(?!>))/,
      // `2>&1` names no file: it matches here, outside the groups.
      /\d*[<>]&[\d-]+/,
      /((?:\d+|&)?>[>|&]?)/,
      /(\d*<(?:<<|<-?|[>&])?)/,
      /(?:[ \t\r]|[\\`^]\n)+|#[^\n]*/
    ]
      .map((form) => form.source)
      .join("|"),
    "g"
  )

/** Matches the tokens of a line of a Unix shell. An unclosed quote reaches to the end. */
const unixToken = tokenForms(/((?!\d+[<>]|#)[^\s"'\\;&|<>()]+)/, /"((?:[^"\\]|\\[\s\S])*)(?:"|$)/, /\\([^\n])/)
/** Matches those of PowerShell and of `cmd`, where a backslash separates folders. */
const windowsToken = tokenForms(/((?!\d+[<>]|#)(?:[^\s"'`;&|<>()]|`(?!\n))+)/, /"((?:[^"`]|`[\s\S])*)(?:"|$)/, /(?!)()/)

/** A path with a drive, a dot or a server before its backslash, or one that ends as a file: a shell of Unix would only lose the backslash. */
const windowsPath =
  /(?:^|[\s=(,])(?:(?:[A-Za-z]:\\|\.{1,2}\\|\\\\)[\w.]|[\w.-]+(?:\\[A-Za-z][\w.-]*)*\\[A-Za-z][\w-]*\.\w{1,6}(?=$|[\s,;)&|>]))/
/** A command of PowerShell. Other words are made as these are: `Test-Driven`, `Add-On`, `Set-Cookie`. */
export const cmdlet =
  /(?:^|[;|&\n(])[^\S\n]*(?:(?:Get|Set|Add|Clear)-Content|(?:Get|Set|New|Remove|Copy|Move|Rename|Clear)-Item(?:Property)?|Get-(?:ChildItem|Command|Date|FileHash|Help|Location|Member|Process|Service)|Set-(?:ExecutionPolicy|Location|Variable)|New-Object|Add-(?:Member|Type)|Out-(?:File|Host|Null|String)|Select-(?:Object|String)|Test-(?:Connection|NetConnection|Path))(?![\w-])/

const isWindowsLine = (line: string): boolean => windowsPath.test(line) || cmdlet.test(line)

/** Only this many characters of a longer command are read. */
const maxCommandChars = 20_000

/** Returns the simple commands of a shell line, in order, without the contents of here-documents. */
export const simpleCommands = (line: string): Array<SimpleCommand> => {
  const isWindows = isWindowsLine(line)
  let command: SimpleCommand = { words: [], bare: [], targets: [], depth: 0, after: "" }
  const commands = [command]
  /** The last one that has words. */
  let ended: SimpleCommand | undefined
  let word: string | undefined
  let bare = ""
  let role: "word" | "output" | "input" = "word"
  const endWord = (): void => {
    if (word === undefined) return
    if (role === "word") {
      command.words.push(word)
      command.bare.push(bare)
      ended = command
    } else if (role === "output") command.targets.push(word)
    word = undefined
    bare = ""
    role = "word"
  }
  for (const match of withoutBodies(line)
    .slice(0, maxCommandChars)
    .matchAll(isWindows ? windowsToken : unixToken)) {
    const [, plain, double, single, escaped, separator, output, input] = match
    const quoted = single ?? (isWindows ? double : double?.replace(/\\(["\\$`\n])/g, "$1"))
    const piece = plain ?? escaped ?? quoted
    if (piece !== undefined) {
      word = `${word ?? ""}${piece}`
      bare += quoted === undefined ? piece : "''"
      continue
    }
    endWord()
    if (output !== undefined) role = "output"
    else if (input !== undefined) role = "input"
    else if (separator !== undefined) {
      role = "word"
      const deeper = separator === "(" ? 1 : separator === ")" ? -1 : 0
      if (separator !== "(" && separator !== ")") {
        // What follows a closed subshell follows its last command.
        if (ended !== undefined && ended.after === "") ended.after = separator
      }
      command = { words: [], bare: [], targets: [], depth: Math.max(0, command.depth + deeper), after: "" }
      commands.push(command)
    }
  }
  endWord()
  return commands
}
