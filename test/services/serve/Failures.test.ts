import { Effect } from "effect"
import { SqlError } from "effect/sql"
import { storeError } from "../../../src/services/serve/Failures.ts"
import { sessionError, SessionTaken, sessionUnavailable } from "../../../src/services/session/SessionStore.ts"
import { assert, it } from "../../support/vitest.ts"

const away = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: "ECONNREFUSED" }) })

it.effect.each([
  ["a database that is away", away, "Unavailable"],
  ["a disk that fails", new Error("EIO"), "Failed"]
] as const)("%s", function* ([, cause, tag]) {
  const error = yield* Effect.flip(storeError(sessionUnavailable("read", "/srv/secret failed", cause)))
  assert.strictEqual(error._tag, tag)
  assert.notInclude(error.message, "/srv/secret")
})

it.effect("a session that another server took over can be asked for again", function* () {
  const error = yield* Effect.flip(storeError(sessionError(new SessionTaken({ id: "one" }))))
  assert.strictEqual(error._tag, "Unavailable")
})
