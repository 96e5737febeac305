import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { chosenFocus, focusChoices } from "../../../../src/domain/compression/handover/FocusQuestion.ts"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { entriesOf } from "../../../support/entries.ts"
import { extractSnapshot } from "../../../support/extractSnapshot.ts"

const todos = [
  { content: "Write the parser", status: "in_progress" },
  { content: "Find the bug", status: "completed" }
]
const talk = entriesOf([
  user(text("Make the build\ngreen.")),
  model(call("write_todos", { todos: todos.map(({ content, status }) => ({ description: content, status })) }, "c1")),
  user(response("write_todos", { output: "ok" }, "c1")),
  model(call("write_file", { file_path: "src/a.ts", content: "x" }, "c2")),
  user(response("write_file", { output: "written" }, "c2")),
  user(text("Then write the docs.")),
  model(text("Done.")),
  user(text("thanks"))
])

describe("the question what a compression keeps above all", () => {
  const choices = focusChoices(Work.runSync(gatherEvidence(talk)))
  it("offers files, open items and the latest requests", () => {
    assert.deepStrictEqual(choices, ["Write the parser", "src/a.ts", "Then write the docs.", "Make the build green."])
  })

  it.each([
    ["2", "src/a.ts"],
    ["1, 3", "Write the parser; Then write the docs."],
    ["1 -2", "Write the parser (may go: src/a.ts)"],
    ["-2 -1", "(may go: src/a.ts; Write the parser)"],
    ["-9", undefined],
    ["", undefined],
    ["0", undefined],
    ["9", undefined],
    ["src/a.ts", undefined]
  ])("is answered by numbers: %s", (typed, expected) => assert.strictEqual(chosenFocus(choices, typed), expected))

  it("lets files and items go, and no message of the user", () => {
    const snapshot = (focus: string) => Work.runSync(extractSnapshot(talk, { budget: 2_000, kept: [], focus })).text
    const gone = ["    src/a.ts (created)", "- [in_progress] Write the parser"]
    for (const line of gone) {
      assert.include(snapshot("the docs"), line)
      assert.notInclude(snapshot("the docs (may go: src/a.ts; Write the parser)"), line)
    }
    assert.include(snapshot("(may go: Then write the docs.)"), "Then write the docs.")
  })
})
