import { Effect } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { Display } from "../../domain/tools/ToolResult.ts"
import { ChatTerminal } from "../../services/terminal/ChatTerminal.ts"
import { truncate } from "../output/Columns.ts"
import * as Output from "../output/Output.ts"
import {
  activityText,
  currentStep,
  detailLines,
  diffLines,
  firstLines,
  languageOf,
  loopText,
  colouredDiffLine,
  responseText,
  todoLines
} from "../output/ToolCallText.ts"
import { preparationText } from "./StatusLine.ts"

/** Shows one turn to the user. */

const seconds = (millis: number): string => `${Math.max(1, Math.round(millis / 1_000))} s`

/** The cause of a failure without the advice after it. */
const cause = (message: string): string => Output.sentence(message.split("; ")[0] ?? message).replace(/\.$/, "")

/** Explains the statuses of compressions that had no effect. */
const compressionFailures: Readonly<Record<string, string>> = {
  COMPRESSION_FAILED_INFLATED_TOKEN_COUNT: "the summary would not be smaller",
  COMPRESSION_FAILED_TOKEN_COUNT_ERROR: "the tokens could not be counted",
  COMPRESSION_FAILED_EMPTY_SUMMARY: "the model returned an empty summary",
  FAILED_SUMMARIZER: "the summary failed"
}

/** Describes a compression that ran before a message. */
const compressedSentence = (event: Extract<ChatEvent, { _tag: "ChatCompressed" }>): string => {
  const { after, before, limit, message, status } = event
  const note = message === null ? "" : ` Note: ${printableLine(message).replace(/\.$/, "")}.`
  return status === "COMPRESSED" || status === "CONTENT_TRUNCATED"
    ? `${status === "COMPRESSED" ? "Compressed" : "Shortened tool outputs"} to make room: from ${Output.number(before)} to ${Output.number(after)} tokens (${Output.share(before, limit)} to ${Output.share(after, limit)} of the window). Everything stays recallable; /undo reverses it.${note}`
    : `Not compressed: ${compressionFailures[status] ?? status}. The conversation is unchanged.${note}`
}

/** A compression is recommended only when more than this share of the window is in use. */
const minCompressibleShare = 0.25

/** Explains why a message does not fit, with the token counts and the possible remedies. */
const overflowSentence = (event: Extract<ChatEvent, { _tag: "ContextWindowWillOverflow" }>): string => {
  const { estimated, limit, remaining, stubborn, what } = event
  const size = `about ${Output.number(estimated)} tokens`
  const isMessage = what === "message"
  const isAlone = isMessage && estimated > limit
  const advice = !isMessage
    ? "Ask for less at once, or use a model with a larger window (/model)."
    : isAlone || limit - remaining <= minCompressibleShare * limit
      ? "Shorten it, or use a model with a larger window (/model)."
      : "Shorten it, try /compress, or use a model with a larger window (/model)."
  const largest = (isAlone ? [] : stubborn)
    // The message itself is described separately.
    .filter(({ entry, tokens }) => entry !== null || tokens !== estimated)
    .slice(0, 3)
    .map(({ entry, tokens, what }) => `${entry === null ? "" : `${entry} `}${what} (${Output.number(tokens)})`)
  return [
    isAlone
      ? `This message alone is too large: it has ${size}, the whole window ${Output.number(limit)}.`
      : `${isMessage ? "This message does not fit: it has" : "The tools' results do not fit: they have"} ${size}, and ${Output.number(remaining)} of the window of ${Output.number(limit)} are left.`,
    "Nothing was sent.",
    advice,
    ...(largest.length === 0 ? [] : [`Cannot be shortened: ${largest.join(", ")}.`])
  ].join(" ")
}

/** Explains the finish reasons of incomplete answers. */
const cutOffSentences: Readonly<Record<string, string>> = {
  MAX_TOKENS: "The answer was cut off at the model's output limit. Ask it to continue.",
  SAFETY: "The model's provider cut the answer off (SAFETY).",
  RECITATION: "The model's provider cut the answer off (RECITATION)."
}

const discardedNotice = "Ignore the partial answer above."

/** Lines of a diff that are shown for a change that did not need approval. */
const maxDiffLines = 12
/** Maximum width of a note when the output is not wrapped. */
const maxNoteColumns = 200

/** Describes a masking: tokens of the conversation before and after. */
const maskedSentence = ({ after, before, parts }: Extract<ChatEvent, { _tag: "ToolOutputMasked" }>): string =>
  `${Output.plural(parts, "old tool output")} shortened: from ${Output.number(before)} to ${Output.number(after)} tokens. The full outputs stay recallable.`

/** The lines of a tool's output that Ctrl+O shows: a diff is coloured, everything else is as the tool wrote it. */
const outputLines = (display: Display | null, style: Output.Style): ReadonlyArray<string> => {
  switch (display?._tag) {
    case "Text":
      return detailLines(display.text)
    case "Diff":
      return diffLines(display.diff).map((line) => colouredDiffLine(line, style))
    default:
      return []
  }
}

/**
 * Makes the screen for the events of one run: answers as rendered Markdown, tool calls as cards, everything else as notes.
 * `isRecorded`: calls are answered from a recording.
 */
export const make = Effect.fnUntraced(function* (isRecorded: boolean) {
  const terminal = yield* ChatTerminal
  const columns = yield* terminal.columns
  const style = terminal.canColor ? Output.coloured : Output.plain
  const width = Math.min(columns - 1, maxNoteColumns)
  /** Titles of the calls that were started or asked about, and whether the user has seen the change of each of them. */
  const titles = new Map<string, string>()
  const seen = new Set<string>()
  const running = new Set<string>()
  let isSaid = false
  let hasAnswer = false

  const note = (line: string) => terminal.note(printableLine(line))
  /** Discards the partial answer and says so if any of it was shown. */
  const drop = Effect.fnUntraced(function* (line: string) {
    const what = hasAnswer ? ` ${discardedNotice}` : ""
    hasAnswer = false
    yield* terminal.endAnswer(true)
    yield* terminal.note(`${line}${what}`)
  })
  const working = (text: string) => terminal.working(printableLine(text))
  /** Updates the progress line: how many calls run. */
  const nowWorking = Effect.suspend(() =>
    working(running.size === 0 ? "thinking" : running.size === 1 ? "running" : `running ${running.size} calls`)
  )
  const runningCard = (id: string, more: ReadonlyArray<string>) =>
    terminal.card({ key: id, isRunning: true, head: truncate(titles.get(id) ?? "", width), body: more.slice(-1), more })

  const answered = (event: Extract<ChatEvent, { _tag: "ToolCallResponse" }>) => {
    running.delete(event.id)
    const { display, id, status } = event
    const text = truncate(responseText(event, titles.get(id) ?? event.name), width)
    const output = outputLines(display, style)
    const body =
      status !== "success" || !terminal.isTerminal
        ? []
        : display?._tag === "Todos"
          ? todoLines(display.todos, style)
          : display?._tag === "Diff" && !seen.has(id)
            ? firstLines(output, maxDiffLines)
            : []
    const more = output.length > body.length && output.length > 1 ? output : []
    const head = status === "success" ? style.dim(text) : style.warn(text)
    const steps = display?._tag === "Todos" ? terminal.panel(currentStep(display.todos, style)) : Effect.void
    return Effect.andThen(
      Effect.andThen(
        steps,
        terminal.card({
          key: id,
          isRunning: false,
          head,
          body: body.map((line) => truncate(line, width - 2)),
          more,
          ...(display?._tag === "Diff" ? { language: languageOf(display.file) } : {})
        })
      ),
      nowWorking
    )
  }

  const show = (event: ChatEvent): Effect.Effect<void> => {
    switch (event._tag) {
      case "ModelInfo":
        return terminal.working("thinking")
      case "Content":
        hasAnswer = hasAnswer || event.text.trim() !== ""
        return terminal.answer(event.text)
      case "Thought":
        return event.subject === "" ? Effect.void : working(event.subject)
      case "ToolCallRequest":
        return isRecorded ? note(`The model calls ${event.call.name}.`) : Effect.void
      case "ToolCallConfirmation":
        titles.set(event.id, event.title)
        seen.add(event.id)
        return terminal.endAnswer(false)
      case "ToolCallStarted":
        titles.set(event.id, printableLine(event.title))
        running.add(event.id)
        return Effect.andThen(runningCard(event.id, []), nowWorking)
      case "ToolCallProgress":
        return runningCard(event.id, detailLines(event.text))
      case "SubagentActivity": {
        const text = activityText(event.agent, event.activity)
        if (text !== undefined) {
          const head = style.dim(truncate(`  ${text}`, width))
          return terminal.card({ key: `${event.id} activity`, isRunning: false, head, body: [], more: [] })
        }
        return event.activity._tag === "Thought" ? working(`${event.agent}: ${event.activity.text}`) : Effect.void
      }
      case "ToolCallResponse":
        hasAnswer = false
        return answered(event)
      case "ToolOutputMasked":
        return note(maskedSentence(event))
      case "LoopDetected":
        return drop(loopText(event))
      case "LimitReached":
      case "HookStopped":
        return drop(Output.sentence(event.message))
      case "Notice":
        return note(printableLine(event.message))
      case "Citation":
        return note(`Sources: ${event.text.split("\n").join(" · ")}`)
      case "Retry":
        return Effect.andThen(
          drop(`${cause(event.message)}; retrying in ${seconds(event.delay)}.`),
          terminal.working("waiting to retry")
        )
      case "ChatCompressed":
        return note(compressedSentence(event))
      case "SnapshotPreparation":
        return event.state === "dropped"
          ? note(`The snapshot that was prepared is not used: ${event.message ?? "it was dropped"}.`)
          : working(event.state === "running" ? preparationText.running : "thinking")
      case "Finished":
        isSaid = true
        hasAnswer = false
        return Effect.andThen(
          terminal.endAnswer(false),
          cutOffSentences[event.reason] === undefined ? Effect.void : terminal.note(cutOffSentences[event.reason] ?? "")
        )
      case "UserCancelled":
        return Effect.andThen(
          terminal.endAnswer(true),
          terminal.note(
            isSaid
              ? "Cancelled. Everything up to here is kept."
              : "Cancelled. The partial reply was discarded; your message is back in the prompt."
          )
        )
      case "InvalidStream":
      case "Error":
        return drop(Output.sentence(event.message))
      case "ContextWindowWillOverflow":
        return drop(overflowSentence(event))
    }
  }
  return { show }
})
