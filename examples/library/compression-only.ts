/**
 * An application with its own messages takes only the compression: counts them, compresses them once, and sends what
 * is left.
 *
 *   node compression-only.ts
 *
 * It needs no key and no network. It prints:
 *
 *   before       … tokens in 61 messages
 *   compressed   … → … tokens by extractive; … of … facts stay, the rest by recall
 *   to be sent   … messages, … tokens
 *   first words  [palimpsest: written by the runtime, not by the user] …
 *   recalled     What did ticket 3 say?
 */
import { Console, Effect, Layer } from "effect"
import { adopt, defaultPolicy, Outcome, type Policy } from "palimpsest/domain/Compression"
import { plainText, text } from "palimpsest/domain/Content"
import { project } from "palimpsest/domain/Projection"
import { recall, recallable } from "palimpsest/domain/Recall"
import { TokenCount } from "palimpsest/domain/Tokens"
import * as MemoryTempStore from "palimpsest/layers/MemoryTempStore"
import { Compression, requestFor } from "palimpsest/services/Compression"
import { HookSystem } from "palimpsest/services/HookSystem"
import { Summarizer } from "palimpsest/services/Summarizer"
import { TokenCounter } from "palimpsest/services/TokenCounter"

/** The application's own messages: it need not know Gemini's. */
interface Message {
  readonly role: "user" | "assistant"
  readonly text: string
}

const messages: ReadonlyArray<Message> = [
  { role: "user", text: "Go through the tickets one by one. Never close a ticket yourself." },
  ...Array.from({ length: 30 }, (_, n): ReadonlyArray<Message> => [
    {
      role: "assistant",
      text: `TICKET-${1000 + n} is about src/billing/invoice${n}.ts: ${"the total is rounded twice, once per line and once at the end. ".repeat(4)}`
    },
    { role: "user", text: `What did ticket ${n} say?` }
  ]).flat()
]

/** A window of 2,000 tokens. Above half of it the messages are compressed; the newest fifth stays as it is. */
const policy: Policy = { ...defaultPolicy, limit: TokenCount.make(2_000), threshold: 0.5, preserve: 0.2 }

/** All that a compression needs: who counts, who writes the snapshot, who is told, where bytes get their names. */
const Runtime = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide([Summarizer.layerExtractive, HookSystem.layer])
)

const shown = (tokens: number) => tokens.toLocaleString("en")

/** One line for each way a compression can end. A new way would be an error of the compiler here. */
const told = Outcome.match({
  Compressed: ({ after, audit, before, by }) => {
    const stay = `${audit.inSnapshot + audit.inTail} of ${audit.anchors} facts stay, the rest by recall`
    return `compressed   ${shown(before)} → ${shown(after)} tokens by ${by}; ${stay}`
  },
  ContentTruncated: ({ after, before }) => `shortened    ${shown(before)} → ${shown(after)} tokens`,
  Noop: ({ reason }) => `unchanged    ${reason}`,
  FailedInflatedTokenCount: ({ after, before }) => `unchanged    ${shown(before)} tokens would become ${shown(after)}`,
  FailedTokenCountError: ({ message }) => `unchanged    not counted: ${message}`,
  FailedEmptySummary: () => "unchanged    the snapshot came back empty",
  FailedSummarizer: ({ message }) => `unchanged    no snapshot: ${message}`,
  Cancelled: () => "unchanged    cancelled"
})

const program = Effect.gen(function* () {
  const request = yield* requestFor(
    messages.map((message) => ({
      content: { role: message.role === "user" ? "user" : "model", parts: [text(message.text)] }
    })),
    policy
  )
  const counter = yield* TokenCounter
  const counts = yield* counter.count(messages.map((message) => text(message.text)))
  const before = counts.reduce((sum, tokens) => sum + tokens, 0)
  yield* Console.log(`before       ${shown(before)} tokens in ${messages.length} messages`)

  const compression = yield* Compression
  const { outcome } = yield* compression.compress(request)
  yield* Console.log(told(outcome))

  // The request still holds everything. What the outcome changes is laid over it, and the result is a legal history.
  const sent = project(adopt(request.conversation, outcome))
  const tokens = sent.reduce((sum, message) => sum + message.tokens, 0)
  yield* Console.log(`to be sent   ${sent.length} messages, ${shown(tokens)} tokens`)
  const [first] = sent
  if (first !== undefined) yield* Console.log(`first words  ${plainText(first.content).slice(0, 80)}`)

  // What left the window is read back by its handle, here that of the ninth message.
  const all = recallable(request.conversation)
  const handle = all.entries[8]?.handles[0]
  if (handle !== undefined) yield* Console.log(`recalled     ${recall(all, handle)?.text}`)
})

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
