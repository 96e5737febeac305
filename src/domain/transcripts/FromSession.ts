import {
  append,
  compressed,
  compressions,
  type Conversation,
  type Draft,
  empty,
  entries,
  type Entry,
  type EntryId,
  itemParts,
  type Patch,
  view,
  type ViewItem
} from "../Conversation.ts"
import type { Session } from "../Session.ts"
import type { Work } from "../Work.ts"
import type { Step, Transcript } from "./Transcript.ts"

/** A conversation of ours as another agent would have had it: the inverse of taking one over. */

const draftOf = ({ handles: _handles, id: _id, tokens: _tokens, ...draft }: Entry): Draft => draft

/** A message as the model saw it. What a call counted is told once, with the message that it brought. */
const shownDraft = (item: ViewItem): Draft => {
  const { source, usage: _usage, ...draft } = draftOf(item.entry)
  const kept = Object.entries(source ?? {}).filter(([part]) => !item.shortened.has(Number(part)))
  return {
    ...draft,
    content: { ...draft.content, parts: itemParts(item) },
    ...(kept.length === 0 ? {} : { source: Object.fromEntries(kept) })
  }
}

const isSpoken = (item: ViewItem): boolean => item.entry.author !== "environment"

/**
 * A compression as a compaction. Where it only put something in place of the oldest messages, it says so; where it did
 * more (shortened parts, something dropped in the middle), everything that was shown from then on is told anew.
 * `messages`: those that stand in the view as the steps so far show it, with their numbers; what was told anew does not.
 */
const compaction = (before: Conversation, after: Conversation, patch: Patch, messages: Map<EntryId, number>): Step => {
  const shown = view(before).filter(isSpoken)
  const { drop } = patch
  const last = drop === undefined ? -1 : shown.findIndex(({ entry }) => entry.id === drop.to)
  const kept = shown.slice(last + 1)
  const opens = drop === undefined || shown[0]?.entry.id === drop.from
  const plain =
    opens &&
    (drop === undefined || last >= 0) &&
    patch.shorten.length === 0 &&
    kept.every((item) => messages.has(item.entry.id))
  const about = { _tag: "Compaction", trigger: "auto", tokensBefore: undefined } as const
  if (!plain) {
    messages.clear()
    return { ...about, insert: view(after).filter(isSpoken).map(shownDraft), keptFrom: undefined }
  }
  const first = kept[0]
  return {
    ...about,
    insert: patch.insert.map(draftOf),
    keptFrom: first === undefined ? undefined : messages.get(first.entry.id)
  }
}

/**
 * The messages of a session in order, with the compressions that hold. What was undone is not told, and neither is what a
 * compression remembers for itself: its strategy and its handles.
 */
export function* fromSession(session: Session): Work<Transcript> {
  const log = entries(session.conversation)
  const laid = compressions(session.conversation)
  const steps: Array<Step> = []
  const messages = new Map<EntryId, number>()
  let conversation = empty
  let next = 0
  let told = 0
  const lay = (count: number) => {
    for (let one = laid[next]; one !== undefined && one.entries <= count; one = laid[next]) {
      const after = compressed(conversation, one.patch)
      steps.push(compaction(conversation, after, one.patch, messages))
      conversation = after
      next += 1
    }
  }
  for (const [index, entry] of log.entries()) {
    lay(index)
    steps.push({ _tag: "Message", draft: draftOf(entry) })
    messages.set(entry.id, told)
    told += 1
    conversation = append(conversation, entry)
    yield 200
  }
  lay(log.length)
  const { started } = session
  return {
    format: "palimpsest",
    session: started?.importedFrom?.session ?? started?.session,
    cwd: started?.cwd,
    model: started?.model,
    steps,
    skipped: {}
  }
}
