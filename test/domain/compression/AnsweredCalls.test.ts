import { assert, describe, it } from "@effect/vitest"
import { answeredCalls } from "../../../src/domain/compression/AnsweredCalls.ts"
import { gatherEvidence } from "../../../src/domain/compression/evidence/Evidence.ts"
import { shortening } from "../../../src/domain/compression/strategies/gemini/Stages.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { entriesOf } from "../../support/entries.ts"

describe("calls and their responses", () => {
  it("are paired by their order where they have no ids", () => {
    const [one, two] = [call("read_file", { file_path: "a.ts" }), call("read_file", { file_path: "b.ts" })]
    const [first, second] = [response("read_file", { output: "A" }), response("read_file", { output: "B" })]
    assert.deepStrictEqual(answeredCalls(entriesOf([user(text("go")), model(one, two), user(first, second)])), [
      { call: one, answer: first },
      { call: two, answer: second }
    ])
  })

  it("are shortened for a summary without arguments, too", () => {
    const long = user(text("x".repeat(20_000)))
    const shorter = runSync(
      shortening([long, model({ functionCall: { name: "list" }, thoughtSignature: "s".repeat(15_000) })])
    )
    assert.include(JSON.stringify(shorter), "list")
  })

  const script = "text(await tools.exec_command({ cmd: 'npm test' }))"
  const printed = (state: string, output: string) => `Script ${state}\nWall time 9.0 seconds\nOutput:\n${output}`
  it.each([
    [
      "Claude Code",
      call("Bash", { command: "npm test", run_in_background: true }, "c1"),
      "Command running in background with ID: b1",
      call("BashOutput", { bash_id: "b1" }, "c2"),
      (exit: number) => `<exit_code>${exit}</exit_code>\nAssertionError: no`
    ],
    [
      "Codex",
      call("exec_command", { cmd: "npm test" }, "c1"),
      "Wall time: 9 seconds\nProcess running with session ID 7\nOutput:\n",
      call("write_stdin", { session_id: 7, chars: "" }, "c2"),
      (exit: number) => `Wall time: 9 seconds\nProcess exited with code ${exit}\nOutput:\nno`
    ],
    [
      "a script of Codex",
      call("exec", { input: script }, "c1"),
      printed("running with cell ID 7", ""),
      call("wait", { cell_id: "7" }, "c2"),
      (exit: number) => printed("completed", exit === 0 ? "2 passed" : "1 failed")
    ]
  ] as const)(
    "a command of %s in the background passed or failed as its output says",
    (_, starts, running, asks, ended) => {
      const okAfter = (exit: number) => {
        const evidence = runSync(
          gatherEvidence(
            entriesOf([
              user(text("test it")),
              model(starts),
              user(response("tool", { output: running }, "c1")),
              model(asks),
              user(response("tool", { output: ended(exit) }, "c2"))
            ])
          )
        )
        return [...evidence.checks.values()].map(({ ok }) => ok)
      }
      assert.deepStrictEqual([okAfter(0), okAfter(1)], [[true], [false]])
    }
  )
})
