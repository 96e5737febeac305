/** The `ask` command: sends one prompt to the agent, and prints the answer as text, events or one JSON document. */

import { Effect, Ref, Schema, Stdio, Stream } from "effect"
import { Command } from "effect/cli"
import { unspecifiedReason } from "../../domain/chat/Answer.ts"
import { CallStatus, ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { decode, joinBytes } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { escapeUnprintable } from "../../domain/text/WorkspacePath.ts"
import { addUsage, TokenCount, Usage } from "../../domain/tokens/Tokens.ts"
import type { TurnRetries } from "../../services/chat/ChatSettings.ts"
import * as Runtime from "../../services/runtime/Runtime.ts"
import { missingKeyLines } from "../flags/ApiKey.ts"
import * as ChatFlags from "../flags/ChatFlags.ts"
import { resumable } from "../flags/ImportedSession.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as RuntimeText from "../output/RuntimeText.ts"
import { activityText, loopText, responseText } from "../output/ToolCallText.ts"
import {
  compressedSentence,
  cutOffSentences,
  maskedSentence,
  retrySentence,
  sourcesSentence
} from "../output/TurnText.ts"

/** An answered tool call. */
const ToolCallRow = Schema.Struct({
  name: Schema.String,
  title: Schema.String,
  status: CallStatus,
  /** Duration in milliseconds. */
  duration: Schema.Finite,
  /** The message to the model when the call did not succeed. */
  message: Schema.NullOr(Schema.String)
})

/** The output of `--json`: the whole run as one document, printed for a failed run too. */
const Report = Schema.Struct({
  /** The session id; null when the conversation is not saved. */
  session: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  /** The text of the last turn. Null when there is none; `error` then says why. */
  answer: Schema.NullOr(Schema.String),
  finishReason: Schema.NullOr(Schema.String),
  /** Usage of all turns together. */
  usage: Schema.NullOr(Usage),
  turns: Schema.Natural,
  /** Tokens of the conversation at the end of the run, and of the model's window. */
  tokens: Schema.NullOr(TokenCount),
  limit: Schema.NullOr(TokenCount),
  compressions: Schema.Array(ChatEvent.cases.ChatCompressed),
  citations: Schema.Array(Schema.String),
  calls: Schema.Array(ToolCallRow),
  /** Number of events by kind. */
  events: Schema.Record(Schema.String, Schema.Natural),
  error: Schema.NullOr(ChatEvent)
})
type Report = typeof Report.Type

const eventJson = fromJson(Schema.toCodecJson(ChatEvent))

/** Reads standard input unless it is a terminal. */
const readPipedInput = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) return ""
  const chunks = yield* Stream.runCollect(stdio.stdin).pipe(
    Output.progress("reading standard input"),
    Effect.mapError(() => badInput("standard input cannot be read"))
  )
  return decode(joinBytes(chunks)).text
})

/** Joins the prompt and the piped input with a blank line. */
const messageOf = Effect.fnUntraced(function* (prompt: string | undefined) {
  const parts = [prompt ?? "", (yield* readPipedInput).replace(/\n+$/, "")].filter((text) => text.trim() !== "")
  if (parts.length === 0) return yield* badInput("the prompt is empty; give a prompt, or pipe text in")
  return parts.join("\n\n")
})

/** Maximum columns of a call's line: a command can be megabytes long without a line break. */
const maxNoticeColumns = 160

/** Explains a finish reason that is not a normal end. */
const finishNotice = (reason: string, isCalling: boolean): string | undefined => {
  switch (reason) {
    case "STOP":
      return undefined
    case unspecifiedReason:
      // A complete call needs no finish reason: it runs, and the answer follows.
      return isCalling ? undefined : "the model gave no finish reason; the answer may be incomplete"
    default:
      return cutOffSentences[reason] ?? `the model ended its answer with ${reason}`
  }
}

/**
 * The notice on stderr for an event. `title` describes the call that the event answers; `isCalling`: the turn requested tools.
 */
const noticeOf = (event: ChatEvent, title: string, isCalling: boolean): string | undefined => {
  switch (event._tag) {
    case "Retry":
      return retrySentence(event)
    case "ChatCompressed":
      return compressedSentence(event, "")
    case "ToolCallResponse":
      return `${truncate(responseText(event, title), maxNoticeColumns)}${event.status === "denied" ? "; allow it with --approve" : ""}`
    case "SubagentActivity":
      return activityText(event.agent, event.activity)
    case "Notice":
      return event.message
    case "ToolOutputMasked":
      return maskedSentence(event)
    case "LoopDetected":
      return event.halted ? undefined : loopText(event)
    case "Citation":
      return sourcesSentence(event)
    case "Finished":
      return finishNotice(event.reason, isCalling)
    default:
      return undefined
  }
}

/**
 * Returns the retry limits of a script, which waits less than a user who sees the reason: some seconds, or up to a minute
 * when the server asks for it. The settings can change the number of attempts. An unusable answer is requested again as often
 * as in a chat (as often as current Gemini CLI; in March 2026 it asked twice): this costs seconds, and the next answer is
 * usually good.
 */
const retriesFor = (settings: SettingsFile): TurnRetries => ({
  call: {
    attempts: settings.attempts?.calls ?? 4,
    initialDelayMillis: 1_000,
    maxDelayMillis: 8_000,
    maxServerDelayMillis: 60_000
  },
  answer: { attempts: withDefaults(settings).attempts.answers, initialDelayMillis: 1_000, maxDelayMillis: 4_000 }
})

/** The report before the first event. */
const emptyReport = (session: string | undefined): Report => ({
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

/** Returns the report after one more event. */
const after = (before: Report, event: ChatEvent, title: string): Report => {
  const report = { ...before, events: { ...before.events, [event._tag]: (before.events[event._tag] ?? 0) + 1 } }
  switch (event._tag) {
    case "ModelInfo":
      // A new turn begins: the text of the previous one led to calls.
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
        usage:
          event.usage === null || report.usage === null
            ? (report.usage ?? event.usage)
            : addUsage(report.usage, event.usage),
        tokens: event.tokens,
        limit: event.limit
      }
    case "ToolCallResponse": {
      const { duration, message, name, status } = event
      // The turn that requested this call was not the last one.
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
      // When only saving failed, the answer is complete and paid for.
      return { ...report, answer: event.reason.startsWith("Session") ? report.answer : null, error: event }
    default:
      return report
  }
}

/** Whether the run is over: the last turn requested no calls, or the run was stopped. */
const hasEnded = ({ error, finishReason }: Report, isCalling: boolean): boolean =>
  error !== null || (finishReason !== null && !isCalling)

/** Handles the events of a turn as they arrive, and its end, whether or not it was answered. */
interface Printer {
  readonly event: (event: ChatEvent) => Effect.Effect<void, ExitError, Stdio.Stdio>
  readonly end: (turn: Report) => Effect.Effect<void, ExitError, Stdio.Stdio>
}

const silent = () => Effect.void

/** Prints one event per line as it arrives. */
const eventLines: Printer = {
  // Escapes control characters within JSON strings; the values stay the same.
  event: (event) =>
    Effect.flatMap(Effect.orDie(Schema.encodeEffect(eventJson)(event)), (line) => Output.text(escapeUnprintable(line))),
  end: silent
}

/** Prints one document at the end. */
const oneDocument: Printer = { event: silent, end: (turn) => Output.json(Report, turn) }

/** Prints only the answer, once it is final: output in a pipe cannot be withdrawn, and an attempt can still be discarded. */
const answerAtEnd: Printer = {
  event: silent,
  end: ({ answer }) => (answer === null || answer === "" ? Effect.void : Effect.asVoid(Output.exact(answer)))
}

/** Prints the answers as they arrive, each on lines of its own. A discarded attempt stays on the screen. */
const answerStreaming = Effect.map(Output.pieces, (write): Printer => {
  let last = "\n"
  const say = (piece: string | undefined) =>
    Effect.map(write(piece), (shown) => {
      last = shown.at(-1) ?? last
    })
  const close = Effect.suspend(() => say(undefined)).pipe(
    Effect.andThen(Effect.suspend(() => (last === "\n" ? Effect.void : say("\n"))))
  )
  return {
    event: (event) => {
      if (event._tag === "Content") return say(event.text)
      // Other events may print a line, and it must not stand behind half of one.
      return event._tag === "Thought" ? Effect.void : close
    },
    end: () => close
  }
})

const cancelled: ChatEvent = { _tag: "UserCancelled" }

/** The command `palimpsest ask [prompt]`. */
export const ask = Command.make(
  "ask",
  {
    prompt: Input.optionalArgument("prompt", "Prompt, to which piped input is appended; - for piped input alone"),
    ...ChatFlags.flags,
    ...ChatFlags.agentFlags,
    json: Input.json,
    streamJson: Input.flag("stream-json", "Print every event as a line of JSON, as it happens")
  },
  Effect.fn("cli.ask")(function* (input) {
    if (input.json && input.streamJson) return yield* badInput("use either --json or --stream-json, not both")
    const prompt = input.prompt === "-" ? undefined : input.prompt
    const message = yield* messageOf(prompt)
    const { addDir, approve, tools } = input
    const handlers = yield* RuntimeText.handlers
    const options = yield* resumable(yield* ChatFlags.sessionOptions(input), handlers)
    const agent = yield* RuntimeText.orExit(Runtime.make({ ...options, addDir, approve, tools, handlers }))
    const { chat, id } = agent
    const stdio = yield* Stdio.Stdio
    const printer = input.streamJson
      ? eventLines
      : input.json
        ? oneDocument
        : (yield* stdio.stdoutIsTerminal)
          ? yield* answerStreaming
          : answerAtEnd
    yield* Effect.mapError(chat.configure({ retries: retriesFor(agent.settings) }), ({ message: why }) => failed(why))
    const run = yield* Ref.make(emptyReport(id))
    const titles = new Map<string, string>()
    let isCalling = false
    const handleEvent = Effect.fnUntraced(function* (event: ChatEvent) {
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
    // A signal ends the run. The last event reports this unless the run was already over.
    const cancel = Effect.flatMap(Ref.get(run), (before) =>
      hasEnded(before, isCalling) ? Effect.void : Effect.ignore(Effect.andThen(handleEvent(cancelled), end))
    )
    const http = yield* Effect.context<never>()
    const advice = Effect.flatMap(agent.chat.settings, ({ model }) =>
      Effect.provideContext(missingKeyLines(model), http)
    )
    yield* agent.send(message, { typed: prompt ?? "" }).pipe(
      Stream.catch((error) => Stream.fromEffect(Effect.flatMap(RuntimeText.turnFailure(error, advice), Effect.fail))),
      Stream.runForEach(handleEvent),
      Effect.onInterrupt(() => cancel),
      Effect.tapError(({ status }) => (status === 0 ? Effect.void : end))
    )
    yield* end
    const { error } = yield* Ref.get(run)
    if (error?._tag === "LimitReached" || error?._tag === "HookStopped" || error?._tag === "Error") {
      return yield* failed(printableLine(error.message))
    }
    if (error?._tag === "LoopDetected") {
      return yield* failed(`the model repeated itself (${printableLine(error.detail)}) and was stopped`)
    }
  }, Effect.scoped)
).pipe(
  Input.withExamples({
    'palimpsest ask "What is a palimpsest?"': "Ask one question",
    'git diff | palimpsest ask "Review this"': "Add piped input to the prompt",
    'palimpsest ask --approve edits "Fix the typo in README.md"': "Let the model edit files",
    'palimpsest ask --session review "And the tests?"': "Continue a conversation"
  })
)
