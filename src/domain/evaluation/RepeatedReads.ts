/** Which lines of files were read before: the one rule for what counts as read again. */

import { withoutLineNumbers } from "../actions/ToolResults.ts"
import type { EntryId } from "../conversation/Conversation.ts"

/** Returns the lines of what a read printed: without line numbers, blank lines and white space at their ends. */
export const linesOf = (text: string): ReadonlyArray<string> =>
  withoutLineNumbers(text)
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")

/** The lines that reads of files printed. Mutable. */
export class LinesRead {
  private readonly files = new Map<string, Set<string>>()

  /** Adds lines of a file. Returns those that were read before. */
  add(path: string, lines: ReadonlyArray<string>): ReadonlyArray<string> {
    const known = this.files.get(path) ?? new Set<string>()
    this.files.set(path, known)
    const repeated = lines.filter((line) => known.has(line))
    for (const line of lines) known.add(line)
    return repeated
  }

  /** Returns the lines that were read before, and forgets them: each counts once. */
  take(path: string, lines: ReadonlyArray<string>): ReadonlyArray<string> {
    const known = this.files.get(path)
    const repeated = lines.filter((line) => known?.has(line))
    for (const line of repeated) known?.delete(line)
    return repeated
  }
}

/** Counts how often files were read, and the tokens of what was read before. Mutable. */
export class RepeatedReads {
  private readonly lines = new LinesRead()
  private readonly files = new Map<
    string,
    { reads: number; tokens: number; repeated: number; readonly entries: Array<EntryId> }
  >()

  /**
   * Adds one output that holds these files. Its tokens are divided evenly among them, and those of repeats are in proportion to
   * the characters of the lines that were read before. The lines of several files cannot be told apart: they count for each.
   */
  add(paths: ReadonlySet<string>, output: { readonly text: string; readonly tokens: number }, entry: EntryId): void {
    if (paths.size === 0) return
    const lines = linesOf(output.text)
    const length = lengthOf(lines)
    let spare = output.tokens % paths.size
    for (const path of paths) {
      const file = this.files.get(path) ?? { reads: 0, tokens: 0, repeated: 0, entries: [] }
      this.files.set(path, file)
      const own = Math.floor(output.tokens / paths.size) + (spare > 0 ? 1 : 0)
      spare -= 1
      file.tokens += own
      file.repeated += length === 0 ? 0 : Math.round((own * lengthOf(this.lines.add(path, lines))) / length)
      file.reads += 1
      file.entries.push(entry)
    }
  }

  /** Returns the files that were read more than once, by the tokens of the repeats. */
  repeated() {
    return [...this.files]
      .flatMap(([path, file]) => (file.reads > 1 ? [{ path, ...file }] : []))
      .sort((a, b) => b.repeated - a.repeated)
  }
}

const lengthOf = (lines: ReadonlyArray<string>): number => lines.reduce((sum, line) => sum + line.length + 1, 0)
