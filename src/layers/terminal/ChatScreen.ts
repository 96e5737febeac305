/** The screen of the chat as a whole: what is drawn again, and what goes to the scrollback. */

import { type Component, Container, TuiMainScreen } from "@earendil-works/pi-tui"
import type { Transcript } from "./Transcript.ts"
import { fitted } from "./TranscriptRows.ts"

/** Screens of rows that can still change, as when a card is opened. */
const keptScreens = 4

/** What stays below the transcript. None of its rows is wider than the screen, whatever a component draws. */
class Below extends Container {
  override render(width: number) {
    return super.render(width).map((row) => fitted(row, width))
  }
}

/** Draws the transcript and what is below it, and hands rows that left the screen over to the terminal's scrollback. */
export class ChatScreen extends TuiMainScreen {
  readonly transcript: Transcript
  /** The size at the last frame, and the rows that the transcript had. */
  private last: { readonly columns: number; readonly rows: number; readonly length: number } | undefined
  private readonly below = new Below()
  /** Puts the colours of the theme into a row; undefined leaves rows as they are. */
  paint: ((row: string) => string) | undefined

  constructor(terminal: ConstructorParameters<typeof TuiMainScreen>[0], transcript: Transcript) {
    super(terminal)
    this.transcript = transcript
    super.addChild(transcript)
    super.addChild(this.below)
  }

  override addChild(component: Component) {
    this.below.addChild(component)
  }

  override render(width: number) {
    const rows = super.render(width)
    return this.paint === undefined ? rows : rows.map(this.paint)
  }

  /** Leaves the transcript on the screen, and the cursor on the row after it. */
  finish() {
    this.below.clear()
    this.renderNow()
    const { hardwareCursorRow, previousLines } = this.captureRenderState()
    const down = previousLines.length - 1 - hardwareCursorRow
    this.terminal.moveBy(down)
    this.stop({ preserveScreen: true })
    this.terminal.write(`${previousLines.length === 0 ? "\r" : "\r\n"}\u001b[J`)
  }

  /** Draws the screen again, with what `keep` leaves of the transcript. */
  redraw(keep: (rows: number, columns: number) => void) {
    const { columns, rows } = this.terminal
    keep(rows - this.below.render(columns).length, columns)
    this.requestRender(true)
  }

  protected override doRender() {
    const { columns, rows } = this.terminal
    const { last } = this
    // Rows above the screen were laid out by the terminal: drawing them again would show them twice. Rows that came since the last
    // frame were never on the screen, and push as many into the scrollback.
    if (last !== undefined && (last.columns !== columns || last.rows !== rows)) {
      const added = Math.max(0, this.transcript.length(last.columns) - last.length)
      const room = Math.max(0, rows - this.below.render(columns).length)
      this.transcript.keepLast(room + added * Math.ceil(last.columns / columns), columns)
    }
    super.doRender()
    const gone = this.transcript.forget(rows * keptScreens, columns)
    this.last = { columns, rows, length: this.transcript.length(columns) }
    if (gone === 0) return
    const state = this.captureRenderState()
    this.restoreRenderState({
      ...state,
      previousLines: state.previousLines.slice(gone),
      cursorRow: state.cursorRow - gone,
      hardwareCursorRow: state.hardwareCursorRow - gone,
      maxLinesRendered: state.maxLinesRendered - gone,
      previousViewportTop: state.previousViewportTop - gone
    })
  }
}
