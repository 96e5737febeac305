import { call, model as modelSays, type Part, response, text, user } from "../src/domain/content/Content.ts"
import { Handle } from "../src/domain/content/Handle.ts"
import { type Entry, entryId } from "../src/domain/conversation/Conversation.ts"
import { seededRandom } from "../src/domain/evaluation/SeededRandom.ts"
import { logVersion, type SessionEvent, type Started } from "../src/domain/session/Session.ts"
import { TokenCount } from "../src/domain/tokens/Tokens.ts"

/** Generates the events of a coding agent's session: tool calls, results of which some are large, bounded and masked. */

/** The first event of a session with this id. */
export const startedAs = (session: string): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at: 1_760_000_000_000,
  estimator: "bench",
  model: "gemini-2.5-pro",
  cwd: "/home/someone/project"
})

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
const handleFor = (n: number): Handle => {
  let name = ""
  for (let i = 0, rest = n * 2_654_435_761; i < 10; i += 1) {
    name += alphabet[rest % 32]
    rest = Math.floor(rest / 32) + i
  }
  return Handle.make(`h_${name}`)
}

const words =
  "the request handler returns early when cache entry expired so parser keeps token offset and error path".split(" ")

/** Messages of a session: its entries come one by one, the same in every run. */
export class AgentSession {
  private readonly next: () => number
  private sequence = 0

  constructor(seed: number) {
    this.next = seededRandom(seed)
  }

  private sentence(count: number): string {
    return Array.from({ length: count }, () => words[Math.floor(this.next() * words.length)]).join(" ")
  }

  private entry(parts: ReadonlyArray<Part>, isUser: boolean, more: Partial<Entry> = {}): Entry {
    this.sequence += 1
    const { sequence } = this
    return {
      id: entryId(sequence),
      content: isUser ? user(...parts) : modelSays(...parts),
      at: 1_760_000_000_000 + sequence,
      tokens: parts.map((part) => Math.ceil(JSON.stringify(part).length / 4)),
      handles: parts.map((_, part) => handleFor(sequence * 8 + part)),
      ...more
    }
  }

  /** The events of the next two messages: a message or a tool's result, and the answer. */
  turn(): ReadonlyArray<SessionEvent> {
    const n = this.sequence
    const usage = { prompt: 20_000, answer: 60, thoughts: 0, cached: 19_000 }
    const calls = (): ReadonlyArray<Part> => [
      text(this.sentence(8)),
      call("read_file", { path: `src/${n}.ts`, lines: [1, 400] }, `c${n}`)
    ]
    if (n % 40 === 0) {
      const message = this.entry([text(`Please ${this.sentence(30)}.`)], true)
      return [{ _tag: "Answered", message, answer: this.entry(calls(), false, { usage, model: "gemini-2.5-pro" }) }]
    }
    const kind = this.next()
    const lines = kind < 0.05 ? 600 + Math.floor(this.next() * 900) : 2 + Math.floor(this.next() * 16)
    const output = Array.from({ length: lines }, (_, line) => `${line}: ${this.sentence(6)}`).join("\n")
    const bounded =
      output.length > 40_000
        ? { bounded: { "0": { form: "head-tail-chars" as const, size: 40_000, tokens: TokenCount.make(10_000) } } }
        : {}
    return [
      { _tag: "Appended", entry: this.entry([response("read_file", { output }, `c${n - 2}`)], true, bounded) },
      { _tag: "Appended", entry: this.entry(calls(), false, { usage, model: "gemini-2.5-pro" }) }
    ]
  }

  /** A compression that drops all entries from `from` on but the last `kept`, and leaves a summary. */
  compression(from: number, kept: number): SessionEvent {
    const to = this.sequence - kept
    return {
      _tag: "Compressed",
      at: 1_760_000_000_000,
      status: "COMPRESSED",
      strategy: "palimpsest",
      trigger: "auto",
      before: TokenCount.make(200_000),
      after: TokenCount.make(20_000),
      patch: {
        drop: { from: entryId(from), to: entryId(to) },
        insert: [this.entry([text(this.sentence(2_000))], true, { author: "summary" })],
        shorten: []
      }
    }
  }

  /** How many entries there are so far. */
  get count(): number {
    return this.sequence
  }
}
