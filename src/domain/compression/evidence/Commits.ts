import { isDryRun } from "../../actions/ProgramTask.ts"
import { gitTasksOf } from "../../actions/ShellEffects.ts"
import type { EntryId } from "../../conversation/Conversation.ts"

/** The commits of a conversation: those that commands made, but for those that a reset, a revert or an amended commit took back. */

/** A commit, as git confirmed it. */
export interface Commit {
  /** Empty: git did not confirm it (`git commit -q`). */
  readonly hash: string
  readonly subject: string
  readonly entry: EntryId
  /** The folder in which git was told to work (`-C`). */
  readonly folder?: string | undefined
}

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
const committed = /^\[[^\]\n]+ ([0-9a-f]{7,40})\] ([^\r\n]+)\r?$/gm

/** Returns the commits that the output of a command confirms. */
export const commitsIn = (output: string): ReadonlyArray<{ readonly hash: string; readonly subject: string }> =>
  [...output.slice(0, 50_000).matchAll(committed)].map(([, hash = "", subject = ""]) => ({ hash, subject }))

/** The place of a commit before the last one: `HEAD~2`, `@^`. */
const beforeHead = /^(?:HEAD|@)((?:[~^]\d*)+)$/

/** How many of these commits a reset takes back; of a place that the log does not know, none. */
const countReset = (words: ReadonlyArray<string>, commits: ReadonlyArray<Commit>): number => {
  const [place = "", ...files] = words.filter((word) => !word.startsWith("-"))
  // With files behind it, it only changes what is staged.
  if (files.length > 0) return 0
  const steps = beforeHead.exec(place)?.[1]?.match(/~\d+|[~^]/g) ?? []
  const known = /^[0-9a-f]{7,40}$/.test(place)
    ? commits.findLastIndex(({ hash }) => hash !== "" && (hash.startsWith(place) || place.startsWith(hash)))
    : -1
  return known < 0 ? steps.reduce((sum, step) => sum + Number(step.slice(1) || 1), 0) : commits.length - 1 - known
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

const quiet = { hash: "", subject: "" }

/**
 * Returns the commits that there are after the run of a command. Its tasks of git follow each other: each commit has a line of the
 * output, the last one all that are left. Git works in the folder that it is told, and takes back what was committed there.
 */
export const commitsAfter = (commits: ReadonlyArray<Commit>, run: Run): ReadonlyArray<Commit> => {
  const { command, entry, exit, ok, output } = run
  const all = gitTasksOf(command)
  const makes = makesCommit(command)
  // A commit behind a word of the shell (`then git commit`) is no task of its own.
  const tasks =
    makes && !all.some(({ words }) => taskMakes(words)) ? [...all, { words: ["commit"], folder: undefined }] : all
  const last = tasks.findLastIndex(({ words }) => taskMakes(words))
  const confirmed = makes ? commitsIn(output) : []
  const canReset = exit === 0 && !/^(?:fatal|error): /m.test(output)
  let left = confirmed.length === 0 && ok === true ? [quiet] : confirmed
  let known = commits
  for (const [at, { folder, words }] of tasks.entries()) {
    const [task, ...rest] = words
    const own = known.filter((one) => one.folder === folder)
    if (task === "reset" && canReset) {
      const gone = own.slice(own.length - Math.min(own.length, countReset(rest, own)))
      known = known.filter((one) => !gone.includes(one))
    }
    if (!taskMakes(words)) continue
    const made = at === last ? left : left.slice(0, confirmed.length === 0 ? 0 : 1)
    left = left.slice(made.length)
    const amended = rest.includes("--amend") && made.length > 0 ? own.at(-1) : undefined
    known = known.filter((one) => one !== amended)
    for (const one of made) {
      // Of one that was amended quietly, the log knows no other words.
      const { hash, subject } = one === quiet && amended !== undefined ? amended : one
      const reverted = known.findLast((other) => other.subject === revertedSubject(subject))
      known = [...known.filter((other) => other !== reverted), { hash, subject, entry, folder }]
    }
  }
  return known
}
