import { Effect, FileSystem, Layer, Path } from "effect"
import * as FileMemory from "../../../../src/layers/memory/FileMemory.ts"
import * as MemoryFileSystem from "../../../../src/layers/testing/MemoryFileSystem.ts"
import { saveMemory } from "../../../../src/services/tools/builtin/SaveMemory.ts"
import { ToolFailure } from "../../../../src/services/tools/Tool.ts"
import type { UserQuestion } from "../../../../src/services/tools/UserPrompt.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const here = (files: Readonly<Record<string, string>> = {}, isTrusted = true) =>
  FileMemory.layer({
    home: "/home/.palimpsest",
    geminiHome: "/home/.gemini",
    extensions: [],
    root: "/home/work",
    isTrusted: () => Effect.succeed(isTrusted)
  }).pipe(
    Layer.provideMerge(MemoryFileSystem.layer({ "/home/work/.git/HEAD": "", ...files })),
    Layer.provideMerge(Path.layer)
  )

const textOf = (file: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.readFileString(file))

const section = "## Gemini Added Memories\n- tabs, not spaces\n"

/** A person who answers so, and what they were asked. */
const answering = (answer: string) => {
  const asked: Array<UserQuestion> = []
  const ask = (question: UserQuestion) => Effect.sync(() => (asked.push(question), answer))
  return { ask, asked }
}

describe("save_memory", () => {
  it.effect("shows the user the file's change, and writes that", here(), function* () {
    const tool = yield* saveMemory()
    const { question, result, title } = yield* callTool(tool, { fact: "tabs, not spaces", scope: "project" })
    const diff = `--- a/GEMINI.md\n+++ b/GEMINI.md\n@@ -0,0 +1,2 @@\n+${section.trim().replace("\n", "\n+")}\n`
    assert.strictEqual(title, "save_memory (project) tabs, not spaces")
    assert.deepStrictEqual(question, {
      detail: `GEMINI.md\n${diff}`,
      touches: ["/home/work/GEMINI.md"],
      grants: ["memory:/home/work/GEMINI.md"],
      covers: "facts in GEMINI.md"
    })
    assert.deepStrictEqual(result.value, {
      success: true,
      message: "Remembered in GEMINI.md; it holds from the next request on."
    })
    assert.deepStrictEqual(result.display, { _tag: "Diff", file: "GEMINI.md", diff, added: 2, removed: 0 })
    assert.strictEqual(yield* textOf("/home/work/GEMINI.md"), section)
    const again = yield* callTool(tool, { fact: "tabs, not spaces", scope: "project" })
    assert.isUndefined(again.question)
    assert.deepInclude(again.result.value, { message: "GEMINI.md says so already." })
  })

  it.effect("a global fact has its own grant", here(), function* () {
    const { question } = yield* callTool(yield* saveMemory(), { fact: "tabs, not spaces", scope: "global" })
    assert.deepStrictEqual(question?.grants, ["memory:global"])
    assert.strictEqual(yield* textOf("/home/.palimpsest/GEMINI.md"), section)
  })

  const answers: ReadonlyArray<readonly [answer: string, file: string]> = [
    ["This project", "/home/work/GEMINI.md"],
    ["project", "/home/work/GEMINI.md"],
    ["Everywhere", "/home/.palimpsest/GEMINI.md"],
    [" Global ", "/home/.palimpsest/GEMINI.md"]
  ]
  it.effect.each(answers)("without a scope asks the user, once: %s", here(), function* ([answer, file]) {
    const { ask, asked } = answering(answer)
    yield* callTool(yield* saveMemory({ ask }), { fact: "tabs, not spaces" })
    assert.lengthOf(asked, 1)
    assert.deepStrictEqual(
      asked[0]?.choices.map(({ label }) => label),
      ["This project", "Everywhere"]
    )
    assert.strictEqual(yield* textOf(file), section)
  })

  const refusals: ReadonlyArray<readonly [what: string, args: unknown, answer: string | undefined, why: RegExp]> = [
    [
      "nobody can be asked",
      { fact: "x" },
      undefined,
      /^invalid_tool_params: no user is available .* scope "project" or "global"/
    ],
    ["the user chose neither", { fact: "x" }, "no idea", /^memory_tool_execution_error: .* the answer was: no idea$/],
    ["a blank fact", { fact: " \n", scope: "global" }, undefined, /^invalid_tool_params: .*say the fact/],
    ["no fact", { scope: "global" }, undefined, /^invalid_tool_params: .*fact/],
    ["another scope", { fact: "x", scope: "team" }, undefined, /^invalid_tool_params: .*scope/],
    ["a key that it does not know", { fact: "x", scope: "global", to: "y" }, undefined, /^invalid_tool_params: .*to/],
    [
      "a fact of dashes alone",
      { fact: "- ", scope: "global" },
      undefined,
      /^memory_tool_execution_error: the fact is empty/
    ]
  ]
  it.effect.each(refusals)("writes nothing: %s", here(), function* ([, args, answer, why]) {
    const tool = yield* saveMemory(answer === undefined ? {} : answering(answer))
    assert.match((yield* failureOf(tool, args)) ?? "", why)
    const fs = yield* FileSystem.FileSystem
    assert.deepStrictEqual(yield* fs.readDirectory("/home"), ["work"])
    assert.deepStrictEqual(yield* fs.readDirectory("/home/work"), [".git"])
  })

  it.effect("writes nothing into an untrusted folder", here({}, false), function* () {
    const tool = yield* saveMemory()
    assert.match((yield* failureOf(tool, { fact: "x", scope: "project" })) ?? "", /work is not trusted/)
    assert.isUndefined(yield* failureOf(tool, { fact: "x", scope: "global" }))
  })

  it.effect("keeps the file's changes meanwhile; writes nothing when no terminal could choose", here(), function* () {
    const fs = yield* FileSystem.FileSystem
    const change = () => Effect.orDie(fs.writeFileString("/home/work/GEMINI.md", "other"))
    assert.isUndefined(yield* failureOf(yield* saveMemory(), { fact: "x", scope: "project" }, change))
    const both = yield* textOf("/home/work/GEMINI.md")
    assert.strictEqual(both, "other\n\n## Gemini Added Memories\n- x\n")
    const nobody = { ask: () => Effect.fail(new ToolFailure({ message: "they left" })) }
    assert.match((yield* failureOf(yield* saveMemory(nobody), { fact: "x" })) ?? "", /they left/)
    assert.strictEqual(yield* textOf("/home/work/GEMINI.md"), both)
  })
})
