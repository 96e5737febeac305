/** Runs the sessions of one chat in the terminal, one after another: opens or resumes each, until the user leaves. */

import { Context, Effect, Layer, Logger, Option, Path, Sink, Stdio } from "effect"
import { Command } from "effect/cli"
import { mainAgent } from "../../domain/agent/AgentPlace.ts"
import { isResponse } from "../../domain/content/Content.ts"
import { shortName } from "../../domain/session/SessionName.ts"
import { defaults as settingsDefaults, withDefaults } from "../../domain/settings/Settings.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { ChatDefaults } from "../../services/chat/ChatSettings.ts"
import { ReplayModel } from "../../services/evaluation/ReplayModel.ts"
import { Model } from "../../services/model/Model.ts"
import type { AgentHandlers } from "../../services/runtime/AgentParts.ts"
import { offersIn } from "../../services/runtime/FolderTrust.ts"
import * as Runtime from "../../services/runtime/Runtime.ts"
import type { RuntimeNotice } from "../../services/runtime/RuntimeNotice.ts"
import * as SessionOpening from "../../services/runtime/SessionOpening.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { ChatTerminal, Closed } from "../../services/terminal/ChatTerminal.ts"
import { offerText } from "../../services/workspace/FolderOffers.ts"
import { Trust } from "../../services/workspace/Trust.ts"
import { canAsk, missingKeyLines } from "../flags/ApiKey.ts"
import * as ChatFlags from "../flags/ChatFlags.ts"
import { resumable } from "../flags/ImportedSession.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as RuntimeText from "../output/RuntimeText.ts"
import { version } from "../output/Version.ts"
import * as ChatLoop from "./ChatLoop.ts"
import { askApproval, askQuestion, askShorten, yesNoInquiry } from "./Questions.ts"
import { type NextSession, openHandlers } from "./slash/ChatSession.ts"
import { chooseSession } from "./slash/resume.ts"

const answers = {
  yes: "trust it and everything below it",
  no: "ignore these; palimpsest trust changes the answer later",
  hint: "Esc asks again next time"
}

/**
 * Asks once whether the user trusts the working folder, if the folder offers anything. Without a terminal nothing is asked,
 * and the folder stays untrusted. A user who leaves without an answer is asked again the next time.
 */
export const askOnce = Effect.fn("TrustPrompt.askOnce")(function* (terminal: ChatTerminal["Service"]) {
  if (!terminal.isTerminal) return
  const trust = yield* Trust
  const path = yield* Path.Path
  const folder = path.resolve(".")
  const asking = Effect.gen(function* () {
    if ((yield* trust.of(folder)) !== "unknown" || (yield* trust.isWide(folder))) return
    const offers = yield* offersIn(folder)
    if (offers.length === 0) return
    const listed = offers.map((offer) => `  ${printableLine(offerText(offer))}\n`).join("")
    const head = `Do you trust ${printableLine(folder)}? These would instruct the model or run commands:\n${listed}`
    const style = terminal.canColor ? Output.coloured : Output.plain
    const answered = terminal.inquire(yesNoInquiry(head, answers, { prompt: "trust? ", style }))
    const isTrusted = yield* terminal.during("asking", (interrupted) =>
      Effect.raceFirst(answered, Effect.andThen(interrupted, new Closed()))
    )
    yield* trust.set(folder, isTrusted ? "trusted" : "untrusted")
  })
  yield* asking.pipe(
    Effect.catchTags({
      Closed: () => Effect.void,
      TrustError: ({ message }) => terminal.note(printableLine(message))
    })
  )
})

const replayPrefix = "replay:"

/** Loads the recording that `--model replay:FILE` names as a model. */
const loadRecording = Effect.fnUntraced(function* (file: string) {
  const context = yield* Layer.build(ReplayModel.layer(file)).pipe(
    Output.progress(`reading ${file}`),
    Effect.mapError((error) => badInput(printableLine(error.message)))
  )
  const { next, prompt } = Context.get(context, ReplayModel)
  const results = Effect.map(next, (turn) => (turn?.message.some(isResponse) === true ? turn.message : undefined))
  const hasEnded = Effect.map(next, (turn) => turn === undefined)
  const name = `${replayPrefix}${file.replace(/^.*[/\\]/, "")}`
  return { model: Context.get(context, Model), recording: { name, prompt, results, hasEnded } }
})

/** Asks which session `--resume` means. Undefined: the user left the list. Unchanged where no list can be shown. */
const withChosenSession = Effect.fnUntraced(function* (
  options: ChatFlags.ChatOptions,
  terminal: ChatTerminal["Service"]
) {
  const chosen = yield* chooseSession(terminal).pipe(
    Effect.catchTag("Closed", () => Effect.succeed(Option.some(""))),
    RuntimeText.orExit
  )
  return Option.isNone(chosen) ? undefined : { ...options, resume: chosen.value }
})

/** Draws the page of a log as `inspect --html` does. It is loaded when it is used. */
const drawPage = (log: string, file: string) =>
  Effect.promise(() => import("../commands/inspect.ts")).pipe(
    Effect.flatMap(({ inspect }) => Command.runWith(inspect, { version })([log, "--html", file]))
  )

/** Returns what draws the page of a log, without the notices of `inspect`. */
const pageWriter = Effect.gen(function* () {
  const services = yield* Effect.context<Effect.Services<ReturnType<typeof drawPage>>>()
  const silent = Stdio.make({ ...(yield* Stdio.Stdio), stdout: () => Sink.drain, stderr: () => Sink.drain })
  return (log: string, file: string) =>
    drawPage(log, file).pipe(Effect.provideService(Stdio.Stdio, silent), Effect.provideContext(services))
})

type Recorded = Effect.Success<ReturnType<typeof loadRecording>>

/** What all sessions of a chat share. */
interface Chat {
  readonly terminal: ChatTerminal["Service"]
  readonly options: ChatFlags.ChatOptions
  /** The recording that answers in the model's place, if any. */
  readonly recorded: Recorded | undefined
}

/** A session to open. */
interface Opening {
  readonly flags: ChatFlags.ChatFlags
  /** Whether the session follows `/clear`. */
  readonly isCleared: boolean
  /** A message that a hook sends before the first prompt. */
  readonly first: string | undefined
  /** Whether it is the first session of the chat. */
  readonly isFirst: boolean
}

/** The end of a session. */
interface SessionEnd {
  readonly next: NextSession
  /** The session id; undefined when the session has no messages. */
  readonly id: string | undefined
  /** Whether the session could not be opened. */
  readonly isRefused: boolean
}

const greeting = "/help lists the commands and keys. Esc cancels; Ctrl+C twice on an empty line leaves."

/** How the agent of a session reaches the user. On a pipe nobody answers. */
const handlersOf = ({ recorded, terminal }: Chat): AgentHandlers => ({
  canRestart: recorded === undefined,
  ...(terminal.isTerminal
    ? {
        ask: askApproval(terminal, mainAgent),
        answer: askQuestion(terminal),
        confirmShortening: askShorten(terminal)
      }
    : {}),
  notify: (notice) => terminal.note(RuntimeText.noticeLine(notice))
})

/** What is said while a session opens. On a screen it goes through the screen: other writes would stand across the editor. */
const openHandlersOf = Effect.fnUntraced(function* (terminal: ChatTerminal["Service"]) {
  return terminal.isTerminal ? openHandlers(terminal) : yield* RuntimeText.handlers
})

/** Log messages in lines of the conversation. */
const logger = (terminal: ChatTerminal["Service"]) =>
  Logger.layer([
    Output.logger((options, words, isNotice) => {
      Effect.runFork(terminal.note(printableLine(isNotice ? words : Logger.formatLogFmt.log(options))))
    })
  ])

/** Runs a session until the user leaves it. */
const runSession = Effect.fnUntraced(function* (chat: Chat, { first, flags, isCleared, isFirst }: Opening) {
  const { options, recorded, terminal } = chat
  const open = yield* openHandlersOf(terminal)
  const notices: Array<RuntimeNotice> = []
  // Said before the end of a resumed conversation, it would scroll away.
  const handlers = { ...open, notify: (notice: RuntimeNotice) => Effect.sync(() => void notices.push(notice)) }
  const tell = Effect.suspend(() => Effect.forEach(notices.splice(0), open.notify, { discard: true }))
  const session = yield* resumable(yield* ChatFlags.sessionOptions(flags), handlers).pipe(Effect.tapError(() => tell))
  const opened = yield* RuntimeText.orExit(SessionOpening.open(session, handlers)).pipe(Effect.tapError(() => tell))
  if (opened.isNew) yield* tell
  yield* terminal.panel([])
  yield* terminal.configure(withDefaults(opened.settings).terminal)
  if (isFirst && terminal.isTerminal) yield* terminal.note(greeting)
  // A recording answers its calls itself.
  const tools = recorded === undefined ? { ...options, isCleared } : { tools: false, isCleared }
  const host = yield* terminal.during("starting the tools", (interrupted) =>
    Effect.raceFirst(
      RuntimeText.orExit(Runtime.host(opened, tools, handlersOf(chat))),
      Effect.andThen(interrupted, Effect.interrupt)
    )
  )
  const next = yield* ChatLoop.run(opened, host, recorded?.recording, yield* pageWriter, tell, first)
  if (next._tag === "Switch" && next.resume === undefined) yield* host.leave("clear")
  const { next: nextEntry } = yield* opened.chat.conversation
  return { next, id: nextEntry > 1 ? opened.id : undefined }
}, Effect.scoped)

/** The flags of the first session, of a new one, and of one that is resumed. */
export const sessionFlags = (
  options: ChatFlags.ChatOptions,
  isRecorded: boolean
): {
  readonly first: ChatFlags.ChatOptions
  readonly begun: ChatFlags.ChatOptions
  readonly resumed: ChatFlags.ChatOptions
} => {
  const { continue: _continue, plain: _plain, resume: _resume, session: _session, ...begun } = options
  const { model, ...withoutModel } = begun
  return {
    // The recording applies to this run only: it is not saved as a session's model.
    first: isRecorded && model !== undefined ? { ...options, model: undefined } : options,
    begun: isRecorded ? withoutModel : begun,
    // Another session continues with its own model.
    resumed: withoutModel
  }
}

/** Runs one session after another until the user leaves. */
const runSessions = Effect.fnUntraced(function* (chat: Chat) {
  const { options, recorded, terminal } = chat
  const flags = sessionFlags(options, recorded !== undefined)
  let opening: Opening = { flags: flags.first, isCleared: false, first: undefined, isFirst: true }
  let last: string | undefined
  let isFallback = false
  for (;;) {
    const ended: SessionEnd = yield* runSession(chat, opening).pipe(
      Effect.map((done) => ({ ...done, isRefused: false })),
      // If the requested session cannot be opened, the chat returns to the previous one, once.
      Effect.catch((error) =>
        opening.isFirst || isFallback
          ? Effect.fail(error)
          : Effect.as(terminal.note(error.message), {
              id: last,
              next: { _tag: "Switch", resume: last } satisfies NextSession,
              isRefused: true
            })
      )
    )
    const { id, next } = ended
    isFallback = ended.isRefused
    if (id !== undefined && id !== last && terminal.isTerminal) {
      yield* terminal.note("To continue:")
      yield* terminal.write(`  palimpsest -r ${shortName(id)}\n`)
    }
    last = id
    // The cause was shown already; the status tells a script.
    if (next._tag === "Leave") return yield* next.isUnanswered ? failed("") : Effect.void
    const isCleared = next.resume === undefined
    opening = {
      flags: isCleared ? flags.begun : { ...flags.resumed, resume: next.resume },
      isCleared,
      first: next.first,
      isFirst: false
    }
  }
})

/** The model that the settings name. A file that cannot be read is reported when the session opens. */
const modelOfSettings = Settings.use(({ read }) => read).pipe(
  Effect.map(({ settings }) => settings.model),
  Effect.orElseSucceed(() => undefined)
)

/** Starts a chat and runs it until the user leaves. */
export const converse = Effect.fn("cli.chat")(function* (given: ChatFlags.ChatOptions) {
  const terminal = yield* ChatTerminal
  const options = given.resume === "" && terminal.isTerminal ? yield* withChosenSession(given, terminal) : given
  if (options === undefined) return
  const file = options.model?.startsWith(replayPrefix) === true ? options.model.slice(replayPrefix.length) : undefined
  const recorded = file === undefined ? undefined : yield* loadRecording(file)
  const chosenModel = options.model ?? (yield* modelOfSettings)
  // A session that is resumed has a model of its own.
  const isResumed = (options.resume ?? options.session) !== undefined || options.continue === true
  if (recorded === undefined && !(yield* canAsk(chosenModel)) && !(isResumed && (yield* canAsk(undefined)))) {
    const lines = yield* missingKeyLines(chosenModel)
    // What others write to the screen is wiped when the terminal is left.
    yield* Effect.forEach(lines.slice(0, -1), (line) => terminal.note(`palimpsest: ${line}`), { discard: true })
    return yield* failed(lines.at(-1) ?? "")
  }
  const defaults = yield* ChatDefaults
  // A recording contains no summaries, so code writes them.
  const settings =
    recorded === undefined
      ? { ...defaults, prepareAt: settingsDefaults.compressionPrepareAt }
      : { ...defaults, policy: { ...defaults.policy, summarizer: "extractive" as const } }
  const model = recorded?.model ?? (yield* Model)
  const logging = terminal.isTerminal ? logger(terminal) : Layer.empty
  return yield* Effect.andThen(askOnce(terminal), runSessions({ terminal, options, recorded })).pipe(
    Effect.provideService(Model, model),
    Effect.provideService(ChatDefaults, settings),
    Effect.provide(logging)
  )
}, Effect.scoped)
