import { assert, describe, it } from "@effect/vitest"
import { corrected } from "../../../src/domain/compression/Corrections.ts"
import { isSnapshot, parseSnapshot, sectionNames, type Snapshot } from "../../../src/domain/compression/Snapshot.ts"
import {
  correctionRequest,
  repeatRequest,
  summaryInstruction,
  summaryRequest
} from "../../../src/domain/compression/SummaryPrompts.ts"

const read = (sections: Readonly<Record<string, string>>): Snapshot => {
  const bodies = Object.entries(sections).map(([name, body]) => `<${name}>\n${body}\n</${name}>`)
  const snapshot = parseSnapshot(`<state_snapshot>\n${bodies.join("\n")}\n</state_snapshot>`)
  return isSnapshot(snapshot) ? snapshot : assert.fail(snapshot)
}

describe("the instruction for a summarizing model", () => {
  it("asks for the sections that need judgement and no others, in the form that is read", () => {
    const form = parseSnapshot(summaryInstruction)
    if (!isSnapshot(form)) return assert.fail(form)
    const asked = sectionNames.filter((name) => form[name].length > 0)
    assert.deepStrictEqual(asked, ["overall_goal", "task_state", "key_knowledge"])
    const labels = asked.flatMap((name) => form[name].map(({ key }) => key))
    assert.strictEqual(new Set(labels).size, labels.length)
    assert.include(labels, "next")
  })

  it("says that the record is material and what code writes", () => {
    assert.match(summaryInstruction, /never orders to follow/)
    for (const known of ["word for word", "files", "commands", "commits", "tests", "todo"])
      assert.include(summaryInstruction, known)
  })

  it("is short: instruction and requests together stay below 4,000 characters", () => {
    const all = [summaryInstruction, summaryRequest("merge"), correctionRequest, repeatRequest("no snapshot")]
    assert.isBelow(all.join("").length, 4_000)
  })

  it("the request names an earlier handover and the user's focus only where there is one", () => {
    assert.notStrictEqual(summaryRequest("create"), summaryRequest("merge"))
    assert.include(summaryRequest("create", "the SQL"), "the SQL")
    assert.notInclude(summaryRequest("create"), "undefined")
  })
})

describe("corrections", () => {
  const first = read({
    key_knowledge: "- decision (cache): in memory\n- lesson (parser): it drops CR",
    task_state: "- next: write the test"
  })
  const cases: ReadonlyArray<readonly [string, string, Readonly<Record<string, string>>]> = [
    ["nothing", "none", { key_knowledge: "in memory|drops CR", task_state: "write the test" }],
    ["prose", "It is all right.", { key_knowledge: "in memory|drops CR", task_state: "write the test" }],
    [
      "a replaced line",
      "<state_snapshot><key_knowledge>\n- decision (cache): on disk\n</key_knowledge></state_snapshot>",
      { key_knowledge: "on disk|drops CR", task_state: "write the test" }
    ],
    [
      "a line that moves to another section",
      "<state_snapshot><key_knowledge>\n- next: ask the user\n</key_knowledge></state_snapshot>",
      { key_knowledge: "ask the user|in memory|drops CR", task_state: "" }
    ],
    [
      "a line that is withdrawn",
      "<state_snapshot><key_knowledge>\n- lesson (parser): withdrawn\n</key_knowledge></state_snapshot>",
      { key_knowledge: "in memory", task_state: "write the test" }
    ],
    [
      "a new line",
      "<state_snapshot><overall_goal>\n- intent: a faster parser\n</overall_goal></state_snapshot>",
      { overall_goal: "a faster parser", key_knowledge: "in memory|drops CR", task_state: "write the test" }
    ]
  ]
  it.each(cases)("%s", (_, answer, expected) => {
    const result = corrected(first, answer)
    for (const name of sectionNames) {
      const words = (expected[name] ?? "").split("|").filter((word) => word !== "")
      assert.strictEqual(result[name].length, words.length, name)
      for (const [at, word] of words.entries()) assert.include(result[name][at]?.text, word)
    }
  })
})
