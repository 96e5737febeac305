import { Effect, Layer } from "effect"
import { text, user } from "../../src/domain/content/Content.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import { TokenCount } from "../../src/domain/tokens/Tokens.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import {
  type Beat,
  changedSummaries,
  draftsOf,
  type Law,
  lawOfPlayed,
  notices,
  policyOf,
  property,
  scripts,
  thousand,
  worldOf
} from "../support/generate.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { estimate, progress, recount, shrank } from "./alwaysProgress.ts"

/** Law 4 with other summarizers and over many compressions, and that its checks notice what breaks it. */

const law = lawOfPlayed(progress)

/** Twenty compressions with a few messages before each stay within the window. */
const staysBounded: Law = lawOfPlayed(
  Effect.fnUntraced(function* ({ chat }, script) {
    const policy = { ...policyOf(script), ladder: true }
    const limit = TokenCount.make(6_000)
    const beats: ReadonlyArray<Beat> = [
      { kind: "asks", saying: { words: "constraint", size: "once" } },
      { kind: "exchange", saying: { words: "plain", size: "page" } },
      { kind: "writes a file", saying: { words: "emoji", size: "once" } },
      { kind: "answers", saying: { words: "plain", size: "paragraph" } }
    ]
    for (let round = 1; round <= 20; round += 1) {
      yield* Effect.orDie(chat.append(draftsOf(beats, round * 100)))
      yield* Effect.orDie(chat.compress({ policy: { ...policy, limit }, forced: true }))
      const tokens = policy.overhead + recount(yield* chat.conversation)
      if (tokens > limit) return `${tokens} tokens after ${round} compressions`
    }
    return undefined
  })
)

describe("law 4: always progress", () => {
  it.effect.prop(
    "twenty compressions in a row stay within the window",
    [scripts],
    ([script]) => property(staysBounded, worldOf())(script),
    { arbitrary: thousand("law 4, twenty", 50) }
  )

  it.effect.prop(
    "holds for a summarizer that writes more than its input, or nothing",
    [scripts],
    ([script]) =>
      Effect.andThen(
        property(
          law,
          worldOf({
            summarizer: changedSummaries((text) => Effect.succeed(text + "and so on and so forth ".repeat(2_000)))
          })
        )(script),
        property(law, worldOf({ summarizer: changedSummaries(() => Effect.succeed(" ")) }))(script)
      ),
    { arbitrary: thousand("law 4, bad summarizers", 100) }
  )

  describe("the checks detect", () => {
    it.effect("a counter that counts new messages lower than old ones", function* () {
      const counter = Layer.succeed(TokenCounter, {
        count: (parts) =>
          Effect.succeed(
            parts.map((part) => Math.ceil(estimate([part]) / (part.text?.startsWith(runtimeMark) === true ? 2 : 1)))
          )
      })
      assert.isTrue(yield* notices(law, worldOf({ counter })))
    })

    it.effect("a compression that fails and adds a message", function* () {
      const world = worldOf({
        chat: (chat) => ({
          ...chat,
          compress: (options) =>
            Effect.tap(chat.compress(options), (outcome) =>
              shrank(outcome) ? Effect.void : Effect.orDie(chat.append([{ content: user(text("It failed.")) }]))
            )
        })
      })
      assert.isTrue(yield* notices(law, world))
    })
  })
})
