import type { Action, Command } from "../../actions/Action.ts"
import { printedExit, printedOutput, scriptResult } from "../../actions/ExecScript.ts"
import { isDryRun } from "../../actions/ProgramTask.ts"
import { answerText, endedCommands, printedText, runningId } from "../../actions/ToolResults.ts"
import type { Part } from "../../content/Content.ts"
import type { Handle } from "../../content/Handle.ts"
import type { EntryId } from "../../conversation/Conversation.ts"
import type { Refuser } from "../../transcripts/voice/ResultVoice.ts"
import type { PartOfEntry } from "../AnsweredCalls.ts"
import { type CheckKind, checksOf, isMilestone, programsOf, provesSuccess, runPrograms, succeeded } from "./Commands.ts"
import { type Commit, commitsAfter, makesCommit } from "./Commits.ts"
import { isLook } from "./ReadOnlyCommands.ts"
import { decisiveCommand, failureText, reasonText, shortSubject } from "./ToolFailures.ts"

/** The commands of a conversation with their results: checks, commits, failures, and what ended a failure. */

/** The last run of a command. */
export interface CommandRun {
  readonly exit: number | undefined
  /** Whether it succeeded, by its exit code and, behind a pipe, by its output. Undefined: the output does not tell. */
  readonly ok: boolean | undefined
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

/** The last run of a check. */
export interface CheckRun extends Pick<CommandRun, "ok" | "entry" | "handle"> {
  readonly command: string
}

/** A call that failed, and that nothing has ended yet. */
export interface OpenFailure {
  readonly entry: EntryId
  /** The lines that state the error, verbatim; of a refusal, the words of the user or of a hook, if there are any. */
  readonly text: string
  readonly handle: Handle | undefined
  /** Who did not allow the call, where it did not run. */
  readonly refusedBy?: Refuser | undefined
  /** Whether its lines are worth quoting: not where a known exit code is 0, or its file was written since. */
  readonly isQuoted: boolean
  /** The program whose success ends it. Undefined: it runs none, or only some that move and edit files (`sed -i`, `mkdir`). */
  readonly program: string | undefined
  /** The checks that it ran: when all of them have passed, it has ended too. */
  readonly checks: Set<CheckKind>
}

/** The commands so far. */
export interface CommandHistory {
  readonly commands: Map<string, CommandRun>
  readonly checks: Map<CheckKind, CheckRun>
  commits: ReadonlyArray<Commit>
  /** Failures that nothing has ended yet, by subject: a command, or a tool and its file. */
  readonly failures: Map<string, OpenFailure>
  /** Background commands, by the id under which the agent asks for their output. */
  readonly background: Map<string, string>
}

/** Returns a history without commands. */
export const emptyCommands = (): CommandHistory => ({
  commands: new Map(),
  checks: new Map(),
  commits: [],
  failures: new Map(),
  background: new Map()
})

/** How agents answer that a command that ran on has ended (Claude Code, Codex). */
const endForms = [
  /<exit_code>(-?\d+)<\/exit_code>/,
  /^(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)/
]

/** An address on the last line of an output: a longer one would cost the line of its command. */
const lastAddress = /(?:^|\n)(https?:\/\/\S{1,200})\s*$/

/** Follows the commits through a run, and forgets the commands that made those that it took back, which are returned. */
const followCommits = (history: CommandHistory, run: Parameters<typeof commitsAfter>[1]): ReadonlyArray<Commit> => {
  const after = commitsAfter(history.commits, run)
  const gone = history.commits.filter((commit) => !after.includes(commit))
  history.commits = after
  const left = new Set(after.map(({ entry }) => entry))
  const made = new Set(gone.map(({ entry }) => entry).filter((entry) => !left.has(entry)))
  for (const [command, { entry }] of made.size === 0 ? [] : history.commands)
    if (made.has(entry) && makesCommit(command)) history.commands.delete(command)
  return gone
}

/** Records a run of a command. Returns the entry of the last commit that it took back. */
export const recordRun = (
  history: CommandHistory,
  entry: EntryId,
  action: Command,
  answer: PartOfEntry | undefined
): EntryId | undefined => {
  const { command, exit, isExitHidden } = action
  const whole = action.output ?? answerText(answer?.part)
  const output = printedText(whole)
  const ok = succeeded(command, exit, output, isExitHidden)
  const { background, checks, commands } = history
  commands.delete(command)
  const address = ok === true && isMilestone(command) ? lastAddress.exec(output)?.[1] : undefined
  commands.set(command, { exit, ok, address, entry, handle: answer?.handle })
  for (const kind of checksOf(command)) {
    checks.delete(kind)
    checks.set(kind, { command, ok, entry, handle: answer?.handle })
  }
  const gone = followCommits(history, { command, exit, ok, output, entry })
  if (ok === false) {
    recordFailure(history, command, {
      entry,
      text: failureText(whole),
      handle: answer?.handle,
      isQuoted: exit !== 0 || isExitHidden === true
    })
  } else if (ok === true) resolveFailures(history, command)
  forgetBackground(history, command)
  const id = runningId(answer?.part)
  if (id !== undefined) background.set(id, command)
  return gone.at(-1)?.entry
}

/** Records a command that was not allowed, or cancelled with the calls beside it. What is known of its checks and failures stays. */
export const recordNotRun = (
  { commands }: CommandHistory,
  command: string,
  why: Pick<CommandRun, "entry" | "handle" | "refusedBy" | "because" | "isCancelled">
): void => {
  commands.delete(command)
  commands.set(command, { exit: undefined, ok: undefined, ...why })
}

/** Beyond this many open failures the oldest is forgotten: no snapshot shows so many, and each success has to check them all. */
const maxOpenFailures = 400

/** What only looks at something fails without consequences, but for a look at checks that run elsewhere, or at what would be done. */
const isHarmless = (command: string): boolean =>
  isLook(command) &&
  !/\bgh\s+(?:pr\s+checks|run\s+(?:view|watch))\b/.test(command) &&
  !runPrograms(command).some(({ program, words }) => isDryRun(program, words))

/** Records the failure of a command. */
export const recordFailure = (
  { failures }: CommandHistory,
  command: string,
  failure: Omit<OpenFailure, "program" | "checks">
): void => {
  if (isHarmless(command)) return
  addFailure(failures, command, {
    ...failure,
    // What comes before the last program succeeded, or is run again with it.
    program: programsOf(command).at(-1),
    checks: new Set(checksOf(command))
  })
}

const addFailure = (failures: CommandHistory["failures"], subject: string, failure: OpenFailure): void => {
  failures.delete(subject)
  failures.set(subject, failure)
  const [oldest] = failures.keys()
  if (failures.size > maxOpenFailures && oldest !== undefined) failures.delete(oldest)
}

/**
 * A command that succeeds ends the failures of its programs, and a check that passes those of calls without a program: the work
 * went on without them.
 */
const resolveFailures = ({ failures }: CommandHistory, command: string): void => {
  const programs = new Set(programsOf(command))
  const passed = checksOf(command)
  for (const [name, { checks, program, refusedBy }] of failures) {
    const isCheck = checks.size > 0
    for (const kind of passed) checks.delete(kind)
    const isEnded =
      name === command ||
      (program === undefined ? passed.length > 0 : provesSuccess(programs, program)) ||
      (isCheck && checks.size === 0)
    if (isEnded && refusedBy === undefined) failures.delete(name)
  }
}

/** Ends the refusals of a tool's calls: another call was made in their place. */
export const endRefusals = ({ commands, failures }: CommandHistory, tool: string): void => {
  for (const [name, { refusedBy }] of failures)
    if (refusedBy !== undefined && !commands.has(name) && `${name} `.startsWith(`${tool} `)) failures.delete(name)
}

/** Forgets earlier runs of a command in the background: what is told of them later says nothing about the last run. */
const forgetBackground = ({ background }: CommandHistory, command: string): void => {
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

/** Records how a background command ended. `entry` says so, and `handle` is that of what it printed. */
const endBackground = (
  history: CommandHistory,
  command: string,
  { exit, isExitHidden, output }: BackgroundEnd,
  entry: EntryId,
  handle?: Handle
): void => {
  const { checks, commands } = history
  const before = commands.get(command)
  if (before === undefined) return
  const ok = succeeded(command, exit, output, isExitHidden)
  commands.set(command, { ...before, exit, ok })
  for (const [kind, check] of checks) if (check.command === command) checks.set(kind, { ...check, ok })
  if (ok === true) resolveFailures(history, command)
  if (ok === false) recordFailure(history, command, { entry, text: failureText(output), handle, isQuoted: true })
}

/**
 * Records the result of a background command, when this call asked for its output and the answer states an exit code. Returns whether
 * it did: then a failure is the command's, not the call's.
 */
export const recordBackgroundEnd = (
  history: CommandHistory,
  entry: EntryId,
  call: Part,
  answer: PartOfEntry
): boolean => {
  const { background } = history
  if (background.size === 0) return false
  const args = call.functionCall?.args
  const values = typeof args === "object" && args !== null ? Object.values(args) : []
  const command = values.map((value) => background.get(String(value))).find((known) => known !== undefined)
  const ended = command === undefined ? undefined : backgroundEnd(answer.part)
  if (command === undefined || ended === undefined) return false
  // How a command ends after Ctrl-C of the agent says nothing.
  if (!values.some((value) => String(value).includes("\u0003")))
    endBackground(history, command, ended, entry, answer.handle)
  forgetBackground(history, command)
  return true
}

/** Records the background commands whose end a message tells. */
export const recordNotifiedEnds = (history: CommandHistory, entry: EntryId, text: string): void => {
  if (history.background.size === 0) return
  for (const { exit, id, summary } of endedCommands(text)) {
    const command = history.background.get(id)
    if (command === undefined) continue
    endBackground(history, command, { exit, output: exit === 0 ? "" : summary }, entry)
    history.background.delete(id)
  }
}

/** The result of a call: what it was about, what it did, and whether it failed. */
interface CallResult {
  readonly entry: EntryId
  readonly subject: string
  readonly actions: ReadonlyArray<Action>
  /** Whether its tool only reads, searches or follows what runs. */
  readonly looks: boolean
  readonly answer: PartOfEntry
  readonly failed: boolean
  readonly refusedBy: Refuser | undefined
  /** Why the user or a hook did not allow it, in their words; empty when they did not say, or allowed it. */
  readonly reason: string
  /** Names a file as an earlier snapshot does. */
  readonly nameOf: (path: string) => string
}

/** Records the failure of a call, or what its success ends: failures of its own subject, and of other calls on the same file. */
export const recordResult = (
  history: CommandHistory,
  { actions, answer: { handle, part }, entry, failed, looks, nameOf, reason, refusedBy, subject }: CallResult
): void => {
  const { commands, failures } = history
  // A run whose output tells of a failure has been recorded, whatever its exit code is.
  if (commands.has(subject) && failures.get(subject)?.entry === entry) return
  failures.delete(subject)
  // A snapshot has it in short.
  failures.delete(shortSubject(subject))
  const isRefusal = refusedBy !== undefined
  if (failed || isRefusal) {
    const command = decisiveCommand(actions)
    const text = isRefusal ? reasonText(reason) : failureText(command?.output ?? answerText(part))
    const failure = { entry, text, handle, isQuoted: true, refusedBy }
    // A command that was stopped or denied has no exit code, and still a later success ends its failure.
    if (command !== undefined) recordFailure(history, subject, failure)
    else if (!looks || isRefusal) addFailure(failures, subject, { ...failure, program: undefined, checks: new Set() })
    return
  }
  for (const action of actions) {
    if (!("path" in action)) continue
    const name = nameOf(action.path)
    const file = name.replace(/^.*[\\/]/, "")
    for (const [other, failure] of failures) {
      // A tool and its file, or a command that ends with the file.
      const isOf = (head: RegExp) => nameOf(other.replace(head, "")) === name
      if (!other.endsWith(file) || !(isOf(/^\S+ /) || isOf(/^.* /s))) continue
      if (commands.has(other)) failures.set(other, { ...failure, isQuoted: false })
      else failures.delete(other)
    }
  }
}
