import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem } from "effect"
import {
  type Correction,
  EditCorrector,
  type FailedEdit
} from "../../../../src/services/tools/builtin/EditCorrector.ts"
import { replace } from "../../../../src/services/tools/builtin/Replace.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { assert, layer } from "../../../support/vitest.ts"
import { workspace } from "./editing.ts"

const readme = "# Title\n\nWelcome to the Gemini CLI!\n\nMore.\n"

/** The tool in a workspace with these files. */
const replacing = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>) {
  const here = yield* workspace(files)
  return { ...here, tool: yield* Effect.provide(replace, here.layer) }
})

/** The tool with somebody who mends edits, and what they were asked. */
const corrected = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string>>,
  answer: Correction | undefined
) {
  const asked: Array<FailedEdit> = []
  const here = yield* workspace(files)
  const tool = yield* replace.pipe(
    Effect.provide(here.layer),
    Effect.provideService(EditCorrector, {
      correct: (edit) =>
        Effect.sync(() => {
          asked.push(edit)
          return answer
        })
    })
  )
  return { ...here, tool, asked }
})

layer(NodeServices.layer)("replace", (it) => {
  it.effect("returns the diff and the file's name; the question shows that diff", function* () {
    const { mode, place, read, tool } = yield* replacing({ "README.md": readme })
    const before = yield* mode("README.md")
    const { question, result } = yield* callTool(tool, {
      file_path: "README.md",
      instruction: "Say how good it is.",
      old_string: "Welcome to the Gemini CLI!",
      new_string: "Welcome to the awesome Gemini CLI!"
    })
    const diff =
      "--- a/README.md\n+++ b/README.md\n@@ -1,5 +1,5 @@\n # Title\n \n-Welcome to the Gemini CLI!\n+Welcome to the awesome Gemini CLI!\n \n More.\n"
    assert.deepStrictEqual(result.value, { fileDiff: diff, fileName: "README.md" })
    assert.deepStrictEqual(question, {
      detail: diff,
      touches: [place("README.md")],
      grants: [`edit in ${place(".")}`],
      covers: "edits of files in this folder"
    })
    assert.strictEqual(yield* read("README.md"), readme.replace("the Gemini", "the awesome Gemini"))
    assert.strictEqual(yield* mode("README.md"), before)
  })

  it.effect("an empty old_string creates a missing file, and only that", function* () {
    const { read, tool } = yield* replacing({ "a.txt": "" })
    yield* callTool(tool, { file_path: "new/b.txt", old_string: "", new_string: "hello\n" })
    assert.strictEqual(yield* read("new/b.txt"), "hello\n")
    const failure = yield* failureOf(tool, { file_path: "a.txt", old_string: "", new_string: "x" })
    assert.match(failure ?? "", /^attempt_to_create_existing_file: a\.txt already exists/)
  })

  it.effect("each failure has its name, says what to do, and leaves the file unchanged", function* () {
    const files = { "a.txt": "one\ntwo\none\n", "b.bin": "x\0y" }
    const { read, tool } = yield* replacing(files)
    const failures: ReadonlyArray<readonly [Record<string, unknown>, RegExp]> = [
      [{ file_path: "none.txt", old_string: "a", new_string: "b" }, /^file_not_found: there is no file none\.txt/],
      [
        { file_path: "a.txt", old_string: "three", new_string: "b" },
        /^edit_no_occurrence_found: .*read the file again/
      ],
      [
        { file_path: "a.txt", old_string: "one", new_string: "b" },
        /^edit_expected_occurrence_mismatch: old_string occurs in 2 places of a\.txt, not in 1, .*allow_multiple/
      ],
      [
        { file_path: "a.txt", old_string: "one", new_string: "b", expected_replacements: 3 },
        /^edit_expected_occurrence_mismatch: .* 2 places of a\.txt, not in 3.*expected_replacements/
      ],
      [{ file_path: "a.txt", old_string: "two", new_string: "two" }, /^edit_no_change: /],
      [{ file_path: "b.bin", old_string: "x", new_string: "y" }, /^read_content_failure: /],
      [{ file_path: "a.txt", old_string: "two" }, /^invalid_tool_params: .*new_string/],
      [
        { file_path: "a.txt", old_string: "two", new_string: "x", expected_replacements: 0 },
        /^invalid_tool_params: .*expected_replacements/
      ]
    ]
    for (const [args, expected] of failures) {
      assert.match((yield* failureOf(tool, args)) ?? "no failure", expected)
    }
    for (const [name, text] of Object.entries(files)) assert.strictEqual(yield* read(name), text)
  })

  it.effect("replaces all places with allow_multiple, and a number with expected_replacements", function* () {
    const { read, tool } = yield* replacing({ "a.txt": "one\ntwo\none\n" })
    yield* callTool(tool, { file_path: "a.txt", old_string: "one", new_string: "1", expected_replacements: 2 })
    assert.strictEqual(yield* read("a.txt"), "1\ntwo\n1\n")
    yield* callTool(tool, { file_path: "a.txt", old_string: "1", new_string: "one", allow_multiple: true })
    assert.strictEqual(yield* read("a.txt"), "one\ntwo\none\n")
  })

  it.effect("keeps CR LF and bytes that are not UTF-8", function* () {
    const fs = yield* FileSystem.FileSystem
    const { place, tool } = yield* replacing({})
    yield* fs.writeFile(place("a.txt"), Uint8Array.from([0xff, 0x0d, 0x0a, 0x61, 0x0d, 0x0a]))
    yield* callTool(tool, { file_path: "a.txt", old_string: "a\n", new_string: "b\nc\n" })
    assert.deepStrictEqual(
      [...(yield* fs.readFile(place("a.txt")))],
      [0xff, 0x0d, 0x0a, 0x62, 0x0d, 0x0a, 0x63, 0x0d, 0x0a]
    )
  })

  it.effect("each of many concurrent edits of one file is written, or told to read it again", function* () {
    const { read, tool } = yield* replacing({ "a.txt": Array.from({ length: 20 }, (_, n) => `<${n}>\n`).join("") })
    const failures = yield* Effect.forEach(
      Array.from({ length: 20 }, (_, n) => n),
      (n) => failureOf(tool, { file_path: "a.txt", old_string: `<${n}>`, new_string: `done ${n};` }),
      { concurrency: "unbounded" }
    )
    const text = yield* read("a.txt")
    for (const [n, failure] of failures.entries()) {
      assert.strictEqual(text.includes(`done ${n};`), failure === undefined)
      if (failure !== undefined) assert.match(failure, /^file_changed/)
    }
    assert.isTrue(failures.some((failure) => failure === undefined))
  })

  it.effect("a corrected edit is applied, and shown for approval as corrected", function* () {
    const { asked, read, tool } = yield* corrected(
      { "a.txt": "let colour = 1\n" },
      { search: "colour = 1", replace: "colour = 2", noChangesRequired: false, explanation: "" }
    )
    const { question } = yield* callTool(tool, {
      file_path: "a.txt",
      old_string: "hue = 1",
      new_string: "hue = 2",
      instruction: "Another colour."
    })
    assert.include(question?.detail, "+let colour = 2")
    assert.strictEqual(yield* read("a.txt"), "let colour = 2\n")
    assert.strictEqual(asked.length, 1)
    assert.deepStrictEqual(asked[0]?.instruction, "Another colour.")
    assert.match(asked[0]?.problem ?? "", /was not found/)
  })

  it.effect("a corrected edit without a match reports the first failure; an unnecessary one says so", function* () {
    const edit = { file_path: "a.txt", old_string: "old", new_string: "new" }
    const wrong = { search: "nowhere", replace: "x", noChangesRequired: false, explanation: "" }
    const useless = yield* corrected({ "a.txt": "text\n" }, wrong)
    assert.match((yield* failureOf(useless.tool, edit)) ?? "", /^edit_no_occurrence_found/)
    const nothing = yield* corrected({ "a.txt": "text\n" }, undefined)
    assert.match((yield* failureOf(nothing.tool, edit)) ?? "", /^edit_no_occurrence_found/)
    const done = yield* corrected(
      { "a.txt": "new\n" },
      { search: "", replace: "", noChangesRequired: true, explanation: "It says new already." }
    )
    assert.match((yield* failureOf(done.tool, edit)) ?? "", /^edit_no_change_llm_judgement: .*It says new already\./)
    assert.strictEqual(yield* done.read("a.txt"), "new\n")
  })

  it.effect("a correct edit, or one without a change, is not corrected", function* () {
    const { asked, tool } = yield* corrected({ "a.txt": "one\n" }, undefined)
    yield* callTool(tool, { file_path: "a.txt", old_string: "one", new_string: "1" })
    yield* failureOf(tool, { file_path: "a.txt", old_string: "1", new_string: "1" })
    assert.deepStrictEqual(asked, [])
  })
})
