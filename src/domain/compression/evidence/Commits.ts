/** The commits of a conversation: those that commands made, but for those that a reset, a revert or an amended commit took back. */

import { isDryRun } from "../../actions/ProgramTask.ts"
import { gitTasksOf } from "../../actions/ShellEffects.ts"
import type { EntryId } from "../../conversation/Conversation.ts"
import { liesIn } from "./FileHistory.ts"

/** A commit, as git confirmed it. */
export interface Commit {
  /** Empty: git did not confirm it (`git commit -q`). */
  readonly hash: string
  readonly subject: string
  readonly entry: EntryId
  /** The folder in which git was told to work, where it is another than the session's. */
  readonly folder?: string | undefined
  /** The branch, where git named it. */
  readonly branch?: string | undefined
}

/** The commits so far. */
export interface CommitLog {
  /** The folder of the session. */
  readonly cwd: string | undefined
  /** Those that no command took back. */
  readonly present: ReadonlyArray<Commit>
  /** Those of a folder as they stood before each reset, the latest first: another reset can bring them back. */
  readonly earlier: ReadonlyArray<ReadonlyArray<Commit>>
  /** Those that a remote has. */
  readonly pushed: ReadonlySet<Commit>
  /** Those that can have been made anew, under another hash. */
  readonly rebased: ReadonlySet<Commit>
  /** Those of branches that git left for another one, which no reset reaches. */
  readonly elsewhere: ReadonlySet<Commit>
}

/** The log before the first commit. */
export const noCommits = (cwd: string | undefined): CommitLog => ({
  cwd,
  present: [],
  earlier: [],
  pushed: new Set(),
  rebased: new Set(),
  elsewhere: new Set()
})

/** Matches git with a task that can make a commit: a few of its options, which may take a value, stand before the task. */
const commitForm =
  /\bgit(?:\.exe)?\s+(?:-\S+\s+(?:(?!-)(?:"[^"]*"|'[^']*'|[^\s"'])+\s+)?){0,8}(?:commit|merge|cherry-pick|revert)(?![\w-])/
const commitTask = /^(?:commit|merge|cherry-pick|revert)$/
/** Options with which a task other than `commit` makes none. To `git merge`, `-n` is another thing. */
const withoutCommit = /^--(?:no-commit|squash|abort|quit)$/

const taskMakes = ([task = "", ...rest]: ReadonlyArray<string>): boolean =>
  commitTask.test(task) &&
  !isDryRun("git", [task, ...rest]) &&
  (task === "commit" || !rest.some((word) => withoutCommit.test(word) || (word === "-n" && task !== "merge")))

/** Whether a command can make a commit: not where all that it has of them are dry runs, or make none. */
export const makesCommit = (command: string): boolean => {
  if (!commitForm.test(command)) return false
  const tasks = gitTasksOf(command).filter(({ words: [task = ""] }) => commitTask.test(task))
  return tasks.length === 0 || tasks.some(({ words }) => taskMakes(words))
}

/** Matches the line with which git confirms a commit. */
const committed = /^\[([^\s\]]+)(?: [^\]\n]+)? ([0-9a-f]{7,40})\] ([^\r\n]+)\r?$/gm

/** Returns the commits that the output of a command confirms. */
export const commitsIn = (output: string): ReadonlyArray<Pick<Commit, "hash" | "subject" | "branch">> =>
  [...output.slice(0, 50_000).matchAll(committed)].map(([, branch, hash = "", subject = ""]) => ({
    branch,
    hash,
    subject
  }))

/** The place of a commit before the last one: `HEAD~2`, `@^`. */
const beforeHead = /^(?:HEAD|@)((?:[~^]\d*)+)$/

/** What a remote has, and what was fetched of it. */
const remotePlace = /^(?:(?:refs\/)?remotes\/|(?:origin|upstream)\/|FETCH_HEAD$)|@\{(?:u|upstream|push)\}$/i

/** Where git says that a reset leads. Only one with `--hard` tells. */
const resetTarget = /^HEAD is now at ([0-9a-f]{7,40})\b/m

const isOf = (hash: string, commit: Commit): boolean =>
  commit.hash !== "" && (commit.hash.startsWith(hash) || hash.startsWith(commit.hash))

/**
 * Returns which of a folder's commits, now or before an earlier reset, a reset leaves. A commit that is none of theirs is from before all
 * of them, unless it can be one that git did not confirm, or one that stands on those that were pushed. Of another name, only what git
 * says is known.
 */
const leftByReset = (
  words: ReadonlyArray<string>,
  output: string,
  own: ReadonlyArray<Commit>,
  { earlier, pushed, rebased }: CommitLog
): ReadonlyArray<Commit> => {
  const [place = "HEAD", ...files] = words.filter((word) => !word.startsWith("-"))
  // With files behind it, it only changes what is staged.
  if (files.length > 0 || words.includes("--") || place === "HEAD" || place === "@") return own
  const hash = /^[0-9a-f]{7,40}$/.test(place) ? place : resetTarget.exec(output)?.[1]
  for (const commits of hash === undefined ? [] : [own, ...earlier]) {
    const at = commits.findLastIndex((commit) => isOf(hash ?? "", commit))
    if (at >= 0) return commits.slice(0, at + 1)
  }
  const steps = beforeHead.exec(place)?.[1]?.match(/~\d+|[~^]/g)
  if (steps) {
    const count = steps.reduce((sum, step) => sum + Number(step.slice(1) || 1), 0)
    return own.slice(0, Math.max(0, own.length - count))
  }
  const isRemote = remotePlace.test(place)
  const canStand = (commit: Commit) => pushed.has(commit) || (!isRemote && (commit.hash === "" || rebased.has(commit)))
  return hash === undefined && !isRemote ? own : own.slice(0, own.findLastIndex(canStand) + 1)
}

/** Returns the subject of the commit that a commit of this subject takes back. */
const revertedSubject = (subject: string): string | undefined => {
  const of = /^(?:Revert|Reapply) "(.*)"$/.exec(subject)?.[1]
  return of !== undefined && subject.startsWith("Reapply") ? `Revert "${of}"` : of
}

/** A run of a command, as far as it tells of commits. */
interface Run {
  readonly command: string
  readonly exit: number | undefined
  /** Whether it succeeded. */
  readonly ok: boolean | undefined
  readonly output: string
  readonly entry: EntryId
}

const quiet: ReturnType<typeof commitsIn>[number] = { hash: "", subject: "" }

/** Returns the folder in which git works; undefined for one that holds the session's, or that lies in it, and where the latter is not known. */
const otherFolder = (folder: string | undefined, cwd: string | undefined): string | undefined => {
  if (folder === undefined || !/^(?:\/|[A-Za-z]:)/.test(folder)) return folder
  return cwd === undefined || folder === cwd || liesIn(folder, cwd) || liesIn(cwd, folder) ? undefined : folder
}

/** Matches what `git checkout` takes for a file rather than for a branch. */
const fileLike = /^\.|\*|\.[A-Za-z]\w{0,4}$/

/** Returns the branch or the commit that git goes to; undefined where it stays, for files or for a new branch that begins here. */
const switchedTo = (task: string, words: ReadonlyArray<string>, output: string): string | undefined => {
  const begins = words.some((word) => /^(?:-[bBcC]|--(?:force-)?create|--orphan)$/.test(word))
  const [place, ...others] = words.filter((word) => !/^-./.test(word)).slice(begins ? 1 : 0)
  if (place === undefined || place === "HEAD" || place === "@") return undefined
  if (task !== "checkout" || begins) return place
  // Git quotes the name of a branch: `Switched to branch 'v1.x'`.
  const isFile = fileLike.test(place) && !output.includes(`'${place}'`)
  return isFile || others.length > 0 || words.includes("--") || /^Updated \d+ path/m.test(output) ? undefined : place
}

/** Returns the log after a task that worked, but for a commit that it makes. `all`: the commits of its folder. */
const afterTask = (
  log: CommitLog,
  task: string,
  words: ReadonlyArray<string>,
  all: ReadonlyArray<Commit>,
  output: string
): CommitLog => {
  if (/^(?:checkout|switch|merge)$/.test(task)) {
    const place = switchedTo(task, words, output)
    if (place === undefined) return log
    const last = all.findLastIndex(
      ({ branch, hash }) => branch === place || (/^[0-9a-f]{7}/.test(place) && hash.startsWith(place))
    )
    const here = all.slice(0, last + 1)
    const known = task === "merge" ? log.elsewhere : [...log.elsewhere, ...all]
    return { ...log, elsewhere: new Set([...known].filter((one) => !here.includes(one))) }
  }
  const own = all.filter((one) => !log.elsewhere.has(one))
  if (task === "push") return { ...log, pushed: new Set([...log.pushed, ...own]) }
  if (/^(?:pull|rebase|am)$/.test(task)) return { ...log, rebased: new Set([...log.rebased, ...own]) }
  if (task !== "reset" || own.length + log.earlier.length === 0) return log
  const stay = leftByReset(words, output, own, log)
  const others = log.present.filter((one) => !own.includes(one) || stay.includes(one))
  return { ...log, present: [...new Set([...others, ...stay])], earlier: [own, ...log.earlier] }
}

/**
 * Returns the log after the run of a command. Its tasks of git follow each other: each commit has a line of the
 * output, the last one all that are left. Git works in the folder that it is told, and takes back what was committed there.
 */
export const commitsAfter = (log: CommitLog, run: Run): CommitLog => {
  const { command, entry, exit, ok, output } = run
  const all = gitTasksOf(command)
  const makes = makesCommit(command)
  // A commit behind a word of the shell (`then git commit`) is no task of its own.
  const tasks =
    makes && !all.some(({ words }) => taskMakes(words)) ? [...all, { words: ["commit"], folder: undefined }] : all
  const last = tasks.findLastIndex(({ words }) => taskMakes(words))
  const confirmed = makes ? commitsIn(output) : []
  const worked = exit === 0 && !/^(?:fatal|error): /m.test(output)
  let left = confirmed.length === 0 && ok === true ? [quiet] : confirmed
  let known = log
  for (const [at, { folder: place, words }] of tasks.entries()) {
    const [task = "", ...rest] = words
    const folder = otherFolder(place, log.cwd)
    const all = known.present.filter((one) => one.folder === folder)
    if (worked && !isDryRun("git", words)) known = afterTask(known, task, rest, all, output)
    if (!taskMakes(words)) continue
    const made = at === last ? left : left.slice(0, confirmed.length === 0 ? 0 : 1)
    left = left.slice(made.length)
    const own = all.filter((one) => !known.elsewhere.has(one))
    const amended = rest.includes("--amend") && made.length > 0 ? own.at(-1) : undefined
    let present = known.present.filter((one) => one !== amended)
    for (const one of made) {
      // Of one that was amended quietly, the log knows no other words.
      const { branch, hash, subject } = one === quiet && amended !== undefined ? amended : one
      const reverted = present.findLast((other) => other.subject === revertedSubject(subject))
      present = [...present.filter((other) => other !== reverted), { hash, subject, entry, folder, branch }]
    }
    known = { ...known, present }
  }
  return known
}
