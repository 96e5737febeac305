import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { patchOf, tokensOf } from "../../../src/domain/compression/Compression.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { itemTokens, sum, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import type { Chat } from "../../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import { Script } from "../../../src/layers/testing/ScriptedModel.ts"
import { atScales, countingBy, estimated, estimateOf, type Measured } from "../../support/scales.ts"
import { begin, taken } from "../../support/sending.ts"

/** Every budget and limit is in the model's tokens, and so is every report, whatever the model's tokens per estimated one are. */

const words = (tokens: number): string => "the builder keeps the old road open ".repeat(Math.ceil(tokens / 7))

/** The environment of a scene: its limits, multiplied by the scale. */
type Limits = (scale: number) => Partial<ChatSettings>

/** A conversation whose model reported its counts twice. */
const learned = Effect.fnUntraced(function* (settings: Partial<ChatSettings>) {
  const { chat, events } = yield* begin(settings)
  for (let n = 0; n < 2; n += 1) yield* taken(chat.send(`${n} ${words(200)}`))
  return { chat, events }
})

/** Calls of a tool, each with a result of so many tokens. */
const results = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, n) => [
    { content: model(call("read_file", { path: `src/${n}.ts` }, `c${n}`)) },
    { content: user(response("read_file", { output: `file ${n}\n${`${words(14)}\n`.repeat(tokens / 14)}` }, `c${n}`)) }
  ]).flat()

const talk = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, n) => [
    { content: user(text(`${n} ${words(tokens)}`)) },
    { content: model(text(`done ${n}`)) }
  ]).flat()

const viewSize = (chat: Chat["Service"]) => Effect.map(chat.conversation, viewTokens)
const summarySize = (chat: Chat["Service"]) =>
  Effect.map(chat.conversation, (now) =>
    sum(
      view(now)
        .filter(({ entry }) => entry.author === "summary")
        .map(itemTokens)
    )
  )

const scenes: Readonly<
  Record<
    string,
    readonly [limits: Limits, (chat: Chat["Service"], scale: number) => Effect.Effect<Measured, unknown, Script>]
  >
> = {
  "the size of the next request": [
    (scale) => ({ window: 20_000 * scale, systemInstruction: words(500) }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append(talk(4, 300))
        const { limit, threshold, tokens, trigger } = yield* chat.usage
        return { tokens: { tokens, limit, trigger }, estimated: { threshold } }
      })
  ],
  "the end of a turn": [
    (scale) => ({ window: 20_000 * scale }),
    (chat) =>
      Effect.gen(function* () {
        const { events } = yield* taken(chat.send(words(1_000)))
        const last = events.at(-1)
        if (last?._tag !== "Finished") return assert.fail(`${last?._tag}`)
        return { tokens: { tokens: last.tokens, limit: last.limit } }
      })
  ],
  "a compression that is due": [
    (scale) => ({ window: 8_000 * scale, threshold: 0.5 }),
    (chat) =>
      Effect.gen(function* () {
        for (let n = 0; n < 20; n += 1) {
          const { events } = yield* taken(chat.send(`${n} ${words(400)}`))
          const [event] = events.filter(({ _tag }) => _tag === "ChatCompressed")
          if (event?._tag !== "ChatCompressed") continue
          const { after, before, limit } = event
          return { tokens: { before, after, limit }, estimated: { n, view: yield* viewSize(chat) } }
        }
        return assert.fail("nothing was compressed")
      })
  ],
  "a compression that is asked for": [
    (scale) => ({ window: 3_000 * scale, policy: { summarizer: "extractive", preserve: 0.9 } }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append(talk(12, 400))
        const decision = yield* chat.plan()
        if (decision._tag !== "Go") return assert.fail(decision.reason)
        const outcome = yield* chat.compress()
        assert.isDefined(patchOf(outcome))
        const { before, after } = tokensOf(outcome)
        return {
          tokens: { before, after },
          estimated: {
            planned: decision.plan.after,
            rung: decision.plan.rung,
            view: yield* viewSize(chat),
            summary: yield* summarySize(chat)
          }
        }
      })
  ],
  "the budget of the snapshot": [
    (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "extractive", snapshotBudget: TokenCount.make(500 * scale) }
    }),
    (chat) =>
      Effect.gen(function* () {
        for (let n = 0; n < 8; n += 1) {
          const order = `Never touch src/legacy/part${n}.ts. You must always keep the build of module ${n} green.`
          yield* chat.append([...results(4, 280), { content: user(text(order)) }, { content: model(text("Yes.")) }])
        }
        yield* chat.compress()
        const summary = yield* summarySize(chat)
        assert.isAtMost(summary, 600)
        return { estimated: { summary, view: yield* viewSize(chat) } }
      })
  ],
  "the budget of tool results": [
    (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "extractive", toolBudget: TokenCount.make(3_000 * scale), minGain: 0 }
    }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append([{ content: user(text("read them all")) }, ...results(12, 980)])
        yield* chat.compress()
        return { estimated: { view: yield* viewSize(chat) } }
      })
  ],
  "the budget of the digest": [
    (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "model", digestBudget: TokenCount.make(3_000 * scale), minGain: 0 }
    }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append([...talk(20, 400), ...results(12, 980)])
        yield* chat.compress()
        const calls = yield* Script.use((script) => script.calls)
        const sent = calls.filter(({ method }) => method === "generate").map(({ request }) => estimateOf(request))
        assert.isAbove(sent.length, 0)
        return { estimated: { sent: Math.max(...sent) } }
      })
  ],
  "results that arrive together": [
    (scale) => ({ window: 10_000 * scale, toolOutput: { most: 1_000_000 } }),
    (chat) =>
      Effect.gen(function* () {
        const before = yield* viewSize(chat)
        yield* chat.append(results(1, 14_000))
        return { estimated: { shown: (yield* viewSize(chat)) - before } }
      })
  ],
  "a message that does not fit": [
    (scale) => ({ window: 8_000 * scale, overflowFactor: 0.5 }),
    (chat) =>
      Effect.gen(function* () {
        const { error } = yield* taken(chat.send(words(7_000)))
        if (error?._tag !== "ContextOverflow") return assert.fail(`${error?._tag}`)
        return { tokens: { estimated: error.estimated, remaining: error.remaining, limit: error.limit } }
      })
  ],
  "masked results": [
    (scale) => ({ window: 100_000 * scale, masking: { protect: 3_000 * scale, least: 2_000 * scale } }),
    (chat) =>
      Effect.gen(function* () {
        for (let n = 0; n < 20; n += 1) {
          yield* chat.append(results(1, 980))
          const { events } = yield* taken(chat.send(`go on ${n}`))
          const [event] = events.filter(({ _tag }) => _tag === "ToolOutputMasked")
          if (event?._tag !== "ToolOutputMasked") continue
          return { tokens: { before: event.before, after: event.after }, estimated: { n, parts: event.parts } }
        }
        return assert.fail("nothing was masked")
      })
  ],
  "a message after a compression": [
    (scale) => ({ window: 8_000 * scale, afterCompression: Effect.succeed(words(500)) }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append(talk(6, 400))
        yield* chat.compress()
        const last = (yield* chat.contents).at(-1)
        return { estimated: { last: estimated(last?.parts ?? []) } }
      })
  ],
  "pruned results": [
    (scale) => ({ window: 8_000 * scale, policy: { strategy: "openclaw", summarizer: "extractive" } }),
    (chat) =>
      Effect.gen(function* () {
        yield* chat.append([...results(2, 2_800), { content: model(text("read")) }])
        yield* taken(chat.send("go on"))
        return { estimated: { view: yield* viewSize(chat) } }
      })
  ]
}

describe("in the model's tokens are", () => {
  for (const [name, [limits, scene]] of Object.entries(scenes)) {
    it.effect(name, () =>
      atScales((scale) =>
        Effect.gen(function* () {
          const { chat } = yield* learned(limits(scale))
          return yield* scene(chat, scale)
        }).pipe(Effect.provide(countingBy(scale)))
      )
    )
  }
})
