import { Effect } from "effect"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { estimateText } from "../src/domain/tokens/Tokens.ts"
import { Gateway } from "../src/services/gateway/Gateway.ts"
import type { SentView } from "../src/services/gateway/GatewayPlan.ts"
import { gatewayLayer } from "../test/support/GatewayScene.ts"

/**
 * `npm run bench:gateway-cost [-- FILE…]`: what the requests of recorded Claude Code sessions cost at list prices, without the gateway, through it,
 * and with two other ways to keep a window. Everything is sent again each time, as the program does. What a request begins with as the
 * one before it did is read from the cache at 0.1 of the price of input, if that one was at most five minutes ago; all else is
 * written to the cache at 1.25 of it. Answers cost the same everywhere and are left out, but a call of the recall tool asks the provider once more. Tokens are estimates.
 */

const cache = { read: 0.1, write: 1.25, life: 300_000 }
/** A summary by a model: the whole history once more, and this many tokens of answer at five times the price of input. */
const summary = { tokens: 2_000, price: 5 }
/** The share of the window that the other ways keep when they cut, and the gateway's threshold. */
const kept = 0.3
const threshold = 0.75
/** Once a conversation is compressed, the model reads something back in every so many requests. Each asks the provider once more. */
const recallEvery = 10
const instruction = "You are an agent that works in a folder. ".repeat(300)

interface Recorded {
  readonly at: number
  /** The messages before an answer, each as JSON. */
  readonly messages: ReadonlyArray<string>
}

interface Line {
  readonly type?: string
  readonly isSidechain?: boolean
  readonly isCompactSummary?: boolean
  readonly timestamp?: string
  readonly message?: { readonly id?: string; readonly role: string; readonly content: string | ReadonlyArray<object> }
}

/** The requests of a session: one before each answer. Its own compactions are left out, so that its history is whole. */
const requestsOf = (text: string): ReadonlyArray<Recorded> => {
  const requests: Array<Recorded> = []
  const messages: Array<{ role: string; id: string | undefined; content: Array<object> }> = []
  for (const line of text.split("\n")) {
    if (line === "") continue
    const { isCompactSummary, isSidechain, message, timestamp, type }: Line = JSON.parse(line)
    if (message === undefined || isSidechain === true || isCompactSummary === true) continue
    if (type !== "user" && type !== "assistant") continue
    const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content
    const last = messages.at(-1)
    if (last !== undefined && last.role === message.role && (message.role === "user" || last.id === message.id)) {
      last.content.push(...content)
      continue
    }
    if (message.role === "assistant" && last?.role === "user") {
      requests.push({
        at: Date.parse(timestamp ?? ""),
        messages: messages.map(({ content, role }) => JSON.stringify({ role, content }))
      })
    }
    messages.push({ role: message.role, id: message.id, content: [...content] })
  }
  return requests
}

const counts = new Map<string, number>()
/** Signatures of thoughts are not counted: providers do not charge what they only check. */
const tokensOf = (text: string): number => {
  const key = createHash("sha256").update(text).digest("hex")
  const known = counts.get(key) ?? estimateText(text.replace(/"signature":"[^"]*"/g, ""))
  counts.set(key, known)
  return known
}
const sum = (messages: ReadonlyArray<string>) => messages.reduce((total, each) => total + tokensOf(each), 0)

/** The cost of a sequence of requests, in tokens at the price of input. */
class Bill {
  cost = 0
  sent = 0
  read = 0
  most = 0
  private last: { readonly at: number; readonly messages: ReadonlyArray<string> } = { at: -Infinity, messages: [] }
  add(at: number, messages: ReadonlyArray<string>): void {
    const all = [instruction, ...messages]
    let same = 0
    if (at - this.last.at <= cache.life) while (same < all.length && all[same] === this.last.messages[same]) same += 1
    const read = sum(all.slice(0, same))
    const total = sum(all)
    this.cost += read * cache.read + (total - read) * cache.write
    this.sent += total
    this.read += read
    this.most = Math.max(this.most, total)
    this.last = { at, messages: all }
  }
}

const bodyOf = (messages: ReadonlyArray<string>) =>
  `{"model":"claude-sonnet-4-5","max_tokens":1000,"system":${JSON.stringify(instruction)},"messages":[${messages.join()}]}`

/** Where the newest messages within this many tokens begin: with an answer, so that no result is without its call. */
const newest = (messages: ReadonlyArray<string>, room: number): number => {
  let from = messages.length
  for (let left = room; from > 0; from -= 1) {
    left -= tokensOf(messages[from - 1] ?? "")
    if (left < 0) break
  }
  while (from < messages.length - 1 && !messages[from]?.startsWith('{"role":"assistant"')) from += 1
  return from
}

/** A call of the recall tool for one of the handles that left, and its result, as they are sent. */
const recalled = Effect.fnUntraced(function* (gateway: Gateway["Service"], sent: SentView, number: number) {
  const { handles } = sent.view
  const args = { handle: handles[(number * 7) % Math.max(1, handles.length)] ?? "" }
  const id = `recall_${number}`
  const [result] = yield* gateway.recall(sent, [{ id, name: "palimpsest_recall", args, json: "" }], 8_000)
  return [
    { role: "assistant", content: [{ type: "tool_use", id, name: "palimpsest_recall", input: args }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result?.text ?? "" }] }
  ].map((message) => JSON.stringify(message))
})

const bills = Effect.fnUntraced(function* (requests: ReadonlyArray<Recorded>, window: number) {
  const gateway = yield* Gateway
  const whole = new Bill()
  const ours = new Bill()
  const truncated = new Bill()
  const summarised = new Bill()
  let summaryFrom = 0
  let summaries = 0
  let compressedRequests = 0
  let recalls = 0
  for (const { at, messages } of requests) {
    whole.add(at, messages)
    const plan = yield* gateway.plan({
      owner: "o",
      route: { dialect: "anthropic", asks: "answer", model: undefined, isArray: false },
      text: bodyOf(messages)
    })
    const sent = plan._tag === "Changed" ? plan.sent : undefined
    ours.add(at, sent?.messages ?? messages)
    if (sent !== undefined) {
      compressedRequests += 1
      if (compressedRequests % recallEvery === 0) {
        const round = yield* recalled(gateway, sent, compressedRequests)
        recalls += 1
        ours.add(at, [...sent.messages, ...round])
        // Messages hidden from the client are part of every later request.
        yield* gateway.remember(sent, { rounds: [{ sent: round, visible: [] }] })
      }
    }
    const isOver = sum(messages) > window * threshold
    truncated.add(
      at,
      isOver ? [...messages.slice(0, 1), ...messages.slice(newest(messages, window * threshold))] : messages
    )
    const before = () =>
      summaryFrom === 0
        ? messages
        : [`{"role":"user","content":"${"word ".repeat(summary.tokens)}${summaries}"}`, ...messages.slice(summaryFrom)]
    if (sum(before()) > window * threshold) {
      // The request for a summary begins as the last one did, and is read from the cache.
      summarised.cost += sum(before()) * cache.read + summary.tokens * summary.price
      summaryFrom = newest(messages, window * kept)
      summaries += 1
    }
    summarised.add(at, before())
  }
  return { whole, ours, truncated, summarised, recalls }
})

const files = process.argv.slice(2)
const bundled = path.join(import.meta.dirname, "..", "test", "fixtures", "sessions", "claude-code-1512-lines.jsonl.gz")
for (const file of files.length === 0 ? [bundled] : files) {
  const bytes = readFileSync(file)
  const requests = requestsOf((file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8"))
  for (const window of [64_000, 128_000, 200_000]) {
    const layer = gatewayLayer({ window, threshold })
    const { ours, recalls, summarised, truncated, whole } = await Effect.runPromise(
      Effect.provide(bills(requests, window), layer)
    )
    const row = (name: string, bill: Bill) =>
      console.log(
        `  ${name.padEnd(26)} ${(bill.cost / whole.cost).toFixed(2)} of the cost, ${(bill.sent / 1e6).toFixed(2)} M tokens sent, ${((bill.read / bill.sent) * 100).toFixed(0)} % of them read from the cache, largest request ${bill.most.toLocaleString("en")}`
      )
    console.log(`${path.basename(file)}: ${requests.length} requests, window ${window.toLocaleString("en")}`)
    row("all of it each time", whole)
    row(`gateway, ${recalls} recalls`, ours)
    row("oldest messages cut", truncated)
    row("a summary by a model", summarised)
  }
}
process.exit()
