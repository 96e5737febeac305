/**
 * A support desk over `palimpsest serve`: a customer writes and sends pictures, the model looks up orders, and a person decides about
 * refunds. The conversation and its open questions are in the server's database: when the server or the desk is killed, both go on.
 *
 *   GEMINI_API_KEY=… node desk.mjs          # DESK_PORT (4500), DESK_HOME: its data, PALIMPSEST: the program
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import path from "node:path"
import { fileURLToPath } from "node:url"

const here = path.dirname(fileURLToPath(import.meta.url))
const home = path.resolve(process.env.DESK_HOME ?? path.join(here, "data"))
const built = path.resolve(here, "../../dist/palimpsest.mjs")
const program = process.env.PALIMPSEST ?? (existsSync(built) ? built : "palimpsest")
const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

// The product: orders, and the two things that the model may do with them.
const orders = { 7: { item: "teapot", price: 40, state: "delivered" }, 8: { item: "cup", price: 9, state: "on its way" } }
const order = { type: "object", properties: { order: { type: "string" } }, required: ["order"] }
const session = {
  id: "desk",
  title: "Support desk",
  metadata: { product: "teapots" },
  instruction: "You are the support desk of a shop for teapots. Look up an order before you speak about it. Be brief.",
  tools: [
    { name: "look_up_order", description: "Looks up an order by its number", parameters: order, deadline: 60_000 },
    { name: "refund_order", description: "Refunds an order. A person decides.", parameters: order, deadline: 86_400_000 }
  ]
}

// The server: started again whenever it ends, as systemd would.
mkdirSync(home, { recursive: true })
let server
const supervise = () => {
  const [command, ...first] = program.endsWith(".mjs") ? [process.execPath, program] : [program]
  const env = { ...process.env, PALIMPSEST_HOME: home }
  const args = [...first, "serve", "--json", "--port", "0", "--store", "sqlite"]
  const child = spawn(command, args, { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] })
  child.stdout.once("data", (line) => (server = { ...JSON.parse(String(line)), pid: child.pid }))
  child.once("exit", () => ((server = undefined), setTimeout(supervise, 200)))
}
supervise()
const stop = () => (server && process.kill(server.pid), process.exit())

/** Asks the server, as often as it takes: each request may be repeated. */
const ask = async (method, place, body, headers = {}) => {
  for (;;) {
    try {
      const response = await fetch(`${server.url}/v1/sessions${place}`, {
        method,
        headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      if (response.status !== 429 && response.status < 500) return response
    } catch {}
    await wait(300)
  }
}

const created = ask("POST", "", session)
const answer = async (call, body) => (await ask("POST", `/desk/calls/${call}`, body)).status

/** What happened in the conversation, for the pages that are open. */
const happened = []
const pages = new Set()
const show = (event) => {
  happened.push(event)
  for (const page of pages) page.write(`data: ${JSON.stringify(event)}\n\n`)
}

const onEvent = async ({ event, message }) => {
  if (event._tag === "TurnStarted") show({ kind: "customer", text: event.text })
  if (event._tag === "Content") show({ kind: "desk", message, text: event.text })
  if (event._tag === "Retry") show({ kind: "again", message })
  if (event._tag === "TurnEnded") show({ kind: "end", message, status: event.status })
  if (event._tag !== "Question") return
  const { args, call, name } = event
  const found = orders[args.order]
  if (found === undefined) await answer(call, { error: "there is no such order" })
  else if (name === "look_up_order") await answer(call, { result: found })
  else show({ kind: "question", call, order: args.order })
}

/** Follows the session for good, from the event after the last one that was seen. */
const follow = async () => {
  await created
  // A desk that was restarted itself has missed questions.
  const { messages, questions, lastEvent } = await (await ask("GET", "/desk")).json()
  for (const { parts, role } of messages)
    for (const { kind, text } of parts) if (kind === "text") show({ kind: role === "user" ? "customer" : "desk", text })
  for (const question of questions) await onEvent({ event: { _tag: "Question", ...question } })
  let last = lastEvent
  for (;;) {
    try {
      const stream = await ask("GET", "/desk/events", undefined, { "last-event-id": last })
      let text = ""
      for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) {
        const blocks = (text + piece).split("\n\n")
        text = blocks.pop()
        for (const block of blocks) {
          const field = (name) => block.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1]
          if (field("data") !== undefined) await onEvent(JSON.parse(field("data")))
          last = field("id") ?? last
        }
      }
    } catch {}
    await wait(200)
  }
}

const bodyOf = async (request) => JSON.parse((await Array.fromAsync(request.setEncoding("utf8"))).join(""))

const routes = {
  "GET /": (_, response) => response.setHeader("content-type", "text/html").end(readFileSync(path.join(here, "page.html"))),
  "GET /events": (_, response) => {
    response.setHeader("content-type", "text/event-stream")
    for (const event of happened) response.write(`data: ${JSON.stringify(event)}\n\n`)
    pages.add(response)
    response.on("close", () => pages.delete(response))
  },
  "GET /status": (_, response) => response.end(JSON.stringify({ pid: server?.pid ?? null })),
  "POST /message": async (request, response) => {
    const { id, picture, text } = await bodyOf(request)
    // The message is stored when the head of the answer comes; its turn is followed with the session.
    const sent = await created.then(() => ask("POST", "/desk/messages", { id, text, ...(picture && { media: [picture] }) }))
    sent.body.cancel().catch(() => {})
    response.writeHead(sent.status).end()
  },
  "POST /decision": async (request, response) => {
    const { allow, call } = await bodyOf(request)
    const status = await answer(call, allow ? { result: { refunded: true } } : { error: "a person refused the refund" })
    if (status === 204) show({ kind: "decided", call, allow })
    response.writeHead(status).end()
  }
}

const desk = createServer(async (request, response) => {
  const route = routes[`${request.method} ${request.url}`] ?? (() => response.writeHead(404).end())
  await Promise.resolve(route(request, response)).catch((error) => response.writeHead(400).end(String(error)))
})
desk.listen(process.env.DESK_PORT ?? 4500, "127.0.0.1", () => console.log(`http://127.0.0.1:${desk.address().port}`))
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, stop)
await follow()
