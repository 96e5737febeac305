import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { composeSnapshot } from "../../../../src/domain/compression/handover/Extractive.ts"
import { isIndex } from "../../../../src/domain/compression/handover/NameIndex.ts"
import { clippedStatements } from "../../../../src/domain/compression/handover/WrittenSections.ts"
import {
  emptySnapshot,
  isSnapshot,
  parseSnapshot,
  type SectionName,
  sectionNames,
  type Snapshot
} from "../../../../src/domain/compression/Snapshot.ts"
import { call, type Content, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import { runSync } from "../../../../src/domain/text/SlicedWork.ts"
import { estimateText } from "../../../../src/domain/tokens/Tokens.ts"
import { entriesOf, entryOf } from "../../../support/entries.ts"

const talk: ReadonlyArray<Content> = [
  user(text("Make the parser in src/Parse.ts faster. Never touch src/Old.ts.")),
  model(call("write_file", { file_path: "src/Parse.ts", content: "export const parse = 1" }, "a")),
  user(response("write_file", { output: "ok" }, "a")),
  model(call("run_shell_command", { command: "npm test" }, "b")),
  user(response("run_shell_command", { error: "Exit code 1\n2 tests failed in Parse.test.ts" }, "b")),
  model(text("The header test fails because the offset is wrong. Next I will fix the offset in parseHeader."))
]
const entries = entriesOf(talk)
const evidence = runSync(gatherEvidence(entries))
const options = { budget: 1_200, kept: [] }

const written = (sections: Partial<Record<SectionName, string>>): Snapshot => {
  const bodies = Object.entries(sections).map(([name, body]) => `<${name}>\n${body}\n</${name}>`)
  const snapshot = parseSnapshot(`<state_snapshot>\n${bodies.join("\n")}\n</state_snapshot>`)
  return isSnapshot(snapshot) ? snapshot : assert.fail(snapshot)
}

/** Returns the sections with what a model wrote, with room for all of it, but for the index. */
const merged = (said = emptySnapshot): Snapshot => {
  const { snapshot } = runSync(composeSnapshot(evidence, { budget: 8_000, kept: [] }, said))
  return { ...snapshot, key_knowledge: snapshot.key_knowledge.filter((item) => !isIndex(item)) }
}
const own = merged()
const textsOf = (snapshot: Snapshot, name: SectionName) => snapshot[name].map((item) => item.text).join("\n")

describe("what a model wrote, merged into what code wrote", () => {
  it("judgement comes first in its sections, and all that code wrote stays", () => {
    const said = written({
      overall_goal: "- intent: large files open without a pause",
      key_knowledge: "- decision (offset): counted in bytes, since columns were ambiguous",
      task_state: "- half done (offset): the header branch lacks its case"
    })
    const both = merged(said)
    for (const name of ["overall_goal", "key_knowledge", "task_state"] as const) {
      assert.strictEqual(both[name][0], said[name][0])
      assert.deepStrictEqual(both[name].slice(1), own[name])
    }
  })

  it("the model's next step replaces the agent's last stated intention", () => {
    const both = merged(written({ task_state: "- next: run the header test alone" }))
    assert.deepStrictEqual(
      both.task_state.filter(({ key }) => key === "next").map((item) => item.text),
      ["- next: run the header test alone"]
    )
  })

  const overruled: ReadonlyArray<readonly [string, Partial<Record<SectionName, string>>, string]> = [
    ["the state of a file", { artifact_trail: "- src/Parse.ts: deleted (1 change; e2)" }, "deleted"],
    ["the state of a file in another section", { key_knowledge: "- src/Parse.ts: deleted (1 change; e2)" }, "deleted"],
    ["the state of an unknown file", { file_system_state: "- src/New.ts: created (1 change; e2)" }, "New.ts"],
    ["a remark in place of a file's state", { artifact_trail: "- src/Parse.ts: was reverted" }, "reverted"],
    ["a check that failed", { task_state: "- done: all tests pass" }, "all tests pass"],
    ["the last state of a check", { task_state: "- tests: green" }, "green"]
  ]
  for (const [what, sections, lie] of overruled) {
    it(`${what} comes from the log`, () => {
      const both = merged(written(sections))
      for (const name of sectionNames) assert.notInclude(textsOf(both, name), lie)
    })
  }

  it("a request about a check is not a claim", () => {
    const both = merged(written({ task_state: "- open: the tests must pass again" }))
    assert.include(textsOf(both, "task_state"), "must pass again")
  })

  it("nothing is said twice: not in other words, not as a copy of what code wrote", () => {
    const both = merged(
      written({
        task_state: "- state: the header test fails because the offset is wrong",
        recent_actions: textsOf(own, "recent_actions"),
        artifact_trail: textsOf(own, "artifact_trail"),
        key_knowledge: textsOf(own, "key_knowledge")
      })
    )
    for (const name of sectionNames) assert.deepStrictEqual(both[name], own[name], name)
  })

  it("a statement of an earlier snapshot gives way to the model's newer one with its label", () => {
    const earlier = entryOf(
      1,
      user(
        text(
          "<state_snapshot><key_knowledge>\n- decision (offset): counted in columns\n- lesson (lexer): it needs two passes\n</key_knowledge></state_snapshot>"
        )
      ),
      { author: "summary" }
    )
    const later = runSync(gatherEvidence([earlier, ...talk.map((content, index) => entryOf(index + 2, content))]))
    const said = written({ key_knowledge: "- decision (offset): counted in bytes" })
    const { text: shown } = runSync(composeSnapshot(later, options, said))
    assert.include(shown, "counted in bytes")
    assert.notInclude(shown, "counted in columns")
    assert.include(shown, "it needs two passes")
  })

  it("a long statement is cut, so that others have room; the user's words are not", () => {
    const said = written({
      overall_goal: `- intent: ${"more and more words ".repeat(200)}`,
      key_knowledge: `- decision (offset):\n${Array.from({ length: 90 }, (_, n) => `    - reason ${n} of it`).join("\n")}`,
      task_state: "- half done (offset): the header branch lacks its case"
    })
    const { text: shown } = runSync(composeSnapshot(evidence, options, said))
    for (const part of ["- intent: more", "reason 0 of it", "lacks its case", "Never touch src/Old.ts."])
      assert.include(shown, part)
    assert.notInclude(shown, "reason 89 of it")
    const quote = written({ overall_goal: `<user_words entry="e1">${"long ".repeat(900)}</user_words>` })
    assert.deepStrictEqual(clippedStatements(quote, 10), quote)
  })

  it("the model's words take no more than their share, and the budget holds", () => {
    const said = written({
      key_knowledge: Array.from({ length: 400 }, (_, n) => `- lesson (case ${n}): it took step ${n} to see it`).join(
        "\n"
      )
    })
    const { snapshot, text: shown } = runSync(composeSnapshot(evidence, options, said))
    assert.isAtMost(estimateText(shown), options.budget)
    const lessons = snapshot.key_knowledge.filter((item) => item.text.startsWith("- lesson (case"))
    assert.isAtMost(estimateText(lessons.map((item) => item.text).join("\n")), options.budget * 0.25)
    assert.include(shown, "Never touch src/Old.ts.")
  })
})
