import { Arbitrary, Effect, Layer, Schema } from "effect"
import { statusOf } from "../../../../src/domain/compression/Compression.ts"
import { StrategyName } from "../../../../src/domain/compression/strategies/Strategies.ts"
import { call, type Content, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { Handle } from "../../../../src/domain/content/Handle.ts"
import { itemParts, view } from "../../../../src/domain/conversation/Conversation.ts"
import { resultText } from "../../../../src/domain/conversation/ToolOutputBound.ts"
import { OutputForm } from "../../../../src/domain/conversation/ToolOutputShortening.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../../../src/services/chat/ChatSettings.ts"
import { runsOf } from "../../../support/runs.ts"
import { begin } from "../../../support/sending.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/**
 * Strategies that shorten outputs do so in the form of `toolOutput.form`, and all name only what can be recalled. Pi keeps
 * results as they are.
 */

const turn = (output: string, n: number): ReadonlyArray<Content> => [
  user(text(`question ${n}`)),
  model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)),
  user(response("read_file", { output }, `c${n}`)),
  model(text(`answer ${n}`))
]

/** The outputs as the window shows them after a compression, with the stored ones. */
const compressed = Effect.fnUntraced(function* (outputs: ReadonlyArray<string>, settings: Partial<ChatSettings>) {
  const services = yield* Layer.build(Offline.layerWithModel(ScriptedModel.layer([])))
  const { chat } = yield* Effect.provide(begin(settings), services)
  yield* chat.append(outputs.flatMap(turn).map((content) => ({ content })))
  const outcome = yield* chat.compress({ forced: true })
  const shown = view(yield* chat.conversation).flatMap((item) =>
    itemParts(item).flatMap((part, index) => {
      const stored = resultText(item.entry.content.parts[index] ?? part)
      const now = resultText(part)
      return stored === undefined || now === undefined ? [] : [{ stored, now }]
    })
  )
  return { chat, shown, status: statusOf(outcome) }
})

const lines = (count: number, width: number) =>
  Array.from({ length: count }, (_, n) => `line ${n} ${"x".repeat(width)}`).join("\n")

const long = lines(3_000, 60)

const policyOf = (strategy: StrategyName) =>
  ({ strategy, summarizer: "extractive", toolBudget: TokenCount.make(3_000), minGain: 0, preserve: 0.6 }) as const

const firsts = {
  "last-lines": "The last 30 of 3000 lines.",
  "head-tail-chars": `The first 8000 and last 32000 of ${long.length} characters.`,
  "head-tail-lines": "The first 200 and last 800 of 3000 lines."
} as const

describe("the form of outputs beyond the budget", () => {
  it.effect.each(["palimpsest", "gemini"] as const)(
    "%s: shortened outputs have the form of toolOutput.form, by default last-lines (seed)",
    function* (strategy) {
      const policy = policyOf(strategy)
      const outputs = Array.from({ length: runsOf(8, 2) }, () => long)
      const first = (settings: Partial<ChatSettings>) =>
        Effect.map(compressed(outputs, settings), ({ shown }) => shown[0]?.now)
      const most = long.length
      assert.include(yield* first({ policy, toolOutput: { most } }), firsts["last-lines"])
      for (const form of OutputForm.literals) {
        assert.include(yield* first({ policy, toolOutput: { form, most } }), firsts[form])
        // A policy may differ from what is shown of results that arrive.
        assert.include(yield* first({ policy: { ...policy, outputForm: form }, toolOutput: { most } }), firsts[form])
      }
    }
  )
})

describe.each(StrategyName.literals)("what the strategy %s shortens", (strategy) => {
  it.effect(`${strategy}: a shortened output names only what can be recalled, and no end of 0 (ours)`, function* () {
    const Case = Schema.Struct({
      form: Schema.Literals(OutputForm.literals),
      bound: Schema.Literals([0, 1, 4, 400, 40_000]),
      boundLines: Schema.Literals([1, 4, 5, 1_000]),
      window: Schema.Literals([4_000, 32_000, 1_048_576]),
      sizes: Schema.Array(Schema.Literals([0, 1, 29, 30, 31, 900])),
      width: Schema.Literals([0, 60, 1_200])
    })
    let named = 0
    const result = yield* Arbitrary.checkEffect(
      Arbitrary.schema(Case),
      ({ bound, boundLines, form, sizes, width, window }) =>
        Effect.gen(function* () {
          const { chat, shown } = yield* compressed(
            [...sizes, 900, 31, 900].map((count) => lines(count, width)),
            {
              policy: { ...policyOf(strategy), toolBudget: TokenCount.make(60) },
              toolOutput: { form, lines: boundLines, most: bound },
              window
            }
          )
          for (const { now, stored } of shown) {
            if (/(first|last) 0 |\.txt/.test(now.split("\n")[0] ?? "")) return yield* Effect.fail(now.slice(0, 300))
            const handle = /recall (h_\w+)$/m.exec(now.split("\n")[0] ?? "")?.[1]
            if (handle === undefined) continue
            named += 1
            if ((yield* chat.recall(Handle.make(handle))).text !== stored)
              return yield* Effect.fail(`${handle} recalls another text`)
          }
          return true
        }).pipe(Effect.scoped, Effect.mapError(String)),
      { runs: runsOf(40, 4), seed: "forms", size: 4, maxShrinks: 50 }
    )
    assert.isUndefined(Arbitrary.formatCheckFailure(result))
    assert.isAbove(named, 3)
  })
})
