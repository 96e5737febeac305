/**
 * Wraps hook output for the model so that it cannot pass for other text: text that did not come from the user must
 * never look as if it did.
 */

import { firstUnits } from "../text/Bytes.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { untrustedBlock } from "../text/UntrustedText.ts"

/** Longest context from one hook that the model receives, in characters. */
const maxContextChars = 32_768

const bounded = (words: string): string =>
  words.length > maxContextChars
    ? `${firstUnits(words, maxContextChars)}\n[the rest is left out: a hook may add at most ${maxContextChars} characters]`
    : words

/** Wraps hook text in an element it cannot close: `<` and `>` are escaped. */
export const hookContext = (words: string): string =>
  `<hook_context>\n${untrustedBlock(bounded(words)).replaceAll("<", "&lt;").replaceAll(">", "&gt;")}\n</hook_context>`

/** The same for a message in the user role: marked as not written by the user. */
export const hookMessage = (words: string): string => `${runtimeMark} Added by a hook:\n${hookContext(words)}`
