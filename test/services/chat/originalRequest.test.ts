import { Effect, Layer } from "effect"
import { adopt } from "../../../src/domain/compression/Compression.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import {
  append,
  compressed,
  type Conversation,
  type Draft,
  empty,
  entryId
} from "../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { HandleIndex, makeEntry } from "../../../src/services/session/EntryBuilder.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide([Summarizer.layerExtractive, HookSystem.layer])
)

const says = (words: string): Draft => ({ content: user(text(words)) })
const answers = (n: number): Draft => ({ content: model(text(`Step ${n}: ${"I went on with the work. ".repeat(40)}`)) })
const work = (...requests: ReadonlyArray<string>): ReadonlyArray<Draft> =>
  requests.flatMap((words, n) => [
    says(words),
    ...Array.from({ length: 12 }, (_, step) => [answers(n * 12 + step), says("ok")]).flat()
  ])

const extended = Effect.fnUntraced(function* (conversation: Conversation, drafts: ReadonlyArray<Draft>) {
  const held = new HandleIndex()
  let next = conversation
  for (const draft of drafts) next = append(next, yield* makeEntry(draft, entryId(next.next), held))
  return next
})

/** A compaction by another agent, whose summary is no snapshot. */
const compacted = Effect.fnUntraced(function* (conversation: Conversation, from: number, to: number) {
  const draft: Draft = { content: user(text("We talked about the port.")), author: "summary" }
  const insert = [yield* makeEntry(draft, entryId(conversation.next), new HandleIndex())]
  return compressed(conversation, { drop: { from: entryId(from), to: entryId(to) }, insert, shorten: [] })
})

const compress = Effect.fnUntraced(function* (conversation: Conversation) {
  const { outcome } = yield* Compression.use((compression) =>
    compression.compress({
      conversation,
      policy: { ...defaultPolicy, limit: TokenCount.make(6_000) },
      forced: true,
      memory: freshMemory,
      held: new HandleIndex()
    })
  )
  if (outcome._tag !== "Compressed") return yield* Effect.die(outcome._tag)
  const [, entry, words] =
    /original request:\n<user_words entry="(e\d+)">([^]*?)<\/user_words>/.exec(outcome.snapshot) ?? []
  return { outcome, original: [entry, words] as const }
})

describe("the original request of a snapshot", () => {
  it.effect("is the earliest of the log, also when earlier compactions dropped it", services, function* () {
    const begun = yield* extended(empty, work("hi", "Rename the port setting in all files."))
    const first = yield* compacted(begun, 1, begun.next - 1)
    const second = yield* extended(first, work("can leave it", "do the next one now"))
    const { original, outcome } = yield* compress(second)
    assert.deepStrictEqual(original, ["e26", "Rename the port setting in all files."])
    // And again, from the snapshot that was just written.
    const third = yield* extended(adopt(second, outcome), work("yes please go on", "and the last one too"))
    assert.deepStrictEqual((yield* compress(third)).original, original)
  })

  it.effect("may be two words, where the agent sets to work, and no less", services, function* () {
    const afterCall = Effect.fnUntraced(function* (first: string) {
      const begun = yield* extended(empty, [
        says(first),
        { content: model(call("Bash", { command: "ls" }, "1")) },
        { content: user(response("Bash", { output: "a.ts" }, "1")) },
        ...work("Rename the port setting in all files.", "and the last one too")
      ])
      return (yield* compress(begun)).original?.[1]
    })
    assert.strictEqual(yield* afterCall("Clean up."), "Clean up.")
    assert.strictEqual(yield* afterCall("hello"), "Rename the port setting in all files.")
  })

  it.effect("is unknown when a summary precedes everything", services, function* () {
    const begun = yield* extended(empty, [
      { content: user(text("We talked about the port.")), author: "summary" },
      ...work("can leave it", "do the next one now")
    ])
    const { original, outcome } = yield* compress(begun)
    assert.deepStrictEqual(original, [undefined, undefined])
    assert.include(outcome.snapshot, "latest request:")
  })
})
