/**
 * Converts a web page to the text that a reader would see.
 *
 * This is our own code rather than `html-to-text`: that package builds a tree and walks it recursively in one go. On 2 MB of nested
 * `<div>` it takes minutes and then overflows the stack (this code takes a second), it cannot pause or be interrupted, it includes
 * elements that the page hides, and it adds 14 packages (190 kB bundled). On ordinary pages both are equally fast.
 */

import type { SlicedWork } from "./SlicedWork.ts"

/** Elements whose content is not readable text. */
const skippedElements: ReadonlySet<string> = new Set(
  "script style noscript template svg math iframe object canvas audio video select dialog title".split(" ")
)
/** Elements that start on a line of their own. */
const blockElements: ReadonlySet<string> = new Set(
  (
    "address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 " +
    "h5 h6 header hr html legend li main nav ol p pre section summary table tbody tfoot thead tr ul"
  ).split(" ")
)
/** Elements with an empty line before and after. */
const spacedBlocks: ReadonlySet<string> = new Set(
  "article blockquote dl figure h1 h2 h3 h4 h5 h6 ol p pre section table ul".split(" ")
)
const voidElements: ReadonlySet<string> = new Set(
  "area base br col embed hr img input link meta param source track wbr".split(" ")
)

/** Elements whose end tag is optional. Hidden ones are not skipped: without an end tag, their end is unknown. */
const optionalEnd: ReadonlySet<string> = new Set(
  "html body li p dt dd option optgroup tr td th thead tbody tfoot colgroup caption".split(" ")
)

const characters = `amp &  lt <  gt >  quot "  apos '  copy ©  reg ®  trade ™  hellip …  mdash —  ndash –  lsquo ‘  rsquo ’  ldquo “
  rdquo ”  laquo «  raquo »  bull •  middot ·  times ×  deg °  euro €  pound £  sect §  para ¶  larr ←  rarr →
  auml ä  ouml ö  uuml ü  Auml Ä  Ouml Ö  Uuml Ü  szlig ß  eacute é  egrave è  agrave à  ccedil ç  ntilde ñ`

/** The most common named character references of HTML. */
const charactersByName: Readonly<Record<string, string>> = Object.fromEntries([
  ["nbsp", " "],
  ["shy", ""],
  ...characters.split(/\s{2,}/).map((pair) => pair.split(" "))
])

const decoded = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return charactersByName[name] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? "\ufffd" : String.fromCodePoint(code)
  })

interface Tag {
  readonly name: string
  readonly closes: boolean
  readonly attributes: string
  /** The offset after the tag. */
  readonly end: number
}

/** Maximum length of a tag that is searched for attributes. Only inline images are longer, and they are not needed. */
const maxTagChars = 65_536

/** Parses the tag at `at`. Undefined: the `<` is an ordinary character. A `>` within quotes does not end a tag. */
const tagAt = (html: string, at: number): Tag | undefined => {
  const start = /^<(\/?)([A-Za-z][^\s/>]{0,63})/.exec(html.slice(at, at + 80))
  if (start === null) return undefined
  const from = at + start[0].length
  let quote = ""
  for (let i = from; i < html.length; i += 1) {
    const char = html[i] ?? ""
    if (quote !== "") {
      if (char === quote) quote = ""
    } else if ((char === '"' || char === "'") && /=\s*$/.test(html.slice(Math.max(from, i - 8), i))) quote = char
    else if (char === ">") {
      const attributes = html.slice(from, Math.min(i, from + maxTagChars))
      return { name: (start[2] ?? "").toLowerCase(), closes: start[1] === "/", attributes, end: i + 1 }
    }
  }
  // The tag never ends: the rest of the page is not text.
  return { name: (start[2] ?? "").toLowerCase(), closes: start[1] === "/", attributes: "", end: html.length }
}

const attribute = (attributes: string, name: string): string | undefined => {
  const match = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i").exec(attributes)
  const value = match?.[1] ?? match?.[2] ?? match?.[3]
  return value === undefined ? undefined : decoded(value)
}

/** Returns whether attributes hide an element. */
const isHidden = (attributes: string): boolean =>
  /(?:^|\s)hidden(?:\s|=|\/|$)/i.test(attributes) ||
  /display\s*:\s*none|visibility\s*:\s*hidden/i.test(attribute(attributes, "style") ?? "") ||
  attribute(attributes, "aria-hidden")?.toLowerCase() === "true"

const absolute = (href: string, base: string): string | undefined =>
  URL.canParse(href, base) && /^https?:/.test(new URL(href, base).protocol) ? new URL(href, base).href : undefined

/** Returns the end of the comment, declaration or instruction that begins at `at`. Undefined: none begins there. */
const afterMarkup = (html: string, at: number): number | undefined => {
  const [from, close] = html.startsWith("<!--", at)
    ? [at + 4, "-->"]
    : html.startsWith("<!", at) || html.startsWith("<?", at)
      ? [at + 2, ">"]
      : [at, ""]
  if (close === "") return undefined
  const end = html.indexOf(close, from)
  return end < 0 ? html.length : end + close.length
}

class Page {
  readonly #pieces: Array<string> = []
  /** Line breaks to write before the next word. */
  #breaks = 0
  #space = false
  #empty = true
  /** Characters written so far. */
  length = 0

  /** Puts the next words on a new line (1), or after an empty line (2). */
  newLine(count: number): void {
    if (!this.#empty) this.#breaks = Math.max(this.#breaks, count)
    this.#space = false
  }

  add(text: string): void {
    const words = text.replace(/[\s\u00a0]+/g, " ")
    if (words === " " || words === "") {
      this.#space ||= words === " "
      return
    }
    const inner = words.trim()
    this.#begin(words.startsWith(" "))
    this.#push(inner)
    this.#space = words.endsWith(" ")
  }

  /** Adds preformatted text as it is. */
  addLines(text: string): void {
    if (text === "") return
    this.#begin(false)
    this.#push(text)
  }

  #push(text: string): void {
    this.#pieces.push(text)
    this.length += text.length
  }

  #begin(space: boolean): void {
    if (this.#breaks > 0) this.#push("\n".repeat(this.#breaks))
    else if ((space || this.#space) && !this.#empty) this.#push(" ")
    this.#breaks = 0
    this.#space = false
    this.#empty = false
  }

  toString(): string {
    return this.#pieces.join("").trim()
  }
}

/** Returns the title of a page, on one line. */
const titleOf = (html: string): string => {
  const from = html.search(/<title[\s>]/i)
  if (from < 0) return ""
  const tag = tagAt(html, from)
  if (tag === undefined) return ""
  const end = html.slice(tag.end, tag.end + 4_096).search(/<\/title/i)
  return end < 0
    ? ""
    : decoded(html.slice(tag.end, tag.end + end))
        .replace(/\s+/g, " ")
        .trim()
}

/** Characters of text processed at a time. */
const textSlice = 32_768

/** Returns where to end a piece of text that begins at `at`: at most `end`, and never within a character reference. */
const cutAt = (html: string, at: number, end: number): number => {
  if (end - at <= textSlice) return end
  const to = at + textSlice
  const reference = html.lastIndexOf("&", to)
  return to - reference < 10 && reference > at ? reference : to
}

/** Writes the elements of a page. */
class Elements {
  readonly page = new Page()
  /** The element being skipped, and the number of open elements of that name. */
  left: { readonly name: string; depth: number } | undefined
  #preformatted = 0
  readonly #links: Array<string | undefined> = []
  readonly #html: string
  readonly #base: string

  constructor(html: string, base: string) {
    this.#html = html
    this.#base = base
  }

  text(words: string): void {
    if (this.#preformatted > 0) this.page.addLines(words)
    else this.page.add(words)
  }

  /** Takes what begins with the `<` at `at`. Returns the offset after it. */
  markup(at: number): number {
    const after = afterMarkup(this.#html, at)
    if (after !== undefined) return after
    const tag = tagAt(this.#html, at)
    if (tag === undefined) {
      if (this.left === undefined) this.page.add("<")
      return at + 1
    }
    const { attributes, closes, end, name } = tag
    const isEmpty = voidElements.has(name) || attributes.endsWith("/")
    if (this.left !== undefined) {
      if (name === this.left.name && !isEmpty) this.left.depth += closes ? -1 : 1
      if (this.left.depth === 0) this.left = undefined
      return end
    }
    if (!closes && !isEmpty && (skippedElements.has(name) || (!optionalEnd.has(name) && isHidden(attributes)))) {
      this.left = { name, depth: 1 }
      // Scripts and styles contain no tags.
      if (name !== "script" && name !== "style") return end
      const over = this.#html.slice(end).search(new RegExp(`</${name}`, "i"))
      return over < 0 ? this.#html.length : end + over
    }
    this.#shown(tag)
    return end
  }

  #shown({ attributes, closes, name }: Tag): void {
    const { page } = this
    if (blockElements.has(name)) page.newLine(spacedBlocks.has(name) ? 2 : 1)
    if (name === "pre") this.#preformatted = Math.max(0, this.#preformatted + (closes ? -1 : 1))
    if (name === "td" || name === "th") page.add(closes ? " " : " | ")
    if (name === "a" && closes) {
      const href = this.#links.pop()
      if (href !== undefined) page.add(` (${href})`)
    }
    if (closes) return
    if (name === "li") page.add("- ")
    if (/^h[1-6]$/.test(name)) page.add(`${"#".repeat(Number(name.slice(1)))} `)
    if (name === "img") {
      const alt = attribute(attributes, "alt")?.trim()
      if (alt !== undefined && alt !== "") page.add(`[${alt}]`)
    }
    if (name === "a") {
      const href = attribute(attributes, "href")
      this.#links.push(href === undefined || href.startsWith("#") ? undefined : absolute(href, this.#base))
    }
  }
}

/**
 * Extracts the text of a page: its title, then the visible text block by block, with link addresses and with marks for headings
 * and list items.
 *
 * Scripts, comments and hidden elements are left out: a user who looks at the page would not know that a model read them. Any input
 * gives some text, in time linear in its length. The text may end soon after `maxChars` characters.
 */
export function* htmlText(html: string, base: string, maxChars = Infinity): SlicedWork<string> {
  const elements = new Elements(html, base)
  const { page } = elements
  page.addLines(titleOf(html))
  page.newLine(2)
  let at = 0
  while (at < html.length && page.length <= maxChars) {
    const next = html.indexOf("<", at)
    const end = next < 0 ? html.length : next
    const to = elements.left === undefined ? end : at
    while (at < to && page.length <= maxChars) {
      const cut = cutAt(html, at, to)
      elements.text(decoded(html.slice(at, cut)))
      yield
      at = cut
    }
    yield
    if (next < 0) break
    at = elements.markup(next)
  }
  return page.toString()
}
