import { type AutocompleteProvider, type Component, Container, matchesKey, TuiMainScreen } from "@earendil-works/pi-tui"
import { Cause, Clock, Deferred, Effect, Fiber, FiberSet, Option, Queue, Semaphore } from "effect"
import { CliOutput } from "effect/cli"
import { printableLine, visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import {
  type Card,
  ChatTerminal,
  type Choice,
  Closed,
  type Completion,
  type Detail,
  type Inquiry,
  type Question,
  type TerminalOptions
} from "../../services/terminal/ChatTerminal.ts"
import * as Clipboard from "./Clipboard.ts"
import { ctrlCAction } from "./CtrlCAction.ts"
import * as DetailView from "./DetailView.ts"
import { edited } from "./ExternalEditor.ts"
import * as Highlight from "./Highlight.ts"
import type { InputHistory } from "./InputHistory.ts"
import { MessageEditor } from "./MessageEditor.ts"
import * as Palette from "./Palette.ts"
import * as PastedImages from "./PastedImages.ts"
import * as Picker from "./Picker.ts"
import * as SafeText from "./SafeText.ts"
import * as StreamTerminal from "./StreamTerminal.ts"
import * as Theme from "./Theme.ts"
import * as Transcript from "./Transcript.ts"
import * as VimKeys from "./VimKeys.ts"

/**
 * The chat terminal with a conversation that scrolls, and below it what stays: running work, the queue, the status line and the
 * editor. Drawn with pi-tui. `CtrlCAction.ts` decides what Ctrl+C does.
 *
 * One file: the keys, the open question and the queue depend on each other at every step.
 */

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Slow connections are supported too: four frames per second are enough to show that work goes on. */
const frameMillis = 250
/** A completion that takes longer is given up. */
const completionDeadline = "2 seconds"
/** How long to wait for the terminal to say its background. */
const backgroundMillis = 2_000
/** Rows of the panel that are shown at once. */
const maxPanelRows = 6
/** Screens of rows that can still change, as when a card is opened. */
const keptScreens = 4
/** Messages of earlier chats that Up recalls. Ctrl+R searches all of them. */
const recalledMessages = 100

const nothing: Completion = { candidates: [], replaced: "" }

/** What stays below the transcript. None of its rows is wider than the screen, whatever a component draws. */
class Below extends Container {
  override render(width: number) {
    return super.render(width).map((row) => Transcript.fitted(row, width))
  }
}

/** Draws the transcript and what is below it, and hands rows that left the screen over to the terminal's scrollback. */
class Screen extends TuiMainScreen {
  readonly transcript: Transcript.Transcript
  /** The size at the last frame, and the rows that the transcript had. */
  private last: { readonly columns: number; readonly rows: number; readonly length: number } | undefined
  private readonly below = new Below()
  /** Puts the colours of the theme into a row; undefined leaves rows as they are. */
  paint: ((row: string) => string) | undefined

  constructor(terminal: ConstructorParameters<typeof TuiMainScreen>[0], transcript: Transcript.Transcript) {
    super(terminal)
    this.transcript = transcript
    super.addChild(transcript.component)
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

/** A complete message. */
interface Typed {
  readonly text: string
  readonly store: Effect.Effect<void>
}

/** An open question. */
interface OpenInquiry {
  readonly prompt: string
  /** Letters that answer by themselves, unless a message was being typed. */
  readonly keys: ReadonlyArray<string>
  /** Lines typed since the question was shown. */
  readonly lines: Queue.Queue<string, Closed>
}

/** Makes the terminal for the given streams. The terminal's state is restored when the scope ends. */
export const make = Effect.fnUntraced(function* (
  streams: StreamTerminal.Streams,
  history: InputHistory,
  canColor: boolean,
  /** The folder that takes copies of pasted images. */
  images: string
) {
  const clock = yield* Clock.Clock
  const run = yield* FiberSet.makeRuntime<never>()
  const runPromise = yield* FiberSet.makeRuntimePromise<never>()
  const messages = yield* Queue.unbounded<Typed, Closed>()
  /** Messages in `messages` that were not taken back, oldest first. */
  const waiting: Array<Typed> = []
  const oneInquiry = yield* Semaphore.make(1)

  let question: Question = { prompt: "> " }
  let prefill = ""
  /** Whether the next Ctrl+C leaves. */
  let isLeaving = false
  let work: { readonly interrupted: Deferred.Deferred<void>; readonly since: number } | undefined
  let label = ""
  let frame = 0
  let inquiry: OpenInquiry | undefined
  /** What the open question is about, where it is longer than the screen. */
  let view: DetailView.DetailView | undefined
  /** Whether the last key answered a question by itself. An Enter after it, out of habit, sends nothing. */
  let wasOneKey = false
  /** Output to show once the question is answered. */
  const held: Array<() => void> = []
  /** Cards of work that goes on. */
  const running = new Map<string, Card>()
  let visible = visibleStream()
  let status: ((columns: number) => string) | undefined
  let panel: ReadonlyArray<string> = []
  let options: TerminalOptions = { theme: "dark", keys: "default", bellAfter: 10 }

  // --- the screen ---------------------------------------------------------------------------------------------------------

  const highlight = Highlight.make(() => {
    transcript.component.invalidate()
    view?.invalidate()
    screen.requestRender()
  })
  const theme = Theme.make(canColor, highlight)
  const transcript = Transcript.make(theme)
  const terminal = StreamTerminal.make(streams, () => leave())
  const screen = new Screen(terminal, transcript)
  const editor = new MessageEditor(screen, theme)
  const slot = new Container()

  const sign = () => frames[frame % frames.length] ?? ""
  const progress: Component = {
    invalidate: () => {},
    render: (width) => {
      if (inquiry !== undefined)
        return view?.render(width, screen.terminal.rows - editor.render(width).length - 1) ?? []
      const rows = panel.length > maxPanelRows ? [...panel.slice(0, maxPanelRows - 1), theme.dim("…")] : panel
      const steps = rows.map((row) => Transcript.fitted(row, width))
      if (work === undefined) return transcript.isEmpty() ? steps : ["", ...steps]
      const cards = [...running.values()].flatMap((card) =>
        Transcript.cardRows(card, transcript.areCardsOpen(), theme, width, `${sign()} `)
      )
      const seconds = Math.floor((clock.currentTimeMillisUnsafe() - work.since) / 1_000)
      const hint = theme.dim(`${seconds < 1 ? "" : ` · ${seconds} s`} · Esc cancels`)
      const room = Math.max(1, width - CliOutput.displayWidth(hint) - 2)
      const queued = waiting.map(({ text }) => theme.dim(cut(`queued: ${printableLine(text)}`, width)))
      const help = waiting.length === 0 ? [] : [theme.dim(cut("↑ takes back", width))]
      return ["", ...cards, cut(`${sign()} ${cut(label, room)}${hint}`, width), ...queued, ...help, "", ...steps]
    }
  }
  const cut = (text: string, columns: number): string =>
    CliOutput.displayWidth(text) <= columns ? text : `${[...text].slice(0, Math.max(0, columns - 1)).join("")}…`

  const draw = () => screen.requestRender()
  /** Shows something now, or after the open question is answered. */
  const show = (change: () => void) => {
    if (inquiry !== undefined) held.push(change)
    else {
      change()
      draw()
    }
  }
  const note = (line: string) =>
    transcript.text(`${lineStart()}${printableLine(line).split("\n").map(theme.dim).join("\n")}\n`)
  const lineStart = () => (transcript.isWithinLine() ? "\n" : "")
  const endAnswer = (isDiscarded: boolean) => {
    const rest = visible(undefined)
    visible = visibleStream()
    if (rest !== "") transcript.answer(rest)
    transcript.endAnswer(isDiscarded)
  }

  // --- the editor ---------------------------------------------------------------------------------------------------------

  const takeBack = () => {
    const texts = [...waiting.splice(0).map(({ text }) => text), editor.wholeText()]
    editor.fill(texts.filter((text) => text !== "").join("\n"))
  }
  /** Takes the last queued message back into the editor. */
  const takeLast = () => {
    const last = waiting.pop()
    if (last !== undefined) editor.fill(last.text)
  }

  editor.onPaste = (text) => (inquiry === undefined ? PastedImages.withReference(text, images) : text)
  editor.onMessage = (text) => {
    if (inquiry !== undefined) {
      Queue.offerUnsafe(inquiry.lines, text.trim())
      return
    }
    if (messages.state._tag !== "Open") return
    const typed = { text, store: history.add(text) }
    if (!text.startsWith(" ")) editor.addToHistory(text)
    waiting.push(typed)
    Queue.offerUnsafe(messages, typed)
  }
  for (const text of history.entries.slice(0, recalledMessages).reverse()) editor.addToHistory(text)

  const provider: AutocompleteProvider = {
    getSuggestions: (lines, row, column) => {
      const before = [...lines.slice(0, row), (lines[row] ?? "").slice(0, column)].join("\n")
      const { complete } = question
      if (complete === undefined || inquiry !== undefined) return Promise.resolve(null)
      return runPromise(
        complete(before).pipe(
          Effect.timeoutOrElse({ duration: completionDeadline, orElse: () => Effect.succeed(nothing) }),
          Effect.catchCause(() => Effect.succeed(nothing)),
          Effect.map(({ about = {}, candidates, replaced }) => {
            editor.menuText = lines.join("\n")
            // File names can contain control characters.
            const items = candidates
              .filter((candidate) => !/\p{C}/u.test(candidate))
              .map((value) => ({
                value,
                label: value.trim(),
                ...(about[value] === undefined ? {} : { description: about[value] })
              }))
            return items.length === 0 ? null : { items, prefix: replaced }
          })
        )
      )
    },
    applyCompletion: (lines, row, column, { value }, prefix) => {
      const line = lines[row] ?? ""
      const start = line.slice(0, column).endsWith(prefix) ? column - prefix.length : column
      return {
        lines: lines.with(row, line.slice(0, start) + value + line.slice(column)),
        cursorLine: row,
        cursorCol: start + value.length
      }
    }
  }
  editor.setAutocompleteProvider(provider)

  // --- keys ---------------------------------------------------------------------------------------------------------------

  const leave = () => {
    Queue.failCauseUnsafe(messages, Cause.fail(new Closed()))
    if (inquiry !== undefined) Queue.failCauseUnsafe(inquiry.lines, Cause.fail(new Closed()))
    closePicker?.()
  }
  const cancel = () => {
    if (inquiry === undefined) takeBack()
    if (work !== undefined) Deferred.doneUnsafe(work.interrupted, Effect.void)
  }
  const onCtrlC = () => {
    switch (ctrlCAction({ isWorking: work !== undefined, hasInput: editor.getText() !== "", wasPressed: isLeaving })) {
      case "cancelWork":
        return cancel()
      case "leave":
        return leave()
      case "clearPrompt":
        return editor.setText("")
      case "warn":
        isLeaving = true
        editor.placeholder = "press Ctrl+C again to leave"
    }
  }

  let closePicker: (() => void) | undefined
  /** Shows a list in the place of the editor. */
  const pick = <A>(title: string, choices: ReadonlyArray<Choice<A>>, done: (choice: Choice<A> | undefined) => void) => {
    const close = (choice: Choice<A> | undefined) => {
      closePicker = undefined
      slot.clear()
      slot.addChild(editor)
      screen.setFocus(editor)
      draw()
      done(choice)
    }
    const picker = Picker.make(title, choices, theme, close)
    closePicker = () => close(undefined)
    slot.clear()
    slot.addChild(picker)
    screen.setFocus(picker)
    draw()
  }

  const searchHistory = () =>
    pick(
      "Messages",
      history.entries.map((text) => ({ value: text, label: printableLine(text) })),
      (chosen) => {
        if (chosen !== undefined) editor.fill(chosen.value)
      }
    )
  const editOutside = Effect.gen(function* () {
    screen.stop({ preserveScreen: true })
    const text = yield* edited(editor.wholeText())
    screen.start()
    screen.redraw(transcript.keepLast)
    if (Option.isSome(text)) editor.fill(text.value)
    else show(() => note("Set EDITOR to the command of an editor, for example: export EDITOR=vim"))
  })

  /** Puts the image in the clipboard into the message. */
  const pasteImage = Effect.gen(function* () {
    const bytes = yield* Clipboard.image
    const reference = bytes === undefined ? undefined : PastedImages.keep(images, bytes, ".png")
    if (reference === undefined) show(() => note("There is no image in the clipboard that can be read here."))
    else {
      editor.insertTextAtCursor(`${reference} `)
      draw()
    }
  })

  /** Keys that mean the same wherever the focus is. Returns whether the key was one. */
  const onKey = (key: string): boolean => {
    if (!matchesKey(key, "ctrl+c")) {
      isLeaving = false
      editor.placeholder = ""
    }
    if (closePicker !== undefined) return false
    const isHabit = wasOneKey && matchesKey(key, "enter")
    wasOneKey = false
    if (isHabit) return true
    const isEmpty = editor.getText() === ""
    if (inquiry !== undefined && isEmpty && inquiry.keys.includes(key.toLowerCase())) {
      Queue.offerUnsafe(inquiry.lines, key.toLowerCase())
      wasOneKey = true
      return true
    }
    if (isEmpty && view?.takes(key) === true) {
      draw()
      return true
    }
    if (matchesKey(key, "ctrl+c")) onCtrlC()
    else if (
      matchesKey(key, "escape") &&
      !editor.isShowingAutocomplete() &&
      !editor.takesEscape() &&
      work !== undefined
    )
      cancel()
    else if (matchesKey(key, "ctrl+d") && isEmpty) {
      if (inquiry === undefined) leave()
    } else if (matchesKey(key, "up") && isEmpty && waiting.length > 0 && inquiry === undefined) takeLast()
    else if (matchesKey(key, "ctrl+l")) screen.redraw((_, columns) => transcript.keepLast(0, columns))
    else if (matchesKey(key, "ctrl+o")) {
      transcript.toggleCards()
      screen.redraw(transcript.areCardsOpen() ? transcript.keepFromCard : transcript.keepLast)
    } else if (matchesKey(key, "ctrl+r") && inquiry === undefined) searchHistory()
    else if (matchesKey(key, "ctrl+g") && inquiry === undefined) run(editOutside)
    else if (matchesKey(key, "ctrl+v") && inquiry === undefined) run(pasteImage)
    else return false
    draw()
    return true
  }

  screen.addInputListener((key) => (!key.startsWith("\u001b[200~") && onKey(key) ? { consume: true } : undefined))
  slot.addChild(editor)
  screen.addChild(progress)
  screen.addChild(slot)
  screen.setFocus(editor)
  yield* Effect.acquireRelease(
    Effect.sync(() => screen.start()),
    () => Effect.sync(() => screen.finish())
  )

  // --- the service --------------------------------------------------------------------------------------------------------

  const ask = Effect.fn("ChatTerminal.ask")(function* (asked: Question): Effect.fn.Return<string, Closed> {
    // Work in the background can have a question open.
    yield* oneInquiry.withPermit(Effect.void)
    question = asked
    prefill = asked.prefill ?? prefill
    if (waiting.length === 0 && messages.state._tag === "Open") {
      editor.prompt = asked.prompt
      if (prefill !== "") {
        const typed = editor.wholeText()
        editor.fill(SafeText.pasted(prefill) + (typed === "" ? "" : `\n${typed}`))
        prefill = ""
      }
      draw()
    }
    let taken = yield* Queue.take(messages)
    while (taken !== waiting[0]) taken = yield* Queue.take(messages)
    waiting.shift()
    endAnswer(false)
    transcript.message(SafeText.shown(taken.text))
    draw()
    yield* taken.store
    return taken.text
  })

  /** Shows what a question is about: in the conversation, or scrolled below it when it is longer than the screen. */
  const putDetail = (detail: Detail) => {
    const safe = {
      ...detail,
      head: SafeText.shown(detail.head),
      lines: detail.lines.map(SafeText.shown),
      foot: SafeText.shown(detail.foot)
    }
    const { columns, rows } = terminal
    const { foot, head, rows: all } = Transcript.detailRows(safe, theme, columns)
    if (head.length + all.length + foot.length < rows - 1) transcript.detail(safe, true)
    else view = DetailView.make(safe, theme)
  }
  /** Leaves the beginning of a scrolled detail in the conversation. */
  const takeView = () => {
    if (view === undefined) return
    transcript.detail({ ...view.detail, foot: "" }, false)
    view = undefined
  }

  /** Shows a question and returns the text that was being typed. */
  const put = <A>(
    { detail, fill = "", keys = [], prompt, text }: Inquiry<A>,
    lines: OpenInquiry["lines"],
    draft = editor.wholeText()
  ): string => {
    endAnswer(false)
    if (detail === undefined) transcript.text(`${lineStart()}${SafeText.shown(text)}`)
    else putDetail(detail)
    inquiry = { prompt, lines, keys: draft === "" ? keys : [] }
    editor.fill(SafeText.pasted(fill))
    editor.prompt = prompt
    editor.status = undefined
    draw()
    return draft
  }
  /** Restores the editor. */
  const unput = (draft: string) => {
    inquiry = undefined
    takeView()
    editor.prompt = question.prompt
    editor.status = status
    editor.fill(draft)
    for (const each of held.splice(0)) each()
    draw()
  }

  const inquire = <A>(asked: Inquiry<A>): Effect.Effect<A, Closed> =>
    Queue.unbounded<string, Closed>().pipe(
      Effect.flatMap((lines) =>
        Effect.acquireUseRelease(
          Effect.suspend(() =>
            messages.state._tag === "Open" ? Effect.succeed(put(asked, lines)) : Effect.fail(new Closed())
          ),
          (draft) =>
            Effect.gen(function* () {
              for (let current = asked; ;) {
                const line = yield* Queue.take(lines)
                const meant = current.read(line)
                if (meant._tag !== "Again") takeView()
                transcript.text(`${lineStart()}${current.prompt}${SafeText.shown(line)}\n`)
                if (meant._tag === "Answer") return meant.value
                if (meant._tag === "Then") {
                  current = meant.inquiry
                  put(current, lines, draft)
                } else {
                  transcript.text(SafeText.shown(meant.text))
                  draw()
                }
              }
            }),
          (draft) => Effect.sync(() => unput(draft))
        )
      ),
      oneInquiry.withPermit,
      Effect.withSpan("ChatTerminal.inquire")
    )

  const choose = <A>(title: string, choices: ReadonlyArray<Choice<A>>): Effect.Effect<Option.Option<A>, Closed> =>
    oneInquiry.withPermit(
      Effect.callback<Option.Option<A>>((resume) => {
        pick(title, choices, (chosen) =>
          resume(Effect.succeed(chosen === undefined ? Option.none() : Option.some(chosen.value)))
        )
        return Effect.sync(() => closePicker?.())
      })
    )

  /** Takes the colours of a theme, for what is drawn from now on. */
  const paintFor = Effect.fnUntraced(function* (theme: TerminalOptions["theme"]) {
    if (!canColor) return
    const isAsked = theme === "auto" || theme === "contrast"
    const colour = isAsked
      ? yield* Effect.promise(() => screen.queryTerminalBackgroundColor({ timeoutMs: backgroundMillis }))
      : undefined
    if (options.theme !== theme) return
    const paint = Palette.painter(theme, colour === undefined ? "dark" : Palette.backgroundOf(colour))
    if (paint === screen.paint) return
    screen.paint = paint
    // The terminal may answer when the user has cleared the screen already.
    screen.redraw(transcript.keepShown)
  })

  /** Announces the end of work that the user may have turned away from. */
  const announce = (seconds: number) => {
    if (options.bellAfter === 0 || seconds < options.bellAfter) return
    terminal.write(`\u0007\u001b]9;palimpsest: done after ${Math.round(seconds)} s\u0007`)
  }

  const spin = Effect.forever(
    Effect.andThen(
      Effect.sleep(frameMillis),
      Effect.sync(() => {
        frame += 1
        draw()
      })
    )
  )

  return ChatTerminal.of({
    isTerminal: true,
    canColor,
    columns: Effect.sync(() => terminal.columns),
    ask,
    during: (initial, job) =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          label = printableLine(initial)
          const outer = work
          const interrupted = Deferred.makeUnsafe<void>()
          work = { interrupted, since: clock.currentTimeMillisUnsafe() }
          draw()
          return Effect.map(Effect.forkChild(spin), (spinner) => ({
            interrupted,
            outer,
            spinner,
            since: work?.since ?? 0
          }))
        }),
        ({ interrupted }) => job(Deferred.await(interrupted)),
        ({ outer, since, spinner }) =>
          Effect.andThen(
            Fiber.interrupt(spinner),
            Effect.sync(() => {
              work = outer
              running.clear()
              endAnswer(false)
              if (outer === undefined) announce((clock.currentTimeMillisUnsafe() - since) / 1_000)
              draw()
            })
          )
      ),
    working: Effect.fn("ChatTerminal.working")((text) =>
      Effect.sync(() => {
        label = printableLine(text)
        draw()
      })
    ),
    inquire,
    choose,
    answer: (piece) => Effect.sync(() => show(() => transcript.answer(visible(piece)))),
    endAnswer: (isDiscarded) => Effect.sync(() => show(() => endAnswer(isDiscarded))),
    card: (card) =>
      Effect.sync(() =>
        show(() => {
          const safe = {
            ...card,
            head: SafeText.shown(card.head),
            body: card.body.map(SafeText.shown),
            more: card.more.map(SafeText.shown)
          }
          if (card.isRunning) running.set(card.key, safe)
          else {
            running.delete(card.key)
            endAnswer(false)
            transcript.card(safe)
          }
        })
      ),
    status: (line) =>
      Effect.sync(() => {
        status = (columns) => SafeText.shown(line(columns))
        if (inquiry === undefined) editor.status = status
        draw()
      }),
    panel: (lines) =>
      Effect.sync(() => {
        panel = lines.map(SafeText.shown)
        draw()
      }),
    configure: (given) =>
      Effect.sync(() => {
        const isOtherTheme = given.theme !== options.theme
        options = given
        editor.vim = given.keys === "vim" ? (editor.vim ?? VimKeys.initial) : undefined
        if (isOtherTheme) run(paintFor(given.theme))
      }),
    title: (text) => Effect.sync(() => terminal.setTitle(printableLine(text))),
    copy: (text) => Clipboard.copy(text, terminal.write),
    write: Effect.fn("ChatTerminal.write")((text) =>
      Effect.sync(() =>
        show(() => {
          endAnswer(false)
          transcript.text(SafeText.shown(text))
        })
      )
    ),
    note: Effect.fn("ChatTerminal.note")((line) =>
      Effect.sync(() =>
        show(() => {
          endAnswer(false)
          note(line)
        })
      )
    )
  })
})
