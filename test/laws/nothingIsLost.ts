import { Effect } from "effect"
import { partJson, payload } from "../../src/domain/content/Content.ts"
import { type Handle, mentions } from "../../src/domain/content/Handle.ts"
import { type Draft, type Entry, sourceOf, view } from "../../src/domain/conversation/Conversation.ts"
import { encode } from "../../src/domain/text/Bytes.ts"
import { arraySlices, sliceAt } from "../../src/domain/text/JsonSource.ts"
import type { Judge, Played } from "../support/generate.ts"

/** Law 1: every byte that entered a conversation stays readable under its handle. */

const same = (one: string, other: string): boolean => Buffer.compare(encode(one), encode(other)) === 0

const show = (text: string): string =>
  JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}… (${text.length})` : text)

/** Why the text behind a handle is wrong; undefined when it is right. */
const recalled = Effect.fnUntraced(function* (
  chat: Played["chat"],
  handle: Handle | undefined,
  what: string,
  wrong: (text: string) => string | undefined
) {
  if (handle === undefined) return `${what} has no handle`
  const found = yield* Effect.result(chat.recall(handle))
  if (found._tag === "Failure") return `${what}: ${handle} cannot be recalled: ${found.failure.message}`
  const problem = wrong(found.success.text)
  return problem === undefined ? undefined : `${what}: ${handle} ${problem}`
})

/** Every part of the messages is recalled exactly as it entered. */
const everyPart = Effect.fnUntraced(function* (
  chat: Played["chat"],
  said: ReadonlyArray<{ readonly draft: Draft; readonly entry: Entry }>
) {
  for (const { draft, entry } of said) {
    for (const [at, part] of draft.content.parts.entries()) {
      const expected = payload(part, sourceOf(draft, at)).text
      const violation = yield* recalled(chat, entry.handles[at], `${entry.id} part ${at}`, (text) =>
        same(text, expected) ? undefined : `gives ${show(text)} for ${show(expected)}`
      )
      if (violation !== undefined) return violation
    }
  }
  return undefined
})

/** What a line of a dropped range must contain. Line breaks between JSON tokens of the source become spaces. */
const lineProblem = (line: string, { content, ...draft }: Draft): string | undefined => {
  const { parts, ...rest } = content
  const { parts: _parts, ...found } = JSON.parse(line)
  if (JSON.stringify(found) !== JSON.stringify(rest))
    return `gives ${show(line)} for a message of ${JSON.stringify(rest)}`
  const slices = arraySlices(sliceAt(line, ["parts"]) ?? "")
  if (slices.length !== parts.length) return `gives ${slices.length} parts of ${parts.length}`
  const at = parts.findIndex(
    (part, index) => slices[index] !== partJson(part, sourceOf({ content, ...draft }, index)).replace(/[\r\n]+/g, " ")
  )
  return at < 0 ? undefined : `gives ${show(slices[at] ?? "")} for part ${at}`
}

/** Every dropped range is recalled as JSON Lines, one message per line. */
const everyRange = Effect.fnUntraced(function* (
  chat: Played["chat"],
  { dropped, entered }: Pick<Played, "dropped" | "entered">
) {
  const said = new Map(entered.map(({ draft, entry }) => [entry.id, draft]))
  for (const { entries, handle } of dropped) {
    const violation = yield* recalled(chat, handle, "a dropped range", (text) => {
      const lines = text.split("\n")
      if (lines.pop() !== "" || lines.length !== entries.length)
        return `gives ${lines.length} lines for ${entries.length}`
      return lines
        .map((line, index) => {
          const entry = entries[index]
          return entry === undefined ? "gives a line too many" : lineProblem(line, said.get(entry.id) ?? entry)
        })
        .find((problem) => problem !== undefined)
    })
    if (violation !== undefined) return violation
  }
  return undefined
})

/** Part of the text, but not a handle. */
const saidHandle = "h_aaaaaaaaaa"

/** Every handle that the window shows can be recalled. */
const everyMention = Effect.fnUntraced(function* (chat: Played["chat"]) {
  const named = view(yield* chat.conversation).flatMap(({ entry, shortened }) => [
    ...(entry.author === "summary" ? entry.content.parts : []),
    ...[...shortened.values()].map(({ part }) => part)
  ])
  for (const handle of new Set(named.flatMap((part) => mentions(JSON.stringify(part))))) {
    const violation = handle.startsWith(saidHandle)
      ? undefined
      : yield* recalled(chat, handle, "the window names a handle", () => undefined)
    if (violation !== undefined) return violation
  }
  return undefined
})

/** All parts and dropped ranges, before and after a restart. */
export const nothingIsLost: Judge = [
  Effect.fnUntraced(function* ({ chat, ...played }) {
    return (yield* everyPart(chat, played.entered)) ?? (yield* everyRange(chat, played)) ?? (yield* everyMention(chat))
  }),
  "played",
  "restarted"
]

/** The same for the snapshots that compressions added: they are part of the conversation too. */
export const noSnapshotIsLost: Judge = [
  ({ chat, inserted }) =>
    everyPart(
      chat,
      inserted.map((entry) => ({ draft: entry, entry }))
    ),
  "played",
  "restarted"
]
