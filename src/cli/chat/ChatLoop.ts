/**
 * The loop of one chat session: prompt, then a turn of the agent or a slash command (`slash/`), until the user leaves or
 * switches to another session. `layers/terminal/CtrlCAction.ts` decides what Ctrl+C does, and names the files that
 * handle it; work that it cancels runs inside `terminal.during`.
 */

import { Effect, type FileSystem, Path, Ref, type Scope, Stream } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { isResponse, type Part, plainText } from "../../domain/content/Content.ts"
import { callsWithResponses } from "../../domain/conversation/CallPairs.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { priceOf, pricesWith, requestCost } from "../../domain/tokens/Prices.ts"
import { typedText } from "../../domain/transcripts/voice/Voice.ts"
import { entitle } from "../../services/chat/Titles.ts"
import type { AgentHost } from "../../services/runtime/AgentHost.ts"
import type { OpenSession } from "../../services/runtime/SessionOpening.ts"
import { ChatTerminal } from "../../services/terminal/ChatTerminal.ts"
import { truncate } from "../output/Columns.ts"
import type { ExitError } from "../output/ExitError.ts"
import { plural, sentence } from "../output/Output.ts"
import { isTyped, lastTurns, pastCallText } from "./PastCalls.ts"
import { completeMention, completePath } from "./PathCompletion.ts"
import { runLine } from "./ShellLine.ts"
import * as ChatSession from "./slash/ChatSession.ts"
import { completeCommand, parseLine } from "./slash/SlashCommands.ts"
import { statusLine } from "./StatusLine.ts"
import * as TurnScreen from "./TurnScreen.ts"

const { say } = ChatSession

/** Maximum columns of a title within a sentence. */
const maxTitleColumns = 60
/** Maximum columns of a message of a resumed session. */
const maxTurnColumns = 200

interface Progress {
  /** Whether the message is in the conversation. */
  readonly isSent: boolean
  /** Whether the message was answered and no work is left. */
  readonly isAnswered: boolean
}

const withEvent = (before: Progress, event: ChatEvent): Progress => {
  switch (event._tag) {
    case "Finished":
      return { isSent: true, isAnswered: true }
    case "LoopDetected":
      // The message was kept with the advice to the model.
      return { isSent: true, isAnswered: false }
    case "HookStopped":
      return { isSent: before.isSent || !event.refused, isAnswered: false }
    case "ToolCallResponse":
    case "UserCancelled":
    case "InvalidStream":
    case "ContextWindowWillOverflow":
    case "Error":
    case "LimitReached":
      return { ...before, isAnswered: false }
    default:
      return before
  }
}

/** Adds what an answer cost, where its model has a price. A recording has none. */
const addCost = Effect.fnUntraced(function* (
  { chat, cost, recording }: ChatSession.ChatSession,
  { usage }: Extract<ChatEvent, { _tag: "Finished" }>
) {
  if (recording !== undefined) return
  const { model, models } = yield* chat.settings
  const price = priceOf(pricesWith(models).table, model)
  if (usage !== null && price !== undefined) yield* Ref.update(cost, (sum) => sum + requestCost(price, usage) / 1e6)
})

/** Updates the status line. */
const showStatus = Effect.fnUntraced(function* (session: ChatSession.ChatSession) {
  const { agent, chat, recording, style, terminal } = session
  if (!terminal.isTerminal) return
  const { limit, preparation, tokens } = yield* chat.usage
  const { model } = yield* chat.settings
  const path = yield* Path.Path
  const name = yield* ChatSession.nameOf(session)
  const cost = yield* Ref.get(session.cost)
  const status = {
    model: recording?.name ?? model,
    tokens,
    limit,
    mode: yield* agent.approval.shownMode,
    session: name,
    preparation,
    cost: cost === 0 ? "" : dollars(cost),
    folder: path.basename(path.resolve("."))
  }
  yield* terminal.title(`${name} · palimpsest`)
  yield* terminal.status((columns) => statusLine(status, columns, style))
})

const isMessage = (line: string): boolean => parseLine(line)._tag === "Message"

const messageText = (line: string): string => {
  const parsed = parseLine(line)
  return parsed._tag === "Message" ? parsed.text : line
}

/** Sends a message and shows the events of its turn. */
const exchange = Effect.fnUntraced(function* (
  session: ChatSession.ChatSession,
  message: string | ReadonlyArray<Part>,
  author?: "program"
) {
  const { agent, chat, recording, terminal } = session
  const screen = yield* TurnScreen.make(recording !== undefined)
  const progress = yield* Ref.make<Progress>({ isSent: false, isAnswered: false })
  const steering = Effect.map(terminal.takeTyped, (texts) => texts.map(messageText))
  const send = (cancel: Effect.Effect<void>) =>
    recording === undefined ? agent.run(message, { cancel, author, steering }) : chat.send(message, { cancel })
  yield* terminal.during("thinking", (interrupted) =>
    send(interrupted).pipe(
      Stream.runForEach((event) =>
        Effect.andThen(
          Ref.update(progress, (before) => withEvent(before, event)),
          TurnScreen.show(screen, event)
        ).pipe(
          Effect.tap(
            event._tag === "Finished"
              ? Effect.andThen(addCost(session, event), Effect.ignore(showStatus(session)))
              : Effect.void
          )
        )
      ),
      // The last event showed the failure already.
      Effect.ignore
    )
  )
  return yield* Ref.get(progress)
})

/** Answers the tool calls of a recording with the recorded results: the user has nothing to type for them. */
const replayResults = Effect.fnUntraced(function* (session: ChatSession.ChatSession, recording: ChatSession.Recording) {
  for (let parts = yield* recording.results; parts !== undefined; parts = yield* recording.results) {
    const names = parts.filter(isResponse).map(({ functionResponse }) => functionResponse.name ?? "a tool")
    yield* say(session, `The recording supplies the results of ${names.join(", ")}.`)
    if (!(yield* exchange(session, parts)).isAnswered) return
  }
  if (yield* recording.hasEnded) yield* say(session, "The recording has ended. Slash commands still work.")
})

/** Runs the turn of a typed message. A message that was not sent returns to the prompt. */
const turn = Effect.fnUntraced(function* (
  session: ChatSession.ChatSession,
  message: string,
  requestTitle: Effect.Effect<void, never, Scope.Scope | ChatSession.Requirements>
) {
  const { isAnswered, isSent } = yield* exchange(session, message)
  yield* Ref.set(session.isUnanswered, !isAnswered && !session.terminal.isTerminal)
  if (!isSent) return yield* Ref.set(session.prefill, message)
  yield* requestTitle
  if (session.recording !== undefined) yield* replayResults(session, session.recording)
})

/** Completes commands, files behind `/export`, and paths behind `@`. */
const completer = Effect.fnUntraced(function* (paths: Effect.Effect<ReadonlyArray<string>>) {
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const path = yield* Path.Path
  const folder = path.resolve(".")
  return (line: string) => {
    const command = /^\/[a-zA-Z?]*$/.exec(line)?.[0]
    if (command !== undefined) return Effect.succeed(completeCommand(command))
    const fragment = /^\/(?:export|save)\s+(\S*)$/.exec(line)?.[1]
    return Effect.provideContext(
      fragment === undefined ? completeMention(line, folder, paths) : completePath(fragment, folder),
      files
    )
  }
})

/** Asks a small model for a title once, in the background, while the user reads and types. */
const titleRequest = ({ chat, id, title }: ChatSession.ChatSession, isWanted: boolean) =>
  Effect.map(Ref.make(isWanted), (isPending) =>
    Effect.gen(function* () {
      if ((yield* Ref.get(title)) !== undefined || !(yield* Ref.getAndSet(isPending, false))) return
      yield* entitle(id, chat).pipe(
        Effect.flatMap((made) => Ref.set(title, made)),
        Effect.forkScoped
      )
    })
  )

/** Shows the end of a resumed conversation. */
const showLastTurns = Effect.fnUntraced(function* ({ agent, chat, style, terminal }: ChatSession.ChatSession) {
  if (!terminal.isTerminal) return
  const all = entries((yield* chat.whole).conversation)
    .filter(({ author, content }) => author === undefined || content.role === "model")
    .map(({ content }) => content)
  const { shown, skipped } = lastTurns(all)
  if (skipped > 0)
    yield* terminal.write(`${style.dim(`… ${plural(skipped, "message")} before; /tree all shows them`)}\n`)
  const calls = callsWithResponses(shown)
  const columns = Math.min((yield* terminal.columns) - 1, maxTurnColumns)
  for (const [index, content] of shown.entries()) {
    const text = plainText(content)
    const typed = isTyped(content) ? printableLine(typedText(text)) : ""
    if (typed !== "") yield* terminal.write(`${style.dim(truncate(`> ${typed}`, maxTurnColumns))}\n`)
    else if (text.trim() !== "" && content.role === "model") {
      yield* terminal.answer(text)
      yield* terminal.endAnswer(false)
    }
    for (const answered of calls[index] ?? []) {
      const { isDone, line } = yield* pastCallText(agent.tools, answered)
      yield* terminal.write(`${(isDone ? style.dim : style.warn)(truncate(line, columns))}\n`)
    }
  }
})

/** Runs a slash command. Returns the session to go to; undefined when the chat goes on. A command that fails leaves the conversation as it was. */
const runCommand = (
  session: ChatSession.ChatSession,
  { argument, command }: Extract<ReturnType<typeof parseLine>, { _tag: "Command" }>
) =>
  Effect.catch(
    command.leave === undefined
      ? Effect.as(command.run(session, argument), undefined)
      : command.leave(session, argument),
    (error) => Effect.as(say(session, sentence(error.message)), undefined)
  )

/**
 * Runs the chat until the user leaves or switches to another session. With a recording, its user messages are offered one by
 * one and no tool runs. `notices` tells what happened when the session was opened, and `first` is a message that a hook sends
 * before the first prompt.
 */
export const run = Effect.fn("ChatLoop.run")(function* (
  { chat, id, isNew, settings, title }: OpenSession & { readonly id: string },
  agent: AgentHost,
  recording: ChatSession.Recording | undefined,
  writePage: ChatSession.ChatSession["writePage"],
  notices: Effect.Effect<void>,
  first: string | undefined
): Effect.fn.Return<ChatSession.NextSession, ExitError, ChatSession.Requirements | Scope.Scope> {
  const terminal = yield* ChatTerminal
  const session = yield* ChatSession.make({ agent, chat, id, recording, terminal, writePage }, title)
  const requestTitle = yield* titleRequest(session, isNew && settings.titles !== false)
  const complete = yield* completer(agent.paths)
  const context = yield* Effect.context<ChatSession.Requirements>()
  yield* terminal.onModeKey(
    Effect.provideContext(Effect.andThen(agent.approval.cycle, Effect.ignore(showStatus(session))), context)
  )

  if (!isNew) yield* Effect.ignore(showLastTurns(session))
  yield* notices
  if (!isNew) yield* say(session, `Resumed "${truncate(yield* ChatSession.nameOf(session), maxTitleColumns)}".`)
  if (first !== undefined) yield* exchange(session, [{ text: hookMessage(first) }], "program")
  for (;;) {
    yield* Effect.catchTag(showStatus(session), "TokenCountError", (error) => say(session, sentence(error.message)))
    const waiting = yield* Ref.getAndSet(session.prefill, undefined)
    const prefill = waiting ?? (recording === undefined ? "" : yield* recording.prompt)
    const line = yield* terminal
      .ask({ prompt: "> ", complete, steers: isMessage, ...(prefill === "" ? {} : { prefill }) })
      .pipe(Effect.catchTag("Closed", () => Effect.succeed("/quit")))
    const read = parseLine(line)
    // On a pipe, text from anywhere must not run as a command.
    const parsed = read._tag === "Shell" && !terminal.isTerminal ? ({ _tag: "Message", text: line } as const) : read
    switch (parsed._tag) {
      case "Message": {
        yield* turn(session, parsed.text, requestTitle)
        const cleared = yield* agent.clearing
        if (cleared === undefined) break
        yield* say(session, "A hook started a new conversation; this one is kept.")
        return { _tag: "Switch", resume: undefined, first: cleared.next }
      }
      case "Shell": {
        const added = yield* runLine(terminal, parsed.command)
        if (added !== undefined) yield* Ref.set(session.prefill, added)
        break
      }
      case "Unknown": {
        const suggestion = parsed.nearest === undefined ? "" : ` Did you mean /${parsed.nearest}?`
        yield* say(session, `Unknown command /${parsed.name}.${suggestion} /help lists all commands.`)
        yield* Ref.set(session.prefill, line)
        break
      }
      case "Command": {
        const next = yield* runCommand(session, parsed)
        if (next !== undefined) return next
      }
    }
  }
})
