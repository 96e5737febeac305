import { assert, describe, it } from "@effect/vitest"
import type { HookOutput } from "../../../src/domain/hooks/Hook.ts"
import { answerOf } from "../../../src/domain/hooks/HookAnswer.ts"

const run = { stdout: "", stderr: "", code: 0, isCut: false }
const json = { decision: "block", reason: "no", hookSpecificOutput: { additionalContext: "x" } } as const

describe("answerOf", () => {
  it.each<readonly [string, Partial<typeof run>, HookOutput | undefined]>([
    ["an object is decoded", { stdout: JSON.stringify(json) }, json],
    ["whatever the exit code", { stdout: JSON.stringify(json), code: 2 }, json],
    ["also written as JSON twice", { stdout: JSON.stringify(JSON.stringify(json)) }, json],
    ["blanks around it are nothing", { stdout: `\n ${JSON.stringify(json)}\n` }, json],
    ["an object on stderr counts where stdout is blank", { stdout: " \n", stderr: JSON.stringify(json) }, json],
    [
      "stdout goes before stderr",
      { stdout: "out", stderr: JSON.stringify(json) },
      { decision: "allow", systemMessage: "out" }
    ],
    ["exit 0: a text is a message", { stdout: "fine\n" }, { decision: "allow", systemMessage: "fine" }],
    ["exit 1: a text is a warning", { stderr: "hm", code: 1 }, { decision: "allow", systemMessage: "Warning: hm" }],
    ["exit 2: a text is why not", { stderr: "no", code: 2 }, { decision: "deny", reason: "no" }],
    ["exit 3 and all others too", { stdout: "no", code: 3 }, { decision: "deny", reason: "no" }],
    ["a quoted text that is no JSON is a text", { stdout: '"no"' }, { decision: "allow", systemMessage: '"no"' }],
    ["JSON that is no object is a text", { stderr: "42", code: 2 }, { decision: "deny", reason: "42" }],
    ["a list is a text", { stdout: "[1]", code: 2 }, { decision: "deny", reason: "[1]" }],
    ["null fields are absent", { stdout: '{"decision":null,"reason":"r"}' }, { reason: "r" }],
    ["unknown fields are nothing", { stdout: '{"decision":"ask","more":1}' }, { decision: "ask" }],
    ["an empty object has no effect", { stdout: "{}" }, {}],
    ["nothing is no output", {}, undefined],
    ["nothing with exit 2 is no output either", { code: 2 }, undefined]
  ])("%s", (_rule, given, output) => {
    assert.deepStrictEqual(answerOf({ ...run, ...given }).output, output)
  })

  it.each<readonly [string, Partial<typeof run>, RegExp | undefined]>([
    ["a text", { stdout: "fine" }, undefined],
    ["a refusal", { stderr: "no", code: 2 }, undefined],
    ["a warning", { stderr: "hm", code: 1 }, undefined],
    ["silence", {}, undefined],
    ["a failure without output", { code: 1 }, /^exit code 1 without output$/],
    ["a killed program", { code: 137 }, /^exit code 137 \(SIGKILL\)$/],
    ["a killed program with output", { stdout: "half", code: 137 }, /^exit code 137 \(SIGKILL\)$/],
    ["incomplete JSON", { stdout: '{"decision": "bl' }, /incomplete JSON/],
    ["too much", { stdout: "x".repeat(99), isCut: true }, /^its output exceeded the limit and was cut$/],
    [
      "fields of the wrong form",
      { stdout: '{"continue":"no","decision":"DENY","reason":1}' },
      /continue, decision, reason$/
    ]
  ])("errors are reported in one line: %s", (_rule, given, expected) => {
    const { problem } = answerOf({ ...run, ...given })
    if (expected === undefined) assert.isUndefined(problem)
    else assert.match(problem ?? "", expected)
    assert.notInclude(problem ?? "", "\n")
  })

  it("a text is bounded, and only exit code 0 is a success", () => {
    const { output, succeeded } = answerOf({ ...run, stdout: "x".repeat(100_000), code: 1 })
    assert.isBelow(output?.systemMessage?.length ?? Infinity, 9_000)
    assert.isFalse(succeeded)
    assert.isTrue(answerOf(run).succeeded)
  })
})
