import { makerOf } from "../tokens/ModelLimits.ts"

/** Chooses the provider of a model by its name. */

/** A provider, and the name of a model there. */
export interface ModelRoute {
  readonly provider: "anthropic" | "google" | "ollama" | "openai"
  readonly model: string
}

/** The variables of the keys with which the models of other makers than Google are asked at their own address. */
export const makerKeys: Readonly<Record<"anthropic" | "openai", string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY"
}

const isProvider = (name: string | undefined): name is ModelRoute["provider"] =>
  name === "anthropic" || name === "google" || name === "ollama" || name === "openai"

/**
 * The provider that a model is asked at. `openai/gpt-5` names it; `gpt-5` alone means its maker if that has a key (`configured`). Any other model is
 * asked at Google's address, where a gateway may serve it.
 */
export const routeOf = (name: string, configured: ReadonlySet<string>): ModelRoute => {
  const [, prefix, rest] = /^([a-z]+)\/(.+)$/s.exec(name) ?? []
  if (isProvider(prefix) && rest !== undefined) return { provider: prefix, model: rest }
  const maker = name.includes("/") ? undefined : makerOf(name)
  return { provider: maker !== undefined && configured.has(maker) ? maker : "google", model: name }
}
