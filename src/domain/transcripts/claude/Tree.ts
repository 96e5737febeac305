/** The records of a transcript as a tree, and the conversation on the way from its root to its latest message. */

import { type Problem, recordProblem } from "../Problem.ts"
import { type Line, byTime, isBefore, firstBy } from "./Line.ts"

/** The tree of records read so far. */
export class Tree {
  readonly lines = new Map<string, Line>()
  /** The lines with a message, in the order of the file. */
  readonly messages: Array<Line> = []
  /** The boundaries of compactions that kept messages in their places. */
  private readonly keeping: Array<Line> = []
  private readonly keptBy = new Map<Line, ReadonlySet<string>>()
  /** The messages of the conversation and of subagents by time, once all are read. */
  private inOrder: ReadonlyArray<ReadonlyArray<Line>> | undefined
  /** The line that the user went back to, as long as no message of the conversation follows. */
  private pinned: string | undefined
  private readonly last: Record<"main" | "side", Line | undefined> = { main: undefined, side: undefined }

  /** Returns the message line before the next record. */
  previous(sidechain: boolean): Line | undefined {
    return this.last[sidechain ? "side" : "main"]
  }

  /** Returns a line with its place in the conversation: the last ones that a compaction kept can be stored after it, on its summary. */
  private withPlace(line: Line): Line {
    for (const { boundary } of this.keeping) {
      const { anchor, uuids = [] } = boundary?.kept ?? {}
      const before = line.parent === anchor ? this.lines.get(uuids[uuids.indexOf(line.uuid) - 1] ?? "") : undefined
      if (before !== undefined && before.parent !== anchor) return { ...line, parent: before.uuid }
    }
    return line
  }

  /** Adds a line. */
  add(read: Line): void {
    const line = this.withPlace(read)
    this.lines.set(line.uuid, line)
    if (!line.sidechain) this.pinned = undefined
    if (line.boundary?.kept !== undefined) this.keeping.push(line)
    if (line.message === undefined) return
    this.messages.push(line)
    this.last[line.sidechain ? "side" : "main"] = line
  }

  /** Notes where the session goes on. A place that is named again stays explicit. */
  pin(leaf: string, isExplicit: boolean): void {
    this.pinned = isExplicit || this.pinned === leaf ? leaf : undefined
  }

  /**
   * The place that the user went back to; else the latest message that no other follows, which need not be the last in the file. A
   * file with only a sidechain is a subagent's own transcript.
   */
  leaf(): Line | undefined {
    const pinned = this.lines.get(this.pinned ?? "")
    if (pinned !== undefined) return pinned
    const sidechain = this.last.main === undefined
    const own = this.messages.filter((line) => line.sidechain === sidechain)
    const followed = new Set(own.map((line) => this.messageBefore(line)))
    const leaves = own.filter((line) => !followed.has(line))
    return firstBy(leaves.length === 0 ? own : leaves, (one, other) => byTime(other, one))
  }

  /** Returns the nearest message on the way from a line to its root. */
  private messageBefore(line: Line): Line | undefined {
    const seen = new Set([line])
    let before = this.before(line).line
    while (before !== undefined && before.message === undefined && !seen.has(before)) {
      seen.add(before)
      before = this.before(before).line
    }
    return before
  }

  /**
   * Returns the line before this one in the conversation. An unknown parent means that lines are missing from the file; the
   * nearest earlier message continues the chain, so that the messages before the gap are kept. A root ends the chain, unless
   * a compaction began a new one.
   */
  before(line: Line): { readonly line: Line | undefined; readonly guessed: boolean } {
    const compaction = line.boundary !== undefined || line.message?.kind === "summary"
    const summary = compaction ? undefined : this.summaryBefore(line)
    if (summary !== undefined) return { line: summary, guessed: false }
    if (line.parent === null && !compaction) return { line: undefined, guessed: false }
    const isFirst = line.boundary?.kept !== undefined && this.kept(line).size === 0
    if (isFirst) return { line: this.earlier(line), guessed: true }
    const known = this.lines.get(line.parent ?? line.logicalParent ?? line.boundary?.kept?.tail ?? "")
    return known === undefined ? { line: this.earlier(line), guessed: true } : { line: known, guessed: false }
  }

  /**
   * Returns the message before a line whose parent is not in the file: the one that stands before it, unless that is later or follows
   * from it; else the last one before it in time.
   */
  private earlier(line: Line): Line | undefined {
    const { at, previous } = line
    if (previous === undefined || (isBefore(previous, line) && !this.follows(previous, line))) return previous
    this.inOrder ??= [false, true].map((side) => this.messages.filter((one) => one.sidechain === side).sort(byTime))
    const own = this.inOrder[line.sidechain ? 1 : 0] ?? []
    const last = at === undefined ? -1 : own.findLastIndex((one) => isBefore(one, line) && !this.follows(one, line))
    return own[last]
  }

  /** Whether a line stands on the way from another one to its root. */
  private follows(line: Line, root: Line): boolean {
    const seen = new Set<Line>()
    let above: Line | undefined = line
    while (above !== undefined && above !== root && !seen.has(above)) {
      seen.add(above)
      above = this.lines.get(above.parent ?? "")
    }
    return above === root
  }

  /** Returns the summary of a compaction that this line follows although its parent is a message that the compaction kept. */
  private summaryBefore(line: Line): Line | undefined {
    const parent = this.lines.get(line.parent ?? "")
    const boundary =
      parent === undefined
        ? undefined
        : this.keeping.findLast(
            (one) => isBefore(one, line) && isBefore(parent, one) && this.kept(one).has(parent.uuid)
          )
    return boundary === undefined
      ? undefined
      : this.messages.find(
          ({ message, parent: above, uuid }) =>
            message?.kind === "summary" && (uuid === boundary.boundary?.kept?.anchor || above === boundary.uuid)
        )
  }

  /** Returns the uuids of the lines that a compaction kept in their places; none when it begins the file, and they stand after it. */
  kept(boundary: Line): ReadonlySet<string> {
    const known = this.keptBy.get(boundary)
    if (known !== undefined) return known
    const segment = boundary.boundary?.kept
    const way = new Set<string>()
    let line = this.lines.get(segment?.tail ?? "")
    while (line !== undefined && line.uuid !== segment?.head && !way.has(line.uuid)) {
      way.add(line.uuid)
      line = this.lines.get(line.parent ?? "")
    }
    const isInPlace = line !== undefined && (line.parent === null || this.lines.has(line.parent ?? ""))
    const kept = new Set(isInPlace && segment !== undefined ? [segment.head, ...way, ...segment.uuids] : [])
    this.keptBy.set(boundary, kept)
    return kept
  }

  /** Returns the conversation from its first line to the leaf. A lenient chain goes over a circle to the line before it. */
  chain(leaf: Line | undefined, isLenient: boolean): ReadonlyArray<Line> | Problem {
    const seen = new Set<Line>()
    let isMended = false
    let isGuessed = false
    for (let line = leaf; line !== undefined;) {
      seen.add(line)
      const next = this.before(line)
      isGuessed ||= next.guessed
      if (next.line !== undefined && seen.has(next.line)) {
        if (isLenient) {
          isMended = true
          do line = line.previous
          while (line !== undefined && seen.has(line))
          continue
        }
        if (isGuessed) break
        return recordProblem(
          "",
          "its parentUuid leads back to itself; expected a chain that ends at a root",
          line.number
        )
      }
      line = next.line
    }
    const chain = [...seen].reverse()
    return isMended ? chain.sort((one, other) => one.number - other.number) : chain
  }
}
