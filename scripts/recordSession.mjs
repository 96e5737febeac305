/**
 * `node scripts/recordSession.mjs`: records a first session with the built program as an animated picture, docs/first-session.svg.
 *
 * The program runs in tmux against a scripted model on loopback. What the screen shows is taken ten times a second; each row of the
 * picture is there from when the screen showed it until it changed. Pauses are shortened. Needs tmux and `npm run build`.
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import * as FakeGemini from "../src/layers/testing/FakeGemini.ts"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const columns = 88
const rows = 22

// --- the session ----------------------------------------------------------------------------------------------------------

const source = `export const total = (cart) => cart.reduce((sum, i) => sum + i.price, 0)
`
const mended = `export const total = (cart) => cart.reduce((sum, i) => sum + i.price * i.count, 0)
`

let prompted = 6_050
/** What the next answer reports: each request is longer than the one before. */
const usage = () => {
  prompted += 350
  return { promptTokenCount: prompted, candidatesTokenCount: 120, totalTokenCount: prompted + 120 }
}
const pause = (millis) => FakeGemini.wait(Effect.sleep(`${millis} millis`))
/** An answer that comes in pieces. */
const says = (text) => [
  FakeGemini.streamHead,
  ...(text.match(/[^]{1,24}/g) ?? []).flatMap((piece) => [
    pause(60),
    FakeGemini.event(FakeGemini.response([{ text: piece }], { finishReason: null }))
  ]),
  FakeGemini.event(FakeGemini.response([{ text: "" }], { finishReason: "STOP", usage: usage() }))
]
const calls = (name, args) => [
  FakeGemini.streamHead,
  pause(700),
  FakeGemini.event(
    FakeGemini.response([{ functionCall: { id: `${name}-1`, name, args } }], { finishReason: "STOP", usage: usage() })
  )
]

const answers = [
  calls("read_file", { file_path: "cart.js" }),
  says(
    "`total` adds prices but **ignores how many** of each item are in the cart:\n\n| item | price | count | added | right |\n|---|--:|--:|--:|--:|\n| pen | 2 | 3 | 2 | 6 |\n| book | 10 | 1 | 10 | 10 |\n\nShall I mend it?"
  ),
  calls("replace", { file_path: "cart.js", old_string: source.trim(), new_string: mended.trim() }),
  says("Mended: each price is now multiplied by its count.")
]

/** What the user does: keys of tmux, a text that is typed, or a pause. `until` is on the screen before the next step. */
const steps = [
  { until: "Ctrl+C twice" },
  { type: "why is the total of my cart wrong?", until: "Shall I mend it?" },
  { wait: 1_500 },
  { type: "yes, please", until: "allow?" },
  { wait: 1_800 },
  { keys: ["y"], until: "multiplied by its count" },
  { wait: 1_200 },
  { type: "/rewind", until: "Go back to before" },
  { wait: 1_500 },
  { keys: ["Enter"], until: "What goes back?" },
  { wait: 1_500 },
  { keys: ["Enter"], until: "Restored" },
  { wait: 2_500 }
]

// --- the recording --------------------------------------------------------------------------------------------------------

const sleep = (millis) => new Promise((done) => setTimeout(done, millis))

/** Plays the steps. Returns the screens with the milliseconds at which each was seen first. */
const play = async (address, folder) => {
  const socket = `palimpsest-record-${process.pid}`
  const tmux = (...args) => execFileSync("tmux", ["-L", socket, "-f", "/dev/null", "-u", ...args], { encoding: "utf8" })
  const work = path.join(folder, "shop")
  mkdirSync(work)
  mkdirSync(path.join(folder, "home"))
  writeFileSync(path.join(work, "cart.js"), source)
  const program = [
    "exec env",
    `HOME=${folder} PALIMPSEST_HOME=${path.join(folder, "home")}`,
    `GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL=${address} TERM=tmux-256color LANG=C.UTF-8`,
    `${process.execPath} ${path.join(root, "dist", "palimpsest.mjs")} chat`
  ].join(" ")
  const options = "set-option -g default-shell /bin/sh ; set-option -g status off ; set-option -g escape-time 0 ;"
  tmux(...options.split(" "), ..."new-session -d -x".split(" "), columns, "-y", rows, "-c", work, program)
  const frames = []
  const begun = Date.now()
  const look = () => {
    const screen = tmux("capture-pane", "-p", "-e").replaceAll(folder, "~")
    if (screen !== frames.at(-1)?.screen) frames.push({ at: Date.now() - begun, screen })
    return screen
  }
  const during = async (millis) => {
    for (const end = Date.now() + millis; Date.now() < end; await sleep(100)) look()
  }
  try {
    for (const { keys, type, until, wait = 0 } of steps) {
      if (type !== undefined) {
        for (const word of type.split(/(?<= )/)) {
          tmux("send-keys", "-l", word)
          await during(130)
        }
        tmux("send-keys", "Enter")
      }
      if (keys !== undefined) tmux("send-keys", ...keys)
      await during(wait)
      if (until === undefined) continue
      const end = Date.now() + 60_000
      // oxlint-disable-next-line no-control-regex
      const plain = () => look().replace(/\u001b\[[\d;]*m/g, "")
      while (!plain().includes(until)) {
        if (Date.now() > end) throw new Error(`waited for ${until}, but the screen shows\n${plain()}`)
        await sleep(100)
      }
    }
  } finally {
    tmux("kill-server")
  }
  return frames
}

/** Longest pause between two screens, and how long the last one stays. */
const maxGapMillis = 1_600
const lastMillis = 3_500

/** The rows of a screen, each with the styles that it takes over from the row before. */
const rowsOf = (screen) => {
  let styles = ""
  return screen.split("\n").map((row) => {
    const whole = styles + row
    // oxlint-disable-next-line no-control-regex
    const codes = whole.match(/\u001b\[[\d;]*m/g) ?? []
    const reset = codes.findLastIndex((code) => /\[(?:0(?:;[\d;]*)?)?m$/.test(code))
    styles = codes.slice(Math.max(0, reset)).join("")
    return whole
  })
}

/** The screens with their times in the picture. */
const timed = (frames) => {
  let now = 0
  return frames.map(({ at, screen }, index) => {
    const before = frames[index - 1]?.at ?? at
    now += Math.min(maxGapMillis, at - before)
    return { at: now, rows: rowsOf(screen) }
  })
}

// --- the picture ----------------------------------------------------------------------------------------------------------

const cell = { width: 7.8, height: 17 }
const margin = 14
const colours = {
  30: "#484f58",
  31: "#ff7b72",
  32: "#7ee787",
  33: "#e3b341",
  34: "#79c0ff",
  35: "#d2a8ff",
  36: "#56d4dd",
  37: "#e6edf3",
  90: "#8b949e"
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** The runs of a row: text of one style, and the column at which it begins. */
const runs = (row) => {
  const found = []
  let style = {}
  let column = 0
  // oxlint-disable-next-line no-control-regex
  for (const piece of row.split(/(\u001b\[[\d;]*m)/)) {
    // oxlint-disable-next-line no-control-regex
    const codes = /^\u001b\[([\d;]*)m$/.exec(piece)?.[1]
    if (codes !== undefined) {
      for (const code of codes.split(";").map(Number)) {
        if (code === 0) style = {}
        else if (code === 1) style = { ...style, bold: true }
        else if (code === 2) style = { ...style, dim: true }
        else if (code === 22) style = { ...style, bold: false, dim: false }
        else if (code === 39) style = { ...style, colour: undefined }
        else if (colours[code] !== undefined) style = { ...style, colour: colours[code] }
      }
      continue
    }
    for (const words of piece.split(/( {2,})/)) {
      if (words.trim() !== "") found.push({ column, text: words.trimEnd(), style })
      column += [...words].length
    }
  }
  return found
}

const drawn = ({ column, style, text }) => {
  const attributes = [
    `x="${(margin + column * cell.width).toFixed(1)}"`,
    `textLength="${([...text].length * cell.width).toFixed(1)}"`,
    style.colour === undefined ? "" : `fill="${style.colour}"`,
    style.bold === true ? `font-weight="700"` : "",
    style.dim === true ? `fill-opacity=".6"` : ""
  ]
  return `<tspan ${attributes.filter((one) => one !== "").join(" ")}>${escaped(text)}</tspan>`
}

/** The picture of timed screens. */
const picture = (frames) => {
  const whole = frames.at(-1).at + lastMillis
  // The approval of the edit: the frame before the answer to it.
  const asked = frames.findLastIndex(({ rows }) => rows.some((row) => row.includes("yes, once")))
  const still = frames[Math.max(0, asked)].at
  const shares = (millis) => (millis / whole).toFixed(4)
  const pieces = []
  for (let row = 0; row < rows; row += 1) {
    for (let first = 0; first < frames.length;) {
      const text = frames[first].rows[row] ?? ""
      let next = first + 1
      while (next < frames.length && (frames[next].rows[row] ?? "") === text) next += 1
      const shown = runs(text).map(drawn).join("")
      if (shown !== "") {
        const from = frames[first].at
        const to = frames[next]?.at
        const times = [
          ["0", from === 0 ? "inline" : "none"],
          ...(from === 0 ? [] : [[shares(from), "inline"]]),
          ...(to === undefined ? [] : [[shares(to), "none"]])
        ]
        const animation =
          times.length === 1
            ? ""
            : `<animate attributeName="display" calcMode="discrete" begin="1s" dur="${whole}ms" repeatCount="indefinite" keyTimes="${times.map(([at]) => at).join(";")}" values="${times.map(([, value]) => value).join(";")}"/>`
        // Before the animation begins, and where none runs, one moment is shown.
        const isStill = from <= still && (to === undefined || to > still)
        pieces.push(
          `<text y="${margin + 26 + row * cell.height}"${isStill ? "" : ` display="none"`}>${shown}${animation}</text>`
        )
      }
      first = next
    }
  }
  const width = Math.ceil(columns * cell.width + 2 * margin)
  const height = Math.ceil(rows * cell.height + 2 * margin + 16)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13" fill="#e6edf3" xml:space="preserve">
<title>A first session: a question about a bug, the mended file, and both taken back with /rewind</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g fill="#30363d"><circle cx="18" cy="15" r="5"/><circle cx="34" cy="15" r="5"/><circle cx="50" cy="15" r="5"/></g>
${pieces.join("\n")}
</svg>
`
}

const folder = mkdtempSync(path.join(tmpdir(), "palimpsest-record-"))
try {
  const recorded = await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        let turn = 0
        const fake = yield* FakeGemini.make(({ method }) => {
          if (method === "countTokens") return FakeGemini.tokens(6_400)
          if (method === "generateContent") return FakeGemini.json(FakeGemini.response([{ text: "The cart's total" }]))
          return answers[turn++] ?? says("That is all.")
        })
        return yield* Effect.promise(() => play(fake.url, folder))
      })
    )
  )
  const file = path.join(root, "docs", "first-session.svg")
  const svg = picture(timed(recorded))
  writeFileSync(file, svg)
  process.stdout.write(`wrote ${path.relative(root, file)}: ${recorded.length} screens, ${svg.length} bytes\n`)
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
