/**
 * Makes invisible characters of untrusted text visible. A character without an appearance of its own, or one that changes how its
 * neighbours look, is written as an escape such as `\u{202e}`. Texts of all scripts and emoji stay as they are: joiners and
 * variation selectors stay where the script needs them, and nowhere else.
 */

/** Scripts in which joiners shape letters. */
const joined =
  "[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Nkoo}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}]"

/** The flags of England, Scotland and Wales: the only tag sequences that are emoji. */
const taggedFlag =
  "\\u{1f3f4}\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}"

/** Hidden characters that are legitimate in these positions. */
const needed = [
  taggedFlag,
  // A joiner between letters that it joins or separates, and between the parts of an emoji.
  `(?<=${joined})[\\u200c\\u200d](?=${joined})`,
  "(?<=\\p{Extended_Pictographic}\\ufe0f?\\p{Emoji_Modifier}?)\\u200d(?=\\p{Extended_Pictographic})",
  // One variation selector after a character that has variants.
  "(?<=[\\p{Emoji}\\p{Extended_Pictographic}])[\\ufe0e\\ufe0f]",
  "(?<=[\\p{Ideographic}\\p{Sm}])[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]",
  "(?<=\\p{scx=Mong})[\\u180b-\\u180d\\u180f]",
  // Visible signs that Unicode classifies as formatting: they stand over numbers in Arabic, Syriac and Kaithi.
  "[\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u{110bd}\\u{110cd}]",
  // Code points reserved for future emoji.
  "\\p{Extended_Pictographic}"
].join("|")

/**
 * Controls, formatting (directions, zero widths, tags), lone surrogates, private and unassigned characters, line and paragraph
 * separators, characters that are ignored by default (selectors, fillers), and the Braille pattern without dots.
 */
const hidden = "[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]"

const inLine = new RegExp(`(${needed})|${hidden}`, "gu")
const inBlock = new RegExp(`(${needed}|[\\n\\t])|${hidden}`, "gu")

/** Returns the escape of a character: `\u{202e}`. */
export const codePointEscape = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

const keptOrEscaped = (character: string, kept: string | undefined): string => kept ?? codePointEscape(character)

/** Most lines: the patterns above take many times as long, and some milliseconds to compile. */
const plainLine = /^[ -~]*$/
const plainBlock = /^[ -~\n\t]*$/
/** Most others: nothing in them is to be escaped. */
const isHidden = new RegExp(`${hidden}`, "u")
const isHiddenInBlock = new RegExp(`(?![\\n\\t])${hidden}`, "u")

/** Escapes invisible characters and puts the text on one line. Visible characters and blanks stay as they are. */
export const visibleLine = (text: string): string =>
  plainLine.test(text) || !isHidden.test(text) ? text : text.replace(inLine, keptOrEscaped)

/** Escapes invisible characters in a text of several lines; line breaks and tabs stay. */
export const visibleBlock = (text: string): string =>
  plainBlock.test(text) || !isHiddenInBlock.test(text)
    ? text
    : text.replace(/\r\n?/g, "\n").replace(inBlock, keptOrEscaped)

/**
 * Makes a `visibleBlock` for a text that comes in pieces. A character that depends on its neighbours waits for the next piece.
 * The returned function returns the text that can be shown so far; `undefined` ends the text. Mutable.
 */
export const visibleStream = (): ((piece: string | undefined) => string) => {
  let before = ""
  let held = ""
  return (piece) => {
    const text = held + (piece ?? "")
    // A carriage return, half a surrogate pair, a joiner, or a flag that may have tags depends on the next piece.
    const at = piece === undefined ? -1 : text.search(waiting)
    const now = at < 0 ? text : text.slice(0, at)
    held = at < 0 ? "" : text.slice(at)
    // Only the last shown characters matter as context, and they are not shown again.
    const shown = visibleBlock(before + now).slice(visibleBlock(before).length)
    before = now === "" ? before : lastCharacters(before + now)
    return shown
  }
}

const waiting =
  /(?:\r|[\u200c\u200d]|[\u200c\u200d]?(?:[\ud800-\udbff]|\ud83c\udff4(?:\udb40[\udc20-\udc7e]){0,5}\udb40?))$/

/** Returns the last characters, starting at a character boundary. */
const lastCharacters = (text: string): string => Array.from(text.slice(-8)).slice(-3).join("")

/** Printable ASCII with single blanks: nothing to escape. */
const ordinary = /^(?:[!-~]+(?: [!-~]+)*)?$/

/** Escapes invisible characters, puts the text on one line, and removes terminal sequences that only set colours or move the cursor. */
export const printableLine = (text: string): string =>
  ordinary.test(text)
    ? text
    : visibleLine(text.replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "").replace(/[\s\p{Zl}\p{Zp}]+/gu, " ")).trim()
