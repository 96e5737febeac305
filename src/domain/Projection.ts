import { type Content, isCall, isResponse, outputText, type Part, partJson, response } from "./Content.ts"
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
import { partTokens } from "./Tokens.ts"
import { wireContent } from "./WireContent.ts"
import * as Work from "./Work.ts"

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
  /** As it is sent: of a part that is left out none, of a note the note's. The environment message has none. */
  readonly tokens: number
}

const orphanNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A result of ${part.functionResponse?.name ?? "a tool"} stood here; its call is not part of this context.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** Only the model calls. */
const misplacedNote = (part: Part, handle: Handle | undefined): Part => ({
  text: `${runtimeMark} A call of ${part.functionCall?.name ?? "a tool"} stood here in the user's role.${
    handle === undefined ? "" : ` Recall it with ${handle}.`
  }`
})

/** What stands before the words of a summary or a program where the protocol makes them travel in the user's role. */
export const foreignNotes = {
  summary: `${runtimeMark} What follows was written by a model: a summary of what was said before.`,
  program: `${runtimeMark} What follows was put here by a program, not by the user.`
}

/** Says whose words they are when a message in the user's role is not the user's and does not say so itself (law 6). */
const foreignNote = ({ entry }: ViewItem): string | undefined =>
  entry.content.role !== "user" || (entry.author !== "summary" && entry.author !== "program")
    ? undefined
    : entry.content.parts[0]?.text?.startsWith(runtimeMark) === true
      ? undefined
      : foreignNotes[entry.author]

const noResult = "no result: the call was interrupted before it answered"

/** The messages of the view, legal in order and pairing (law 5); calls that the last message leaves open stay open. */
export const project = (self: Conversation): Array<Sent> => projectItems(view(self))

const isKept = (role: Content["role"], part: Part): boolean =>
  isValidModel({ role, parts: [part] }, "newer") && !(part.text === "" && Object.keys(part).length === 1)

/** `project` for any messages of a view. Calls that the last of them leaves open stay open. */
export const projectItems = (items: ReadonlyArray<ViewItem>): Array<Sent> => Work.runSync(projecting(items))

/** `projectItems`, in slices. */
export function* projecting(items: ReadonlyArray<ViewItem>): Work.Work<Array<Sent>> {
  const shown = items.map((item) => ({ item, role: item.entry.content.role, parts: itemParts(item) }))
  yield items.length * 100
  const { callOf, responseOf } = pairing(shown)
  yield items.length * 100
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
    call !== undefined &&
    answer !== undefined &&
    shown[call.item]?.role === "model" &&
    (runs[call.item] ?? -1) + 1 === runs[answer.item]
  const sent: Array<Sent> = []
  /** By run: the last message that holds answers. What is owed comes after them, so that order pairs as before. */
  const lastAnswer = new Map<number, number>()
  shown.forEach(({ parts }, index) => {
    const isAnswer = (part: Part, at: number) =>
      isResponse(part) && answers(callOf.get(placeKey({ item: index, part: at })), { item: index, part: at })
    if (parts.some(isAnswer)) lastAnswer.set(runs[index] ?? -1, index)
  })
  let owed: Array<Part> = []
  for (const [index, { item, parts, role }] of shown.entries()) {
    yield 300
    const kept: Array<Part> = []
    const source = new Map<number, string>()
    let tokens = 0
    const keep = (part: Part, cost = Work.runSync(partTokens(part, outputText(part)))) => {
      kept.push(part)
      tokens += cost
    }
    const whose = foreignNote(item)
    if (whose !== undefined && runs[index] !== -1) keep({ text: whose })
    const last = lastAnswer.get(runs[index] ?? -1)
    if (role === "user" && runs[index] !== -1 && last === undefined) {
      for (const part of owed) keep(part)
      owed = []
    }
    parts.forEach((part, at) => {
      if (!isKept(role, part)) return
      const place = { item: index, part: at }
      if (isCall(part) && role === "user") {
        keep(misplacedNote(part, item.entry.handles[at]))
        return
      }
      if (isResponse(part) && !answers(callOf.get(placeKey(place)), place)) {
        keep(orphanNote(part, item.entry.handles[at]))
        return
      }
      if (isCall(part) && !answers(place, responseOf.get(placeKey(place))) && runs[index] !== run) {
        owed.push(response(part.functionCall.name, { error: noResult }, part.functionCall.id))
      }
      const text = item.shortened.has(at) ? undefined : sourceOf(item.entry, at)
      if (text !== undefined) source.set(kept.length, text)
      keep(part, item.shortened.get(at)?.tokens ?? item.entry.tokens[at] ?? 0)
    })
    if (role === "user" && last === index) {
      for (const part of owed) keep(part)
      owed = []
    }
    if (kept.length > 0)
      sent.push({
        entry: item.entry.id,
        content: { ...item.entry.content, parts: kept },
        source,
        tokens: item.entry.author === "environment" ? 0 : tokens
      })
  }
  return sent
}

/** Tokens of what is sent: what a compression has to make smaller (law 4). */
export const requestTokens = (sent: ReadonlyArray<Sent>): number =>
  sent.reduce((total, { tokens }) => total + tokens, 0)

/** The history as JSON, parts exactly as they were read (law 1). */
export const sentJson = (sent: ReadonlyArray<Sent>): string =>
  `[${sent
    .map(({ content: held, source }) => {
      const content = wireContent(held)
      if (source.size === 0) return JSON.stringify(content)
      const { parts, ...rest } = content
      const body = parts.map((part, index) => partJson(part, source.get(index))).join(",")
      return `${JSON.stringify({ ...rest }).slice(0, -1)},"parts":[${body}]}`
    })
    .join(",")}]`
