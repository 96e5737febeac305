import { Effect, Option, Ref, Schema, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { unspecified } from "../../domain/Answer.ts"
import { fromJson } from "../../domain/JsonText.ts"
import { decode } from "../../domain/Bytes.ts"
import { CallStatus, ChatEvent } from "../../domain/ChatEvent.ts"
import { printable } from "../../domain/Inspection.ts"
import { spelledOut } from "../../domain/WorkspacePath.ts"
import { type SettingsFile, withDefaults } from "../../domain/Settings.ts"
import { TokenCount, Usage } from "../../domain/Tokens.ts"
import type { TurnPatience } from "../../services/ChatSettings.ts"
import * as AgentTools from "../AgentTools.ts"
import { activityText, loopText, responseText } from "../chat/CallText.ts"
import { cut } from "../Columns.ts"
import { badInput, type ExitError, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as OpenChat from "../OpenChat.ts"
import * as Output from "../Output.ts"

/** A call that was answered. */
const Called = Schema.Struct({
  name: Schema.String,
  title: Schema.String,
  status: CallStatus,
  /** Milliseconds. */
  duration: Schema.Finite,
  /** What the model was told where it is no success. */
  message: Schema.NullOr(Schema.String)
})

/** What `--json` prints: the run as one document, also when it failed. */
const Report = Schema.Struct({
  /** Null where the conversation is not kept. */
  session: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  /** The last turn's text. Null where there is none; then `error` says why. */
  answer: Schema.NullOr(Schema.String),
  finishReason: Schema.NullOr(Schema.String),
  /** All turns together. */
  usage: Schema.NullOr(Usage),
  turns: Schema.Natural,
  /** Of the conversation as it stands now, and of the window. */
  tokens: Schema.NullOr(TokenCount),
  limit: Schema.NullOr(TokenCount),
  compressions: Schema.Array(ChatEvent.cases.ChatCompressed),
  citations: Schema.Array(Schema.String),
  calls: Schema.Array(Called),
  /** How many events there were, by kind. */
  events: Schema.Record(Schema.String, Schema.Natural),
  error: Schema.NullOr(ChatEvent)
})
type Report = typeof Report.Type

const eventJson = fromJson(Schema.toCodecJson(ChatEvent))

/** What stands on standard input, where that is no terminal. */
const piped = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) return ""
  const chunks = yield* Stream.runCollect(stdio.stdin).pipe(
    Output.progress("reading standard input"),
    Effect.mapError(() => badInput("standard input cannot be read"))
  )
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return decode(whole).text
})

/** The prompt, then what was piped in, a blank line between them. */
const messageOf = Effect.fnUntraced(function* (
  prompt: string | undefined
): Effect.fn.Return<string, ExitError, Stdio.Stdio> {
  const parts = [prompt ?? "", (yield* piped).replace(/\n+$/, "")].filter((text) => text.trim() !== "")
  if (parts.length === 0) return yield* badInput("there is nothing to ask; give a prompt, or pipe a text in")
  return parts.join("\n\n")
})

/** Columns of the line of a call: a command may print megabytes without a line break. */
const noticeWidth = 160

const seconds = (millis: number): string => (millis < 1_000 ? "at once" : `in ${Math.round(millis / 1_000)} s`)

/** How the end of an answer is told, where there is more to tell than that it ended. */
const endOf = (reason: string, isCalling: boolean): string | undefined => {
  switch (reason) {
    case "STOP":
      return undefined
    case "MAX_TOKENS":
      return "the answer was cut off: it reached the most tokens that the model may answer with"
    case unspecified:
      // A call is whole by itself: it is run, and the answer is still to come.
      return isCalling ? undefined : "the model gave no reason for the end of its answer; it may not be whole"
    default:
      return `the model ended its answer with ${reason}`
  }
}

/**
 * What a person hears of a run on stderr, beside the answer. `title`: what the call was, where the event answers one;
 * `isCalling`: whether the turn asked for tools.
 */
const noticeOf = (event: ChatEvent, title: string, isCalling: boolean): string | undefined => {
  switch (event._tag) {
    case "Retry":
      // What the person could do is done for them.
      return `${event.message.split("; ")[0]}; asking again ${seconds(event.delay)} (attempt ${event.attempt})`
    case "ChatCompressed":
      return `compressed (${event.status}): ${Output.number(event.before)} to ${Output.number(event.after)} of ${Output.number(event.limit)} tokens${
        event.message === null ? "" : `; code made room instead, because ${event.message.replace(/; try again.*$/, "")}`
      }`
    case "ToolCallResponse":
      return `${cut(responseText(event, title), noticeWidth)}${event.status === "denied" ? "; --approve says what may run" : ""}`
    case "SubagentActivity":
      return activityText(event.agent, event.activity)
    case "Notice":
      return event.message
    case "ToolOutputMasked":
      return `${Output.plural(event.parts, "old tool output")} shortened: ${Output.number(event.before)} to ${Output.number(event.after)} tokens`
    case "LoopDetected":
      return event.halted ? undefined : loopText(event)
    case "Citation":
      return `quoted: ${event.text.split("\n").join(", ")}`
    case "Finished":
      return endOf(event.reason, isCalling)
    default:
      return undefined
  }
}

/**
 * A script is not let wait as long as a person who sees why: some seconds, or the minute that a server asks for. How often it
 * tries is said by the settings where they say it. An answer that cannot be used is asked for as often as in a chat (Gemini
 * CLI, today; in March 2026 it asked twice): that costs seconds, and the next one as a rule is good.
 */
const patienceFor = (settings: SettingsFile): TurnPatience => ({
  call: { attempts: settings.attempts?.calls ?? 4, first: 1_000, most: 8_000, asked: 60_000 },
  answer: { attempts: withDefaults(settings).attempts.answers, first: 1_000, most: 4_000 }
})

/** Before the first event. */
const nothingYet = (session: string | undefined): Report => ({
  session: session ?? null,
  model: null,
  answer: "",
  finishReason: null,
  usage: null,
  tokens: null,
  limit: null,
  compressions: [],
  citations: [],
  calls: [],
  turns: 0,
  events: {},
  error: null
})

const sum = (one: Usage | null, other: Usage | null): Usage | null =>
  one === null || other === null
    ? (one ?? other)
    : {
        prompt: one.prompt + other.prompt,
        answer: one.answer + other.answer,
        thoughts: one.thoughts + other.thoughts,
        cached: one.cached + other.cached,
        ...(one.cacheWrite === undefined && other.cacheWrite === undefined
          ? {}
          : { cacheWrite: (one.cacheWrite ?? 0) + (other.cacheWrite ?? 0) })
      }

/** What is known of a run after one more event. */
const after = (before: Report, event: ChatEvent, title: string): Report => {
  const report = { ...before, events: { ...before.events, [event._tag]: (before.events[event._tag] ?? 0) + 1 } }
  switch (event._tag) {
    case "ModelInfo":
      // Another turn: what the one before said led to calls.
      return {
        ...report,
        turns: report.turns + 1,
        model: event.model,
        limit: event.limit,
        answer: "",
        finishReason: null,
        citations: []
      }
    case "Content":
      return { ...report, answer: `${report.answer}${event.text}` }
    case "Retry":
      return { ...report, answer: "" }
    case "ChatCompressed":
      return { ...report, compressions: [...report.compressions, event] }
    case "Citation":
      return { ...report, citations: event.text.split("\n") }
    case "Finished":
      return {
        ...report,
        finishReason: event.reason,
        usage: sum(report.usage, event.usage),
        tokens: event.tokens,
        limit: event.limit
      }
    case "ToolCallResponse": {
      const { duration, message, name, status } = event
      // The turn that asked for it was not the last.
      return { ...report, finishReason: null, calls: [...report.calls, { name, title, status, duration, message }] }
    }
    case "LimitReached":
      return { ...report, answer: null, error: event }
    case "LoopDetected":
      return event.halted ? { ...report, answer: null, error: event } : report
    case "UserCancelled":
    case "InvalidStream":
    case "ContextWindowWillOverflow":
    case "HookStopped":
      return { ...report, answer: null, error: event }
    case "Error":
      // Where only keeping it failed, the answer is there, and was paid for.
      return { ...report, answer: event.reason.startsWith("Session") ? report.answer : null, error: event }
    default:
      return report
  }
}

/** Whether a run is over: its last turn asked for nothing more, or it was stopped. */
const hasEnded = ({ error, finishReason }: Report, isCalling: boolean): boolean =>
  error !== null || (finishReason !== null && !isCalling)

/** What is done with the events of a turn as they come, and at its end, whether it was answered or not. */
interface Printer {
  readonly event: (event: ChatEvent) => Effect.Effect<void, ExitError, Stdio.Stdio>
  readonly end: (turn: Report) => Effect.Effect<void, ExitError, Stdio.Stdio>
}

const silent = () => Effect.void

/** One event a line, as they come. */
const eventLines: Printer = {
  // The same values, with what could steer a terminal as escapes of JSON.
  event: (event) =>
    Effect.flatMap(Effect.orDie(Schema.encodeEffect(eventJson)(event)), (line) => Output.text(spelledOut(line))),
  end: silent
}

/** One document at the end. */
const oneDocument: Printer = { event: silent, end: (turn) => Output.json(Report, turn) }

/** The answer alone once it is valid: what is in a pipe cannot be taken back, and an attempt may still turn out void. */
const wholeAnswer: Printer = {
  event: silent,
  end: ({ answer }) => (answer === null || answer === "" ? Effect.void : Effect.asVoid(Output.exact(answer)))
}

/** The answers as they come, each on lines of its own. A void attempt is left on the screen. */
const asItComes = (): Printer => {
  let write = Output.pieces()
  let last = "\n"
  const say = (piece: string | undefined) =>
    Effect.map(write(piece), (shown) => {
      last = shown.at(-1) ?? last
    })
  const close = Effect.suspend(() => say(undefined)).pipe(
    Effect.andThen(Effect.suspend(() => (last === "\n" ? Effect.void : say("\n")))),
    Effect.andThen(
      Effect.sync(() => {
        write = Output.pieces()
      })
    )
  )
  return {
    event: (event) => {
      if (event._tag !== "Content") return event._tag === "Retry" || event._tag === "Finished" ? close : Effect.void
      return say(event.text)
    },
    end: () => close
  }
}

const cancelled: ChatEvent = { _tag: "UserCancelled" }

/** `palimpsest ask [prompt]`. */
export const ask = Command.make(
  "ask",
  {
    prompt: Argument.String("prompt").pipe(
      Argument.withDescription("What to ask; what is piped in is put behind it"),
      Argument.optional
    ),
    ...OpenChat.flags,
    ...AgentTools.flags,
    json: Input.json,
    streamJson: Flag.Boolean("stream-json").pipe(
      Flag.withDescription("Print every event of the turn as a line of JSON, as it comes"),
      Flag.withDefault(false)
    )
  },
  Effect.fn("cli.ask")(function* (input) {
    if (input.json && input.streamJson) return yield* badInput("--json and --stream-json exclude each other")
    const message = yield* messageOf(Option.getOrUndefined(input.prompt))
    const isKept = input.session !== undefined || input.resume !== undefined || input.continue
    const opened = isKept ? yield* OpenChat.open(input) : yield* OpenChat.passing(input)
    const { chat, id } = opened
    const stdio = yield* Stdio.Stdio
    const tell = (line: string) => Effect.provideService(Output.notice(line), Stdio.Stdio, stdio)
    const worker = yield* AgentTools.make(opened, input, { tell }).pipe(Output.progress("starting the tools"))
    const printer = input.streamJson
      ? eventLines
      : input.json
        ? oneDocument
        : (yield* stdio.stdoutIsTerminal)
          ? asItComes()
          : wholeAnswer
    yield* Effect.mapError(chat.configure({ patience: patienceFor(opened.settings) }), ({ message: why }) =>
      failed(why)
    )
    const run = yield* Ref.make(nothingYet(id))
    const titles = new Map<string, string>()
    let isCalling = false
    const told = Effect.fnUntraced(function* (event: ChatEvent) {
      if (event._tag === "ModelInfo") isCalling = false
      if (event._tag === "ToolCallRequest") isCalling = true
      if (event._tag === "ToolCallStarted" || event._tag === "ToolCallConfirmation") titles.set(event.id, event.title)
      const title = event._tag === "ToolCallResponse" ? (titles.get(event.id) ?? event.name) : ""
      yield* Ref.update(run, (before) => after(before, event, title))
      yield* printer.event(event)
      const notice = input.streamJson ? undefined : noticeOf(event, title, isCalling)
      if (notice !== undefined) yield* Output.notice(notice)
    })
    const end = Effect.flatMap(Ref.get(run), printer.end)
    // A signal ends the run. The last event says so, unless the run was over already.
    const cancel = Effect.flatMap(Ref.get(run), (before) =>
      hasEnded(before, isCalling) ? Effect.void : Effect.ignore(Effect.andThen(told(cancelled), end))
    )
    yield* worker.run(message, { typed: Option.getOrElse(input.prompt, () => "") }).pipe(
      Stream.catch((error) => Stream.fromEffect(Effect.flatMap(OpenChat.turnFailure(error), Effect.fail))),
      Stream.runForEach(told),
      Effect.onInterrupt(() => cancel),
      Effect.tapError(({ status }) => (status === 0 ? Effect.void : end))
    )
    yield* end
    const { error } = yield* Ref.get(run)
    if (error?._tag === "LimitReached" || error?._tag === "HookStopped" || error?._tag === "Error") {
      return yield* failed(printable(error.message))
    }
    if (error?._tag === "LoopDetected") {
      return yield* failed(`the model went round in circles (${printable(error.detail)}) and was stopped`)
    }
  }, Effect.scoped)
).pipe(
  Command.withDescription("Ask once and print the answer; the conversation is kept with --session or --resume only"),
  Command.withExamples([
    { command: `palimpsest ask "What is a palimpsest?"`, description: "One question, one answer" },
    { command: `git diff | palimpsest ask "Review this"`, description: "With something to look at" },
    { command: `palimpsest ask --approve edits "Fix the typo in README.md"`, description: "Let it edit files" },
    { command: `palimpsest ask --session review "And the tests?"`, description: "Go on with a conversation" }
  ])
)
