import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path, Stream } from "effect"
import { statSync } from "node:fs"
import { createServer } from "node:http"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import type { TelemetryRecord } from "../../../src/domain/telemetry/Telemetry.ts"
import * as FileTelemetry from "../../../src/layers/telemetry/FileTelemetry.ts"
import * as Otlp from "../../../src/layers/telemetry/Otlp.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { type Sink, Telemetry } from "../../../src/services/telemetry/Telemetry.ts"
import { ExportError } from "../../../src/services/transcripts/TranscriptExport.ts"
import { begin, google, said } from "../../support/sending.ts"

const secret = "the words of a person"

const kept = () => {
  const records: Array<TelemetryRecord> = []
  const sink: Sink = (record) => Effect.sync(() => void records.push(record))
  return { records, sink }
}

/** A turn of one conversation and a compression of it, watched. */
const watched = (telemetry: Telemetry["Service"]) =>
  Effect.gen(function* () {
    const fake = yield* Fake.make(({ method }) =>
      method === "countTokens" ? Fake.tokens(9) : said(`An answer: ${secret}`)
    )
    const services = yield* Layer.build(google(fake.url))
    return yield* Effect.gen(function* () {
      yield* telemetry.compressions
      const { chat } = yield* begin()
      yield* Stream.runDrain(telemetry.watch("s1", secret, chat.send(secret)))
      for (let at = 0; at < 6; at += 1) {
        const words = Array.from({ length: 400 }, (_, n) => `${secret} ${at * n}.`).join(" ")
        yield* chat.append([{ content: user(text(`What of ${at}?`)) }, { content: model(text(words)) }])
      }
      yield* chat.compress()
      return yield* HookSystem
    }).pipe(Effect.provide(services), Effect.scoped)
  })

describe("telemetry", () => {
  it.live("records turns, tokens and every compression, in order, without text", () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.scoped)
  )

  it.live("records text when enabled", () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.scoped)
  )

  it.effect("stops using a sink that fails, and continues with the others", () =>
    Effect.gen(function* () {
      const { records, sink } = kept()
      let asked = 0
      const bad: Sink = () => Effect.suspend(() => ((asked += 1), Effect.fail({ message: "the disk is full" })))
      const telemetry = Telemetry.make({ sinks: [bad, sink], buffer: 2, prompts: false, logs: false })
      for (const name of ["a", "b", "c"]) yield* telemetry.record(undefined, { name: name, attributes: {} })
      assert.strictEqual(asked, 1)
      assert.lengthOf(records, 3)
      assert.deepStrictEqual((yield* telemetry.recent).kinds, { b: 1, c: 1 })
    })
  )
})

describe("the telemetry file", () => {
  it.live("has one line of JSON per record, is private, and refuses a pipe in its place", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = path.join(folder, "deep", "telemetry.jsonl")
      const sink = yield* FileTelemetry.make(file)
      const record = { name: "turn", at: 5, session: "s", attributes: { tokens: 7 } }
      yield* sink(record)
      yield* sink(record)
      const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
      assert.deepStrictEqual(
        lines.map((line) => JSON.parse(line)),
        [record, record]
      )
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const { message } = yield* Effect.flip((yield* FileTelemetry.make(folder))(record))
      assert.include(message, "is no file")
      // What a link leads to is another file of the person's.
      yield* fs.writeFileString(path.join(folder, "notes"), "mine")
      yield* fs.symlink(path.join(folder, "notes"), path.join(folder, "link.jsonl"))
      yield* fs.symlink(path.join(folder, "made"), path.join(folder, "nowhere.jsonl"))
      for (const link of ["link.jsonl", "nowhere.jsonl"]) {
        const refused = yield* Effect.flip((yield* FileTelemetry.make(path.join(folder, link)))(record))
        assert.include(refused.message, `${link} is a link`)
      }
      assert.strictEqual(yield* fs.readFileString(path.join(folder, "notes")), "mine")
      assert.isFalse(yield* fs.exists(path.join(folder, "made")))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

/** A collector on loopback, and what it was sent by path. */
const collector = Effect.gen(function* () {
  const received = new Map<string, string>()
  const server = createServer((request, response) => {
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
  const url = yield* Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(`http://127.0.0.1:${typeof address === "object" ? (address?.port ?? 0) : 0}`))
      })
    }),
    () => Effect.sync(() => void server.close())
  )
  return { received, url }
})

describe("export over OTLP", () => {
  for (const prompts of [false, true]) {
    it.live(`a collector gets spans, metrics and logs, ${prompts ? "with text when enabled" : "without text"}`, () =>
      Effect.gen(function* () {
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
      }).pipe(Effect.scoped)
    )
  }

  it.live("a missing collector has no effect on the run", () =>
    Effect.gen(function* () {
      const layer = Otlp.layer({ endpoint: "http://127.0.0.1:9", version: "1", prompts: false })
      assert.strictEqual(yield* Effect.provide(Effect.withSpan(Effect.succeed(7), "work"), layer), 7)
    })
  )
})
