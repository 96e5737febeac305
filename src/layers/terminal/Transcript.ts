import {
  type Component,
  Markdown,
  Marked,
  sliceByColumn,
  stripTerminalSequences,
  type Token,
  type Tokens,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi
} from "@earendil-works/pi-tui"
import type { Card, Detail } from "../../services/terminal/ChatTerminal.ts"
import type { Theme } from "./Theme.ts"

/**
 * The conversation on the screen: a list of blocks, of which the renderer holds the last ones. What has left the screen belongs
 * to the terminal's scrollback.
 */

type Kind = "answer" | "card" | "message" | "text"

interface Block {
  readonly kind: Kind
  /** Whether a blank row separates it from the block before. */
  readonly isApart: boolean
  /** Its rows, remembered for a width. */
  readonly rows: (width: number) => ReadonlyArray<string>
  /** Rows differ from now on. */
  readonly change: () => void
}

/** A row that fits the width. The renderer stops the program at one that does not. */
export const fitted = (row: string, width: number): string =>
  visibleWidth(row) > width ? truncateToWidth(row, width, "") : row

/** Remembers the rows for one width. */
const block = (kind: Kind, isApart: boolean, draw: (width: number) => ReadonlyArray<string>): Block => {
  let width = 0
  let rows: ReadonlyArray<string> = []
  return {
    kind,
    isApart,
    rows: (wanted) => {
      if (wanted !== width) {
        rows = draw(wanted).map((row) => fitted(row, wanted))
        width = wanted
      }
      return rows
    },
    change: () => {
      width = 0
    }
  }
}

const wrapped = (line: string, width: number): ReadonlyArray<string> => {
  const rows = wrapTextWithAnsi(line, width).map((row) => row.trimEnd())
  return rows.length === 0 ? [""] : rows
}

/** Rows of an opened card. Of longer outputs the last lines are shown. */
const maxOpenLines = 500

/** A row that ends in `mark`, cut where both need more than the width. */
const marked = (row: string, mark: string, width: number): string =>
  visibleWidth(row) + visibleWidth(mark) <= width
    ? row + mark
    : truncateToWidth(row, Math.max(1, width - visibleWidth(mark)), "…") + mark

/** Rows of a message of the user that are shown while cards are closed. */
const maxMessageRows = 10

/** The rows of a card. `sign` stands for what runs. */
export const cardRows = (card: Card, isOpen: boolean, theme: Theme, width: number, sign = ""): Array<string> => {
  const coloured = (lines: ReadonlyArray<string>) =>
    card.language === undefined ? lines : theme.diff(lines, card.language)
  const more = coloured(card.more.slice(-maxOpenLines))
  const cut = card.more.length - more.length
  const count = more.length === 0 || isOpen ? "" : theme.dim(" ▸")
  const shown = isOpen ? [...(cut > 0 ? [theme.dim(`… ${cut} lines before`)] : []), ...more] : coloured(card.body)
  return [
    ...(count === "" ? wrapped(`${sign}${card.head}`, width) : [marked(`${sign}${card.head}`, count, width)]),
    ...shown.flatMap((line) => wrapped(line, Math.max(1, width - 2)).map((row) => `  ${row}`))
  ]
}

/** Lines of a text, each wrapped to the width. */
const wrappedLines = (text: string, width: number) =>
  text
    .replace(/\n$/, "")
    .split("\n")
    .flatMap((line) => wrapped(line, width))

/** The rows of what a question is about. */
export const detailRows = ({ foot, head, language, lines }: Detail, theme: Theme, width: number) => ({
  head: head === "" ? [] : wrappedLines(head, width),
  rows: (language === undefined ? lines : theme.diff(lines, language)).flatMap((line) =>
    wrapped(line, Math.max(1, width - 2)).map((row) => `  ${row}`)
  ),
  foot: foot === "" ? [] : wrappedLines(foot, width)
})

/** Rows of what a question was about that stay in the conversation. */
const maxDetailRows = 30

/** A text that grows beyond this is looked through for blocks that will not change. */
const settleChars = 2_000
/** A code block that grows beyond this is drawn in parts. */
const maxPartLines = 200

const parser = new Marked()

/** A list with this many items is drawn in parts. */
const maxListItems = 100
/** Items that stay in the part of a list that can still change. */
const openListItems = 10

/** Splits a text that begins with a long list before the last items. The rest goes on counting where the first part ends. */
const settledList = (text: string, { items, ordered, start }: Tokens.List) => {
  const kept = items.length - openListItems
  const done = items
    .slice(0, kept)
    .map(({ raw }) => raw)
    .join("")
  if (items.length < maxListItems || !text.startsWith(done)) return undefined
  const rest = text.slice(done.length)
  const next = (typeof start === "number" ? start : 1) + kept
  return { done, rest: ordered ? rest.replace(/^(\s*)\d+/, (_, indent: string) => `${indent}${next}`) : rest }
}

/**
 * Splits Markdown into a part that no later text changes, and the rest. `within` names the block that the split is in, if it is in
 * one: a list that goes on below has a blank row in between only where its items have.
 */
const settled = (text: string) => {
  const tokens = parser.lexer(text).filter(({ raw }) => raw !== "")
  const tail = tokens.at(-1)
  const before = tokens
    .slice(0, -1)
    .map(({ raw }) => raw)
    .join("")
  if (before.trim() !== "") return { done: before, rest: text.slice(before.length), within: undefined }
  if (isList(tail)) {
    const split = before === "" ? settledList(text, tail) : undefined
    return split === undefined ? undefined : { ...split, within: tail.loose ? undefined : ("list" as const) }
  }
  const lines = text.split("\n")
  if (tail?.type !== "code" || lines.length < maxPartLines * 2) return undefined
  const fence = /^ {0,3}(`{3,}|~{3,})[^\n]*/.exec(lines[0] ?? "")
  if (fence === null) return undefined
  return {
    done: `${lines.slice(0, maxPartLines).join("\n")}\n${fence[1]}\n`,
    rest: `${fence[0]}\n${lines.slice(maxPartLines).join("\n")}`,
    within: "code" as const
  }
}

const isList = (token: Token | undefined): token is Tokens.List => token?.type === "list"
const isTable = (token: Token): token is Tokens.Table => token.type === "table"

/** A table with a column that is aligned to the right or centred. */
const alignedTable = /^[ \t>]*\|?[ \t:|-]*-:[ \t]*(?:\||$)/m

/** A cell with its blanks where its column is aligned. */
const alignedCell = (cell: string, align: "center" | "left" | "right" | null | undefined): string => {
  // oxlint-disable-next-line no-control-regex
  const [, text = "", blanks = "", codes = ""] = /^(.*?)( *)((?:\u001b\[[\d;]*m)*)$/.exec(cell) ?? []
  if (blanks === "" || (align !== "right" && align !== "center")) return cell
  const before = align === "right" ? blanks.length : Math.floor(blanks.length / 2)
  // oxlint-disable-next-line no-control-regex
  return `${text.replace(/^(?:\u001b\[[\d;]*m)*/, (styles) => styles + " ".repeat(before))}${blanks.slice(before)}${codes}`
}

/** Aligns the columns of drawn tables as their delimiter rows say: the renderer puts every cell to the left. */
const aligned = (rows: ReadonlyArray<string>, text: string): ReadonlyArray<string> => {
  if (!alignedTable.test(text)) return rows
  const tables: Array<Tokens.Table> = []
  parser.walkTokens(parser.lexer(text), (token) => {
    if (isTable(token)) tables.push(token)
  })
  let isCode = false
  let open: { readonly indent: number; readonly widths: ReadonlyArray<number>; readonly of: Tokens.Table } | undefined
  return rows.map((row) => {
    const plain = stripTerminalSequences(row).trimEnd()
    if (/^\s*(?:│ )*```/.test(plain)) isCode = !isCode
    if (isCode) return row
    const top = /^((?:│ | )*)┌─(─*(?:─┬──*)*)─┐$/.exec(plain)
    if (top !== null) {
      const widths = (top[2] ?? "").split("─┬─").map(({ length }) => length)
      const [of] = tables
      open = of?.align.length === widths.length ? { indent: (top[1] ?? "").length, widths, of } : undefined
      if (open !== undefined) tables.shift()
      return row
    }
    if (open === undefined) return row
    if (plain.startsWith("└", open.indent)) open = undefined
    if (open === undefined || !plain.startsWith("│ ", open.indent)) return row
    const { indent, of, widths } = open
    let at = indent + 2
    const cells = widths.map((width, column) => {
      const cell = sliceByColumn(row, at, width)
      at += width + 3
      return alignedCell(cell, of.align[column])
    })
    return `${sliceByColumn(row, 0, indent)}│ ${cells.join(" │ ")} │`
  })
}

/** A stretch of Markdown of an answer. */
interface Part {
  text: string
  /** The length at which its text is looked through next. */
  nextCheck: number
  readonly view: Markdown
  readonly block: Block
  /** Its code block goes on in the next part: its end is not drawn. */
  isContinued: boolean
}

/** The transcript as the terminal UI uses it. */
export type Transcript = ReturnType<typeof make>

/** Makes an empty transcript. */
export const make = (theme: Theme) => {
  const blocks: Array<Block> = []
  /** Rows at the beginning that are not drawn, because they were on the screen before. */
  let hidden = 0
  let areCardsOpen = false
  /** The parts of the answer that is shown. */
  let answer: { readonly parts: Array<Part>; isDiscarded: boolean } | undefined
  /** The text without a line break at its end, to which the next text is added. */
  let line: { text: string; readonly block: Block } | undefined

  const rowsOf = (one: Block, index: number, width: number): ReadonlyArray<string> => {
    const rows = one.rows(width)
    return one.isApart && index > 0 && rows.length > 0 ? ["", ...rows] : rows
  }
  const draw = (width: number): Array<string> => {
    const all: Array<string> = []
    for (const [index, one] of blocks.entries()) for (const row of rowsOf(one, index, width)) all.push(row)
    return all
  }

  const add = (kind: Kind, rows: (width: number) => ReadonlyArray<string>, isApart?: boolean): Block => {
    const last = blocks.at(-1)?.kind
    const isChange = kind !== last && (kind === "answer" || last === "answer") && last !== "message"
    const made = block(kind, isApart ?? (kind === "message" || isChange), rows)
    blocks.push(made)
    return made
  }

  const openText = () => {
    let text = ""
    const rows = (width: number) => wrappedLines(text, width)
    return {
      block: add("text", rows),
      get text() {
        return text
      },
      set text(value: string) {
        text = value
      }
    }
  }
  const openPart = (of: NonNullable<typeof answer>, text: string, within?: "code" | "list"): Part => {
    const view = new Markdown(text, 0, 0, theme.markdown)
    const isNext = of.parts.length > 0
    const part: Part = {
      text,
      nextCheck: settleChars,
      view,
      isContinued: false,
      block: add(
        "answer",
        (width) => {
          const drawn = aligned(view.render(width), part.text).map((row) => row.trimEnd())
          const rows = drawn.slice(0, drawn.findLastIndex((row) => row !== "") + 1)
          const shown = rows.slice(within === "code" ? 1 : 0, part.isContinued ? -1 : undefined)
          return of.isDiscarded ? shown.map((row) => theme.dim(stripTerminalSequences(row))) : shown
        },
        isNext ? within === undefined : undefined
      )
    }
    of.parts.push(part)
    return part
  }
  const setText = (part: Part, text: string) => {
    part.text = text
    part.view.setText(text)
    part.block.change()
  }

  const endAnswer = (isDiscarded = false) => {
    if (answer === undefined) return
    answer.isDiscarded = isDiscarded
    if (isDiscarded) for (const part of answer.parts) part.block.change()
    answer = undefined
  }

  const component: Component = {
    render: (width) => draw(width).slice(hidden),
    invalidate: () => {
      for (const one of blocks) one.change()
    }
  }

  return {
    component,
    /** Adds Markdown to the answer. */
    answer: (piece: string) => {
      line = undefined
      answer ??= { parts: [], isDiscarded: false }
      const open = answer
      const part = open.parts.at(-1) ?? openPart(open, "")
      setText(part, part.text + piece)
      if (part.text.length < part.nextCheck) return
      part.nextCheck = part.text.length + settleChars
      const split = settled(part.text)
      if (split === undefined) return
      part.isContinued = split.within === "code"
      setText(part, split.done)
      openPart(open, split.rest.replace(/^\n+/, ""), split.within)
    },
    endAnswer,
    /** Whether the last text ended within a line. */
    isWithinLine: () => line !== undefined,
    /** Adds text, which may end within a line. */
    text: (text: string) => {
      endAnswer()
      if (text === "") return
      const open = line ?? openText()
      open.text += text
      open.block.change()
      line = text.endsWith("\n") ? undefined : open
    },
    /** Adds what a question is about: all of it, or the beginning. */
    detail: (detail: Detail, isWhole: boolean) => {
      endAnswer()
      line = undefined
      add("text", (width) => {
        const { foot, head, rows } = detailRows(detail, theme, width)
        const isCut = !isWhole && rows.length > maxDetailRows + 1
        const rest = theme.dim(`  … ${rows.length - maxDetailRows} more rows`)
        return [...head, ...rows.slice(0, isCut ? maxDetailRows : undefined), ...(isCut ? [rest] : []), ...foot]
      })
    },
    /** Adds a message of the user. */
    message: (text: string) => {
      endAnswer()
      line = undefined
      add("message", (width) => {
        const rows = text.split("\n").flatMap((each) => wrapped(each, Math.max(1, width - 2)))
        const isFolded = !areCardsOpen && rows.length > maxMessageRows + 1
        const rest = theme.dim(`… ${rows.length - maxMessageRows} more rows ▸`)
        return [...rows.slice(0, isFolded ? maxMessageRows : undefined), ...(isFolded ? [rest] : [])].map(
          (row, index) => `${index === 0 ? theme.accent(">") : " "} ${row}`.trimEnd()
        )
      })
    },
    /** Adds a card that has ended. */
    card: (card: Card) => {
      endAnswer()
      line = undefined
      add("card", (width) => cardRows(card, areCardsOpen, theme, width))
    },
    /** Opens all cards, or closes them. Returns whether they are open now. */
    toggleCards: (): boolean => {
      areCardsOpen = !areCardsOpen
      for (const one of blocks) if (one.kind === "card" || one.kind === "message") one.change()
      return areCardsOpen
    },
    areCardsOpen: () => areCardsOpen,
    isEmpty: () => blocks.length === 0,
    /** How many rows the blocks have that are not forgotten, drawn or not. */
    length: (width: number) => draw(width).length,
    /** Draws no more than the last rows from now on. */
    keepLast: (rows: number, width: number) => {
      hidden = Math.max(0, draw(width).length - Math.max(0, rows))
    },
    /** Draws no more than the last rows from now on, and nothing that was hidden before. */
    keepShown: (rows: number, width: number) => {
      hidden = Math.max(hidden, draw(width).length - Math.max(0, rows))
    },
    /** Draws from the last card on, or at least the last rows. */
    keepFromCard: (rows: number, width: number) => {
      const all = draw(width).length
      const card = blocks.findLastIndex(({ kind }) => kind === "card")
      const before = blocks.slice(0, Math.max(0, card)).flatMap((one, index) => rowsOf(one, index, width)).length
      hidden = Math.max(0, Math.min(all - rows, before))
    },
    /** Forgets leading blocks while more rows than these remain. Returns how many of the drawn rows were forgotten. */
    forget: (keptRows: number, width: number): number => {
      let left = draw(width).length - hidden
      if (left < keptRows * 2) return 0
      const before = left
      for (;;) {
        const [first] = blocks
        if (first === undefined || blocks.length === 1) break
        const next = blocks[1]
        const gap = next?.isApart === true && next.rows(width).length > 0 ? 1 : 0
        const rows = first.rows(width).length + gap
        const drawn = Math.max(0, rows - hidden)
        if (left - drawn < keptRows) break
        blocks.shift()
        hidden = Math.max(0, hidden - rows)
        left -= drawn
      }
      return before - left
    }
  }
}
