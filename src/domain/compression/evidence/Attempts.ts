/**
 * What the agent tried: its calls in one list, each with how it ended. At the end, the last results of commands and checks are read from
 * it, and the failures that nothing has ended.
 */

import type { Command } from "../../actions/Action.ts"
import { printedExit, printedOutput, scriptResult } from "../../actions/ExecScript.ts"
import { isDryRun } from "../../actions/ProgramTask.ts"
import { answerText, endedCommands, printedText, runningId } from "../../actions/ToolResults.ts"
import type { Part } from "../../content/Content.ts"
import type { Handle } from "../../content/Handle.ts"
import type { EntryId } from "../../conversation/Conversation.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import type { Refuser } from "../../transcripts/voice/ResultVoice.ts"
import type { PartOfEntry } from "../AnsweredCalls.ts"
import { type CheckKind, checksOf, isMilestone, programsOf, provesSuccess, runPrograms, succeeded } from "./Commands.ts"
import { type Commit, type CommitLog, commitsAfter, makesCommit } from "./Commits.ts"
import { isLook } from "./ReadOnlyCommands.ts"
import { failureText, shortSubject } from "./ToolFailures.ts"

/** The last run of a command. */
export interface CommandRun {
  readonly exit?: number | undefined
  /** Whether it succeeded, by its exit code and, behind a pipe, by its output. Undefined: the output does not tell. */
  readonly ok?: boolean | undefined
  /** Who did not allow it. */
  readonly refusedBy?: Refuser | undefined
  /** Why a hook did not allow it, in the hook's words. */
  readonly because?: string | undefined
  /** Whether it was cancelled with the calls beside it: it may have run in part, or not at all. */
  readonly isCancelled?: true
  /** The address of what it published: its last line. */
  readonly address?: string | undefined
  readonly entry: EntryId
  readonly handle: Handle | undefined
}

/** A failure, and the lines that state it. */
interface Failure {
  /** Verbatim; of a refusal, the words of the user or of a hook, if there are any. */
  readonly text: string
  /** Whether its lines are worth quoting: not where a known exit code is 0, or its file was written since. */
  readonly isQuoted: boolean
}

/** A call that was made, or refused. */
interface Attempt extends CommandRun {
  /** What it was about: a command, or a tool and its file. */
  readonly subject: string
  /** `no result`: a command that was refused, cancelled or runs on. What was known of its checks and failures stays. */
  readonly kind: "command" | "no result" | "call"
  /** Absent: it did not fail, or nobody goes on from that. */
  readonly failure?: Failure | undefined
  /** The programs that it ran, and the checks among them. */
  readonly programs?: ReadonlyArray<string>
  readonly checks?: ReadonlyArray<CheckKind>
  /** The files that it read or changed, by the names that a snapshot has. */
  readonly files?: ReadonlyArray<string>
  /** Whether the user approved what its tool proposes. */
  readonly isApproved?: boolean
}

/** The calls so far. */
export interface Attempts {
  list: Array<Attempt>
  commits: CommitLog
  /** Background commands, by the id under which the agent asks for their output. */
  readonly background: Map<string, string>
}

/** How agents answer that a command that ran on has ended (Claude Code, Codex). */
const endForms = [
  /<exit_code>(-?\d+)<\/exit_code>/,
  /^(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)/
]

/** An address on the last line of an output: a longer one would cost the line of its command. */
const lastAddress = /(?:^|\n)(https?:\/\/\S{1,200})\s*$/

/** Follows the commits through a run. What made those that it took back is no longer a command that left something. */
const followCommits = (attempts: Attempts, run: Parameters<typeof commitsAfter>[1]): ReadonlyArray<Commit> => {
  const before = attempts.commits.present
  attempts.commits = commitsAfter(attempts.commits, run)
  const after = attempts.commits.present
  const gone = before.filter((commit) => !after.includes(commit))
  const made = new Set(gone.map(({ entry }) => entry).filter((entry) => after.every((one) => one.entry !== entry)))
  if (made.size > 0)
    attempts.list = attempts.list.map((one) =>
      one.kind === "command" && made.has(one.entry) && makesCommit(one.subject) ? { ...one, kind: "call" } : one
    )
  return gone
}

/** What only looks at something fails without consequences, but for a look at checks that run elsewhere, or at what would be done. */
const isHarmless = (command: string): boolean =>
  isLook(command) &&
  !/\bgh\s+(?:pr\s+checks|run\s+(?:view|watch))\b/.test(command) &&
  !runPrograms(command).some(({ program, words }) => isDryRun(program, words))

/** Adds the run of a command, or what an earlier snapshot says of one. */
export const addCommand = (attempts: Attempts, attempt: Attempt): void => {
  const { failure, subject } = attempt
  attempts.list.push({
    ...attempt,
    failure: failure !== undefined && isHarmless(subject) ? undefined : failure,
    programs: programsOf(subject),
    checks: checksOf(subject)
  })
}

/** A run of a command, and what came of its call. */
interface Run {
  readonly entry: EntryId
  readonly action: Command
  readonly answer: PartOfEntry | undefined
  /** Whether the call failed, whatever the command printed. */
  readonly hasFailed: boolean
  readonly files: ReadonlyArray<string>
}

/** Adds a run of a command. Returns the entry of the last commit that it took back. */
export const addRun = (attempts: Attempts, { action, answer, entry, files, hasFailed }: Run): EntryId | undefined => {
  const { command, exit, isExitHidden } = action
  const whole = action.output ?? answerText(answer?.part)
  const output = printedText(whole)
  const ok = succeeded(command, exit, output, isExitHidden)
  const isQuoted = ok !== false || exit !== 0 || isExitHidden === true
  addCommand(attempts, {
    kind: answer === undefined ? "no result" : "command",
    subject: command,
    exit,
    ok,
    address: ok === true && isMilestone(command) ? lastAddress.exec(output)?.[1] : undefined,
    entry,
    handle: answer?.handle,
    failure: ok === false || hasFailed ? { text: failureText(whole), isQuoted } : undefined,
    files: ok === false || hasFailed ? [] : files
  })
  const gone = followCommits(attempts, { command, exit, ok, output, entry })
  forgetBackground(attempts, command)
  const id = runningId(answer?.part)
  if (id !== undefined) attempts.background.set(id, command)
  return gone.at(-1)?.entry
}

/** Forgets earlier runs of a command in the background: what is told of them later says nothing about the last run. */
const forgetBackground = ({ background }: Attempts, command: string): void => {
  for (const [id, known] of background) if (known === command) background.delete(id)
}

/** How a background command ended. */
interface BackgroundEnd {
  readonly exit: number
  readonly output: string
  readonly isExitHidden?: boolean
}

/** Reads how a background command ended; undefined while it runs. */
const backgroundEnd = (answer: Part): BackgroundEnd | undefined => {
  const output = answerText(answer)
  const code = endForms.map((form) => form.exec(output)?.[1]).find((found) => found !== undefined)
  if (code !== undefined) return { exit: Number(code), output }
  const script = scriptResult(answer)
  if (script?.state !== "completed") return undefined
  const printed = script.outputs.join("\n")
  const exit = printedExit(printed)
  return { exit: exit ?? 0, output: printedOutput(printed), isExitHidden: exit === undefined }
}

/** Adds the end of a background command. `at`: the entry that says so, and the handle of what it printed. */
const addEnd = (
  attempts: Attempts,
  subject: string,
  { exit, isExitHidden, output }: BackgroundEnd,
  at: Pick<CommandRun, "entry" | "handle">
): void => {
  const ok = succeeded(subject, exit, output, isExitHidden)
  const failure = ok === false ? { text: failureText(output), isQuoted: true } : undefined
  addCommand(attempts, { kind: "command", subject, exit, ok, failure, ...at })
}

/**
 * Adds the result of a background command, when this call asked for its output and the answer states an exit code. Returns whether
 * it did: then a failure is the command's, not the call's.
 */
export const addBackgroundEnd = (attempts: Attempts, entry: EntryId, call: Part, answer: PartOfEntry): boolean => {
  const { background } = attempts
  if (background.size === 0) return false
  const args = call.functionCall?.args
  const values = typeof args === "object" && args !== null ? Object.values(args) : []
  const command = values.map((value) => background.get(String(value))).find((known) => known !== undefined)
  const ended = command === undefined ? undefined : backgroundEnd(answer.part)
  if (command === undefined || ended === undefined) return false
  // How a command ends after Ctrl-C of the agent says nothing.
  if (!values.some((value) => String(value).includes("\u0003")))
    addEnd(attempts, command, ended, { entry, handle: answer.handle })
  forgetBackground(attempts, command)
  return true
}

/** Adds the background commands whose end a message tells. */
export const addNotifiedEnds = (attempts: Attempts, entry: EntryId, text: string): void => {
  const { background } = attempts
  if (background.size === 0) return
  for (const { exit, id, summary } of endedCommands(text)) {
    const command = background.get(id)
    if (command !== undefined)
      addEnd(attempts, command, { exit, output: exit === 0 ? "" : summary }, { entry, handle: undefined })
    background.delete(id)
  }
}

/** What later calls did, by which an earlier failure has ended. */
class Later {
  readonly subjects = new Set<string>()
  readonly programs = new Set<string>()
  readonly checks = new Set<CheckKind>()
  readonly files = new Set<string>()
  readonly approved = new Set<string>()

  add({ checks = [], files = [], isApproved = false, ok, programs = [], subject }: Attempt): void {
    // A snapshot has it in short.
    this.subjects.add(subject).add(shortSubject(subject))
    for (const file of files) this.files.add(file)
    if (isApproved) this.approved.add(toolOf(subject))
    if (ok !== true) return
    for (const program of programs) this.programs.add(program)
    for (const check of checks) this.checks.add(check)
  }

  /** Whether another call was made in the place of a refused one, or the work went on without the failed one. */
  ends({ checks = [], programs = [], refusedBy, subject }: Attempt): boolean {
    if (this.subjects.has(subject)) return true
    if (refusedBy !== undefined) return this.approved.has(toolOf(subject))
    // What comes before the last program succeeded, or is run again with it.
    const program = programs.at(-1)
    return (
      (program === undefined ? this.checks.size > 0 : provesSuccess(this.programs, program)) ||
      (checks.length > 0 && checks.every((check) => this.checks.has(check)))
    )
  }
}

const toolOf = (subject: string): string => subject.split(" ", 1)[0] ?? ""

/** The last run of a check. */
export interface CheckRun extends CommandRun {
  readonly command: string
}

/** A call that failed, and that nothing has ended yet. */
export type OpenFailure = Failure & Pick<CommandRun, "entry" | "handle" | "refusedBy">

/** What the calls left. */
export interface Results {
  /** The last runs of commands, the latest last. */
  readonly commands: Map<string, CommandRun>
  readonly checks: Map<CheckKind, CheckRun>
  /** Failures that nothing has ended, by subject. */
  readonly failures: Map<string, OpenFailure>
}

/** Returns what the calls left. `nameOf` names a file as a snapshot does. */
export function* resultsOf({ list }: Attempts, nameOf: (path: string) => string): SlicedWork<Results> {
  const commands = new Map<string, CommandRun>()
  const checks = new Map<CheckKind, CheckRun>()
  for (const attempt of list) {
    const { kind, subject } = attempt
    commands.delete(subject)
    if (kind !== "call") commands.set(subject, attempt)
    for (const check of kind === "no result" ? [] : (attempt.checks ?? [])) {
      checks.delete(check)
      checks.set(check, { ...attempt, command: subject })
    }
    yield
  }
  const later = new Later()
  const open: Array<readonly [subject: string, OpenFailure]> = []
  for (const attempt of [...list].reverse()) {
    yield
    const { entry, failure, handle, kind, refusedBy, subject } = attempt
    if (kind === "no result") continue
    if (failure !== undefined && !later.ends(attempt)) {
      // A tool and its file, or a command that ends with the file.
      const isTouched = [/^\S+ /, /^.* /s].some((head) => later.files.has(nameOf(subject.replace(head, ""))))
      const isQuoted = failure.isQuoted && !isTouched
      if (kind === "command" || !isTouched) open.push([subject, { entry, handle, refusedBy, ...failure, isQuoted }])
    }
    later.add(attempt)
  }
  return { commands, checks, failures: new Map(open.reverse()) }
}
