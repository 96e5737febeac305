/**
 * Where the key of a request is. A request is charged to the key that its provider reads, so that key alone is looked at, and no other goes
 * upstream.
 */

import { type HeaderList, headerPairs } from "./HeaderList.ts"
import type { QueryParameter } from "./RequestTarget.ts"
import type { Provider } from "./Route.ts"

/** The headers and the parameters of the query in which a provider reads a key. */
interface KeyPlaces {
  readonly headers: ReadonlyArray<string>
  readonly query: ReadonlyArray<string>
}

const geminiParameters = ["key", "access_token", "oauth_token", "bearer_token"].flatMap((name) => [name, `$${name}`])

/** `api-key` is Azure's, which serves OpenAI's dialects. */
const places: Readonly<Record<Provider, KeyPlaces>> = {
  anthropic: { headers: ["x-api-key", "authorization"], query: [] },
  gemini: { headers: ["x-goog-api-key", "authorization"], query: geminiParameters },
  openai: { headers: ["authorization", "api-key"], query: [] }
}

const all: KeyPlaces = {
  headers: Object.values(places).flatMap(({ headers }) => headers),
  query: [...Object.values(places).flatMap(({ query }) => query), "api-key", "api_key"]
}

/** What a request carries besides its body. */
export interface Carried {
  readonly headers: HeaderList
  readonly query: ReadonlyArray<QueryParameter>
}

/** The scheme before a key in `authorization`. */
const scheme = /^bearer\s+/i

/** Returns the keys of a request that its provider may read, each once. A request that can be charged has at most one. */
export const keysOf = (provider: Provider, { headers, query }: Carried): ReadonlyArray<string> => {
  const own = places[provider]
  const inHeaders = headerPairs(headers)
    .filter(([name]) => own.headers.includes(name.toLowerCase()))
    .map(([name, value]) => (name.toLowerCase() === "authorization" ? value.replace(scheme, "") : value))
  const inQuery = query.filter(({ name }) => own.query.includes(name)).map(({ value }) => value)
  return [...new Set([...inHeaders, ...inQuery].map((key) => key.trim()).filter((key) => key !== ""))]
}

/** Returns a request without the keys of other providers. */
export const withOwnKey = (provider: Provider, { headers, query }: Carried): Carried => {
  const own = places[provider]
  const isKept = (name: string, kind: keyof KeyPlaces) => !all[kind].includes(name) || own[kind].includes(name)
  return {
    headers: headerPairs(headers)
      .filter(([name]) => isKept(name.toLowerCase(), "headers"))
      .flat(),
    query: query.filter(({ name }) => isKept(name, "query"))
  }
}

const keyHeader = (provider: Provider, key: string): readonly [name: string, value: string] => {
  switch (provider) {
    case "anthropic":
      return ["X-Api-Key", key]
    case "gemini":
      return ["X-Goog-Api-Key", key]
    case "openai":
      return ["Authorization", `Bearer ${key}`]
  }
}

/** Headers that a request with the operator's key keeps. Others may choose an account of the operator, or another method. */
const neutralHeaders = [
  "accept",
  "accept-encoding",
  "anthropic-beta",
  "anthropic-version",
  "content-encoding",
  "content-length",
  "content-type",
  "openai-beta",
  "user-agent"
]
const neutralQuery = [
  "after",
  "after_id",
  "alt",
  "api-version",
  "before_id",
  "beta",
  "limit",
  "page_size",
  "page_token",
  "pageSize",
  "pageToken"
]

/** Returns what goes upstream of a request whose key the operator pays for. */
export const withOperatorKey = (provider: Provider, { headers, query }: Carried, key: string): Carried => ({
  headers: [
    ...headerPairs(headers)
      .filter(([name]) => neutralHeaders.includes(name.toLowerCase()))
      .flat(),
    ...keyHeader(provider, key)
  ],
  query: query.filter(({ name }) => neutralQuery.includes(name))
})
