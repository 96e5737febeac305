import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseSkill } from "../../../src/domain/agent/Skill.ts"

describe("a SKILL.md", () => {
  it("has a name, a description and instructions", () => {
    const file =
      "\uFEFF---\r\nname: pdf/tables\r\ndescription: >\r\n  Reads\r\n  tables.\r\nlicense: MIT\r\n---\r\n\r\n# How\r\n\r\n---\r\nDo.\r\n"
    assert.deepStrictEqual(
      parseSkill(file),
      Result.succeed({
        name: "pdf-tables",
        description: "Reads tables.",
        instructions: "# How\n\n---\nDo."
      })
    )
  })

  it.each([
    ["no front matter", "# Skill\n"],
    ["front matter that does not end", "---\nname: x\n"],
    ["no YAML", "---\nname: [x\n---\n"],
    ["no description", "---\nname: x\n---\n"],
    ["a name that is none", "---\nname: 1\ndescription: y\n---\n"],
    ["blank texts", "---\nname: ' '\ndescription: y\n---\n"],
    ["nothing", ""]
  ] as const)("is refused with %s, in one line that says what was expected", (_, file) => {
    const read = parseSkill(file)
    assert.match(Result.isFailure(read) ? read.failure : "read", /^[^\n]*expected[^\n]*$/)
  })

  it("is refused with the line of the file that is no YAML", () => {
    const read = parseSkill("---\nname: x\nname: y\n---\n")
    assert.match(Result.isFailure(read) ? read.failure : "read", /'name' at line 3$/)
  })
})
