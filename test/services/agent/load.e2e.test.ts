import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Deferred, Effect, Exit, Fiber, FileSystem, Layer, Path, Schema, Stream } from "effect"
import { memoryUsage } from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { entries, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import * as GoogleModel from "../../../src/layers/model/GoogleModel.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { ChatDefaults, type ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { brief, contentsOf, endingOf, held, said, taken, textOf } from "../../support/sending.ts"
import { assert, it } from "../../support/vitest.ts"

/**
 * Many conversations at once, each in its own file, all with one server: none hears another, and when all are given up nothing is
 * left behind. Six, or a thousand where `npm run test:load` asks for them.
 */

const turns = 20
const many = process.env["MODE"] === "load" ? 1_000 : 6

/** Bytes of all that is still reachable. What V8 has not collected yet says nothing of us. */
const live = Effect.sync(() => {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc()")
  return memoryUsage().heapUsed
})

const settings: ChatSettings = { ...held, window: 4_000 }
const isMessage = Schema.is(Schema.Struct({ parts: Schema.Array(Schema.Struct({ text: Schema.String })) }))

/** What the latest message of a request says. */
const latest = (request: Fake.FakeRequest): string => {
  const message = contentsOf(request).at(-1)
  return isMessage(message) ? (message.parts.at(-1)?.text ?? "") : ""
}
const badge = (message: string): string => /^chat \d+ turn \d+/.exec(message)?.[0] ?? "nobody"

/** Says whom it answers; whoever asks it to wait gets half an answer and nothing more. */
const script: Fake.Script = (request) => {
  if (request.method === "countTokens") return Fake.tokens(Math.ceil(JSON.stringify(request.body).length / 4))
  const message = latest(request)
  return message.endsWith("wait")
    ? [
        Fake.streamHead,
        Fake.event(Fake.response([{ text: `${badge(message)} is` }], { finishReason: null })),
        Fake.stall
      ]
    : said(`${badge(message)} is answered. ${"That was looked at with all due care. ".repeat(12)}`)
}

const runtime = (url: string, folder: string) =>
  Chats.layer.pipe(
    Layer.provideMerge(Compression.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        TokenCounter.layerEstimate,
        HookSystem.layer,
        Summarizer.layerExtractive,
        MemoryCalibrations.layer,
        MemoryTempStore.layer,
        // A thousand in one thread make each other wait; how long is not what this is about.
        GoogleModel.layerConfigWith({ chunk: "10 minutes" }),
        FileSessionStore.layer(folder).pipe(Layer.provide(FileTempStore.folders))
      )
    ),
    Layer.provide(Layer.succeed(ChatDefaults, settings)),
    Layer.provide(
      ConfigProvider.layer(
        ConfigProvider.fromUnknown({ GEMINI_API_KEY: "not-a-real-key", GOOGLE_GEMINI_BASE_URL: url })
      )
    )
  )

/** One conversation: what it says is answered to it, and it stays within its window. */
const converse = Effect.fnUntraced(function* (n: number) {
  const chats = yield* Chats
  const chat = yield* chats.open(`chat-${n}`)
  let compressions = 0
  for (let turn = 0; turn < turns; turn += 1) {
    const words = `chat ${n} turn ${turn}: ${"Please look at this part with care. ".repeat(turn === 7 ? 240 : 10)}`
    const { events } = yield* taken(chat.send(words))
    assert.strictEqual(endingOf(events)?._tag, "Finished", events.map(brief).join(", "))
    assert.isTrue(textOf(events).startsWith(`chat ${n} turn ${turn} is answered.`), textOf(events).slice(0, 80))
    compressions += events.filter(({ _tag }) => _tag === "ChatCompressed").length
  }
  const { conversation } = yield* chat.whole
  const strangers = entries(conversation).filter(
    ({ content }) => !(content.parts[0]?.text ?? "").startsWith(`chat ${n} turn `)
  )
  assert.isEmpty(strangers)
  assert.lengthOf(entries(conversation), 2 * turns)
  assert.isBelow(viewTokens(conversation), 4_000)
  return { chat, compressions }
})

it.live(
  "load many chats at once: no mixed messages, bounded memory; cancelled at once, no socket or file stays open",
  () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = path.join(yield* fs.makeTempDirectoryScoped(), "sessions")
      const fake = yield* Fake.make(script)
      const emptyHeap = yield* live
      yield* Effect.gen(function* () {
        const all = yield* Effect.forEach(
          Array.from({ length: many }, (_, n) => n),
          converse,
          { concurrency: "unbounded" }
        )
        for (const { compressions } of all) assert.isAbove(compressions, 0)
        // What the server remembers of all requests is in it, too.
        assert.isBelow((yield* live) - emptyHeap, Math.max(50, many) * 1024 ** 2, "a thousand need less than 1 GB")

        const before = (yield* fake.requests).length
        const fibers = yield* Effect.forEach(all, ({ chat }, n) =>
          Effect.gen(function* () {
            const half = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(
              Stream.runForEach(chat.send(`chat ${n} turn ${turns}: wait`), (event) =>
                event._tag === "Content" ? Deferred.succeed(half, undefined) : Effect.void
              )
            )
            return { fiber, half }
          })
        )
        yield* Effect.forEach(fibers, ({ half }) => Deferred.await(half), { discard: true })
        yield* Fiber.interruptAll(fibers.map(({ fiber }) => fiber))
        for (const { fiber } of fibers) assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        const complete = yield* Effect.forEach(fibers, (_, n) => fake.closed(before + n), {
          concurrency: "unbounded"
        })
        assert.isFalse(complete.some((whole) => whole))
        const sightings = yield* fake.sightings
        assert.lengthOf(
          sightings.filter(({ _tag }) => _tag === "Closed"),
          sightings.filter(({ _tag }) => _tag === "Received").length
        )
        for (const { chat } of all) assert.lengthOf(entries((yield* chat.whole).conversation), 2 * turns)
      }).pipe(Effect.scoped, Effect.provide(runtime(fake.url, folder)))

      const files = (yield* fs.readDirectory(folder, { recursive: true })).filter(
        (name) => !/^chat-\d+\.jsonl(?:\.blobs(?:[\\/][a-z2-7]{52})?)?$/.test(name)
      )
      assert.deepStrictEqual(files, [])
      assert.lengthOf(
        (yield* fs.readDirectory(folder)).filter((name) => name.endsWith(".jsonl")),
        many
      )
    }).pipe(Effect.provide(NodeServices.layer)),
  // A thousand take minutes on a busy machine.
  600_000
)
