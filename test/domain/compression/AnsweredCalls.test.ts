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

  it("a command in the background is a check that passed or failed when its output says so", () => {
    const evidence = (exit: number) =>
      runSync(
        gatherEvidence(
          entriesOf([
            user(text("test it")),
            model(call("Bash", { command: "npm test", run_in_background: true }, "c1")),
            user(response("Bash", { output: "Command running in background with ID: b1" }, "c1")),
            model(call("BashOutput", { bash_id: "b1" }, "c2")),
            user(response("BashOutput", { output: `<exit_code>${exit}</exit_code>\nAssertionError: no` }, "c2"))
          ])
        )
      )
    assert.deepStrictEqual(
      [...evidence(0).checks.values()].map(({ ok }) => ok),
      [true]
    )
    assert.deepStrictEqual(
      [...evidence(1).checks.values()].map(({ ok }) => ok),
      [false]
    )
  })
})
