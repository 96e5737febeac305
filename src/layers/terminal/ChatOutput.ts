import { printableLine, visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import type { Card } from "../../services/terminal/ChatTerminal.ts"
import * as SafeText from "./SafeText.ts"
import type { Theme } from "./Theme.ts"
import type { Transcript } from "./Transcript.ts"

/** Adds output to the transcript. While a question is open, `show` holds back everything else until it is answered. */
export class ChatOutput {
  readonly transcript: Transcript
  /** Draws the next frame. */
  readonly draw: () => void
  private readonly theme: Theme
  private isHeld = false
  private readonly held: Array<() => void> = []
  /** Makes invisible characters of the answer visible, also those that arrive in pieces. */
  private visible = visibleStream()

  constructor(transcript: Transcript, theme: Theme, draw: () => void) {
    this.transcript = transcript
    this.theme = theme
    this.draw = draw
  }

  /** Holds output back. */
  hold() {
    this.isHeld = true
  }

  /** Shows what was held back. */
  release() {
    this.isHeld = false
    for (const change of this.held.splice(0)) change()
  }

  /** Makes a change now, or when output is no longer held back. */
  show(change: () => void) {
    if (this.isHeld) {
      this.held.push(change)
      return
    }
    change()
    this.draw()
  }

  /** Adds a piece of Markdown to the answer. */
  addAnswer(piece: string) {
    this.transcript.answer(this.visible(piece))
  }

  /** Adds a card that has ended. */
  card(card: Card) {
    this.endAnswer(false)
    this.transcript.card(card)
  }

  /** Ends the answer, with what of it was not shown yet. */
  endAnswer(isDiscarded: boolean) {
    const rest = this.visible(undefined)
    this.visible = visibleStream()
    if (rest !== "") this.transcript.answer(rest)
    this.transcript.endAnswer(isDiscarded)
  }

  /** Adds text at the beginning of a line. */
  addText(text: string) {
    this.transcript.text(`${this.transcript.isWithinLine() ? "\n" : ""}${text}`)
  }

  /** Adds a dimmed line. */
  addNote(line: string) {
    this.addText(`${printableLine(line).split("\n").map(this.theme.dim).join("\n")}\n`)
  }
}

/** A card whose texts cannot control the terminal. */
export const safeCard = (card: Card): Card => ({
  ...card,
  head: SafeText.shown(card.head),
  body: card.body.map(SafeText.shown),
  more: card.more.map(SafeText.shown)
})
