/** Vim's keys in the message editor: maps the keys of the normal mode to those of the editor. */

/** The state between two keys. */
export interface VimState {
  readonly mode: "insert" | "normal"
  /** The operator that waits for its motion. */
  readonly pending: "" | "d" | "c" | "g"
}

/** The state in which the editor opens. */
export const initial: VimState = { mode: "insert", pending: "" }

/** A key in the normal mode: the next state, and the keys of the editor that do it. */
export interface VimStep {
  readonly state: VimState
  readonly keys: ReadonlyArray<string>
}

/** The editor's own keys. */
const editor = {
  left: "\u001b[D",
  right: "\u001b[C",
  up: "\u001b[A",
  down: "\u001b[B",
  wordRight: "\u001bf",
  wordLeft: "\u001bb",
  lineStart: "\u0001",
  lineEnd: "\u0005",
  deleteRight: "\u001b[3~",
  deleteToEnd: "\u000b",
  deleteWord: "\u001bd",
  newLine: "\n",
  undo: "\u001f",
  yank: "\u0019"
} as const

const motions: Readonly<Record<string, ReadonlyArray<string>>> = {
  h: [editor.left],
  l: [editor.right],
  j: [editor.down],
  k: [editor.up],
  w: [editor.wordRight],
  e: [editor.wordRight],
  b: [editor.wordLeft],
  "0": [editor.lineStart],
  "^": [editor.lineStart],
  $: [editor.lineEnd],
  x: [editor.deleteRight],
  D: [editor.deleteToEnd],
  u: [editor.undo],
  p: [editor.yank]
}

/** Keys after which text is inserted. */
const inserts: Readonly<Record<string, ReadonlyArray<string>>> = {
  i: [],
  I: [editor.lineStart],
  a: [editor.right],
  A: [editor.lineEnd],
  o: [editor.lineEnd, editor.newLine],
  O: [editor.lineStart, editor.newLine, editor.up],
  C: [editor.deleteToEnd],
  S: [editor.lineStart, editor.deleteToEnd]
}

const operators: Readonly<Record<string, ReadonlyArray<string>>> = {
  dd: [editor.lineStart, editor.deleteToEnd, editor.deleteRight],
  dw: [editor.deleteWord],
  d$: [editor.deleteToEnd],
  cc: [editor.lineStart, editor.deleteToEnd],
  cw: [editor.deleteWord],
  gg: [editor.up]
}

const normal: VimState = { mode: "normal", pending: "" }
const insert: VimState = { mode: "insert", pending: "" }

/** Reads a printable key of the normal mode. A key that means nothing does nothing. */
export const step = ({ pending }: VimState, key: string): VimStep => {
  if (pending !== "") {
    const keys = operators[`${pending}${key}`]
    return keys === undefined ? { state: normal, keys: [] } : { state: pending === "c" ? insert : normal, keys }
  }
  if (key === "d" || key === "c" || key === "g") return { state: { mode: "normal", pending: key }, keys: [] }
  const inserting = inserts[key]
  if (inserting !== undefined) return { state: insert, keys: inserting }
  return { state: normal, keys: motions[key] ?? [] }
}
