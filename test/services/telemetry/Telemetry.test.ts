import { Effect } from "effect"
import type { TelemetryRecord } from "../../../src/domain/telemetry/Telemetry.ts"
import { type Sink, Telemetry } from "../../../src/services/telemetry/Telemetry.ts"
import { secret, watched } from "../../support/telemetry.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const kept = () => {
  const records: Array<TelemetryRecord> = []
  const sink: Sink = (record) => Effect.sync(() => void records.push(record))
  return { records, sink }
}

describe("telemetry", () => {
  it.live("records turns, tokens and every compression, in order, without text", function* () {
    const { records, sink } = kept()
    const telemetry = Telemetry.make({ sinks: [sink], buffer: 100, prompts: false, logs: false })
    yield* watched(telemetry)
    assert.deepStrictEqual(
      records.map(({ name }) => name),
      ["request", "turn", "chat_compression"]
    )
    const [, turn, compression] = records
    // A person asked for it: Gemini CLI calls that `compress-<ms>`.
    assert.match(String(compression?.attributes["prompt_id"]), /^compress-\d{13}$/)
    assert.isAbove(Number(turn?.attributes["prompt_tokens"]), 0)
    assert.isAbove(Number(compression?.attributes["tokens_before"]), Number(compression?.attributes["tokens_after"]))
    assert.notInclude(JSON.stringify(records), secret)
    assert.deepStrictEqual((yield* telemetry.recent).records, records)
  })

  it.live("records text when enabled", function* () {
    const { records, sink } = kept()
    yield* watched(Telemetry.make({ sinks: [sink], buffer: 100, prompts: true, logs: false }))
    assert.deepStrictEqual(
      records.slice(0, 3).map(({ attributes, name }) => [name, attributes["text"]]),
      [
        ["prompt", secret],
        ["request", undefined],
        ["content", `An answer: ${secret}`]
      ]
    )
  })

  it.effect("stops using a sink that fails, and continues with the others", function* () {
    const { records, sink } = kept()
    let asked = 0
    const bad: Sink = () => Effect.suspend(() => ((asked += 1), Effect.fail({ message: "the disk is full" })))
    const telemetry = Telemetry.make({ sinks: [bad, sink], buffer: 2, prompts: false, logs: false })
    for (const name of ["a", "b", "c"]) yield* telemetry.record(undefined, { name: name, attributes: {} })
    assert.strictEqual(asked, 1)
    assert.lengthOf(records, 3)
    assert.deepStrictEqual((yield* telemetry.recent).kinds, { b: 1, c: 1 })
  })
})
