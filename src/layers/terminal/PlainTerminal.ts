import { Cause, Deferred, Effect, Exit, Queue, Semaphore } from "effect"
import * as readline from "node:readline"
import type { Writable } from "node:stream"
import { printableLine, visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import { ChatTerminal, Closed, type Inquiry } from "../../services/terminal/ChatTerminal.ts"
import * as Clipboard from "./Clipboard.ts"
import type { InputHistory } from "./InputHistory.ts"
import * as SafeText from "./SafeText.ts"
import type { Streams } from "./StreamTerminal.ts"

/** The chat without a screen: text that is written once and stays, for pipes, simple terminals and screen readers. */

/** Writes a text and waits until the stream has taken it. Returns whether the write succeeded. */
const written = (stream: Writable, text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    stream.write(text, (error) => resume(Effect.succeed(error === null || error === undefined)))
  })

/** What both kinds have in common: answers on stdout, everything else as `note` says. */
const output = ({ output: stream }: Streams, note: (line: string) => Effect.Effect<void>, close: () => void) => {
  let visible = visibleStream()
  let isWithinLine = false
  const write = Effect.fn("ChatTerminal.write")(function* (text: string) {
    if (text === "") return
    isWithinLine = !text.endsWith("\n")
    if (!(yield* written(stream, stream.isTTY === true ? SafeText.shown(text) : text))) close()
  })
  const endAnswer = Effect.suspend(() => {
    const rest = visible(undefined)
    visible = visibleStream()
    return write(`${rest}${isWithinLine || rest !== "" ? "\n" : ""}`)
  })
  return {
    canColor: false,
    columns: Effect.succeed(Number.POSITIVE_INFINITY),
    choose: () => Effect.fail(new Closed()),
    answer: (piece: string) => write(visible(piece)),
    endAnswer: () => endAnswer,
    card: ({
      body,
      head,
      isRunning
    }: {
      readonly body: ReadonlyArray<string>
      readonly head: string
      readonly isRunning: boolean
    }) =>
      isRunning ? Effect.void : Effect.andThen(endAnswer, Effect.forEach([head, ...body], note, { discard: true })),
    status: () => Effect.void,
    panel: () => Effect.void,
    configure: () => Effect.void,
    title: () => Effect.void,
    copy: (text: string) => (stream.isTTY === true ? Clipboard.withProgram(text) : Effect.succeed(false)),
    working: () => Effect.void,
    note: Effect.fn("ChatTerminal.note")((line: string) => Effect.andThen(endAnswer, note(line))),
    write: Effect.fn("ChatTerminal.write")((text: string) => Effect.andThen(endAnswer, write(text)))
  }
}

/** A chat on a pipe: each line of the input is a message, and only answers are written to stdout. */
export const pipe = Effect.fnUntraced(function* (streams: Streams) {
  const { error, input } = streams
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
  return ChatTerminal.of({
    ...output(streams, (line) => Effect.asVoid(written(error, `${printableLine(line)}\n`)), close),
    isTerminal: false,
    ask: Effect.fn("ChatTerminal.ask")(() => Queue.take(lines)),
    during: (_label, work) => work(Effect.never),
    inquire: () => Effect.fail(new Closed())
  })
})

/** A chat in lines on a terminal: what is typed is edited by readline, and nothing that was written changes. */
export const lines = Effect.fnUntraced(function* (streams: Streams, history: InputHistory) {
  const { input, output: stream } = streams
  const messages = yield* Queue.unbounded<string, Closed>()
  const oneInquiry = yield* Semaphore.make(1)
  let answers: Queue.Queue<string, Closed> | undefined
  let work: Deferred.Deferred<void> | undefined
  let isLeaving = false
  const close = () => {
    Queue.failCauseUnsafe(messages, Cause.fail(new Closed()))
    if (answers !== undefined) Queue.failCauseUnsafe(answers, Cause.fail(new Closed()))
  }
  const rl = yield* Effect.acquireRelease(
    Effect.sync(() =>
      readline.createInterface({ input, output: stream, terminal: true, history: [...history.entries], prompt: "" })
    ),
    (rl) => Effect.sync(() => rl.close())
  )
  rl.on("line", (line) => {
    isLeaving = false
    if (answers !== undefined) Queue.offerUnsafe(answers, line.trim())
    else if (line.trim() !== "") Queue.offerUnsafe(messages, line.trimEnd())
  })
  rl.on("SIGINT", () => {
    if (work !== undefined) return void Deferred.doneUnsafe(work, Effect.void)
    if (isLeaving) return rl.close()
    isLeaving = rl.line === ""
    rl.write(null, { ctrl: true, name: "u" })
    stream.write(isLeaving ? "\npress Ctrl+C again to leave\n" : "\n")
    rl.prompt()
  })
  rl.once("close", close)
  const shown = output(streams, (line) => Effect.asVoid(written(stream, `${printableLine(line)}\n`)), close)
  const prompt = (text: string) =>
    Effect.sync(() => {
      rl.setPrompt(text)
      rl.prompt(true)
    })
  const inquire = <A>(asked: Inquiry<A>): Effect.Effect<A, Closed> =>
    Effect.acquireUseRelease(
      Effect.map(Queue.unbounded<string, Closed>(), (made) => (answers = made)),
      (made) =>
        Effect.gen(function* () {
          if (messages.state._tag !== "Open") return yield* new Closed()
          yield* shown.write(asked.text)
          for (let { fill = "", prompt: sign, read } = asked; ;) {
            yield* prompt(sign)
            // A line break would send what is only to be edited.
            if (fill !== "" && !fill.includes("\n")) rl.write(fill)
            const meant = read(yield* Queue.take(made))
            if (meant._tag === "Answer") return meant.value
            if (meant._tag === "Then") ({ fill = "", prompt: sign, read } = meant.inquiry)
            yield* shown.write(meant._tag === "Then" ? meant.inquiry.text : meant.text)
          }
        }),
      (_, exit) =>
        Effect.sync(() => {
          answers = undefined
          if (Exit.isFailure(exit)) stream.write("\n")
        })
    ).pipe(oneInquiry.withPermit)
  return ChatTerminal.of({
    ...shown,
    isTerminal: true,
    ask: Effect.fn("ChatTerminal.ask")(function* ({ prefill = "", prompt: sign }) {
      yield* prompt(sign)
      if (prefill !== "") rl.write(prefill.replaceAll("\n", " "))
      const message = yield* Queue.take(messages)
      yield* history.add(message)
      return message
    }),
    during: (_label, job) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const outer = work
          const interrupted = Deferred.makeUnsafe<void>()
          work = interrupted
          return { interrupted, outer }
        }),
        ({ interrupted }) => job(Deferred.await(interrupted)),
        ({ outer }) =>
          Effect.sync(() => {
            work = outer
          })
      ),
    inquire
  })
})
