import { assert, describe, it } from "@effect/vitest"
import { refusalOf } from "../../../src/domain/tools/LoopbackRequest.ts"

const token = "pal_secret"
const authorization = `Bearer ${token}`

describe("a request to a server for programs of this machine", () => {
  it.each(["127.0.0.1:4402", "localhost", "LOCALHOST:80", "[::1]:4402", "127.1.2.3:1"])("is answered at %s", (host) => {
    assert.isUndefined(refusalOf({ host, origin: undefined, authorization }, token))
    assert.isUndefined(refusalOf({ host, origin: `http://${host}`, authorization }, token))
  })

  it.each([undefined, "", "evil.example", "evil.example:4402", "127.0.0.1.evil.example", "localhost.evil.example:80"])(
    "is refused under the name %s",
    (host) => assert.strictEqual(refusalOf({ host, origin: undefined, authorization }, token)?.status, 403)
  )

  it.each([
    "https://evil.example",
    "null",
    "",
    "http://localhost.evil.example",
    "file://",
    "http://127.0.0.1@evil.example"
  ])("is refused from the page %s", (origin) =>
    assert.strictEqual(refusalOf({ host: "127.0.0.1:1", origin, authorization }, token)?.status, 403)
  )

  it.each([undefined, "", "Bearer ", "Bearer pal_secre", "Bearer pal_secret2", "Basic pal_secret", token])(
    "is refused with the authorization %s",
    (given) => {
      const refusal = refusalOf({ host: "127.0.0.1:1", origin: undefined, authorization: given }, token)
      assert.strictEqual(refusal?.status, 401)
      assert.notInclude(refusal?.message, token)
    }
  )
})
