import type { Content, Part } from "./Content.ts"

/** Under which keys contents carry what only `effect/ai` knows: options of messages and parts, … */
export const optionsKey = "providerMetadata"
/** … and what else it needs to have its message back. */
export const extraKey = "effect/ai"

const isCarrying = (value: object): boolean => optionsKey in value || extraKey in value

const wirePart = (part: Part): Part => {
  if (!isCarrying(part)) return part
  const { [optionsKey]: _options, [extraKey]: _extra, ...rest } = part
  return rest
}

/** Contents that were looked at and carry nothing: a conversation sends the same ones with every request. */
const clean = new WeakSet<Content>()

/** A content as the API of our wire shape takes it, which refuses keys that it does not know. */
export const wireContent = (content: Content): Content => {
  if (clean.has(content)) return content
  if (!isCarrying(content) && !content.parts.some(isCarrying)) {
    clean.add(content)
    return content
  }
  const { [optionsKey]: _options, [extraKey]: _extra, ...rest } = content
  return { ...rest, parts: content.parts.map(wirePart) }
}
