import { asksAboutItself, isHarmlessDryRun, taskWords } from "../../actions/ProgramTask.ts"
import { programsOf, readers, type RunProgram, runPrograms } from "./Commands.ts"

/**
 * Commands that only read: what they printed is their result, and they leave no state that anybody asks for later. Beside
 * them, the parts of a command line that only choose which lines of the output are shown.
 */

const wordsOf = (words: string): ReadonlySet<string> => new Set(words.split(" "))

/** Subcommands that read, by program; `pr view` are two words. */
const readingTasks: Readonly<Record<string, ReadonlySet<string>>> = {
  git: wordsOf(
    "log show diff status blame annotate rev-parse rev-list ls-files ls-tree ls-remote reflog cat-file check-ignore fsck count-objects verify-pack describe shortlog grep merge-base name-rev for-each-ref show-ref whatchanged cherry help version"
  ),
  gh: new Set(
    ["pr", "issue", "run", "repo", "release", "workflow", "label", "gist"]
      .flatMap((subject) => ["view", "list", "diff", "checks", "status", "watch"].map((task) => `${subject} ${task}`))
      .concat("auth status", "search prs", "search issues", "search code", "search repos")
  ),
  glab: new Set(["mr view", "mr list", "mr diff", "issue view", "issue list", "ci status", "ci view"]),
  docker: new Set(
    ["container", "image", "volume", "network", "context", "compose"]
      .flatMap((subject) =>
        ["ls", "list", "inspect", "ps", "logs", "images", "config"].map((task) => `${subject} ${task}`)
      )
      .concat("ps images logs inspect stats top port version info".split(" "))
  ),
  "docker-compose": wordsOf("ps logs images config top version"),
  kubectl: new Set([
    ...wordsOf("get describe logs explain top version diff events api-resources cluster-info"),
    "rollout status",
    "rollout history",
    "config view",
    "config get-contexts",
    "config current-context",
    "auth can-i"
  ]),
  helm: wordsOf("list ls status get history show search template version env"),
  terraform: new Set([...wordsOf("show output version graph"), "state list", "state show", "workspace list"]),
  systemctl: wordsOf("status list-units is-active is-enabled cat show"),
  launchctl: wordsOf("list print"),
  npm: wordsOf("ls list view info outdated why explain root prefix"),
  pnpm: wordsOf("ls list view info outdated why"),
  yarn: wordsOf("list info outdated why"),
  pip: wordsOf("list show freeze"),
  go: wordsOf("list env version doc"),
  cargo: wordsOf("tree metadata search"),
  brew: wordsOf("list info search"),
  bd: wordsOf("list show ready stats blocked")
}

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

/** Verbs of the clouds' programs that read, but for those that write a file. */
const cloudVerb =
  /^(?:(?:describe|list|get|head)(?:-(?!(?:object|object-torrent|job-output|credentials)$)[a-z-]+)?|show|filter-log-events|tail)$/
/** Those of gcloud, whose operands may be named like one (`get-user`), and verbs before such an operand. */
const gcloudVerb = /^(?:describe|list|get-iam-policy|get-value)$/
const gcloudWrites =
  /^(?:(?:add|remove|set|update|create|delete|import|export|enable|disable|move|get)(?:-[a-z-]+)?|deploy|patch|submit|execute|call|start|stop|reset|ssh|scp|undelete|rollback|promote|cp|mv|rm|publish)$/

/** Whether a task of a cloud's program reads: `aws ec2 describe-instances`, `gcloud compute instances list`, `az vm show`. */
const readsCloud = (program: string, task: string, after: ReadonlyArray<string>): boolean => {
  if (program === "aws") return cloudVerb.test(taskWords(program, after)[0] ?? "")
  const options = after.findIndex((word) => word.startsWith("-"))
  const words = [task, ...(options < 0 ? after : after.slice(0, options))]
  if (program === "az") return cloudVerb.test(words.at(-1) ?? "")
  const verb = words.findIndex((word) => gcloudVerb.test(word))
  return verb >= 0 && !words.slice(0, verb).some((word) => gcloudWrites.test(word))
}

/** Options with which a task that reads writes files. */
const writesFiles = /^--output-dir(?:ectory)?(?:=|$)/

const reads = ({ program, words }: RunProgram): boolean => {
  if (program === "" || readers.has(program) || /^\w+=|^[-)}#]/.test(program)) return true
  if (windowsReaders.test(program)) return true
  if (asksAboutItself(program, words) || isHarmlessDryRun(program, words)) return true
  if (program === "sed") return !words.some((word) => /^-[a-zA-Z]*i|^--in-place/.test(word))
  if (program === "curl") return !words.some((word) => curlSends.test(word))
  const [task = "", ...after] = taskWords(program, words)
  const [next = ""] = taskWords(program, after)
  if (program === "gh" && task === "api") return !after.some((word) => ghSends.test(word))
  if (listing[`${program} ${task}`]?.test([task, ...after].join(" ")) === true) return true
  if (/^(?:aws|gcloud|az)$/.test(program)) return readsCloud(program, task, after)
  if (after.some((word) => writesFiles.test(word))) return false
  const tasks = readingTasks[program]
  return tasks !== undefined && (tasks.has(task) || tasks.has(`${task} ${next}`))
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
