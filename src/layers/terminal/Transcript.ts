/** Draws the conversation: messages, growing answers, cards and questions, as blocks of rows. */

import { type Component, Markdown, stripTerminalSequences } from "@earendil-works/pi-tui"
import type { Card, Detail } from "../../services/terminal/ChatTerminal.ts"
import { aligned, settled, type Split } from "./AnswerMarkdown.ts"
import type { Theme } from "./Theme.ts"
import { cardRows, fitted, keptDetailRows, messageRows, wrappedLines } from "./TranscriptRows.ts"

type Kind = "answer" | "card" | "message" | "question" | "text"

/** One item of the conversation. It remembers its rows for one width. `isApart`: whether a blank row separates it from the block before. */
const blockOf = (kind: Kind, isApart: boolean, draw: (width: number) => ReadonlyArray<string>) => {
  let drawnWidth = 0
  let drawn: ReadonlyArray<string> = []
  return {
    kind,
    isApart,
    rows: (width: number): ReadonlyArray<string> => {
      if (width !== drawnWidth) drawn = draw(width).map((row) => fitted(row, width))
      drawnWidth = width
      return drawn
    },
    /** Forgets the rows, because they differ from now on. */
    change: (): void => {
      drawnWidth = 0
    }
  }
}
type Block = ReturnType<typeof blockOf>

/** A blank row separates a message and a question from what is before them, and an answer from what is around it unless that is its message. */
const startsApart = (kind: Kind, last: Kind | undefined): boolean =>
  kind === "message" ||
  kind === "question" ||
  (kind !== last && (kind === "answer" || last === "answer") && last !== "message")

/** An answer that grows. */
interface Answer {
  readonly parts: Array<Part>
  isDiscarded: boolean
}

/** A stretch of Markdown of an answer. */
interface Part {
  text: string
  /** The length at which the text is searched for its next split. */
  nextCheck: number
  readonly view: Markdown
  readonly block: Block
  /** Whether its code block goes on in the next part: its end is not drawn. */
  isContinued: boolean
}

/** A text without a line break at its end. */
interface OpenLine {
  text: string
  readonly block: Block
}

/** A part that grows by this many characters is searched for a split. */
const settleChars = 2_000

const setText = (part: Part, text: string) => {
  part.text = text
  part.view.setText(text)
  part.block.change()
}

/** The rows of a part. `openBlock` is the block that the part before it ends in. */
const partRows = (answer: Answer, part: Part, openBlock: Split["openBlock"], theme: Theme, width: number) => {
  const drawn = aligned(part.view.render(width), part.text).map((row) => row.trimEnd())
  const rows = drawn.slice(0, drawn.findLastIndex((row) => row !== "") + 1)
  const shown = rows.slice(openBlock === "code" ? 1 : 0, part.isContinued ? -1 : undefined)
  return answer.isDiscarded ? shown.map((row) => theme.dim(stripTerminalSequences(row))) : shown
}

/**
 * The conversation on the screen: a list of blocks, of which the renderer holds the last ones. What has left the screen belongs
 * to the terminal's scrollback.
 */
export class Transcript implements Component {
  private readonly theme: Theme
  private readonly blocks: Array<Block> = []
  /** Rows at the beginning that are not drawn, because they were on the screen before. */
  private hidden = 0
  /** Whether cards and long messages are shown whole. */
  private isOpen = false
  /** The answer that is shown. */
  private growing: Answer | undefined
  /** The text to which the next text is added. */
  private line: OpenLine | undefined

  constructor(theme: Theme) {
    this.theme = theme
  }

  /** The rows that are drawn. */
  render(width: number): Array<string> {
    return this.draw(width).slice(this.hidden)
  }

  /** Lays out all blocks anew when they are drawn next. */
  invalidate() {
    for (const block of this.blocks) block.change()
  }

  /** Adds Markdown to the answer. */
  answer(piece: string) {
    this.line = undefined
    this.growing ??= { parts: [], isDiscarded: false }
    const answer = this.growing
    const part = answer.parts.at(-1) ?? this.openPart(answer, "")
    setText(part, part.text + piece)
    if (part.text.length < part.nextCheck) return
    part.nextCheck = part.text.length + settleChars
    const split = settled(part.text)
    if (split === undefined) return
    part.isContinued = split.openBlock === "code"
    setText(part, split.done)
    this.openPart(answer, split.rest.replace(/^\n+/, ""), split.openBlock)
  }

  /** Ends the answer, if one is shown. A discarded one is dimmed. */
  endAnswer(isDiscarded = false) {
    const answer = this.growing
    if (answer === undefined) return
    answer.isDiscarded = isDiscarded
    if (isDiscarded) for (const part of answer.parts) part.block.change()
    this.growing = undefined
  }

  /** Whether the last text ended within a line. */
  isWithinLine(): boolean {
    return this.line !== undefined
  }

  /** Adds text, which may end within a line. */
  text(text: string) {
    this.endAnswer()
    if (text === "") return
    const line = this.line ?? this.openLine()
    line.text += text
    line.block.change()
    this.line = text.endsWith("\n") ? undefined : line
  }

  /** Adds the beginning of what a question is about. */
  detail(detail: Detail) {
    this.addWhole("question", (width) => keptDetailRows(detail, this.theme, width))
  }

  /** Adds a message of the user. */
  message(text: string) {
    this.addWhole("message", (width) => messageRows(text, this.isOpen, this.theme, width))
  }

  /** Adds a card that has ended. */
  card(card: Card) {
    this.addWhole("card", (width) => cardRows(card, this.isOpen, this.theme, width))
  }

  /** Opens all cards, or closes them. */
  toggleCards() {
    this.isOpen = !this.isOpen
    for (const block of this.blocks) if (block.kind === "card" || block.kind === "message") block.change()
  }

  /** Whether cards are open. */
  areCardsOpen(): boolean {
    return this.isOpen
  }

  /** Whether nothing was added yet. */
  isEmpty(): boolean {
    return this.blocks.length === 0
  }

  /** The number of rows of the blocks that are not forgotten, drawn or not. */
  length(width: number): number {
    return this.draw(width).length
  }

  /** Draws no more than the last rows from now on. */
  keepLast(rows: number, width: number) {
    this.hidden = Math.max(0, this.length(width) - Math.max(0, rows))
  }

  /** Draws no more than the last rows from now on, and nothing that was hidden before. */
  keepShown(rows: number, width: number) {
    this.hidden = Math.max(this.hidden, this.length(width) - Math.max(0, rows))
  }

  /** Draws from the last card on, or at least the last rows. */
  keepFromCard(rows: number, width: number) {
    const card = this.blocks.findLastIndex(({ kind }) => kind === "card")
    const before = this.draw(width, Math.max(0, card)).length
    this.hidden = Math.max(0, Math.min(this.length(width) - rows, before))
  }

  /** Forgets leading blocks while more rows than these remain. Returns how many of the drawn rows were forgotten. */
  forget(keptRows: number, width: number): number {
    const before = this.length(width) - this.hidden
    if (before < keptRows * 2) return 0
    let left = before
    for (;;) {
      const [first, next] = this.blocks
      if (first === undefined || next === undefined) break
      const gap = next.isApart && next.rows(width).length > 0 ? 1 : 0
      const rows = first.rows(width).length + gap
      const drawn = Math.max(0, rows - this.hidden)
      if (left - drawn < keptRows) break
      this.blocks.shift()
      this.hidden = Math.max(0, this.hidden - rows)
      left -= drawn
    }
    return before - left
  }

  /** The rows of the first `count` blocks. */
  private draw(width: number, count = this.blocks.length): Array<string> {
    const all: Array<string> = []
    for (const [index, block] of this.blocks.slice(0, count).entries()) {
      const rows = block.rows(width)
      if (block.isApart && index > 0 && rows.length > 0) all.push("")
      for (const row of rows) all.push(row)
    }
    return all
  }

  private add(kind: Kind, draw: (width: number) => ReadonlyArray<string>, isApart?: boolean): Block {
    const block = blockOf(kind, isApart ?? startsApart(kind, this.blocks.at(-1)?.kind), draw)
    this.blocks.push(block)
    return block
  }

  /** Adds a block that does not change, after the answer and the text that are open. */
  private addWhole(kind: Kind, draw: (width: number) => ReadonlyArray<string>) {
    this.endAnswer()
    this.line = undefined
    this.add(kind, draw)
  }

  private openLine(): OpenLine {
    const line: OpenLine = { text: "", block: this.add("text", (width) => wrappedLines(line.text, width)) }
    return line
  }

  private openPart(answer: Answer, text: string, openBlock?: Split["openBlock"]): Part {
    const isApart = answer.parts.length > 0 ? openBlock === undefined : undefined
    const part: Part = {
      text,
      nextCheck: settleChars,
      view: new Markdown(text, 0, 0, this.theme.markdown),
      isContinued: false,
      block: this.add("answer", (width) => partRows(answer, part, openBlock, this.theme, width), isApart)
    }
    answer.parts.push(part)
    return part
  }
}
