/** Sentences in which the agent states a decision and its reason. */

import { sentence } from "./UserRequests.ts"

const settled =
  /\b(?:decided|decision|I'll (?:use|go with|keep|switch|take)|going with|instead of|because|root cause|the (?:issue|problem|bug|cause|fix) (?:is|was)|turns out|chose|opted|rather than|the approach|trade-?off)\b/i

/** Code, headings and announcements are no decisions. */
const noDecision = /[:?]\**$|^(?:\/\/|#|\||[-+]{3}|(?:now,? )?let me\b)/i

/** Returns the sentences of the agent that state a decision. */
export const decisionsIn = (text: string): ReadonlyArray<string> =>
  [...text.slice(0, 20_000).matchAll(sentence)]
    .map(([match]) => match.replace(/^[\s*-]+/, "").trim())
    .filter((piece) => piece.length >= 40 && piece.length <= 400 && !noDecision.test(piece) && settled.test(piece))
