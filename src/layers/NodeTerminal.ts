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
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { printable } from "../domain/Inspection.ts"
import { spelled } from "../domain/Visible.ts"
import { wrap } from "../domain/Wrap.ts"
import { ChatTerminal, Closed, type Completion, type Inquiry, type Question } from "../services/ChatTerminal.ts"
import * as FileLock from "../services/FileLock.ts"
import * as WholeFile from "../services/WholeFile.ts"
import * as ThisProcess from "./ThisProcess.ts"

// --- history --------------------------------------------------------------------------------------------------------------

/** Messages that are kept from run to run. */
const historyBound = 1_000
/** The file is rewritten only when it holds this many more: each time another chat's line could be lost. */
const historySlack = 250
/** A longer message is recalled in its own chat only. */
const historyLength = 100_000

const Line = fromJson(Schema.String)
const decodeLine = Schema.decodeUnknownOption(Line)

interface History {
  /** Newest first. */
  readonly entries: Array<string>
  /** Adds a message, at once, and answers what is left to do: to store it. */
  readonly add: (message: string) => Effect.Effect<void>
}

/**
 * One JSON string a line, oldest first, so that messages keep their line breaks. Two chats at once each add theirs: nobody
 * shortens the file while another one adds to it. A damaged line is passed over; a file that cannot be used costs one warning.
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
      const why = error._tag === "FileLocked" ? error.message : diskTrouble(error)
      return Effect.as(Effect.logWarning(`${file} cannot be used (${why}); messages are not kept`), Option.none())
    })

  const alone = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    FileLock.locked({ file, lock: FileLock.besides(path, file) }, work).pipe(
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
    yield* WholeFile.writePrivate(file, shorter.join(""))
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
    // As in shells: what begins with a space is not to be remembered.
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

/** How many characters at the end of a text are the beginning of a marker. */
const begun = (text: string): number => {
  for (let length = Math.min(text.length, pasteStart.length - 1); length > 0; length -= 1) {
    if (pasteStart.startsWith(text.slice(-length))) return length
  }
  return 0
}

/**
 * Takes bracketed pastes out of what arrives: of each only its end mark goes on, a key that means nothing to readline,
 * and `pasted` is told before that. So a paste is inserted in its place among the keys and its characters are never
 * taken for keys.
 */
const withoutPastes = (pasted: (text: string) => void): ((text: string) => string) => {
  let held = ""
  /** How much of `held` went on already: an Escape must not wait for what may follow, it may be the key. */
  let gone = 0
  let inside = false
  return (text) => {
    // A mark that was lost on the way must not swallow every key from then on.
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

/** A text that keeps its line breaks and tabs and loses what else a terminal would act on. */
const harmless = (text: string): string =>
  text
    .replace(/\r\n?|\p{Zl}|\p{Zp}/gu, "\n")
    .replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "")
    .replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")

/** Looks of text, and what is put into the clipboard: all that whoever writes to a terminal may have it do. */
// oxlint-disable-next-line no-control-regex
const allowed = /(\u001b\[\d{1,2}m|\u001b\]52;c;[A-Za-z0-9+/=]*\u0007)/
/** Joiners are parts of letters and emoji; a word that comes in pieces is no reason to part them. */
const steering = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** The last gate before a terminal: what else would steer it is spelled out, wherever a text comes from. */
const gated = (text: string): string =>
  text
    .split(allowed)
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(/\r\n?/g, "\n").replace(steering, spelled)))
    .join("")

/** Stands for a line break within a line that is edited. */
const lineBreak = "↵"

/**
 * Texts as they are edited, in one line. What would fill half the screen, or holds the sign for a line break itself, is
 * shown as a mark that stands for it, since readline can only edit what fits on the screen.
 */
const editing = (room: () => number) => {
  const marked = new Map<string, string>()
  const marks = new Map<string, string>()
  const toLine = (text: string): string => {
    if (text.length <= room() && !text.includes(lineBreak)) return text.replaceAll("\n", lineBreak)
    const known = marks.get(text)
    if (known !== undefined) return known
    const lines = text.split("\n").length
    const mark = `[#${marks.size + 1}: ${lines > 1 ? `${lines} lines` : `${text.length} characters`}]`
    marks.set(text, mark)
    marked.set(mark, text)
    return mark
  }
  const toText = (line: string): string =>
    line.replace(/\[#\d+: \d+ (?:lines|characters)\]|↵/g, (found) =>
      found === lineBreak ? "\n" : (marked.get(found) ?? found)
    )
  return { toLine, toText }
}

/** What a message consists of, once it is complete: undefined while more has to come. */
const complete = (lines: ReadonlyArray<string>): string | undefined => {
  const isBlock = lines[0]?.trimEnd() === '"""'
  if (isBlock) {
    return lines.length > 1 && lines.at(-1)?.trimEnd() === '"""' ? lines.slice(1, -1).join("\n") : undefined
  }
  if (endsInBackslash(lines.at(-1) ?? "")) return undefined
  return lines.map((line) => (endsInBackslash(line) ? line.slice(0, -1) : line)).join("\n")
}

/** Two backslashes at the end are two backslashes. */
const endsInBackslash = (line: string) => /(?:^|[^\\])\\$/.test(line)

// --- the terminal ---------------------------------------------------------------------------------------------------------

/** Standard streams, as far as a chat needs them. */
export interface Streams {
  readonly input: Readable & { readonly setRawMode?: ((raw: boolean) => unknown) | undefined }
  readonly output: Writable & {
    readonly columns?: number | undefined
    readonly rows?: number | undefined
    readonly isTTY?: boolean | undefined
  }
  readonly error: Writable
}

/** Where a terminal does not tell its size. */
const usualColumns = 80
const usualRows = 24

/** What a terminal does without showing it, such as taking a text for the clipboard. */
const command = /\p{Cc}\][^\p{Cc}]*\p{Cc}\\?/gu

const continuation = "… "
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
/** Slow links are used too: four times a second is enough to see that something moves. */
const frameMillis = 250
/** Half a second of silence is felt as waiting. */
const patienceMillis = 500
/** Keys wait while a completion is looked up. */
const completionDeadline = "2 seconds"

const nothing: Completion = { candidates: [], replaced: "" }

/** A line cut so that it stays on one row. */
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

/** The end of a line, cut so that it stays on one row. */
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

/** Rows that show what is typed ahead; of more, the last. */
const maxRowsAhead = 5

/** Writes a text and waits until it is taken. Answers whether it was. */
const written = (stream: Writable, text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    stream.write(text, (error) => resume(Effect.succeed(error === null || error === undefined)))
  })

const closed = Cause.fail(new Closed())

/** Lines of an input that nobody watches. */
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
    note: Effect.fn("ChatTerminal.note")((line) => Effect.asVoid(written(error, `${printable(line)}\n`)))
  })
})

/** A message that is complete. */
interface Typed {
  readonly text: string
  /** Whether it was asked for while it was typed. */
  readonly wasShown: boolean
  readonly store: Effect.Effect<void>
}

/** A question that has been put during work. */
interface Open {
  readonly prompt: string
  /** What was typed since. */
  readonly lines: Queue.Queue<string, Closed>
}

/** A line that is edited, and what is shown around it. */
const interactive = Effect.fnUntraced(function* ({ input, output }: Streams, history: History, canColor: boolean) {
  const messages = yield* Queue.unbounded<Typed, Closed>()
  /** Those of the queue that nobody took back, oldest first. */
  const waiting: Array<Typed> = []
  const clock = yield* Clock.Clock
  const run = yield* FiberSet.makeRuntime<never>()
  const columns = () => output.columns ?? usualColumns
  const { toLine, toText } = editing(() => (columns() * (output.rows ?? usualRows)) / 2)
  const dim = (text: string) => (canColor ? `\u001b[2m${text}\u001b[0m` : text)

  let question: Question = { prompt: "" }
  let isAsking = false
  /** Lines of a message that is not complete. */
  let gathered: Array<string> = []
  let prefill = ""
  /** Whether Ctrl+C leaves. */
  let isLeaving = false
  let work: Deferred.Deferred<void> | undefined
  const pastes: Array<string> = []
  /** While it is there, lines are answers to it. */
  let inquiry: Open | undefined
  /** What is to be shown once it is answered. */
  const held: Array<() => void> = []
  const oneInquiry = yield* Semaphore.make(1)
  const isListening = () => isAsking || inquiry !== undefined

  // --- what is shown ------------------------------------------------------------------------------------------------------

  /** Columns that the unfinished line on the screen takes. */
  let column = 0
  let lastWrite = 0
  /** Wipes the spinner, where it is shown. */
  let wipe = ""
  /** Columns that the spinner's line takes, the text before it included. */
  let spinnerEnd = 0
  /** Rows below the cursor that show what is typed ahead. */
  let rowsAhead = 0

  /** What is typed ahead, a row each: the messages that wait, then the lines of the unfinished one. */
  const typedAhead = (): ReadonlyArray<string> => {
    if (work === undefined || isListening()) return []
    const unfinished = gathered.length > 0 || rl.line !== "" ? [...gathered, rl.line] : []
    const lines = [...waiting.map(({ text }) => toLine(text)), ...unfinished]
    const most = Math.max(1, Math.min(maxRowsAhead, (output.rows ?? usualRows) - 2))
    return lines.slice(-most).map((line) => tail(`> ${line}`, columns() - 1))
  }
  /** Wipes the rows below the cursor. */
  const wipedAhead = (): string => {
    const text = rowsAhead > 0 ? "\u001b[J" : ""
    rowsAhead = 0
    return text
  }
  /** Draws them; the cursor comes back to its row and to column `at`. A row that is full holds no place to come back to. */
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
  const wrapped = (line: string) => wrap(printable(line), columns(), CliOutput.displayWidth).map(dim).join("\n")

  /** Shows, now or once a question that was put meanwhile is answered. */
  const tell = (text: () => string) => {
    if (inquiry === undefined) show(text())
    else held.push(() => show(text()))
  }

  /** What readline shows, which is nothing unless something is asked. */
  const echo = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      if (isListening()) output.write(text)
      done()
    }
  })
  Object.defineProperty(echo, "columns", { get: columns })

  // --- what is typed ------------------------------------------------------------------------------------------------------

  const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (raw: boolean) => input.setRawMode?.(raw) })
  const filter = withoutPastes((text) => pastes.push(toLine(harmless(text))))
  const decoder = new TextDecoder()
  const onData = (bytes: Buffer) => {
    const typed = filter(decoder.decode(bytes, { stream: true }))
    // In the middle of a message Ctrl+D would throw its lines away, and a question during work is no place to leave.
    keys.write(typed === "\u0004" && (gathered.length > 0 || inquiry !== undefined) ? "" : typed)
  }

  const completer = (line: string, answer: (error: null, result: [Array<string>, string]) => void) => {
    const found = question.complete === undefined || !isAsking ? Effect.succeed(nothing) : question.complete(line)
    run(
      found.pipe(
        Effect.timeoutOrElse({ duration: completionDeadline, orElse: () => Effect.succeed(nothing) }),
        Effect.catchCause(() => Effect.succeed(nothing)),
        Effect.map(({ candidates, replaced }) =>
          // Names of files may hold anything.
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

  /** Puts a text into the line, where readline offers only keys. */
  const edit = (line: string, cursor: number) => {
    Object.assign(rl, { line, cursor })
    rl.prompt(true)
  }
  /** Shows the prompt on a row of its own, with what the line holds. */
  const prompt = () => {
    rl.setPrompt(inquiry?.prompt ?? (gathered.length === 0 ? question.prompt : continuation))
    // Rows that were counted while nothing was shown do not exist.
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

  /** Puts the messages that wait, and the lines of one that is not complete, into the line again. */
  const takeBack = () => {
    const lines = gathered[0]?.trimEnd() === '"""' ? gathered.slice(1) : gathered
    const texts = [...waiting.splice(0).map(({ text }) => text), ...lines.map((line) => toText(line)), toText(rl.line)]
    gathered = []
    const line = toLine(texts.filter((text) => text !== "").join("\n"))
    Object.assign(rl, { line, cursor: line.length })
  }

  const onInterrupt = () => {
    if (work !== undefined) {
      // What was typed for after the work was typed in the belief that the work gets done.
      if (inquiry === undefined) takeBack()
      Deferred.doneUnsafe(work, Effect.void)
      return
    }
    if (gathered.length > 0 || rl.line !== "") {
      // The end of the line: what it holds may take several rows.
      rl.write(null, { ctrl: true, name: "e" })
      if (isListening()) show("^C\n")
      if (inquiry === undefined) gathered = []
      Object.assign(rl, { line: "", cursor: 0 })
    } else if (isLeaving) {
      rl.close()
      return
    } else {
      isLeaving = true
      if (isListening()) show(`\n${dim("press Ctrl+C again to leave")}\n`)
    }
    if (isListening()) prompt()
  }

  // Readline forgets how many rows it is on while several characters arrive at once.
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
  rl.on("SIGINT", onInterrupt)
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
      // What runs beside the chat may have asked something.
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

  /** Puts a question; answers what was there before. */
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
  /** Goes back to that. */
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
        // Behind a line that is not complete there is room for the sign alone.
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
          label = printable(initial)
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
        label = printable(text)
      })
    ),
    inquire,
    write: Effect.fn("ChatTerminal.write")((text) => Effect.sync(() => tell(() => text))),
    note: Effect.fn("ChatTerminal.note")((line) => Effect.sync(() => tell(() => `${freshLine()}${wrapped(line)}\n`)))
  })
})

/**
 * The terminal of this process, or the streams it is given, with one readline interface for the whole of the layer's life.
 * Messages typed on a terminal are kept in `history`, one JSON string a line (mode 0600). When the layer ends the terminal
 * is as it was.
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
