import { Effect } from "effect"
import type { ChatEvent } from "../../domain/ChatEvent.ts"
import { printable } from "../../domain/Inspection.ts"
import { ChatTerminal } from "../../services/ChatTerminal.ts"
import { cut } from "../Columns.ts"
import * as Output from "../Output.ts"
import { activityText, diffLines, firstOf, loopText, painted, responseText, todoLines } from "./CallText.ts"
import * as Markdown from "./Markdown.ts"

/** What a person sees of one turn. */

const seconds = (millis: number): string => `${Math.max(1, Math.round(millis / 1_000))} s`

/** A message of an error as a sentence of its own. */
export const sentence = (message: string): string => {
  const line = printable(message)
  return `${line.slice(0, 1).toUpperCase()}${line.slice(1)}${/[.!?]$/.test(line) ? "" : "."}`
}

/** Only what went wrong: the advice behind it is for who has to act. */
const cause = (message: string): string => sentence(message.split("; ")[0] ?? message).replace(/\.$/, "")

/** What the statuses of compressions without effect mean (spec 11, UI texts). */
const noRoom: Readonly<Record<string, string>> = {
  COMPRESSION_FAILED_INFLATED_TOKEN_COUNT: "the summary would not be smaller",
  COMPRESSION_FAILED_TOKEN_COUNT_ERROR: "the tokens could not be counted",
  COMPRESSION_FAILED_EMPTY_SUMMARY: "the model returned an empty summary",
  FAILED_SUMMARIZER: "the summary failed"
}

/** What is said of a compression before a message. */
export const compressedSentence = (event: Extract<ChatEvent, { _tag: "ChatCompressed" }>): string => {
  const { after, before, limit, message, status } = event
  const note = message === null ? "" : ` Note: ${printable(message).replace(/\.$/, "")}.`
  return status === "COMPRESSED" || status === "CONTENT_TRUNCATED"
    ? `${status === "COMPRESSED" ? "Compressed" : "Shortened tool outputs"} to make room: from ${Output.number(before)} to ${Output.number(after)} tokens (${Output.share(before, limit)} to ${Output.share(after, limit)} of the window). All of it can be recalled; /undo takes it back.${note}`
    : `No room was made: ${noRoom[status] ?? status}. The conversation goes on as it is.${note}`
}

/** From this share of the window on that is in use, compressing is an advice (spec 4). */
const worthCompressing = 0.25

/** What is said where a message does not fit, with the numbers and what can be done (spec 4). */
export const overflowSentence = (event: Extract<ChatEvent, { _tag: "ContextWindowWillOverflow" }>): string => {
  const { estimated, limit, remaining, stubborn, what } = event
  const size = `about ${Output.number(estimated)} tokens`
  const isMessage = what === "message"
  const isAlone = isMessage && estimated > limit
  const advice = !isMessage
    ? "Ask for less at once, or take a model with a larger window (/model)."
    : isAlone || limit - remaining <= worthCompressing * limit
      ? "Shorten it, or take a model with a larger window (/model)."
      : "Shorten it, try /compress, or take a model with a larger window (/model)."
  const most = (isAlone ? [] : stubborn)
    // The message has been told.
    .filter(({ entry, tokens }) => entry !== null || tokens !== estimated)
    .slice(0, 3)
    .map(({ entry, tokens, what }) => `${entry === null ? "" : `${entry} `}${what} (${Output.number(tokens)})`)
  return [
    isAlone
      ? `This message alone is too large: it has ${size}, the whole window ${Output.number(limit)}.`
      : `${isMessage ? "This message does not fit: it has" : "The tools' results do not fit: they have"} ${size}, and ${Output.number(remaining)} of the window of ${Output.number(limit)} are left.`,
    "Nothing was sent.",
    advice,
    ...(most.length === 0 ? [] : [`What cannot be made smaller: ${most.join(", ")}.`])
  ].join(" ")
}

/** What the finish reasons mean that are no whole answer. */
const cutOff: Readonly<Record<string, string>> = {
  MAX_TOKENS: "The answer was cut off at the model's limit; ask it to go on.",
  SAFETY: "The model's provider cut the answer off (SAFETY).",
  RECITATION: "The model's provider cut the answer off (RECITATION)."
}

const isVoid = "What stands above is void."

/** Lines of a change that are shown where nobody was asked about it. */
const mostLines = 12
/** Where nothing has to be wrapped, a line beside the answers is still no page. */
const widest = 200

/** What is shown of a masking: tokens of the conversation before and after. */
const maskedSentence = ({ after, before, parts }: Extract<ChatEvent, { _tag: "ToolOutputMasked" }>): string =>
  `${Output.plural(parts, "old tool output")} shortened: from ${Output.number(before)} to ${Output.number(after)} tokens. The whole can be recalled.`

/**
 * Shows the events of one run as they come: the answers as rendered Markdown, all else in lines beside them, a line a call.
 * `isRecorded`: what the model calls was answered when it was recorded.
 */
export const make = Effect.fnUntraced(function* (isRecorded: boolean) {
  const terminal = yield* ChatTerminal
  const columns = yield* terminal.columns
  const look = terminal.canColor ? Markdown.coloured : Markdown.plain
  const style = terminal.canColor ? Output.coloured : Output.plain
  const width = Math.min(columns - 1, widest)
  const markdown = Markdown.make({ columns, look })
  /** Titles of the calls that were started or asked about, and which of them a person has seen. */
  const titles = new Map<string, string>()
  const seen = new Set<string>()
  const running = new Set<string>()
  let isSaid = false

  const note = (line: string) => Effect.andThen(terminal.write(markdown.end()), terminal.note(printable(line)))
  /** Lines that keep their colours on a terminal, and are told on stderr elsewhere. */
  const lines = (texts: ReadonlyArray<string>) =>
    terminal.isTerminal
      ? terminal.write(`${markdown.end()}${texts.map((text) => `${text}\n`).join("")}`)
      : Effect.andThen(terminal.write(markdown.end()), Effect.forEach(texts, terminal.note, { discard: true }))
  /** Gives up what was shown of the answer, and says so where there is any. */
  const drop = Effect.fnUntraced(function* (line: string) {
    const what = markdown.hasPrinted() ? ` ${isVoid}` : ""
    yield* terminal.write(markdown.drop())
    yield* terminal.note(`${line}${what}`)
  })
  const working = (text: string) => terminal.working(printable(text))
  /** Says what runs: the call that was heard of last, and how many others. */
  const nowWorking = Effect.suspend(() => {
    const last = [...running].at(-1)
    if (last === undefined) return working("thinking")
    const more = running.size === 1 ? "" : ` (and ${running.size - 1} more)`
    return working(`${titles.get(last) ?? ""}${more}`)
  })

  const answered = (event: Extract<ChatEvent, { _tag: "ToolCallResponse" }>) => {
    running.delete(event.id)
    const { display } = event
    const text = cut(responseText(event, titles.get(event.id) ?? event.name), width)
    const head = event.status === "success" ? style.dim(text) : style.warn(text)
    const more =
      !terminal.isTerminal || event.status !== "success"
        ? []
        : display?._tag === "Todos"
          ? todoLines(display.todos, style)
          : display?._tag === "Diff" && !seen.has(event.id)
            ? firstOf(diffLines(display.diff), mostLines).map((line) => painted(cut(line, width - 2), style))
            : []
    return Effect.andThen(lines([head, ...more.map((line) => `  ${line}`)]), nowWorking)
  }

  const show = (event: ChatEvent): Effect.Effect<void> => {
    switch (event._tag) {
      case "ModelInfo":
        return terminal.working("thinking")
      case "Content":
        return terminal.write(markdown.push(event.text))
      case "Thought":
        return event.subject === "" ? Effect.void : working(event.subject)
      case "ToolCallRequest":
        return isRecorded ? note(`The model calls ${event.call.name}.`) : Effect.void
      case "ToolCallConfirmation":
        titles.set(event.id, event.title)
        seen.add(event.id)
        return terminal.write(markdown.end())
      case "ToolCallStarted":
        titles.set(event.id, event.title)
        running.add(event.id)
        return nowWorking
      case "ToolCallProgress": {
        const last = event.text.trimEnd().split("\n").at(-1) ?? ""
        return working(`${titles.get(event.id) ?? ""}: ${last}`)
      }
      case "SubagentActivity": {
        const text = activityText(event.agent, event.activity)
        if (text !== undefined) return lines([style.dim(cut(`  ${text}`, width))])
        return event.activity._tag === "Thought" ? working(`${event.agent}: ${event.activity.text}`) : Effect.void
      }
      case "ToolCallResponse":
        return answered(event)
      case "ToolOutputMasked":
        return note(maskedSentence(event))
      case "LoopDetected":
        return drop(loopText(event))
      case "LimitReached":
      case "HookStopped":
        return drop(sentence(event.message))
      case "Notice":
        return note(printable(event.message))
      case "Citation":
        return note(`Sources: ${event.text.split("\n").join(" · ")}`)
      case "Retry":
        return Effect.andThen(
          drop(`${cause(event.message)}; asking again in ${seconds(event.delay)}.`),
          terminal.working("waiting to ask again")
        )
      case "ChatCompressed":
        return note(compressedSentence(event))
      case "Finished":
        isSaid = true
        return Effect.andThen(
          terminal.write(markdown.end()),
          cutOff[event.reason] === undefined ? Effect.void : terminal.note(cutOff[event.reason] ?? "")
        )
      case "UserCancelled":
        return Effect.andThen(
          terminal.write(markdown.drop()),
          terminal.note(
            isSaid
              ? "Cancelled; what was said and done until then is kept."
              : "Cancelled; nothing was said. Your message is in the line again."
          )
        )
      case "InvalidStream":
      case "Error":
        return drop(sentence(event.message))
      case "ContextWindowWillOverflow":
        return drop(overflowSentence(event))
    }
  }
  return { show }
})
