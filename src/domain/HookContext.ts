import { firstUnits } from "./Bytes.ts"
import { foreignBlock } from "./Foreign.ts"
import { runtimeMark } from "./RuntimeMark.ts"

/** What hooks have to say to a model, as text that can be told from all other text (spec 8, effects; law 6). */

/** Characters of one hook's words that a model is shown. */
const mostWords = 32_768

const bounded = (words: string): string =>
  words.length > mostWords
    ? `${firstUnits(words, mostWords)}\n[the rest is left out: a hook may add ${mostWords} characters]`
    : words

/** The words in an element that they cannot close: `<` and `>` are escaped. */
export const hookContext = (words: string): string =>
  `<hook_context>\n${foreignBlock(bounded(words)).replaceAll("<", "&lt;").replaceAll(">", "&gt;")}\n</hook_context>`

/** The same where it travels in the user's role: marked as not the user's. */
export const hookMessage = (words: string): string => `${runtimeMark} What a hook adds:\n${hookContext(words)}`
