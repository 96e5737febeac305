import { Effect } from "effect"
import type * as Prompt from "effect/ai/Prompt"
import { payload } from "../../domain/content/Content.ts"
import type { Hash } from "../../domain/content/Handle.ts"
import { messageText } from "../../domain/conversation/MessageName.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { TempStore } from "../session/TempStore.ts"

/** The names of prompts and of the parts of their messages, by which handles find them. A message object is hashed once. */
export interface PromptNames {
  readonly hash: TempStore["Service"]["hash"]
  readonly named: WeakMap<Prompt.Message, { readonly after: Hash | ""; readonly name: Hash }>
  readonly hashes: WeakMap<Prompt.Message, ReadonlyArray<Hash>>
}

/** Makes names with the hash of the `TempStore`. */
export const makeNames = Effect.map(TempStore, ({ hash }): PromptNames => ({
  hash,
  named: new WeakMap(),
  hashes: new WeakMap()
}))

const nameAfter = (
  { hash, named }: PromptNames,
  after: Hash | "",
  message: Prompt.Message
): Hash | Effect.Effect<Hash> => {
  const before = named.get(message)
  if (before?.after === after) return before.name
  return Effect.map(hash(`${after}\n${messageText(message)}`), (name) => {
    named.set(message, { after, name })
    return name
  })
}

/**
 * Names all beginnings of a prompt, that of no messages first, which is the owner: undefined for a conversation that exists in its caller's history
 * only. Such a name is the same in every process, because handles are made of it.
 */
export const namesOf = Effect.fnUntraced(function* (
  names: PromptNames,
  content: ReadonlyArray<Prompt.Message>,
  owner?: string
) {
  let last: Hash | "" = owner === undefined ? "" : yield* names.hash(`key ${owner}`)
  const made = [last]
  for (const message of content) {
    const name = nameAfter(names, last, message)
    last = typeof name === "string" ? name : yield* name
    made.push(last)
  }
  return made
})

/** The texts of a message's parts, as handles name them. */
export const textsOf = (message: Prompt.Message): ReadonlyArray<string> =>
  message.role === "system" ? [] : toContent(message).parts.map((part) => payload(part).text)

/** The hashes of a message's parts, as in their handles. */
export const hashesOf = Effect.fnUntraced(function* ({ hash, hashes }: PromptNames, message: Prompt.Message) {
  const before = hashes.get(message)
  if (before !== undefined) return before
  const made = yield* Effect.forEach(textsOf(message), hash)
  hashes.set(message, made)
  return made
})
