import { Config, Effect, Option } from "effect"

const filled = (name: string) =>
  Effect.orElseSucceed(Config.option(Config.NonEmptyString(name)), () => Option.none<string>())

/** Whether there is a key for the model. It is not looked at. */
export const hasKey: Effect.Effect<boolean> = Effect.map(
  Effect.forEach(["GEMINI_API_KEY", "GOOGLE_API_KEY"], filled),
  (keys) => keys.some((key) => Option.isSome(key) && key.value.trim() !== "")
)
