/** Makes the transcript of a session for another agent's format: the inverse of an import. */

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
} from "../conversation/Conversation.ts"
import type { Session } from "../session/Session.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { nativeContent } from "../wire/ModelState.ts"
import type { Step, Transcript } from "./Transcript.ts"

const draftOf = ({ bounded: _bounded, handles: _handles, id: _id, tokens: _tokens, ...draft }: Entry): Draft => draft

/** Returns the texts that stand in the view in place of whole results, by the id of their call. */
const shownTexts = (log: ReadonlyArray<Entry>): ReadonlyMap<string, string> =>
  new Map(
    log.flatMap(({ bounded = {}, content }) =>
      Object.entries(bounded).flatMap(([index, form]) => {
        const id = content.parts[Number(index)]?.functionResponse?.id
        return id !== undefined && "text" in form ? [[id, form.text] as const] : []
      })
    )
  )

/**
 * Returns a message as the model saw it. The usage of a call stays with the message that the call produced, and is not
 * repeated.
 */
const shownDraft = (item: ViewItem): Draft => {
  const { source, usage: _usage, ...draft } = draftOf(item.entry)
  const kept = Object.entries(source ?? {}).filter(([part]) => !item.shortened.has(Number(part)))
  return {
    ...draft,
    content: { ...draft.content, parts: itemParts(item) },
    ...(kept.length === 0 ? {} : { source: Object.fromEntries(kept) })
  }
}

const isDialogue = (item: ViewItem): boolean => item.entry.author !== "environment"

/**
 * Converts a compression to a compaction. When it only replaced the oldest messages, the compaction does the same. When it
 * did more (shortened parts, dropped messages in the middle), the compaction inserts everything that was shown from then on.
 * `messages` are those in the view after the previous steps, with their numbers.
 */
const compaction = (before: Conversation, after: Conversation, patch: Patch, messages: Map<EntryId, number>): Step => {
  const shown = view(before).filter(isDialogue)
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
    return { ...about, insert: view(after).filter(isDialogue).map(shownDraft), keptFrom: undefined }
  }
  const first = kept[0]
  return {
    ...about,
    insert: patch.insert.map(draftOf),
    keptFrom: first === undefined ? undefined : messages.get(first.entry.id)
  }
}

/**
 * Makes the transcript of a session: its messages in order, with the compressions in effect. Undone compressions are left
 * out, and so are the strategy and handles of the others.
 */
export function* sessionToTranscript(session: Session): SlicedWork<Transcript> {
  const log = entries(session.conversation)
  const laid = compressions(session.conversation)
  const steps: Array<Step> = []
  const messages = new Map<EntryId, number>()
  let conversation = empty
  let next = 0
  let messageCount = 0
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
    const draft = draftOf(entry)
    steps.push({ _tag: "Message", draft: { ...draft, content: nativeContent(draft.content) } })
    messages.set(entry.id, messageCount)
    messageCount += 1
    conversation = append(conversation, entry)
    yield
  }
  lay(log.length)
  const { started } = session
  const shown = shownTexts(log)
  return {
    format: "palimpsest",
    session: started?.importedFrom?.session ?? started?.session,
    cwd: started?.cwd,
    model: started?.model,
    steps,
    ...(shown.size === 0 ? {} : { shown }),
    skipped: {}
  }
}
