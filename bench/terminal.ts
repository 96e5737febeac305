import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { median, print, ratio } from "./table.ts"

/**
 * `npm run bench:terminal`: from the start of a chat to its prompt, to a key that is pressed at once, and to the status line of the
 * open session; then from a key to its character on the screen, idle and while an answer streams. The built program runs on a
 * terminal that `script` (util-linux) makes.
 */

const node = process.execPath
const bundle = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-terminal-"))
const starts = 11
const keys = 200
/** Milliseconds between two pieces of the answer: some 200 lines a second. */
const pauseMillis = 25
const piece = "- item **one** with `code` and words\n".repeat(5)

const response = (text: string) => ({ candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0 }] })
const server = http.createServer((incoming, outgoing) => {
  incoming.resume()
  incoming.on("end", async () => {
    if (!(incoming.url ?? "").includes("streamGenerateContent")) {
      outgoing.setHeader("content-type", "application/json")
      outgoing.end(JSON.stringify({ ...response("Lines"), totalTokens: 1, inputTokenLimit: 1_000_000 }))
      return
    }
    outgoing.writeHead(200, { "content-type": "text/event-stream" })
    while (!outgoing.destroyed) {
      outgoing.write(`data: ${JSON.stringify(response(piece))}\r\n\r\n`)
      await sleep(pauseMillis)
    }
  })
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const address = server.address()
const env = {
  ...process.env,
  TERM: "xterm-256color",
  PALIMPSEST_HOME: join(folder, "home"),
  GEMINI_API_KEY: "none",
  GOOGLE_GEMINI_BASE_URL: typeof address === "object" ? `http://127.0.0.1:${address?.port}` : ""
}

/** Starts a chat on a terminal. */
const start = () => {
  const command = `stty rows 40 cols 120; exec '${node}' '${bundle}' chat`
  const child = spawn("script", ["-qec", command, "/dev/null"], { env, cwd: folder, stdio: ["pipe", "pipe", "ignore"] })
  let shown = ""
  let look = () => {}
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text
    look()
  })
  const ended = new Promise((resolve) => child.once("exit", resolve))
  return {
    write: (text: string) => child.stdin.write(text),
    /** Waits until something is written; `isNew`: after what was written until now, which is forgotten. */
    until: (isShown: (text: string) => boolean, isNew = true) =>
      new Promise<void>((resolve) => {
        if (isNew) shown = ""
        look = () => {
          if (!isShown(shown)) return
          look = () => {}
          resolve()
        }
        look()
      }),
    end: async () => {
      child.kill()
      await ended
    }
  }
}

/** The editor, which takes keys from now on. */
const isPrompt = (text: string) => text.includes("> ")
/** The editor of a chat without a message: its status line names a new session. */
const isReady = (text: string) => text.includes("new session")

const bare: Array<number> = []
const prompts: Array<number> = []
const firstKeys: Array<number> = []
const sessions: Array<number> = []
for (let round = 0; round <= starts; round += 1) {
  let since = performance.now()
  spawnSync(node, ["-e", "0"])
  const baseline = performance.now() - since
  since = performance.now()
  const chat = start()
  await chat.until(isPrompt)
  const prompt = performance.now() - since
  chat.write("Ω")
  await chat.until((text) => text.includes("Ω"), false)
  const key = performance.now() - since
  await chat.until(isReady, false)
  // The first start saves what Node compiled.
  if (round > 0) {
    bare.push(baseline)
    prompts.push(prompt)
    firstKeys.push(key)
    sessions.push(performance.now() - since)
  }
  await chat.end()
}

/** Milliseconds from each key to the frame that shows it. */
const typed = async (chat: ReturnType<typeof start>) => {
  const taken: Array<number> = []
  for (let key = 0; key < keys; key += 1) {
    // A capital that no other text of the screen has.
    const letter = String.fromCharCode(0x41 + (key % 26)).repeat(1)
    const sign = `Ω${letter}`
    await sleep(30 + (key % 17))
    const since = performance.now()
    chat.write(sign)
    await chat.until((text) => text.includes(sign))
    taken.push(performance.now() - since)
    if (key % 20 === 19) chat.write("\u0015")
  }
  return taken.sort((one, other) => one - other)
}
const row = (what: string, taken: ReadonlyArray<number>) => {
  const half = median(taken)
  const most = taken[Math.floor(taken.length * 0.95)] ?? Number.NaN
  return {
    what,
    value: `${half.toFixed(1)} ms, 95 % within ${most.toFixed(1)} ms`,
    bound: "16 ms (median)",
    ok: half <= 16
  }
}
const chat = start()
await chat.until(isReady)
const idle = await typed(chat)
chat.write("\u0015go\r")
await chat.until((text) => text.includes("item"))
const streaming = await typed(chat)
await chat.end()
server.closeAllConnections()
server.close()
rmSync(folder, { recursive: true, force: true })

print([
  ratio("from the start of a chat to its prompt, by wall, to node -e 0", median(prompts), median(bare), 6),
  ratio("the same to the character of a key pressed then", median(firstKeys), median(bare), 6),
  ratio("the same to the status line of the open session", median(sessions), median(bare)),
  row("from a key to its character on an idle screen", idle),
  row("the same while an answer streams 200 lines a second", streaming)
])
