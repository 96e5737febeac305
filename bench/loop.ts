import { readFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { RepeatedText } from "../src/domain/agent/RepeatedText.ts"
import { print, type Row } from "./table.ts"

/**
 * `node bench/loop.ts`: the cost of detecting repeated text, beside a plain rolling hash over the same text in the
 * same run. The text arrives in pieces, as from a model.
 */

const length = 4_000_000
const piece = 64

const factor = 0x2f0b_4c47
const chunk = 50
let power = 1
for (let i = 0; i < chunk; i += 1) power = Math.imul(power, factor)

/** The baseline: hashes each chunk of 50 characters and does nothing else. */
const rolling = (text: string): number => {
  let hash = 0
  let seen = 0
  for (let i = 0; i < text.length; i += 1) {
    const leaving = i < chunk ? 0 : Math.imul(text.charCodeAt(i - chunk), power)
    hash = (Math.imul(hash, factor) + text.charCodeAt(i) - leaving) | 0
    seen ^= hash
  }
  return seen
}

/** Fills the length with `line` of consecutive numbers. */
const filled = (line: (n: number) => string): string => {
  const lines: Array<string> = []
  for (let n = 0, size = 0; size < length; n += 1) {
    const next = line(n)
    lines.push(next)
    size += next.length
  }
  return lines.join("")
}

/** A sequence of numbers that is the same in every run. */
let state = 1
const random = (below: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

const readme = readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8")
const words = [...new Set(readme.split(/[^\p{L}]+/u))].filter((word) => word !== "")
const word = () => words[random(words.length)] ?? ""

/** Texts. In some of them nearly every chunk occurred before, although none is a loop. */
const texts: ReadonlyArray<readonly [name: string, text: string]> = [
  ["prose", filled(() => `${Array.from({ length: 12 }, word).join(" ")}. ${random(4) === 0 ? "\n" : ""}`)],
  ["documentation, again and again", filled(() => readme)],
  [
    "lines with a long beginning in common",
    filled((n) => `The file of the settings of the whole project that is at src/domain/Part${n * 7}.ts is fine.\n`)
  ],
  [
    "a log",
    filled(
      (n) => `2026-01-01T${n} ERROR the connection to the database was refused, trying again in ${random(900)} ms\n`
    )
  ],
  ["letters without order", filled(() => String.fromCharCode(97 + random(26), 97 + random(26)))]
]

/** Copies of the texts, as a stream delivers them, rather than views of one string. */
const pieces = (text: string): ReadonlyArray<string> => {
  const all: Array<string> = []
  for (let at = 0; at < text.length; at += piece)
    all.push(String(JSON.parse(JSON.stringify(text.slice(at, at + piece)))))
  return all
}

const timed = (work: () => unknown): number => {
  const start = performance.now()
  work()
  return performance.now() - start
}

const rows: Array<Row> = []
let used = 0
for (const [name, text] of texts) {
  const cut = pieces(text)
  let plain = Number.POSITIVE_INFINITY
  let detecting = Number.POSITIVE_INFINITY
  let found = false
  for (let round = 0; round < 9; round += 1) {
    plain = Math.min(
      plain,
      timed(() => (used ^= rolling(text)))
    )
    const detector = new RepeatedText()
    detecting = Math.min(
      detecting,
      timed(() => {
        for (const one of cut) if (detector.push(one) !== undefined) found = true
      })
    )
  }
  rows.push({
    what: `loop detection over ${name}`,
    value: `${((detecting * 1e6) / length).toFixed(0)} ns a character (a rolling hash: ${((plain * 1e6) / length).toFixed(0)})`,
    bound: "500 ns",
    ok: detecting * 1e6 <= 500 * length
  })
  if (found) throw new Error(`${name} goes round in circles`)
}
console.log(
  `Node ${process.version}, ${process.arch}, ${cpus().length} cores; ${length / 1e6} million characters in pieces of ${piece}; best of 9`
)
print(rows)
