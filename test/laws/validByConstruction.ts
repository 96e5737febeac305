import { Effect } from "effect"
import { type Content, hasResponses, isCall } from "../../src/domain/content/Content.ts"
import { type Conversation, pairing, view } from "../../src/domain/conversation/Conversation.ts"
import type { SentMessage } from "../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import type { Check, Judge } from "../support/generate.ts"
import { illegal, runsOf, unanswered } from "../support/legal.ts"

/** Law 5: every request is a legal conversation, whatever happened to it. */

type Message = Pick<SentMessage, "entry" | "content">
export type Project = (conversation: Conversation) => ReadonlyArray<Message>

const contentsOf = (sent: ReadonlyArray<Message>): ReadonlyArray<Content> => sent.map(({ content }) => content)
const viewContents = (conversation: Conversation): ReadonlyArray<Content> =>
  view(conversation).map(({ entry }) => entry.content)

/** Every state that a script reaches is sent as a legal conversation, and the last one also after a restart. */
export const isLegal = (project: Project): Judge => [
  Effect.fnUntraced(function* ({ chat, moments }) {
    for (const [at, { action, after, before }] of moments.entries()) {
      const problem =
        illegal(contentsOf(project(before.conversation))) ?? illegal(contentsOf(project(after.conversation)))
      if (problem !== undefined) return `around step ${at} (${action}): ${problem}`
    }
    return illegal(contentsOf(project(yield* chat.conversation)))
  }),
  "played",
  "restarted"
]

/** Without the note that marks a message in the user's role that is not the user's. */
const withoutNotes = (conversation: Conversation, sent: ReadonlyArray<Message>): ReadonlyArray<Content> => {
  const foreign = new Set(
    view(conversation).flatMap(({ entry }) =>
      entry.content.role === "user" &&
      (entry.author === "summary" || entry.author === "program") &&
      entry.content.parts[0]?.text?.startsWith(runtimeMark) !== true
        ? [entry.id]
        : []
    )
  )
  return sent.map(({ content, entry }) => {
    const noted = foreign.has(entry) && content.parts[0]?.text?.startsWith(runtimeMark) === true
    return noted ? { ...content, parts: content.parts.slice(1) } : content
  })
}

/** A legal conversation is sent unchanged, except for the notes. */
export const keepsTheLegal = (project: Project): Check =>
  Effect.fnUntraced(function* ({ chat }) {
    const conversation = yield* chat.conversation
    const contents = viewContents(conversation)
    if (illegal(contents) !== undefined) return undefined
    return JSON.stringify(withoutNotes(conversation, project(conversation))) === JSON.stringify(contents)
      ? undefined
      : "a legal conversation is sent changed"
  })

/** Calls whose responses follow directly are sent unchanged, whatever came before. */
export const keepsTheExchange = (project: Project): Check =>
  Effect.fnUntraced(function* ({ chat }) {
    const conversation = yield* chat.conversation
    const contents = viewContents(conversation)
    const runs = runsOf(contents)
    const sent = new Map(project(conversation).map(({ content, entry }) => [entry, content]))
    const items = view(conversation)
    for (const [index, { parts, role, to }] of runs.entries()) {
      const next = runs[index + 1]
      if (role !== "model" || next === undefined || !parts.some(isCall)) continue
      if (unanswered(parts, next.parts) !== undefined) continue
      for (const item of items.slice(next.from, next.to + 1)) {
        if (!hasResponses(item.entry.content)) continue
        const found = sent.get(item.entry.id)
        if (JSON.stringify(found?.parts) !== JSON.stringify(item.entry.content.parts)) {
          return `the answers in ${item.entry.id} (to calls of run ${index}, up to message ${to}) are sent as ${JSON.stringify(found?.parts).slice(0, 200)}`
        }
      }
    }
    return undefined
  })

/** A response in the request answers the same call as in the view. */
export const keepsThePairs = (project: Project): Check =>
  Effect.fnUntraced(function* ({ chat }) {
    const conversation = yield* chat.conversation
    const before = pairs(view(conversation).map(({ entry }) => ({ id: entry.id, content: entry.content })))
    const after = pairs(project(conversation).map(({ content, entry }) => ({ id: entry, content })))
    for (const [response, call] of after) {
      const was = before.get(response)
      if (was !== undefined && was !== call)
        return `the response ${response} answered ${was} and is sent as answer to ${call}`
    }
    return undefined
  })

/** By response, the call it answers; each as JSON, with its position. */
const pairs = (
  messages: ReadonlyArray<{ readonly id: string; readonly content: Content }>
): ReadonlyMap<string, string> => {
  const { callOf } = pairing(messages.map(({ content }) => content))
  const name = (item: number, part: number) =>
    `${messages[item]?.id} ${JSON.stringify(messages[item]?.content.parts[part])}`
  return new Map(
    [...callOf].map(([response, call]) => {
      const [item = "", part = ""] = response.split(":")
      return [name(Number(item), Number(part)), name(call.item, call.part)]
    })
  )
}

/** A compression drops a call and its response together, or neither. */
export const partsNoPair: Check = Effect.fnUntraced(function* ({ moments }) {
  for (const { after, before, outcome } of moments) {
    if (outcome === undefined) continue
    const items = view(before.conversation)
    const kept = new Set(view(after.conversation).map(({ entry }) => entry.id))
    for (const [response, call] of pairing(items.map(({ entry }) => entry.content)).callOf) {
      const answer = items[Number(response.split(":")[0])]
      const made = items[call.item]
      if (answer === undefined || made === undefined) continue
      if (kept.has(answer.entry.id) !== kept.has(made.entry.id)) {
        return `the call in ${made.entry.id} and its response in ${answer.entry.id} were parted`
      }
    }
  }
  return undefined
})
