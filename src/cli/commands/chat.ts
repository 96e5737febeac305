import { Context, Effect, Layer, Option } from "effect"
import { Command } from "effect/cli"
import { isResponse } from "../../domain/Content.ts"
import { printable } from "../../domain/Inspection.ts"
import { ChatDefaults } from "../../services/ChatSettings.ts"
import { ChatTerminal } from "../../services/ChatTerminal.ts"
import { Model } from "../../services/Model.ts"
import { ReplayModel } from "../../services/ReplayModel.ts"
import * as AgentTools from "../AgentTools.ts"
import { mainAgent, type People, type Wanted } from "../Worker.ts"
import { answering, asking, shortening } from "../chat/Asking.ts"
import { type Next, talk } from "../chat/Talk.ts"
import { badInput, failed } from "../ExitError.ts"
import { hasKey } from "../Key.ts"
import * as OpenChat from "../OpenChat.ts"
import * as Output from "../Output.ts"
import { askOnce } from "../Trusting.ts"

const replayed = "replay:"

/** The model of a recording that `--model replay:FILE` names. */
const recording = Effect.fnUntraced(function* (file: string) {
  const context = yield* Layer.build(ReplayModel.layer(file)).pipe(
    Output.progress(`reading ${file}`),
    Effect.mapError((error) => badInput(printable(error.message)))
  )
  const { next, prompt } = Context.get(context, ReplayModel)
  const results = Effect.map(next, (turn) => (turn?.message.some(isResponse) === true ? turn.message : undefined))
  const hasEnded = Effect.map(next, (turn) => turn === undefined)
  const name = `${replayed}${file.replace(/^.*[/\\]/, "")}`
  return { model: Context.get(context, Model), recording: { name, prompt, results, hasEnded } }
})

/** How a session of the chat ended; `isRefused`: it never began. */
interface Ended {
  readonly next: Next
  /** Undefined: nothing was said in it. */
  readonly id: string | undefined
  readonly isRefused: boolean
}

/** Talks in one session after another, until the person leaves. */
export const converse = Effect.fn("cli.chat")(function* (wanted: OpenChat.Wanted & Wanted) {
  const terminal = yield* ChatTerminal
  const file = wanted.model?.startsWith(replayed) === true ? wanted.model.slice(replayed.length) : undefined
  const recorded = file === undefined ? undefined : yield* recording(file)
  if (recorded === undefined && !(yield* hasKey)) {
    const [how, what] = OpenChat.withoutKey
    yield* Output.notice(how)
    return yield* failed(what)
  }
  const model = recorded?.model ?? (yield* Model)
  const defaults = yield* ChatDefaults
  // A recording writes no summaries, so code does.
  const settings =
    recorded === undefined
      ? defaults
      : { ...defaults, policy: { ...defaults.policy, summarizer: "extractive" as const } }

  yield* askOnce(terminal)
  const session = Effect.fnUntraced(
    function* (one: OpenChat.Wanted, isCleared: boolean, first: string | undefined, greeting: Option.Option<string>) {
      const opened = yield* OpenChat.open(one)
      if (Option.isSome(greeting)) yield* terminal.note(greeting.value)
      const people: People = {
        canBeginAnew: recorded === undefined,
        ...(terminal.isTerminal
          ? { ask: asking(terminal, mainAgent), answer: answering(terminal), shorten: shortening(terminal) }
          : {}),
        tell: terminal.note
      }
      // A recording answers its calls itself.
      const tools = recorded === undefined ? { ...wanted, isCleared } : { tools: false, isCleared }
      const worker = yield* terminal.during("starting the tools", (interrupted) =>
        Effect.raceFirst(AgentTools.make(opened, tools, people), Effect.andThen(interrupted, Effect.interrupt))
      )
      const next = yield* talk(opened, worker, recorded?.recording, first)
      if (next._tag === "Switch" && next.resume === undefined) yield* worker.leave("clear")
      const { next: number } = yield* opened.chat.conversation
      const isKept = number > 1
      return { next, id: isKept ? opened.id : undefined }
    },
    Effect.provideService(Model, model),
    Effect.provideService(ChatDefaults, settings),
    Effect.scoped
  )

  const { continue: _continue, resume: _resume, session: _session, ...flags } = wanted
  // A recording is asked in this run only: no session is to ask for it later.
  const { model: named, ...fresh } = flags
  const begun = recorded === undefined ? flags : fresh
  const greeting = Option.some("/help lists the commands. Ctrl+C cancels; twice on an empty line it leaves.")
  let now: OpenChat.Wanted = recorded === undefined || named === undefined ? wanted : { ...wanted, model: undefined }
  let last: string | undefined
  let isFallback = false
  let isCleared = false
  let begin: string | undefined
  for (let isFirst = true; ; isFirst = false) {
    const ended: Ended = yield* session(
      now,
      isCleared,
      begin,
      isFirst && terminal.isTerminal ? greeting : Option.none()
    ).pipe(
      Effect.map((done) => ({ ...done, isRefused: false })),
      // Who asked for another session and cannot have it goes on where they were, once.
      Effect.catch((error) =>
        isFirst || isFallback
          ? Effect.fail(error)
          : Effect.as(terminal.note(error.message), {
              id: last,
              next: { _tag: "Switch", resume: last } satisfies Next,
              isRefused: true
            })
      )
    )
    const { id, next } = ended
    isFallback = ended.isRefused
    if (id !== undefined && id !== last && terminal.isTerminal) {
      yield* terminal.note(`This session is kept: palimpsest chat --resume ${id}`)
    }
    last = id
    // What was wrong has been told; a script wants to know that something was.
    if (next._tag === "Leave") return yield* next.isUnanswered ? failed("") : Effect.void
    // Another session goes on with its own model.
    now = next.resume === undefined ? begun : { ...fresh, resume: next.resume }
    isCleared = next.resume === undefined
    begin = next.first
  }
}, Effect.scoped)

/** `palimpsest chat`. */
export const chat = Command.make("chat", { ...OpenChat.flags, ...AgentTools.flags }, converse).pipe(
  Command.withDescription("Talk with a model in the terminal for as long as you like"),
  Command.withExamples([
    { command: "palimpsest chat", description: "Begin a conversation" },
    { command: "palimpsest chat --approve edits", description: "Let the model edit files without asking" },
    { command: "palimpsest chat --continue", description: "Go on where you left off" },
    { command: "palimpsest chat --model replay:session.jsonl", description: "Step through a recording, without a key" }
  ])
)
