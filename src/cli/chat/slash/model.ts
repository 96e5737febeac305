import { Effect, Option, Ref } from "effect"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import * as ModelWindows from "../../../services/model/ModelWindows.ts"
import * as Output from "../../output/Output.ts"
import { noticeLine } from "../../output/RuntimeText.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** `/model [name]`: shows the model, or switches to another one that its provider knows. */
export const model: SlashCommand = {
  name: "model",
  usage: "[name]",
  help: "Show the model, or switch to another",
  run: Effect.fnUntraced(function* (session, name) {
    const { chat, compressedAt, terminal } = session
    if (name === "") {
      const { limit } = yield* chat.usage
      const { model: current } = yield* chat.settings
      return yield* say(session, `The model is ${current}, with a window of ${Output.number(limit)} tokens.`)
    }
    const { models, window } = yield* chat.settings
    const looked = yield* terminal.during("looking up the model", (interrupted) =>
      Effect.raceFirst(
        Effect.asSome(ModelWindows.availability(name, models)),
        Effect.as(interrupted, Option.none<ModelWindows.Availability>())
      )
    )
    if (Option.isNone(looked)) return yield* say(session, "Cancelled. The model is unchanged.")
    const availability = looked.value
    if (availability._tag === "Missing") {
      return yield* say(
        session,
        Output.sentence(printableLine(ModelWindows.missingModelText(name, availability.nearest)))
      )
    }
    yield* chat.configure({ model: name })
    if (availability._tag === "Unknown") {
      const assumed = window ?? availability.window
      yield* say(session, Output.sentence(noticeLine({ _tag: "UnknownModel", model: name, window: assumed })))
    }
    // Another model may write another summary.
    yield* Ref.set(compressedAt, -1)
    const { limit, tokens } = yield* chat.usage
    const fits = tokens <= limit ? "" : " The conversation is larger, so it is compressed before the next message."
    yield* say(session, `The model is now ${name}, with a window of ${Output.number(limit)} tokens.${fits}`)
  })
}
