/** Determines which model a chat asks, the size of its window, and the other content of every request. */

import { Context, Effect, Ref } from "effect"
import { modelFor } from "../../domain/compression/ModelPurpose.ts"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { thresholdOf, triggerTokens } from "../../domain/compression/strategies/Threshold.ts"
import { type Content, text } from "../../domain/content/Content.ts"
import { sum } from "../../domain/conversation/Conversation.ts"
import { isGoogleModel, makerOf, reserveFor } from "../../domain/model/ModelLimits.ts"
import type { Session } from "../../domain/session/Session.ts"
import { Compression } from "../compression/Compression.ts"
import { withoutTools } from "../hooks/ModelHooks.ts"
import { Model } from "../model/Model.ts"
import * as ModelWindows from "../model/ModelWindows.ts"
import { compressionThreshold, Experiments } from "../settings/Experiments.ts"
import { Calibrations, countRequest, overheadParts } from "../tokens/Calibrations.ts"
import { type TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"
import type { ChatSettings } from "./ChatSettings.ts"
import type { ChatState, RequestContext } from "./ChatState.ts"
import * as WindowGuard from "./WindowGuard.ts"

/** Returns the model that a session asks: its own, unless that is not available here. */
export const askedModel = ({ model, started }: Session, settings: ChatSettings): string => {
  const requested = settings.routed ?? settings.chosen
  if (requested !== undefined) return requested
  if (model === undefined) return settings.model
  const isForeign =
    settings.isUnavailable?.(model) ??
    (started?.importedFrom !== undefined && model === started.model && !isGoogleModel(model))
  return isForeign ? settings.model : model
}

/** Returns the model that decides which one writes summaries: the one that is asked. Undefined: the session names none. */
export const summaryFamily = (session: Session, settings: ChatSettings): string | undefined => {
  const isDefault =
    session.model === undefined &&
    settings.chosen === undefined &&
    settings.isUnavailable?.(modelFor("compression", "").model) !== true
  return isDefault ? undefined : askedModel(session, { ...settings, routed: undefined })
}

const overridesFor = ({ models }: ChatSettings, name: string) =>
  models !== undefined && Object.hasOwn(models, name) ? models[name] : undefined

/** Returns a model's window, and the part of it reserved for the answer. Looks up what the settings do not define. */
export const windowLimits = (settings: ChatSettings, name: string) =>
  Effect.map(
    settings.window === undefined || overridesFor(settings, name)?.window !== undefined
      ? ModelWindows.resolve(name, settings.models)
      : Effect.succeed({ ...ModelWindows.resolveOffline(name), window: settings.window }),
    ({ sharesWindow, window }) => ({
      window,
      reserve: settings.reserve ?? reserveFor({ sharesWindow }, window, settings.generation?.maxOutputTokens)
    })
  )

/** The context of the next request. Kept until the settings or the model change. */
export const requestContext = Effect.fnUntraced(function* (
  chat: ChatState
): Effect.fn.Return<RequestContext, TokenCountError, Calibrations | Compression | Model | TokenCounter> {
  const settings = yield* Ref.get(chat.settings)
  const session = yield* Ref.get(chat.session)
  const model = askedModel(session, settings)
  const environment = openingEnvironment(session, settings)
  const before = chat.requests.context
  if (before?.settings === settings && before.model === model && before.environment === environment) return before
  const made = yield* makeContext(settings, model, environment, chat.requests.refusedTools)
  chat.requests.context = made
  chat.requests.measured = undefined
  return made
})

/** The environment message that opens requests: as it was sent before, in whichever process. */
const openingEnvironment = ({ environment }: Session, settings: ChatSettings): string | undefined =>
  settings.environment === undefined ? undefined : (environment?.opening ?? settings.environment)

const makeContext = Effect.fnUntraced(function* (
  settings: ChatSettings,
  model: string,
  environment: string | undefined,
  refused: ReadonlySet<string>
) {
  const tools = settings.tools && withoutTools(settings.tools, refused)
  const services = Context.pick(Calibrations, Model)(yield* Effect.context<Calibrations | Model>())
  const counter = yield* TokenCounter
  const experiments = yield* Experiments
  const declared = overheadParts({ ...settings, tools, model, contents: [] })
  const opening: ReadonlyArray<Content> =
    environment === undefined ? [] : [{ role: "user", parts: [text(environment)] }]
  const parts = [...declared, ...opening.flatMap((content) => content.parts)]
  const share = overridesFor(settings, model)?.threshold ?? settings.threshold
  const { strategy } = yield* Effect.orDie(
    (yield* Compression).runner(settings.policy?.strategy ?? defaultPolicy.strategy)
  )
  const limits = yield* windowLimits(settings, model)
  const threshold = thresholdOf(share, yield* experiments.number(compressionThreshold))
  const trigger = triggerTokens(strategy, limits.window, threshold)
  const window = yield* WindowGuard.make({
    model,
    ...limits,
    trigger,
    policy: {
      ...(settings.toolOutput?.form && { outputForm: settings.toolOutput.form }),
      // No other model of its provider is known.
      ...(makerOf(model) === "google" ? {} : { model }),
      ...settings.policy
    },
    recount: (all) =>
      Effect.map(
        countRequest({ ...settings, tools, model, contents: [{ role: "user", parts: all.slice(declared.length) }] }),
        ({ tokens }) => tokens
      ).pipe(Effect.provideContext(services))
  })
  const overheadTokens = sum(yield* counter.count(parts))
  return { settings, model, environment, tools, strategy, overheadParts: parts, overheadTokens, opening, window }
})

/** Runs a compression: the user's window settings also apply to the summarizing models. */
export const withOwnWindows = <A, E, R>(chat: ChatState, compressing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Ref.get(chat.settings), ({ models }) =>
    models === undefined ? compressing : Effect.provideService(compressing, ModelWindows.Overrides, models)
  )
