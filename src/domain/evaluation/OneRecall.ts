/** Decides what an agent can find with one recall: of a handle that stands in its context, or of a pattern of words there. */

import { withoutLineNumbers } from "../actions/ToolResults.ts"
import { type AnchorKind, entryText } from "../compression/Anchors.ts"
import { payload } from "../content/Content.ts"
import { type Handle, mentions } from "../content/Handle.ts"
import { allEntries } from "../conversation/Branches.ts"
import { type Entry, sourceOf } from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { relativeTo, SearchableText, wordAt } from "./WholeWords.ts"

/** What an agent has after a compaction. */
export interface Replacement {
  /** The summary alone. */
  readonly snapshot: SearchableText
  /** Everything in the window: the summary, and the messages that were kept. */
  readonly context: SearchableText
  /** Returns the text that one recall of a handle shows; undefined for a handle that does not exist. */
  readonly recall: (handle: Handle) => string | undefined
}

/** One recall shows at most 10,000 tokens. */
export const maxRecallChars = 40_000

/**
 * Returns what one recall of a handle shows in a session: a part, or the beginning of what a compaction dropped. `dropped` is
 * what a compaction that the session does not hold yet dropped.
 */
export const recaller = (
  { conversation, ranges }: Pick<Session, "conversation" | "ranges">,
  dropped?: { readonly handle: Handle; readonly entries: ReadonlyArray<Entry> }
): Replacement["recall"] => {
  const contents = new Map<Handle, () => string>()
  for (const entry of allEntries(conversation)) {
    for (const [index, handle] of entry.handles.entries()) contents.set(handle, () => partText(entry, index))
  }
  for (const range of PersistentList.toArray(ranges)) contents.set(range.handle, () => rangeText(range.entries))
  if (dropped !== undefined) contents.set(dropped.handle, () => rangeText(dropped.entries))
  return (handle) => contents.get(handle)?.().slice(0, maxRecallChars)
}

/** A recall shows calls as JSON; a reader takes the escapes in it for what they stand for. */
const partText = (entry: Entry, index: number): string => {
  const part = entry.content.parts[index]
  if (part === undefined) return ""
  const { form, text } = payload(part, sourceOf(entry, index))
  return form === "json" ? entryText({ ...entry, content: { ...entry.content, parts: [part] } }) : text
}

const rangeText = (range: ReadonlyArray<Entry>): string => {
  let text = ""
  for (const entry of range) {
    if (text.length >= maxRecallChars) break
    text += `${entryText(entry)}\n`
  }
  return text
}

// Decides what a recall of a pattern finds: the recorded messages, line by line.

/** A recall shows at most this many matching lines in all; a word that more lines have is not searched for. */
const maxLines = 20
/** A recall shows at most this many matching lines of one message. */
const maxLinesPerMessage = 3
/** Longer lines are shown in pieces. */
const maxLineChars = 240

const word = /[A-Za-z_][\w-]{3,}/g

/** Everything that was dropped, line by line, with paths in relative form. Messages are added before the first search. */
export class DroppedText {
  private readonly relative: (text: string) => string
  private readonly texts: Array<string> = []
  /** The characters of `texts`, with a line end after each. */
  private chars = 0
  private joined: string | undefined
  /** By line: the index in `text` at which it begins. */
  private readonly starts: Array<number> = []
  /** By line: the index of its message in the log. */
  private readonly messages: Array<number> = []
  private readonly linesOfWords = new Map<string, ReadonlyArray<number>>()

  constructor(roots: ReadonlyArray<string>) {
    this.relative = relativeTo(roots)
  }

  /** Adds the text of the next message of the log. */
  add(text: string): void {
    const lines: Array<string> = []
    for (const line of withoutLineNumbers(this.relative(text)).split("\n")) {
      for (let from = 0; from === 0 || from < line.length; from += maxLineChars) {
        const shown = line.slice(from, from + maxLineChars)
        lines.push(shown)
        this.starts.push(this.chars)
        this.messages.push(this.texts.length)
        this.chars += shown.length + 1
      }
    }
    this.texts.push(lines.join("\n"))
  }

  private get text(): string {
    return (this.joined ??= this.texts.join("\n"))
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
  private linesWith(name: string): ReadonlyArray<number> {
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
    return lines
  }

  /** Whether a pattern of this word shows its lines in a message: few enough lines have it, there and in all. */
  private isPattern(name: string, message: number | undefined): boolean {
    const lines = this.linesWith(name)
    const own = lines.filter((line) => this.messages[line] === message)
    return lines.length <= maxLines && own.length <= maxLinesPerMessage
  }

  /**
   * Whether the context has a word that a recall could search for and whose result shows this text. A result shows each matching
   * line with the line before and after it, so the word has to be at most one line away from every line of the text.
   * `lineCount`: number of lines of the text, at most 3. `kind` undefined: the text is searched literally.
   */
  isFound(text: string, kind: AnchorKind | undefined, context: SearchableText, lineCount = 1): boolean {
    const next = (from: number) =>
      kind === undefined ? this.text.indexOf(text, from) : wordAt(this.text, text, kind, from)
    for (let at = next(0); at >= 0;) {
      const line = this.lineAt(at)
      const reach = 2 - lineCount
      for (const [candidate] of this.lines(line - reach, line + lineCount - 1 + reach).matchAll(word)) {
        if (context.has(candidate, "symbol") && this.isPattern(candidate, this.messages[line])) return true
      }
      at = next(this.starts[line + 1] ?? this.text.length)
    }
    return false
  }
}

/** The pattern may be an alternation of this many words. */
const maxWords = 4

/** What one recall can show from one context. */
export const oneRecall = (dropped: DroppedText, { context, recall }: Replacement, roots: ReadonlyArray<string>) => {
  const relative = relativeTo(roots)
  let contents: ReadonlyArray<SearchableText> | undefined
  /** The texts behind the handles that stand in the context. */
  const behindHandles = (): ReadonlyArray<SearchableText> =>
    (contents ??= [...new Set(mentions(context.original))].flatMap((handle) => {
      const text = recall(handle)
      return text === undefined ? [] : [new SearchableText(withoutLineNumbers(text), relative)]
    }))
  return {
    /** Whether one recall shows all of these names. */
    shows: (names: ReadonlyArray<readonly [name: string, kind: AnchorKind]>): boolean =>
      behindHandles().some((content) => names.every(([name, kind]) => content.has(name, kind))) ||
      (names.length <= maxWords && names.every(([name, kind]) => dropped.isFound(name, kind, context))),
    /** Whether one recall shows this text, to the letter. */
    showsText: (text: string): boolean => {
      const searched = relative(text)
      if (behindHandles().some((content) => content.text.includes(searched))) return true
      const lineCount = searched.split("\n").length
      return lineCount <= 3 && dropped.isFound(searched, undefined, context, lineCount)
    }
  }
}
