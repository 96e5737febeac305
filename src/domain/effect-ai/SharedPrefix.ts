import type * as Prompt from "effect/ai/Prompt"

/** Whether two messages are equal: by identity, or else part by part, including options. */
export const sameMessage = (one: Prompt.Message, other: Prompt.Message): boolean => same(one, other)

const isPlain = (value: object): value is Readonly<Record<string, unknown>> => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const sameBytes = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, index) => byte === other[index])

/** Compares JSON values, bytes and URLs. Other values are equal only if they are identical. */
const same = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((value, index) => same(value, other[index]))
  }
  if (one instanceof URL) return other instanceof URL && one.href === other.href
  if (one instanceof Uint8Array) return other instanceof Uint8Array && sameBytes(one, other)
  if (!isPlain(one) || !isPlain(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  return keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]))
}

/** The number of equal messages at the start of two prompts, and how many of those are the same objects. */
export const sharedPrefix = (
  one: ReadonlyArray<Prompt.Message>,
  other: ReadonlyArray<Prompt.Message>
): { readonly shared: number; readonly identical: number } => {
  const maxShared = Math.min(one.length, other.length)
  let identical = 0
  // A caller that extends a history keeps its message objects. This loop is what takes the time in a long one.
  while (identical < maxShared && one[identical] === other[identical]) identical += 1
  let shared = identical
  for (; shared < maxShared; shared += 1) {
    const ours = one[shared]
    const theirs = other[shared]
    if (ours === undefined || theirs === undefined || !sameMessage(ours, theirs)) break
  }
  return { shared, identical }
}
