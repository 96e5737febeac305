/** A question that must be answered before work goes on: shown in the conversation, and answered in the editor. */

import { matchesKey } from "@earendil-works/pi-tui"
import { Cause, Effect, Queue, type Semaphore } from "effect"
import { Closed, type Detail, type Inquiry, type Reading } from "../../services/terminal/ChatTerminal.ts"
import type { ChatOutput } from "./ChatOutput.ts"
import * as SafeText from "./SafeText.ts"
import type { Theme } from "./Theme.ts"
import { detailRows } from "./TranscriptRows.ts"

// Shows the detail of a question between its heading and the answers. It scrolls when it is longer than the screen; below its last row, the
// arrows go on to the answers.

/** Rows that are shown however small the screen is. */
const minShownRows = 3

const number = (value: number) => value.toLocaleString("en-US")

/** A scrolled detail. */
type DetailView = ReturnType<typeof make>

/** The first shown row after a key that scrolls by pages or to an end; undefined: another key. */
const scrolled = (key: string, top: number, page: number): number | undefined => {
  if (matchesKey(key, "pageUp")) return Math.max(0, top - page)
  if (matchesKey(key, "pageDown") || key === " ") return top + page
  if (matchesKey(key, "home")) return 0
  return matchesKey(key, "end") ? Number.MAX_SAFE_INTEGER : undefined
}

/** Makes the view, which begins at the first row. `canMark`: the arrows go on to the answers. */
const make = (detail: Detail, theme: Theme, canMark: boolean) => {
  let top = 0
  let shown = minShownRows
  /** The first row of the last page. */
  let lastTop = 0
  /** Whether the screen shows all answers: none is marked out of sight. */
  let areInView = false
  /** The answer that Enter gives: none until the arrows reach the answers. */
  let mark: number | undefined
  let rows: { readonly width: number; readonly parts: ReturnType<typeof detailRows> } | undefined
  const partsFor = (width: number) => {
    rows = rows?.width === width ? rows : { width, parts: detailRows(detail, theme, width, mark) }
    return rows.parts
  }
  const step = (by: number) => {
    const isAtAnswers = canMark && areInView && (mark !== undefined || (by > 0 && top >= lastTop))
    if (!isAtAnswers) {
      top = Math.max(0, top + by)
      return
    }
    const next = (mark ?? -1) + by
    mark = next < 0 ? undefined : Math.min(next, detail.options.length - 1)
    rows = undefined
  }
  return {
    detail,
    /** Returns the letter of the marked answer, and takes the mark away: another Enter answers what comes next. */
    takeMarked: (): string | undefined => {
      const letter = mark === undefined ? undefined : detail.options[mark]?.[0]
      mark = undefined
      return letter
    },
    invalidate: () => void (rows = undefined),
    /** Returns the rows: at most `height`, unless that is less than the minimum. */
    render: (width: number, height: number): Array<string> => {
      const { foot, head, rows: all } = partsFor(width)
      const rest = height - head.length - foot.length
      const fits = all.length <= rest
      areInView = foot.length <= height
      shown = fits ? all.length : Math.max(minShownRows, rest - 1)
      lastTop = Math.max(0, all.length - shown)
      top = Math.max(0, Math.min(top, lastTop))
      if (fits) return [...head, ...all, ...foot]
      const place = `rows ${number(top + 1)} to ${number(Math.min(top + shown, all.length))} of ${number(all.length)} · ↑ ↓ PgUp PgDn`
      return [...head, ...all.slice(top, top + shown), theme.dim(place), ...foot]
    },
    /** Takes a key that scrolls or marks an answer. Returns whether it was one. */
    takes: (key: string): boolean => {
      const isUp = matchesKey(key, "up")
      if (isUp || matchesKey(key, "down")) {
        step(isUp ? -1 : 1)
        return true
      }
      const to = scrolled(key, top, Math.max(1, shown - 1))
      top = to ?? top
      return to !== undefined
    }
  }
}

/** What a question needs of the editor. */
export interface QuestionEditor {
  /** The text, with what is folded. */
  readonly wholeText: () => string
  /** Replaces the text. */
  readonly fill: (text: string) => void
  prompt: string
}

/** What a question needs of the terminal. */
export interface QuestionPlace {
  readonly output: ChatOutput
  readonly editor: QuestionEditor
  readonly theme: Theme
  /** Puts the editor back to the prompt for messages. */
  readonly restorePrompt: () => void
  /** Runs something when no other key can belong to the same word any more. Returns how to give it up. */
  readonly afterWord: (run: () => void) => () => void
}

/** What became of a key: the question took it, and what is drawn may have changed; or it goes on to others. */
export type KeyTaken = "taken" | "changed" | undefined

const safeDetail = (detail: Detail): Detail => ({
  ...detail,
  head: SafeText.shown(detail.head),
  lines: detail.lines.map(SafeText.shown),
  options: detail.options.map(([letter, meaning]) => [letter, SafeText.shown(meaning)])
})

/** A typed line, or a letter that may open another question. */
interface Reply {
  readonly text: string
  readonly opens: boolean
}

/** The open question, if there is one. Questions are asked one at a time. */
export class OpenQuestion {
  /** Held while a question is open. */
  readonly turns: Semaphore.Semaphore
  private readonly place: QuestionPlace
  /** What was typed since the question was shown, and the letters that answer it or open another by themselves. */
  private open:
    | {
        readonly replies: Queue.Queue<Reply, Closed>
        readonly keys: ReadonlyArray<string>
        readonly opening: ReadonlyArray<string>
        readonly escape: string | undefined
      }
    | undefined
  /** What the question is about, and its answers, until it is answered. */
  private view: DetailView | undefined
  /** A letter that answers unless another key shows that it begins a word, and how to stop waiting for that key. */
  private held: { readonly letter: string; readonly release: () => void } | undefined
  /** Whether the last key answered a question by itself. An Enter after it, out of habit, sends nothing. */
  private wasOneKey = false

  constructor(turns: Semaphore.Semaphore, place: QuestionPlace) {
    this.turns = turns
    this.place = place
  }

  /** Whether a question is open. */
  get isOpen(): boolean {
    return this.open !== undefined
  }

  /** Takes a typed line as the answer. */
  answer(line: string) {
    if (this.open !== undefined) Queue.offerUnsafe(this.open.replies, { text: line, opens: false })
  }

  /** Fails the question, because there is no more input. */
  close() {
    if (this.open !== undefined) Queue.failCauseUnsafe(this.open.replies, Cause.fail(new Closed()))
  }

  /** The rows of what the question is about, no more than `height` where they can be scrolled. */
  rows(width: number, height: number): Array<string> {
    return this.view?.render(width, height) ?? []
  }

  /** Lays out anew what is drawn next. */
  invalidate() {
    this.view?.invalidate()
  }

  /** Takes a key that answers by itself, that scrolls or marks an answer, or that is an Enter after an answer. `isEmpty`: nothing is typed. */
  takesKey(key: string, isEmpty: boolean): KeyTaken {
    const isEnter = matchesKey(key, "enter")
    const held = this.takeHeld()
    if (held !== undefined) {
      if (isEnter) {
        this.answer(held.toLowerCase())
        return "taken"
      }
      // Somebody is typing, perhaps since before the question was there: nothing is granted by the first letter of a word.
      this.place.editor.fill(held)
      return undefined
    }
    const isHabit = this.wasOneKey && isEnter
    this.wasOneKey = false
    if (isHabit) return "taken"
    if (!isEmpty) return undefined
    const marked = isEnter ? this.view?.takeMarked() : undefined
    if (marked !== undefined && this.open !== undefined) {
      Queue.offerUnsafe(this.open.replies, { text: marked, opens: true })
      return "taken"
    }
    if (this.open?.escape !== undefined && matchesKey(key, "escape")) {
      this.answer(this.open.escape)
      return "taken"
    }
    // Nothing is granted by such a letter, so it need not wait for the rest of a word.
    if (this.open?.opening.includes(key.toLowerCase()) === true) {
      Queue.offerUnsafe(this.open.replies, { text: key.toLowerCase(), opens: true })
      this.open = { ...this.open, keys: [], opening: [] }
      return "taken"
    }
    if (this.open?.keys.includes(key.toLowerCase()) === true) {
      const release = this.place.afterWord(() => {
        this.held = undefined
        this.wasOneKey = true
        this.answer(key.toLowerCase())
      })
      this.held = { letter: key, release }
      return "taken"
    }
    return this.view?.takes(key) === true ? "changed" : undefined
  }

  /** Stops waiting for the key after a letter, and returns the letter. */
  private takeHeld(): string | undefined {
    const { held } = this
    held?.release()
    this.held = undefined
    return held?.letter
  }

  /** Asks a question when no other is open. Output is held back until it is answered. */
  ask<A>(inquiry: Inquiry<A>, isInputOpen: () => boolean): Effect.Effect<A, Closed> {
    const { editor } = this.place
    return Queue.unbounded<Reply, Closed>().pipe(
      Effect.flatMap((replies) =>
        Effect.acquireUseRelease(
          Effect.suspend(() => {
            if (!isInputOpen()) return Effect.fail(new Closed())
            const draft = editor.wholeText()
            this.show(inquiry, replies, draft)
            return Effect.succeed(draft)
          }),
          (draft) => this.exchange(inquiry, replies, draft),
          (draft, exit) => Effect.sync(() => this.end(draft, exit._tag === "Success"))
        )
      ),
      this.turns.withPermit,
      Effect.withSpan("ChatTerminal.inquire")
    )
  }

  /** Reads lines until one of them answers. */
  private exchange<A>(
    inquiry: Inquiry<A>,
    replies: Queue.Queue<Reply, Closed>,
    draft: string
  ): Effect.Effect<A, Closed> {
    const { output } = this.place
    return Effect.gen({ self: this }, function* () {
      for (let current = inquiry; ;) {
        const { opens, text } = yield* Queue.take(replies)
        const next = opens ? current.opens?.[text] : undefined
        const reading: Reading<A> = next === undefined ? current.read(text) : { _tag: "Then", inquiry: next }
        if (reading._tag !== "Again") this.keepView()
        if (next === undefined) output.addText(`${current.prompt}${SafeText.shown(text)}\n`)
        if (reading._tag === "Answer") return reading.value
        if (reading._tag === "Then") {
          current = reading.inquiry
          this.show(current, replies, draft)
        } else {
          output.transcript.text(SafeText.shown(reading.text))
          output.draw()
        }
      }
    })
  }

  /** Shows a question. Letters answer by themselves, and arrows mark an answer, only where no message was being typed. */
  private show<A>(
    { detail, escape, fill = "", keys = [], opens = {}, prompt, text }: Inquiry<A>,
    replies: Queue.Queue<Reply, Closed>,
    draft: string
  ) {
    const { editor, output, theme } = this.place
    const isFree = draft === ""
    output.endAnswer(false)
    if (detail === undefined) output.addText(SafeText.shown(text))
    else this.view = make(safeDetail(detail), theme, isFree)
    output.hold()
    const typed = this.open === undefined ? "" : editor.wholeText()
    this.open = { replies, keys: isFree ? keys : [], opening: isFree ? Object.keys(opens) : [], escape }
    // What was typed after a letter that opens this question belongs to it.
    editor.fill(fill === "" ? typed : SafeText.pasted(fill))
    editor.prompt = prompt
    output.draw()
  }

  /** Leaves the beginning of what the question is about in the conversation. */
  private keepView() {
    if (this.view === undefined) return
    this.place.output.transcript.detail({ ...this.view.detail, options: [] })
    this.view = undefined
  }

  /** Restores the editor, with what was being typed before and since an answer, and shows what was held back. */
  private end(draft: string, isAnswered: boolean) {
    const { editor, output, restorePrompt } = this.place
    const since = isAnswered ? editor.wholeText() : ""
    this.takeHeld()
    this.open = undefined
    this.keepView()
    restorePrompt()
    editor.fill(`${draft}${since}`)
    output.release()
    output.draw()
  }
}
