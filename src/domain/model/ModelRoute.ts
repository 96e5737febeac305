/** Chooses the provider of a model by its name. */

import { closestName } from "../text/SpellingSuggestion.ts"
import { makerOf } from "./ModelLimits.ts"

const providers = ["anthropic", "google", "ollama", "openai"] as const

/** A provider, and the name of a model there. */
export interface ModelRoute {
  readonly provider: (typeof providers)[number]
  readonly model: string
}

/** The variables of the providers' keys: of several, the first that is set. */
export const keyVariables = {
  google: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
  anthropic: ["ANTHROPIC_API_KEY"],
  openai: ["OPENAI_API_KEY"]
} as const

/**
 * Returns the address of Ollama for a value of `OLLAMA_HOST`, by which Ollama is told where to listen: a host, one with a port, or a URL.
 * Blank, or with all addresses of the machine: this machine.
 */
export const ollamaAddress = (host: string): string => {
  const given = host.trim().replace(/\/+$/, "")
  const address = /^https?:/.test(given) ? given : `http://${/:\d+$/.test(given) ? given : `${given}:11434`}`
  return address.replace(/^(https?:\/\/)(?:0\.0\.0\.0)?(?=:|$)/, "$1localhost")
}

/** The model that is asked where none is named, by provider: of the first one that has a key. */
const defaultsByProvider = [
  ["google", "gemini-2.5-flash"],
  ["anthropic", "claude-sonnet-5"],
  ["openai", "gpt-5.1"]
] as const

/** Returns the model to ask when none is named: of the first provider that has a key. */
export const firstModel = (configured: ReadonlySet<string>): string | undefined =>
  defaultsByProvider.find(([provider]) => configured.has(provider))?.[1]

/** Whether a model can be asked, as its name and the keys tell. */
export type ModelReach =
  | { readonly _tag: "Ready" }
  /** The provider has no key; `variable` would hold it. */
  | { readonly _tag: "NoKey"; readonly variable: string }
  /** The name leads to no model: it begins with a provider that this program does not know, or names a provider only. */
  | { readonly _tag: "NoModel"; readonly text: string }

/** Other names of a provider. */
const aliases: Readonly<Record<string, ModelRoute["provider"]>> = { gemini: "google" }
/** What names at Google's address begin with. */
const googleFolders = new Set(["models", "tunedModels", "publishers", "projects"])

const providerNamed = (prefix: string | undefined): ModelRoute["provider"] | undefined =>
  prefix === undefined
    ? undefined
    : (providers.find((provider) => provider === prefix) ??
      (Object.hasOwn(aliases, prefix) ? aliases[prefix] : undefined))

const prefixed = /^([^/]*)\/(.*)$/s

/** Why a name leads to no model; undefined where it may lead to one. */
const noModelText = (name: string): string | undefined => {
  const [, prefix = name, model = ""] = prefixed.exec(name) ?? []
  if (providerNamed(prefix) !== undefined) {
    return model === "" ? `name a model of ${prefix}, as in ${prefix}/MODEL` : undefined
  }
  const [, provider = "", own = ""] = /^([a-z]+):(.+)$/i.exec(name) ?? []
  if (providerNamed(provider.toLowerCase()) !== undefined) return `write ${provider.toLowerCase()}/${own}, with a slash`
  if (!name.includes("/") || googleFolders.has(prefix)) return undefined
  const nearest = closestName(prefix, providers, 3)
  return `there is no provider ${prefix === "" ? "before the slash" : prefix}${nearest === undefined ? "" : `; did you mean ${nearest}?`} (known: ${providers.join(", ")})`
}

/** Says whether a model can be asked. `configured`: the providers that have a key. */
export const reachOf = (name: string, configured: ReadonlySet<string>): ModelReach => {
  const text = noModelText(name)
  if (text !== undefined) return { _tag: "NoModel", text }
  const provider = providerNamed(prefixed.exec(name)?.[1])
  // A server of one's own, of either kind, may need no key.
  if (provider === "ollama" || provider === "openai") return { _tag: "Ready" }
  const maker = provider ?? namedMaker(name) ?? "google"
  if (configured.has(maker)) return { _tag: "Ready" }
  return { _tag: "NoKey", variable: keyVariables[maker][0] }
}

/** Which models can be asked with the keys that are set. */
export interface ModelAccess {
  /** Whether a model can be asked. */
  readonly reach: (model: string) => ModelReach
  /** The model to ask when none is named; undefined: no provider has a key. */
  readonly first: string | undefined
}

/** The access of a program. `configured`: the providers that have a key. */
export const accessOf = (configured: ReadonlySet<string>): ModelAccess => ({
  reach: (model) => reachOf(model, configured),
  first: firstModel(configured)
})

/** The model to ask where nobody named one: `usual`, or where its provider has no key the one of a provider that has. */
export const askableModel = (usual: string, { first, reach }: ModelAccess): string =>
  first !== undefined && reach(usual)._tag === "NoKey" && reach(first)._tag === "Ready" ? first : usual

const namedMaker = (name: string) => (name.includes("/") ? undefined : makerOf(name))

/**
 * The provider that a model is asked at. `openai/gpt-5` names it; `gpt-5` alone means its maker. Any other model is asked at Google's address, as is
 * `google/gpt-5`: a gateway may serve it there.
 */
export const routeOf = (name: string): ModelRoute => {
  const [, prefix, rest] = prefixed.exec(name) ?? []
  const provider = providerNamed(prefix)
  if (provider !== undefined && rest !== undefined && rest !== "") return { provider, model: rest }
  return { provider: namedMaker(name) ?? "google", model: name }
}
