import { assert, describe, it } from "@effect/vitest"
import {
  afterEvent,
  answerLength,
  nothingYet,
  type RemoteEvent,
  remoteResult,
  type RemoteStage,
  stageOf,
  thoughtOf
} from "../../../src/domain/agent/RemoteProgress.ts"

const ids = { contextId: "c", taskId: "t" }
const says = (text: string): RemoteEvent => ({ ...ids, _tag: "Message", text })
const status = (stage: RemoteStage, text = ""): RemoteEvent => ({ ...ids, _tag: "Status", stage, text })
const artifact = (text: string, more: Partial<Extract<RemoteEvent, { _tag: "Artifact" }>> = {}): RemoteEvent => ({
  ...ids,
  _tag: "Artifact",
  id: "a",
  title: "",
  text,
  append: false,
  ...more
})
const task = (
  stage: RemoteStage,
  text: string,
  ...artifacts: ReadonlyArray<readonly [string, string]>
): RemoteEvent => ({
  ...ids,
  _tag: "Task",
  stage,
  text,
  artifacts
})

describe("the result of a remote agent", () => {
  const cases: ReadonlyArray<
    readonly [name: string, events: ReadonlyArray<RemoteEvent>, reason: string, text: string, failure?: string]
  > = [
    ["a message is the answer", [says("hello")], "GOAL", "hello"],
    ["messages are joined", [says("one"), says("two")], "GOAL", "one\ntwo"],
    ["a message without words is none", [says(""), says("two")], "GOAL", "two"],
    ["nothing said is still done", [status("GOAL")], "GOAL", "(it finished without an answer)"],
    [
      "the last status is the answer",
      [status("working", "I look"), status("GOAL", "all is well")],
      "GOAL",
      "all is well"
    ],
    ["artifacts are the answer, not the status", [artifact("A"), status("GOAL", "done")], "GOAL", "A"],
    ["an artifact grows", [artifact("A"), artifact("B", { append: true }), status("GOAL")], "GOAL", "AB"],
    ["an artifact grows from nothing", [artifact("B", { append: true }), status("GOAL")], "GOAL", "B"],
    ["an artifact is replaced", [artifact("A"), artifact("B"), status("GOAL")], "GOAL", "B"],
    ["artifacts are parted", [artifact("A"), artifact("B", { id: "b" }), status("GOAL")], "GOAL", "A\n\nB"],
    ["a task brings its artifacts", [artifact("A"), task("GOAL", "", ["b", "B"], ["a", "C"])], "GOAL", "C\n\nB"],
    [
      "a question is passed on",
      [artifact("A"), status("asking", "which one?")],
      "GOAL",
      "A\n\nThe agent asks a question before it can continue:\nwhich one?\n\n(Your next message to it is taken as the answer.)"
    ],
    [
      "a question without words",
      [status("asking")],
      "GOAL",
      "The agent asks a question before it can continue:\n(it gave no question)\n\n(Your next message to it is taken as the answer.)"
    ],
    [
      "a permission is an error",
      [status("locked", "log in")],
      "ERROR",
      "The agent needs a permission that must be granted elsewhere: log in\n\nPartial result:\nlog in"
    ],
    ["a cancelled task", [status("ABORTED")], "ABORTED", "The agent cancelled the task."],
    ["a failed task", [status("ERROR", "no")], "ERROR", "The agent failed: no"],
    [
      "a failed task with artifacts",
      [artifact("A"), status("ERROR", "no")],
      "ERROR",
      "The agent failed: no\n\nPartial result:\nA"
    ],
    [
      "a connection that broke off",
      [status("working", "half")],
      "ERROR",
      "it broke off\n\nPartial result:\nhalf",
      "it broke off"
    ]
  ]
  for (const [name, events, reason, text, failure] of cases) {
    it(name, () =>
      assert.deepStrictEqual(remoteResult(events.reduce(afterEvent, nothingYet), failure), { reason, text })
    )
  }
})

it("counts the messages, and keeps the task that was named last", () => {
  const events = [status("working", "look"), artifact("AB"), { ...says(""), taskId: "" }]
  const progress = events.reduce(afterEvent, nothingYet)
  assert.strictEqual(progress.turns, 2)
  assert.strictEqual(progress.taskId, "t")
  assert.strictEqual(answerLength([status("working", "look"), artifact("AB")].reduce(afterEvent, nothingYet)), 6)
})

it("shows work in progress, but not the end of a task", () =>
  assert.deepStrictEqual(
    [
      status("working", "look"),
      status("GOAL", "done"),
      task("working", "look"),
      says("hello"),
      artifact("A"),
      artifact("A", { title: "a.md" }),
      artifact("A", { append: true })
    ].map(thoughtOf),
    ["look", "", "", "", "writes an artifact", "writes a.md", ""]
  ))

it("knows the states that wait or end; all others work", () =>
  assert.deepStrictEqual(
    ["COMPLETED", "FAILED", "REJECTED", "CANCELED", "INPUT_REQUIRED", "AUTH_REQUIRED", "WORKING", "LATER"].map(
      (state) => stageOf(`TASK_STATE_${state}`)
    ),
    ["GOAL", "ERROR", "ERROR", "ABORTED", "asking", "locked", "working", "working"]
  ))
