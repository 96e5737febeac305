/**
 * The transcript of another agent as a conversation: what the user said, how large it is, and the bytes behind a handle. Here it is in memory; with
 * `NodeServices.layer` of `@effect/platform-node` in the place of `files`, the same program reads any file of yours.
 *
 *   node read-transcript.ts
 *
 * It needs no key and no network. It prints:
 *
 *   claude     4 messages, … tokens, 0 lines skipped
 *   the user   Why does the build fail?
 *   recalled   src/a.ts(3,1): error TS2304: Cannot find name 'x'.
 */
import { Console, Effect, Layer, Path, Stdio } from "effect"
import { Content, Conversation, Tokens, Transcripts } from "palimpsest"
import { MemoryFileSystem, MemoryTempStore } from "palimpsest/testing"

const lines = [
  { type: "user", message: { role: "user", content: "Why does the build fail?" } },
  { type: "assistant", message: { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "Bash", input: { command: "npm run build" } }] } },
  { type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "src/a.ts(3,1): error TS2304: Cannot find name 'x'." }] } },
  { type: "assistant", message: { role: "assistant", content: [{ type: "text", text: "a.ts uses x, which nothing declares." }] } }
].map((line, n) => ({
  ...line,
  uuid: `u${n}`,
  parentUuid: n === 0 ? null : `u${n - 1}`,
  sessionId: "s",
  cwd: "/app",
  version: "2.1.38",
  timestamp: `2026-02-10T21:54:1${n}.000Z`
}))

const files = Layer.mergeAll(
  MemoryFileSystem.layer({ "/app/session.jsonl": lines.map((line) => `${JSON.stringify(line)}\n`).join("") }),
  Path.layer,
  Stdio.layerTest({})
)

const program = Effect.gen(function* () {
  const { format, session, skipped } = yield* Transcripts.load("/app/session.jsonl")
  const sent = Conversation.projectMessages(session.conversation)
  const tokens = sent.reduce((sum, message) => sum + message.tokens, 0)
  yield* Console.log(`${format}     ${sent.length} messages, ${tokens} tokens, ${Object.keys(skipped).length} lines skipped`)
  for (const { content } of sent) {
    if (content.role === "user" && Content.plainText(content) !== "") yield* Console.log(`the user   ${Content.plainText(content)}`)
  }

  const all = Conversation.recallable(session.conversation)
  const handle = all.entries[2]?.handles[0]
  if (handle !== undefined) yield* Console.log(`recalled   ${Conversation.recall(all, handle)?.text}`)
}).pipe(Effect.catchTag("TranscriptError", (error) => Console.error(error.message)))

await Effect.runPromise(
  program.pipe(Effect.provide(Layer.mergeAll(files, MemoryTempStore.layer, Tokens.TokenCounter.layerEstimate)))
)
