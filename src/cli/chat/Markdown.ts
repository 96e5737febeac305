import { visibleStream } from "../../domain/text/InvisibleCharacters.ts"
import { ansi, columnsOf } from "../output/Output.ts"

/**
 * Renders streamed Markdown for a terminal. The output depends on the text alone, not on how it is split into pieces: each
 * character is processed by itself. Prose is printed word by word, everything else at the end of its line at the latest.
 *
 * One file: words, inline marks and lines are three state machines that pass each character from one to the next.
 */

/** Text styles. */
export interface Look {
  /** Styles strong text and headings. */
  readonly bold: (text: string) => string
  /** Styles emphasized text. */
  readonly italic: (text: string) => string
  /** Styles code. */
  readonly code: (text: string) => string
  /** Styles marks such as quote bars, rules and link addresses. */
  readonly dim: (text: string) => string
  /** Whether styles are the only mark of headings and code. */
  readonly isColoured: boolean
}

const unchanged = (text: string) => text

/** The look without colours: headings keep their `#` and code keeps its backticks. */
export const plain: Look = { bold: unchanged, italic: unchanged, code: unchanged, dim: unchanged, isColoured: false }

/** The look with the colours that every terminal has. */
export const coloured: Look = { bold: ansi(1), italic: ansi(3), code: ansi(36), dim: ansi(2), isColoured: true }

/** Options of a renderer. */
export interface Options {
  /** Columns to wrap prose at; Infinity disables wrapping. */
  readonly columns: number
  /** Text styles of the output. */
  readonly look: Look
}

/** A renderer of streamed text. */
export interface Renderer {
  /** Takes the next piece and returns the text to print now. */
  readonly push: (text: string) => string
  /** Ends the text: returns the remaining output with its final line break, and is ready for the next text. */
  readonly end: () => string
  /**
   * Discards the text so far and is ready for the next. Returns the line break that ends an unfinished line, or an empty string
   * when nothing was printed.
   */
  readonly drop: () => string
  /** Whether any of the text was printed. */
  readonly hasPrinted: () => boolean
}

type Paint = (text: string) => string
type Character = (character: string) => void

// --- words ----------------------------------------------------------------------------------------------------------------

/** Characters of scripts without spaces: a line can end after any of them. */
const isIdeograph = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u
/** Characters that cannot begin a line: combining marks and closing punctuation. */
const staysBehind = /[\p{M}\p{Pe}\p{Pf}\p{Po}\u200d\u30fc]/u
const isOpening = /[\p{Ps}\p{Pi}]/u

/** Wraps words at a number of columns. A word wider than a line is left to the terminal, so that it can be copied. */
const wordsOn = (columns: number, print: (text: string) => void) => {
  let column = 0
  /** The prefix of every line of the paragraph but its first; `indent` is its width. */
  let hanging = ""
  let indent = 0
  let gap = ""
  let word: Array<{ paint: Paint; text: string }> = []
  let last = ""

  const flush = () => {
    if (word.length === 0) return
    const width = columnsOf(word.map((run) => run.text).join(""))
    if (column > indent && column + gap.length + width > columns) {
      print(`\n${hanging}`)
      column = indent
    } else {
      print(gap)
      column += gap.length
    }
    for (const run of word) print(run.paint(run.text))
    column += width
    gap = ""
    word = []
    last = ""
  }

  return {
    /** Adds a character to the paragraph. */
    add: (character: string, paint: Paint) => {
      if (character === " " || character === "\t") {
        flush()
        gap += " "
        return
      }
      const mayBreak =
        last !== "" &&
        (isIdeograph.test(character) || isIdeograph.test(last)) &&
        !staysBehind.test(character) &&
        !isOpening.test(last)
      if (mayBreak) flush()
      last = character
      const run = word.at(-1)
      if (run?.paint === paint) run.text += character
      else word.push({ paint, text: character })
    },
    /** Begins a paragraph; `rest` is the prefix of its other lines. */
    begin: (first: string, firstWidth: number, rest: string, restWidth: number) => {
      print(first)
      column = firstWidth
      hanging = rest
      indent = restWidth
    },
    flush,
    /** Ends the paragraph. White space at its end is not printed. */
    end: () => {
      flush()
      gap = ""
      column = 0
      hanging = ""
      indent = 0
    },
    drop: () => {
      word = []
      gap = ""
      last = ""
      column = 0
      hanging = ""
      indent = 0
    }
  }
}

// --- within a line --------------------------------------------------------------------------------------------------------

/** A mark without its end within this many characters is plain text. */
const maxSpanChars = 500
/** Maximum depth of nested spans: bold, italic and code in a link. */
const maxSpanDepth = 3

const isWord = /[\p{L}\p{N}]/u
const isSpace = /^\s?$/
const isEscapable = /[!-/:-@[-`{-~]/

/**
 * Parses the inline Markdown of one line and emits its text: emphasis, code, links and escapes without their marks. A mark that
 * has no end is emitted as text.
 */
const inline = (
  look: Look,
  paint: Paint,
  depth: number,
  emit: (character: string, paint: Paint) => void
): { readonly add: Character; readonly end: () => void; readonly drop: () => void } => {
  /** Characters from a possible opening mark on. */
  let held: Array<string> = []
  /** The character before `held`. */
  let before = ""
  /** Marks, with their lengths, that have no end in the text being parsed again. */
  const endless = new Map<string, number>()
  const code: Paint = (text) => look.code(text)
  const dim: Paint = (text) => look.dim(text)

  const put = (character: string) => {
    before = character
    emit(character, paint)
  }
  const nest = (text: ReadonlyArray<string>, around: Paint) => {
    const inner = inline(look, around, depth + 1, emit)
    for (const character of text) inner.add(character)
    inner.end()
  }
  const close = (last: string) => {
    before = last
    held = []
  }

  /** Emits the first held character as text, because it opens no span, and parses the rest again. */
  const release = (): void => {
    const [first = "", ...rest] = held
    const opened = runAt(0, first)
    held = []
    put(first)
    // A run of several marks that opens nothing is text as a whole: a part of it must not open a span.
    let at = 0
    if (first === "*" || first === "_" || first === "`") {
      for (; rest[at] === first; at += 1) put(first)
    }
    const outer = endless.get(first)
    endless.set(first, Math.min(opened, outer ?? opened))
    for (const character of rest.slice(at)) add(character)
    if (outer === undefined) endless.delete(first)
    else endless.set(first, outer)
  }

  const runAt = (from: number, mark: string): number => {
    let length = 0
    while (held[from + length] === mark) length += 1
    return length
  }

  /** Whether `character`, which follows the held text, completes a span. If so, the span is emitted. */
  const closesBefore = (character: string): boolean => {
    const mark = held[0] ?? ""
    const opened = runAt(0, mark)
    let closing = 0
    while (held.length - closing > opened && held[held.length - 1 - closing] === mark) closing += 1
    if (closing === 0 || character === mark) return false
    const text = held.slice(opened, held.length - closing)
    if (mark === "`") {
      if (closing !== opened) return false
      const quoted = look.isColoured ? text : ["`", ...text, "`"]
      for (const each of quoted) emit(each, code)
    } else {
      const isEnd = closing >= opened && !isSpace.test(text.at(-1) ?? "") && (mark === "*" || !isWord.test(character))
      if (!isEnd) return false
      const extra = held.slice(held.length - closing, held.length - opened)
      const bold: Paint = (text) => look.bold(text)
      const italic: Paint = (text) => look.italic(text)
      const both: Paint = (text) => look.bold(look.italic(text))
      const own = opened === 1 ? italic : opened === 2 ? bold : both
      nest([...text, ...extra], (text) => paint(own(text)))
    }
    close(mark)
    return true
  }

  /** Takes a character after `[`. Returns whether the held text can still become a link. */
  const inLink = (character: string): boolean => {
    const middle = held.indexOf("]")
    held.push(character)
    if (middle < 0) return character !== "["
    if (middle === held.length - 2) return character === "("
    if (isSpace.test(character)) return false
    if (character !== ")") return true
    const address = held.slice(middle + 2, -1)
    // A closing parenthesis within the address.
    if (address.filter((each) => each === "(").length > address.filter((each) => each === ")").length) return true
    const text = held.slice(1, middle)
    if (text.join("") !== address.join("") && text.length > 0) {
      nest(text, paint)
      emit(" ", paint)
      for (const each of ["(", ...address, ")"]) emit(each, dim)
    } else for (const each of address) emit(each, paint)
    close(character)
    return true
  }

  const add = (character: string): void => {
    const mark = held[0]
    if (mark === undefined) {
      const begins =
        character === "\\" ||
        character === "`" ||
        (depth < maxSpanDepth &&
          (character === "*" || character === "[" || (character === "_" && !isWord.test(before))))
      if (begins) held.push(character)
      else put(character)
      return
    }
    if (held.length >= maxSpanChars) {
      release()
      add(character)
      return
    }
    if (mark === "\\") {
      held = []
      if (!isEscapable.test(character)) put(mark)
      put(character)
      return
    }
    if (mark === "[") {
      if (!inLink(character)) release()
      return
    }
    // Emphasis begins before a word and has at most three marks.
    const opened = runAt(0, mark)
    const isOpening = held.length === opened && character !== mark
    if (mark !== "`" && isOpening && (isSpace.test(character) || opened > 3 || opened >= (endless.get(mark) ?? 4))) {
      release()
      add(character)
      return
    }
    if (closesBefore(character)) {
      add(character)
      return
    }
    held.push(character)
  }

  return {
    add,
    end: () => {
      while (held.length > 0) {
        if (held[0] === "[" || held[0] === "\\" || !closesBefore("")) release()
      }
    },
    drop: () => {
      held = []
    }
  }
}

// --- lines ----------------------------------------------------------------------------------------------------------------

const quoteMark = "│ "
const ruleMark = "─"
/** A longer rule adds nothing on a wide screen. */
const maxRuleColumns = 40
/** Deeper indentation than this share of the screen leaves no room for words. */
const maxIndentShare = 0.5

/** A line whose kind is still open after this many characters is text. */
const maxHeadChars = 200

/** The beginnings of a line whose kind is still open. */
const undecidedHead = /^ *(?:#{1,6}|[-+]|\*+|_+|-{2,}|\d{1,9}[.)]?|`{1,2}|~{1,2}|(?:\*{3,}|_{3,}|-{3,}) +)?$/
const isRule = /^ *(?:\*{3,}|_{3,}|-{3,}) *$/
const isHeading = /^ *(#{1,6}) $/
const isItem = /^( *)([-*+]|\d{1,9}[.)]) $/
const beginsFence = /^( *)(`{3,}|~{3,})/
const beginsTable = /^ *\|/
const beginsQuote = /^ *>$/

/** Removes a number of quote marks from a line; undefined when it has fewer. */
const unquoted = (line: string, marks: number): string | undefined => {
  let rest = line
  for (let mark = 0; mark < marks; mark += 1) {
    const [quoteMatch] = /^ {0,3}> ?/.exec(rest) ?? []
    if (quoteMatch === undefined) return undefined
    rest = rest.slice(quoteMatch.length)
  }
  return rest
}

/** The state of the parser within a line. */
type Place = "head" | "quote" | "line" | "fence" | "table"

/** Makes a renderer. After `end` or `drop` it can render another text. */
export const make = ({ columns, look }: Options): Renderer => {
  let out: Array<string> = []
  let printed = false
  /** Whether the last line has content. */
  let isOpen = false
  /** Whether a blank line comes before the next line. Several blank lines become one; none begins or ends a text. */
  let isGap = false
  const print = (text: string) => {
    if (text === "") return
    if (isGap) out.push("\n")
    isGap = false
    out.push(text)
    printed = true
    isOpen = !text.endsWith("\n")
  }
  const words = wordsOn(columns, print)

  let place: Place = "head"
  /** The part of the line that was read and not yet printed. */
  let head = ""
  /** Characters of a line that is printed unchanged. */
  let whole: Array<string> = []
  /** Number of quote marks before the line. */
  let quotes = 0
  let text = inline(look, unchanged, 0, words.add)
  /** The mark that ends the current code block. */
  let fence: string | undefined
  /** Number of quote marks before each line of the code block. The block ends where they end. */
  let fenced = 0

  const before = (indent: string, depth = quotes) => {
    const room = Number.isFinite(columns) ? Math.floor(columns * maxIndentShare) : indent.length
    const marks = quoteMark.repeat(depth)
    return {
      first: (marks === "" ? "" : look.dim(marks)) + indent.slice(0, room),
      width: marks.length + Math.min(room, indent.length)
    }
  }
  const paragraph = (indent: string, mark: string, paint: Paint = unchanged) => {
    const { first, width } = before(indent)
    const markWidth = columnsOf(mark)
    words.begin(
      first + (mark === "" ? "" : paint(mark)),
      width + markWidth,
      first + " ".repeat(markWidth),
      width + markWidth
    )
    text = inline(look, paint, 0, words.add)
    place = "line"
    head = ""
  }

  /** Treats the line as a plain paragraph. */
  const asText = () => {
    const [indent = ""] = /^ */.exec(head) ?? []
    const rest = head.slice(indent.length)
    paragraph(indent, "")
    for (const character of rest) text.add(character)
  }

  const inHead = (character: string) => {
    head += character
    const heading = isHeading.exec(head)
    const item = isItem.exec(head)
    if (beginsQuote.test(head)) place = "quote"
    else if (beginsFence.test(head)) {
      place = "fence"
      whole = [head]
    } else if (beginsTable.test(head)) {
      place = "table"
      whole = [head]
    } else if (heading !== null) paragraph("", look.isColoured ? "" : `${heading[1] ?? ""} `, look.bold)
    else if (item !== null) {
      const [, indent = "", mark = ""] = item
      paragraph(indent, `${/\d/.test(mark) ? mark : "•"} `)
    } else if (head.length > maxHeadChars || !undecidedHead.test(head)) asText()
  }

  const endLine = () => {
    if (place === "quote") {
      quotes += 1
      head = ""
    }
    if (place === "head" || place === "quote") {
      if (isRule.test(head)) {
        print(look.dim(ruleMark.repeat(Math.min(maxRuleColumns, columns))))
      } else if (head.trim() !== "") asText()
      else if (quotes > 0) print(look.dim(quoteMark.trimEnd().repeat(quotes)))
    } else if (place === "fence") {
      const line = whole.join("")
      const [opening = "", indent = "", mark = ""] = beginsFence.exec(line) ?? []
      // Backticks after the opening ones: inline code.
      if (mark.startsWith("`") && line.slice(opening.length).includes("`")) {
        head = indent
        paragraph(indent, "")
        for (const character of line.slice(indent.length)) text.add(character)
      } else {
        print(before("").first + look.dim(line))
        fence = mark
        fenced = quotes
      }
    } else if (place === "table") {
      print(before("").first + whole.join(""))
    }
    text.end()
    words.end()
    place = "head"
    head = ""
    whole = []
    quotes = 0
  }

  const inFence = (character: string, ending: string) => {
    if (character !== "\n") {
      whole.push(character)
      return
    }
    const read = whole.join("")
    const line = unquoted(read, fenced)
    if (line === undefined) {
      fence = undefined
      whole = []
      for (const each of `${read}\n`) take(each)
      return
    }
    const marks = before("", fenced).first
    const bare = line.trim()
    const isEnd = bare.length >= ending.length && bare === (ending[0] ?? "").repeat(bare.length)
    if (isEnd) fence = undefined
    print(`${marks}${isEnd ? look.dim(line) : line}\n`)
    whole = []
  }

  const take = (character: string): void => {
    if (fence !== undefined) {
      inFence(character, fence)
      return
    }
    if (character === "\n") {
      endLine()
      if (isOpen) print("\n")
      else isGap = printed
      return
    }
    if (place === "quote") {
      quotes += 1
      head = ""
      place = "head"
      // One space belongs to the quote mark.
      if (character !== " ") take(character)
      return
    }
    if (place === "head") inHead(character === "\t" && head.trim() === "" ? "    " : character)
    else if (place === "line") text.add(character)
    else whole.push(character)
  }

  // --- characters ---------------------------------------------------------------------------------------------------------

  /** Makes invisible and control characters visible, as all shown text does. */
  let seen = visibleStream()
  const show = (piece: string | undefined): void => {
    for (const character of seen(piece)) take(character)
  }

  const push = (piece: string): string => {
    out = []
    show(piece)
    return out.join("")
  }

  const reset = () => {
    text.drop()
    words.drop()
    fence = undefined
    place = "head"
    head = ""
    whole = []
    quotes = 0
    seen = visibleStream()
    printed = false
    isOpen = false
    isGap = false
  }

  return {
    push,
    end: () => {
      out = []
      show(undefined)
      if (fence !== undefined) {
        if (whole.length > 0) inFence("\n", fence)
      } else endLine()
      const rest = out.join("") + (isOpen ? "\n" : "")
      reset()
      return rest
    },
    drop: () => {
      const rest = isOpen ? "\n" : ""
      reset()
      return rest
    },
    hasPrinted: () => printed
  }
}
