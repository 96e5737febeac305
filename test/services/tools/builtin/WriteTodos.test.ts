import { writeTodos } from "../../../../src/services/tools/builtin/WriteTodos.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const todos = [
  { description: "Read the spec", status: "completed" },
  { description: "Write it", status: "in_progress" },
  { description: "Test it", status: "pending" },
  { description: "Ship it", status: "blocked" },
  { description: "Rest", status: "cancelled" }
]

describe("write_todos", () => {
  it.effect("returns the whole list, numbered, with statuses", function* () {
    const { question, result, title } = yield* callTool(writeTodos, { todos })
    assert.strictEqual(
      result.value,
      "The list is now:\n1. [completed] Read the spec\n2. [in_progress] Write it\n3. [pending] Test it\n4. [blocked] Ship it\n5. [cancelled] Rest"
    )
    assert.deepStrictEqual({ ...result.display }, { _tag: "Todos", todos })
    assert.strictEqual(title, "write_todos 5 steps")
    assert.strictEqual(question, undefined)
  })

  it.effect("accepts an empty list", function* () {
    assert.strictEqual((yield* callTool(writeTodos, { todos: [] })).result.value, "The list is empty now.")
  })

  it.effect.each([
    [
      "at most one step is in progress",
      [...todos, { description: "Both", status: "in_progress" }],
      /^invalid_tool_params: 2 steps are in_progress/
    ],
    [
      "each step says what it is",
      [{ description: " ", status: "pending" }],
      /^invalid_tool_params: step 1 has no desc/
    ],
    ["a status is one of five", [{ description: "x", status: "done" }], /^invalid_tool_params: .*todos\.0\.status/],
    ["a list is a list", "x", /^invalid_tool_params: .*todos/]
  ] as const)("%s", function* ([, wrong, expected]) {
    assert.match((yield* failureOf(writeTodos, { todos: wrong })) ?? "no failure", expected)
  })
})
