import { assert, describe, it } from "@effect/vitest"
import { HttpError, McpClientError, ProtocolError, TimeoutError, TransportError } from "effect/ai/McpClientError"
import { mayBeNewer, mcpErrorText } from "../../../src/domain/tools/McpError.ts"

const transport = (description: string, cause?: unknown) => new TransportError({ description, cause })
const http = (status: number, description?: string) =>
  new HttpError({ status, ...(description === undefined ? {} : { description }) })
const protocol = (code?: number) => new ProtocolError({ description: "no", ...(code === undefined ? {} : { code }) })

describe("the words for an error of a server", () => {
  const cases: ReadonlyArray<readonly [reason: McpClientError["reason"], words: RegExp, mayBeNewer: boolean]> = [
    [
      transport("Cannot spawn x", new Error("ENOENT")),
      /^prog cannot be started, there is no such program or folder$/,
      false
    ],
    [transport("Cannot spawn x", new Error("EACCES\nno")), /^prog cannot be started: EACCES no$/, false],
    [transport("process exited (3)"), /^its process ended with status 3$/, false],
    [transport("process exited"), /^its process ended$/, false],
    [transport("server closed stdout"), /^its process ended or closed its output$/, false],
    [transport("fetch failed"), /^prog cannot be reached$/, false],
    [http(401), /^it refused with HTTP 401; see the headers in its settings$/, false],
    [http(403), /^it refused with HTTP 403; /, false],
    [http(404), /^it answered with HTTP 404$/, true],
    [http(500, "a\nb"), /^it answered with HTTP 500: a b$/, false],
    [protocol(), /^it does not speak MCP as expected \(/, false],
    [protocol(-32_600), /^it answered with an error: /, true],
    [new TimeoutError({ operation: "x" }), /^it did not answer in time$/, false]
  ]
  for (const [reason, words, newer] of cases) {
    it(words.source, () => {
      const error = new McpClientError({ reason })
      assert.match(mcpErrorText(error, "prog"), words)
      assert.strictEqual(mayBeNewer(error), newer)
    })
  }
})
