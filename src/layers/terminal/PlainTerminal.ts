/** The chat without a screen: text that is written once and stays, for pipes, simple terminals and screen readers. */

import { Cause, Deferred, Effect, Exit, Queue, Semaphore } from "effect"
import { CliOutput } from "effect/cli"
import * as readline from "node:readline"
import type { Writable } from "node:stream"
import { printableLine, visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import { columnsWithin, wrapLines, wrapStream } from "../../domain/text/Wrap.ts"
import { type Card, ChatTerminal, Closed, type Inquiry, type Question } from "../../services/terminal/ChatTerminal.ts"
import * as Clipboard from "./Clipboard.ts"
import { ctrlCAction } from "./CtrlCAction.ts"
import type { InputHistory } from "./InputHistory.ts"
import * as SafeText from "./SafeText.ts"
import type { Streams } from "./StreamTerminal.ts"

/** Writes a text and waits until the stream has taken it. Returns whether the write succeeded. */
const written = (stream: Writable, text: string) =>
  Effect.callback((resume) => {
    stream.write(text, (error) => resume(Effect.succeed(error === null || error === undefined)))
  })

/** Columns that text may fill: those of a terminal; a pipe gets it as it is. */
const columnsOf = ({ columns, isTTY }: Streams["output"]): number =>
  (isTTY === true ? columnsWithin(columns) : undefined) ?? Number.POSITIVE_INFINITY

/** Writes answers to stdout. `onClosed`: called when the reader of the output is gone. */
const answerWriter = (stream: Streams["output"], onClosed: () => void) => {
  /** Makes invisible characters of the answer visible, also those that arrive in pieces. */
  let visible = visibleStream()
  /** Wraps the answer to the columns that the terminal had at its beginning. */
  let wrapped: ReturnType<typeof wrapStream> | undefined
  let isWithinLine = false
  const write = Effect.fn("ChatTerminal.write")(function* (text: string) {
    if (text === "") return
    isWithinLine = !text.endsWith("\n")
    if (!(yield* written(stream, stream.isTTY === true ? SafeText.shown(text) : text))) onClosed()
  })
  return {
    write,
    answer: (piece: string) => {
      wrapped ??= wrapStream(columnsOf(stream), CliOutput.displayWidth)
      return write(wrapped(visible(piece)))
    },
    /** Writes a whole text. */
    text: (value: string) => write(wrapLines(value, columnsOf(stream), CliOutput.displayWidth)),
    /** Ends the answer, and its line. */
    end: Effect.suspend(() => {
      const wrap = wrapped ?? ((piece = "") => piece)
      const rest = wrap(visible(undefined)) + wrap(undefined)
      visible = visibleStream()
      wrapped = undefined
      return write(`${rest}${isWithinLine || rest !== "" ? "\n" : ""}`)
    })
  }
}
type AnswerWriter = ReturnType<typeof answerWriter>

/** What both kinds of chat have in common. `note` writes a line that is no answer. */
const common = (answers: AnswerWriter, stream: Streams["output"], note: (line: string) => Effect.Effect<void>) => ({
  canColor: false,
  columns: Effect.sync(() => columnsOf(stream)),
  choose: () => Effect.fail(new Closed()),
  answer: (piece: string) => answers.answer(piece),
  endAnswer: () => answers.end,
  card: ({ body, head, isRunning }: Card) =>
    isRunning ? Effect.void : Effect.andThen(answers.end, Effect.forEach([head, ...body], note, { discard: true })),
  status: () => Effect.void,
  onModeKey: () => Effect.void,
  takeTyped: Effect.succeed([]),
  panel: () => Effect.void,
  configure: () => Effect.void,
  title: () => Effect.void,
  copy: (text: string) => (stream.isTTY === true ? Clipboard.withProgram(text) : Effect.succeed(false)),
  working: () => Effect.void,
  note: Effect.fn("ChatTerminal.note")((line: string) => Effect.andThen(answers.end, note(line))),
  write: Effect.fn("ChatTerminal.write")((text: string) => Effect.andThen(answers.end, answers.text(text)))
})

/** A chat on a pipe: each line of the input is a message, and only answers are written to stdout. */
export const pipe = Effect.fnUntraced(function* ({ error, input, output }: Streams) {
  const lines = yield* Queue.unbounded<string, Closed>()
  const close = () => Queue.failCauseUnsafe(lines, Cause.fail(new Closed()))
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
  const note = (line: string) => Effect.asVoid(written(error, `${printableLine(line)}\n`))
  return ChatTerminal.of({
    ...common(answerWriter(output, close), output, note),
    isTerminal: false,
    ask: Effect.fn("ChatTerminal.ask")(() => Queue.take(lines)),
    during: (_label, work) => work(Effect.never),
    inquire: () => Effect.fail(new Closed())
  })
})

/** What a question in lines needs of the chat: its answers, its input, and the lines that are typed. */
interface LineQuestion {
  readonly answers: AnswerWriter
  readonly rl: readline.Interface
  readonly replies: Queue.Queue<string, Closed>
}

const showPrompt = (rl: readline.Interface, text: string) =>
  Effect.sync(() => {
    rl.setPrompt(text)
    rl.prompt(true)
  })

/** Asks a question until a line answers it. */
const exchange = Effect.fnUntraced(function* <A>({ answers, replies, rl }: LineQuestion, inquiry: Inquiry<A>) {
  yield* answers.end
  yield* answers.text(inquiry.text)
  for (let { fill = "", prompt, read } = inquiry; ;) {
    yield* showPrompt(rl, prompt)
    // A line break would send what is only to be edited.
    if (fill !== "" && !fill.includes("\n")) rl.write(fill)
    const reading = read(yield* Queue.take(replies))
    if (reading._tag === "Answer") return reading.value
    if (reading._tag === "Then") ({ fill = "", prompt, read } = reading.inquiry)
    yield* answers.end
    yield* answers.text(reading._tag === "Then" ? reading.inquiry.text : reading.text)
  }
})

/** The work that goes on, which the user can cancel. Work within other work is cancelled first. */
const cancellableWork = () => {
  let interrupted: Deferred.Deferred<void> | undefined
  return {
    isRunning: () => interrupted !== undefined,
    cancel: () => {
      if (interrupted !== undefined) Deferred.doneUnsafe(interrupted, Effect.void)
    },
    during: <A, E, R>(job: (interrupted: Effect.Effect<void>) => Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const outer = interrupted
          const own = Deferred.makeUnsafe<void>()
          interrupted = own
          return { own, outer }
        }),
        ({ own }) => job(Deferred.await(own)),
        ({ outer }) =>
          Effect.sync(() => {
            interrupted = outer
          })
      )
  }
}

/** Takes the keys that cancel work or leave: Esc and Ctrl+C. */
const takeKeys = (
  rl: readline.Interface,
  { input, output: stream }: Pick<Streams, "input" | "output">,
  work: Pick<ReturnType<typeof cancellableWork>, "cancel" | "isRunning">
) => {
  /** Whether the next Ctrl+C leaves. */
  let isLeaving = false
  rl.on("line", () => {
    isLeaving = false
  })
  rl.on("SIGINT", () => {
    const action = ctrlCAction({ isWorking: work.isRunning(), hasInput: rl.line !== "", wasPressed: isLeaving })
    if (action === "cancelWork") return work.cancel()
    if (action === "leave") return rl.close()
    isLeaving = action === "warn"
    rl.write(null, { ctrl: true, name: "e" })
    rl.write(null, { ctrl: true, name: "u" })
    stream.write(action === "warn" ? "\npress Ctrl+C again to leave\n" : "\n")
    rl.prompt()
  })
  const onKey = (_: unknown, { name }: readline.Key) => {
    if (name === "escape") work.cancel()
  }
  input.on("keypress", onKey)
  rl.once("close", () => input.off("keypress", onKey))
}

/** A chat in lines on a terminal: what is typed is edited by readline, and nothing that was written changes. */
export const lines = Effect.fnUntraced(function* ({ input, output: stream }: Streams, history: InputHistory) {
  const rl = yield* Effect.acquireRelease(
    Effect.sync(() =>
      readline.createInterface({ input, output: stream, terminal: true, history: [...history.entries], prompt: "" })
    ),
    (rl) => Effect.sync(() => rl.close())
  )
  const messages = yield* Queue.unbounded<string, Closed>()
  const questionTurns = yield* Semaphore.make(1)
  /** Lines that answer the open question. */
  let replies: Queue.Queue<string, Closed> | undefined
  const work = cancellableWork()
  const close = () => {
    for (const queue of [messages, replies]) {
      if (queue !== undefined) Queue.failCauseUnsafe(queue, Cause.fail(new Closed()))
    }
  }
  const answers = answerWriter(stream, close)
  takeKeys(rl, { input, output: stream }, work)
  rl.on("line", (line) => {
    if (replies !== undefined) Queue.offerUnsafe(replies, line.trim())
    else if (line.trim() !== "") Queue.offerUnsafe(messages, line.trimEnd())
  })
  rl.once("close", close)
  return ChatTerminal.of({
    ...common(answers, stream, (line) => answers.text(`${printableLine(line)}\n`)),
    isTerminal: true,
    ask: Effect.fn("ChatTerminal.ask")(function* ({ prefill = "", prompt }: Question) {
      if (messages.state._tag !== "Open") return yield* new Closed()
      yield* showPrompt(rl, prompt)
      if (prefill !== "") rl.write(prefill.replaceAll("\n", " "))
      // What follows the end of the input does not stand behind the prompt.
      const message = yield* Effect.tapError(Queue.take(messages), () => answers.write("\n"))
      yield* history.add(message)
      return message
    }),
    during: (_label, job) => work.during(job),
    inquire: (inquiry) =>
      Effect.acquireUseRelease(
        Effect.map(Queue.unbounded<string, Closed>(), (own) => (replies = own)),
        (own) =>
          messages.state._tag === "Open" ? exchange({ answers, rl, replies: own }, inquiry) : Effect.fail(new Closed()),
        (_, exit) =>
          Effect.sync(() => {
            replies = undefined
            if (Exit.isFailure(exit)) stream.write("\n")
          })
      ).pipe(questionTurns.withPermit)
  })
})
