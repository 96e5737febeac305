/**
 * The state machine behind the token estimate.
 *
 * *Details*: it reads UTF-16 units one by one. Each unit has a class, each state has a row, and the cell of a row and a class holds the
 * cost of the unit and the next state. States follow the way today's vocabularies split a text before they look anything up: a word with
 * the blank or mark before it, a capital within a word begins the next one, digits in threes, marks in runs, blanks in runs. Where such a
 * piece begins, a token begins; whether others begin inside it depends on the characters that meet there. Those costs are fitted to a real
 * vocabulary, o200k. They are whole hundredths of a token, so that sums are exact wherever a text is cut.
 *
 * `scripts/fit-tokens` fits the costs on sources, manuals, translated messages, prose and generated texts, in about a hundred classes. On
 * texts from other sources most classes stay within 5 %, prose of any style and source code within 13 %. Known to be worse: lists of paths
 * that repeat a rare name (0.83 to 1.18), syllabaries and alphabets strung together at random (0.5 to 1.2), ideographs beyond the common
 * ones (0.8), a few identifiers or emoji repeated over and over (up to 1.3), lone surrogates.
 *
 * This is our own estimator because every part of a conversation is counted, also offline, in slices that never block: a vocabulary such
 * as o200k takes megabytes to load and is many times slower, and it is exact for one provider only. `Calibration` corrects the estimate.
 *
 * One file: classes, states, costs and the compiled table are one definition, and the fitting script reads all of it.
 */

import { east, emoji, fitted } from "./TokenCosts.ts"

/** How a class behaves. */
export type Family =
  | "lower"
  | "upper"
  | "digit"
  | "mark"
  | "space"
  | "tab"
  | "line"
  | "cyrillic"
  | "arabic"
  | "alphabet"
  | "east"
  | "symbol"

type Range = readonly [first: number, last: number]
type Members = string | ReadonlyArray<Range>

interface Class {
  readonly family: Family
  /** The index of the class within its family. A state remembers the slot of the previous character. */
  readonly slot: number
  readonly members: Members
}

const classesOf = (family: Family, groups: ReadonlyArray<Members>): ReadonlyArray<Class> =>
  groups.map((members, slot) => ({ family, slot, members }))

const classesAt = (family: Family, slot: number, groups: ReadonlyArray<Members>): ReadonlyArray<Class> =>
  groups.map((members) => ({ family, slot, members }))

const marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
const alphabet = "abcdefghijklmnopqrstuvwxyz"
const cyrillic = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
const arabic = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي"

/** The slot of Latin letters other than a to z, which are not distinguished as previous characters. */
const accentedSlot = 26

/** Second halves of surrogate pairs with one digit in `emoji`. */
const secondHalves = (digit: number): Members =>
  [...emoji].map((each, i) => (each === String(digit) ? String.fromCharCode(0xdc00 + i) : "")).join("")

const symbols: ReadonlyArray<Members> = [
  // Characters without a class of their own.
  [[0x80, 0xffff]],
  [[0xa1, 0xbf]],
  // General punctuation, quotes, dashes.
  [[0x2000, 0x206f]],
  "‘’“”",
  "–—…•",
  // Letter-like signs, arrows, mathematics.
  [
    [0x2070, 0x218f],
    [0x2460, 0x24ff]
  ],
  [[0x2190, 0x21ff]],
  [
    [0x2200, 0x245f],
    [0x27c0, 0x2aff]
  ],
  // Box drawing: corners, lines in long runs, blocks, shapes.
  [[0x2500, 0x257f]],
  "─",
  "━═",
  "│║┃",
  [[0x2580, 0x259f]],
  "█",
  [[0x25a0, 0x25ff]],
  // Pictographs.
  [
    [0x2600, 0x27bf],
    [0x2b00, 0x2bff]
  ],
  // CJK punctuation and full-width forms.
  [[0x3000, 0x303f]],
  "、。",
  [[0xff00, 0xffef]],
  "，",
  "：；！？（）",
  [[0xff61, 0xff9f]],
  // Emoji joiners and variation selectors.
  "\u200d",
  [[0xfe00, 0xfe0f]],
  // First halves of surrogate pairs: others, those of emoji.
  [[0xd800, 0xdbff]],
  "\ud83c",
  "\ud83d",
  "\ud83e",
  // The enclosing keycap.
  "\u20e3",
  // Second halves by their cost behind each first half; skin tones, letters of flags.
  ...Array.from({ length: 9 }, (_, digit) => secondHalves(digit)),
  [[0xdffb, 0xdfff]],
  [[0xdde6, 0xddff]],
  "\ufffd"
]

const alphabets: ReadonlyArray<Members> = [
  // Phonetic letters, combining marks, Greek, its old accents, Armenian and Georgian, Hebrew.
  [
    [0x250, 0x2ff],
    [0x1d00, 0x1dbf]
  ],
  [[0x300, 0x36f]],
  [[0x370, 0x3ff]],
  [[0x1f00, 0x1fff]],
  [
    [0x530, 0x58f],
    [0x10a0, 0x10ff]
  ],
  [[0x590, 0x5ff]],
  // Syriac to Arabic Extended, Devanagari, the other scripts of India, Thai, all others.
  [[0x700, 0x8ff]],
  [[0x900, 0x97f]],
  [[0x980, 0xdff]],
  [[0xe00, 0xe7f]],
  [
    [0xe80, 0x109f],
    [0x1100, 0x1cff],
    [0x2c00, 0x2dff],
    [0xa000, 0xabff]
  ]
]

/** All classes, in the order of their columns. A character belongs to the last class that contains it. */
const classes: ReadonlyArray<Class> = [
  ...classesOf("symbol", symbols),
  ...classesOf("alphabet", alphabets),
  ...classesOf("cyrillic", [
    [
      [0x400, 0x40f],
      [0x450, 0x52f]
    ],
    [[0x410, 0x42f]],
    ...cyrillic
  ]),
  ...classesOf("arabic", [[[0x600, 0x6ff]], [[0x64b, 0x65f]], "گچپژکی", ...arabic]),
  ...classesOf("east", [
    // Radicals and rare ideographs, ideographs, the two syllabaries, Hangul, all others.
    [
      [0x2e80, 0x2fdf],
      [0x3400, 0x4dbf],
      [0xf900, 0xfaff]
    ],
    [[0x4e00, 0x9fff]],
    [[0x3040, 0x309f]],
    [
      [0x30a0, 0x30ff],
      [0x31f0, 0x31ff]
    ],
    [[0xac00, 0xd7a3]],
    [
      [0x3100, 0x31ef],
      [0x3200, 0x33ff]
    ],
    ...east
  ]),
  ...classesAt("upper", accentedSlot, [[[0xc0, 0xde]]]),
  ...classesAt("lower", accentedSlot, [[[0xdf, 0x24f]], "éèêàâçôîûùïëœæ", "äöüß", "áíóúñãõ", [[0x1e00, 0x1eff]]]),
  ...classesOf("lower", [...alphabet]),
  ...classesOf("upper", [...alphabet.toUpperCase()]),
  ...classesOf("digit", ["0123456789"]),
  ...classesOf("mark", [...marks]),
  ...classesAt("space", 0, [" ", "\u00a0"]),
  ...classesOf("tab", ["\t"]),
  ...classesOf("line", ["\n", "\r"]),
  ...classesAt("symbol", 0, [
    [
      [0, 8],
      [11, 12],
      [14, 31],
      [127, 127]
    ]
  ])
]

/** The number of columns in a row, one for each class. */
export const columns = classes.length

/** Computes the class of each UTF-16 unit. */
const classify = (): Uint8Array => {
  const table = new Uint8Array(65_536)
  classes.forEach(({ members }, column) => {
    if (typeof members !== "string") for (const [first, last] of members) table.fill(column, first, last + 1)
    else for (let i = 0; i < members.length; i += 1) table[members.charCodeAt(i)] = column
  })
  return table
}

/** How a run of letters began: after a blank or not. A long run does not distinguish the two. */
type Beginning = "spaced" | "bare" | "long"

/** States that differ only in the last character: one for each of `slots`, from `at` on. */
interface Mode {
  readonly family: Family | "start"
  readonly beginning: Beginning | "run" | "same" | "cr"
  /** Characters of the run so far, as far as they affect the cost. */
  readonly length: number
  readonly slots: number
  readonly at: number
  /** The row of fitted costs for this mode. Long runs of blanks share one. */
  readonly row: number
  /** The cost of one more blank of the same kind, in hundredths, where a run is so long that only its length counts. */
  readonly more: number | undefined
}

/** The longest run of letters whose length is tracked. */
const maxTrackedLetters = { lower: 5, upper: 3 }

/** The first few blanks of a run are fitted; after them a token begins at every so many. */
const blanks = {
  space: { few: 3, token: 127 },
  tab: { few: 2, token: 16 },
  line: { few: 2, token: 16 }
}

/** Cyrillic letters are tracked by kind: others, capitals, vowels, sonorants, voiced, voiceless, signs. */
const cyrillicKinds = ["аеиоуыэюя", "лмнрй", "бвгджз", "кпстфхцчшщ", "ъь"]

/** The slot that a state remembers for a character of this class. */
const slotOf = (column: number): number => {
  const { family, slot } = classes[column] ?? { family: "symbol", slot: 0 }
  if (family === "line") return 0
  if (family !== "cyrillic" || slot < 2) return slot
  return 2 + cyrillicKinds.findIndex((kind) => kind.includes(cyrillic[slot - 2] ?? ""))
}

/** Columns by family, in the order of their slots; of the Latin letters only a to z. */
const columnsOf = (family: Family): ReadonlyArray<number> =>
  classes.flatMap((each, column) =>
    each.family === family && !((family === "lower" || family === "upper") && each.slot === accentedSlot)
      ? [column]
      : []
  )

const modeName = (family: Mode["family"], beginning: Mode["beginning"], length: number): string =>
  `${family} ${beginning} ${length}`

interface Modes {
  readonly all: ReadonlyArray<Mode>
  /** Their places in `all`, by name. */
  readonly numbers: ReadonlyMap<string, number>
  readonly states: number
  /** Rows of fitted costs. */
  readonly rows: number
}

const listModes = (): Modes => {
  const all: Array<Mode> = []
  const numbers = new Map<string, number>()
  let at = 0
  let fitted = 0
  const put = (mode: Omit<Mode, "at" | "row">, row = fitted) => {
    numbers.set(modeName(mode.family, mode.beginning, mode.length), all.length)
    all.push({ ...mode, at, row })
    at += mode.slots
    fitted = Math.max(fitted, row + 1)
  }
  const add = (family: Mode["family"], beginning: Mode["beginning"], maxLength: number, slots = 1) => {
    for (let length = 1; length <= maxLength; length += 1) put({ family, beginning, length, slots, more: undefined })
  }
  const addBlanks = (family: keyof typeof blanks) => {
    const { few, token } = blanks[family]
    const first = fitted
    for (let length = 1; length < few + token; length += 1) {
      const more = length < few ? undefined : length < few + token - 1 ? 0 : 100
      put({ family, beginning: "bare", length, slots: 1, more }, first + Math.min(length, few) - 1)
    }
  }
  const letters = accentedSlot + 1
  const slotsOf = (family: Family): number => Math.max(...columnsOf(family).map(slotOf)) + 1
  add("start", "bare", 1)
  for (const beginning of ["spaced", "bare"] as const) {
    add("lower", beginning, maxTrackedLetters.lower, letters)
    add("upper", beginning, maxTrackedLetters.upper, letters)
  }
  add("lower", "long", 1, letters)
  add("upper", "long", 1, letters)
  add("digit", "bare", 3)
  for (const beginning of ["spaced", "bare", "run"] as const) add("mark", beginning, 1, marks.length)
  add("mark", "same", 6, marks.length)
  addBlanks("space")
  addBlanks("tab")
  addBlanks("line")
  add("line", "cr", 2)
  add("cyrillic", "bare", 5, slotsOf("cyrillic"))
  add("arabic", "bare", 4, slotsOf("arabic"))
  add("alphabet", "bare", 3, slotsOf("alphabet"))
  add("east", "bare", 3, slotsOf("east"))
  add("symbol", "bare", 4, slotsOf("symbol"))
  return { all, numbers, states: at, rows: fitted }
}

/** How a word begins after a mode. */
const beginningBehind = ({ family }: Mode): Beginning => (family === "space" ? "spaced" : "bare")

/** The mode in which a run of letters continues. */
const longerWord = (family: "lower" | "upper", { beginning, length }: Mode): string =>
  beginning !== "long" && length < maxTrackedLetters[family]
    ? modeName(family, beginning, length + 1)
    : modeName(family, "long", 1)

const longer = (mode: Mode, family: Family, maxLength: number): number =>
  mode.family === family ? Math.min(mode.length + 1, maxLength) : 1

const longerBlank = (mode: Mode, family: keyof typeof blanks): number => {
  const { few, token } = blanks[family]
  if (mode.family !== family) return 1
  return mode.length < few + token - 1 ? mode.length + 1 : few
}

/** The mode after a mode and a class. `same`: the character repeats the previous one. */
const following = (mode: Mode, { family, slot }: Class, same: boolean): string => {
  switch (family) {
    case "lower":
      // Capitals begin the word that follows them.
      return mode.family === "lower" || mode.family === "upper"
        ? longerWord(family, mode)
        : modeName(family, beginningBehind(mode), 1)
    case "upper":
      return mode.family === "upper" ? longerWord(family, mode) : modeName(family, beginningBehind(mode), 1)
    case "digit":
      return modeName(family, "bare", mode.family === family && mode.length < 3 ? mode.length + 1 : 1)
    case "mark":
      if (mode.family !== "mark")
        return modeName(family, mode.family === "space" ? "spaced" : mode.family === "symbol" ? "run" : "bare", 1)
      return same
        ? modeName(family, "same", mode.beginning === "same" ? Math.min(mode.length + 1, 6) : 1)
        : modeName(family, "run", 1)
    case "space":
      return modeName(family, "bare", mode.family === "tab" ? 2 : longerBlank(mode, family))
    case "tab":
      return modeName(family, "bare", mode.family === "space" ? 2 : longerBlank(mode, family))
    case "line": {
      if (slot === 1) return modeName(family, "cr", mode.family === "line" ? 2 : 1)
      // CR LF is one line break.
      return modeName(family, "bare", mode.beginning === "cr" ? mode.length : longerBlank(mode, family))
    }
    case "symbol":
      return modeName(family, "bare", same && mode.family === family ? Math.min(mode.length + 1, 4) : 1)
    case "cyrillic":
      return modeName(family, "bare", longer(mode, family, 5))
    case "arabic":
      return modeName(family, "bare", longer(mode, family, 4))
    case "alphabet":
    case "east":
      return modeName(family, "bare", longer(mode, family, 3))
  }
}

/** The key of modes that share the costs of character pairs for a family. Undefined: the costs do not depend on the previous character. */
const pairing = ({ beginning, family, length }: Mode, next: Family): string | undefined => {
  if (next === "lower" && family === "lower") return `word ${beginning} ${Math.min(length, 4)}`
  if (next === "lower" && family === "upper") return `name ${length === 1 ? beginning : "capitals"}`
  if (next === "upper" && family === "upper") return `capitals ${beginning === "long" ? 2 : Math.min(length, 2)}`
  if ((next === "lower" || next === "upper") && family === "mark")
    return beginning === "bare" ? `${next} behind mark` : undefined
  if ((next === "mark" || next === "line") && family === "mark") return `${next} behind ${beginning} ${length}`
  if (next === "east" && family === "symbol") return "east behind symbol"
  if (next !== family) return undefined
  if (family === "cyrillic" || family === "arabic") return `${family} ${Math.min(length, 3)}`
  return family === "alphabet" || family === "east" || family === "symbol" ? `${family} ${length}` : undefined
}

const pairedFamilies = [
  "lower",
  "upper",
  "mark",
  "line",
  "cyrillic",
  "arabic",
  "alphabet",
  "east",
  "symbol"
] as const satisfies ReadonlyArray<Family>

/** The offset of the pair costs: a row for each slot of a mode, with one cell per column of the family. */
interface Pairs {
  readonly at: number
  readonly columns: ReadonlyArray<number>
}

/**
 * The layout of the fitted costs in one array of cells: first one for each mode and class, then those of pairs of characters, then two for each
 * class, within a run of its family and elsewhere. The first fitted cell applies.
 */
interface Layout extends Modes {
  /** The pairs that each mode uses. */
  readonly pairs: ReadonlyArray<ReadonlyArray<Pairs>>
  /** The offset of the costs that depend on the class only. */
  readonly classCosts: number
}

/** Lays out the costs in cells. */
export const layoutCosts = (): Layout => {
  const modes = listModes()
  const blocks = new Map<string, Pairs>()
  let at = modes.rows * columns
  const families = pairedFamilies.map((family) => ({ family, of: columnsOf(family) }))
  const pairs = modes.all.map((mode) =>
    families.flatMap(({ family, of }) => {
      const name = pairing(mode, family)
      if (name === undefined) return []
      const block = blocks.get(name) ?? { at, columns: of }
      if (!blocks.has(name)) at += mode.slots * of.length
      blocks.set(name, block)
      return [block]
    })
  )
  return { ...modes, pairs, classCosts: at }
}

/** The cost of a class in a mode, in hundredths, where it is not fitted. */
export const fixedCost = (mode: Mode, column: number): number | undefined => {
  const { family, slot } = classes[column] ?? {}
  return family === mode.family && slot === 0 ? mode.more : undefined
}

/** The cell of the cost of a class in a mode, where no cell before it is fitted. */
export const classCell = ({ classCosts: firstClassCost }: Layout, mode: Mode, column: number): number =>
  firstClassCost + 2 * column + (classes[column]?.family === mode.family ? 0 : 1)

/** The costs that the table can express, in hundredths of a token: finer where they are small. */
export const levels: ReadonlyArray<number> = [
  ...Array.from({ length: 7 }, (_, i) => i),
  ...Array.from({ length: 57 }, (_, i) => 8 + 2 * i),
  ...Array.from({ length: 27 }, (_, i) => 125 + 5 * i),
  300
]

/** The characters that encode the levels, in the order of `levels`. */
export const levelLetters =
  " !#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}"
/** Marks a gap; the next character encodes how many cells were not fitted. */
export const gap = "~"

const unfitted = -1

/** Decodes the costs of all cells. */
const readCosts = (text: string, cells: number): Int16Array => {
  const places = new Uint8Array(128)
  const costOf = new Int16Array(128)
  for (let i = 0; i < levelLetters.length; i += 1) {
    places[levelLetters.charCodeAt(i)] = i
    costOf[levelLetters.charCodeAt(i)] = levels[i] ?? 0
  }
  const skip = gap.charCodeAt(0)
  const costs = new Int16Array(cells).fill(unfitted)
  let cell = 0
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === skip) {
      i += 1
      cell += (places[text.charCodeAt(i)] ?? 0) + 1
    } else {
      costs[cell] = costOf[code] ?? 0
      cell += 1
    }
  }
  return costs
}

/** The number of bits of a step that hold its cost. The bits above hold the place of the next row. */
export const costBits = 9
const costMask = (1 << costBits) - 1

/** Lookup tables by column, used while the machine is built. */
interface Columns {
  /** Columns of one kind lead to the same mode: one number for each family, and one for CR. */
  readonly kinds: Uint8Array
  /** One class of each kind. */
  readonly kindClasses: ReadonlyArray<Class>
  readonly slots: Uint8Array
}

const columnTables = (): Columns => {
  const kindClasses: Array<Class> = []
  const kinds = Uint8Array.from(classes, (each) => {
    const kindIndex = kindClasses.findIndex(
      ({ family, slot }) => family === each.family && (family !== "line" || slot === each.slot)
    )
    return kindIndex >= 0 ? kindIndex : kindClasses.push(each) - 1
  })
  return { kinds, kindClasses, slots: Uint8Array.from(classes, (_, column) => slotOf(column)) }
}

/** The first state of the following mode, by kind of column or for one kind only. `same`: the character repeats the previous one. */
const statesBehind = (
  { all, numbers }: Layout,
  { kindClasses }: Columns,
  mode: Mode,
  same: boolean,
  only: number | undefined
): ReadonlyArray<number> =>
  kindClasses.map((each, kind) =>
    only === undefined || only === kind ? (all[numbers.get(following(mode, each, same)) ?? 0]?.at ?? 0) : 0
  )

/** The compiled machine. */
export interface Machine {
  /** The class of each UTF-16 unit. */
  readonly classOf: Uint8Array
  /**
   * A row's place plus a class is the index of a step: the place of the next row and, in the lowest `costBits`, the cost. The start is at place 0.
   */
  readonly steps: Int32Array
}

const stepTo = (state: number, cost: number): number => ((state * columns) << costBits) | cost

/** Replaces costs that depend on the class only by the costs of pairs. */
const addPairs = (steps: Int32Array, costs: Int16Array, mode: Mode, pairs: Pairs): void => {
  const width = pairs.columns.length
  const of = Uint8Array.from(pairs.columns)
  for (let slot = 0; slot < mode.slots; slot += 1) {
    const row = (mode.at + slot) * columns
    const begin = pairs.at + slot * width
    for (let i = 0; i < width; i += 1) {
      const cost = costs[begin + i] ?? unfitted
      const at = row + (of[i] ?? 0)
      if (cost !== unfitted) steps[at] = ((steps[at] ?? 0) & ~costMask) | cost
    }
  }
}

const makeMachine = (): Machine => {
  const layout = layoutCosts()
  const costs = readCosts(fitted.join(""), layout.classCosts + 2 * columns)
  const tables = columnTables()
  const { kindClasses, kinds, slots } = tables
  const steps = new Int32Array(layout.states * columns)
  const row = new Int32Array(columns)
  let before = -1
  layout.all.forEach((mode, number) => {
    const inFamily = kindClasses.map(({ family }) => family === mode.family)
    // Long runs of blanks have the row of the shorter ones, except for one blank more.
    const only = mode.row === before ? inFamily.indexOf(true) : undefined
    before = mode.row
    const following = statesBehind(layout, tables, mode, false, only)
    for (let column = 0; column < columns; column += 1) {
      const kind = kinds[column] ?? 0
      if (only !== undefined && only !== kind) continue
      const own = costs[mode.row * columns + column] ?? unfitted
      const classCost = costs[layout.classCosts + 2 * column + (inFamily[kind] === true ? 0 : 1)] ?? 0
      const cost = mode.more === undefined ? undefined : fixedCost(mode, column)
      row[column] = stepTo(
        (following[kind] ?? 0) + (slots[column] ?? 0),
        cost ?? Math.max(0, own === unfitted ? classCost : own)
      )
    }
    for (let slot = 0; slot < mode.slots; slot += 1) steps.set(row, (mode.at + slot) * columns)
    for (const pairs of layout.pairs[number] ?? []) addPairs(steps, costs, mode, pairs)
    if (mode.family !== "mark" && mode.family !== "symbol") return
    const kind = inFamily.indexOf(true)
    const again = statesBehind(layout, tables, mode, true, kind)
    for (let column = 0; column < columns; column += 1) {
      if (kinds[column] !== kind) continue
      const slot = slots[column] ?? 0
      const at = (mode.at + slot) * columns + column
      steps[at] = stepTo((again[kind] ?? 0) + slot, (steps[at] ?? 0) & costMask)
    }
  })
  return { classOf: classify(), steps }
}

let made: Machine | undefined
let prepared: () => Machine | undefined = () => undefined

/** Has the machine taken from elsewhere on first use, where that has one, because it is always the same. */
export const usePrepared = (load: () => Machine | undefined): void => {
  prepared = load
}

/** The machine, built on first use (some twenty milliseconds), so that a program that counts nothing does not pay for it. */
export const machine = (): Machine => (made ??= prepared() ?? makeMachine())
