/**
 * Text of tools, models and files as a reader can see all of it: what has no look of its own, or changes how its neighbours
 * look, is spelled out as `\u{202e}`. Texts of all scripts and emoji stay as they are: a joiner or a selector stays where
 * writing needs it, and nowhere else.
 */

/** The scripts in which joiners shape letters. */
const joined =
  "[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Nkoo}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}]"

/** The flags of England, Scotland and Wales: the only sequences of tags that are emoji. */
const taggedFlag =
  "\\u{1f3f4}\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}"

/** What is hidden elsewhere and belongs to a text here. */
const needed = [
  taggedFlag,
  // Between letters that it joins or parts, and between the parts of an emoji.
  `(?<=${joined})[\\u200c\\u200d](?=${joined})`,
  "(?<=\\p{Extended_Pictographic}\\ufe0f?\\p{Emoji_Modifier}?)\\u200d(?=\\p{Extended_Pictographic})",
  // Selectors, one behind what they select a form of.
  "(?<=[\\p{Emoji}\\p{Extended_Pictographic}])[\\ufe0e\\ufe0f]",
  "(?<=[\\p{Ideographic}\\p{Sm}])[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]",
  "(?<=\\p{scx=Mong})[\\u180b-\\u180d\\u180f]",
  // Signs that are seen, though Unicode counts them as formatting: they stand over numbers in Arabic, Syriac and Kaithi.
  "[\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u{110bd}\\u{110cd}]",
  // Emoji to come.
  "\\p{Extended_Pictographic}"
].join("|")

/**
 * Controls, formatting (directions, zero widths, tags), lone surrogates, private and unassigned characters, breaks of lines
 * and paragraphs, whatever is ignored by default (selectors, fillers), and the Braille pattern without dots.
 */
const hidden = "[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800]"

const inLine = new RegExp(`(${needed})|${hidden}`, "gu")
const inBlock = new RegExp(`(${needed}|[\\n\\t])|${hidden}`, "gu")

/** A character as its number. */
export const spelled = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`

const seen = (character: string, kept: string | undefined): string => kept ?? spelled(character)

/** A text as one line in which everything is seen. What is seen already stays as it is, blanks too. */
export const visibleLine = (text: string): string => text.replace(inLine, seen)

/** A text of several lines in which everything but their breaks and tabs is seen. */
export const visibleBlock = (text: string): string => text.replace(/\r\n?/g, "\n").replace(inBlock, seen)

/**
 * `visibleBlock` for a text that comes in pieces: what only its neighbour decides waits for it. Returns what can be shown
 * of a piece; `undefined` ends the text. Mutable.
 */
export const visibleStream = (): ((piece: string | undefined) => string) => {
  let before = ""
  let held = ""
  return (piece) => {
    const text = held + (piece ?? "")
    // A carriage return, half a pair, a joiner, a flag that may have tags: the next piece says what they are.
    const at = piece === undefined ? -1 : text.search(waiting)
    const now = at < 0 ? text : text.slice(0, at)
    held = at < 0 ? "" : text.slice(at)
    // Of what is shown already only the last characters matter, and they are shown once.
    const shown = visibleBlock(before + now).slice(visibleBlock(before).length)
    before = now === "" ? before : lastCharacters(before + now)
    return shown
  }
}

const waiting =
  /(?:\r|[\u200c\u200d]|[\u200c\u200d]?(?:[\ud800-\udbff]|\ud83c\udff4(?:\udb40[\udc20-\udc7e]){0,5}\udb40?))$/

/** The last characters, from the beginning of one that is whole. */
const lastCharacters = (text: string): string => Array.from(text.slice(-8)).slice(-3).join("")
