import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Random } from "effect"
import { projectMessages, sentJson } from "../../src/domain/conversation/Projection.ts"
import { encodeLine } from "../../src/domain/session/LogFormat.ts"
import { Summarizer } from "../../src/services/compression/summary/Summarizer.ts"
import { type Law, notices, play, property, scripts, thousand, worldOf } from "../support/generate.ts"

/** Law 7: the same conversation, played again in a new world, gives the same bytes. */

const sameAgain: Law = (world) => (script) =>
  Effect.gen(function* () {
    const once = Effect.gen(function* () {
      const { chat, events, moments } = yield* play(world, script)
      return {
        log: events.map((event) => encodeLine(event)).join("\n"),
        outcomes: JSON.stringify(moments.map(({ outcome }) => outcome)),
        sent: sentJson(projectMessages(yield* chat.conversation))
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(world.services)))
    const first = yield* once
    const second = yield* once
    if (first.log !== second.log) return "the logs differ"
    if (first.outcomes !== second.outcomes) return "the outcomes differ"
    return first.sent === second.sent ? undefined : "what is sent differs"
  })

const summarizing = (change: (text: string) => Effect.Effect<string>) =>
  worldOf({
    summarizer: Layer.effect(
      Summarizer,
      Effect.map(Summarizer, (real) => ({
        answers: () => Effect.die("unexpected call"),
        count: () => Effect.die("unexpected call"),
        summarize: Effect.fnUntraced(function* (request) {
          const summary = yield* real.summarize(request)
          return { ...summary, text: yield* change(summary.text) }
        })
      }))
    ).pipe(Layer.provide(Summarizer.layerExtractive))
  })

describe("law 7: same in, same out", () => {
  it.effect.prop(
    "replaying a conversation gives the same log, outcomes and requests",
    [scripts],
    ([script]) => property(sameAgain, worldOf())(script),
    { arbitrary: thousand("law 7") }
  )

  describe("the checks detect", () => {
    it.effect("a summarizer with random output", () =>
      Effect.gen(function* () {
        const world = summarizing((text) =>
          Effect.map(Random.nextInt, (n) =>
            text.replaceAll("- none", `- ${n % 2 === 0 ? "even" : "odd"} ${"so ".repeat(Math.abs(n % 7))}`)
          )
        )
        assert.isTrue(yield* notices(sameAgain, world))
      })
    )

    it.effect("a summarizer that keeps state", () =>
      Effect.gen(function* () {
        let calls = 0
        const world = summarizing((text) =>
          Effect.sync(() => {
            calls += 1
            return `${text}\n`.repeat(1 + (calls % 2)).trimEnd()
          })
        )
        assert.isTrue(yield* notices(sameAgain, world))
      })
    )
  })
})
