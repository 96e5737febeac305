import { Effect, Semaphore } from "effect"
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type { Hash } from "../../domain/content/Handle.ts"
import { messageText } from "../../domain/conversation/MessageName.ts"
import { beginning, follow, type Standing } from "../../domain/effect-ai/PromptRepair.ts"
import type { Session, SessionEvent } from "../../domain/session/Session.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type * as PersistentList from "../../domain/text/PersistentList.ts"
import type { MeasuredRequest } from "../chat/WindowGuard.ts"
import { TempStore } from "../session/TempStore.ts"

/**
 * The memory of one language model's conversations. A conversation has no id: each of its prefixes is named by the
 * hash of its messages, and a prompt is found by its longest remembered prefix. Messages are not held for long,
 * because the history that the caller sends contains the text behind every handle.
 */

/** Sums over the messages of a conversation, from its beginning. */
export interface Mark {
  /** Tokens of all messages except system messages. */
  readonly spoken: number
  /** Tokens of system messages. */
  readonly system: number
  readonly standing: Standing
}

/** The sums of an empty prompt. */
export const noMark: Mark = { spoken: 0, system: 0, standing: beginning }

/** A compression: the replacement for the first messages of a conversation. */
export interface Head {
  /** The number of messages it replaces, and their sums. */
  readonly at: number
  readonly mark: Mark
  /** The replacement; a number is the index of one of the caller's own messages. Absent: the messages themselves. */
  readonly items: ReadonlyArray<number | Prompt.Message> | undefined
  /** Tokens of `items` without system messages. */
  readonly tokens: number
  /** The next compression waits for this many tokens. */
  readonly waiting: number
  /** The events of the session's compressions so far, each with the number of messages the session then held. */
  readonly events: PersistentList.PersistentList<{ readonly at: number; readonly event: SessionEvent }>
  /** Where it is stored: the session, and the version of its conversation. Undefined: it is not. */
  readonly stored: { readonly session: string; readonly version: number } | undefined
}

/** Returns a compression without its in-memory session, which is stored. */
export const stored = "stored"

/** The state of a conversation at one prompt. */
export interface Place {
  readonly name: Hash | undefined
  readonly length: number
  readonly mark: Mark
  head: Head | undefined
  /** The last measured request, and its parts. */
  measured: (MeasuredRequest & { readonly head: Head | undefined; readonly declarationTokens: number }) | undefined
  /** Held during a compression. */
  readonly turn: Semaphore.Semaphore
}

/** Limits of the memory. */
export interface Bounds {
  /** Conversations held completely. */
  readonly whole: number
  /** Number of conversations whose compressions and token counts are held. */
  readonly remembered: number
}

/** Places of one conversation in addition to that of its latest prompt: those at which it was compressed. */
const placesEach = 2

type Messages = ReadonlyArray<Prompt.Message>

/** Names the beginnings of prompts. A message object that recurs after the same beginning is not hashed again. */
export interface Names {
  readonly hash: TempStore["Service"]["hash"]
  readonly named: WeakMap<Prompt.Message, { readonly after: Hash | ""; readonly name: Hash }>
}

/** Makes an empty table of names. */
export const makeNames = Effect.map(TempStore, ({ hash }): Names => ({ hash, named: new WeakMap() }))

const nameAfter = ({ hash, named }: Names, after: Hash | "", message: Prompt.Message): Hash | Effect.Effect<Hash> => {
  const before = named.get(message)
  if (before?.after === after) return before.name
  return Effect.map(hash(`${after}\n${messageText(message)}`), (name) => {
    named.set(message, { after, name })
    return name
  })
}

/** The name of each beginning, by number of messages minus one. */
export const namesOf = Effect.fnUntraced(function* (names: Names, content: Messages) {
  const made: Array<Hash> = []
  let last: Hash | "" = ""
  for (const message of content) {
    const name = nameAfter(names, last, message)
    last = typeof name === "string" ? name : yield* name
    made.push(last)
  }
  return made
})

/** The memory of the conversations of one language model. */
export interface PromptMemory {
  readonly names: Names
  /** Counts a message's tokens. */
  readonly count: (message: Prompt.Message) => Effect.Effect<number, AiError.AiError>
  readonly places: BoundedMap<Hash, Place>
  readonly sessions: BoundedMap<Head, Session>
}

/** Makes an empty memory of one language model. */
export const make = (names: Names, count: PromptMemory["count"], bounds: Bounds): PromptMemory => ({
  names,
  count,
  places: new BoundedMap(bounds.remembered * placesEach),
  sessions: new BoundedMap(bounds.whole)
})

/** The sums after some more messages. */
export const marked = Effect.fnUntraced(function* (count: PromptMemory["count"], from: Mark, messages: Messages) {
  let { spoken, standing, system } = from
  for (const message of messages) {
    const tokens = yield* count(message)
    if (message.role === "system") system += tokens
    else spoken += tokens
    standing = follow(standing, message)
  }
  return { spoken, system, standing }
})

/** The longest known beginning. */
const deepestPlace = ({ places }: PromptMemory, beginnings: ReadonlyArray<Hash>): Place | undefined => {
  const name = beginnings.findLast((each) => places.get(each) !== undefined)
  return name === undefined ? undefined : places.get(name)
}

/** Finds the place of a prompt, or makes one. Nothing changes before everything is counted. */
export const placeOf = Effect.fnUntraced(function* (
  memory: PromptMemory,
  content: Messages
): Effect.fn.Return<Place, AiError.AiError> {
  const { count, names, places } = memory
  const beginnings = yield* namesOf(names, content)
  const from = deepestPlace(memory, beginnings)
  const length = from?.length ?? 0
  if (from !== undefined && length === content.length) return keep(memory, from)
  const mark = yield* marked(count, from?.mark ?? noMark, content.slice(length))
  const name = beginnings[content.length - 1]
  // Another fiber may have added the same prompt meanwhile.
  const other = name === undefined ? undefined : places.get(name)
  if (other !== undefined) return keep(memory, other)
  const isHead = from === undefined || from.head?.at === length
  // A prompt that was continued is not looked up again. At a compression, conversations may branch.
  if (!isHead && from.name !== undefined) places.delete(from.name)
  return keep(memory, {
    name,
    length: content.length,
    mark,
    head: from?.head,
    measured: from?.measured,
    turn: isHead ? Semaphore.makeUnsafe(1) : from.turn
  })
})

const keep = ({ places }: PromptMemory, place: Place): Place => {
  if (place.name !== undefined) places.set(place.name, place)
  return place
}

/** Uses a compression by another caller if it covers a longer beginning of this prompt than the place's own. */
export const catchUp = Effect.fnUntraced(function* ({ names, places }: PromptMemory, place: Place, content: Messages) {
  const least = place.head?.at ?? 0
  const beginnings = yield* namesOf(names, content)
  for (let length = content.length; length > least; length -= 1) {
    const name = beginnings[length - 1]
    const head = name === undefined ? undefined : places.get(name)?.head
    if (head?.at === length) {
      place.head = head
      return
    }
  }
})

/** Remembers a compression for a prompt, and for all prompts with the same beginning, which has this name. */
export const remember = (
  { places, sessions }: PromptMemory,
  place: Place,
  head: Head,
  session: Session | typeof stored,
  name: Hash | undefined
) => {
  place.head = head
  if (session !== stored) sessions.set(head, session)
  if (name === undefined) return
  const before = places.get(name)
  // A prompt that was continued meanwhile replaced this one. The continuation finds the compression here.
  if (name === place.name) places.set(name, place)
  else if (before === undefined) {
    const { at, mark } = head
    places.set(name, { name, length: at, mark, head, measured: undefined, turn: Semaphore.makeUnsafe(1) })
  } else if ((before.head?.at ?? 0) < head.at) before.head = head
}
