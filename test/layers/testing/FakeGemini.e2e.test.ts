import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../../support/vitest.ts"

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
describe("FakeGemini", () => {
  it.live("has no other methods, and records no other requests", function* () {
    const fake = yield* Fake.make(() => Fake.tokens(7))
    const addresses = [`${fake.url}/`, url(fake.url, "embedContent"), url(fake.url, "countTokens", "v2")]
    for (const address of addresses) assert.strictEqual((yield* post(address, {})).status, 404)
    assert.deepStrictEqual(yield* fake.requests, [])
    assert.deepStrictEqual(yield* fake.sightings, [])
  })

  it.live("records requests, without the key's value", function* () {
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

  it.live("names the request without a scripted response", function* () {
    const fake = yield* Fake.make(Fake.queue(Fake.tokens(1)))
    yield* post(url(fake.url, "countTokens"), {})
    const response = yield* post(url(fake.url, "countTokens"), {})
    assert.strictEqual(response.status, 501)
    assert.include(yield* textOf(response), "the script has 1 answers, this is request 2")
  })

  it.live("reports an error in the script", function* () {
    const fake = yield* Fake.make(() => {
      throw new Error("on purpose")
    })
    const response = yield* post(url(fake.url, "countTokens"), {})
    assert.strictEqual(response.status, 500)
    assert.include(yield* textOf(response), "on purpose")
  })

  it.live("closes every socket with its scope", function* () {
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
})

describe("replay", () => {
  it.live("reports when another method was recorded", function* () {
    const script = yield* Fake.replay('{"method":"countTokens","response":{"totalTokens":1}}\n')
    const fake = yield* Fake.make(script)
    const response = yield* post(url(fake.url, "generateContent"), {})
    assert.strictEqual(response.status, 501)
    assert.include(yield* textOf(response), "recorded was countTokens")
  })

  it.effect("rejects a file that is not a recording", function* () {
    for (const file of [
      "not JSON",
      '{"method":"embedContent","response":{}}',
      '{"method":"generateContentStream","response":{}}'
    ]) {
      assert.strictEqual((yield* Effect.flip(Fake.replay(file)))._tag, "SchemaError")
    }
  })
})
