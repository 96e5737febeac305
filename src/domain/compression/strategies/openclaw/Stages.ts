/** How a long range is summarised: in groups that stay together, chunks that fit a request, and two parts that are merged. */

import { isCall, isResponse } from "../../../content/Content.ts"
import { type Entry, entryTokens } from "../../../conversation/Conversation.ts"
import { safetyMargin } from "./OpenClaw.ts"

/** Messages that are never separated: calls and their results, or one other message. */
export interface Group {
  readonly entries: ReadonlyArray<Entry>
  readonly tokens: number
}

const groupOf = (entries: ReadonlyArray<Entry>): Group => ({
  entries,
  tokens: entries.reduce((sum, entry) => sum + entryTokens(entry), 0)
})

/** Groups messages: a message with calls and the results that follow it are one group. */
export const groupsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<Group> => {
  const groups: Array<Array<Entry>> = []
  for (const entry of entries) {
    const isAnswer = entry.content.parts.some(isResponse)
    const last = groups[groups.length - 1]
    const isOpen = last !== undefined && last.some(({ content }) => content.parts.some(isCall))
    if (isAnswer && isOpen) last.push(entry)
    else groups.push([entry])
  }
  return groups.map(groupOf)
}

/**
 * Size of a chunk as a share of the window (OpenClaw 2026.9): `base`. Where an average message takes more than `large` of the
 * window, twice its share is subtracted, at most `max`, and at least `floor` remains.
 */
const share = { base: 0.4, max: 0.25, large: 0.1, floor: 0.15 }

/** Tokens of a request for a summary besides the messages: instructions and answer. */
const overheadTokens = 4_096

/** Returns the tokens of one chunk: 0.4 of the window, down to 0.15 where messages are large. */
export const chunkTokens = (groups: ReadonlyArray<Group>, window: number): number => {
  const count = groups.reduce((sum, { entries }) => sum + entries.length, 0)
  const total = groups.reduce((sum, { tokens }) => sum + tokens, 0)
  const average = count === 0 ? 0 : ((total / count) * safetyMargin) / Math.max(1, window)
  const ratio =
    average > share.large ? Math.max(share.floor, share.base - Math.min(2 * average, share.max)) : share.base
  return Math.max(1, Math.floor((window * ratio - Math.min(overheadTokens, window * 0.1)) / safetyMargin))
}

/** Fills chunks in order. A group that is larger than a chunk is a chunk of its own. */
export const chunksOf = (groups: ReadonlyArray<Group>, tokens: number): ReadonlyArray<ReadonlyArray<Group>> => {
  const chunks: Array<Array<Group>> = []
  let used = 0
  for (const group of groups) {
    const last = chunks[chunks.length - 1]
    if (last === undefined || used + group.tokens > tokens) {
      chunks.push([group])
      used = group.tokens
    } else {
      last.push(group)
      used += group.tokens
    }
  }
  return chunks
}

/** Splits groups in two parts of about the same tokens; neither is empty when there are two groups. */
export const halves = (groups: ReadonlyArray<Group>): readonly [ReadonlyArray<Group>, ReadonlyArray<Group>] => {
  const total = groups.reduce((sum, { tokens }) => sum + tokens, 0)
  let at = 0
  let before = 0
  while (at < groups.length - 1 && (at === 0 || before < total / 2)) {
    before += groups[at]?.tokens ?? 0
    at += 1
  }
  return [groups.slice(0, at), groups.slice(at)]
}

/** Messages below which a range is summarised in one go. */
const minStagedMessages = 4

/** Whether a range needs stages: it has several messages, and does not fit one chunk. */
export const needsStages = (groups: ReadonlyArray<Group>, tokens: number): boolean =>
  groups.reduce((sum, { entries }) => sum + entries.length, 0) >= minStagedMessages &&
  groups.length > 1 &&
  groups.reduce((sum, group) => sum + group.tokens, 0) > tokens

/** The share of the window beyond which a group is not sent: a note stands for it. */
const maxGroupShare = 0.5

/** Whether a group is too large for any request for a summary. */
export const isOversized = ({ tokens }: Group, window: number): boolean =>
  tokens * safetyMargin > window * maxGroupShare

/** The note for a group that is not sent. */
export const oversizedNote = ({ entries, tokens }: Group): string =>
  `[A large ${entries[0]?.content.role === "model" ? "tool exchange" : "message"} (about ${Math.round(tokens / 1_000)}K tokens) was left out of this summary]`

/**
 * Splits off the oldest groups until the rest takes at most this many tokens. The oldest get a summary of their own, which
 * the summary of the rest starts from.
 */
export const beyondShare = (
  groups: ReadonlyArray<Group>,
  tokens: number
): readonly [ReadonlyArray<Group>, ReadonlyArray<Group>] => {
  let rest = groups
  const older: Array<Group> = []
  const size = (of: ReadonlyArray<Group>) => of.reduce((sum, group) => sum + group.tokens, 0)
  while (rest.length > 1 && size(rest) > tokens) {
    const [oldest, newest] = halves(rest)
    for (const each of oldest) older.push(each)
    rest = newest
  }
  return [older, rest]
}
