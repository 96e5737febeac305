import { Effect } from "effect"
import * as Otlp from "../../../src/layers/telemetry/Otlp.ts"
import { Telemetry } from "../../../src/services/telemetry/Telemetry.ts"
import { ExportError } from "../../../src/services/transcripts/TranscriptExport.ts"
import { listening } from "../../support/loopback.ts"
import { secret, watched } from "../../support/telemetry.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A collector on loopback, and what it was sent by path. */
const collector = Effect.gen(function* () {
  const received = new Map<string, string>()
  const url = yield* listening((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (chunk: string) => {
      body += chunk
    })
    request.on("end", () => {
      const path = request.url ?? ""
      received.set(path, `${received.get(path) ?? ""}${body}`)
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  return { received, url }
})

describe("export over OTLP", () => {
  for (const prompts of [false, true]) {
    it.live(
      `a collector gets spans, metrics and logs, ${prompts ? "with text when enabled" : "without text"}`,
      function* () {
        const { received, url } = yield* collector
        const run = Effect.gen(function* () {
          const telemetry = Telemetry.make({ sinks: [], buffer: 10, prompts, logs: true })
          yield* watched(telemetry)
          yield* Effect.logWarning(secret)
          yield* Effect.ignore(
            Effect.fail(new ExportError({ path: "/x", message: secret })).pipe(
              Effect.withSpan("failing", { attributes: { text: secret, model: secret, list: [secret], size: 7 } })
            )
          )
        })
        yield* Effect.scoped(Effect.provide(run, Otlp.layer({ endpoint: url, version: "1", prompts })))
        assert.sameMembers([...received.keys()], ["/v1/traces", "/v1/metrics", "/v1/logs"])
        assert.include(received.get("/v1/traces"), "Chat.compress")
        assert.include(received.get("/v1/traces"), "failing")
        assert.include(received.get("/v1/metrics"), "palimpsest_tokens")
        assert.include(received.get("/v1/logs"), "chat_compression")
        const all = [...received.values()].join("\n")
        assert.strictEqual(all.includes(secret), prompts)
      }
    )
  }

  it.live("a missing collector has no effect on the run", function* () {
    const layer = Otlp.layer({ endpoint: "http://127.0.0.1:9", version: "1", prompts: false })
    assert.strictEqual(yield* Effect.provide(Effect.withSpan(Effect.succeed(7), "work"), layer), 7)
  })
})
