import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { HttpError, McpClientError, ProtocolError, TimeoutError, TransportError } from "effect/ai/McpClientError"
import { mayBeNewer, mcpErrorText, mcpProblemText, type McpProblem } from "../../../src/domain/tools/McpError.ts"

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

describe("a problem of a server", () => {
  const left = (fault: Extract<McpProblem, { _tag: "LeftOut" }>["fault"]): McpProblem => ({
    _tag: "LeftOut",
    server: "s_1",
    fault
  })
  const lastWords = "; its last words: w_1"
  it.each<readonly [problem: McpProblem, facts: string]>([
    [left({ _tag: "NoAnswer", timeout: Duration.seconds(90), lastWords }), "s_1 1m 30s w_1"],
    [left({ _tag: "VariablesNotSet", names: ["A_1", "B_2"] }), "s_1 $A_1 $B_2"],
    [left({ _tag: "NoProgram", command: "c_1" }), "s_1 c_1"],
    [
      left({ _tag: "Failed", error: new McpClientError({ reason: http(401) }), where: "p_1", lastWords }),
      "s_1 401 w_1"
    ],
    [{ _tag: "ToolsLeftOut", server: "s_1", offered: 130, left: 30, maxTools: 100 }, "s_1 130 30 100"],
    [{ _tag: "ToolsUnreadable", server: "s_1", names: ["t_1", "t_2"] }, "s_1 t_1 t_2"]
  ])("names %j", (problem, facts) => {
    const text = mcpProblemText(problem)
    assert.strictEqual((text.match(/\$?\w*\d\w*/g) ?? []).join(" "), facts)
    assert.notInclude(text, "\n")
  })
})
