import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem } from "effect"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"

const url = (base: string, method: string, version = "v1beta") => `${base}/${version}/models/some-model:${method}`

const post = (address: string, body: unknown, headers: Record<string, string> = {}) =>
  Effect.promise((signal) =>
    fetch(address, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
      signal
    })
  )

const textOf = (response: Response) => Effect.promise(() => response.text())
const jsonOf = (response: Response) => Effect.promise((): Promise<unknown> => response.json())

describe("FakeGemini", () => {
  it.live("answers the three methods under both versions", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => Fake.tokens(7))
      for (const version of ["v1", "v1beta"]) {
        for (const method of ["generateContent", "streamGenerateContent", "countTokens"]) {
          const response = yield* post(url(fake.url, method, version), {})
          assert.deepStrictEqual(yield* jsonOf(response), { totalTokens: 7 })
        }
      }
      const requests = yield* fake.requests
      assert.deepStrictEqual(
        requests.map(({ index, method, version }) => `${index} ${version} ${method}`),
        [
          "0 v1 generateContent",
          "1 v1 streamGenerateContent",
          "2 v1 countTokens",
          "3 v1beta generateContent",
          "4 v1beta streamGenerateContent",
          "5 v1beta countTokens"
        ]
      )
    })
  )

  it.live("has no other methods, and records no other requests", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => Fake.tokens(7))
      const addresses = [`${fake.url}/`, url(fake.url, "embedContent"), url(fake.url, "countTokens", "v2")]
      for (const address of addresses) assert.strictEqual((yield* post(address, {})).status, 404)
      assert.deepStrictEqual(yield* fake.requests, [])
      assert.deepStrictEqual(yield* fake.sightings, [])
    })
  )

  it.live("records requests, without the key's value", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => Fake.tokens(1))
      yield* post(`${url(fake.url, "countTokens")}?key=sesame&a=b`, { a: [1] }, { "x-goog-api-key": "sesame", x: "y" })
      yield* post(url(fake.url, "countTokens"), "not JSON")
      const [first, second] = yield* fake.requests
      assert.deepStrictEqual(first?.body, { a: [1] })
      assert.strictEqual(first?.model, "some-model")
      assert.strictEqual(first?.path, "/v1beta/models/some-model:countTokens?key=<key>&a=b")
      assert.strictEqual(first?.headers["x"], "y")
      assert.strictEqual(first?.headers["x-goog-api-key"], "<key>")
      assert.notInclude(JSON.stringify(yield* fake.requests), "sesame")
      assert.strictEqual(second?.body, "not JSON")
    })
  )

  it.live("accepts only its key", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => Fake.tokens(1), { key: "right" })
      const status = (key: string) =>
        Effect.map(post(url(fake.url, "countTokens"), {}, { "x-goog-api-key": key }), (response) => response.status)
      assert.deepStrictEqual([yield* status("right"), yield* status("wrong")], [200, 400])
    })
  )

  it.live("names the request without a scripted response", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(Fake.queue(Fake.tokens(1)))
      yield* post(url(fake.url, "countTokens"), {})
      const response = yield* post(url(fake.url, "countTokens"), {})
      assert.strictEqual(response.status, 501)
      assert.include(yield* textOf(response), "the script has 1 answers, this is request 2")
    })
  )

  it.live("reports an error in the script", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => {
        throw new Error("on purpose")
      })
      const response = yield* post(url(fake.url, "countTokens"), {})
      assert.strictEqual(response.status, 500)
      assert.include(yield* textOf(response), "on purpose")
    })
  )

  it.live("sends an error as Google does", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => Fake.failure(503, "overloaded", { retryAfter: "3" }))
      const response = yield* post(url(fake.url, "generateContent"), {})
      assert.strictEqual(response.status, 503)
      assert.strictEqual(response.headers.get("retry-after"), "3")
      assert.deepStrictEqual(yield* jsonOf(response), {
        error: { code: 503, message: "overloaded", status: "UNAVAILABLE" }
      })
    })
  )

  it.live("streams events on demand", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const fake = yield* Fake.make(() => [
        Fake.streamHead,
        Fake.event({ n: 1 }),
        Fake.wait(Deferred.await(gate)),
        Fake.event({ n: 2 })
      ])
      const response = yield* post(url(fake.url, "streamGenerateContent"), {})
      const reader = response.body?.getReader()
      const read = Effect.promise(async () => Buffer.from((await reader?.read())?.value ?? []).toString())
      assert.strictEqual(yield* read, 'data: {"n":1}\r\n\r\n')
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* read, 'data: {"n":2}\r\n\r\n')
      assert.strictEqual(yield* read, "")
      assert.isTrue(yield* fake.closed(0))
    })
  )

  for (const [name, step] of [
    ["drops", Fake.drop],
    ["resets", Fake.reset]
  ] as const) {
    it.live(`can ${name} a connection`, () =>
      Effect.gen(function* () {
        const fake = yield* Fake.make(() => [Fake.head(200), Fake.write("half"), step])
        const result = yield* Effect.exit(Effect.flatMap(post(url(fake.url, "generateContent"), {}), textOf))
        assert.strictEqual(result._tag, "Failure")
        assert.isFalse(yield* fake.closed(0))
      })
    )
  }

  it.live("records the order in which sockets close", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make(() => [Fake.stall])
      const start = (index: number) =>
        Effect.tap(Effect.forkChild(post(url(fake.url, "generateContent"), {})), fake.received(index))
      const first = yield* start(0)
      const second = yield* start(1)
      yield* Fiber.interrupt(second)
      assert.isFalse(yield* fake.closed(1))
      yield* Fiber.interrupt(first)
      assert.isFalse(yield* fake.closed(0))
      const sightings = yield* fake.sightings
      assert.deepStrictEqual(
        sightings.map(({ _tag, index }) => `${_tag} ${index}`),
        ["Received 0", "Received 1", "Closed 1", "Closed 0"]
      )
    })
  )

  it.live("closes every socket with its scope", () =>
    Effect.gen(function* () {
      const address = yield* Deferred.make<string>()
      const request = yield* Deferred.await(address).pipe(
        Effect.flatMap((base) => post(url(base, "generateContent"), {})),
        Effect.exit,
        Effect.forkChild
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fake = yield* Fake.make(() => [Fake.stall])
          yield* Deferred.succeed(address, fake.url)
          yield* fake.received(0)
        })
      )
      assert.isTrue(Exit.isFailure(yield* Fiber.join(request)))
    })
  )
})

describe("replay", () => {
  const files = [
    "api-resilience",
    "context-compress-interactive.compress-failure",
    "context-compress-interactive.compress",
    "json-output.france",
    "parallel-tools"
  ]
  for (const name of files) {
    it.live(`returns every line of ${name}`, () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const file = yield* fs.readFileString(`${import.meta.dirname}/../../fixtures/recordings/${name}.responses`)
        const fake = yield* Fake.make(yield* Fake.replay(file))
        for (const line of file.split("\n").filter((each) => each !== "")) {
          const { method, response } = JSON.parse(line)
          const isStream = method === "generateContentStream"
          const answer = yield* post(url(fake.url, isStream ? "streamGenerateContent" : method), {})
          const text = yield* textOf(answer)
          const events = text.split("\r\n\r\n").filter((each) => each !== "")
          assert.deepStrictEqual(
            isStream ? events.map((each) => JSON.parse(each.slice("data: ".length))) : JSON.parse(text),
            response
          )
        }
      }).pipe(Effect.provide(NodeServices.layer))
    )
  }

  it.live("reports when another method was recorded", () =>
    Effect.gen(function* () {
      const script = yield* Fake.replay('{"method":"countTokens","response":{"totalTokens":1}}\n')
      const fake = yield* Fake.make(script)
      const response = yield* post(url(fake.url, "generateContent"), {})
      assert.strictEqual(response.status, 501)
      assert.include(yield* textOf(response), "recorded was countTokens")
    })
  )

  it.effect("rejects a file that is not a recording", () =>
    Effect.gen(function* () {
      for (const file of [
        "not JSON",
        '{"method":"embedContent","response":{}}',
        '{"method":"generateContentStream","response":{}}'
      ]) {
        assert.strictEqual((yield* Effect.flip(Fake.replay(file)))._tag, "SchemaError")
      }
    })
  )
})
