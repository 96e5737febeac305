/**
 * The chat terminal with a conversation that scrolls, and below it what stays: running work, the queue, the status line and the
 * editor. Drawn with pi-tui.
 */

import { type Component, getCapabilities } from "@earendil-works/pi-tui"
import { Clock, Deferred, Effect, Fiber, FiberSet, Semaphore } from "effect"
import type { TerminalSettings } from "../../domain/settings/Settings.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { type Card, ChatTerminal, type Question } from "../../services/terminal/ChatTerminal.ts"
import { ChatOutput, safeCard } from "./ChatOutput.ts"
import { ChatScreen } from "./ChatScreen.ts"
import * as Clipboard from "./Clipboard.ts"
import * as CompletionMenu from "./CompletionMenu.ts"
import { EditorSlot } from "./EditorSlot.ts"
import * as Highlight from "./Highlight.ts"
import type { InputHistory } from "./InputHistory.ts"
import { MessageEditor } from "./MessageEditor.ts"
import * as MessageQueue from "./MessageQueue.ts"
import { OpenQuestion } from "./OpenQuestion.ts"
import * as PastedImages from "./PastedImages.ts"
import * as SafeText from "./SafeText.ts"
import * as StreamTerminal from "./StreamTerminal.ts"
import * as Keys from "./TerminalKeys.ts"
import type { TerminalParts } from "./TerminalParts.ts"
import * as Theme from "./Theme.ts"
import { Transcript } from "./Transcript.ts"
import * as VimKeys from "./VimKeys.ts"
import { durationText, endOfWorkSignal, progressRows, WorkProgress } from "./WorkProgress.ts"

/** Slow connections are supported too: four frames per second are enough to show that work goes on. */
const frameMillis = 250
/** How long to wait for the terminal to say its background. */
const backgroundMillis = 2_000
/** The longest pause between two keys of one word. Typists pause for 100 to 150 ms, slow ones for 250. */
const wordMillis = 250
/** Messages of earlier chats that Up recalls. Ctrl+R searches all of them. */
const recalledMessages = 100

const secondsSince = ({ clock }: TerminalParts, since: number): number =>
  (clock.currentTimeMillisUnsafe() - since) / 1_000

/** Draws the question, or else the work that goes on. */
const belowConversation = (parts: TerminalParts, theme: Theme.Theme): Component => ({
  invalidate: () => {},
  render: (width) => {
    const { editor, output, progress, question, queue, terminal } = parts
    if (question.isOpen) {
      const rows = question.rows(width, terminal.rows - editor.render(width).length - 2)
      return rows.length === 0 || output.transcript.isEmpty() ? rows : ["", ...rows]
    }
    const { cards, current, frame, isStopping, label, panel, until } = progress
    const left = until === undefined ? undefined : Math.max(0, Math.ceil(-secondsSince(parts, until)))
    return progressRows(
      {
        work: current && { label, frame, isStopping, left, seconds: Math.floor(secondsSince(parts, current.since)) },
        cards: [...cards.values()],
        areCardsOpen: output.transcript.areCardsOpen(),
        queued: queue.messages,
        panel,
        isFirst: output.transcript.isEmpty()
      },
      theme,
      width
    )
  }
})

/** Takes the colours of a theme, for what is drawn from now on. */
const paintFor = Effect.fnUntraced(function* (
  { canColor, output, screen, state }: TerminalParts,
  theme: TerminalSettings["theme"]
) {
  if (!canColor) return
  const isAsked = theme === "auto" || theme === "contrast"
  const colour = isAsked
    ? yield* Effect.promise(() => screen.queryTerminalBackgroundColor({ timeoutMs: backgroundMillis }))
    : undefined
  if (state.options.theme !== theme) return
  const background = colour === undefined ? "dark" : Theme.backgroundOf(colour)
  const paint = Theme.painter(theme, background, getCapabilities().trueColor)
  if (paint === screen.paint) return
  screen.paint = paint
  // The terminal may answer when the user has cleared the screen already.
  screen.redraw((rows, columns) => output.transcript.keepShown(rows, columns))
})

/** Puts the editor back to the prompt for messages. */
const restorePrompt = ({ editor, state }: TerminalParts) => {
  editor.prompt = state.prompt.prompt
}

const ask = Effect.fnUntraced(function* (parts: TerminalParts, asked: Question) {
  const { editor, output, question, queue, state } = parts
  // Work in the background can have a question open.
  yield* question.turns.withPermit(Effect.void)
  state.prompt = asked
  state.prefill = asked.prefill ?? state.prefill
  if (queue.messages.length === 0 && queue.isOpen) {
    editor.prompt = asked.prompt
    if (state.prefill !== "") {
      const typed = editor.wholeText()
      editor.fill(SafeText.pasted(state.prefill) + (typed === "" ? "" : `\n${typed}`))
      state.prefill = ""
    }
    output.draw()
  }
  const message = yield* queue.take
  output.endAnswer(false)
  output.transcript.message(SafeText.shown(message.text))
  output.draw()
  yield* message.store
  return message.text
})

const during = <A, E, R>(
  parts: TerminalParts,
  label: string,
  job: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>
) => {
  const { clock, output, progress, state, terminal } = parts
  const nextFrame = Effect.sync(() => {
    progress.frame += 1
    output.draw()
  })
  const spin = Effect.forever(Effect.andThen(Effect.sleep(frameMillis), nextFrame))
  return Effect.acquireUseRelease(
    Effect.suspend(() => {
      const begun = progress.begin(label, clock.currentTimeMillisUnsafe())
      output.draw()
      return Effect.map(Effect.forkChild(spin), (spinner) => ({ ...begun, spinner }))
    }),
    ({ work }) => job(Deferred.await(work.interrupted)),
    ({ outer, spinner, work }) =>
      Effect.andThen(
        Fiber.interrupt(spinner),
        Effect.sync(() => {
          progress.end(outer)
          output.endAnswer(false)
          const seconds = secondsSince(parts, work.since)
          const signal = endOfWorkSignal(seconds, state.options.bellAfter)
          if (outer === undefined && signal !== "") {
            terminal.write(signal)
            output.addNote(`Took ${durationText(seconds)}.`)
          }
          output.draw()
        })
      )
  )
}

/** Shows a card: below the conversation while it runs, then in it. */
const showCard = ({ output, progress }: TerminalParts, card: Card) =>
  output.show(() => {
    const safe = safeCard(card)
    if (card.isRunning) progress.cards.set(card.key, safe)
    else {
      progress.cards.delete(card.key)
      output.card(safe)
    }
  })

const setStatus = ({ editor, output }: TerminalParts, line: (columns: number) => string) => {
  editor.status = (columns) => SafeText.shown(line(columns))
  output.draw()
}

const configure = (parts: TerminalParts, options: TerminalSettings) => {
  const { editor, state } = parts
  const isOtherTheme = options.theme !== state.options.theme
  state.options = options
  editor.vim = options.keys === "vim" ? (editor.vim ?? VimKeys.initial) : undefined
  if (isOtherTheme) parts.run(paintFor(parts, options.theme))
}

/** Shows the messages that the user typed meanwhile, and returns them. */
const takeTyped = ({ output, queue }: TerminalParts) =>
  Effect.gen(function* () {
    const taken = queue.takeTyped()
    for (const { store, text } of taken) {
      output.show(() => {
        output.endAnswer(false)
        output.transcript.message(SafeText.shown(text))
      })
      yield* store
    }
    return taken.map(({ text }) => text)
  }).pipe(Effect.withSpan("ChatTerminal.takeTyped"))

/** The service over the parts. */
const service = (parts: TerminalParts): ChatTerminal["Service"] => {
  const { output, progress, question, queue, terminal } = parts
  /** Shows something after the answer. */
  const after = (change: () => void) =>
    Effect.sync(() =>
      output.show(() => {
        output.endAnswer(false)
        change()
      })
    )
  return {
    isTerminal: true,
    canColor: parts.canColor,
    columns: Effect.sync(() => terminal.columns),
    ask: Effect.fn("ChatTerminal.ask")((asked) => ask(parts, asked)),
    during: (label, job) => during(parts, label, job),
    takeTyped: takeTyped(parts),
    working: Effect.fn("ChatTerminal.working")((label, seconds) =>
      Effect.sync(() => {
        progress.label = printableLine(label)
        progress.until = seconds === undefined ? undefined : parts.clock.currentTimeMillisUnsafe() + seconds * 1_000
        output.draw()
      })
    ),
    inquire: (inquiry) => question.ask(inquiry, () => queue.isOpen),
    choose: (title, choices) => Keys.choose(parts, title, choices),
    answer: (piece) => Effect.sync(() => output.show(() => output.addAnswer(piece))),
    endAnswer: (isDiscarded) => Effect.sync(() => output.show(() => output.endAnswer(isDiscarded))),
    card: (card) => Effect.sync(() => showCard(parts, card)),
    status: (line) => Effect.sync(() => setStatus(parts, line)),
    onModeKey: (run) =>
      Effect.sync(() => {
        parts.state.modeKey = run
      }),
    panel: (lines) =>
      Effect.sync(() => {
        progress.panel = lines.map(SafeText.shown)
        output.draw()
      }),
    configure: (options) => Effect.sync(() => configure(parts, options)),
    title: (text) => Effect.sync(() => terminal.setTitle(printableLine(text))),
    copy: (text) => Clipboard.copy(text, terminal.write),
    write: Effect.fn("ChatTerminal.write")((text) => after(() => output.transcript.text(SafeText.shown(text)))),
    note: Effect.fn("ChatTerminal.note")((line) => after(() => output.addNote(line)))
  }
}

/** Connects the editor to what is typed into it. */
const connectEditor = (parts: TerminalParts, runPromise: CompletionMenu.MenuSource["run"]) => {
  const { editor, history, images, question, state } = parts
  editor.onPaste = (text) => (question.isOpen ? text : PastedImages.withReference(text, images))
  editor.onMessage = (text, waits) => Keys.onMessage(parts, text, waits)
  for (const text of history.entries.slice(0, recalledMessages).reverse()) editor.addToHistory(text)
  editor.setAutocompleteProvider(
    CompletionMenu.provider({
      completer: () => (question.isOpen ? undefined : state.prompt.complete),
      onMenu: (text) => {
        editor.menuText = text
      },
      onOpened: () => editor.menuOpened(),
      run: runPromise
    })
  )
}

const initialState = (): TerminalParts["state"] => ({
  prompt: { prompt: "> " },
  prefill: "",
  isLeaving: false,
  options: { theme: "dark", keys: "default", bellAfter: 10 },
  modeKey: Effect.void
})

/** Runs a function when no key was typed for the time between two keys of a word. Returns a function that calls it off. */
const afterWord = (run: () => void) => {
  const timer = setTimeout(run, wordMillis)
  return () => clearTimeout(timer)
}

/** Shows the screen until the scope ends. */
const showScreen = (screen: ChatScreen) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      screen.start()
      // Whatever is loaded next keeps timers waiting, and the frame that was requested too.
      screen.renderNow()
    }),
    () => Effect.sync(() => screen.finish())
  )

/** Makes the terminal for the given streams. The terminal's state is restored when the scope ends. */
export const make = Effect.fnUntraced(function* (
  streams: StreamTerminal.Streams,
  history: InputHistory,
  canColor: boolean,
  /** The folder that takes copies of pasted images. */
  images: string
) {
  const run = yield* FiberSet.makeRuntime<never>()
  const runPromise = yield* FiberSet.makeRuntimePromise<never>()
  const theme = Theme.make(
    canColor,
    Highlight.make(() => {
      transcript.invalidate()
      question.invalidate()
      screen.requestRender()
    })
  )
  const transcript = new Transcript(theme)
  const terminal = StreamTerminal.make(streams, () => Keys.leave(parts))
  const screen = new ChatScreen(terminal, transcript)
  if (canColor) screen.paint = Theme.painter("dark", "dark", getCapabilities().trueColor)
  const editor = new MessageEditor(screen, theme)
  const output = new ChatOutput(transcript, theme, () => screen.requestRender())
  const question = new OpenQuestion(yield* Semaphore.make(1), {
    output,
    editor,
    theme,
    restorePrompt: () => restorePrompt(parts),
    afterWord
  })
  const parts: TerminalParts = {
    clock: yield* Clock.Clock,
    canColor,
    images,
    history,
    terminal,
    screen,
    editor,
    slot: new EditorSlot(editor, theme, (component) => screen.setFocus(component)),
    output,
    queue: yield* MessageQueue.make,
    question,
    progress: new WorkProgress(),
    run: (effect) => void run(effect),
    state: initialState()
  }
  connectEditor(parts, runPromise)
  const isPaste = (key: string) => key.startsWith("\u001b[200~")
  screen.addInputListener((key) => (!isPaste(key) && Keys.onKey(parts, key) ? { consume: true } : undefined))
  screen.addChild(belowConversation(parts, theme))
  screen.addChild(parts.slot)
  yield* showScreen(screen)
  return ChatTerminal.of(service(parts))
})
