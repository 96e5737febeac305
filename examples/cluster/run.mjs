/**
 * PostgreSQL, two runners and a front, and what happens to six sessions when one of the runners is killed in the middle of their answers.
 *
 *   node run.mjs
 *
 * It starts the PostgreSQL that is installed, on an empty folder, and deletes it in the end. With another one:
 *
 *   docker run --rm -d -p 5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust postgres:17
 *   PALIMPSEST_STORE=postgres://postgres@127.0.0.1:5432/postgres node run.mjs
 *
 * It needs no key: a small server in this process plays the model, and answers one word a quarter of a second.
 */
import { execFileSync, spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"

const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))
const words = "one two three four five six seven eight nine ten eleven twelve".split(" ")

const model = createServer(async (request, response) => {
  request.resume()
  if (!request.url.includes("streamGenerateContent")) {
    return response.setHeader("content-type", "application/json").end(`{"totalTokens": 10}`)
  }
  response.setHeader("content-type", "text/event-stream")
  const send = (text, end) => {
    const candidate = { content: { role: "model", parts: [{ text }] }, ...(end ? { finishReason: "STOP" } : {}) }
    response.write(`data: ${JSON.stringify({ candidates: [candidate] })}\n\n`)
  }
  for (const word of words) {
    send(`${word} `, false)
    await wait(250)
  }
  send("end.", true)
  response.end()
})
await new Promise((resolve) => model.listen(0, "127.0.0.1", resolve))

const built = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../dist/palimpsest.mjs")
const [program, ...first] = existsSync(built) ? [process.execPath, built] : ["palimpsest"]

/** The address of the database that is given, or of one that is started for this run. */
const database = async () => {
  const given = process.env.PALIMPSEST_STORE
  if (given !== undefined) return { url: given, stop: async () => {} }
  // Debian keeps the programs of each version in a folder of its own.
  const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql") : []
  const folders = [
    ...(process.env.PATH ?? "").split(path.delimiter),
    ...versions.map((version) => `/usr/lib/postgresql/${version}/bin`)
  ]
  const programs = folders.find((folder) => existsSync(path.join(folder, "initdb")))
  if (programs === undefined) {
    console.error("PostgreSQL is not installed: install it, or set PALIMPSEST_STORE to the address of a database")
    process.exit(1)
  }
  const folder = mkdtempSync(path.join(tmpdir(), "cluster-db-"))
  // PostgreSQL refuses to run as root; this user is on every system.
  const user = process.getuid() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = path.join(folder, "data")
  execFileSync(path.join(programs, "initdb"), ["-D", data, "-A", "trust", "-U", "palimpsest"], { ...user, cwd: folder, stdio: "ignore" })
  const port = 4413
  const child = spawn(
    path.join(programs, "postgres"),
    ["-D", data, "-k", folder, "-p", String(port), "-c", "listen_addresses=127.0.0.1"],
    { ...user, cwd: folder, stdio: ["ignore", "ignore", "pipe"] }
  )
  const ended = new Promise((resolve) => child.once("exit", resolve))
  const stop = async () => {
    child.kill("SIGINT")
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  await new Promise((resolve, reject) => {
    child.stderr.on("data", (text) => String(text).includes("ready to accept connections") && resolve())
    child.once("exit", (code) => reject(new Error(`PostgreSQL ended with status ${code}`)))
  })
  return { url: `postgres://palimpsest@127.0.0.1:${port}/postgres`, stop }
}

const { stop, url: store } = await database()

/** Starts a server, and returns what it prints when it takes requests. */
const start = (...args) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, [...first, "serve", "--json", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
      env: {
        ...process.env,
        PALIMPSEST_STORE: store,
        PALIMPSEST_HOME: mkdtempSync(path.join(tmpdir(), "cluster-")),
        GEMINI_API_KEY: "none",
        GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${model.address().port}`
      }
    })
    child.stdout.once("data", (data) => resolve({ child, ...JSON.parse(String(data)) }))
    child.once("exit", (code) => reject(new Error(`a server ended with status ${code}`)))
  })

const runners = []
for (const port of [4411, 4412]) {
  runners.push(await start("--runner", "--address", `127.0.0.1:${port}`, "--port", "0"))
}
const front = await start("--front", "--port", "0")
const ask = (method, place, body) =>
  fetch(`${front.url}/v1/sessions${place}`, {
    method,
    headers: { authorization: `Bearer ${front.token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

/** Sends a message to a new session and reads its stream to the end. Returns what a person saw. */
const talk = async (number) => {
  const { id } = await (await ask("POST", "", {})).json()
  const stream = (await ask("POST", `/${id}/messages`, { id: "m1", text: "Count." })).body
  const seen = []
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
    for (const [, json] of piece.matchAll(/^data: (.*)$/gm)) {
      const { event } = JSON.parse(json)
      if (event._tag === "Content") seen.push(event.text.trim())
      if (event._tag === "Retry" || event._tag === "Reset") seen.push("| its runner died, and the model answers anew |")
      if (event._tag === "TurnEnded") seen.push(`(${event.status})`)
    }
  }
  const { messages } = await (await ask("GET", `/${id}`)).json()
  return [`session ${number}: ${seen.join(" ")}`, ...messages.map(({ parts, role }) => `  ${role}: ${parts[0].text}`)].join("\n")
}

const talks = Array.from({ length: 6 }, (_, index) => talk(index + 1))
await wait(3_000)
const { child: victim } = runners.pop()
victim.removeAllListeners("exit")
victim.kill("SIGKILL")
console.log("killed one of two runners while six sessions are answered\n")
for (const one of talks) console.log(await one)

for (const { child } of [...runners, front]) {
  child.removeAllListeners("exit")
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.kill("SIGTERM")
  await ended
}
await stop()
model.close()
