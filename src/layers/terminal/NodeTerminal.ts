import {
  Cause,
  Clock,
  Deferred,
  Effect,
  Exit,
  Fiber,
  FiberSet,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Queue,
  Schema,
  Semaphore
} from "effect"
import { CliOutput, TerminalCapabilities } from "effect/cli"
import { stderr, stdin, stdout } from "node:process"
import * as readline from "node:readline"
import { PassThrough, type Readable, Writable } from "node:stream"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { codePointEscape, printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { wrap } from "../../domain/text/Wrap.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import {
  ChatTerminal,
  Closed,
  type Completion,
  type Inquiry,
  type Question
} from "../../services/terminal/ChatTerminal.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"
import { ctrlCAction } from "./CtrlCAction.ts"

/**
 * The chat terminal on Node: the history file, key input, the edited line and the output around it. `CtrlCAction.ts` decides what
 * Ctrl+C does.
 *
 * One file: readline's state, the rows on the screen and the keys depend on each other at every step.
 */

// --- history --------------------------------------------------------------------------------------------------------------

/** Number of messages kept from run to run. */
const historyBound = 1_000
/**
 * The file is rewritten only when it exceeds the bound by this many messages. Each rewrite can lose a line that another chat
 * adds at the same time.
 */
const historySlack = 250
/** A longer message is kept only in the chat in which it was typed. */
const historyLength = 100_000

const Line = fromJson(Schema.String)
const decodeLine = Schema.decodeUnknownOption(Line)

interface History {
  /** Newest first. */
  readonly entries: Array<string>
  /** Adds a message to `entries` at once and returns the effect that stores it. */
  readonly add: (message: string) => Effect.Effect<void>
}

/**
 * Reads the history file: one JSON string per line, oldest first, so that messages keep their line breaks. Two chats can append
 * to the file at the same time; neither shortens it while the other one appends. A damaged line is skipped. A file that cannot
 * be used causes one warning.
 */
const openHistory = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  let usable = true
  const orWarn = <A, R>(
    work: Effect.Effect<A, FileLock.FileLocked | PlatformError.PlatformError, R>
  ): Effect.Effect<Option.Option<A>, never, R> =>
    Effect.catch(Effect.asSome(work), (error) => {
      usable = false
      const why = error._tag === "FileLocked" ? error.message : diskErrorText(error)
      return Effect.as(Effect.logWarning(`${file} cannot be used (${why}); messages are not kept`), Option.none())
    })

  const alone = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    FileLock.withLock({ file, lock: FileLock.lockFileOf(path, file) }, work).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path),
      ThisProcess.provide
    )
  const read = Effect.map(
    Effect.catchIf(fs.readFileString(file), isNotFound, () => Effect.succeed("")),
    (text) => text.split("\n")
  )
  const keptOf = (lines: ReadonlyArray<string>) =>
    lines.flatMap((line) => Option.toArray(decodeLine(line))).slice(-historyBound)
  const isLong = (lines: ReadonlyArray<string>) => lines.length > historyBound + historySlack
  const shorten = Effect.gen(function* () {
    const lines = yield* read
    if (!isLong(lines)) return
    const shorter = keptOf(lines).map((message) => `${JSON.stringify(message)}\n`)
    yield* AtomicFile.writePrivate(file, shorter.join(""))
  })

  const lines = Option.getOrElse(yield* orWarn(read), (): Array<string> => [])
  const kept = keptOf(lines)
  if (isLong(lines)) yield* orWarn(alone(shorten))

  const entries = kept.reverse()
  const store = (message: string) =>
    alone(fs.writeFileString(file, `${JSON.stringify(message)}\n`, { flag: "a", mode: 0o600 })).pipe(
      orWarn,
      Effect.asVoid
    )
  const add = (message: string) => {
    // As in shells, a message that begins with a space is not stored.
    if (message.startsWith(" ") || message === entries[0]) return Effect.void
    entries.unshift(message)
    entries.length = Math.min(entries.length, historyBound)
    return usable && message.length <= historyLength ? store(message) : Effect.void
  }
  return { entries, add } satisfies History
})

// --- keys -----------------------------------------------------------------------------------------------------------------

const pasteStart = "\u001b[200~"
const pasteEnd = "\u001b[201~"

/** Returns how many characters at the end of a text could begin a paste marker. */
const begun = (text: string): number => {
  for (let length = Math.min(text.length, pasteStart.length - 1); length > 0; length -= 1) {
    if (pasteStart.startsWith(text.slice(-length))) return length
  }
  return 0
}

/**
 * Removes bracketed pastes from the input. Of each paste only the end marker is passed on, a key that readline ignores, and
 * `pasted` is called before that. The paste is thus inserted at its place among the keys, and its characters are never read as
 * keys.
 */
const withoutPastes = (pasted: (text: string) => void): ((text: string) => string) => {
  let held = ""
  /** How much of `held` was passed on already. An Escape is not held back for the rest of a marker: it may be the key itself. */
  let gone = 0
  let inside = false
  return (text) => {
    // After a lost end marker, Ctrl+C ends the paste. Otherwise every later key would be swallowed.
    const isWayOut = inside && text === "\u0003"
    let from = Math.max(0, held.length - pasteEnd.length)
    held += isWayOut ? pasteEnd : text
    let passed = ""
    for (;;) {
      const mark = inside ? pasteEnd : pasteStart
      const at = held.indexOf(mark, inside ? from : 0)
      from = 0
      if (at < 0) break
      if (inside) {
        pasted(held.slice(0, at))
        passed += pasteEnd
      } else passed += held.slice(gone, at)
      held = held.slice(at + mark.length)
      gone = 0
      inside = !inside
    }
    if (inside) return passed
    const waiting = begun(held)
    const rest = held.length - waiting
    passed += held.slice(gone, waiting === 1 ? held.length : rest)
    gone = waiting === 1 ? 1 : Math.max(0, gone - rest)
    held = held.slice(rest)
    return passed
  }
}

/** Removes everything a terminal would act on, except line breaks and tabs. */
const harmless = (text: string): string =>
  text
    .replace(/\r\n?|\p{Zl}|\p{Zp}/gu, "\n")
    .replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "")
    .replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")

/** The only sequences that pass to a terminal: text styles and writes to the clipboard (OSC 52). */
// oxlint-disable-next-line no-control-regex
const allowed = /(\u001b\[\d{1,2}m|\u001b\]52;c;[A-Za-z0-9+/=]*\u0007)/
/** Joiners are kept: they are parts of letters and emoji, and a word that arrives in pieces must not be split at them. */
const steering = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Escapes every other control sequence in a text. All output to a terminal passes through here. */
const gated = (text: string): string =>
  text
    .split(allowed)
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(/\r\n?/g, "\n").replace(steering, codePointEscape)))
    .join("")

/** Stands for a line break in the edited line. */
const lineBreak = "↵"

/**
 * Converts between texts and the single line in which readline edits them. A text that would fill half the screen, or that
 * contains the line break sign itself, is shown as a mark: readline can only edit what fits on the screen.
 */
const editing = (room: () => number) => {
  const marked = new Map<string, string>()
  const marks = new Map<string, string>()
  const toLine = (text: string): string => {
    if (text.length <= room() && !text.includes(lineBreak)) return text.replaceAll("\n", lineBreak)
    const existing = marks.get(text)
    if (existing !== undefined) return existing
    const lines = text.split("\n").length
    const mark = `[#${marks.size + 1}: ${lines > 1 ? `${lines} lines` : `${text.length} characters`}]`
    marks.set(text, mark)
    marked.set(mark, text)
    return mark
  }
  const toText = (line: string): string =>
    line.replace(/\[#\d+: \d+ (?:lines|characters)\]|↵/g, (match) =>
      match === lineBreak ? "\n" : (marked.get(match) ?? match)
    )
  return { toLine, toText }
}

/** Returns the message that the lines form, or undefined while it is incomplete. */
const complete = (lines: ReadonlyArray<string>): string | undefined => {
  const isBlock = lines[0]?.trimEnd() === '"""'
  if (isBlock) {
    return lines.length > 1 && lines.at(-1)?.trimEnd() === '"""' ? lines.slice(1, -1).join("\n") : undefined
  }
  if (endsInBackslash(lines.at(-1) ?? "")) return undefined
  return lines.map((line) => (endsInBackslash(line) ? line.slice(0, -1) : line)).join("\n")
}

/** Whether a single backslash ends the line. Two backslashes are literal. */
const endsInBackslash = (line: string) => /(?:^|[^\\])\\$/.test(line)

// --- the terminal ---------------------------------------------------------------------------------------------------------

/** The standard streams of a chat. */
export interface Streams {
  /** Key input. Raw mode exists on a terminal only. */
  readonly input: Readable & { readonly setRawMode?: ((raw: boolean) => unknown) | undefined }
  /** Output, with its size on a terminal. */
  readonly output: Writable & {
    readonly columns?: number | undefined
    readonly rows?: number | undefined
    readonly isTTY?: boolean | undefined
  }
  /** Receives the notices of a chat without a terminal. */
  readonly error: Writable
}

/** Size of a terminal that does not report one. */
const defaultColumns = 80
const defaultRows = 24

/** Sequences that a terminal runs without showing them, such as a write to the clipboard. */
const command = /\p{Cc}\][^\p{Cc}]*\p{Cc}\\?/gu

const continuation = "… "
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Slow connections are supported too: four frames per second are enough to show that work goes on. */
const frameMillis = 250
/** Users notice a pause of half a second. */
const patienceMillis = 500
/** Keys are held back while a completion is looked up. */
const completionDeadline = "2 seconds"

const nothing: Completion = { candidates: [], replaced: "" }

/** Cuts a line at its end so that it fits on one row. */
const cut = (text: string, columns: number): string => {
  if (CliOutput.displayWidth(text) <= columns) return text
  let width = 0
  let kept = ""
  for (const character of text) {
    width += CliOutput.displayWidth(character)
    if (width > columns - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Cuts a line at its beginning so that it fits on one row. */
const tail = (text: string, columns: number): string => {
  if (CliOutput.displayWidth(text) <= columns) return text
  let width = 0
  let kept = ""
  for (const character of [...text].reverse()) {
    width += CliOutput.displayWidth(character)
    if (width > columns - 1) break
    kept = character + kept
  }
  return `…${kept}`
}

/** Maximum number of rows that show text typed ahead. Of more rows, the last ones are shown. */
const maxRowsAhead = 5

/** Writes a text and waits until the stream has taken it. Returns whether the write succeeded. */
const written = (stream: Writable, text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    stream.write(text, (error) => resume(Effect.succeed(error === null || error === undefined)))
  })

const closed = Cause.fail(new Closed())

/** The terminal without an interactive user: each line of the input is a message. */
const plain = Effect.fnUntraced(function* ({ error, input, output }: Streams) {
  const lines = yield* Queue.unbounded<string, Closed>()
  const close = () => Queue.failCauseUnsafe(lines, closed)
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const rl = readline.createInterface({ input, terminal: false, crlfDelay: Number.POSITIVE_INFINITY })
      rl.on("line", (line) => {
        if (line.trim() !== "") Queue.offerUnsafe(lines, line.trimEnd())
      })
      rl.once("close", close)
      rl.once("error", close)
      return rl
    }),
    (rl) => Effect.sync(() => rl.close())
  )
  return ChatTerminal.of({
    isTerminal: false,
    canColor: false,
    columns: Effect.succeed(Number.POSITIVE_INFINITY),
    ask: Effect.fn("ChatTerminal.ask")(() => Queue.take(lines)),
    during: (_label, work) => work(Effect.never),
    working: () => Effect.void,
    inquire: () => Effect.fail(new Closed()),
    write: Effect.fn("ChatTerminal.write")(function* (text) {
      if (!(yield* written(output, output.isTTY === true ? gated(text) : text))) close()
    }),
    note: Effect.fn("ChatTerminal.note")((line) => Effect.asVoid(written(error, `${printableLine(line)}\n`)))
  })
})

/** A complete message. */
interface Typed {
  readonly text: string
  /** Whether the prompt was shown while it was typed. */
  readonly wasShown: boolean
  readonly store: Effect.Effect<void>
}

/** An open question, asked during work. */
interface Open {
  readonly prompt: string
  /** Lines typed since the question was shown. */
  readonly lines: Queue.Queue<string, Closed>
}

/** The interactive terminal: a line editor and the output around it. */
const interactive = Effect.fnUntraced(function* ({ input, output }: Streams, history: History, canColor: boolean) {
  const messages = yield* Queue.unbounded<Typed, Closed>()
  /** Messages in the queue that were not taken back into the prompt, oldest first. */
  const waiting: Array<Typed> = []
  const clock = yield* Clock.Clock
  const run = yield* FiberSet.makeRuntime<never>()
  const columns = () => output.columns ?? defaultColumns
  const { toLine, toText } = editing(() => (columns() * (output.rows ?? defaultRows)) / 2)
  const dim = (text: string) => (canColor ? `\u001b[2m${text}\u001b[0m` : text)

  let question: Question = { prompt: "" }
  let isAsking = false
  /** Lines of an incomplete message. */
  let gathered: Array<string> = []
  let prefill = ""
  /** Whether the next Ctrl+C leaves. */
  let isLeaving = false
  let work: Deferred.Deferred<void> | undefined
  const pastes: Array<string> = []
  /** The open question, if any: typed lines answer it. */
  let inquiry: Open | undefined
  /** Output to show once the question is answered. */
  const held: Array<() => void> = []
  const oneInquiry = yield* Semaphore.make(1)
  const isListening = () => isAsking || inquiry !== undefined

  // --- output -------------------------------------------------------------------------------------------------------------

  /** Width in columns of the unfinished line on the screen. */
  let column = 0
  let lastWrite = 0
  /** Sequence that wipes the spinner; empty when no spinner is shown. */
  let wipe = ""
  /** Width in columns of the spinner's line, including the text before it. */
  let spinnerEnd = 0
  /** Number of rows below the cursor that show text typed ahead. */
  let rowsAhead = 0

  /** The text typed ahead, one row each: the waiting messages, then the lines of the unfinished one. */
  const typedAhead = (): ReadonlyArray<string> => {
    if (work === undefined || isListening()) return []
    const unfinished = gathered.length > 0 || rl.line !== "" ? [...gathered, rl.line] : []
    const lines = [...waiting.map(({ text }) => toLine(text)), ...unfinished]
    const maxRows = Math.max(1, Math.min(maxRowsAhead, (output.rows ?? defaultRows) - 2))
    return lines.slice(-maxRows).map((line) => tail(`> ${line}`, columns() - 1))
  }
  /** Returns the sequence that wipes the rows below the cursor. */
  const wipedAhead = (): string => {
    const text = rowsAhead > 0 ? "\u001b[J" : ""
    rowsAhead = 0
    return text
  }
  /**
   * Returns the sequence that draws these rows and moves the cursor back to its row and to column `at`. Draws nothing when the
   * row is full, because the cursor could not return to it.
   */
  const drawnAhead = (at: number): string => {
    const rows = at < columns() - 1 ? typedAhead() : []
    if (rows.length === 0) return ""
    rowsAhead = rows.length
    return `${rows.map((row) => `\n\r${dim(row)}`).join("")}\u001b[${rows.length}A\u001b[${at + 1}G`
  }
  const redrawAhead = () => {
    const text = wipedAhead() + drawnAhead(wipe === "" ? column : spinnerEnd)
    if (text !== "") output.write(text)
  }

  const show = (given: string) => {
    const text = gated(given)
    const wiped = wipe + wipedAhead()
    wipe = ""
    lastWrite = clock.currentTimeMillisUnsafe()
    const line = text.slice(Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1)
    column = CliOutput.displayWidth(line.replace(command, "")) + (line.length === text.length ? column : 0)
    output.write(wiped + text + drawnAhead(column))
  }
  const freshLine = () => (column > 0 ? "\n" : "")
  const wrapped = (line: string) => wrap(printableLine(line), columns(), CliOutput.displayWidth).map(dim).join("\n")

  /** Shows a text now, or after the open question is answered. */
  const tell = (text: () => string) => {
    if (inquiry === undefined) show(text())
    else held.push(() => show(text()))
  }

  /** Receives readline's output. Drops it unless a prompt or a question is open. */
  const echo = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      if (isListening()) output.write(text)
      done()
    }
  })
  Object.defineProperty(echo, "columns", { get: columns })

  // --- input --------------------------------------------------------------------------------------------------------------

  const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (raw: boolean) => input.setRawMode?.(raw) })
  const filter = withoutPastes((text) => pastes.push(toLine(harmless(text))))
  const decoder = new TextDecoder()
  const onData = (bytes: Buffer) => {
    const typed = filter(decoder.decode(bytes, { stream: true }))
    // Ctrl+D is ignored within a message, where it would discard the lines typed, and while a question is open.
    keys.write(typed === "\u0004" && (gathered.length > 0 || inquiry !== undefined) ? "" : typed)
  }

  const completer = (line: string, answer: (error: null, result: [Array<string>, string]) => void) => {
    const completion = question.complete === undefined || !isAsking ? Effect.succeed(nothing) : question.complete(line)
    run(
      completion.pipe(
        Effect.timeoutOrElse({ duration: completionDeadline, orElse: () => Effect.succeed(nothing) }),
        Effect.catchCause(() => Effect.succeed(nothing)),
        Effect.map(({ candidates, replaced }) =>
          // File names can contain control characters.
          answer(null, [candidates.filter((candidate) => !/\p{C}/u.test(candidate)), replaced])
        )
      )
    )
  }

  const openInterface = () => {
    const rl = readline.createInterface({ input: keys, output: echo, terminal: true, historySize: 0, completer })
    input.on("data", onData)
    input.on("end", () => keys.end())
    return rl
  }
  const onResize = () => echo.emit("resize")
  const rl = yield* Effect.acquireRelease(Effect.sync(openInterface), (rl) =>
    Effect.sync(() => {
      isAsking = false
      input.off("data", onData)
      output.off("resize", onResize)
      rl.close()
      input.pause()
      output.write(`${wipe}${wipedAhead()}\u001b[?2004l`)
    })
  )
  output.on("resize", onResize)

  /** Replaces the line and the cursor position. Readline itself offers only keys for this. */
  const edit = (line: string, cursor: number) => {
    Object.assign(rl, { line, cursor })
    rl.prompt(true)
  }
  /** Shows the prompt on a row of its own, with the content of the line. */
  const prompt = () => {
    rl.setPrompt(inquiry?.prompt ?? (gathered.length === 0 ? question.prompt : continuation))
    // Discards the rows that readline counted while nothing was shown.
    Object.assign(rl, { prevRows: 0 })
    rl.prompt(true)
  }
  const recallable = () => Object.assign(rl, { history: history.entries.map(toLine), historyIndex: -1 })
  recallable()
  const withPrompts = (lines: ReadonlyArray<string>) =>
    lines.map((line, index) => `${index === 0 ? question.prompt : continuation}${line}\n`).join("")

  const onLine = (line: string) => {
    if (inquiry !== undefined) {
      column = 0
      Queue.offerUnsafe(inquiry.lines, toText(line).trim())
      return
    }
    gathered.push(line)
    const message = complete(gathered)
    if (message === undefined || message.trim() === "") {
      if (message !== undefined) gathered = []
      if (isAsking) prompt()
      return
    }
    gathered = []
    if (isAsking) column = 0
    const text = toText(message).trimEnd()
    const typed = { text, wasShown: isAsking, store: history.add(text) }
    waiting.push(typed)
    Queue.offerUnsafe(messages, typed)
    recallable()
    isAsking = false
  }

  /** Puts the waiting messages and the lines of an incomplete message back into the line. */
  const takeBack = () => {
    const lines = gathered[0]?.trimEnd() === '"""' ? gathered.slice(1) : gathered
    const texts = [...waiting.splice(0).map(({ text }) => text), ...lines.map((line) => toText(line)), toText(rl.line)]
    gathered = []
    const line = toLine(texts.filter((text) => text !== "").join("\n"))
    Object.assign(rl, { line, cursor: line.length })
  }

  const onCtrlC = () => {
    const hasInput = gathered.length > 0 || rl.line !== ""
    switch (ctrlCAction({ isWorking: work !== undefined, hasInput, wasPressed: isLeaving })) {
      case "cancelWork":
        // Messages typed ahead were meant to follow the work that is now cancelled.
        if (inquiry === undefined) takeBack()
        if (work !== undefined) Deferred.doneUnsafe(work, Effect.void)
        return
      case "leave":
        rl.close()
        return
      case "clearPrompt":
        // The input can span several rows: move to its end first.
        rl.write(null, { ctrl: true, name: "e" })
        if (isListening()) show("^C\n")
        if (inquiry === undefined) gathered = []
        Object.assign(rl, { line: "", cursor: 0 })
        break
      case "warn":
        isLeaving = true
        if (isListening()) show(`\n${dim("press Ctrl+C again to leave")}\n`)
    }
    if (isListening()) prompt()
  }

  // Readline loses its row count when several characters arrive at once.
  keys.prependListener("keypress", () => {
    if (isListening()) Object.assign(rl, { prevRows: rl.getCursorPos().rows })
  })
  keys.on("keypress", (_text: string | undefined, key: readline.Key) => {
    if (key.ctrl !== true || key.name !== "c") isLeaving = false
    const paste = key.name === "paste-end" ? pastes.shift() : undefined
    if (paste !== undefined && messages.state._tag === "Open") {
      edit(rl.line.slice(0, rl.cursor) + paste + rl.line.slice(rl.cursor), rl.cursor + paste.length)
    }
    redrawAhead()
  })
  rl.on("line", onLine)
  rl.on("SIGINT", onCtrlC)
  rl.on("SIGCONT", () => {
    rl.resume()
    output.write("\u001b[?2004h")
  })
  const leave = () => {
    if (isListening()) show("\n")
    isAsking = false
    Queue.failCauseUnsafe(messages, closed)
    if (inquiry !== undefined) Queue.failCauseUnsafe(inquiry.lines, closed)
  }
  rl.once("close", leave)
  rl.on("error", () => rl.close())
  output.write("\u001b[?2004h")

  // --- the service --------------------------------------------------------------------------------------------------------

  const ask = Effect.fn("ChatTerminal.ask")(
    function* (asked: Question): Effect.fn.Return<string, Closed> {
      // Work in the background can have a question open.
      yield* oneInquiry.withPermit(Effect.void)
      question = asked
      prefill = asked.prefill ?? prefill
      show(freshLine())
      if (waiting.length === 0 && messages.state._tag === "Open") {
        isAsking = true
        isLeaving = false
        column = 0
        show(withPrompts(gathered))
        if (prefill !== "") {
          const line = toLine(harmless(prefill)) + (rl.line === "" ? "" : lineBreak + rl.line)
          prefill = ""
          Object.assign(rl, { line, cursor: line.length })
        }
        prompt()
      }
      let taken = yield* Queue.take(messages)
      while (taken !== waiting[0]) taken = yield* Queue.take(messages)
      waiting.shift()
      const { store, text, wasShown } = taken
      if (!wasShown) show(withPrompts(text.split("\n")))
      yield* store
      return text
    },
    Effect.ensuring(
      Effect.sync(() => {
        isAsking = false
      })
    )
  )

  /** Shows a question and returns the state of the prompt before it. */
  const put = (text: string, opened: Open) => {
    const wasAsking = isAsking
    const { cursor, line } = rl
    if (wasAsking) {
      rl.write(null, { ctrl: true, name: "e" })
      show("\n")
    }
    isAsking = false
    inquiry = opened
    show(freshLine() + text)
    Object.assign(rl, { line: "", cursor: 0, history: [], historyIndex: -1 })
    prompt()
    return { cursor, line, wasAsking }
  }
  /** Restores the prompt to that state. */
  const unput = ({ cursor, line, wasAsking }: ReturnType<typeof put>, isAnswered: boolean) => {
    const isOpen = messages.state._tag === "Open"
    if (!isAnswered && isOpen) {
      rl.write(null, { ctrl: true, name: "e" })
      show("\n")
    }
    inquiry = undefined
    Object.assign(rl, { line, cursor })
    recallable()
    for (const each of held.splice(0)) each()
    isAsking = wasAsking && isOpen
    if (isAsking) prompt()
  }

  const inquire = <A>({ prompt: sign, read, text }: Inquiry<A>): Effect.Effect<A, Closed> =>
    Queue.unbounded<string, Closed>().pipe(
      Effect.flatMap((lines) =>
        Effect.acquireUseRelease(
          Effect.suspend(() =>
            messages.state._tag === "Open"
              ? Effect.succeed(put(text, { prompt: sign, lines }))
              : Effect.fail(new Closed())
          ),
          () =>
            Effect.gen(function* () {
              for (;;) {
                const meant = read(yield* Queue.take(lines))
                if (meant._tag === "Answer") return meant.value
                show(meant.text)
                prompt()
              }
            }),
          (before, exit) => Effect.sync(() => unput(before, Exit.isSuccess(exit)))
        )
      ),
      oneInquiry.withPermit,
      Effect.withSpan("ChatTerminal.inquire")
    )

  let label = ""
  const spin = Effect.gen(function* () {
    for (let frame = 0; ; frame += 1) {
      yield* Effect.sleep(frameMillis)
      if (inquiry !== undefined || clock.currentTimeMillisUnsafe() - lastWrite < patienceMillis) continue
      const sign = frames[frame % frames.length] ?? ""
      if (column === 0) {
        const shown = cut(`${sign} ${label}`, columns() - 1)
        output.write(`\r${shown}\u001b[K`)
        wipe = "\r\u001b[K"
        spinnerEnd = CliOutput.displayWidth(shown)
      } else if (column < columns() - 1) {
        // After an unfinished line there is room for the spinner alone.
        output.write(wipe === "" ? sign : `\b${sign}`)
        wipe = "\b\u001b[K"
        spinnerEnd = column + 1
      }
    }
  })

  return ChatTerminal.of({
    isTerminal: true,
    canColor,
    columns: Effect.sync(columns),
    ask,
    during: (initial, job) =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          label = printableLine(initial)
          lastWrite = clock.currentTimeMillisUnsafe()
          const outer = work
          const interrupted = Deferred.makeUnsafe<void>()
          work = interrupted
          return Effect.map(Effect.forkChild(spin), (spinner) => ({ interrupted, outer, spinner }))
        }),
        ({ interrupted }) => job(Deferred.await(interrupted)),
        ({ outer, spinner }) =>
          Effect.andThen(
            Fiber.interrupt(spinner),
            Effect.sync(() => {
              work = outer
              show("")
            })
          )
      ),
    working: Effect.fn("ChatTerminal.working")((text) =>
      Effect.sync(() => {
        label = printableLine(text)
      })
    ),
    inquire,
    write: Effect.fn("ChatTerminal.write")((text) => Effect.sync(() => tell(() => text))),
    note: Effect.fn("ChatTerminal.note")((line) => Effect.sync(() => tell(() => `${freshLine()}${wrapped(line)}\n`)))
  })
})

/**
 * The terminal of this process, or of the given streams, with one readline interface for the lifetime of the layer.
 *
 * Messages typed on a terminal are stored in the file `history`, one JSON string per line (mode 0600). The terminal's state is
 * restored when the layer ends.
 */
export const layer = (
  history: string,
  streams: Streams = { input: stdin, output: stdout, error: stderr }
): Layer.Layer<ChatTerminal, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    ChatTerminal,
    Effect.gen(function* () {
      const { canColor, canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
      return canPrompt ? yield* interactive(streams, yield* openHistory(history), canColor) : yield* plain(streams)
    })
  )
