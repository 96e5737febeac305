import { Effect, Redacted } from "effect"
import { needs } from "../../support/machine.ts"
import { freePort, postgresServer } from "../../support/postgres.ts"
import { newHome, startServer } from "../../support/server.ts"
import { assert, it } from "../../support/vitest.ts"

needs("PostgreSQL")("a server whose database is away", () => {
  it.live("says when to try again, and goes on when it is back", function* () {
    const database = yield* postgresServer
    const runner = { host: "127.0.0.1", port: yield* freePort }
    const store = { _tag: "Postgres", url: Redacted.make(database.url), runner } as const
    const { ask } = yield* startServer({ home: newHome(), store })
    const requests = [
      ["GET", "/v1/sessions", undefined],
      ["GET", "/v1/sessions/one", undefined],
      ["POST", "/v1/sessions", { id: "two" }],
      ["PATCH", "/v1/sessions/one", { metadata: { of: "x" } }],
      ["POST", "/v1/sessions/one/messages", { id: "m1", text: "Hello" }]
    ] as const
    yield* Effect.promise(async () => {
      assert.strictEqual((await ask("POST", "/v1/sessions", { body: { id: "one" } })).status, 201)
    })
    yield* database.stop
    yield* Effect.promise(async () => {
      const answers = await Promise.all(requests.map(([method, place, body]) => ask(method, place, { body })))
      for (const [index, { headers, status }] of answers.entries()) {
        assert.strictEqual(status, 503, JSON.stringify(requests[index]))
        assert.isAbove(Number(headers.get("retry-after")), 0)
      }
    })
    yield* database.start
    yield* Effect.promise(async () => {
      const again = async (): Promise<string> => {
        const response = await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "Hello" } })
        if (response.status === 200) return response.text()
        assert.strictEqual(response.status, 503)
        await new Promise((resolve) => setTimeout(resolve, 500))
        return again()
      }
      assert.include(await again(), `"status":"answered"`)
    })
  })
})
