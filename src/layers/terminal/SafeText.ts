/** Escapes text for a terminal, so that no text from a model, a file or a clipboard can control it. */

import { codePointEscape } from "../../domain/text/InvisibleCharacters.ts"

/** Removes everything a terminal would act on from a pasted text, except line breaks and tabs. */
export const pasted = (text: string): string =>
  text
    .replace(/\r\n?|\p{Zl}|\p{Zp}/gu, "\n")
    .replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "")
    .replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")

/** The only sequences of a text that pass to a terminal: text styles. */
// oxlint-disable-next-line no-control-regex
const allowed = /(\u001b\[\d{1,2}m)/
/** Joiners are kept: they are parts of letters and emoji, and a word that arrives in pieces must not be split at them. */
const steering = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Escapes every control sequence in a text but its styles. All texts for a terminal pass through here. */
export const shown = (text: string): string =>
  text
    .split(allowed)
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(/\r\n?/g, "\n").replace(steering, codePointEscape)))
    .join("")
