/** Contents as the Gemini API takes them, without the keys under which `effect/ai` carries its own data. */

import type { Content, Part } from "./Content.ts"

/** The key under which contents carry the `effect/ai` options of messages and parts. */
export const optionsKey = "providerMetadata"
/** The key under which contents carry everything else that `effect/ai` needs to restore its message. */
export const extraKey = "effect/ai"

const isCarrying = (value: object): boolean => optionsKey in value || extraKey in value

const wirePart = (part: Part): Part => {
  if (!isCarrying(part)) return part
  const { [optionsKey]: _options, [extraKey]: _extra, ...rest } = part
  return rest
}

/** A content without the keys of `effect/ai`, which the API rejects. */
export const wireContent = (content: Content): Content => {
  if (!isCarrying(content) && !content.parts.some(isCarrying)) return content
  const { [optionsKey]: _options, [extraKey]: _extra, ...rest } = content
  return { ...rest, parts: content.parts.map(wirePart) }
}
