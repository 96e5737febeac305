/**
 * A report as data: sections of tables, texts and charts. What `inspect`, `cost` and `replay` say is made once in this form; a
 * terminal and a page show it.
 */

import type { EntryId } from "../conversation/Conversation.ts"
import { number } from "../text/NumberText.ts"
import type { PartKind } from "./PartKind.ts"

/** One colour of a bar, and its length in the unit of the bar. */
export interface Segment {
  /** The kind of content; `used` for tokens of no kind. */
  readonly of: PartKind | "used"
  readonly tokens: number
  /** Whether the content is no longer in the view. */
  readonly isGone?: boolean
}

/** A value in a table. A text is shown as it is. */
export type Cell =
  | string
  /** A text from a file, which may be long. `keeps`: the end that stays when it is cut. */
  | { readonly _tag: "Name"; readonly text: string; readonly keeps?: "start" | "end" }
  /** The name of a figure that belongs to the one above. */
  | { readonly _tag: "Within"; readonly text: string }
  /** A handle, a path or another text for a command. */
  | { readonly _tag: "Code"; readonly text: string; readonly keeps?: "start" | "end" }
  /** Messages, the first of them as links where they are shown; `count` is the number of all. */
  | { readonly _tag: "Entries"; readonly ids: ReadonlyArray<EntryId>; readonly count?: number }
  /** A message, and its beginning. */
  | { readonly _tag: "Message"; readonly id: EntryId; readonly text: string }
  | { readonly _tag: "Kind"; readonly kind: PartKind; readonly tool?: string | undefined }
  | { readonly _tag: "Bar"; readonly segments: ReadonlyArray<Segment>; readonly whole: number }

/** A column of a table. */
export interface Column {
  readonly head: string
  /** `prose` is a sentence; `preview` the beginning of a text. Absent: a word or a name. */
  readonly form?: "number" | "bar" | "prose" | "preview" | "message"
  /** Whether the heading comes from a file, too. */
  readonly isName?: boolean
  /** Whether narrow pages leave it out. */
  readonly isExtra?: boolean
  /** Where it is shown; absent: everywhere. */
  readonly only?: "page" | "terminal"
}

/** A part of a section. */
export type Block =
  | {
      readonly _tag: "Table"
      readonly caption: string
      readonly columns: ReadonlyArray<Column>
      readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
      /** Rows on a page; the rest is counted. */
      readonly pageRows?: number
    }
  /** A sentence. Names in backticks are code, and ids of messages are links. */
  | {
      readonly _tag: "Text"
      readonly text: string
      readonly form?: "note" | "warning"
      readonly only?: "page" | "terminal"
    }
  /** Values over the messages or requests. A page draws the chart of this id. */
  | { readonly _tag: "Chart"; readonly id: string; readonly values: ReadonlyArray<number>; readonly caption: string }
  /** The shares of kinds as one bar, with a legend. */
  | {
      readonly _tag: "Shares"
      readonly kinds: ReadonlyArray<Segment & { readonly of: PartKind }>
      readonly whole: number
    }

/** A section with its heading. */
export interface Section {
  readonly id: string
  readonly title: string
  /** The name in the table of contents; absent: the title. */
  readonly short?: string
  readonly blocks: ReadonlyArray<Block>
}

/** A column with its values. */
export interface ColumnOf<A> extends Column {
  /** The cell of an item. */
  readonly of: (item: A, index: number) => Cell
}

/** Makes a table of items: a row each. `pageRows`: rows on a page; the rest is counted. */
export const table = <A>(
  caption: string,
  items: ReadonlyArray<A>,
  columns: ReadonlyArray<ColumnOf<A>>,
  pageRows?: number
): Block => ({
  _tag: "Table",
  caption,
  columns: columns.map(({ of: _, ...column }) => column),
  rows: items.map((item, index) => columns.map((column) => column.of(item, index))),
  ...(pageRows === undefined ? {} : { pageRows })
})

/** The blocks of a section: those that are there, without tables that have no rows. */
export const blocksOf = (...blocks: ReadonlyArray<Block | undefined>): ReadonlyArray<Block> =>
  blocks.flatMap((block) => (block === undefined || (block._tag === "Table" && block.rows.length === 0) ? [] : [block]))

/** A column of words, names and links. */
export const column = <A>(head: string, of: ColumnOf<A>["of"], more: Omit<Column, "head"> = {}): ColumnOf<A> => ({
  head,
  of,
  ...more
})

/** A column of numbers, or of texts that are aligned as numbers are. */
export const figures = <A>(
  head: string,
  of: (item: A) => number | string,
  more: Omit<Column, "head" | "form"> = {}
): ColumnOf<A> => ({
  head,
  form: "number",
  of: (item) => {
    const value = of(item)
    return typeof value === "number" ? number(value) : value
  },
  ...more
})

/** The column of a bar, which repeats the numbers beside it: pages alone show it. `whole` is the value of a full bar. */
export const bars = <A>(whole: number, segments: (item: A) => ReadonlyArray<Segment>): ColumnOf<A> => ({
  head: "bar",
  form: "bar",
  only: "page",
  of: (item) => ({ _tag: "Bar", segments: segments(item), whole })
})

/** A sentence. */
export const sentence = (text: string): Block => ({ _tag: "Text", text })

/** A note. */
export const note = (text: string, only?: "page" | "terminal"): Block => ({
  _tag: "Text",
  text,
  form: "note",
  ...(only === undefined ? {} : { only })
})

/** A name from a file. `keeps`: the end that stays when it is cut. */
export const name = (text: string, keeps: "start" | "end" = "start"): Cell => ({ _tag: "Name", text, keeps })

/** A message, or a text where there is none. */
export const entry = (id: EntryId | null, otherwise = "the start"): Cell =>
  id === null ? otherwise : { _tag: "Entries", ids: [id] }
