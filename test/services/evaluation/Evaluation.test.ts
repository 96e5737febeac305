import { Effect, Layer } from "effect"
import { entryText } from "../../../src/domain/compression/Anchors.ts"
import type { Content } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { sumsOf } from "../../../src/domain/evaluation/EvaluationReport.ts"
import type { Compaction, Measure } from "../../../src/domain/evaluation/Measure.ts"
import { measures } from "../../../src/domain/evaluation/Measures.ts"
import { applyEvent, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { evaluateRecording, type EvaluationOptions } from "../../../src/services/evaluation/Evaluation.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { makeEntry, HandleIndex } from "../../../src/services/session/EntryBuilder.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { asks, ran, says } from "../../support/compactions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Compression.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(TokenCounter.layerEstimate, Summarizer.layerExtractive, HookSystem.layer, MemoryTempStore.layer)
  )
)

/** A message, or a compaction with this summary. */
type Step = Content | { readonly summary: string }

/** Makes the events of a recording. */
const recordingOf = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const held = new HandleIndex()
  const events: Array<SessionEvent> = []
  let session = emptySession
  const add = (event: SessionEvent) => {
    events.push(event)
    session = applyEvent(session, event)
  }
  let ids: Array<string> = []
  for (const step of steps) {
    const id = entryId(session.conversation.next)
    if ("role" in step) {
      add({ _tag: "Appended", entry: yield* makeEntry({ content: step }, id, held) })
      ids.push(id)
      continue
    }
    const [from, to] = [ids[0], ids.at(-1)]
    if (from === undefined || to === undefined) continue
    const summary = yield* makeEntry({ content: asks(step.summary), author: "summary" }, id, held)
    const drop = { from: entryId(Number(from.slice(1))), to: entryId(Number(to.slice(1))) }
    add({
      _tag: "Compressed",
      at: 0,
      status: "COMPRESSED",
      strategy: "recorded",
      trigger: "auto",
      before: TokenCount.make(0),
      after: TokenCount.make(0),
      patch: { drop, insert: [summary], shorten: [] }
    })
    ids = [id]
  }
  return { events, session }
})

const work = (name: string): ReadonlyArray<Content> => [
  asks(`Mend ${name}.`),
  ...ran("bash", { command: `rg ${name}` }, `src/${name}.ts: ${name}\n`.repeat(40)),
  ...ran("read", { file_path: `src/${name}.ts` }, `export const ${name} = 1\n`.repeat(40)),
  says(`${name} is mended.`)
]

/** Collects the compactions it is given. */
const collecting = (compactions: Array<Compaction>): Measure => ({
  figures: [],
  *prepare(compaction) {
    compactions.push(compaction)
    return function* () {
      return []
    }
  }
})

const options: EvaluationOptions = {
  measures,
  strategies: ["palimpsest", "gemini"],
  preserves: [0],
  budget: undefined,
  scale: 1
}

describe("an evaluation", () => {
  it.effect(
    "measures a second compaction on what the agent saw then: the first summary, and what followed it",
    services,
    function* () {
      const recording = yield* recordingOf([
        ...work("oneThing"),
        { summary: "oneThing is mended" },
        ...work("twoThings"),
        { summary: "twoThings are mended" },
        ...work("sixThings")
      ])
      const compactions: Array<Compaction> = []
      const points = yield* evaluateRecording(recording, { ...options, measures: [collecting(compactions)] })
      assert.deepStrictEqual(
        compactions.map(({ after, before, log }) => [before.length, log.length, after.length]),
        [
          [6, 6, 6],
          [7, 12, 6]
        ]
      )
      assert.strictEqual(entryText(compactions[1]?.before[0] ?? assert.fail()), "oneThing is mended")
      assert.isFalse(compactions[1]?.before.some((entry) => entryText(entry) === "Mend oneThing."))
      assert.strictEqual(points.length, 2)
    }
  )

  it.effect(
    "gives every writer the recorded summary's size, and the same report for the same seed",
    services,
    function* () {
      const summary = `I mended oneThing in src/oneThing.ts. ${"It took a while, and then some more. ".repeat(12)}`
      const steps = [...work("oneThing"), ...work("twoThings"), { summary }, ...work("oneThing")]
      const recording = yield* recordingOf(steps)
      const points = yield* evaluateRecording(recording, options)
      const [recorded, ...written] = points[0]?.rows ?? []
      assert.deepStrictEqual(
        [recorded?.writer, ...written.map(({ writer }) => writer)],
        ["recorded", "palimpsest", "gemini"]
      )
      for (const row of written) {
        assert.strictEqual(row.budget, recorded?.snapshotTokens)
        assert.isAtMost(row.snapshotTokens, row.budget)
      }
      const halved = yield* evaluateRecording(recording, { ...options, scale: 0.5 })
      assert.strictEqual(halved[0]?.rows[1]?.budget, Math.round((recorded?.snapshotTokens ?? 0) / 2))
      const figures = measures.flatMap((measure) => measure.figures)
      const files = ["a", "b"].map((file) => ({ file, points }))
      assert.deepStrictEqual(sumsOf(files, figures, 1), sumsOf(files, figures, 1))
      // The same figures in every file leave no doubt.
      const [sum] = sumsOf(files, figures, 1)
      const { interval, value } = sum?.figures["waste"] ?? assert.fail()
      assert.deepStrictEqual(interval, [value ?? 0, value ?? 0])
    }
  )

  it("gives each figure a key of its own", () => {
    const keys = measures.flatMap(({ figures }) => figures.map(({ key }) => key))
    assert.strictEqual(new Set(keys).size, keys.length)
  })
})
