/**
 * Lists the commands that left something: open failures, refusals and what was published first, then the others that did not fail. What only
 * looked left nothing, a failure that a success ended is no state, and the last result of each check has its own line.
 */

import { firstUnits } from "../../text/Bytes.ts"
import { shortLine } from "../../text/OneLine.ts"
import { refusers } from "../../transcripts/voice/ResultVoice.ts"
import type { CommandRun } from "../evidence/Attempts.ts"
import { checksOf, isMilestone } from "../evidence/Commands.ts"
import { isLook, leavesMore, withoutView } from "../evidence/ReadOnlyCommands.ts"
import { type SnapshotItem, statement } from "../Snapshot.ts"
import { fitting, type ListedLine, listedLine, newestFirst, ofEntry } from "./Budget.ts"

/** An argument that is a here-document: `-m "$(cat <<'EOF' …)"`. Its first line tells what the command is about. */
const argumentText = /\$\(cat <<-?\s*['"]?(\w+)['"]?\n\s*([^\n]*)\n[^]*?(?:\n[^\S\n]*\1\s*\)|$(?![^]))/g

/** A longer command is clipped at the end of a word. */
const maxChars = 200

/** Returns a command on one line, without its here-documents. */
const oneLine = (command: string): string =>
  // A here-document is input; what it says stands in the file or the commit that it became.
  command
    .replace(argumentText, "$2…")
    // A title beside it says what it is about.
    .replace(/ --body "[^"\n]*…"/g, (body) => (/ (?:--title|-t)[ =]/.test(command) ? "" : body))
    .replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…")
    .replace(/\s+/g, " ")
    .trim()

/** Returns a command on one line, without filters of its output, such as `| tail -20`. */
const wholeLine = (command: string): string => withoutView(oneLine(command))

const clippedCommand = (line: string): string =>
  line.length <= maxChars ? line : `${firstUnits(line, maxChars).replace(/\s+\S*$/, "")}…`

/** Returns a command as it ran: on one line, with the filters of its output, clipped. */
export const ranLine = (command: string): string => clippedCommand(oneLine(command))

/** Returns a command as a snapshot shows it: on one line, clipped. */
export const commandLine = (command: string): string => clippedCommand(wholeLine(command))

/** Returns how a command ended: behind a pipe, a code of 0 is that of the last program, and says nothing where the output does not tell. */
export const exitText = (exit: number | undefined, ok: boolean | undefined): string => {
  if (exit !== undefined && (exit !== 0 || ok === true)) return `exit ${exit}`
  return ok === false ? "failed" : "no clear result"
}

const resultOf = ({ because = "", exit, isCancelled, ok, refusedBy }: CommandRun, isOpen: boolean): string => {
  if (refusedBy !== undefined)
    return `refused by ${refusers[refusedBy]}, not run${because === "" ? "" : `: ${shortLine(because, maxChars)}`}`
  if (isCancelled === true) return "cancelled, may have run in part"
  // It was stopped, or blocked before it ran.
  return ok === undefined && isOpen ? "did not succeed" : exitText(exit, ok)
}

const resultText = (run: CommandRun, isOpen: boolean): string => {
  if (run.ok !== true) return ` → ${resultOf(run, isOpen)} (${ofEntry(run.entry, run.handle)})`
  return run.address === undefined ? "" : ` → ${run.address}`
}

/** Above commands of which some have no result beside them, and above those that all have one. */
const headings = {
  some: "commands, latest first; they succeeded if no result stands beside:",
  all: "commands, latest first:"
}

/** The line of a command in the list. */
interface CommandLine extends ListedLine {
  /** Whether it stands for a success without a word of it. */
  readonly isSilent: boolean
  /** Whether it comes before the others: what failed, was refused or was published. */
  readonly isTelling: boolean
}

/** Returns the lines of the commands that left something, in the order in which a snapshot lists them. */
const linesOf = (
  commands: ReadonlyMap<string, CommandRun>,
  short: (text: string) => string,
  isOpen: (command: string) => boolean
): ReadonlyArray<CommandLine> => {
  const seen = new Set<string>()
  const shown = newestFirst(commands)
    .flatMap(([command, run]) => {
      const line = wholeLine(short(command))
      const isOutdated = seen.has(line)
      seen.add(line)
      const hasEnded = run.ok === false && !isOpen(command)
      if (isOutdated || hasEnded || isLook(command)) return []
      const isTelling = run.refusedBy !== undefined || run.ok === false || isMilestone(command)
      if (!isTelling && !(checksOf(command).length === 0 && leavesMore(command))) return []
      const listed = listedLine(`${clippedCommand(line)}${resultText(run, isOpen(command))}`)
      return [{ ...listed, isSilent: run.ok === true, isTelling }]
    })
    .sort((a, b) => Number(b.isTelling) - Number(a.isTelling))
  // Clipped, several commands may be the same line.
  return [...new Map(shown.map((line) => [line.text, line])).values()]
}

/** Returns a function that lists commands within a budget in tokens. `isOpen`: no success ended the failure of a command. */
export const commandItems = (
  commands: ReadonlyMap<string, CommandRun>,
  short: (text: string) => string,
  isOpen: (command: string) => boolean
): ((budget: number) => ReadonlyArray<SnapshotItem>) => {
  const lines = linesOf(commands, short, isOpen)
  return (budget) => {
    const shown = fitting(lines, budget - listedLine(headings.some).tokens, ({ tokens }) => tokens)
    const heading = shown.some(({ isSilent }) => isSilent) ? headings.some : headings.all
    const texts = shown.map(({ text }) => text)
    return texts.length === 0 ? [] : [statement("commands", heading, texts)]
  }
}
