import { visibleStream } from "../../domain/Visible.ts"
import { ansi, columnsOf } from "../Output.ts"

/**
 * Markdown as it streams in, for a terminal. What is printed depends on the text alone, not on the pieces it comes in: every
 * character is taken by itself. Prose is printed word by word, everything else at the latest at the end of its line.
 */

/** Ways to set a piece of text off. */
export interface Look {
  readonly bold: (text: string) => string
  readonly italic: (text: string) => string
  readonly code: (text: string) => string
  readonly dim: (text: string) => string
  /** Whether looks are all that tells a heading or code from the rest. */
  readonly isColoured: boolean
}

const unchanged = (text: string) => text

/** Without colours: headings keep their `#` and code its backticks. */
export const plain: Look = { bold: unchanged, italic: unchanged, code: unchanged, dim: unchanged, isColoured: false }

/** With colours, as any terminal has them. */
export const coloured: Look = { bold: ansi(1), italic: ansi(3), code: ansi(36), dim: ansi(2), isColoured: true }

/** Where it is shown. */
export interface Options {
  /** Columns to wrap prose at; Infinity does not wrap. */
  readonly columns: number
  readonly look: Look
}

/** One text on its way to the screen. */
export interface Renderer {
  /** Takes the next piece and answers what to print now. */
  readonly push: (text: string) => string
  /** Answers the rest, with the end of its line, and is ready for the next text. */
  readonly end: () => string
  /**
   * Gives up the text so far and is ready for the next. Answers the end of the line that was begun, if any: nothing when
   * nothing was printed.
   */
  readonly drop: () => string
  /** Whether anything of the text was printed. */
  readonly hasPrinted: () => boolean
}

type Paint = (text: string) => string
type Character = (character: string) => void

// --- words ----------------------------------------------------------------------------------------------------------------

/** Letters of scripts without spaces: a line may end at any of them. */
const isIdeograph = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u
/** What never begins a line: marks that belong to what is before them, and closing punctuation. */
const staysBehind = /[\p{M}\p{Pe}\p{Pf}\p{Po}\u200d\u30fc]/u
const isOpening = /[\p{Ps}\p{Pi}]/u

/** Sets words on lines of so many columns. A word that is wider than a line is left to the terminal, so that it can be copied. */
const wordsOn = (columns: number, print: (text: string) => void) => {
  let column = 0
  /** Stands at the beginning of every line of the paragraph but its first, and how wide it is. */
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
    /** A character of the paragraph. */
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
    /** A paragraph's beginning; `rest` stands before its other lines. */
    begin: (first: string, firstWidth: number, rest: string, restWidth: number) => {
      print(first)
      column = firstWidth
      hanging = rest
      indent = restWidth
    },
    flush,
    /** The end of the paragraph; white space at its end is not printed. */
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

/** A span that has not ended after so many characters was none. */
const longestSpan = 500
/** Spans in spans: more than bold, italic and code in a link is nobody's intention. */
const deepest = 3

const isWord = /[\p{L}\p{N}]/u
const isSpace = /^\s?$/
const isEscapable = /[!-/:-@[-`{-~]/

/**
 * Takes the characters of one line and hands on what they say: emphasis, code, links and escapes without their marks. What
 * begins a span and has no end is text.
 */
const inline = (
  look: Look,
  paint: Paint,
  depth: number,
  hand: (character: string, paint: Paint) => void
): { readonly add: Character; readonly end: () => void; readonly drop: () => void } => {
  /** From the mark that may begin a span on. */
  let held: Array<string> = []
  /** The character before it. */
  let before = ""
  /** Marks of so many characters that are known to have no end in what is looked at again. */
  const endless = new Map<string, number>()
  const code: Paint = (text) => look.code(text)
  const dim: Paint = (text) => look.dim(text)

  const put = (character: string) => {
    before = character
    hand(character, paint)
  }
  const nest = (text: ReadonlyArray<string>, around: Paint) => {
    const inner = inline(look, around, depth + 1, hand)
    for (const character of text) inner.add(character)
    inner.end()
  }
  const close = (last: string) => {
    before = last
    held = []
  }

  /** What is held is no span: its first character is text, and the rest is looked at anew. */
  const release = (): void => {
    const [first = "", ...rest] = held
    const opened = runAt(0, first)
    held = []
    put(first)
    // A mark of several characters that begins nothing is text as a whole: half of it must not begin something.
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

  /** Whether `character`, which comes after what is held, makes that a span; if so it is handed on. */
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
      for (const each of quoted) hand(each, code)
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

  /** Takes a character after `[`; whether what is held may still become a link. */
  const inLink = (character: string): boolean => {
    const middle = held.indexOf("]")
    held.push(character)
    if (middle < 0) return character !== "["
    if (middle === held.length - 2) return character === "("
    if (isSpace.test(character)) return false
    if (character !== ")") return true
    const address = held.slice(middle + 2, -1)
    // A closing parenthesis of the address itself.
    if (address.filter((each) => each === "(").length > address.filter((each) => each === ")").length) return true
    const text = held.slice(1, middle)
    if (text.join("") !== address.join("") && text.length > 0) {
      nest(text, paint)
      hand(" ", paint)
      for (const each of ["(", ...address, ")"]) hand(each, dim)
    } else for (const each of address) hand(each, paint)
    close(character)
    return true
  }

  const add = (character: string): void => {
    const mark = held[0]
    if (mark === undefined) {
      const begins =
        character === "\\" ||
        character === "`" ||
        (depth < deepest && (character === "*" || character === "[" || (character === "_" && !isWord.test(before))))
      if (begins) held.push(character)
      else put(character)
      return
    }
    if (held.length >= longestSpan) {
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
    // Emphasis begins before a word, and is of at most three marks.
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
/** A rule that crosses a wide screen says no more than a short one. */
const longestRule = 40
/** Deeper indentation than this share of the screen leaves no room for words. */
const deepestIndent = 0.5

/** A line that has not shown by then what it is is text. */
const longestHead = 200

/** What the beginning of a line may still become. */
const undecided = /^ *(?:#{1,6}|[-+]|\*+|_+|-{2,}|\d{1,9}[.)]?|`{1,2}|~{1,2}|(?:\*{3,}|_{3,}|-{3,}) +)?$/
const isRule = /^ *(?:\*{3,}|_{3,}|-{3,}) *$/
const isHeading = /^ *(#{1,6}) $/
const isItem = /^( *)([-*+]|\d{1,9}[.)]) $/
const beginsFence = /^( *)(`{3,}|~{3,})/
const beginsTable = /^ *\|/
const beginsQuote = /^ *>$/

/** A line without so many quote marks; undefined where it has fewer. */
const unquoted = (line: string, marks: number): string | undefined => {
  let rest = line
  for (let mark = 0; mark < marks; mark += 1) {
    const [found] = /^ {0,3}> ?/.exec(rest) ?? []
    if (found === undefined) return undefined
    rest = rest.slice(found.length)
  }
  return rest
}

/** Where within its line a text is. */
type Place = "head" | "quote" | "line" | "fence" | "table"

/** A renderer of one text after another. */
export const make = ({ columns, look }: Options): Renderer => {
  let out: Array<string> = []
  let printed = false
  /** Whether something stands on the last line. */
  let isOpen = false
  /** Whether a blank line comes before the next. One is enough, and none begins or ends a text. */
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
  /** What has been read of the line and not been printed. */
  let head = ""
  /** Longer beginnings: a line that is printed as it is. */
  let whole: Array<string> = []
  /** Quote marks before the line. */
  let quotes = 0
  let text = inline(look, unchanged, 0, words.add)
  /** The mark that ends the code that is being read. */
  let fence: string | undefined
  /** Quote marks before each line of that code: where they end, so does it. */
  let fenced = 0

  const before = (indent: string, depth = quotes) => {
    const room = Number.isFinite(columns) ? Math.floor(columns * deepestIndent) : indent.length
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

  /** The beginning of the line is known to begin nothing special. */
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
    } else if (head.length > longestHead || !undecided.test(head)) asText()
  }

  /** The end of a line. */
  const endLine = () => {
    if (place === "quote") {
      quotes += 1
      head = ""
    }
    if (place === "head" || place === "quote") {
      if (isRule.test(head)) {
        print(look.dim(ruleMark.repeat(Math.min(longestRule, columns))))
      } else if (head.trim() !== "") asText()
      else if (quotes > 0) print(look.dim(quoteMark.trimEnd().repeat(quotes)))
    } else if (place === "fence") {
      const line = whole.join("")
      const [opening = "", indent = "", mark = ""] = beginsFence.exec(line) ?? []
      // Backticks after the first ones: code within a line.
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
      // One space belongs to the mark.
      if (character !== " ") take(character)
      return
    }
    if (place === "head") inHead(character === "\t" && head.trim() === "" ? "    " : character)
    else if (place === "line") text.add(character)
    else whole.push(character)
  }

  // --- characters ---------------------------------------------------------------------------------------------------------

  /** Everything in it is seen, as wherever a text is shown. */
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
