/**
 * Your own strategy: a value that describes it, and a runner that plans and carries out a plan. This one keeps a tenth of the
 * conversation when most of it is tool output, and otherwise behaves like the default strategy.
 *
 *   node own-strategy.ts
 *
 * It prints:
 *
 *   palimpsest  Compressed, … of 41 messages kept
 *   tool-heavy  Compressed, … of 41 messages kept
 *   it keeps less: true
 */
import { Console, Effect, Layer } from "effect"
import { Compression, Content, Conversation, Hooks, Tokens } from "palimpsest"
import { MemoryTempStore } from "palimpsest/testing"

const base = Compression.runners.palimpsest

const isToolHeavy = ({ conversation }: Compression.CompressRequest): boolean => {
  const messages = Conversation.projectMessages(conversation)
  return messages.filter(({ content }) => Content.hasResponses(content)).length * 3 > messages.length
}

const adapted = (request: Compression.CompressRequest): Compression.CompressRequest =>
  isToolHeavy(request) ? { ...request, policy: { ...request.policy, preserve: 0.1 } } : request

const toolHeavy: Compression.StrategyRunner = {
  strategy: { ...base.strategy, name: "tool-heavy", description: "keeping less of conversations full of tool output" },
  decide: (request) => base.decide(adapted(request)),
  compress: (request) => base.compress(adapted(request)),
  apply: base.apply
}

const messages = [
  { content: Content.user(Content.text("Read all modules. Do not change src/legacy.ts.")) },
  ...Array.from({ length: 20 }, (_, n) => [
    { content: Content.model(Content.call("read_file", { path: `src/module${n}.ts` }, `call-${n}`)) },
    { content: Content.user(Content.response("read_file", { output: "export const value = 1\n".repeat(40) }, `call-${n}`)) }
  ]).flat()
]

const Services = Layer.mergeAll(
  Tokens.TokenCounter.layerEstimate,
  MemoryTempStore.layer,
  Compression.Summarizer.layerExtractive,
  Hooks.HookSystem.layer
)

const program = Effect.gen(function* () {
  const policy = { ...Compression.defaultPolicy, limit: Tokens.TokenCount.make(8_000) }
  const request = yield* Compression.requestFor(messages, policy)
  const kept: Array<number> = []
  for (const runner of [base, toolHeavy]) {
    const { outcome } = yield* Compression.compressWith(runner, request)
    // Without the snapshot.
    const count = Conversation.view(Compression.adopt(request.conversation, outcome)).length - 1
    kept.push(count)
    yield* Console.log(`${runner.strategy.name}  ${outcome._tag}, ${count} of ${messages.length} messages kept`)
  }
  yield* Console.log(`it keeps less: ${(kept[1] ?? 0) < (kept[0] ?? 0)}`)
})

await Effect.runPromise(program.pipe(Effect.provide(Services)))
