import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Content, hasResponses, isCall } from "../../src/domain/content/Content.ts"
import {
  type Conversation,
  entryId,
  pairing,
  sequenceOf,
  view,
  type ViewItem
} from "../../src/domain/conversation/Conversation.ts"
import { projectMessages as realProject, type SentMessage } from "../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import {
  type Law,
  lawOfPlayed,
  notices,
  property,
  scripts,
  swappedTalks,
  talks,
  thousand,
  worldOf
} from "../support/generate.ts"
import { illegal, runsOf, unanswered } from "../support/legal.ts"

/** Law 5: every request is a legal conversation, whatever happened to it. */

type Message = Pick<SentMessage, "entry" | "content">
type Project = (conversation: Conversation) => ReadonlyArray<Message>

const contentsOf = (sent: ReadonlyArray<Message>): ReadonlyArray<Content> => sent.map(({ content }) => content)
const viewContents = (conversation: Conversation): ReadonlyArray<Content> =>
  view(conversation).map(({ entry }) => entry.content)

/** Every state that a script reaches is sent as a legal conversation. */
const isLegal = (project: Project): Law =>
  lawOfPlayed(
    Effect.fnUntraced(function* ({ chat, moments, reopen }) {
      for (const [at, { action, after, before }] of moments.entries()) {
        const problem =
          illegal(contentsOf(project(before.conversation))) ?? illegal(contentsOf(project(after.conversation)))
        if (problem !== undefined) return `around step ${at} (${action}): ${problem}`
      }
      const now = illegal(contentsOf(project(yield* chat.conversation)))
      return now ?? illegal(contentsOf(project(yield* (yield* reopen).conversation)))
    })
  )

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
const keepsTheLegal = (project: Project): Law =>
  lawOfPlayed(
    Effect.fnUntraced(function* ({ chat }) {
      const conversation = yield* chat.conversation
      const contents = viewContents(conversation)
      if (illegal(contents) !== undefined) return undefined
      return JSON.stringify(withoutNotes(conversation, project(conversation))) === JSON.stringify(contents)
        ? undefined
        : "a legal conversation is sent changed"
    })
  )

/** Calls whose responses follow directly are sent unchanged, whatever came before. */
const keepsTheExchange = (project: Project): Law =>
  lawOfPlayed(
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
  )

/** A response in the request answers the same call as in the view. */
const keepsThePairs = (project: Project): Law =>
  lawOfPlayed(
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
  )

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
const partsNoPair: Law = lawOfPlayed(
  Effect.fnUntraced(function* ({ moments }) {
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
)

describe("law 5: valid by construction", () => {
  it.effect.prop(
    "every reachable state is sent as a valid conversation",
    [scripts],
    ([script]) => property(isLegal(realProject), worldOf())(script),
    { arbitrary: thousand("law 5") }
  )

  it.effect.prop(
    "a compression separates no call from its response",
    [scripts],
    ([script]) => property(partsNoPair, worldOf())(script),
    { arbitrary: thousand("law 5, pairs", 500) }
  )

  it.effect.prop(
    "a valid conversation is sent unchanged",
    [talks],
    ([script]) => property(keepsTheLegal(realProject), worldOf())(script),
    { arbitrary: thousand("law 5, identity") }
  )

  it.effect.prop(
    "a valid exchange is sent unchanged, whatever came before",
    [talks],
    ([script]) => property(keepsTheExchange(realProject), worldOf())(script),
    { arbitrary: thousand("law 5, exchange", 500) }
  )

  it.effect.prop(
    "a response is sent with the call that it belongs to",
    [talks],
    ([script]) => property(keepsThePairs(realProject), worldOf())(script),
    { arbitrary: thousand("law 5, answers", 500) }
  )

  it.effect.prop(
    "calls and responses in the wrong role keep the request valid",
    [swappedTalks],
    ([script]) => property(isLegal(realProject), worldOf())(script),
    { arbitrary: thousand("law 5, roles", 200) }
  )

  describe("the checks detect", () => {
    const raw: Project = (conversation) =>
      view(conversation).map(({ entry }) => ({ entry: entry.id, content: entry.content }))

    it.effect("a projection without repairs", () =>
      Effect.gen(function* () {
        assert.isTrue(yield* notices(isLegal(raw), worldOf(), talks))
      })
    )

    it.effect("a projection that drops consecutive messages of one role", () =>
      Effect.gen(function* () {
        const thin: Project = (conversation) => {
          const sent = realProject(conversation)
          return sent.filter(({ content }, at) => sent[at - 1]?.content.role !== content.role)
        }
        assert.isTrue(yield* notices(keepsTheLegal(thin), worldOf(), talks))
      })
    )

    it.effect("a patch that cuts through a pair", () =>
      Effect.gen(function* () {
        const world = worldOf({
          compression: (real) => ({
            ...real,
            compress: (request) =>
              Effect.map(real.compress(request), (ended) => {
                const { outcome } = ended
                if (outcome._tag !== "Compressed" || outcome.patch.drop === undefined) return ended
                const { from, to } = outcome.patch.drop
                const next = view(request.conversation).find(
                  (item: ViewItem) => sequenceOf(item.entry.id) === sequenceOf(to) + 1
                )
                const drop = { from, to: next === undefined ? to : entryId(sequenceOf(to) + 1) }
                return { ...ended, outcome: { ...outcome, patch: { ...outcome.patch, drop } } }
              })
          })
        })
        assert.isTrue(yield* notices(partsNoPair, world))
      })
    )
  })
})
