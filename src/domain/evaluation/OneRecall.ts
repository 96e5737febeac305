import type { AnchorKind } from "../compression/Anchors.ts"
import { mentions } from "../content/Handle.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Compaction, Replacement } from "./Measure.ts"
import { entryText } from "./RecordedNames.ts"
import { relativeTo, SearchableText, wordAt } from "./WholeWords.ts"

/** Decides what an agent can find with one recall: of a handle that stands in its context, or of a pattern of words there. */

/** A recall shows at most this many matching lines in all; a word that more lines have is not searched for. */
const maxLines = 20
/** A recall shows at most this many matching lines of one message. */
const maxLinesPerMessage = 3
/** Longer lines are shown in pieces. */
const maxLineChars = 240
/** The pattern may be an alternation of this many words. */
const maxWords = 4

const word = /[A-Za-z_][\w-]{3,}/g

/** Returns texts without the line numbers that tools put before lines. */
export const withoutLineNumbers = (text: string): string => text.replace(/^ *\d+(?:→|\t)/gm, "")

/** Everything that was dropped, line by line, with paths in relative form. */
export class DroppedText {
  readonly text: string
  /** By line: the index in `text` at which it begins. */
  private readonly starts: ReadonlyArray<number>
  /** By line: the index of its message in the log. */
  private readonly messages: ReadonlyArray<number>
  private readonly linesOfWords = new Map<string, ReadonlyArray<number>>()

  private constructor(text: string, starts: ReadonlyArray<number>, messages: ReadonlyArray<number>) {
    this.text = text
    this.starts = starts
    this.messages = messages
  }

  /** Collects the texts of everything that was recorded up to a compaction. */
  private static *of({ log, roots }: Compaction): SlicedWork<DroppedText> {
    const relative = relativeTo(roots)
    const lines: Array<string> = []
    const messages: Array<number> = []
    for (const [message, entry] of log.entries()) {
      const text = withoutLineNumbers(relative(entryText(entry)))
      for (const line of text.split("\n")) {
        for (let from = 0; from === 0 || from < line.length; from += maxLineChars) {
          lines.push(line.slice(from, from + maxLineChars))
          messages.push(message)
        }
      }
      yield text.length + 100
    }
    const starts: Array<number> = []
    let at = 0
    for (const line of lines) {
      starts.push(at)
      at += line.length + 1
    }
    return new DroppedText(lines.join("\n"), starts, messages)
  }

  /** Collects them when they are needed first: most of what an agent needs stands in its context. */
  static when(compaction: Compaction): () => SlicedWork<DroppedText> {
    let collected: DroppedText | undefined
    return function* () {
      collected ??= yield* DroppedText.of(compaction)
      return collected
    }
  }

  private lineAt(place: number): number {
    let low = 0
    let high = this.starts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.starts[middle] ?? 0) <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Returns the lines from `first` to `last`, both included. */
  private lines(first: number, last: number): string {
    return this.text.slice(this.starts[Math.max(0, first)] ?? 0, (this.starts[last + 1] ?? this.text.length + 1) - 1)
  }

  /** Returns the lines that have a word: all of them, or one more than an answer shows. */
  private *linesWith(name: string): SlicedWork<ReadonlyArray<number>> {
    const known = this.linesOfWords.get(name)
    if (known !== undefined) return known
    const lines: Array<number> = []
    for (let at = wordAt(this.text, name, "symbol", 0); at >= 0 && lines.length <= maxLines;) {
      const line = this.lineAt(at)
      lines.push(line)
      const next = this.starts[line + 1]
      at = next === undefined ? -1 : wordAt(this.text, name, "symbol", next)
    }
    this.linesOfWords.set(name, lines)
    yield this.text.length / 8
    return lines
  }

  /** Whether a pattern of this word shows its lines in a message: few enough lines have it, there and in all. */
  private *isPattern(name: string, message: number | undefined): SlicedWork<boolean> {
    const lines = yield* this.linesWith(name)
    const own = lines.filter((line) => this.messages[line] === message)
    return lines.length <= maxLines && own.length <= maxLinesPerMessage
  }

  /**
   * Whether the context has a word that a recall could search for and whose result shows this text. A result shows each matching
   * line with the line before and after it, so the word has to be at most one line away from every line of the text.
   * `lineCount`: number of lines of the text, at most 3. `kind` undefined: the text is searched literally.
   */
  *isFound(text: string, kind: AnchorKind | undefined, context: SearchableText, lineCount = 1): SlicedWork<boolean> {
    const next = (from: number) =>
      kind === undefined ? this.text.indexOf(text, from) : wordAt(this.text, text, kind, from)
    for (let at = next(0); at >= 0;) {
      const line = this.lineAt(at)
      const reach = 2 - lineCount
      for (const [candidate] of this.lines(line - reach, line + lineCount - 1 + reach).matchAll(word)) {
        if (context.has(candidate, "symbol") && (yield* this.isPattern(candidate, this.messages[line]))) return true
      }
      yield this.text.length / 8
      at = next(this.starts[line + 1] ?? this.text.length)
    }
    return false
  }
}

/** What one recall can show from one context. */
export class OneRecall {
  private contents: ReadonlyArray<SearchableText> | undefined
  private readonly dropped: () => SlicedWork<DroppedText>
  private readonly replacement: Replacement
  private readonly relative: (text: string) => string

  constructor(dropped: () => SlicedWork<DroppedText>, replacement: Replacement, roots: ReadonlyArray<string>) {
    this.dropped = dropped
    this.replacement = replacement
    this.relative = relativeTo(roots)
  }

  /** The texts behind the handles that stand in the context. */
  private *behindHandles(): SlicedWork<ReadonlyArray<SearchableText>> {
    if (this.contents !== undefined) return this.contents
    const contents: Array<SearchableText> = []
    for (const handle of new Set(mentions(this.replacement.context.original))) {
      const text = this.replacement.recall(handle)
      if (text === undefined) continue
      contents.push(new SearchableText(withoutLineNumbers(text), this.relative))
      yield text.length
    }
    this.contents = contents
    return contents
  }

  /** Whether one recall shows all of these names. */
  *shows(names: ReadonlyArray<readonly [name: string, kind: AnchorKind]>): SlicedWork<boolean> {
    for (const content of yield* this.behindHandles()) {
      yield content.text.length / 8
      if (names.every(([name, kind]) => content.has(name, kind))) return true
    }
    if (names.length > maxWords) return false
    const dropped = yield* this.dropped()
    for (const [name, kind] of names) {
      if (!(yield* dropped.isFound(name, kind, this.replacement.context))) return false
    }
    return true
  }

  /** Whether one recall shows this text, to the letter. */
  *showsText(text: string): SlicedWork<boolean> {
    const searched = this.relative(text)
    for (const content of yield* this.behindHandles()) {
      yield content.text.length / 8
      if (content.text.includes(searched)) return true
    }
    const lineCount = searched.split("\n").length
    if (lineCount > 3) return false
    const dropped = yield* this.dropped()
    return yield* dropped.isFound(searched, undefined, this.replacement.context, lineCount)
  }
}
