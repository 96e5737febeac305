/**
 * Compression alone, for an application that keeps its own messages: counts them, compresses them once, and sends the
 * result.
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
import { Compression, Content, Conversation, Hooks, Tokens } from "palimpsest"
import { MemoryTempStore } from "palimpsest/testing"

/** The application's own messages, in its own shape. */
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

/** A window of 2,000 tokens. Above half of it the messages are compressed; the newest fifth is kept unchanged. */
const policy: Compression.Policy = { ...Compression.defaultPolicy, limit: Tokens.TokenCount.make(2_000), threshold: 0.5, preserve: 0.2 }

/** The services of a compression: token counter, summarizer, hooks, and the store that names bytes. */
const Runtime = Compression.Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Tokens.TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide([Compression.Summarizer.layerExtractive, Hooks.HookSystem.layer])
)

const shown = (tokens: number) => tokens.toLocaleString("en")

/** One line for each outcome of a compression. The compiler reports an outcome that is missing here. */
const told = Compression.Outcome.match({
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
  const request = yield* Compression.requestFor(
    messages.map((message) => ({
      content: { role: message.role === "user" ? "user" : "model", parts: [Content.text(message.text)] }
    })),
    policy
  )
  const counter = yield* Tokens.TokenCounter
  const counts = yield* counter.count(messages.map((message) => Content.text(message.text)))
  const before = counts.reduce((sum, tokens) => sum + tokens, 0)
  yield* Console.log(`before       ${shown(before)} tokens in ${messages.length} messages`)

  const compression = yield* Compression.Compression
  const { outcome } = yield* compression.compress(request)
  yield* Console.log(told(outcome))

  // The request still holds all messages. The patch of the outcome is applied to it, and the result is a legal history.
  const sent = Conversation.projectMessages(Compression.adopt(request.conversation, outcome))
  const tokens = sent.reduce((sum, message) => sum + message.tokens, 0)
  yield* Console.log(`to be sent   ${sent.length} messages, ${shown(tokens)} tokens`)
  const [first] = sent
  if (first !== undefined) yield* Console.log(`first words  ${Content.plainText(first.content).slice(0, 80)}`)

  // A handle reads back a message that left the window; here the ninth message.
  const all = Conversation.recallable(request.conversation)
  const handle = all.entries[8]?.handles[0]
  if (handle !== undefined) yield* Console.log(`recalled     ${Conversation.recall(all, handle)?.text}`)
})

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
