import { assert, describe, it } from "@effect/vitest"
import { changedNames } from "../../../../src/domain/compression/evidence/ChangedNames.ts"
import { call, type Part } from "../../../../src/domain/content/Content.ts"
import { corpus } from "../../../support/corpus.ts"

const edit = (before: string, after: string, path = "a"): Part =>
  call("Edit", { file_path: path, old_string: before, new_string: after }, "1")

describe("names that an edit changed", () => {
  const edits =
    corpus<readonly [language: string, before: string, after: string, names: ReadonlyArray<string>]>("edits-with-names")
  it.each(edits)("%s", (language, before, after, names) => {
    const changed = changedNames(edit(before, after, language.startsWith("Markdown") ? "docs/a.md" : "a"))
    assert.deepStrictEqual(
      names.filter((name) => !changed.includes(name)),
      [],
      changed.join(" ")
    )
  })

  const words: ReadonlyArray<readonly [language: string, text: string]> = [
    [
      "calls and control flow are no definitions",
      "if (ready) {\n  while (next()) {\n  for (const x of y) {\n  return parse(x)\n  switch (y) {"
    ],
    ["prose", "The class of problems that a function of this type has, let us see, const = 1."],
    ["a comment", "// function old() was here\n# class of its own\n/* def x */"]
  ]
  it.each(words)("%s", (_, text) => {
    assert.deepStrictEqual(
      changedNames(edit("", text)).filter((name) =>
        /^\+(?:if|while|for|return|switch|was|here|of|problems|old|that|its own)/.test(name)
      ),
      []
    )
  })

  it("reads every form of an edit", () => {
    const forms: ReadonlyArray<Record<string, unknown>> = [
      { old_string: "a", new_string: "function made() {}" },
      { old_str: "a", new_str: "function made() {}" },
      { oldText: "a", newText: "function made() {}" },
      { content: "function made() {}" },
      { file_text: "function made() {}" },
      { new_source: "function made() {}" },
      {
        edits: [
          { old_string: "a", new_string: "b" },
          { old_string: "a", new_string: "function made() {}" }
        ]
      }
    ]
    for (const args of forms) assert.include(changedNames(call("edit", args, "1")), "+made", JSON.stringify(args))
  })

  it("arguments that are no edit have none", () => {
    for (const args of [undefined, null, [], "x", { edits: "x" }, { edits: [null, 1] }, { old_string: 1 }]) {
      assert.deepStrictEqual(changedNames({ functionCall: { name: "edit", args } } as Part), [])
    }
  })

  it("a giant text is read up to a bound", () => {
    const giant = Array.from({ length: 200_000 }, (_, n) => `function name${n}() {}`).join("\n")
    assert.isAtMost(changedNames(edit("", giant)).length, 20)
    // Blanks and brackets without end, over which a careless expression would go back and forth.
    for (const text of [
      " ".repeat(60_000),
      `export ${"async ".repeat(10_000)}`,
      "(".repeat(60_000),
      "const x:".repeat(8_000)
    ]) {
      assert.isAtMost(changedNames(edit("", text)).length, 20)
    }
  })
})
