/**
 * Which programs a line for a shell starts, as far as that can be told without running it. It answers for POSIX shells and
 * bash alike, and gives up on whatever either might read in another way: what is given up on is asked for every time.
 */

/** What a command line consists of: words with their quotes taken off, and what stands between commands. */
type Token =
  | ({ readonly _tag: "Word" } & Word)
  | { readonly _tag: "Separator" }
  | { readonly _tag: "Open" }
  | { readonly _tag: "Close" }

interface Word {
  /** Without its quotes. */
  readonly text: string
  /** As it is written. */
  readonly raw: string
  /** Whether a variable, a pattern or a list of alternatives stands in it, outside single quotes. */
  readonly expands: boolean
}

const isBlank = (char: string): boolean => char === " " || char === "\t"

/** Where a word ends. */
const isMeta = (char: string): boolean => isBlank(char) || "\n;&|()<>".includes(char)

/** `$NAME`, `${NAME}`, `$?`, `$1`: values that become no code. All else that `$` may begin is given up on. */
const plainVariable = /^\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[?#@*!0-9-])/

/** Where output goes that changes no file: another stream, or nowhere. */
const harmlessTarget = /^(?:>{1,2}&[12-]|>&-|>{1,2}[ \t]*\/dev\/null)(?=$|[\s;&|)])/
const harmlessInput = /^<&-(?=$|[\s;&|)])|^<(?![<&(>])/

/** The tokens of a line; undefined: it holds what is not judged here. */
const tokensOf = (line: string): ReadonlyArray<Token> | undefined => {
  const tokens: Array<Token> = []
  let at = 0
  const here = () => line[at] ?? ""
  const ahead = () => line[at + 1] ?? ""
  while (at < line.length) {
    const char = here()
    if (isBlank(char)) at += 1
    else if (char === "\n" || char === ";") {
      // Two of them belong to `case`.
      if (char === ";" && (ahead() === ";" || ahead() === "&")) return undefined
      tokens.push({ _tag: "Separator" })
      at += 1
    } else if (char === "&") {
      // `&>` writes a file in bash and starts something in the background elsewhere.
      if (ahead() === ">") return undefined
      tokens.push({ _tag: "Separator" })
      at += ahead() === "&" ? 2 : 1
    } else if (char === "|") {
      tokens.push({ _tag: "Separator" })
      at += ahead() === "|" || ahead() === "&" ? 2 : 1
    } else if (char === "(") {
      // `((` is arithmetic in bash, `x(` makes a function or matches a pattern.
      if (ahead() === "(" || tokens.at(-1)?._tag === "Word") return undefined
      tokens.push({ _tag: "Open" })
      at += 1
    } else if (char === ")") {
      tokens.push({ _tag: "Close" })
      at += 1
    } else if (char === "<" || char === ">") {
      const rest = line.slice(at)
      const harmless = harmlessTarget.exec(rest) ?? harmlessInput.exec(rest)
      if (harmless === null) return undefined
      at += harmless[0].length
      if (harmless[0] === "<") {
        // The file that is read: a word, but no command.
        while (isBlank(here())) at += 1
        const file = wordAt(line, at)
        if (file === undefined || file.end === at) return undefined
        at = file.end
      }
    } else if (char === "#") {
      while (at < line.length && here() !== "\n") at += 1
    } else {
      const word = wordAt(line, at)
      if (word === undefined) return undefined
      at = word.end
      // The number of a stream that is led elsewhere is no word of its own.
      const isStream = /^\d+$/.test(word.raw) && (here() === "<" || here() === ">")
      if (!isStream) tokens.push({ _tag: "Word", ...word })
    }
  }
  return tokens
}

interface WordAt extends Word {
  readonly end: number
}

/** The word that begins here, its quotes taken off; undefined: it holds code, or a quote that does not end. */
const wordAt = (line: string, from: number): WordAt | undefined => {
  let at = from
  let text = ""
  let expands = false
  while (at < line.length) {
    const char = line[at] ?? ""
    if (char === "`") return undefined
    if (char === "$") {
      const variable = plainVariable.exec(line.slice(at, at + 256))
      if (variable === null && line[at + 1] !== undefined && !isMeta(line[at + 1] ?? "")) return undefined
      if (line[at + 1] === "(") return undefined
      const taken = variable?.[0] ?? "$"
      text += taken
      expands = true
      at += taken.length
    } else if (char === "'") {
      const end = line.indexOf("'", at + 1)
      if (end < 0) return undefined
      text += line.slice(at + 1, end)
      at = end + 1
    } else if (char === '"') {
      const inner = inDoubleQuotes(line, at + 1)
      if (inner === undefined) return undefined
      text += inner.text
      expands ||= inner.expands
      at = inner.end
    } else if (char === "\\") {
      const next = line[at + 1]
      // One before the end of a line joins two lines.
      if (next === undefined || next === "\n") return undefined
      text += next
      at += 2
    } else if (isMeta(char)) break
    else {
      if ("*?[]{}~".includes(char)) expands = true
      text += char
      at += 1
    }
  }
  return { text, raw: line.slice(from, at), expands, end: at }
}

const inDoubleQuotes = (
  line: string,
  from: number
): { readonly text: string; readonly expands: boolean; readonly end: number } | undefined => {
  let text = ""
  let expands = false
  for (let at = from; at < line.length;) {
    const char = line[at] ?? ""
    if (char === '"') return { text, expands, end: at + 1 }
    if (char === "`") return undefined
    if (char === "$") {
      const variable = plainVariable.exec(line.slice(at, at + 256))
      // A sign of its own, or before the end of the quotes, is itself.
      if (variable === null && !/^\$(?=["\s.,;:)/%|^+=]|$)/.test(line.slice(at, at + 2))) return undefined
      const taken = variable?.[0] ?? "$"
      text += taken
      expands = true
      at += taken.length
    } else if (char === "\\") {
      const next = line[at + 1]
      if (next === undefined || next === "\n") return undefined
      text += '"\\$`'.includes(next) ? next : `\\${next}`
      at += 2
    } else {
      text += char
      at += 1
    }
  }
  return undefined
}

/** Words of the shell's own grammar, and those of its commands that change what later ones mean or run their words as code. */
const shellWords: ReadonlySet<string> = new Set(
  (
    "! { } [[ ]] if then elif else fi for while until do done case esac select in function time coproc " +
    "eval exec wait source . trap alias unalias builtin enable hash set shopt export declare typeset local readonly unset " +
    "read readarray mapfile getopts let bind complete compgen compopt jobs fc history"
  ).split(" ")
)

/** Programs that run what they are given: who allows them allows everything, so they are asked for each time. */
const runners: ReadonlySet<string> = new Set(
  (
    "sh bash dash zsh ksh mksh ash fish csh tcsh pwsh powershell cmd busybox toybox xargs parallel watch timeout nice ionice " +
    "chrt taskset stdbuf setsid script expect chroot unshare nsenter su runuser doas pkexec ssh strace ltrace gdb " +
    "flock entr at batch crontab osascript time sg newgrp prlimit setarch fakeroot systemd-run tmux screen unbuffer rlwrap " +
    "firejail bwrap proot runcon capsh start-stop-daemon dbus-run-session xvfb-run npx pnpx bunx uvx pipx corepack"
  ).split(" ")
)

/** Commands of programs that run what they are given, wherever they stand: an option before them may take a word or none. */
const runningCommands: Readonly<Record<string, ReadonlySet<string>>> = {
  npm: new Set(["exec", "x", "init", "innit", "create"]),
  pnpm: new Set(["dlx", "exec", "create"]),
  yarn: new Set(["dlx", "exec", "create"]),
  bun: new Set(["x", "exec", "create"]),
  uv: new Set(["run", "tool"])
}

/** What `find` does to files or runs. */
const findAction = /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/
/** What stays a place to look in, whatever its patterns become. */
const plainSearch = /^[\w./~][^$]*$/

/** Variables by which the meaning of a command changes: where programs are looked for, what they load or start. */
const powerful =
  /^(?:_|ENV|IFS|SHELL|SHELLOPTS|HOME|PS\d|BASH.*|LD_.*|DYLD_.*|GIT_.*|SSH_.*|PYTHON.*|PERL.*|RUBY.*|LUA_.*|JAVA_.*|NPM_.*|MAKE.*|CC|CXX|LD|AR)$|PATH|OPTIONS|OPTS|FLAGS|COMMAND|CMD|PAGER|EDITOR|VISUAL|BROWSER|PRELOAD|HOOK|WRAPPER|CONFIG|ARGS|STARTUP|RCFILE|PROXY|SHELL|ASKPASS|_URL$|_HOST$|INDEX|REGISTRY|RSH$|RUSTC|RUSTDOC|RUNNER|LINKER|LESS|INIT|EXEC|PROGRAM|PLUGIN|MODULES?$/i

const assignment = /^([A-Za-z_]\w*)\+?=/

/** Values that name a file, hold code, or are the last word of another command: whatever their variable is called. */
const powerfulValue = /[/|!;&`(){}<>\\\n]|\$_(?!\w)/

/** How a program may be called: letters, digits and what paths have. */
const plainName = /^[\w./][\w./+@:%-]*$/

/** The programs that one command of a line starts; undefined: that cannot be told. */
const programsOf = (words: ReadonlyArray<Word>): ReadonlyArray<string> | undefined => {
  const found: Array<string> = []
  let at = 0
  for (;;) {
    for (; at < words.length; at += 1) {
      // As it is written: `"A=1"` is the name of a program.
      const [sign = "", name] = assignment.exec(words[at]?.raw ?? "") ?? []
      if (name === undefined) break
      const value = (words[at]?.text ?? "").slice(sign.length).replace(/\$\{(\w+)\}/g, "$$$1")
      if (powerful.test(name) || powerfulValue.test(value)) return undefined
    }
    const word = words[at]
    if (word === undefined) return found
    if (word.expands || !plainName.test(word.text) || shellWords.has(word.text)) return undefined
    const base = word.text.slice(word.text.lastIndexOf("/") + 1)
    if (base === "" || runners.has(base)) return undefined
    const next = words[at + 1]
    if (base === "env" || base === "command" || base === "sudo" || base === "nohup") {
      // Their options may name what to run, or who is to run it.
      if (next === undefined) return [...found, word.text]
      if (next.text.startsWith("-") || next.expands) return undefined
      // To these two it is the name of a program.
      if ((base === "command" || base === "nohup") && assignment.test(next.text)) return undefined
      // Whoever allows `rm` does not allow it to the superuser.
      if (base === "sudo" || word.text !== base) found.push(word.text)
      at += 1
      continue
    }
    const args = words.slice(at + 1)
    // What a variable or a file name of the folder puts there may be an action, or several words.
    if (
      base === "find" &&
      args.some(({ expands, text }) => (expands ? !plainSearch.test(text) : findAction.test(text)))
    )
      return undefined
    const running = Object.hasOwn(runningCommands, base) ? runningCommands[base] : undefined
    if (running !== undefined && args.some(({ expands, text }) => expands || running.has(text))) return undefined
    // Built into bash: they may calculate with what they are given, and code may stand in that, whatever its quotes.
    const [first] = args
    if (base === "printf" && first !== undefined && (first.expands || first.text.startsWith("-"))) return undefined
    if (base === "test" && args.some(({ expands, text }) => expands || /\$[({]|`/.test(text))) return undefined
    return [...found, word.text]
  }
}

/** Nobody can see these, and a terminal may act on them. */
// oxlint-disable-next-line no-control-regex
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/

/**
 * The programs that a line starts, each once, in their order: `git status | head` starts `git` and `head`. Undefined where
 * that cannot be told from the line alone: code within it (`$(…)`, backquotes, here-documents), the grammar of the shell
 * beyond lists, pipes and subshells, output into files, quotes that do not end, programs that run what they are given. A
 * wrong answer would let something run unasked, so there is no guessing.
 */
export const programs = (line: string): ReadonlyArray<string> | undefined => {
  if (invisible.test(line)) return undefined
  const tokens = tokensOf(line)
  if (tokens === undefined) return undefined
  const found = new Set<string>()
  let depth = 0
  let words: Array<Word> = []
  let afterClose = false
  for (const token of [...tokens, { _tag: "Separator" } as const]) {
    if (token._tag === "Word") {
      // After a subshell comes an operator.
      if (afterClose) return undefined
      words.push(token)
      continue
    }
    if (token._tag === "Open") {
      if (words.length > 0 || afterClose) return undefined
      depth += 1
      continue
    }
    const names = programsOf(words)
    if (names === undefined) return undefined
    for (const name of names) found.add(name)
    words = []
    afterClose = token._tag === "Close"
    if (afterClose) depth -= 1
    if (depth < 0) return undefined
  }
  return depth === 0 && found.size > 0 ? [...found] : undefined
}

/** The grants of a line: one for each of its programs, none where they cannot be told. */
export const grantsOf = (line: string): ReadonlyArray<string> => (programs(line) ?? []).map((name) => `shell:${name}`)
