import type * as Prompt from "effect/ai/Prompt"
import { type Conversation, entries, type Entry, itemParts, view, type ViewItem } from "./Conversation.ts"
import { toMessage } from "./PromptContent.ts"

/** An entry of the view as the prompt's message that it was, with its outputs as short as they are shown. */
export const viewMessage = (item: ViewItem): Prompt.Message | undefined =>
  toMessage({ ...item.entry.content, parts: itemParts(item) }, new Set(item.shortened.keys()))

/** What a prompt is put together from, in whatever form its messages are held. */
export interface Arrangement<A> {
  /** System messages before everything that was said. */
  readonly leading: ReadonlyArray<A>
  /** System messages that stood right before this entry, which is shown or is not. */
  readonly before: (entry: Entry, isShown: boolean) => ReadonlyArray<A>
  /** What stands for an entry of the view. */
  readonly shown: (item: ViewItem) => ReadonlyArray<A>
  /** System messages that nothing follows yet. */
  readonly trailing: ReadonlyArray<A>
}

/**
 * A view as a prompt. System messages are never compressed and keep their order: those that stood among what was dropped
 * come first, behind the leading ones, where every provider takes them.
 */
export const arrange = <A>(conversation: Conversation, by: Arrangement<A>): Array<A> => {
  const items = view(conversation)
  const shown = new Set(items.map(({ entry }) => entry))
  const orphaned = entries(conversation).filter((entry) => !shown.has(entry))
  return [
    ...by.leading,
    ...orphaned.flatMap((entry) => by.before(entry, false)),
    ...items.flatMap((item) => [...by.before(item.entry, true), ...by.shown(item)]),
    ...by.trailing
  ]
}

/** Whether two messages say the same: by identity, else part by part, options included. */
export const sameMessage = (one: Prompt.Message, other: Prompt.Message): boolean => same(one, other)

const isPlain = (value: object): value is Readonly<Record<string, unknown>> => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const sameBytes = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, index) => byte === other[index])

/** Values of JSON, bytes and addresses. Of anything else nobody knows what makes it the same. */
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

/** How many messages two prompts begin with alike, and how many of those are the very same objects. */
export const sharedPrefix = (
  one: ReadonlyArray<Prompt.Message>,
  other: ReadonlyArray<Prompt.Message>
): { readonly shared: number; readonly identical: number } => {
  const most = Math.min(one.length, other.length)
  let identical = 0
  // Whoever keeps a history keeps its messages: this is what takes the time of a long one.
  while (identical < most && one[identical] === other[identical]) identical += 1
  let shared = identical
  for (; shared < most; shared += 1) {
    const ours = one[shared]
    const theirs = other[shared]
    if (ours === undefined || theirs === undefined || !sameMessage(ours, theirs)) break
  }
  return { shared, identical }
}
