import { EntryId } from "../../conversation/Conversation.ts"
import { unprotect } from "../../text/UntrustedText.ts"
import type { Snapshot } from "../Snapshot.ts"
import { sentence } from "./UserRequests.ts"

/** Sentences in which the agent states a decision and its reason. */

const settled =
  /\b(?:decided|decision|I'll (?:use|go with|keep|switch|take)|going with|instead of|because|root cause|the (?:issue|problem|bug|cause|fix) (?:is|was)|turns out|chose|opted|rather than|the approach|trade-?off)\b/i

/** Code, headings and announcements are no decisions. */
const noDecision = /[:?]\**$|^(?:\/\/|#|\||[-+]{3}|(?:now,? )?let me\b)/i

/** Returns the sentences of the agent that state a decision. */
export const decisionsIn = (text: string): ReadonlyArray<string> =>
  [...text.slice(0, 20_000).matchAll(sentence)]
    .map(([match]) => match.replace(/^[\s*-]+/, "").trim())
    .filter((piece) => piece.length >= 40 && piece.length <= 400 && !noDecision.test(piece) && settled.test(piece))

/** A decision that an earlier snapshot tells. */
interface StatedDecision {
  readonly entry: EntryId
  readonly text: string
  readonly handle: undefined
}

/** Matches the agent's last words in a snapshot. */
const nowLine = /^- now \((e\d+)\), in the agent's words: ([^]*)$/

/** Returns the decisions in the last words that a snapshot tells whole: no other line of it tells them. */
export const statedDecisions = ({ task_state }: Snapshot): ReadonlyArray<StatedDecision> =>
  task_state.flatMap((item) => {
    const [, entry, text = ""] = nowLine.exec(item.text) ?? []
    return entry === undefined || text.includes(" … ")
      ? []
      : decisionsIn(unprotect(text)).map((piece) => ({ entry: EntryId.make(entry), text: piece, handle: undefined }))
  })
