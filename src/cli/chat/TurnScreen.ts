/** Shows one turn to the user: answers as rendered Markdown, tool calls as cards, everything else as notes. */

import { Effect } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { Display } from "../../domain/tools/ToolResult.ts"
import { type Card, ChatTerminal } from "../../services/terminal/ChatTerminal.ts"
import { truncate } from "../output/Columns.ts"
import * as Output from "../output/Output.ts"
import {
  activityText,
  afterActivity,
  type AgentProgress,
  agentProgressText,
  callText,
  currentStep,
  detailLines,
  diffLines,
  firstLines,
  hasSucceeded,
  languageOf,
  loopText,
  colouredDiffLine,
  responseText,
  todoLines
} from "../output/ToolCallText.ts"
import {
  compressedSentence,
  cutOffSentences,
  maskedSentence,
  overflowSentence,
  retrySentence,
  sourcesSentence
} from "../output/TurnText.ts"
import { plainTitle } from "./PastCalls.ts"
import { preparationText } from "./StatusLine.ts"

const discardedNotice = "Ignore the partial answer above."
/** Lines of a diff that are shown for a change that did not need approval. */
const maxDiffLines = 12
/** Maximum width of a note when the output is not wrapped. */
const maxNoteColumns = 200

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

/** How cards are drawn. */
export interface CardStyle {
  readonly style: Output.Style
  /** Columns of the screen that a line may fill. */
  readonly width: number
}

type Response = Extract<ChatEvent, { _tag: "ToolCallResponse" }>

/** The lines that are always shown of a call that ended. `wasApproved`: the user saw the change before it was made. */
const bodyLines = (
  { display, status }: Response,
  output: ReadonlyArray<string>,
  wasApproved: boolean,
  style: Output.Style
) => {
  if (status !== "success") return []
  if (display?._tag === "Todos") return todoLines(display.todos, style)
  return display?._tag === "Diff" && !wasApproved ? firstLines(output, maxDiffLines) : []
}

/** The card of a call that ended. `hasBody`: the terminal has room for more than one line. */
export const responseCard = (
  event: Response,
  title: string,
  { hasBody, style, wasApproved, width }: CardStyle & { readonly hasBody: boolean; readonly wasApproved: boolean }
): Card => {
  const { display, id } = event
  const text = truncate(responseText(event, title), width)
  const output = outputLines(display, style)
  const body = hasBody ? bodyLines(event, output, wasApproved, style) : []
  return {
    key: id,
    isRunning: false,
    head: hasSucceeded(event) ? style.dim(text) : style.warn(text),
    body: body.map((line) => truncate(line, width - 2)),
    more: output.length > body.length && output.length > 1 ? output : [],
    ...(display?._tag === "Diff" ? { language: languageOf(display.file) } : {})
  }
}

/** The card of a call that runs. Of its output the last line is always shown, of an agent its progress. */
export const runningCard = (
  id: string,
  title: string,
  output: ReadonlyArray<string>,
  width: number,
  progress?: AgentProgress
): Card => ({
  key: id,
  isRunning: true,
  head: truncate(callText(title), width),
  body: progress === undefined ? output.slice(-1) : [truncate(agentProgressText(progress), width - 2)],
  more: output
})

/** The label of the progress line while this many calls run. */
export const workLabel = (calls: number): string =>
  calls === 0 ? "thinking" : calls === 1 ? "running" : `running ${calls} calls`

/** The screen of one turn, and what it remembers of the events so far. */
export interface TurnScreen extends CardStyle {
  readonly terminal: ChatTerminal["Service"]
  /** Whether calls are answered from a recording. */
  readonly isRecorded: boolean
  /** Titles of the calls, by their ids. */
  readonly titles: Map<string, string>
  /** Calls that the user was asked about. */
  readonly approved: Set<string>
  /** Calls that run. */
  readonly running: Set<string>
  /** The progress of the agents that run, by their calls, and what they wrote last. */
  readonly agents: Map<string, AgentProgress>
  readonly outputs: Map<string, ReadonlyArray<string>>
  readonly state: {
    /** Whether an answer of the turn is complete. */
    hasFinished: boolean
    /** Whether a part of an answer is shown that may still be discarded. */
    hasPartialAnswer: boolean
  }
}

/** Makes the screen of a turn. `isRecorded`: calls are answered from a recording. */
export const make = Effect.fnUntraced(function* (isRecorded: boolean) {
  const terminal = yield* ChatTerminal
  const screen: TurnScreen = {
    terminal,
    isRecorded,
    style: terminal.canColor ? Output.coloured : Output.plain,
    width: Math.min((yield* terminal.columns) - 1, maxNoteColumns),
    titles: new Map(),
    approved: new Set(),
    running: new Set(),
    agents: new Map(),
    outputs: new Map(),
    state: { hasFinished: false, hasPartialAnswer: false }
  }
  return screen
})

const note = ({ terminal }: TurnScreen, line: string) => terminal.note(printableLine(line))

const showLabel = ({ terminal }: TurnScreen, label: string) => terminal.working(printableLine(label))

const showWorkLabel = (screen: TurnScreen) => Effect.suspend(() => showLabel(screen, workLabel(screen.running.size)))

/** Discards the partial answer, and says so if any of it was shown. */
const discardAnswer = ({ state, terminal }: TurnScreen, line: string) =>
  Effect.suspend(() => {
    const notice = state.hasPartialAnswer ? ` ${discardedNotice}` : ""
    state.hasPartialAnswer = false
    return Effect.andThen(terminal.endAnswer(true), terminal.note(`${line}${notice}`))
  })

const showRunning = (
  { agents, outputs, terminal, titles, width }: TurnScreen,
  id: string,
  output: ReadonlyArray<string>
) => {
  outputs.set(id, output)
  return terminal.card(runningCard(id, titles.get(id) ?? "", output, width, agents.get(id)))
}

const showResponse = Effect.fnUntraced(function* (screen: TurnScreen, event: Response) {
  const { approved, running, style, terminal, titles, width } = screen
  running.delete(event.id)
  screen.agents.delete(event.id)
  screen.outputs.delete(event.id)
  const title = titles.get(event.id) ?? event.name
  const { display } = event
  if (display?._tag === "Todos") yield* terminal.panel(currentStep(display.todos, style))
  const wasApproved = approved.has(event.id)
  yield* terminal.card(responseCard(event, title, { hasBody: terminal.isTerminal, style, wasApproved, width }))
  yield* showWorkLabel(screen)
})

const showActivity = (screen: TurnScreen, event: Extract<ChatEvent, { _tag: "SubagentActivity" }>) => {
  const { agents, outputs, running, style, terminal, width } = screen
  agents.set(event.id, afterActivity(agents.get(event.id), event.activity))
  const live = running.has(event.id) ? showRunning(screen, event.id, outputs.get(event.id) ?? []) : Effect.void
  const text = activityText(event.agent, event.activity)
  if (text !== undefined) {
    const head = style.dim(truncate(`  ${text}`, width))
    return Effect.andThen(
      live,
      terminal.card({ key: `${event.id} activity`, isRunning: false, head, body: [], more: [] })
    )
  }
  return event.activity._tag === "Thought" ? showLabel(screen, `${event.agent}: ${event.activity.text}`) : live
}

const showFinished = ({ state, terminal }: TurnScreen, { reason }: Extract<ChatEvent, { _tag: "Finished" }>) => {
  state.hasFinished = true
  state.hasPartialAnswer = false
  const cutOff = cutOffSentences[reason]
  return Effect.andThen(terminal.endAnswer(false), cutOff === undefined ? Effect.void : terminal.note(cutOff))
}

const showCancelled = ({ state, terminal }: TurnScreen) => {
  const text = state.hasFinished
    ? "Cancelled. Everything up to here is kept."
    : `Cancelled. ${state.hasPartialAnswer ? "The partial answer was discarded; your" : "Your"} message is back in the input line.`
  return Effect.andThen(terminal.endAnswer(true), terminal.note(text))
}

const showPreparation = (screen: TurnScreen, { message, state }: Extract<ChatEvent, { _tag: "SnapshotPreparation" }>) =>
  state === "dropped"
    ? note(screen, `The snapshot that was prepared is not used: ${message ?? "it was dropped"}.`)
    : showLabel(screen, state === "running" ? preparationText.running : "thinking")

/** Shows what happens to a call. */
const showCall = (
  screen: TurnScreen,
  event: Extract<
    ChatEvent,
    { _tag: "ToolCallConfirmation" | "ToolCallProgress" | "ToolCallRequest" | "ToolCallStarted" }
  >
) => {
  const { approved, isRecorded, running, terminal, titles } = screen
  switch (event._tag) {
    case "ToolCallRequest":
      // Its tool gives a better one, unless the call is refused or cancelled before.
      titles.set(event.id, plainTitle({ call: event.call, response: undefined }))
      return isRecorded ? note(screen, `The model calls ${event.call.name}.`) : Effect.void
    case "ToolCallConfirmation":
      titles.set(event.id, event.title)
      approved.add(event.id)
      return terminal.endAnswer(false)
    case "ToolCallStarted":
      titles.set(event.id, printableLine(event.title))
      running.add(event.id)
      return Effect.andThen(showRunning(screen, event.id, []), showWorkLabel(screen))
    case "ToolCallProgress":
      return showRunning(screen, event.id, detailLines(event.text))
  }
}

/** Shows an event of the turn. */
export const show = (screen: TurnScreen, event: ChatEvent): Effect.Effect<void> => {
  const { state, terminal } = screen
  switch (event._tag) {
    case "ModelInfo":
      return terminal.working("thinking")
    case "Content":
      if (state.hasPartialAnswer || event.text.trim() === "") return terminal.answer(event.text)
      state.hasPartialAnswer = true
      return Effect.andThen(showLabel(screen, "answering"), terminal.answer(event.text))
    case "Thought":
      return event.subject === "" ? Effect.void : showLabel(screen, event.subject)
    case "ToolCallRequest":
    case "ToolCallConfirmation":
    case "ToolCallStarted":
    case "ToolCallProgress":
      return showCall(screen, event)
    case "SubagentActivity":
      return showActivity(screen, event)
    case "ToolCallResponse":
      state.hasPartialAnswer = false
      return showResponse(screen, event)
    case "ToolOutputMasked":
      return note(screen, maskedSentence(event))
    case "LoopDetected":
      state.hasFinished = true
      return discardAnswer(screen, loopText(event))
    case "LimitReached":
    case "HookStopped":
      return discardAnswer(screen, Output.sentence(event.message))
    case "Notice":
      return note(screen, printableLine(event.message))
    case "Citation":
      return note(screen, sourcesSentence(event))
    case "Retry":
      return Effect.andThen(
        discardAnswer(screen, retrySentence(event)),
        terminal.working("waiting to retry", event.delay / 1_000)
      )
    case "ChatCompressed":
      return note(screen, compressedSentence(event, "; /undo reverses it"))
    case "SnapshotPreparation":
      return showPreparation(screen, event)
    case "Finished":
      return showFinished(screen, event)
    case "UserCancelled":
      return showCancelled(screen)
    case "InvalidStream":
    case "Error":
      return discardAnswer(screen, Output.sentence(event.message))
    case "ContextWindowWillOverflow":
      return discardAnswer(screen, overflowSentence(event))
  }
}
