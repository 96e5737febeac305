import { type Content, isCall, isResponse, type Part, partJson, response } from "./Content.ts"
import {
  type Conversation,
  type EntryId,
  itemParts,
  type Place,
  pairing,
  placeKey,
  sourceOf,
  view,
  type ViewItem
} from "./Conversation.ts"
import { isValidModel } from "./Curation.ts"
import type { Handle } from "./Handle.ts"

/**
 * From the view to what is sent: the same messages, made legal. Empty messages are left out, a call that never got its
 * response gets one that says so, a response without a call becomes a marked note with its handle. The log is not touched.
 */

/** Opens every text that the runtime puts into a message that travels in the user's role (law 6). */
export const runtimeMark = "[palimpsest: written by the runtime, not by the user]"

/** A message to send, and the entry it stands for. */
export interface Sent {
  readonly entry: EntryId
  readonly content: Content
  /** By part: the exact JSON where it is known to differ from writing the part again. */
  readonly source: ReadonlyMap<number, string>
}

const orphanNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A result of ${part.functionResponse?.name ?? "a tool"} stood here; its call is not part of this context.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

const noResult = "no result: the call was interrupted before it answered"

/** The messages of the view, legal in order and pairing (law 5); calls that the last message leaves open stay open. */
export const project = (self: Conversation): Array<Sent> => projectItems(view(self))

const isKept = (role: Content["role"], part: Part): boolean =>
  isValidModel({ role, parts: [part] }, "newer") && !(part.text === "" && Object.keys(part).length === 1)

export const projectItems = (items: ReadonlyArray<ViewItem>): Array<Sent> => {
  const shown = items.map((item) => ({ item, role: item.entry.content.role, parts: itemParts(item) }))
  const { callOf, responseOf } = pairing(shown)
  /** The run of messages of one role that each message belongs to; a message with nothing in it belongs to none. */
  const runs: Array<number> = []
  let run = 0
  let runRole: string | undefined
  for (const { parts, role } of shown) {
    if (!parts.some((part) => isKept(role, part))) {
      runs.push(-1)
      continue
    }
    if (role !== runRole) run += 1
    runRole = role
    runs.push(run)
  }
  /** A response counts only in the run right after its call's, where the protocol wants it. */
  const answers = (call: Place | undefined, answer: Place | undefined): boolean =>
    call !== undefined && answer !== undefined && (runs[call.item] ?? -1) + 1 === runs[answer.item]
  const sent: Array<Sent> = []
  let owed: Array<Part> = []
  shown.forEach(({ item, parts, role }, index) => {
    const kept: Array<Part> = []
    const source = new Map<number, string>()
    if (role === "user" && runs[index] !== -1) {
      kept.push(...owed)
      owed = []
    }
    parts.forEach((part, at) => {
      if (!isKept(role, part)) return
      const place = { item: index, part: at }
      if (isResponse(part) && !answers(callOf.get(placeKey(place)), place)) {
        kept.push(orphanNote(part, item.entry.handles[at]))
        return
      }
      if (isCall(part) && !answers(place, responseOf.get(placeKey(place))) && runs[index] !== run) {
        owed.push(response(part.functionCall.name, { error: noResult }, part.functionCall.id))
      }
      const text = item.shortened.has(at) ? undefined : sourceOf(item.entry, at)
      if (text !== undefined) source.set(kept.length, text)
      kept.push(part)
    })
    if (kept.length > 0) sent.push({ entry: item.entry.id, content: { ...item.entry.content, parts: kept }, source })
  })
  return sent
}

/** The history as JSON, parts exactly as they were read (law 1). */
export const sentJson = (sent: ReadonlyArray<Sent>): string =>
  `[${sent
    .map(({ content, source }) => {
      if (source.size === 0) return JSON.stringify(content)
      const { parts, ...rest } = content
      const body = parts.map((part, index) => partJson(part, source.get(index))).join(",")
      return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`
    })
    .join(",")}]`
