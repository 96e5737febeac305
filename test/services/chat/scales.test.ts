import { Effect } from "effect"
import { patchOf, tokensOf } from "../../../src/domain/compression/Compression.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { entryId, itemTokens, sum, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { Script, type Step } from "../../../src/layers/testing/ScriptedModel.ts"
import type { Chat } from "../../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import type { ModelRequest } from "../../../src/services/model/Model.ts"
import { atScales, countingBy, estimated, estimateOf, type Measured } from "../../support/scales.ts"
import { begin, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Every budget and limit is in the model's tokens, and so is every report, whatever the model's tokens per estimated one are. */

const words = (tokens: number): string => "the builder keeps the old road open ".repeat(Math.ceil(tokens / 7))

/** A conversation whose model reported its counts twice, after those of long messages of another. */
const learned = Effect.fnUntraced(function* (settings: Partial<ChatSettings>) {
  const { chat: other } = yield* begin()
  for (let n = 0; n < 3; n += 1) yield* taken(other.send(words(4_000)))
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

/** Answers with a snapshot when one is asked for. */
const snapshotOr =
  (words: string) =>
  ({ systemInstruction = "" }: ModelRequest): Step =>
    systemInstruction.includes("state_snapshot")
      ? `<state_snapshot><overall_goal>${"to keep the road open ".repeat(20)}</overall_goal></state_snapshot>`
      : words

const viewSize = (chat: Chat["Service"]) => Effect.map(chat.conversation, viewTokens)
const summarySize = (chat: Chat["Service"]) =>
  Effect.map(chat.conversation, (now) =>
    sum(
      view(now)
        .filter(({ entry }) => entry.author === "summary")
        .map(itemTokens)
    )
  )

interface Scene {
  /** Its limits, multiplied by the scale. */
  readonly limits: (scale: number) => Partial<ChatSettings>
  readonly run: (chat: Chat["Service"]) => Generator<Effect.Effect<unknown, unknown, Script>, Measured, never>
  /** Whether no count of the model is known at the beginning. */
  readonly isNew?: boolean
  readonly answer?: (request: ModelRequest) => Step
}

const scenes: Readonly<Record<string, Scene>> = {
  "the size of the next request": {
    limits: (scale) => ({ window: 20_000 * scale, systemInstruction: words(500) }),
    *run(chat) {
      yield* chat.append(talk(4, 300))
      const { limit, threshold, tokens, trigger } = yield* chat.usage
      return { tokens: { tokens, limit, trigger }, estimated: { threshold } }
    }
  },
  "the end of a turn": {
    limits: (scale) => ({ window: 20_000 * scale }),
    *run(chat) {
      const { events } = yield* taken(chat.send(words(1_000)))
      const last = events.at(-1)
      if (last?._tag !== "Finished") return assert.fail(`${last?._tag}`)
      return { tokens: { tokens: last.tokens, limit: last.limit } }
    }
  },
  "a compression that is due": {
    limits: (scale) => ({ window: 8_000 * scale, threshold: 0.5 }),
    *run(chat) {
      for (let n = 0; n < 20; n += 1) {
        const { events } = yield* taken(chat.send(`${n} ${words(400)}`))
        const [event] = events.filter(({ _tag }) => _tag === "ChatCompressed")
        if (event?._tag !== "ChatCompressed") continue
        const { after, before, limit } = event
        return { tokens: { before, after, limit }, estimated: { n, view: yield* viewSize(chat) } }
      }
      return assert.fail("nothing was compressed")
    }
  },
  "a compression that is asked for": {
    limits: (scale) => ({ window: 3_000 * scale, policy: { summarizer: "extractive", preserve: 0.9 } }),
    *run(chat) {
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
    }
  },
  "the budget of the snapshot": {
    limits: (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "extractive", snapshotBudget: TokenCount.make(500 * scale) }
    }),
    *run(chat) {
      for (let n = 0; n < 8; n += 1) {
        const order = `Never touch src/legacy/part${n}.ts. You must always keep the build of module ${n} green.`
        yield* chat.append([...results(4, 280), { content: user(text(order)) }, { content: model(text("Yes.")) }])
      }
      yield* chat.compress()
      const summary = yield* summarySize(chat)
      assert.isAtMost(summary, 600)
      return { estimated: { summary, view: yield* viewSize(chat) } }
    }
  },
  "the budget of tool results": {
    limits: (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "extractive", toolBudget: TokenCount.make(3_000 * scale), preserve: 0.8, minGain: 0 }
    }),
    *run(chat) {
      yield* chat.append([{ content: user(text("read them all")) }, ...results(12, 980)])
      yield* chat.compress()
      return { estimated: { view: yield* viewSize(chat) } }
    }
  },
  "the budget of the digest": {
    limits: (scale) => ({
      window: 40_000 * scale,
      policy: { summarizer: "model", digestBudget: TokenCount.make(3_000 * scale), minGain: 0 }
    }),
    *run(chat) {
      yield* chat.append([...talk(20, 400), ...results(12, 980)])
      yield* chat.compress()
      const calls = yield* Script.use((script) => script.calls)
      const sent = calls.filter(({ method }) => method === "generate").map(({ request }) => estimateOf(request))
      assert.isAbove(sent.length, 0)
      return { estimated: { sent: Math.max(...sent) } }
    }
  },
  "results that arrive together": {
    limits: (scale) => ({ window: 10_000 * scale, toolOutput: { most: 1_000_000 } }),
    *run(chat) {
      const before = yield* viewSize(chat)
      yield* chat.append(results(1, 14_000))
      return { estimated: { shown: (yield* viewSize(chat)) - before } }
    }
  },
  "a message that does not fit": {
    limits: (scale) => ({ window: 8_000 * scale, overflowFactor: 0.5 }),
    *run(chat) {
      const { error } = yield* taken(chat.send(words(7_000)))
      if (error?._tag !== "ContextOverflow") return assert.fail(`${error?._tag}`)
      return { tokens: { estimated: error.estimated, remaining: error.remaining, limit: error.limit } }
    }
  },
  "masked results": {
    limits: (scale) => ({ window: 100_000 * scale, masking: { protect: 3_000 * scale, least: 2_000 * scale } }),
    *run(chat) {
      for (let n = 0; n < 20; n += 1) {
        yield* chat.append(results(1, 980))
        const { events } = yield* taken(chat.send(`go on ${n}`))
        const [event] = events.filter(({ _tag }) => _tag === "ToolOutputMasked")
        if (event?._tag !== "ToolOutputMasked") continue
        return { tokens: { before: event.before, after: event.after }, estimated: { n, parts: event.parts } }
      }
      return assert.fail("nothing was masked")
    }
  },
  "a message after a compression": {
    limits: (scale) => ({ window: 8_000 * scale, afterCompression: Effect.succeed(words(500)) }),
    *run(chat) {
      yield* chat.append(talk(6, 400))
      yield* chat.compress()
      const last = (yield* chat.contents).at(-1)
      return { estimated: { last: estimated(last?.parts ?? []) } }
    }
  },
  "a compression by reported counts": {
    limits: (scale) => ({ window: 20_000 * scale, policy: { strategy: "gemini", summarizer: "model" } }),
    answer: snapshotOr("fine"),
    *run(chat) {
      for (let n = 0; n < 8; n += 1) yield* taken(chat.send(`${n} ${words(400)}`))
      const outcome = yield* chat.compress()
      assert.isDefined(patchOf(outcome), JSON.stringify(outcome).slice(0, 300))
      return { tokens: tokensOf(outcome) }
    }
  },
  "a compression that cannot reach the limit": {
    limits: (scale) => ({ window: 3_000 * scale, systemInstruction: words(2_900) }),
    *run(chat) {
      yield* chat.append(talk(6, 400))
      const outcome = yield* chat.compress()
      const isOver = "degraded" in outcome && outcome.degraded !== null
      assert.isTrue(isOver)
      return { estimated: { isOver: Number(isOver), view: yield* viewSize(chat) } }
    }
  },
  "a compression that a count makes due": {
    isNew: true,
    limits: (scale) => ({ window: 8_000 * scale, threshold: 0.5 }),
    *run(chat) {
      yield* chat.append(talk(8, 840))
      const { events } = yield* taken(chat.send("go on"))
      const found = events.filter(({ _tag }) => _tag === "ChatCompressed").length
      assert.strictEqual(found, 1)
      return { estimated: { found, view: yield* viewSize(chat) } }
    }
  },
  "a snapshot that is prepared": {
    limits: (scale) => ({
      window: 8_000 * scale,
      threshold: 0.5,
      prepareAt: 0.6,
      policy: { summarizer: "model", preserve: 0.6 }
    }),
    answer: snapshotOr("fine"),
    *run(chat) {
      let begun = 0
      for (let n = 1; n < 20; n += 1) {
        const { events } = yield* taken(chat.send(`${n} ${words(400)}`))
        if (begun === 0 && events.some(({ _tag }) => _tag === "SnapshotPreparation")) begun = n
        const dropped = events.filter((event) => event._tag === "SnapshotPreparation" && event.state === "dropped")
        assert.deepStrictEqual(dropped, [])
        if (events.some(({ _tag }) => _tag === "ChatCompressed")) return { estimated: { begun, n } }
      }
      return assert.fail("nothing was compressed")
    }
  },
  "calls that no request can hold": {
    limits: (scale) => ({ window: 8_000 * scale, generation: { maxOutputTokens: 100_000 } }),
    answer: ({ contents }) => {
      const size = /call (\d+)/.exec(contents.at(-1)?.parts[0]?.text ?? "")?.[1]
      if (size === undefined) return "fine"
      const made = call("write_file", { content: words(Number(size)) }, "c")
      return { content: model(made), finishReason: "STOP", usage: null }
    },
    *run(chat) {
      for (let size = 500; size < 20_000; size += 500) {
        const { error } = yield* taken(chat.send(`call ${size}`))
        // Three quarters of the window, at each scale.
        if (error !== undefined) assert.strictEqual(size, 6_000)
        if (error !== undefined) return { estimated: { size } }
        yield* chat.append([{ content: user(response("write_file", { output: "done" }, "c")) }])
        yield* taken(chat.send("well"))
        yield* chat.branch({ to: entryId(4) })
      }
      return assert.fail("no call was refused")
    }
  },
  "pruned results": {
    limits: (scale) => ({ window: 8_000 * scale, policy: { strategy: "openclaw", summarizer: "extractive" } }),
    *run(chat) {
      yield* chat.append([...results(2, 2_800), { content: model(text("read")) }])
      yield* taken(chat.send("go on"))
      return { estimated: { view: yield* viewSize(chat) } }
    }
  }
}

describe("in the model's tokens are", () => {
  it.effect.each(Object.entries(scenes))("%s", ([, { answer, isNew, limits, run }]) =>
    atScales((scale) =>
      Effect.flatMap(isNew === true ? begin(limits(scale)) : learned(limits(scale)), ({ chat }) =>
        Effect.gen(() => run(chat))
      ).pipe(Effect.provide(countingBy(scale, answer)))
    )
  )
})

it.effect("what is sent with every request counts in the report of a compression", countingBy(1), function* () {
  const systemInstruction = words(2_000)
  const { chat } = yield* learned({ window: 8_000, systemInstruction, policy: { summarizer: "extractive" } })
  yield* chat.append(talk(12, 400))
  const { after } = tokensOf(yield* chat.compress())
  assert.closeTo(after, estimated([text(systemInstruction)]) + (yield* viewSize(chat)), 100)
})
