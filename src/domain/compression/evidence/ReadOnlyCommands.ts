/**
 * Commands that only read: what they printed is their result, and they leave no state that anybody asks for later. Beside
 * them, the parts of a command line that only choose which lines of the output are shown.
 */

import { asksAboutItself, isHarmlessDryRun, takesValue, taskWords } from "../../actions/ProgramTask.ts"
import { programsOf, readers, type RunProgram, runPrograms } from "./Commands.ts"

/** Programs whose tasks are named by verbs. */
const tasked =
  /^(?:git|gh|glab|docker|docker-compose|kubectl|helm|terraform|tofu|systemctl|launchctl|npm|pnpm|yarn|pip|go|cargo|brew|bd|aws|gcloud|az)$/
/** Verbs of tasks that read: of any program, of those that manage resources, and of git alone. */
const readingVerb =
  /^(?:list|ls|show|view|status|diff|log|logs|info|inspect|version|help|search|history|checks|describe|outdated|why|explain|tree|ps|top|stats|watch|env|doc|freeze|metadata|ready|blocked)$/
const resourceVerb =
  /^(?:(?:list|describe|head)-[a-z-]+|get|get-(?!(?:object|object-torrent|job-output|credentials)$)[a-z-]+|head|events|images|template|output|graph|cluster-info|can-i|current-context|filter-log-events|tail|cat|print|is-active|is-enabled|list-units|config|api-resources)$/
const gitVerb =
  /^(?:blame|annotate|rev-(?:parse|list)|ls-(?:files|tree|remote)|reflog|cat-file|check-ignore|fsck|count-objects|verify-pack|shortlog|grep|merge-base|name-rev|for-each-ref|show-ref|whatchanged|cherry)$/
/** Verbs that change something: what stands behind them are their operands. */
const writingVerb =
  /^(?:(?:add|remove|set|update|create|delete|import|export|enable|disable|move|attach|put)(?:-[a-z-]+)?|get-credentials|deploy|patch|submit|execute|call|start|stop|reset|ssh|scp|undelete|rollback|promote|cp|mv|rm|publish|install|upgrade|apply|exec|merge|close|push|pull|up|down)$/

/** Tasks that read when no operand follows, or only those that the pattern allows. */
const listing: Readonly<Record<string, RegExp>> = {
  "git branch": /^branch(?: (?:-[avr]+|--(?:all|list|show-current|contains|merged|no-merged|sort|format)\b\S*).*)?$/,
  "git remote": /^remote(?: (?:-v|show|get-url)\b.*)?$/,
  "git stash": /^stash (?:list|show)\b/,
  "git tag": /^tag(?: (?:-l|--list|-n|--contains|--points-at|--sort)\b.*)?$/,
  "git worktree": /^worktree list\b/,
  "git config": /^config (?:(?:--(?:global|local|system|show-origin|get\S*|list)|-l) ?)*(?:[\w.-]+)?$/,
  "git submodule": /^submodule(?: status\b.*)?$/,
  "git notes": /^notes(?: (?:list|show)\b.*)?$/,
  "terraform providers": /^providers(?: (?:schema\b|-).*)?$/,
  "aws s3": /^s3 ls\b/
}

/** Options of curl that send data or write a file; short ones may be grouped (`-sXPOST`). `-f` only fails on errors. */
const curlSends = /^(?:-[a-zA-Z]*[dFTXoO].*|--(?:data\S*|form\S*|json|request|upload-file|output)(?:=.*)?)$/
/** Options of `gh api` that send data. */
const ghSends = /^(?:-[fFX].*|--(?:field|raw-field|input|method)(?:=.*)?)$/

/** Commands of Windows that read, or only choose or print lines. Scripts of projects have lower-case names (`test-all`). */
const windowsReaders =
  /^(?:(?:Get|Select|Sort|Where|Group|Compare|Resolve|Find)-[A-Z]\w+|Measure-Object|Test-(?:Path|Connection|NetConnection|Json)|Format-(?:Table|List|Wide|Hex|Custom)|(?:Write|Out)-(?:Host|Output|String|Null)|dir|findstr|tasklist)$/

/** Options with which a task that reads writes files. */
const writesFiles = /^--output-dir(?:ectory)?(?:=|$)/

const reads = ({ program, words }: RunProgram): boolean => {
  if (program === "" || readers.has(program) || /^\w+=|^[-)}#]/.test(program)) return true
  if (windowsReaders.test(program)) return true
  if (asksAboutItself(program, words) || isHarmlessDryRun(program, words)) return true
  if (program === "sed") return !words.some((word) => /^-[a-zA-Z]*i|^--in-place/.test(word))
  if (program === "curl") return !words.some((word) => curlSends.test(word))
  const [task = "", ...after] = taskWords(program, words)
  if (program === "gh" && task === "api") return !after.some((word) => ghSends.test(word))
  if (listing[`${program} ${task}`]?.test([task, ...after].join(" ")) === true) return true
  return tasked.test(program) && !after.some((word) => writesFiles.test(word)) && readsBy(program, [task, ...after])
}

/** Whether the first verb among the words of a task reads: `kubectl get pods`, `gcloud run services describe api`. */
const readsBy = (program: string, words: ReadonlyArray<string>): boolean => {
  const operands = words.filter((word, at) => !word.startsWith("-") && !takesValue(program, words[at - 1]))
  if (program === "git") return readingVerb.test(operands[0] ?? "") || gitVerb.test(operands[0] ?? "")
  const managed = /^(?:aws|gcloud|az|kubectl|helm|terraform|tofu|systemctl|launchctl|docker|docker-compose|gh)$/.test(
    program
  )
  const reads = (word: string) =>
    readingVerb.test(word) ? word !== "version" || !/^p?npm$|^yarn$/.test(program) : managed && resourceVerb.test(word)
  // To some, runs are things to look at.
  const runs = !/^(?:gh|gcloud)$/.test(program)
  const verb = operands.find((word) => reads(word) || writingVerb.test(word) || (runs && word === "run"))
  return verb !== undefined && reads(verb)
}

/** An assignment of what a command prints is that command. */
const assigned = /(^|[\s;&(])\w+=\$\(/g

const programsIn = (command: string): ReadonlyArray<RunProgram> =>
  runPrograms(command.replace(assigned, "$1").replace(/\$\(/g, ";"))

/** Whether a command only reads: all of its programs do. */
export const isLook = (command: string): boolean => programsIn(command).every(reads)

/** A refspec that names a branch of this repository: `main:main`. An address has a colon, too. */
const refspec = /^[^-@:][^@:]*:(?!\/\/)/
/** A path outside the working folder, or one that no commit has. */
const elsewhere = /^[/~]|(?:^|\/)\.git\//

/** Whether a program only prepares: what it did stands in the files, or in a commit. */
const prepares = ({ program, words }: RunProgram): boolean => {
  if (program === "chmod") return !words.some((word) => elsewhere.test(word))
  const [task = "", ...after] = program === "git" ? taskWords(program, words) : []
  return task === "add" || (task === "fetch" && !after.some((word) => refspec.test(word)))
}

/** Whether a command leaves more than changed files, which are listed, and what a commit says. */
export const leavesMore = (command: string): boolean =>
  programsOf(command).length > 0 && !programsIn(command).every((one) => reads(one) || prepares(one))

/** What only chooses which lines of an output are shown. */
const viewForm =
  "(?:\\d?>&\\d|\\d?>\\s*/dev/null|\\|&?\\s*(?:tail|head|e?grep|rg|cat|less|wc|sort|uniq|cut|tr|sed -n|column)(?:\\s+(?:\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'|[^\\s|&;\"'<>→=(]+))*|;\\s*echo\\s+[^|;&]*\\$(?:\\?|\\{PIPESTATUS)[^|;&]*)"
const viewAtEnd = new RegExp(`\\s*${viewForm}\\s*$`)
const viewAtStart = new RegExp(`^(?:\\s*${viewForm})+`)

/** The end of a command line that is searched for what only chooses what is shown. */
const maxViewChars = 400

/** Returns a command without the parts that only choose what is shown: `npm test 2>&1 | tail -20` is a run of `npm test`. */
export const withoutView = (command: string): string => {
  const whole = command.trim()
  const start = Math.max(0, whole.length - maxViewChars)
  let end = whole.slice(start)
  for (let shorter = end; ; end = shorter) {
    shorter = end.replace(viewAtEnd, "")
    if (shorter === end || shorter === "") return whole.slice(0, start) + end
  }
}

/** Returns what follows a command without the parts that only choose what is shown. */
export const afterView = (rest: string): string => rest.replace(viewAtStart, "")
