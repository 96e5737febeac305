/**
 * Markup by tagged templates. Every value in a template is escaped, in text and in quoted attributes, unless it is markup made
 * by this file. Text of a transcript can thus never become markup, anywhere on the page.
 */

/** A piece of markup. Only this file creates it. */
export interface Html {
  readonly html: string
}

type Value = string | number | Html | ReadonlyArray<Html>

/**
 * Characters that are not shown as themselves: markup characters, controls, characters that reorder or hide text, lone
 * surrogates.
 */
const special = /[&<>"'\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\p{Noncharacter_Code_Point}/gu
/** A text without special characters. Tested without code points, which is much faster; most texts match. */
const plain = /^[\n\t !#-%(-;=?-~\u00a1-\u00ac\u00ae-\u05ff]*$/

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "\n": "\n",
  "\t": "\t",
  // Joiners combine letters and emoji or mark line breaks; text reads wrongly without them.
  "\u200c": "\u200c",
  "\u200d": "\u200d",
  "\u00ad": "\u00ad"
}

const hex = (code: number): string => code.toString(16).toUpperCase()

/** A visible, harmless form of a character that has no glyph of its own. */
const visibleForm = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  // Caret notation, as terminals show it: ^[ is escape, ^? is delete.
  if (code < 0x20 || code === 0x7f) return `⟨^${String.fromCharCode(code ^ 0x40)}⟩`
  // A byte of the file that was not UTF-8 (Bytes.ts).
  if (code >= 0xdc80 && code <= 0xdcff) return `⟨byte ${hex(code - 0xdc00)}⟩`
  return `⟨U+${hex(code).padStart(4, "0")}⟩`
}

/** Escapes a text for use as text or as a quoted attribute value. The result is well-formed for every input. */
export const escape = (text: string): string =>
  plain.test(text) ? text : text.replace(special, (character) => escapes[character] ?? visibleForm(character))

const rendered = (value: Value): string => {
  if (typeof value === "string") return escape(value)
  if (typeof value === "number") return String(value)
  return "html" in value ? value.html : value.map((each) => each.html).join("")
}

/** Makes markup from a template: `markup\`<p>${text}</p>\``. */
export const markup = (strings: TemplateStringsArray, ...values: ReadonlyArray<Value>): Html => {
  let text = strings[0] ?? ""
  for (const [index, value] of values.entries()) text += rendered(value) + (strings[index + 1] ?? "")
  return { html: text }
}

/** Empty markup. */
export const none: Html = { html: "" }

/** Marks a string as markup. Only for the charts and the page's own sheet and script, never for text of a transcript. */
export const trusted = (text: string): Html => ({ html: text })

/**
 * Shows a text exactly, including line breaks, in a preformatted block. Carriage returns at line ends are kept and not shown;
 * the first line break is doubled, because parsers drop it.
 */
export const preformatted = (text: string): Html =>
  trusted(`<pre>\n${text.split("\r\n").map(escape).join("&#13;\n")}</pre>`)
