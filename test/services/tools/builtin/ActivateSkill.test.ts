import { Effect, Layer } from "effect"
import { activateSkill } from "../../../../src/services/tools/builtin/ActivateSkill.ts"
import { type ActiveSkill, Skills } from "../../../../src/services/tools/Skills.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const having = (...skills: ReadonlyArray<ActiveSkill>) =>
  Layer.succeed(Skills, {
    all: Effect.succeed({ skills, problems: [] }),
    load: (name) => Effect.succeed(skills.find((skill) => skill.name === name))
  })

const tables: ActiveSkill = {
  name: "tables",
  description: "Reads tables.",
  folder: "/w/.gemini/skills/tables",
  instructions: "Look at the lines first.",
  files: ["scripts/run.sh"],
  hasMore: false
}

describe("activate_skill", () => {
  it.effect("returns the instructions and the files, and keeps them from compression", function* () {
    const tool = yield* Effect.provide(activateSkill, having(tables, { ...tables, name: "more", hasMore: true }))
    const { question, result } = yield* callTool(tool, { name: " tables " })
    assert.deepStrictEqual(result.value, {
      skill: "tables",
      instructions: "Look at the lines first.",
      folder: "/w/.gemini/skills/tables",
      files: ["scripts/run.sh"]
    })
    assert.strictEqual(question, undefined)
    assert.isTrue(tool.isNeverMasked)
    const more = yield* callTool(tool, { name: "more" })
    assert.deepInclude(more.result.value, { files: ["scripts/run.sh", "… and more"] })
  })

  it.effect("lists the available skills with a short description each", function* () {
    const long = { ...tables, name: "long", description: "x".repeat(5_000) }
    const tool = yield* Effect.provide(activateSkill, having(tables, long))
    assert.include(tool.description, "\n- tables: Reads tables.\n- long: xxx")
    assert.isBelow(tool.description.length, 1_000)
    assert.include((yield* Effect.provide(activateSkill, having())).description, "There are no skills")
  })

  it.effect("limits the list for a folder full of skills", function* () {
    const many = Array.from({ length: 3_000 }, (_, i) => ({ ...tables, name: `s${i}${"n".repeat(2_000)}` }))
    const tool = yield* Effect.provide(activateSkill, having(...many))
    assert.isBelow(tool.description.length, 50_000)
    assert.isTrue(tool.description.endsWith("\n… and 2900 more, by their names"))
    assert.strictEqual(tool.description.split("\n- ").length, 101)
    const hundred = yield* Effect.provide(activateSkill, having(...many.slice(0, 100)))
    assert.isTrue(hundred.description.endsWith(`- s99${"n".repeat(97)}: Reads tables.`))
    assert.isBelow((yield* failureOf(tool, { name: "x" }))?.length ?? 0, 20_000)
    assert.deepInclude((yield* callTool(tool, { name: many[2_999]?.name })).result.value, {
      skill: many[2_999]?.name
    })
  })

  it.effect("lists the existing names for an unknown one", function* () {
    const tool = yield* Effect.provide(activateSkill, having(tables, { ...tables, name: "other" }))
    assert.strictEqual(
      yield* failureOf(tool, { name: "x" }),
      "skill_not_found: there is no skill x; the skills are: tables, other"
    )
    const none = yield* Effect.provide(activateSkill, having())
    assert.match((yield* failureOf(none, { name: "x" })) ?? "", /there are no others here/)
  })
})
