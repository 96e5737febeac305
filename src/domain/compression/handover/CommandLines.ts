import { firstUnits } from "../../text/Bytes.ts"
import { estimateText } from "../../tokens/Tokens.ts"
import type { CommandRun } from "../evidence/CommandHistory.ts"
import { isMilestone } from "../evidence/Commands.ts"
import { isLook, withoutView } from "../evidence/ReadOnlyCommands.ts"
import { type SnapshotItem, statement } from "../Snapshot.ts"
import { newestFirst, ofEntry } from "./Budget.ts"

/** Lists commands with their last results: each one clipped to what tells it apart, so that many fit. */

/** A command as a snapshot lists it. */
export interface ListedCommand {
  /** The command on one line, without its here-document and without filters of its output, such as `| tail -20`. */
  readonly same: string
  /** Length of the shortest beginning that no other listed command has, at most 160. */
  readonly distinct: number
  /** Returns the result as it stands after the command; empty for a success. `isShort`: without the handle. */
  readonly result: (isShort: boolean) => string
  /** Its failure is open, or it published work or closed an item. */
  readonly isTelling: boolean
}

/** An argument that is a here-document: `-m "$(cat <<'EOF' …)"`. Its first line tells what the command is about. */
const argumentText = /\$\(cat <<-?\s*['"]?(\w+)['"]?\n\s*([^\n]*)\n[^]*?(?:\n\s*\1\s*\)|$(?![^]))/g

/** A here-document is input; what it says stands in the file or the commit that it became. */
const withoutInput = (command: string): string =>
  command.replace(argumentText, "$2…").replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…")

/** A command has to be this long to be told from others by its beginning; a reader does not look for more. */
const maxDistinctChars = 160
const maxTextChars = 400

const resultText = ({ entry, exit, handle, isRefused, ok }: CommandRun, isShort: boolean): string => {
  if (ok === true) return ""
  // Behind a pipe, the exit code is that of another program.
  const hidden = ok === undefined ? "no clear result" : "failed"
  const shown =
    isRefused === true
      ? "refused by the user, not run"
      : exit === undefined
        ? "no exit code"
        : exit === 0
          ? hidden
          : `exit ${exit}`
  return ` → ${shown} (${isShort ? entry : ofEntry(entry, handle)})`
}

const sharedStart = (one: string, other: string): number => {
  const end = Math.min(one.length, other.length)
  let at = 0
  while (at < end && one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  return at
}

/** Returns, by text, the length of its shortest beginning that no other text has, at most `maxDistinctChars`. */
const distinctions = (texts: Iterable<string>): ReadonlyMap<string, number> => {
  const sorted = [...new Set(texts)].sort()
  const shared = sorted.map((text, index) => sharedStart(text, sorted[index + 1] ?? ""))
  return new Map(
    sorted.map((text, index) => [
      text,
      Math.min(maxDistinctChars, Math.max(shared[index] ?? 0, index === 0 ? 0 : (shared[index - 1] ?? 0)) + 1)
    ])
  )
}

/**
 * Returns the commands in the order in which a snapshot lists them, without those that only looked: what they showed is behind its handle.
 * `isOpen`: no success ended the failure of a command.
 */
export const listedCommands = (
  commands: ReadonlyMap<string, CommandRun>,
  short: (text: string) => string,
  isOpen: (command: string) => boolean
): ReadonlyArray<ListedCommand> => {
  const runs = newestFirst(commands)
    .filter(([command]) => !isLook(command))
    .map(([command, run]) => {
      const text = firstUnits(withoutInput(short(command)).replace(/\s+/g, " ").trim(), maxTextChars)
      return { command, run, same: withoutView(text) }
    })
  const distinct = distinctions(runs.map(({ same }) => same))
  const seen = new Set<string>()
  return runs
    .filter(({ same }) => {
      const isOutdated = seen.has(same)
      seen.add(same)
      return !isOutdated
    })
    .map(({ command, run, same }): ListedCommand => ({
      same,
      distinct: distinct.get(same) ?? 0,
      result: (isShort) => resultText(run, isShort),
      isTelling: run.isRefused === true || (run.ok === false && isOpen(command)) || isMilestone(command)
    }))
    .sort((a, b) => Number(b.isTelling) - Number(a.isTelling))
}

const heading = "commands, latest first; they succeeded where no exit code stands:"

/** Lengths at which commands are clipped, the first at which all fit. */
const lengths = [160, 120, 96, 72, 56]
const shortest = 44
/** Below it, failures are named by their entries alone. */
const minHandleLength = 56
/** Tokens of a line's indent and end. */
const lineTokens = 2

/** A clipped command ends at the end of a word, when there is one so near. */
const maxWordChars = 12

const lineOf = ({ distinct, result: resultOf, same }: ListedCommand, length: number): string => {
  const result = resultOf(length < minHandleLength)
  const end = /\s/.exec(same.slice(Math.max(length, distinct)))?.index ?? maxWordChars
  const chars = Math.max(length, distinct) + (end < maxWordChars ? end : 0)
  return `${same.length <= chars + 2 ? same : `${firstUnits(same, chars).trimEnd()}…`}${result}`
}

/** A line of the list, and its tokens. */
interface SizedLine {
  readonly line: string
  readonly size: number
}

/** Returns a function that lists commands within a budget in tokens: all of them, as long as they may be, or the first ones. */
export const commandItems = (
  commands: ReadonlyArray<ListedCommand>
): ((budget: number) => ReadonlyArray<SnapshotItem>) => {
  const made = new Map<number, { readonly lines: ReadonlyArray<SizedLine>; readonly need: number }>()
  const linesAt = (length: number) => {
    const known = made.get(length)
    if (known !== undefined) return known
    const lines = commands.map((command) => {
      const line = lineOf(command, length)
      return { line, size: estimateText(line) + lineTokens }
    })
    const need = lines.reduce((sum, { size }) => sum + size, 0)
    made.set(length, { lines, need })
    return { lines, need }
  }
  return (budget) => {
    let left = budget - estimateText(heading) - lineTokens
    const length = lengths.find((each) => linesAt(each).need <= left) ?? shortest
    const shown = new Set<string>()
    for (const { line, size } of linesAt(length).lines) {
      if (size > left || shown.has(line)) continue
      left -= size
      shown.add(line)
    }
    return shown.size === 0 ? [] : [statement("commands", heading, [...shown])]
  }
}
