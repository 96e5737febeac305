import * as vocabulary from "gpt-tokenizer/bpeRanks/o200k_base"
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/**
 * Fits the costs of the token estimator to a real vocabulary and writes `src/domain/tokens/TokenCosts.ts`.
 *
 *     node scripts/fit-tokens/texts.mjs <folder>     gathers and makes texts: <folder>/train and <folder>/held
 *     node scripts/fit-tokens/fit.mjs <folder>       fits on train, reports on held; --report only reports
 *
 * Texts are files in one folder per class. First each cost is set to the mean of the vocabulary's tokens at that place; then
 * gradient steps reduce the relative error of whole texts while staying close to those means. Every step is deterministic.
 */

const folder = process.argv[2]
if (folder === undefined) throw new Error("usage: fit.mjs <folder> [--report]")
const target = join(import.meta.dirname, "..", "..", "src", "domain", "tokens", "TokenCosts.ts")

/** Weights of classes: text typical of conversations with agents counts more, rare languages count less. */
const weights = {
  english: 3,
  python: 2,
  ts: 2,
  js: 2,
  rust: 2,
  json: 2,
  diff: 2,
  german: 2,
  french: 2,
  spanish: 2,
  russian: 2,
  chinese: 2,
  japanese: 2,
  korean: 2,
  "tool-paths": 2,
  "tool-json": 2,
  "tool-numbered": 2,
  "tool-grep": 2
}
const minor = new Set(
  "italian portuguese polish turkish czech ukrainian vietnamese swedish dutch hungarian finnish hebrew greek hindi thai persian bengali tamil georgian armenian php vim toml sql xml yaml runs repeats jumbles rare percent constants latin".split(
    " "
  )
)
const weightOf = (name) => weights[name] ?? (name.startsWith("prose-") ? 1.5 : minor.has(name) ? 0.5 : 1)
/** Characters of a class beyond which additional text has no more weight. */
const enough = 300_000
/** Cells seen less often than this (weighted) are not written; the more general cost applies to them. */
const leastSeen = 40
/** How strongly a cost is pulled towards its mean. */
const held = 0.3

const tokens = (text) => encode(text, { disallowedSpecial: new Set() })
const byteLengths = vocabulary.default.map((token) =>
  typeof token === "string" ? Buffer.byteLength(token) : token.length
)

// --- ideographs and Hangul by how often they continue a token rather than begin one ----------------------------------------

/** A token's rank serves as its frequency. */
const eastTiers = () => {
  const all = new Map()
  const begun = new Map()
  const single = new Set()
  vocabulary.default.forEach((token, rank) => {
    if (typeof token !== "string") return
    const weight = 1 / (rank + 1000)
    const characters = [...token.trimStart()]
    if (characters.length === 1) single.add(characters[0])
    characters.forEach((character, i) => {
      all.set(character, (all.get(character) ?? 0) + weight)
      if (i === 0) begun.set(character, (begun.get(character) ?? 0) + weight)
    })
  })
  const tiers = (first, last, bounds) => {
    const groups = bounds.map(() => "")
    for (let code = first; code <= last; code += 1) {
      const character = String.fromCharCode(code)
      if (!single.has(character)) continue
      const share = (begun.get(character) ?? 0) / all.get(character)
      groups[bounds.findIndex((bound) => share <= bound)] += character
    }
    return groups
  }
  return [...tiers(0x4e00, 0x9fff, [0.5, 0.75, 0.9, 1]), ...tiers(0xac00, 0xd7a3, [0.4, 0.6, 0.8, 1])]
}

/**
 * The vocabulary's cost of each second half of a surrogate pair: 8 when it makes an emoji of one token, else one bit for each
 * of the three planes of emoji, set when it is one of at most two tokens there.
 */
const emojiDigits = () => {
  const count = (high, low) => encode(String.fromCharCode(high, low)).length
  return Array.from({ length: 1_024 }, (_, i) => {
    const found = [0xd83c, 0xd83d, 0xd83e].map((high) => count(high, 0xdc00 + i))
    return found.includes(1) ? 8 : found.reduce((bits, tokens, plane) => bits | (tokens <= 2 ? 1 << plane : 0), 0)
  }).join("")
}

const lines = (text) => text.match(/.{1,110}/gu) ?? []
const written = (east, emoji, fitted) => `/** Costs of tokens, written by scripts/fit-tokens/fit.mjs: do not edit. */

/** Ideographs that are a token by themselves, from those that mostly go on with one to those that begin one; then Hangul. */
export const east: ReadonlyArray<string> = [
${east
  .map((tier) =>
    lines(tier)
      .map((line) => `  "${line}"`)
      .join(" +\n")
  )
  .join(",\n")}
]

/** A digit for each second half of a pair, U+DC00 to U+DFFF: 8 for emoji of one token, else bits for those of two. */
export const emoji: string =
  ${lines(emoji)
    .map((line) => `"${line}"`)
    .join(" +\n  ")}

/** Costs by cell, as \`TokenMachine.ts\` reads them. */
export const fitted: ReadonlyArray<string> = [
${lines(fitted)
  .map((line) => `  ${JSON.stringify(line)}`)
  .join(",\n")}
]
`

const east = eastTiers()
const emoji = emojiDigits()
if (!process.argv.includes("--report")) writeFileSync(target, written(east, emoji, ""))
const { classCell, columns, costBits, fixedCost, gap, layoutCosts, levelLetters, levels, machine } =
  await import("../../src/domain/tokens/TokenMachine.ts")
const layout = layoutCosts()
const usual = layout.classCosts
/** The number of costs. */
const cells = usual + 2 * columns

/** The number of the mode that a state has. */
const modeAt = (state) => layout.all.findLastIndex(({ at }) => at <= state)

/** The cost of a class in a state, in hundredths, where it is not fitted. */
const fixed = (state, column) => fixedCost(layout.all[modeAt(state)], column)

/** The cells of a state and a class: the first fitted one applies, and the last is always fitted. */
const cellsOf = (state, column) => {
  const number = modeAt(state)
  const mode = layout.all[number]
  const block = layout.pairs[number].find((pairs) => pairs.columns.includes(column))
  const pair =
    block === undefined ? [] : [block.at + (state - mode.at) * block.columns.length + block.columns.indexOf(column)]
  return [...pair, mode.row * columns + column, classCell(layout, mode, column)]
}
const { classOf, steps } = machine()

// --- texts, and the vocabulary's tokens at each character -----------------------------------------------------------------

/** Tokens by the UTF-16 unit they begin at. The cost of blanks is known only after them and is stored there. */
const costsOf = (text) => {
  const found = tokens(text)
  const costs = new Uint8Array(text.length)
  let token = 0
  let begins = 0
  let byte = 0
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    const high = code >= 0xd800 && code < 0xdc00
    byte += code < 0x80 || high ? 1 : code < 0x800 ? 2 : 3
    for (; token < found.length && begins < byte; token += 1) {
      costs[i] += 1
      begins += byteLengths[found[token]]
    }
  }
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] !== " ") continue
    let end = i
    while (text[end] === " ") end += 1
    const broken = text[end] === "\n" || text[end] === "\r"
    for (let at = end - 1; at >= i && end < text.length; at -= 1) {
      const to = broken ? (end - i > 1 ? i + 1 : end) : at === end - 1 ? end : at === i ? i + 1 : at
      if (to === at) continue
      costs[to] += costs[at]
      costs[at] = 0
    }
    i = end - 1
  }
  return { costs, real: found.length }
}

const read = (split) =>
  readdirSync(join(folder, split))
    .sort()
    .flatMap((name) =>
      readdirSync(join(folder, split, name))
        .sort()
        .map((file) => ({ name, file, text: readFileSync(join(folder, split, name, file), "utf8") }))
        .filter(({ text }) => text !== "" && text.isWellFormed() && !text.includes("\ufffd\ufffd"))
    )

/** The cells of each state and class, created at first use. */
const known = new Map()
const cellsAt = (place) => {
  const cached = known.get(place)
  if (cached !== undefined) return cached
  const found = cellsOf(Math.floor(place / columns), place % columns)
  known.set(place, found)
  return found
}

const fixedCosts = new Map()
const fixedAt = (place) => {
  if (!fixedCosts.has(place)) fixedCosts.set(place, fixed(Math.floor(place / columns), place % columns))
  return fixedCosts.get(place)
}

/** How often each place of the machine occurs in a text, and its tokens there. */
const countPlaces = (sample) => {
  const { costs, real } = costsOf(sample.text)
  const met = new Map()
  let base = 0
  let row = 0
  for (let i = 0; i < sample.text.length; i += 1) {
    const place = row + classOf[sample.text.charCodeAt(i)]
    const known = fixedAt(place)
    if (known !== undefined) base += known / 100
    else {
      const entry = met.get(place) ?? [0, 0]
      if (entry[0] === 0) met.set(place, entry)
      entry[0] += 1
      entry[1] += costs[i]
    }
    row = steps[place] >> costBits
  }
  return { name: sample.name, file: sample.file, length: sample.text.length, real, base, met }
}

/** The places of a text, gathered into their cells. */
const byCell = (sample, cellAt) => {
  const found = new Map()
  for (const [place, [times, cost]] of sample.met) {
    const cell = cellAt(place)
    const entry = found.get(cell) ?? [0, 0]
    found.set(cell, [entry[0] + times, entry[1] + cost])
  }
  return {
    ...sample,
    cells: Int32Array.from(found.keys()),
    times: Float64Array.from(found.values(), ([times]) => times),
    costs: Float64Array.from(found.values(), ([, cost]) => cost)
  }
}

const estimate = ({ base, cells: ids, times }, costs) =>
  ids.reduce((sum, cell, i) => sum + times[i] * costs[cell], base)

// --- the fit -----------------------------------------------------------------------------------------------------------------

const fit = () => {
  const samples = read("train").map(countPlaces)
  const sizes = new Map()
  const numbers = new Map()
  for (const { length, name } of samples) {
    sizes.set(name, (sizes.get(name) ?? 0) + length)
    numbers.set(name, (numbers.get(name) ?? 0) + 1)
  }
  const share = ({ name }) => weightOf(name) * Math.min(1, enough / sizes.get(name))

  // Which cells are seen often enough; the counts of the others go to the more general one.
  const seen = new Float64Array(cells)
  for (const sample of samples)
    for (const [place, [times]] of sample.met) seen[cellsAt(place)[0]] += share(sample) * times
  const firsts = new Map()
  for (const sample of samples) for (const place of sample.met.keys()) firsts.set(cellsAt(place)[0], cellsAt(place))
  for (const chain of firsts.values())
    if (chain.length === 3 && seen[chain[0]] < leastSeen) seen[chain[1]] += seen[chain[0]]
  const isFitted = (cell) => cell >= usual || seen[cell] >= leastSeen
  const cellAt = (place) => cellsAt(place).find(isFitted)
  const gathered = samples.map((sample) => byCell(sample, cellAt))

  const times = new Float64Array(cells)
  const sums = new Float64Array(cells)
  for (const sample of gathered)
    sample.cells.forEach((cell, i) => {
      times[cell] += share(sample) * sample.times[i]
      sums[cell] += share(sample) * sample.costs[i]
    })
  // The default cost of a class is its mean over all texts.
  const usualTimes = new Float64Array(2 * columns)
  const usualSums = new Float64Array(2 * columns)
  for (const sample of samples)
    for (const [place, [count, cost]] of sample.met) {
      const at = cellsAt(place).at(-1) - usual
      usualTimes[at] += share(sample) * count
      usualSums[at] += share(sample) * cost
    }
  const usualCost = (at) => {
    const other = at ^ 1
    return usualTimes[at] > 5
      ? usualSums[at] / usualTimes[at]
      : (usualSums[at] + usualSums[other] + 3) / (usualTimes[at] + usualTimes[other] + 3)
  }
  const priors = new Float64Array(cells)
  for (const chain of firsts.values()) for (const cell of chain) priors[cell] = usualCost(chain.at(-1) - usual)
  for (let at = 0; at < 2 * columns; at += 1) priors[usual + at] = usualCost(at)
  const means = priors.map((prior, cell) => (sums[cell] + 4 * prior) / (times[cell] + 4))

  const costs = Float64Array.from(means)
  const first = new Float64Array(cells)
  const second = new Float64Array(cells)
  const total = [...numbers.keys()].reduce((sum, name) => sum + weightOf(name), 0)
  const all = times.reduce((sum, count) => sum + count, 0)
  for (let step = 1; step <= 400; step += 1) {
    const slope = new Float64Array(cells)
    for (const sample of gathered) {
      const weight = weightOf(sample.name) / numbers.get(sample.name) / total
      const error = (2 * weight * (estimate(sample, costs) / sample.real - 1)) / sample.real
      for (let i = 0; i < sample.cells.length; i += 1) slope[sample.cells[i]] += error * sample.times[i]
    }
    const rate = step < 300 ? 0.005 : 0.001
    for (let cell = 0; cell < cells; cell += 1) {
      if (times[cell] === 0) continue
      slope[cell] += held * 2 * (times[cell] / all) * (costs[cell] - means[cell])
      first[cell] = 0.9 * first[cell] + 0.1 * slope[cell]
      second[cell] = 0.999 * second[cell] + 0.001 * slope[cell] ** 2
      const by = first[cell] / (1 - 0.9 ** step) / (Math.sqrt(second[cell] / (1 - 0.999 ** step)) + 1e-9)
      costs[cell] = Math.min(3, Math.max(0, costs[cell] - rate * by))
    }
  }

  const nearest = (cost) =>
    levels.reduce(
      (best, level, i) => (Math.abs(level - cost * 100) < Math.abs(levels[best] - cost * 100) ? i : best),
      0
    )
  let text = ""
  let missing = 0
  const close = () => {
    for (; missing > 0; missing -= Math.min(missing, levelLetters.length))
      text += gap + levelLetters[Math.min(missing, levelLetters.length) - 1]
  }
  let count = 0
  for (let cell = 0; cell < cells; cell += 1) {
    if (cell < usual && (times[cell] === 0 || !isFitted(cell))) {
      missing += 1
      continue
    }
    close()
    count += 1
    text += levelLetters[nearest(costs[cell])]
  }
  writeFileSync(target, written(east, emoji, text))
  console.log(`${samples.length} texts, ${count} of ${cells} cells fitted, ${text.length} characters`)
}

// --- the report --------------------------------------------------------------------------------------------------------------

const report = async () => {
  const { estimateText } = await import(`../../src/domain/tokens/Tokens.ts?fresh`)
  const rows = Map.groupBy(read("held"), ({ name }) => name)
  for (const [name, samples] of rows) {
    const ratios = samples.map(({ text }) => estimateText(text) / tokens(text).length).sort((a, b) => a - b)
    const [low, middle, high] = [ratios[0], ratios[Math.floor(ratios.length / 2)], ratios.at(-1)]
    console.log(
      `${name.padEnd(16)} ${String(ratios.length).padStart(4)} texts  ${low.toFixed(3)} ${middle.toFixed(3)} ${high.toFixed(3)}${low < 0.85 || high > 1.15 ? "  beyond 15 %" : ""}`
    )
  }
}

if (process.argv.includes("--report")) await report()
else fit()
