import { Clock, Context, Effect, Layer, Path, type Scope, type Stdio } from "effect"
import { Flag } from "effect/cli"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { entries } from "../domain/Conversation.ts"
import { printable } from "../domain/Inspection.ts"
import { emptySession, step } from "../domain/Session.ts"
import { exactly, latest, type Named, named } from "../domain/SessionName.ts"
import { type SettingsFile, withDefaults } from "../domain/Settings.ts"
import { strategyDefaults } from "../domain/Compression.ts"
import { TokenCount } from "../domain/Tokens.ts"
import type { Calibrations } from "../services/Calibrations.ts"
import { Chat, type TurnError } from "../services/Chat.ts"
import { ChatDefaults, type ChatSettings, defaultPatience, startedWith } from "../services/ChatSettings.ts"
import { Chats } from "../services/Chats.ts"
import type { Compression } from "../services/Compression.ts"
import { EnvFiles } from "../services/EnvFiles.ts"
import type { HookSystem } from "../services/HookSystem.ts"
import type { Model } from "../services/Model.ts"
import * as ModelWindows from "../services/ModelWindows.ts"
import * as SessionRetention from "../services/SessionRetention.ts"
import { SessionStore, type SessionStoreError, type SessionSummary } from "../services/SessionStore.ts"
import { type Found, Settings } from "../services/Settings.ts"
import type { TempStore } from "../services/TempStore.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import { badInput, type ExitError, failed } from "./ExitError.ts"
import * as Input from "./Input.ts"
import * as Output from "./Output.ts"
import { ago } from "./When.ts"

/** How commands open a conversation: from flags, settings and experiments to a chat. */

/** `--resume`, and `--continue` for its most frequent value. */
const resume = {
  resume: Input.optional(Flag.String("resume").pipe(Flag.withAlias("r"), Flag.withMetavar("session"))).pipe(
    Flag.withDescription(
      `Go on with a session: ${latest}, its number in "sessions list", its title, or the beginning of its id`
    )
  ),
  continue: Flag.Boolean("continue").pipe(
    Flag.withAlias("c"),
    Flag.withDescription(`Go on with the session that was written last: short for --resume ${latest}`),
    Flag.withDefault(false)
  )
}

/** What every command that talks to a model takes. */
export const flags = {
  model: Input.optional(Flag.String("model").pipe(Flag.withAlias("m"))).pipe(
    Flag.withDescription("The model to ask (default: the session's own, else PALIMPSEST_MODEL, else the settings)")
  ),
  session: Input.optional(Flag.String("session").pipe(Flag.withMetavar("name"))).pipe(
    Flag.withDescription("Keep the conversation under this id: go on with it, or begin it where there is none")
  ),
  ...resume,
  threshold: Input.optional(Input.share("threshold")).pipe(
    Flag.withDescription("Share of the window from which on the conversation is compressed (1: only when it must be)")
  )
}

/** What was asked for. */
export interface Wanted {
  readonly model?: string | undefined
  readonly session?: string | undefined
  readonly resume?: string | undefined
  readonly continue?: boolean | undefined
  readonly threshold?: number | undefined
}

/** A conversation that is open. */
export interface Opened {
  readonly chat: Chat["Service"]
  /** The session's id; undefined where nothing is kept. */
  readonly id: string | undefined
  /** By what hooks know it: the same, or the id that it has for as long as the program runs. */
  readonly session: string
  /** What it is called so far. */
  readonly title: string | undefined
  /** Whether it begins now. */
  readonly isNew: boolean
  readonly settings: SettingsFile
  /** What each file of settings says by itself. */
  readonly files: Found["files"]
}

/** What a chat runs on. */
export type Runtime = Calibrations | Compression | HookSystem | Model | TempStore | TokenCounter

/** The settings of all places, with what is to be said about them on stderr. */
export const readSettings: Effect.Effect<
  Pick<Found, "files" | "settings">,
  ExitError,
  EnvFiles | Settings | Stdio.Stdio
> = Effect.gen(function* () {
  const { read } = yield* Settings
  const { files, notices, settings } = yield* Effect.mapError(read, ({ message }) => badInput(printable(message)))
  const { notices: ofVariables } = yield* EnvFiles
  yield* Effect.forEach([...ofVariables, ...notices], Output.notice)
  return { files, settings }
})

const chatSettings = Effect.fnUntraced(function* (
  wanted: Wanted,
  settings: SettingsFile
): Effect.fn.Return<ChatSettings, ExitError, Path.Path> {
  if (wanted.model?.trim() === "") return yield* badInput("--model needs the name of a model")
  if (wanted.model?.startsWith("replay:") === true) {
    return yield* badInput("a recording is stepped through with chat --model replay:FILE, and played with replay FILE")
  }
  const path = yield* Path.Path
  const { model: usual, ...defaults } = yield* ChatDefaults
  const { masking, models = {}, overflowFactor, toolOutput, window } = settings
  const { attempts, minGain, preserve, redactSecrets, strategy, toolBudget } = withDefaults(settings)
  const heard = (share: number | undefined) => (share !== undefined && share > 0 ? share : undefined)
  // 0 counts as not set, wherever it stands (spec 15); a flag is for every model.
  const threshold = heard(wanted.threshold) ?? heard(settings.compressionThreshold)
  const own = Object.entries(models).map(([name, one]) => [
    name,
    { window: one.window, threshold: heard(wanted.threshold) ?? heard(one.compressionThreshold) }
  ])
  return {
    ...defaults,
    model: wanted.model ?? settings.model ?? usual,
    cwd: path.resolve("."),
    policy: {
      ...strategyDefaults[strategy],
      ...defaults.policy,
      preserve,
      minGain,
      toolBudget: TokenCount.make(toolBudget),
      redactSecrets
    },
    patience: {
      call: { ...defaultPatience.call, attempts: attempts.calls },
      answer: { ...defaultPatience.answer, attempts: attempts.answers }
    },
    ...(own.length === 0 ? {} : { models: Object.fromEntries(own) }),
    ...(threshold === undefined ? {} : { threshold }),
    ...(overflowFactor === undefined ? {} : { overflowFactor }),
    ...(window === undefined ? {} : { window }),
    ...(toolOutput === undefined ? {} : { toolOutput }),
    ...(masking === undefined ? {} : { masking })
  }
})

/**
 * Refuses a model that the provider does not have, before anything is begun with it; says what is assumed of one that nobody
 * knows: offline, a new model must not be out of reach.
 */
export const checkModel = Effect.fnUntraced(function* (
  { model: name, models, window }: Pick<ChatSettings, "model" | "models" | "window">,
  isNamed: boolean
): Effect.fn.Return<void, ExitError, Model | Stdio.Stdio> {
  const standing = yield* Output.progress("asking about the model")(ModelWindows.standing(name, models))
  if (standing._tag === "Missing") {
    const where = isNamed ? "" : `; the settings or PALIMPSEST_MODEL name it`
    return yield* badInput(`${printable(ModelWindows.missingText(name, standing.nearest))}${where}`)
  }
  if (standing._tag === "Unknown") {
    const assumed = window ?? standing.window
    yield* Output.notice(printable(ModelWindows.unknownText(name, assumed)))
  }
})

/** A failure of the store in one line; of a session in use also since when, as a person says it. */
export const storeFailure = Effect.fnUntraced(function* (error: SessionStoreError): Effect.fn.Return<ExitError> {
  const { reason } = error
  if (reason._tag === "SessionNotFound") return badInput(unknownSession(reason.id))
  if (reason._tag === "SessionTooNew") return badInput(printable(error.message))
  if (reason._tag === "SessionCorrupt") {
    return badInput(
      `${printable(error.message)}; "palimpsest sessions import FILE --lenient" takes over what can be read of its log`
    )
  }
  if (reason._tag !== "SessionLocked") return failed(printable(error.message))
  const since = ago(reason.since, yield* Clock.currentTimeMillis)
  return failed(
    `session ${reason.id} is in use by process ${reason.pid} (opened ${since}); end it, or use another session`
  )
})

/** Makes failures of the store those of a command. */
export const orStoreFailure = <A, R>(work: Effect.Effect<A, SessionStoreError, R>): Effect.Effect<A, ExitError, R> =>
  Effect.catch(work, (error) => Effect.flatMap(storeFailure(error), Effect.fail))

const unknownSession = (name: string): string =>
  `there is no session ${printable(name)}; "palimpsest sessions list" shows what there is`

/** The session that was named, out of the list. */
export const found = <S>(name: string, answer: Named<S>): Effect.Effect<S, ExitError> => {
  switch (answer._tag) {
    case "Found":
      return Effect.succeed(answer.session)
    case "Ambiguous":
      return Effect.fail(badInput(`${printable(name)} names ${answer.ids.length} sessions: ${answer.ids.join(", ")}`))
    case "Unknown":
      return Effect.fail(badInput(unknownSession(name)))
  }
}

/** The list of sessions, and the one of them that a name stands for. */
export const resolve = Effect.fn("OpenChat.resolve")(function* (
  name: string
): Effect.fn.Return<SessionSummary, ExitError, SessionStore> {
  const sessions = yield* orStoreFailure(SessionStore.use((store) => store.summaries))
  if (sessions.length === 0) return yield* badInput(`there are no sessions yet; "palimpsest chat" begins one`)
  return yield* found(name, named(name, sessions))
})

const isId = (name: string) => /^[A-Za-z0-9_-]{1,64}$/.test(name)

/** The id of a conversation that begins. */
const freshId = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom.pipe(Effect.provide(SecureRandom.layerWebCrypto))
  return yield* random.uuidV7()
})

/** Which session is meant: one that is there, or the id of one that begins. */
const target = Effect.fnUntraced(function* (
  wanted: Wanted
): Effect.fn.Return<{ readonly id: string; readonly there: SessionSummary | undefined }, ExitError, SessionStore> {
  const name = wanted.resume ?? (wanted.continue === true ? latest : undefined)
  const given = [wanted.session, wanted.resume, wanted.continue === true ? latest : undefined]
  if (given.filter((one) => one !== undefined).length > 1) {
    return yield* badInput("--session, --resume and --continue exclude each other; name one session")
  }
  if (name !== undefined) {
    const there = yield* resolve(name)
    return { id: there.id, there }
  }
  if (wanted.session === undefined) {
    return { id: yield* freshId, there: undefined }
  }
  const { session } = wanted
  const store = yield* SessionStore
  // Nearly always it is an id, and the other sessions, which may be thousands, are nobody's business.
  const own = yield* orStoreFailure(
    Effect.catchReason(store.summary(session), "SessionStoreError", "SessionNotFound", () => Effect.undefined)
  )
  if (own !== undefined) return { id: own.id, there: own }
  const answer = exactly(session, yield* orStoreFailure(store.summaries))
  if (answer._tag === "Unknown") {
    return isId(wanted.session)
      ? { id: wanted.session, there: undefined }
      : yield* badInput(
          `--session ${printable(wanted.session)} is not there and cannot begin: an id is 1 to 64 letters, digits, hyphens or underscores`
        )
  }
  const there = yield* found(wanted.session, answer)
  return { id: there.id, there }
})

/** Deletes what the settings say may go, and says so. Nothing goes where nothing is set. */
const retain = Effect.fnUntraced(function* (
  settings: SettingsFile,
  current: string
): Effect.fn.Return<void, never, SessionStore | Stdio.Stdio> {
  const { sessionRetention } = settings
  if (sessionRetention === undefined) return
  const done = yield* SessionRetention.enforce(sessionRetention, current).pipe(
    Effect.catch((error) =>
      Effect.as(Output.notice(`old sessions were not deleted: ${error.message}`), { deleted: [], kept: [] })
    )
  )
  const names = done.deleted.map(({ id, title }) => title ?? id)
  if (names.length > 0) {
    const count = names.length === 1 ? "1 session was" : `${names.length} sessions were`
    yield* Output.notice(`${count} deleted, as sessionRetention says: ${names.join(", ")}`)
  }
  for (const { error } of done.kept) yield* Output.notice(`an old session was not deleted: ${error.message}`)
})

/**
 * Opens the session that the flags name, or begins one. It stays open, and locked against other processes, as long as the
 * scope; one that began and in which nothing was said is gone again after it.
 */
export const open = Effect.fn("OpenChat.open")(function* (
  wanted: Wanted
): Effect.fn.Return<
  Opened & { readonly id: string },
  ExitError,
  EnvFiles | Path.Path | Runtime | Scope.Scope | SessionStore | Settings | Stdio.Stdio
> {
  const { files, settings } = yield* readSettings
  const { id, there } = yield* target(wanted)
  const held = yield* chatSettings(wanted, settings)
  // A session that is there and goes on with its own model was told about it when it took that.
  if (wanted.model !== undefined || there === undefined) yield* checkModel(held, wanted.model !== undefined)
  yield* retain(settings, id)
  const store = yield* SessionStore
  let isEmpty = false
  // Added first, so that it runs last: after the session was closed.
  yield* Effect.addFinalizer(() => Effect.suspend(() => (isEmpty ? Effect.ignore(store.remove(id)) : Effect.void)))
  const chats = yield* Layer.build(Chats.layer.pipe(Layer.provide(Layer.succeed(ChatDefaults, held))))
  const chat = yield* orStoreFailure(Context.get(chats, Chats).open(id))
  const isNew = there === undefined
  if (isNew) {
    yield* Effect.addFinalizer(() =>
      Effect.map(chat.conversation, (conversation) => {
        isEmpty = entries(conversation).length === 0
      })
    )
  } else if (wanted.model !== undefined) {
    yield* Effect.mapError(chat.configure({ model: wanted.model }), (error) => failed(printable(error.message)))
  }
  return { chat, id, session: id, title: there?.title, isNew, settings, files }
})

/**
 * A conversation that nobody keeps: it is held in memory, for as long as the program runs. `isLook`: nothing is sent, so
 * nobody is asked whether there is such a model.
 */
export const passing = Effect.fn("OpenChat.passing")(function* (
  wanted: Wanted,
  isLook = false
): Effect.fn.Return<Opened, ExitError, EnvFiles | Path.Path | Runtime | Settings | Stdio.Stdio> {
  const { files, settings } = yield* readSettings
  const held = yield* chatSettings(wanted, settings)
  if (!isLook) yield* checkModel(held, wanted.model !== undefined)
  const session = yield* freshId
  const chat = yield* Chat.make({
    log: { append: () => Effect.void },
    session: step(emptySession, startedWith(held, session, yield* Clock.currentTimeMillis)),
    settings: held
  })
  return { chat, id: undefined, session, title: undefined, isNew: true, settings, files }
})

/** What to do without a key: how to get one, and what works without. Two lines. */
export const withoutKey = [
  "there is no key for the model: get one at https://aistudio.google.com/apikey and set GEMINI_API_KEY",
  "without one these work: inspect, compress, replay, recall, and chat --model replay:FILE"
] as const

/** A turn that failed, as the end of a command; where a key is missing, with what works without. */
export const turnFailure = Effect.fnUntraced(function* (
  error: TurnError
): Effect.fn.Return<ExitError, never, Stdio.Stdio> {
  const isMissingKey =
    error._tag === "ModelError" && error.reason._tag === "AuthenticationError" && error.reason.kind === "MissingKey"
  if (!isMissingKey) return failed(printable(error.message))
  const [how, what] = withoutKey
  yield* Output.notice(how)
  return failed(what)
})
