import { Effect, FileSystem, Option, Path, Ref, Result, type Scope, type Stdio, Stream } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { ApprovalMode } from "../../domain/Approval.ts"
import { encode } from "../../domain/Bytes.ts"
import type { ChatEvent } from "../../domain/ChatEvent.ts"
import { isCall, isResponse, type Part, plainText } from "../../domain/Content.ts"
import { entries, entryId } from "../../domain/Conversation.ts"
import { hookMessage } from "../../domain/HookContext.ts"
import { inspect, printable } from "../../domain/Inspection.ts"
import { MemoryScope } from "../../domain/MemoryText.ts"
import { builtIn, tokensOfCost } from "../../domain/Prices.ts"
import { begun } from "../../domain/SessionName.ts"
import { formatFor } from "../../domain/transcripts/FileEnding.ts"
import { writeMarkdown } from "../../domain/transcripts/MarkdownWriter.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import * as Work from "../../domain/Work.ts"
import { ChatTerminal, type Completion } from "../../services/ChatTerminal.ts"
import * as Export from "../../services/Export.ts"
import type { Model } from "../../services/Model.ts"
import * as ModelWindows from "../../services/ModelWindows.ts"
import { SessionFiles } from "../../services/SessionFiles.ts"
import { SessionStore } from "../../services/SessionStore.ts"
import type { BlobFolder, TempStore } from "../../services/TempStore.ts"
import { entitle } from "../../services/Titles.ts"
import type { TokenCounter } from "../../services/TokenCounter.ts"
import { Transcripts } from "../../services/Transcripts.ts"
import { agentsOf, described } from "../AgentTools.ts"
import type { Worker } from "../Worker.ts"
import type { ExitError } from "../ExitError.ts"
import { type Opened, resolve } from "../OpenChat.ts"
import { costText, outcomeSentence } from "../OutcomeText.ts"
import * as Output from "../Output.ts"
import { headingOf, sessionTable } from "../SessionTable.ts"
import { cut, definitions } from "../Columns.ts"
import { counted, listText, showText } from "../commands/memory.ts"
import { contextTable } from "./ContextTable.ts"
import { mentions, paths } from "./PathCompletion.ts"
import { completions, help, type SlashName, typed } from "./SlashCommand.ts"
import { statusLine } from "./StatusLine.ts"
import * as TurnScreen from "./TurnScreen.ts"

/** One session of a chat in the terminal: from the first prompt until the person leaves or goes on with another. */

/** Why it ended. */
export type Next =
  /** `isUnanswered`: the last message that came through a pipe got no answer. */
  | { readonly _tag: "Leave"; readonly isUnanswered: boolean }
  /** Another session: undefined begins one. `first`: what a hook wants done in it. */
  | { readonly _tag: "Switch"; readonly resume: string | undefined; readonly first?: string | undefined }

/** What a session of the terminal needs. */
export type Requirements =
  | BlobFolder
  | ChatTerminal
  | FileSystem.FileSystem
  | Model
  | Path.Path
  | SessionFiles
  | SessionStore
  | Stdio.Stdio
  | TempStore
  | TokenCounter
  | Transcripts

/** Where nothing has to be wrapped, tables are as wide as they like to be. */
const tableWidth = 100

/** Sessions that are listed at most. */
const listed = 20
/** Columns of a title within a sentence. */
const titleWidth = 60
/** Columns of words that are quoted back. */
const quoteWidth = 40

/** Terminals take what stands between these as a text for the clipboard (OSC 52); most refuse more than 100,000 characters. */
const clipboard = (base64: string): string => `\u001b]52;c;${base64}\u0007`
const clipboardMost = 74_000

const approvalSentence: Readonly<Record<ApprovalMode, string>> = {
  none: "What changes something asks first, unless it was allowed before.",
  edits: "Edits of files in the workspace run without asking; all else that changes something asks first.",
  all: "Everything runs without asking.",
  plan: "Nothing is changed or executed until you have approved a plan."
}

/** A recording that answers in the place of a model. */
export interface Recording {
  /** What it is called where the model is shown. */
  readonly name: string
  /** What was said where its next answer comes. */
  readonly prompt: Effect.Effect<string>
  /** The results of tools that were sent there; undefined where a person spoke. */
  readonly results: Effect.Effect<ReadonlyArray<Part> | undefined>
  /** Whether it has no more answers. */
  readonly hasEnded: Effect.Effect<boolean>
}

/** How far a message came. */
interface Exchanged {
  /** It is in the conversation. */
  readonly isSaid: boolean
  /** It was answered, and nothing is left to be done. */
  readonly isAnswered: boolean
}

const followed = (before: Exchanged, event: ChatEvent): Exchanged => {
  switch (event._tag) {
    case "Finished":
      return { isSaid: true, isAnswered: true }
    case "HookStopped":
      return { isSaid: before.isSaid || !event.refused, isAnswered: false }
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

/**
 * Talks until the person leaves or wants another session: `worker` is the agent they talk with. With a recording its own messages are
 * offered, one by one, and no tool runs.
 */
export const talk = Effect.fn("chat.talk")(function* (
  { chat, id, isNew, settings, title }: Opened & { readonly id: string },
  worker: Worker,
  recording: Recording | undefined,
  /** What a hook wants done first. */
  first: string | undefined
): Effect.fn.Return<Next, ExitError, Requirements | Scope.Scope> {
  const terminal = yield* ChatTerminal
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const here = path.resolve(".")
  const name = yield* Ref.make(title)
  const prefill = yield* Ref.make<string | undefined>(undefined)
  const lastStatus = yield* Ref.make("")
  /** Stands for a title where there is none. */
  const firstWords = yield* Ref.make<string | undefined>(undefined)
  /** How many messages the log had when it was compressed last by hand. */
  const compressedAt = yield* Ref.make(-1)
  let isUnanswered = false
  let asked = !isNew || settings.titles === false

  const say = (line: string) => terminal.note(printable(line))
  const shown = Effect.map(terminal.columns, (columns) => (Number.isFinite(columns) ? columns : tableWidth))
  const length = Effect.map(chat.conversation, ({ next }) => next)

  const style = terminal.canColor ? Output.coloured : Output.plain

  /** What the session is called: by its title, else by its first words. */
  const calledSo = Effect.gen(function* () {
    const known = (yield* Ref.get(name)) ?? (yield* Ref.get(firstWords))
    if (known !== undefined) return known
    const [first] = entries(yield* chat.conversation)
    if (first === undefined) return "new session"
    const firstPrompt = first.id === entryId(1) ? plainText(first.content) : id
    const words = headingOf({ title: undefined, firstPrompt })
    yield* Ref.set(firstWords, words)
    return words
  })

  /** Where the chat stands: after a turn, and whenever that has changed; apart from what stands above. */
  const status = Effect.fnUntraced(
    function* (isWanted: boolean) {
      if (!terminal.isTerminal) return
      const { limit, tokens } = yield* chat.usage
      const { model } = yield* chat.settings
      const session = yield* calledSo
      const isPlanning = (yield* worker.approval.mode) === "plan"
      const line = statusLine(
        { model: recording?.name ?? (isPlanning ? `planning with ${model}` : model), tokens, limit, session },
        yield* terminal.columns,
        style
      )
      const before = yield* Ref.getAndSet(lastStatus, line)
      yield* terminal.write(`${before === "" ? "" : "\n"}${line === before && !isWanted ? "" : `${line}\n`}`)
    },
    Effect.catchTag("TokenCountError", (error) => say(TurnScreen.sentence(error.message)))
  )

  const complete = (line: string): Effect.Effect<Completion> => {
    const command = /^\/[a-zA-Z]*$/.exec(line)?.[0]
    if (command !== undefined) return Effect.succeed({ candidates: completions(command), replaced: command })
    const fragment = /^\/save\s+(\S*)$/.exec(line)?.[1]
    const found = fragment === undefined ? mentions(line, here) : paths(fragment, here)
    return found.pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.provideService(Path.Path, path))
  }

  /** Asks the small model for a title, once, while the person reads and types. */
  const entitled = Effect.gen(function* () {
    if (asked || (yield* Ref.get(name)) !== undefined) return
    asked = true
    yield* entitle(id, chat).pipe(
      Effect.flatMap((title) => Ref.set(name, title)),
      Effect.forkScoped
    )
  })

  const send = (message: string | ReadonlyArray<Part>, cancel: Effect.Effect<void>, author: "program" | undefined) =>
    recording === undefined ? worker.run(message, { cancel, author }) : chat.send(message, { cancel })

  /** Sends and shows; how far it came. */
  const exchange = Effect.fnUntraced(function* (message: string | ReadonlyArray<Part>, author?: "program") {
    const screen = yield* TurnScreen.make(recording !== undefined)
    const done = yield* Ref.make<Exchanged>({ isSaid: false, isAnswered: false })
    yield* terminal.during("thinking", (interrupted) =>
      send(message, interrupted, author).pipe(
        Stream.runForEach((event) =>
          Effect.andThen(
            Ref.update(done, (before) => followed(before, event)),
            screen.show(event)
          )
        ),
        // The last event has told it already.
        Effect.ignore
      )
    )
    return yield* Ref.get(done)
  })

  const turn = Effect.fnUntraced(function* (message: string) {
    const { isAnswered, isSaid } = yield* exchange(message)
    isUnanswered = !isAnswered && !terminal.isTerminal
    if (!isSaid) return yield* Ref.set(prefill, message)
    yield* entitled
    if (recording === undefined) return
    // What the tools of the recording answered was nobody's to type.
    for (let parts = yield* recording.results; parts !== undefined; parts = yield* recording.results) {
      const names = parts.filter(isResponse).map(({ functionResponse }) => functionResponse.name ?? "a tool")
      yield* say(`The recording answers for ${names.join(", ")}.`)
      if (!(yield* exchange(parts)).isAnswered) return
    }
    if (yield* recording.hasEnded) yield* say("The recording has ended; the commands go on working.")
  })

  const tools = Effect.gen(function* () {
    const rows = yield* described(worker)
    if (rows.length === 0) return yield* say("There are no tools here.")
    yield* terminal.write(`${definitions(rows, yield* shown)}\n`)
  })

  const agents = Effect.gen(function* () {
    const rows = agentsOf(worker)
    if (rows.length === 0) return yield* say("There are no agents here.")
    yield* terminal.write(`${definitions(rows, yield* shown)}\n`)
  })

  const { memory: remembered } = worker.knowledge

  /** Remembers a fact where the person says it belongs: it is never guessed. */
  const remember = Effect.fnUntraced(function* (words: string) {
    const [, scope, fact = ""] = /^(?:(project|global)\s*:)?\s*([^]*)$/.exec(words) ?? []
    if (fact.trim() === "") return yield* say("Say the fact: /memory add project: Tests run with make check")
    const where = MemoryScope.literals.find((each) => each === scope)
    if (where === undefined) {
      yield* say("Where does it belong? Put project: (this folder alone) or global: (all that you do) before it.")
      return yield* Ref.set(prefill, `/memory add project: ${fact}`)
    }
    const { shown: file } = yield* Effect.flatMap(remembered.plan(fact, where), remembered.save)
    yield* say(`Remembered in ${file}; it is in every request from now on.`)
  })

  const memory = Effect.fnUntraced(function* (rest: string) {
    const [, what = "", words = ""] = /^(\S*)\s*([^]*)$/.exec(rest) ?? []
    switch (what) {
      case "add":
        return yield* remember(words)
      case "":
      case "show":
      case "list":
      case "refresh":
      case "reload": {
        const found = yield* what === "refresh" || what === "reload" ? remembered.refresh : remembered.load
        const held = yield* counted(found)
        yield* terminal.write(`${what === "list" ? listText(held, style) : showText(held, style)}\n`)
        for (const problem of held.problems) yield* say(problem)
        return
      }
      default:
        return yield* say(`There is no /memory ${what}; there are show, list, add and refresh.`)
    }
  })

  const approve = Effect.fnUntraced(function* (wanted: string) {
    const { mode, setMode } = worker.approval
    const named = ApprovalMode.literals.find((each) => each === wanted.toLowerCase())
    if (wanted !== "" && named === undefined) {
      return yield* say(`Say what runs without asking: /approve ${ApprovalMode.literals.join(", /approve ")}.`)
    }
    if (named !== undefined) yield* setMode(named)
    yield* say(approvalSentence[named ?? (yield* mode)])
  })

  const compress = Effect.fnUntraced(function* (focus: string) {
    // Typed while one was running, or right after it: there is nothing new, and a model would be paid for that.
    if (focus === "" && (yield* Ref.get(compressedAt)) === (yield* length)) {
      return yield* say("Nothing to compress: nothing was said since the last time.")
    }
    const { limit } = yield* chat.usage
    const outcome = yield* terminal.during("compressing", (cancel) =>
      chat.compress({ cancel, tell: say, ...(focus === "" ? {} : { focus }) })
    )
    // What a summary that does not help costs is not paid twice for the same conversation.
    const isDone = outcome._tag === "Compressed" || outcome._tag === "ContentTruncated"
    if (isDone || outcome._tag === "FailedInflatedTokenCount") yield* Ref.set(compressedAt, yield* length)
    yield* say(outcomeSentence(outcome, limit, (yield* chat.usage).scale))
  })

  const undone = Effect.fnUntraced(function* (what: "undo" | "redo") {
    const before = yield* chat.usage
    const done = yield* what === "undo" ? chat.undo : chat.redo
    if (!done) return yield* say(what === "undo" ? "There is no compression to undo." : "There is nothing to redo.")
    yield* Ref.set(compressedAt, -1)
    const { limit, tokens } = yield* chat.usage
    yield* say(
      `${what === "undo" ? "Took the last compression back" : "Compressed again"}: from ${Output.number(before.tokens)} to ${Output.number(tokens)} tokens (${Output.share(tokens, limit)} of the window). /${what === "undo" ? "redo" : "undo"} reverses it.`
    )
  })

  const context = Effect.gen(function* () {
    const { limit, scale = 1, threshold, tokens } = yield* chat.usage
    const { conversation } = yield* chat.session
    const { kinds, tokens: counted } = yield* Work.run(inspect(conversation))
    const use = {
      kinds: kinds.map((kind) => ({ ...kind, view: Math.round(kind.view * scale) })),
      beside: Math.max(0, Math.round(tokens - counted.view * scale)),
      tokens,
      limit,
      threshold
    }
    yield* terminal.write(`${contextTable(use, yield* shown)}\n`)
  })

  const stats = Effect.gen(function* () {
    const session = yield* chat.whole
    // What a compression cost stands in the log alone, and a new session has none yet.
    const { of } = yield* SessionFiles
    const transcripts = yield* Transcripts
    const events = yield* transcripts.load(of(id), { from: "palimpsest" }).pipe(
      Effect.map((loaded) => loaded.events),
      Effect.orElseSucceed(() => [])
    )
    const { compactions, compressing, cost, messages, tokens, turns, usage } = yield* Work.run(
      inspect(session.conversation, {
        events,
        prices: builtIn,
        ...(session.model === undefined ? {} : { model: session.model })
      })
    )
    const all = tokensOfCost(cost)
    const summaries = tokensOfCost(compressing)
    const rows: ReadonlyArray<readonly [string, string]> = [
      ["session", id],
      ["turns", `${Output.number(turns)} (${Output.plural(messages, "message")})`],
      ["tokens", `${Output.number(tokens.view)} in the window, ${Output.number(tokens.all)} in all`],
      ["compressions", Output.number(compactions.length)],
      ...(usage === null && summaries.requests === 0
        ? []
        : [
            [
              "asked",
              `${Output.number(all.sent)} tokens sent (${Output.share(all.cached, all.sent)} from a cache), ${Output.number(all.answered)} answered`
            ] as const
          ]),
      ...(cost.total === null
        ? []
        : [["cost", `${costText(cost.total)}${cost.estimated ? " (estimated)" : ""}`] as const]),
      ...(summaries.requests === 0
        ? []
        : [
            [
              "for summaries",
              `${Output.plural(summaries.requests, "call")} of that: ${Output.number(summaries.sent)} tokens sent, ${Output.number(summaries.answered)} answered${compressing.total === null ? "" : `, ${costText(compressing.total)}`}`
            ] as const
          ])
    ]
    const { kinds } = yield* worker.recent
    const happened = Object.entries(kinds).map(
      ([what, count]) => `${Output.number(count)} ${what.replaceAll("_", " ")}`
    )
    const lines = happened.length === 0 ? rows : [...rows, ["lately", happened.join(", ")] as const]
    yield* terminal.write(`${definitions(lines, yield* shown)}\n`)
  })

  const pin = Effect.fnUntraced(function* (words: string) {
    const before = yield* length
    const found = yield* chat.pin(words === "" ? undefined : words)
    if (found === undefined) {
      return yield* say(words === "" ? "You have not said anything yet." : "Say what to keep: /pin always use tabs")
    }
    const pinned = entries(yield* chat.conversation).find((entry) => entry.id === found.entry)
    const text = pinned?.content.parts[found.part]?.text?.slice(found.start, found.end) ?? words
    // The next snapshot is another one, so there is something to compress again.
    yield* Ref.set(compressedAt, -1)
    const isNewWords = before !== (yield* length)
    yield* say(
      `Pinned "${cut(printable(text), quoteWidth)}"${isNewWords ? " as a message of yours; the model reads it with your next one" : ""}: every snapshot shows it word for word.`
    )
  })

  const model = Effect.fnUntraced(function* (wanted: string) {
    if (wanted === "") {
      const { limit } = yield* chat.usage
      return yield* say(
        `The model is ${(yield* chat.settings).model}, with a window of ${Output.number(limit)} tokens.`
      )
    }
    const { models, window } = yield* chat.settings
    const asked = yield* terminal.during("asking about the model", (interrupted) =>
      Effect.raceFirst(
        Effect.asSome(ModelWindows.standing(wanted, models)),
        Effect.as(interrupted, Option.none<ModelWindows.Standing>())
      )
    )
    if (Option.isNone(asked)) return yield* say("Cancelled; the model stays the same.")
    const standing = asked.value
    if (standing._tag === "Missing") {
      return yield* say(TurnScreen.sentence(printable(ModelWindows.missingText(wanted, standing.nearest))))
    }
    yield* chat.configure({ model: wanted })
    if (standing._tag === "Unknown") {
      const assumed = window ?? standing.window
      yield* say(TurnScreen.sentence(printable(ModelWindows.unknownText(wanted, assumed))))
    }
    // Another model may write another summary.
    yield* Ref.set(compressedAt, -1)
    const { limit, tokens } = yield* chat.usage
    const fits = tokens <= limit ? "" : " The conversation is larger: it is compressed before the next message."
    yield* say(`The model is ${wanted} now, with a window of ${Output.number(limit)} tokens.${fits}`)
  })

  const save = Effect.fnUntraced(function* (rest: string) {
    const [file, format] = rest.split(/\s+(?=\S+$)/)
    if (file === undefined || file === "")
      return yield* say("Say where to: /save talk.md, /save talk.jsonl, or /save talk.jsonl claude")
    const wanted = FormatName.literals.find((each) => each === format)
    if (format !== undefined && wanted === undefined) {
      return yield* say(`${format} is no format; there are ${FormatName.literals.join(", ")}.`)
    }
    const to = formatFor(file, wanted)
    if (Result.isFailure(to)) return yield* say(`Not saved: ${to.failure}.`)
    if (to.success === "markdown") {
      const page = writeMarkdown((yield* chat.whole).conversation, yield* calledSo)
      yield* terminal.during(`writing ${file}`, () => Export.writeText(path.resolve(file), page))
      return yield* say(`Saved to ${file} as Markdown, for reading; /save talk.jsonl keeps what can be recalled.`)
    }
    yield* saveAs(file, to.success)
  })

  /** Writes the session in a format that can be read back. */
  const saveAs = Effect.fnUntraced(function* (file: string, to: FormatName) {
    const { of } = yield* SessionFiles
    const transcripts = yield* Transcripts
    const { events } = yield* transcripts.load(of(id), { from: "palimpsest" })
    const unheld = yield* terminal.during(`writing ${file}`, () => Export.write(path.resolve(file), to, events))
    const kinds = Object.entries(unheld).map(([kind, count]) => `${kind} (${count})`)
    yield* say(
      `Saved to ${file} as ${to}.${kinds.length === 0 ? "" : ` It has no place for ${kinds.join(", ")}; the log beside it keeps that.`}`
    )
  })

  const sessions = Effect.gen(function* () {
    const store = yield* SessionStore
    const all = begun(yield* store.summaries)
    yield* terminal.write(`${yield* sessionTable(all.slice(0, listed), yield* shown, style, id)}\n`)
    if (all.length > listed)
      yield* say(`There are ${Output.number(all.length - listed)} more: palimpsest sessions list.`)
  })

  /** The session that was written last is this one, so that `/resume` alone can only ask which. */
  const choose = Effect.gen(function* () {
    yield* sessions
    yield* say("Which one? Say its number, its title or the beginning of its id.")
    yield* Ref.set(prefill, "/resume ")
  })

  /** Goes on with another session, where that can be opened: who cannot have it stays. */
  const goOn = Effect.fnUntraced(function* (wanted: string) {
    const { holder, id: other } = yield* resolve(wanted)
    if (other === id) return yield* Effect.as(say("This is that session."), Option.none<Next>())
    if (holder !== undefined) {
      yield* say(`That session is in use by process ${holder.pid}; end it, or take another.`)
      return Option.none<Next>()
    }
    return Option.some<Next>({ _tag: "Switch", resume: other })
  })

  const copy = Effect.gen(function* () {
    const { conversation } = yield* chat.whole
    const last = entries(conversation).findLast(
      ({ content }) => content.role === "model" && !content.parts.some(isCall) && plainText(content) !== ""
    )
    if (last === undefined) return yield* say("There is no answer yet.")
    const bytes = encode(plainText(last.content))
    if (!terminal.isTerminal) return yield* say("There is no terminal to copy with; /save writes the conversation.")
    if (bytes.length > clipboardMost)
      return yield* say("The answer is too long for a clipboard; /save writes it to a file.")
    yield* terminal.write(clipboard(Base64.encode(bytes)))
    yield* say("Asked the terminal to copy the last answer.")
  })

  const go = (next: Next) => Effect.succeedSome(next)
  const stay = <E, R>(work: Effect.Effect<void, E, R>) => Effect.as(work, Option.none<Next>())

  const command = (
    what: SlashName,
    rest: string
  ): Effect.Effect<Option.Option<Next>, { readonly message: string }, Requirements> => {
    switch (what) {
      case "compress":
        return stay(compress(rest))
      case "undo":
      case "redo":
        return stay(undone(what))
      case "context":
        return stay(context)
      case "pin":
        return stay(pin(rest))
      case "model":
        return stay(model(rest))
      case "tools":
        return stay(tools)
      case "approve":
        return stay(approve(rest))
      case "agents":
        return stay(agents)
      case "memory":
        return stay(memory(rest))
      case "save":
        return stay(save(rest))
      case "sessions":
        return stay(sessions)
      case "copy":
        return stay(copy)
      case "stats":
        return stay(stats)
      case "help":
        return stay(Effect.flatMap(shown, (columns) => terminal.write(`${help(columns)}\n`)))
      case "resume":
        return rest === "" ? stay(choose) : goOn(rest)
      case "clear":
        return go({ _tag: "Switch", resume: undefined })
      case "quit":
        return go({ _tag: "Leave", isUnanswered })
    }
  }

  if (!isNew) yield* say(`Going on with "${cut(yield* calledSo, titleWidth)}".`)
  if (first !== undefined) yield* exchange([{ text: hookMessage(first) }], "program")
  let isAnswered = false
  for (;;) {
    yield* status(isAnswered)
    isAnswered = false
    const waiting = yield* Ref.getAndSet(prefill, undefined)
    const suggested = waiting ?? (recording === undefined ? "" : yield* recording.prompt)
    const line = yield* terminal
      .ask({ prompt: "> ", complete, ...(suggested === "" ? {} : { prefill: suggested }) })
      .pipe(Effect.catchTag("Closed", () => Effect.succeed("/quit")))
    const what = typed(line)
    if (what._tag === "Message") {
      yield* turn(what.text)
      isAnswered = true
      const cleared = yield* worker.clearing
      if (cleared !== undefined) {
        yield* say("A hook has the conversation begin anew; this one is kept.")
        return { _tag: "Switch", resume: undefined, first: cleared.next }
      }
      continue
    }
    if (what._tag === "Unknown") {
      const nearest = what.nearest === undefined ? "." : `; did you mean /${what.nearest}?`
      yield* say(`There is no /${what.name}${nearest} /help lists what there is.`)
      yield* Ref.set(prefill, line)
      continue
    }
    // Whatever a command could not do, the conversation is there, and the chat goes on.
    const next = yield* command(what.name, what.rest).pipe(
      Effect.catch((error) => Effect.as(say(TurnScreen.sentence(error.message)), Option.none<Next>()))
    )
    if (Option.isSome(next)) return next.value
  }
})
