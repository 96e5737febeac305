import { makerOf } from "./ModelLimits.ts"

/** Chooses the provider of a model by its name. */

const providers = ["anthropic", "google", "ollama", "openai"] as const

/** A provider, and the name of a model there. */
export interface ModelRoute {
  readonly provider: (typeof providers)[number]
  readonly model: string
}

/** The variables of the keys with which the models of other makers than Google are asked at their own address. */
export const makerKeys: Readonly<Record<"anthropic" | "openai", string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY"
}

const namedMaker = (name: string) => (name.includes("/") ? undefined : makerOf(name))

/** The variable with the key of the maker of a model that is named without its provider; undefined for Google and others. */
export const makerKeyOf = (name: string): string | undefined => {
  const maker = namedMaker(name)
  return maker === "anthropic" || maker === "openai" ? makerKeys[maker] : undefined
}

/**
 * The provider that a model is asked at. `openai/gpt-5` names it; `gpt-5` alone means its maker if that has a key (`configured`). Any other model is
 * asked at Google's address, where a gateway may serve it.
 */
export const routeOf = (name: string, configured: ReadonlySet<string>): ModelRoute => {
  const [, prefix, rest] = /^([a-z]+)\/(.+)$/s.exec(name) ?? []
  const named = providers.find((provider) => provider === prefix)
  if (named !== undefined && rest !== undefined) return { provider: named, model: rest }
  const maker = namedMaker(name)
  return { provider: maker !== undefined && configured.has(maker) ? maker : "google", model: name }
}
