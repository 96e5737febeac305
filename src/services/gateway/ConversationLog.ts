/** A conversation of the gateway in the form of the other modules, with the exact text of each message. */

import { Effect } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import {
  arrangedMessages,
  type MessageRange,
  rangeOf,
  writtenMessages
} from "../../domain/conversation/ArrangedMessages.ts"
import { type Draft, entries, type Patch, view, type ViewItem } from "../../domain/conversation/Conversation.ts"
import { droppedEntries } from "../../domain/conversation/Recall.ts"
import type { RelayedMessage } from "../../domain/gateway/CompressedView.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { withoutCacheMarks } from "../../domain/wire/anthropic/CacheMarks.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"
import type { MessageGroup } from "../../domain/wire/MessageCodec.ts"
import { knownConversation, entriesOf, type KnownConversation, withEntries } from "../conversation/KnownConversation.ts"
import type { CountedText } from "./MessageCounts.ts"

/** A conversation, and the client's messages behind it. Immutable: adding messages makes a new value. */
export interface ConversationLog extends KnownConversation {
  readonly dialect: Dialect
  /** All messages so far, as JSON. */
  readonly messages: ReadonlyArray<string>
  /** Those behind each entry, in the order of `origin.line`. */
  readonly groups: ReadonlyArray<SentGroup>
}

/** Where the messages of an entry stand among those of the log, and how they were read: counted from the first that was read with them. */
interface SentGroup extends MessageRange {
  readonly read: MessageGroup
}

/** A message that is added, with its tokens where they are known. */
export interface CountedMessage extends RelayedMessage {
  readonly text?: CountedText
}

/** A conversation without messages. */
export const emptyLog = (dialect: Dialect): ConversationLog => ({
  ...knownConversation(),
  dialect,
  messages: [],
  groups: []
})

/** The tool has this name in all conversations, so that searches recognise its answers as copies. */
const ownName = "recall"

/** Whether a call is of our tool. Its name has a number where the client has a tool of the same name. */
const isOwnTool = (name: string | undefined): boolean => /^palimpsest_recall(?:_\d+)?$/.test(name ?? "")

/** A part of a message, with our own tool under its one name. */
const withOwnName = (part: Part): Part => {
  const { functionCall, functionResponse } = part
  if (functionCall !== undefined && isOwnTool(functionCall.name)) {
    return { ...part, functionCall: { ...functionCall, name: ownName } }
  }
  return functionResponse !== undefined && isOwnTool(functionResponse.name)
    ? { ...part, functionResponse: { ...functionResponse, name: ownName } }
    : part
}

/** The tokens of a group's parts, where its messages are counted. Together they may have others than each has alone. */
const countsOf = ({ content, from, to }: MessageGroup, messages: ReadonlyArray<CountedMessage>) => {
  const counts = messages.slice(from, to).flatMap(({ text }) => text?.count.parts ?? [])
  return counts.length === content.parts.length ? counts : undefined
}

/** Adds messages. */
export const withMessages = Effect.fnUntraced(function* (
  log: ConversationLog,
  messages: ReadonlyArray<CountedMessage>
) {
  const added = messages.map(({ json }) => json)
  const start = log.messages.length
  const groups = wire[log.dialect].messages
    .read(added.map(parsedOrUndefined))
    .map((read): SentGroup => ({ from: start + read.from, to: start + read.to, read }))
  const drafts = groups.map(({ read: { content } }, index): Draft => ({
    content: { ...content, parts: content.parts.map(withOwnName) },
    origin: { line: log.groups.length + index + 1, ids: [] }
  }))
  return {
    ...withEntries(log, yield* entriesOf(log, drafts, (_, at) => groups[at] && countsOf(groups[at].read, messages))),
    messages: [...log.messages, ...added],
    groups: [...log.groups, ...groups]
  }
})

/** A log without the messages from a place on, where no group is open. `base` is the log to which the others were added. */
export const logUpTo = (base: ConversationLog, whole: ConversationLog, end: number): ConversationLog => {
  const groups = whole.groups.filter(({ to }) => to <= end)
  const added = entries(whole.conversation).slice(entries(base.conversation).length)
  return {
    ...withEntries(base, added.slice(0, groups.length - base.groups.length)),
    messages: whole.messages.slice(0, end),
    groups
  }
}

/** Returns the number of messages up to the last that a patch changes. */
export const changedEnd = ({ conversation, groups }: ConversationLog, patch: Patch): number => {
  const items = view(conversation)
  const dropped = patch.drop === undefined ? [] : droppedEntries(items, patch.drop)
  const shorter = new Set(patch.shorten.map(({ entry }) => entry))
  const shortened = items.flatMap(({ entry }) => (shorter.has(entry.id) ? [entry] : []))
  return [...dropped, ...shortened].reduce((end, entry) => Math.max(end, rangeOf(entry, groups)?.to ?? 0), 0)
}

/** Whether a cut separates messages that belong together. */
export const isWithinGroup = ({ groups }: ConversationLog, at: number): boolean =>
  groups.some(({ from, to }) => from < at && at < to)

/** Writes an item of the view that does not consist of messages of the client as they came. */
const itemMessages = ({ dialect, groups, messages }: ConversationLog, item: ViewItem): ReadonlyArray<string> => {
  const group = rangeOf(item.entry, groups)
  const values = group === undefined ? [] : messages.slice(group.from, group.to).map(parsedOrUndefined)
  // The group counts from the first message that it was read with.
  const padded = [...Array.from({ length: group?.read.from ?? 0 }), ...values]
  return writtenMessages(wire[dialect].messages, item, group?.read, padded).map((value) => JSON.stringify(value))
}

/** Returns the messages of the view as they are sent. */
export const viewMessages = (log: ConversationLog): ReadonlyArray<string> =>
  arrangedMessages(log.conversation, log.groups, log.messages.length)
    .flatMap((each) => (typeof each === "number" ? (log.messages[each] ?? []) : itemMessages(log, each)))
    .map(withoutCacheMarks)
