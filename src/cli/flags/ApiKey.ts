/** Which models can be asked with the keys that are set, and what to do without one. */

import { Effect } from "effect"
import { accessOf, keyVariables, reachOf } from "../../domain/model/ModelRoute.ts"
import { configuredProviders, keysThatAreSet } from "../../services/model/ModelKeys.ts"
import { ollamaModels } from "../../services/model/OllamaModels.ts"

/** The variables that hold a key. */
export const keyNames: Effect.Effect<ReadonlyArray<string>> = Effect.map(keysThatAreSet, (keys) =>
  keys.map(([, variable]) => variable)
)

/** Whether a key is set, or `model` is one that needs none. */
export const canAsk = (model: string | undefined): Effect.Effect<boolean> =>
  Effect.map(configuredProviders, (configured) =>
    model === undefined ? configured.size > 0 : reachOf(model, configured)._tag !== "NoKey"
  )

const maxNamedModels = 3

/** What to do without any key. */
export const noKeyText = `no API key: get one at https://aistudio.google.com/apikey and set ${keyVariables.google[0]}, or set ${keyVariables.anthropic[0]} or ${keyVariables.openai[0]}`

/** What works without a model. */
const withoutModel =
  "without a key, these work: find, cost, inspect, compress, rescue, secrets, recall, replay, and chat --model replay:FILE"

/** What to do when the key of the model is missing, in lines: what it needs, which model can be asked, or how to get a key, and what works without. */
export const missingKeyLines = Effect.fnUntraced(function* (model: string | undefined) {
  const keys = yield* keysThatAreSet
  const configured = yield* configuredProviders
  const { first, reach } = accessOf(configured)
  const reached = model === undefined ? undefined : reach(model)
  const needed = reached?._tag === "NoKey" ? reached.variable : undefined
  const needsText = `${model} needs a key: set ${needed}`
  if (needed !== undefined && first !== undefined) {
    const variable = keys.find(([provider]) => configured.has(provider))?.[1] ?? ""
    return [needsText, `${variable} is set: use --model ${first}, or palimpsest config set model ${first}`]
  }
  const local = (yield* ollamaModels).slice(0, maxNamedModels)
  return [
    needed === undefined || needed === keyVariables.google[0] ? noKeyText : needsText,
    ...(local.length === 0
      ? []
      : [`Ollama runs on this machine and needs no key: ${local.map((name) => `palimpsest -m ${name}`).join(", ")}`]),
    withoutModel
  ]
})
