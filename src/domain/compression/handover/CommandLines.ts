import { firstUnits } from "../../text/Bytes.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { CommandRun } from "../evidence/CommandHistory.ts"
import { checksOf, isMilestone } from "../evidence/Commands.ts"
import { isLook, withoutView } from "../evidence/ReadOnlyCommands.ts"
import { type SnapshotItem, statement } from "../Snapshot.ts"
import { newestFirst, ofEntry } from "./Budget.ts"

/**
 * Lists the commands that left something: open failures, refusals and what was published first, then the others that did not fail. What only
 * looked left nothing, a failure that a success ended is no state, and the last result of each check has its own line.
 */

/** An argument that is a here-document: `-m "$(cat <<'EOF' …)"`. Its first line tells what the command is about. */
const argumentText = /\$\(cat <<-?\s*['"]?(\w+)['"]?\n\s*([^\n]*)\n[^]*?(?:\n\s*\1\s*\)|$(?![^]))/g

/** A longer command is clipped at the end of a word. */
const maxChars = 200

/** Returns a command on one line, without its here-documents and filters of its output, such as `| tail -20`. */
const wholeLine = (command: string): string => {
  // A here-document is input; what it says stands in the file or the commit that it became.
  const own = command.replace(argumentText, "$2…").replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…")
  return withoutView(own.replace(/\s+/g, " ").trim())
}

const clippedCommand = (line: string): string =>
  line.length <= maxChars ? line : `${firstUnits(line, maxChars).replace(/\s+\S*$/, "")}…`

/** Returns a command as a snapshot shows it: on one line, clipped. */
export const commandLine = (command: string): string => clippedCommand(wholeLine(command))

const resultText = ({ entry, exit, handle, isRefused, ok }: CommandRun): string => {
  if (ok === true) return ""
  const shown =
    isRefused === true
      ? "refused by the user, not run"
      : exit === undefined
        ? "no exit code"
        : exit === 0
          ? ok === undefined
            ? "no clear result"
            : "failed"
          : `exit ${exit}`
  return ` → ${shown} (${ofEntry(entry, handle)})`
}

const heading = "commands, latest first; they succeeded where no exit code stands:"

/** Tokens of a line's indent and end. */
const lineTokens = 2

/**
 * Returns the lines of the commands in the order in which a snapshot lists them. `isOpen`: no success ended the failure of a
 * command.
 */
const linesOf = (
  commands: ReadonlyMap<string, CommandRun>,
  short: (text: string) => string,
  isOpen: (command: string) => boolean
): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const shown = newestFirst(commands)
    .flatMap(([command, run]) => {
      const line = wholeLine(short(command))
      const isOutdated = seen.has(line)
      seen.add(line)
      if (isOutdated || isLook(command)) return []
      const isTelling = run.isRefused === true || (run.ok === false && isOpen(command)) || isMilestone(command)
      const isDone = run.ok !== false && checksOf(command).length === 0
      return (isTelling && (run.ok !== false || isOpen(command))) || isDone
        ? [{ isTelling, line: `${clippedCommand(line)}${resultText(run)}` }]
        : []
    })
    .sort((a, b) => Number(b.isTelling) - Number(a.isTelling))
  return [...new Set(shown.map(({ line }) => line))]
}

/** Returns a function that lists commands within a budget in tokens. */
export const commandItems = (
  ...evidence: Parameters<typeof linesOf>
): ((budget: number) => ReadonlyArray<SnapshotItem>) => {
  const lines = linesOf(...evidence).map((line) => ({ line, size: estimateText(line) + lineTokens }))
  return (budget) => {
    let left = budget - estimateText(heading) - lineTokens
    const shown = lines.flatMap(({ line, size }) => {
      if (size > left) return []
      left -= size
      return [line]
    })
    return shown.length === 0 ? [] : [statement("commands", heading, shown)]
  }
}
