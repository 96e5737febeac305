import { Effect, Layer } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { call, model, plainText, response, text, user } from "../../../src/domain/content/Content.ts"
import { type Draft, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import { ModelError, QuotaExhaustedError } from "../../../src/services/model/Model.ts"
import { estimateContents } from "../../../src/services/tokens/Calibrations.ts"
import { runsOf } from "../../support/runs.ts"
import { begin, brief, bytes, endingOf, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What people complained of in long conversations, each as a conversation with a model that goes well here. */

const goal = "Make the build green. Never touch src/legacy."

/** One prompt and many calls, each with a result of some 400 tokens. */
const work = (count: number, from = 0): ReadonlyArray<Draft> =>
  Array.from({ length: count }, (_, n) => from + n).flatMap((n) => [
    { content: model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)) },
    {
      content: user(
        response("read_file", { output: `export const value${n} = ${n} // of the file\n`.repeat(30) }, `c${n}`)
      )
    }
  ])
const longRun = (count: number): ReadonlyArray<Draft> => [{ content: user(text(goal)) }, ...work(count)]

const exhausted = new ModelError({ reason: new QuotaExhaustedError({ detail: "today" }) })
const runtime = (answers: Scripted.Answers = () => "fine") =>
  Layer.fresh(Offline.layerWithModel(Scripted.layer(answers)))
const streams = Effect.flatMap(Scripted.Script, ({ calls }) =>
  Effect.map(calls, (all) => all.filter(({ method }) => method === "stream").map(({ request }) => request))
)
const compressions = (events: ReadonlyArray<ChatEvent>): number =>
  events.filter(({ _tag }) => _tag === "ChatCompressed").length

describe("solved complaints about coding agents", () => {
  it.effect(
    "a session over its limit continues, even when no model can summarise it",
    runtime(({ contents }) => (plainText(contents.at(-1) ?? user()) === "go on" ? "fine" : exhausted)),
    function* () {
      const small = { window: 8_000, policy: { summarizer: "model" } } as const
      const { chat } = yield* begin(small)
      yield* chat.append(longRun(60))
      yield* chat.append([
        { content: model(call("grep", { pattern: "x" }, "big")) },
        { content: user(response("grep", { output: "one line of hits, ".repeat(60_000) }, "big")) }
      ])
      assert.isAbove(viewTokens(yield* chat.conversation), 3 * small.window)
      const { events } = yield* taken(chat.send("go on"))
      assert.strictEqual(endingOf(events)?._tag, "Finished", events.map(brief).join(", "))
      for (const request of yield* streams) assert.isBelow(yield* estimateContents(request), 8_000)
    }
  )

  it.effect("does not retry on every turn what cannot become smaller", runtime(), function* () {
    const { chat } = yield* begin({ window: 20_000 })
    // One message of the user's own words: nothing may be taken from it.
    yield* chat.append([{ content: user(text("My own words, kept to the letter. ".repeat(1_500))) }])
    let tried = 0
    for (let turn = 0; turn < 10; turn += 1) tried += compressions((yield* taken(chat.send("and?"))).events)
    assert.isAtMost(tried, 1)
  })

  /** Characters of all different strings that can be reached from a value. */
  const retained = (root: unknown): number => {
    const seen = new Set<unknown>()
    const open: Array<unknown> = [root]
    let characters = 0
    while (open.length > 0) {
      const value = open.pop()
      if (seen.has(value)) continue
      if (typeof value === "string") {
        seen.add(value)
        characters += value.length
      } else if (typeof value === "object" && value !== null) {
        seen.add(value)
        if (value instanceof Map) open.push(...value.keys(), ...value.values())
        else for (const each of Object.values(value)) open.push(each)
      }
    }
    return characters
  }

  it.effect("a long conversation stores each text once, and its requests do not grow", runtime(), function* () {
    const { chat, events } = yield* begin({ window: 8_000 })
    let said = 0
    let told = 0
    for (let turn = 0; turn < runsOf(150, 50); turn += 1) {
      const words = `Turn ${turn}. ${`Look at part ${turn} of it with care. `.repeat(40)}`
      said += words.length
      events.length = 0
      told += compressions((yield* taken(chat.send(words))).events)
    }
    assert.isAbove(told, 5)
    assert.isBelow(viewTokens(yield* chat.conversation), 8_000)
    assert.isBelow(bytes(yield* chat.contents).length, 60_000)
    assert.isBelow(retained(yield* chat.session), 2.5 * said)
    const sizes = (yield* streams).map(({ contents }) => bytes(contents).length)
    assert.isBelow(Math.max(...sizes), 60_000)
  })
})
