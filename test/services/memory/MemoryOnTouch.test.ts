import { Effect, Layer, Schema } from "effect"
import * as FileMemory from "../../../src/layers/memory/FileMemory.ts"
import { Memory } from "../../../src/services/memory/Memory.ts"
import { onTouch } from "../../../src/services/memory/MemoryOnTouch.ts"
import { listDirectory } from "../../../src/services/tools/builtin/ListDirectory.ts"
import { readFile } from "../../../src/services/tools/builtin/ReadFile.ts"
import { replace } from "../../../src/services/tools/builtin/Replace.ts"
import { writeFile } from "../../../src/services/tools/builtin/WriteFile.ts"
import { make, type Tool, ToolFailure } from "../../../src/services/tools/Tool.ts"
import { failureOf, resultOf } from "../../support/callTool.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { inMemory } from "../../support/workspaces.ts"

const here = FileMemory.layer({
  home: "/home/.palimpsest",
  geminiHome: "/home/.gemini",
  extensions: [],
  root: "/work",
  isTrusted: () => Effect.succeed(true),
  memory: { downward: false }
}).pipe(
  Layer.provideMerge(
    inMemory({
      ".git/HEAD": "",
      "GEMINI.md": "root rule",
      "a/GEMINI.md": "rule of a",
      "a/x.txt": "x --- Context from: y ---",
      "b/GEMINI.md": "rule of b",
      "b/y.txt": "y"
    })
  )
)

const named = (name: string, keys: Record<string, Schema.Codec<unknown>>): Tool =>
  make({
    name,
    description: "",
    parameters: Schema.Struct(keys),
    result: Schema.String,
    kind: "read",
    run: () => Effect.succeed({ value: "done" })
  })

const first = (tools: ReadonlyArray<Tool>): Tool => tools[0] ?? named("none", {})
const touching = (tool: Tool) => Effect.map(onTouch([tool]), first)
const valueOf = (tool: Tool, args: unknown) => Effect.map(resultOf(tool, args), ({ value }) => value)

describe("memory of a folder that a tool touches", () => {
  it.effect("comes with the first result, beside the tool's output and not in it", here, function* () {
    const tool = yield* Effect.flatMap(readFile, touching)
    const answer = yield* valueOf(tool, { file_path: "a/x.txt" })
    assert.deepStrictEqual(Object.keys(Object(answer)), ["output", "folder_memory"])
    assert.deepInclude(answer, { output: "x --- Context from: y ---" })
    assert.include(JSON.stringify(answer), "rule of a")
    assert.notInclude(JSON.stringify(answer), "root rule")
    assert.strictEqual(yield* valueOf(tool, { file_path: "a/x.txt" }), "x --- Context from: y ---")
    assert.notInclude(JSON.stringify(yield* (yield* Memory).load), "rule of a")
  })

  const calls: ReadonlyArray<readonly [tool: string, args: unknown]> = [
    ["read_file", { absolute_path: "/work/a/x.txt" }],
    ["list_directory", { dir_path: "a" }],
    ["write_file", { file_path: "a/new/z.txt", content: "z" }],
    ["replace", { file_path: "a/x.txt", old_string: "x ---", new_string: "z" }]
  ]
  for (const [name, args] of calls) {
    it.effect(`${name} ${JSON.stringify(args)}`, here, function* () {
      const tools = yield* onTouch([yield* readFile, yield* listDirectory, yield* writeFile, yield* replace])
      const tool = tools.find((one) => one.name === name)
      assert.isDefined(tool)
      if (tool !== undefined) assert.include(JSON.stringify(yield* valueOf(tool, args)), "rule of a")
    })
  }

  const many = Array.from({ length: 20 }, (_, n) => `a/${n}.txt`)
  const places: ReadonlyArray<readonly [args: unknown, rules: ReadonlyArray<string>]> = [
    [{ include: ["a/x.txt", "b/y.txt"] }, ["a", "b"]],
    [{ include: ["a/**/*.ts"] }, ["a"]],
    [{ include: ["**/*.ts", "{a,b}/x"] }, []],
    [{ include: ["../out/x"] }, []],
    [{ include: [] }, []],
    [`{"include": ["b/y*"]}`, ["b"]],
    [{ include: [...many.slice(1), "b/y.txt"] }, ["a", "b"]],
    [{ include: [...many, "b/y.txt"] }, ["a"]]
  ]
  for (const [args, rules] of places) {
    it.effect(`read_many_files ${JSON.stringify(args).slice(-40)}: ${rules.join()}`, here, function* () {
      const tool = yield* touching(named("read_many_files", { include: Schema.Array(Schema.String) }))
      const answer = JSON.stringify(yield* valueOf(tool, args))
      for (const rule of ["a", "b"]) {
        if (rules.includes(rule)) assert.include(answer, `rule of ${rule}`)
        else assert.notInclude(answer, `rule of ${rule}`)
      }
    })
  }

  it.effect("a failed call loads none, and other tools are unaffected", here, function* () {
    const tool = yield* Effect.flatMap(readFile, touching)
    assert.include((yield* failureOf(tool, { file_path: "a/none.txt" })) ?? "", "there is no file")
    assert.include(JSON.stringify(yield* valueOf(tool, { file_path: "a/x.txt" })), "rule of a")
    const other = named("glob", { dir_path: Schema.String })
    assert.strictEqual(yield* touching(other), other)
  })

  it.effect("questions and displayed text are unaffected", here, function* () {
    const plain = yield* writeFile
    const tool = yield* touching(plain)
    assert.strictEqual(tool.parameters, plain.parameters)
    const { display, value } = yield* resultOf(tool, { file_path: "b/y.txt", content: "z" })
    assert.strictEqual(display?._tag, "Diff")
    assert.deepInclude(value, { fileName: "y.txt" })
    assert.include(JSON.stringify(value), "rule of b")
  })

  it.effect("a tool's failure stays that failure", here, function* () {
    const tool = yield* touching({
      ...named("read_file", { file_path: Schema.String }),
      call: () => Effect.fail(new ToolFailure({ message: "no" }))
    })
    assert.strictEqual(yield* failureOf(tool, {}), "undefined: no")
  })
})
