import { Effect } from "effect"
import { request } from "node:http"
import { connect } from "node:net"
import * as BrowserProxy from "../../../src/layers/tools/BrowserProxy.ts"
import { BrowserFailure } from "../../../src/services/tools/Browser.ts"
import { portOf } from "../../support/loopback.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A server that answers with the host that it was asked for. */
const server = portOf(({ headers }, response) => response.end(`hello from ${headers.host}`))

/** Only `allowed` may be reached, and it is this machine. */
const proxy = BrowserProxy.start(({ hostname }) =>
  hostname === "allowed"
    ? Effect.succeed(["127.0.0.1"])
    : Effect.fail(new BrowserFailure({ message: `${hostname} is forbidden` }))
)

const got = (port: number, url: string) =>
  Effect.callback<{ readonly status: number | undefined; readonly text: string; readonly refusal: string | undefined }>(
    (resume) => {
      request({ host: "127.0.0.1", port, path: url }, (response) => {
        let text = ""
        response.on("data", (piece) => (text += String(piece)))
        response.on("end", () => {
          const headers = Object.fromEntries(
            Object.entries(response.headers).map(([name, value]) => [name, String(value)])
          )
          resume(Effect.succeed({ status: response.statusCode, text, refusal: BrowserProxy.refusalIn(headers) }))
        })
      }).end()
    }
  )

/** The first line of the answer to a CONNECT. */
const connected = (port: number, to: string) =>
  Effect.callback<string>((resume) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(`CONNECT ${to} HTTP/1.1\r\n\r\n`))
    socket.once("data", (piece) => {
      resume(Effect.succeed(String(piece).split("\r\n")[0] ?? ""))
      socket.destroy()
    })
  })

describe("the proxy before a browser", () => {
  it.effect("connects to the checked address, and says why it refuses any other", function* () {
    const there = yield* server
    const { port, takeReason } = yield* proxy
    assert.deepStrictEqual(yield* got(port, `http://allowed:${there}/`), {
      status: 200,
      text: `hello from allowed:${there}`,
      refusal: undefined
    })
    assert.strictEqual(takeReason(), "")
    assert.deepInclude(yield* got(port, "http://other/"), { status: 403, refusal: "other is forbidden" })
    assert.strictEqual(takeReason(), "other is forbidden")
    assert.strictEqual(takeReason(), "")
    assert.deepInclude(yield* got(port, "ftp://allowed/"), {
      status: 403,
      refusal: "only http and https are supported"
    })
  })

  it.effect("checks tunnels too", function* () {
    const there = yield* server
    const { port } = yield* proxy
    assert.strictEqual(yield* connected(port, `allowed:${there}`), "HTTP/1.1 200 Connection Established")
    assert.strictEqual(yield* connected(port, "other:443"), "HTTP/1.1 403 Forbidden")
    assert.strictEqual(yield* connected(port, ":"), "HTTP/1.1 400 Bad Request")
  })
})
