import { Effect } from "effect"
import {
  append,
  appendAll,
  compressed,
  type Conversation,
  empty,
  entries,
  type EntryId,
  entryId,
  type Patch,
  view,
  type ViewItem
} from "../../domain/conversation/Conversation.ts"
import { type DroppedRange, droppedEntries } from "../../domain/conversation/Recall.ts"
import type { CompressedView, SentMessage } from "../../domain/gateway/CompressedView.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { withoutCacheMarks } from "../../domain/wire/anthropic/CacheMarks.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"
import { type MessageGroup, shortenedMessages } from "../../domain/wire/MessageCodec.ts"
import { HandleIndex, makeEntry } from "../session/EntryBuilder.ts"

/** A conversation of the gateway in the form of the other modules, with the exact text of each message. */

/** The messages behind an entry. */
interface EntrySource {
  /** Instructions directly before the entry, then its own messages. */
  readonly before: ReadonlyArray<string>
  readonly own: ReadonlyArray<string>
  readonly values: ReadonlyArray<unknown>
  readonly group: MessageGroup
  /** The number of messages up to the last one of the entry, among those that were added together. */
  readonly end: number
}

/** A conversation, its messages and the ranges that left it. Immutable: adding messages makes a new value. */
export interface ConversationLog {
  readonly dialect: Dialect
  readonly conversation: Conversation
  readonly handles: HandleIndex
  readonly sources: ReadonlyMap<EntryId, EntrySource>
  /** Instructions after the last entry. */
  readonly trailing: ReadonlyArray<string>
  readonly ranges: ReadonlyArray<DroppedRange>
}

/** A conversation without messages. */
export const emptyLog = (dialect: Dialect): ConversationLog => ({
  dialect,
  conversation: empty,
  handles: new HandleIndex(),
  sources: new Map(),
  trailing: [],
  ranges: []
})

/** The tool has this name in all conversations, so that searches recognise its answers as copies. */
const ownName = "recall"

/** Adds messages. */
export const withMessages = Effect.fnUntraced(function* (
  log: ConversationLog,
  messages: ReadonlyArray<SentMessage>,
  isOwnTool: (name: string) => boolean
) {
  const { dialect, handles } = log
  const values = messages.map(({ json }) => parsedOrUndefined(json))
  const groups = wire[dialect].messages.read(values)
  const sources = new Map(log.sources)
  let { conversation } = log
  let last = 0
  const jsons = (from: number, to: number) => messages.slice(from, to).map(({ json }) => json)
  for (const group of groups) {
    const { content, from, to } = group
    const parts = content.parts.map((part) => {
      const { functionCall, functionResponse } = part
      if (functionCall !== undefined && isOwnTool(functionCall.name)) {
        return { ...part, functionCall: { ...functionCall, name: ownName } }
      }
      return functionResponse?.name !== undefined && isOwnTool(functionResponse.name)
        ? { ...part, functionResponse: { ...functionResponse, name: ownName } }
        : part
    })
    const draft = { content: { ...content, parts } }
    const entry = yield* makeEntry(draft, entryId(conversation.next), handles)
    conversation = append(conversation, entry)
    const before = [...(last === 0 ? log.trailing : []), ...jsons(last, from)]
    sources.set(entry.id, { before, own: jsons(from, to), values: values.slice(from, to), group, end: to })
    last = to
  }
  const trailing = groups.length === 0 ? [...log.trailing, ...jsons(0, messages.length)] : jsons(last, messages.length)
  return { ...log, conversation, sources, trailing } satisfies ConversationLog
})

/** Returns the log with only the first `end` of the messages that `base` does not have. */
export const cutAt = (
  whole: ConversationLog,
  base: ConversationLog,
  messages: ReadonlyArray<SentMessage>,
  end: number
): ConversationLog => {
  const added = entries(whole.conversation).filter(
    ({ id }) => !base.sources.has(id) && (whole.sources.get(id)?.end ?? Infinity) <= end
  )
  const last = added.reduce((most, { id }) => Math.max(most, whole.sources.get(id)?.end ?? 0), 0)
  const sources = new Map(base.sources)
  for (const { id } of added) {
    const source = whole.sources.get(id)
    if (source !== undefined) sources.set(id, source)
  }
  const rest = messages.slice(last, end).map(({ json }) => json)
  return {
    ...base,
    conversation: appendAll(base.conversation, added),
    sources,
    trailing: added.length === 0 ? [...base.trailing, ...rest] : rest
  }
}

/** Returns the end of what a patch changes, among the messages that were added last. */
export const changedEnd = (
  { conversation, sources }: ConversationLog,
  patch: Patch,
  added: ReadonlySet<EntryId>
): number => {
  const dropped = patch.drop === undefined ? [] : droppedEntries(view(conversation), patch.drop).map(({ id }) => id)
  const changed = [...dropped, ...patch.shorten.map(({ entry }) => entry)]
  return changed.reduce((end, id) => Math.max(end, added.has(id) ? (sources.get(id)?.end ?? 0) : 0), 0)
}

/** Whether a cut among the messages that were added last separates messages that belong together. */
export const isWithinGroup = ({ sources }: ConversationLog, added: ReadonlySet<EntryId>, at: number): boolean => {
  for (const id of added) {
    const source = sources.get(id)
    if (source !== undefined && source.group.from < at && at < source.end) return true
  }
  return false
}

/** Returns the ids of the entries that a log has and an earlier one does not. */
export const addedSince = (log: ConversationLog, earlier: ConversationLog): ReadonlySet<EntryId> =>
  new Set([...log.sources.keys()].filter((id) => !earlier.sources.has(id)))

/** Applies a compression. */
export const withPatch = (
  log: ConversationLog,
  { dropped, patch }: Pick<CompressedView, "dropped" | "patch">
): ConversationLog => {
  const range =
    patch.drop === undefined || dropped === null
      ? []
      : [{ handle: dropped, entries: droppedEntries(view(log.conversation), patch.drop) }]
  log.handles.restore(patch.insert)
  return { ...log, conversation: compressed(log.conversation, patch), ranges: [...log.ranges, ...range] }
}

/** Returns the messages of an item as they are sent: the client's own, unless parts are shown shorter. */
const itemMessages = ({ dialect, sources }: ConversationLog, { entry, shortened }: ViewItem): ReadonlyArray<string> => {
  const source = sources.get(entry.id)
  if (source === undefined) return [JSON.stringify(wire[dialect].messages.write(entry.content))]
  if (shortened.size === 0) return source.own
  const { group, values } = source
  // The group counts from the first message that it was read with.
  const padded = [...Array.from({ length: group.from }), ...values]
  return shortenedMessages(padded, group, shortened).map((value) => JSON.stringify(value))
}

/**
 * Returns the messages of the view as they are sent. Instructions are never left out; those among messages that left
 * come first.
 */
export const viewMessages = (log: ConversationLog): ReadonlyArray<string> => {
  const items = view(log.conversation)
  const shown = new Set(items.map(({ entry }) => entry.id))
  const left = [...log.sources].flatMap(([id, { before }]) => (shown.has(id) ? [] : before))
  const own = items.flatMap((item) => [...(log.sources.get(item.entry.id)?.before ?? []), ...itemMessages(log, item)])
  return [...left, ...own, ...log.trailing].map(withoutCacheMarks)
}
