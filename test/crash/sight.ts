import { createHash } from "node:crypto"
import { type Entry, itemParts, itemTokens, view, viewTokens } from "../../src/domain/conversation/Conversation.ts"
import { seededRandom } from "../../src/domain/evaluation/SeededRandom.ts"
import type { Session } from "../../src/domain/session/Session.ts"
import * as PersistentList from "../../src/domain/text/PersistentList.ts"

/** What a process that is killed says before, and how its words are compared with what is on the disk. */

/** What the child does, one after the other. */
export type Operation =
  | "open"
  | "send"
  | "respond"
  | "append"
  | "compress"
  | "undo"
  | "redo"
  | "pin"
  | "switch"
  | "close"

/** A line of the child. `begin`: it starts an operation; `call`: it asks the summarizing model; `ack`: the operation is done. */
export type Line =
  | { readonly _tag: "begin"; readonly operation: Operation }
  | { readonly _tag: "call" }
  | {
      readonly _tag: "ack"
      readonly operation: Operation
      /** What the model sees now and what follows from it. */
      readonly seen: string
      /** Messages that are new, each with the hash of all that it holds. */
      readonly entries: ReadonlyArray<readonly [id: string, hash: string]>
      /** Of the summarizing model, in this operation. */
      readonly calls: number
      /** Whether the next short message surely stays below the threshold. */
      readonly isBelow: boolean
    }
  | { readonly _tag: "failed"; readonly operation: string; readonly message: string }

/**
 * When a child ends itself: right after so many of its lines of one kind, or at a call of the file system. `half`: the next
 * write is half done before.
 */
export type Death =
  | { readonly _tag: "line"; readonly kind: Line["_tag"]; readonly number: number }
  | { readonly _tag: "call"; readonly number: number; readonly half: boolean }

/** What a child is told. */
export interface Errand {
  readonly folder: string
  readonly seed: number
  readonly death?: Death | undefined
  /** A log that acknowledges an event and then writes it: what the checks have to notice. */
  readonly isHasty?: boolean | undefined
}

/** The one session of a folder. */
export const sessionId = "s1"

/** Keys in one order: what was read has them in another than what was made. */
const canonical = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value

/** The same for the same value. */
export const hashOf = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value, canonical)).digest("base64url")

/** The same for sessions in which the same is sent from now on, also where what left the view was not read. */
export const seenOf = (session: Session): string =>
  hashOf({
    started: session.started,
    model: session.model,
    pins: PersistentList.toArray(session.pins),
    memory: session.memory,
    next: session.conversation.next,
    tokens: viewTokens(session.conversation),
    view: view(session.conversation).map((item) => [item.entry, itemParts(item), itemTokens(item)])
  })

/** Messages that somebody wrote, snapshots left out: those may be undone for good. */
export const isMessage = ({ author }: Entry): boolean => author === undefined

/** Whole numbers below `limit`; the same for the same seed. */
export const chance = (seed: number): ((limit: number) => number) => {
  const random = seededRandom(seed)
  return (limit) => Math.floor(random() * limit)
}
