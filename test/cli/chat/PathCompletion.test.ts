import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Schema } from "effect"
import { mkdir, writeFile } from "node:fs/promises"
import path from "node:path"
import { completeMention, completePath } from "../../../src/cli/chat/PathCompletion.ts"
import { parse } from "../../../src/domain/workspace/AtReference.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { newFolder } from "../../support/paths.ts"
import { assert, layer } from "../../support/vitest.ts"

const folder = Effect.promise(async () => {
  const made = newFolder("paths-")
  await mkdir(path.join(made, "src", "cli"), { recursive: true })
  for (const name of ["src/a.ts", "src/b.ts", "script.sh", ".hidden"]) await writeFile(path.join(made, name), "")
  return made
})

layer(NodeServices.layer)("paths", (it) => {
  const cases: ReadonlyArray<readonly [rule: string, fragment: string, candidates: ReadonlyArray<string>]> = [
    ["files and folders, no hidden ones", "", ["script.sh", "src/"]],
    ["by their beginning", "sr", ["src/"]],
    ["within a folder", "src/", ["src/a.ts", "src/b.ts", "src/cli/"]],
    ["hidden ones after a dot", ".", [".hidden"]],
    ["up and down", "src/../src/a", ["src/../src/a.ts"]],
    ["nothing in what is not a folder", "none/", []]
  ]
  it.effect.each(cases)("%s", function* ([, fragment, candidates]) {
    const from = yield* folder
    assert.deepStrictEqual(yield* completePath(fragment, from), { candidates, replaced: fragment })
    assert.deepStrictEqual(yield* completeMention(`look at @${fragment}`, from), { candidates, replaced: fragment })
    assert.deepStrictEqual(yield* completeMention(`↵@${fragment}`, from), { candidates, replaced: fragment })
  })

  it.effect(
    "are 200 at most, the first by name",
    MemoryFileSystem.layer(Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`/many/${1_000 + at}`, ""]))),
    function* () {
      const { candidates } = yield* completePath("1", "/many")
      assert.deepStrictEqual([candidates.length, candidates[0], candidates.at(-1)], [200, "1000", "1199"])
    }
  )

  it.effect("paths with the letters in their order follow", function* () {
    const all = Effect.succeed(["src/", "src/a.ts", "src/cli/main.ts", "docs/chat.md"])
    const { candidates } = yield* completeMention("look at @smai", yield* folder, all)
    assert.deepStrictEqual(candidates, ["src/cli/main.ts"])
    const many = Effect.succeed(Array.from({ length: 21 }, (_, at) => `many/${at}`))
    const found = yield* completeMention("look at @many", yield* folder, many)
    assert.deepStrictEqual([found.candidates.length, found.replaced], [20, "many"])
    const begun = yield* completeMention("look at @src", yield* folder, all)
    assert.deepStrictEqual(begun.candidates, ["src/", "src/a.ts", "src/cli/main.ts"])
  })

  /** Files of a folder with a space in its name. */
  const spaced = Effect.promise(async () => {
    const made = newFolder("paths-")
    await mkdir(path.join(made, "my docs"))
    for (const name of ["a.md", `it's "q".md`]) await writeFile(path.join(made, "my docs", name), "")
    return made
  })
  const odd: ReadonlyArray<readonly [rule: string, fragment: string, candidates: ReadonlyArray<string>]> = [
    ["behind an escaped space", "my\\ docs/a", ['"my docs/a.md"']],
    ["behind a backslash alone", "my\\", []],
    ["a folder in quotes, which stay open", "my", ['"my docs/']],
    ["in quotes that are open", '"my docs/a', ['"my docs/a.md"']],
    ["a name with quotes is escaped, whatever was typed", `"my docs/it's`, [`my\\ docs/it's\\ \\"q\\".md`]],
    ["a name with quotes further on", `my\\ docs/it's\\ \\"`, [`my\\ docs/it's\\ \\"q\\".md`]]
  ]
  it.effect.each(odd)("%s", function* ([, fragment, candidates]) {
    assert.deepStrictEqual(yield* completeMention(`see @${fragment}`, yield* spaced), {
      candidates,
      replaced: fragment
    })
  })

  it.effect.prop(
    "a completed path refers to its file and can be completed again",
    [
      Schema.NonEmptyArray(
        Schema.Literals(["a", ".", " ", "\\", '"', "'", "(", "[", ",", "é", "😀", "@", "\t", "1", "*", ":"])
      ),
      Schema.Literals(["", '"'])
    ],
    ([signs, quote]) =>
      Effect.gen(function* () {
        const name = `b${signs.join("")}`
        const fs = FileSystem.makeNoop({ readDirectory: () => Effect.succeed([name]) })
        const complete = (line: string) =>
          completeMention(line, "/work").pipe(Effect.provideService(FileSystem.FileSystem, fs))
        const { candidates } = yield* complete(`@${quote}b`)
        const [candidate = ""] = candidates
        assert.deepStrictEqual(parse(`@${candidate} now`)[0], {
          _tag: "Reference",
          raw: `@${candidate}`,
          path: name
        })
        // Quotes are closed: there is nothing left to complete.
        if (candidate.startsWith('"')) return
        assert.deepStrictEqual(yield* complete(`@${candidate}`), { candidates, replaced: candidate })
      })
  )

  it.effect("an address is not a mention", function* () {
    assert.deepStrictEqual(yield* completeMention("me@src", yield* folder), { candidates: [], replaced: "" })
  })
})
