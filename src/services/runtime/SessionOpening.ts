/** Opens conversations: from options and settings to a chat. */

import { Clock, Context, Effect, Layer, Path, Predicate, Schema, type Scope } from "effect"
import { InvalidOption, optionCheck } from "../../domain/compression/InvalidOption.ts"
import { modelNames, ModelNames } from "../../domain/compression/PolicyOptions.ts"
import { shareProblem } from "../../domain/compression/strategies/Policy.ts"
import { agentDefaultsOf, strategyDefaults, StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { askableModel } from "../../domain/model/ModelRoute.ts"
import { applyEvent, emptySession, startedWith } from "../../domain/session/Session.ts"
import { matchExactName, matchName, type NameMatch } from "../../domain/session/SessionName.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Chat } from "../chat/Chat.ts"
import { Chats } from "../chat/Chats.ts"
import { ChatDefaults, type ChatSettings, defaultTurnRetries } from "../chat/ChatSettings.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import { Model } from "../model/Model.ts"
import * as ModelWindows from "../model/ModelWindows.ts"
import { EnvFiles } from "../platform/Environment.ts"
import { newId } from "../platform/NewId.ts"
import * as SessionRetention from "../session/SessionRetention.ts"
import {
  sessionError,
  SessionNotFound,
  SessionStore,
  type SessionStoreError,
  type SessionSummary
} from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import { type EffectiveSettings, Settings } from "../settings/Settings.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { type OpenError, type SelectionProblem, SessionSelectionError, UnknownModelError } from "./RuntimeError.ts"
import { message, type Notify } from "./RuntimeNotice.ts"

/** The session to work in. */
export type SessionChoice =
  /** An existing one, by its id, its title, the start of its id, its number in the list, or `latest`. */
  | { readonly _tag: "Resume"; readonly name: string }
  /** The one with this id or title; if there is none, a new one with this id. */
  | { readonly _tag: "Named"; readonly name: string }
  /** The stored one with exactly this id. */
  | { readonly _tag: "Stored"; readonly id: string }

/** Options of a conversation; what is absent comes from the settings, then from `ChatDefaults`. */
export interface SessionOptions {
  readonly model?: string | undefined
  /** Share of the window, above 0 up to 1, from which on the conversation is compressed. */
  readonly threshold?: number | undefined
  /** The strategy that compresses the conversation. */
  readonly strategy?: StrategyName | undefined
  /** The model that writes summaries, or several in the order in which they are tried. */
  readonly compressionModel?: ModelNames | undefined
  /** Absent: a new session. */
  readonly session?: SessionChoice | undefined
}

/** Callbacks while a session opens. */
export interface OpenHandlers {
  readonly notify: Notify
  /** Wraps a wait of some seconds, to show that it goes on. */
  readonly progress?: (<A, E, R>(label: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** An open conversation. */
export interface OpenSession {
  readonly chat: Chat["Service"]
  /** The id of the stored session; undefined when the conversation is not stored. */
  readonly id: string | undefined
  /** The id that hooks receive: `id`, or one that lasts as long as the conversation. */
  readonly session: string
  /** The title, when it has one already. */
  readonly title: string | undefined
  /** Whether the session is new. */
  readonly isNew: boolean
  readonly settings: SettingsFile
  /** The settings file by file. */
  readonly files: EffectiveSettings["files"]
}

/** The services that a chat runs on. */
export type ChatServices = Calibrations | Compression | HookSystem | Model | TempStore | TokenCounter

/** Reads the settings of all places and reports what is wrong with them. */
export const readSettings = Effect.fn("SessionOpening.readSettings")(function* (notify: Notify) {
  const { read } = yield* Settings
  const { files, notices, settings } = yield* read
  const { notices: ofVariables } = yield* EnvFiles
  yield* Effect.forEach(ofVariables, (notice) => notify(message(notice)), { discard: true })
  yield* Effect.forEach(notices, (notice) => notify({ _tag: "Settings", notice }), { discard: true })
  return { files, settings }
})

/** Says what is wrong with the first option whose value no conversation can have; undefined: nothing. */
const optionsProblem = ({ compressionModel, model, strategy, threshold }: SessionOptions): string | undefined =>
  shareProblem("threshold", threshold) ??
  optionCheck(Schema.is(StrategyName), StrategyName.literals.join(" or "))("strategy", strategy) ??
  optionCheck(Predicate.isString, "the name of a model")("model", model) ??
  optionCheck(Schema.is(ModelNames), "the name of a model, or several names")("compressionModel", compressionModel)

/** Reads the settings, with the strategy of the options in the place of theirs. */
const settingsFor = Effect.fnUntraced(function* (options: SessionOptions, notify: Notify) {
  const problem = optionsProblem(options)
  if (problem !== undefined) return yield* new InvalidOption({ message: problem })
  const { files, settings } = yield* readSettings(notify)
  const { strategy } = options
  return { files, settings: strategy === undefined ? settings : { ...settings, strategy } }
})

/** A share that counts. 0 means "not set". */
const positive = (share: number | undefined) => (share !== undefined && share > 0 ? share : undefined)

/**
 * The model to ask when the options and the settings name none: `preferred`, or where its provider has no key the one of a provider that has. Reports a
 * choice that the user did not make.
 */
const defaultModel = Effect.fnUntraced(function* (
  preferred: string,
  notify: Notify
): Effect.fn.Return<string, never, Model> {
  const { access } = yield* Model
  const reached = access?.reach(preferred)
  if (access === undefined || reached?._tag !== "NoKey") return preferred
  const model = askableModel(preferred, access)
  if (model !== preferred) {
    yield* notify(
      message(`${model} answers, because ${reached.variable} is not set; --model and the setting model choose another`)
    )
  }
  return model
})

const silently: Notify = () => Effect.void

/** Whether the model that a session names cannot be asked, because its provider has no key. `requested`: one that the user named is asked. */
const unavailable = Effect.fnUntraced(function* (requested: string | undefined) {
  const { access } = yield* Model
  return access === undefined
    ? {}
    : { isUnavailable: (name: string) => name !== requested && access.reach(name)._tag === "NoKey" }
})

/** `ChatDefaults` with a model that can be asked. */
export const askableDefaults = Effect.gen(function* () {
  const defaults = yield* ChatDefaults
  return { ...defaults, model: yield* defaultModel(defaults.model, silently), ...(yield* unavailable(undefined)) }
})

const chatSettings = Effect.fnUntraced(function* (
  options: SessionOptions,
  settings: SettingsFile,
  notify: Notify
): Effect.fn.Return<ChatSettings, never, Model | Path.Path> {
  const path = yield* Path.Path
  const { model: usual, ...defaults } = yield* ChatDefaults
  const {
    compressionModel: ofSettings,
    compressionPrepareAt,
    masking,
    models = {},
    overflowFactor,
    toolOutput,
    window
  } = settings
  const { attempts, minGain, preserve, redactSecrets, strategy, toolBudget } = withDefaults(settings)
  const compressionModel = options.compressionModel ?? ofSettings
  // An option holds for every model.
  const threshold = positive(options.threshold) ?? positive(settings.compressionThreshold)
  const own = Object.entries(models).map(([name, one]) => [
    name,
    {
      window: one.window,
      threshold: positive(options.threshold) ?? positive(one.compressionThreshold),
      price: one.price
    }
  ])
  return {
    ...defaults,
    model: options.model ?? settings.model ?? (yield* defaultModel(usual, notify)),
    // A model that was named is asked, and its missing key reported.
    ...(yield* unavailable(options.model)),
    cwd: path.resolve("."),
    policy: {
      ...strategyDefaults(strategy),
      ...defaults.policy,
      preserve,
      minGain,
      ...(toolOutput?.form === undefined ? {} : { outputForm: toolOutput.form }),
      toolBudget: TokenCount.make(toolBudget),
      redactSecrets,
      ...(compressionModel === undefined ? {} : { model: compressionModel })
    },
    retries: {
      call: { ...defaultTurnRetries.call, attempts: attempts.calls },
      answer: { ...defaultTurnRetries.answer, attempts: attempts.answers }
    },
    ...(own.length === 0 ? {} : { models: Object.fromEntries(own) }),
    ...(threshold === undefined ? {} : { threshold }),
    ...(compressionPrepareAt === undefined ? {} : { prepareAt: compressionPrepareAt }),
    ...(overflowFactor === undefined ? {} : { overflowFactor }),
    ...(window === undefined ? {} : { window }),
    toolOutput: { ...agentDefaultsOf(strategy).toolOutput, ...toolOutput },
    ...(masking === undefined ? {} : { masking })
  }
})

/**
 * Rejects a model that the provider does not have, before any work starts. For a model that neither the table nor the provider knows, reports the
 * assumed window: a new model must stay usable offline.
 */
export const checkModel = Effect.fn("SessionOpening.checkModel")(function* (
  { model, models, window }: Pick<ChatSettings, "model" | "models" | "window">,
  isRequested: boolean,
  { notify, progress = (_label, work) => work }: OpenHandlers
): Effect.fn.Return<void, UnknownModelError, Model> {
  const availability = yield* progress("asking about the model", ModelWindows.availability(model, models))
  if (availability._tag === "Missing") {
    return yield* new UnknownModelError({ model, text: availability.text, isRequested })
  }
  if (availability._tag === "Unknown") {
    yield* notify({ _tag: "UnknownModel", model, window: window ?? availability.window })
  }
})

/** Rejects summarizing models of providers that are not known. */
export const checkSummarizers = Effect.fnUntraced(function* (names: ModelNames | undefined, isRequested: boolean) {
  const { access } = yield* Model
  for (const model of names === undefined ? [] : modelNames(names)) {
    const reached = access?.reach(model)
    if (reached?._tag === "NoModel") return yield* new UnknownModelError({ model, text: reached.text, isRequested })
  }
})

/** Reports that another model than the session's own answers, and why. */
const reportReplacement = Effect.fnUntraced(function* (own: string | undefined, asked: string, notify: Notify) {
  const { access } = yield* Model
  const reached = own === undefined || own === asked ? undefined : access?.reach(own)
  if (reached?._tag !== "NoKey") return
  yield* notify(
    message(`this session used ${own}, which needs ${reached.variable}; now ${asked} answers, and writes the summaries`)
  )
})

const selectionError = (name: string, problem: SelectionProblem) => new SessionSelectionError({ name, problem })

/** The session of a match, or the error that describes why there is none. */
export const orSelectionError = <S>(name: string, match: NameMatch<S>): Effect.Effect<S, SessionSelectionError> =>
  match._tag === "Found" ? Effect.succeed(match.session) : Effect.fail(selectionError(name, match))

/** Finds the stored session that a name selects (`SessionChoice.Resume`). */
export const findSession = Effect.fn("SessionOpening.findSession")(function* (name: string) {
  const sessions = yield* SessionStore.use((store) => store.summaries)
  if (sessions.length === 0) return yield* selectionError(name, { _tag: "NoSessions" })
  return yield* orSelectionError(name, matchName(name, sessions))
})

const isId = (name: string) => /^[A-Za-z0-9_-]{1,64}$/.test(name)

/** The id to open, and the session that is stored under it, if there is one. */
interface Selection {
  readonly id: string
  readonly stored: SessionSummary | undefined
}

const select = Effect.fnUntraced(function* (
  choice: SessionChoice | undefined
): Effect.fn.Return<Selection, SessionSelectionError | SessionStoreError, SessionStore> {
  if (choice === undefined) return { id: yield* newId, stored: undefined }
  const store = yield* SessionStore
  if (choice._tag === "Stored") return { id: choice.id, stored: yield* store.summary(choice.id) }
  const { name } = choice
  if (choice._tag === "Resume") {
    const stored = yield* findSession(name)
    return { id: stored.id, stored }
  }
  // The name is nearly always an id. Then the other sessions, possibly thousands, are not read.
  const own = yield* Effect.catchReason(
    store.summary(name),
    "SessionStoreError",
    "SessionNotFound",
    () => Effect.undefined
  )
  if (own !== undefined) return { id: own.id, stored: own }
  const match = matchExactName(name, yield* store.summaries)
  if (match._tag === "Unknown") {
    return isId(name) ? { id: name, stored: undefined } : yield* selectionError(name, { _tag: "InvalidId" })
  }
  const stored = yield* orSelectionError(name, match)
  return { id: stored.id, stored }
})

/** Deletes the sessions that the settings no longer retain, and reports which. Without such settings it does nothing. */
const enforceRetention = Effect.fnUntraced(function* (
  { sessionRetention }: SettingsFile,
  current: string,
  notify: Notify
): Effect.fn.Return<void, never, SessionStore> {
  if (sessionRetention === undefined) return
  const done = yield* SessionRetention.enforce(sessionRetention, current).pipe(
    Effect.catch((error) =>
      Effect.as(notify(message(`old sessions were not deleted: ${error.message}`)), { deleted: [], kept: [] })
    )
  )
  const names = done.deleted.map(({ id, title }) => title ?? id)
  if (names.length > 0) {
    const count = names.length === 1 ? "1 session was" : `${names.length} sessions were`
    yield* notify(message(`${count} deleted, as sessionRetention says: ${names.join(", ")}`))
  }
  for (const { error } of done.kept) yield* notify(message(`an old session was not deleted: ${error.message}`))
})

/**
 * Opens a stored session, or starts one. It stays open, and locked against other processes, until the scope closes. A session
 * that started here and got no message is deleted then.
 */
export const open = Effect.fn("SessionOpening.open")(function* (
  options: SessionOptions,
  handlers: OpenHandlers
): Effect.fn.Return<
  OpenSession & { readonly id: string },
  OpenError,
  ChatServices | EnvFiles | Path.Path | Scope.Scope | SessionStore | Settings
> {
  const { files, settings } = yield* settingsFor(options, handlers.notify)
  const { id, stored } = yield* select(options.session)
  const initial = yield* chatSettings(options, settings, stored === undefined ? handlers.notify : silently)
  yield* checkSummarizers(initial.policy?.model, options.compressionModel !== undefined)
  // A stored session's own model was checked when the session got it.
  if (options.model !== undefined || stored === undefined) {
    yield* checkModel(initial, options.model !== undefined, handlers)
  }
  yield* enforceRetention(settings, id, handlers.notify)
  const store = yield* SessionStore
  let isEmpty = false
  // Added first, so that it runs last: after the session has been closed.
  yield* Effect.addFinalizer(() => Effect.suspend(() => (isEmpty ? Effect.ignore(store.remove(id)) : Effect.void)))
  // A stored session that is deleted meanwhile is not begun anew.
  const opened = stored === undefined ? store : { ...store, create: () => sessionError(new SessionNotFound({ id })) }
  const services = Context.make(ChatDefaults, initial).pipe(Context.add(SessionStore, opened))
  const chats = yield* Layer.build(Layer.fresh(Layer.provide(Chats.layer, Layer.succeedContext(services))))
  const chat = yield* Context.get(chats, Chats).open(id)
  const isNew = stored === undefined
  if (isNew) {
    yield* Effect.addFinalizer(() =>
      Effect.map(chat.conversation, (conversation) => {
        // A conversation that went back to its beginning shows nothing, but its branches are there.
        isEmpty = conversation.next === 1
      })
    )
  } else if (options.model !== undefined) {
    yield* chat.configure({ model: options.model })
  } else {
    yield* reportReplacement(stored.model, (yield* chat.settings).model, handlers.notify)
  }
  return { chat, id, session: id, title: stored?.title, isNew, settings, files }
})

/**
 * Starts a conversation that is held in memory and never stored. `isPreview`: nothing will be sent, so the provider is not
 * asked whether it has the model.
 */
export const openTemporary = Effect.fn("SessionOpening.openTemporary")(function* (
  options: Omit<SessionOptions, "session">,
  handlers: OpenHandlers,
  isPreview = false
) {
  const { files, settings } = yield* settingsFor(options, handlers.notify)
  const initial = yield* chatSettings(options, settings, handlers.notify)
  yield* checkSummarizers(initial.policy?.model, options.compressionModel !== undefined)
  if (!isPreview) yield* checkModel(initial, options.model !== undefined, handlers)
  const session = yield* newId
  const chat = yield* Chat.make({
    log: { append: () => Effect.void },
    session: applyEvent(emptySession, startedWith(initial, session, yield* Clock.currentTimeMillis)),
    settings: initial
  })
  return { chat, id: undefined, session, title: undefined, isNew: true, settings, files }
})
