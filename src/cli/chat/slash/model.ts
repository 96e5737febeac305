/** The slash command `/model`: shows the model and others to choose from, or switches to another one. */

import { Effect, Option, Ref } from "effect"
import { modelChoices } from "../../../domain/model/ModelLimits.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import type { ChatSettings } from "../../../services/chat/ChatSettings.ts"
import { Model } from "../../../services/model/Model.ts"
import * as ModelWindows from "../../../services/model/ModelWindows.ts"
import { ollamaModels } from "../../../services/model/OllamaModels.ts"
import { chatReasonText } from "../../output/OutcomeText.ts"
import * as Output from "../../output/Output.ts"
import { noticeLine } from "../../output/RuntimeText.ts"
import { type ChatSession, say, type SlashCommand } from "./ChatSession.ts"

/** Lets the user choose a model. Returns none where no list can be shown. */
const chooseModel = Effect.fnUntraced(function* ({ terminal }: ChatSession, { model: current, models }: ChatSettings) {
  const { access } = yield* Model
  const canAsk = (name: string) => access?.reach(name)._tag !== "NoKey"
  const own = [...Object.keys(models ?? {}).filter(canAsk), ...(yield* ollamaModels)]
  const names = [...new Set([...modelChoices(current, canAsk), ...own])]
  const choices = names.map((name) => ({
    value: name,
    label: name,
    about: `${Output.number(ModelWindows.resolveOffline(name, models).window)} tokens`,
    isCurrent: name === current
  }))
  return yield* Effect.orElseSucceed(terminal.choose("Model", choices), () => Option.none<string>())
})

/** What the next message does to a conversation above its threshold. */
const nextStep = Effect.fnUntraced(function* (chat: ChatSession["chat"]) {
  const decision = yield* chat.plan({ forced: false })
  if (decision._tag === "Skip") return `it stays as it is (${chatReasonText(decision.reason)})`
  return decision.plan.steps.some(({ _tag }) => _tag === "Summarize")
    ? "the next message compresses it if that makes it smaller"
    : "the next message shortens its old tool outputs"
})

/** The command `/model [name]`, for every model that its provider knows. */
export const model: SlashCommand = {
  name: "model",
  usage: "[name]",
  help: "Show the model and choose another, or switch to the one you name",
  run: Effect.fnUntraced(function* (session, argument) {
    const { chat, compressedAt, terminal } = session
    const settings = yield* chat.settings
    if (argument === "") {
      const { limit } = yield* chat.usage
      yield* say(session, `The model is ${settings.model}, with a window of ${Output.number(limit)} tokens.`)
    }
    const name = argument === "" ? Option.getOrElse(yield* chooseModel(session, settings), () => "") : argument
    if (name === "") return
    const reach = (yield* Model).access?.reach(name)
    if (reach?._tag === "NoKey") {
      return yield* say(session, `${printableLine(name)} needs a key: set ${reach.variable}. The model is unchanged.`)
    }
    const { models, window } = settings
    const looked = yield* terminal.during("looking up the model", (interrupted) =>
      Effect.raceFirst(
        Effect.asSome(ModelWindows.availability(name, models)),
        Effect.as(interrupted, Option.none<ModelWindows.Availability>())
      )
    )
    if (Option.isNone(looked)) return yield* say(session, "Cancelled. The model is unchanged.")
    const availability = looked.value
    if (availability._tag === "Missing") {
      return yield* say(session, Output.sentence(printableLine(availability.text)))
    }
    const before = yield* chat.usage
    yield* chat.configure({ model: name })
    if (availability._tag === "Unknown") {
      const assumed = window ?? availability.window
      yield* say(session, Output.sentence(noticeLine({ _tag: "UnknownModel", model: name, window: assumed })))
    }
    // Another model may write another summary.
    yield* Ref.set(compressedAt, -1)
    const { limit, scale, tokens: estimate, trigger } = yield* chat.usage
    // Until the new model has counted, the count of the earlier one is nearer than an estimate.
    const tokens = scale === undefined ? before.tokens : estimate
    const size = `about ${Output.number(tokens)} tokens, more than its threshold of ${Output.number(trigger)}`
    const fits = tokens <= trigger ? "" : ` The conversation has ${size}: ${yield* nextStep(chat)}.`
    yield* say(session, `The model is now ${name}, with a window of ${Output.number(limit)} tokens.${fits}`)
  })
}
