import { firstUnits } from "../../domain/Bytes.ts"

/**
 * Markup by tagged templates: whatever is put into one is escaped, in text and in quoted attributes alike, unless it was made by
 * one. So nothing that a transcript says can become markup, wherever on the page it stands.
 */

/** Text that is markup already. Only this file makes it. */
export interface Html {
  readonly html: string
}

type Value = string | number | Html | ReadonlyArray<Html>

/** Everything that is not shown as itself: markup's own characters, controls, what changes the order or hides, lone surrogates. */
const special = /[&<>"'\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\p{Noncharacter_Code_Point}/gu
/** A text that holds none of it, tested without code points: most do, and it is much faster. */
const plain = /^[\n\t !#-%(-;=?-~\u00a1-\u00ac\u00ae-\u05ff]*$/

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "\n": "\n",
  "\t": "\t",
  // They join letters and emoji, or tell where a word may break; without them text reads wrongly.
  "\u200c": "\u200c",
  "\u200d": "\u200d",
  "\u00ad": "\u00ad"
}

const hex = (code: number): string => code.toString(16).toUpperCase()

/** A character that has no look of its own, in a form that can be seen and does nothing. */
const named = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  // As terminals name the key that makes it: ^[ is escape, ^? is delete.
  if (code < 0x20 || code === 0x7f) return `⟨^${String.fromCharCode(code ^ 0x40)}⟩`
  // A byte of the file that was not UTF-8 (Bytes.ts).
  if (code >= 0xdc80 && code <= 0xdcff) return `⟨byte ${hex(code - 0xdc00)}⟩`
  return `⟨U+${hex(code).padStart(4, "0")}⟩`
}

/** A text for markup, as text or as the value of a quoted attribute. Well-formed, whatever the text was. */
export const escape = (text: string): string =>
  plain.test(text) ? text : text.replace(special, (character) => escapes[character] ?? named(character))

/** The beginning of a text, with an ellipsis where something is left out. */
export const clip = (text: string, length: number): string =>
  text.length <= length ? text : `${firstUnits(text, length)}…`

const rendered = (value: Value): string => {
  if (typeof value === "string") return escape(value)
  if (typeof value === "number") return String(value)
  return "html" in value ? value.html : value.map((each) => each.html).join("")
}

/** Markup around values: `markup\`<p>${text}</p>\``. */
export const markup = (strings: TemplateStringsArray, ...values: ReadonlyArray<Value>): Html => {
  let text = strings[0] ?? ""
  for (const [index, value] of values.entries()) text += rendered(value) + (strings[index + 1] ?? "")
  return { html: text }
}

/** Nothing. */
export const none: Html = { html: "" }

/** Markup that came from a trusted maker, the charts and the page's own sheet and script. Never for what a transcript says. */
export const trusted = (text: string): Html => ({ html: text })

/**
 * A text exactly as it is, line breaks included, in a preformatted block. Carriage returns at the ends of lines are kept and not
 * shown; the first line break is doubled, because parsers drop it.
 */
export const preformatted = (text: string): Html =>
  trusted(`<pre>\n${text.split("\r\n").map(escape).join("&#13;\n")}</pre>`)
