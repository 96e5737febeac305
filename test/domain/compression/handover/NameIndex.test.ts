import { assert, describe, it } from "@effect/vitest"
import { gatherEvidence } from "../../../../src/domain/compression/evidence/Evidence.ts"
import { indexItems, rankedNames, namedPaths } from "../../../../src/domain/compression/handover/NameIndex.ts"
import { call, type Content, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import * as Work from "../../../../src/domain/text/SlicedWork.ts"
import { entriesOf, entryOf } from "../../../support/entries.ts"

const ranked = (...contents: ReadonlyArray<Content>) =>
  Work.runSync(rankedNames(Work.runSync(gatherEvidence(entriesOf(contents))), () => false))

const ran = (tool: string, args: unknown, output: string): ReadonlyArray<Content> => [
  model(call(tool, args, output)),
  user(response(tool, { output }, output))
]

describe("the rank of names", () => {
  it("is higher for what a call aimed at than for what was written as often", () => {
    const names = ranked(
      ...ran("grep", { pattern: "parseInput" }, "src/input.ts:3"),
      ...ran("write", { file: "a.ts", content: "readInput()\nparseInput()\nreadInput()\n" }, "done")
    )
    assert.isBelow(names.indexOf("parseInput"), names.indexOf("readInput"))
  })

  it("has names below a working directory with a blank in its name", () => {
    const cwd = "/Volumes/Old Disk/app"
    const shown = ran("bash", { command: `cat "${cwd}/src/input.ts"` }, `${cwd}/src/input.ts\n${cwd}: ok`)
    const names = Work.runSync(rankedNames(Work.runSync(gatherEvidence(entriesOf(shown), { cwd })), () => false, cwd))
    assert.include(names, "src/input.ts")
    assert.isEmpty(names.filter((name) => name.startsWith("Disk/")))
  })

  it("leaves out handles, and the tags of a snapshot", () => {
    const names = ranked(
      ...ran("recall", { handle: "h_37gig3b5yq" }, "key_knowledge h_onprvn5ivd parseInput readInput")
    )
    assert.include(names, "parseInput")
    assert.isEmpty(names.filter((name) => name.startsWith("h_") || name === "key_knowledge"))
  })

  it("leaves out what every program has, and what is no name", () => {
    const names = ranked(
      ...ran(
        "bash",
        { command: "sed -i 's/OldName/pkg.NewName/g' main.go" },
        "exit_code: 0 duration_ms: 12 import encoding/json; strings.TrimPrefix(x) in /Users/a/.REDACTED.txt"
      )
    )
    for (const name of [
      "encoding/json",
      "TrimPrefix",
      "cycle.Options",
      "/Users/a/.REDACTED.txt",
      "exit_code",
      "duration_ms"
    ]) {
      assert.notInclude(names, name)
    }
  })

  it("leaves out words with a slash that an output shows, unless a path has them, and placeholders", () => {
    const names = ranked(
      ...ran(
        "bash",
        { command: "git show entire/sessions" },
        "local/global main/master cli/strategy N-1 IDs 03d-%s.json\ncmd/cli/main.go-17-\tx := 1"
      ),
      ...ran("read", { path: "cmd/cli/strategy/common.go" }, "baseURL")
    )
    assert.isEmpty(names.filter((name) => /local|master|N-1|IDs|%s/.test(name)))
    for (const name of ["entire/sessions", "cli/strategy", "baseURL", "cmd/cli/main.go"]) assert.include(names, name)
  })

  it("leaves out most of many names that differ in their numbers alone, and the tags of a program's text", () => {
    const served = Array.from({ length: 99 }, (_, index) => `GET /items/${index}`).join("\n")
    const told = user(text("<turn_aborted>\nThe user stopped render_all.\n</turn_aborted>"))
    const entries = [
      entryOf(1, told, { author: "program" }),
      ...entriesOf(ran("bash", { command: "tail a.log" }, served))
    ]
    const names = Work.runSync(rankedNames(Work.runSync(gatherEvidence(entries)), () => false))
    const items = (all: ReadonlyArray<string>) => all.filter((name) => name.startsWith("/items/"))
    assert.strictEqual(items(names).length, 4)
    const wanted = ["/items/3", "/items/5", "/items/7", "/items/8", "/items/9"]
    const focused = Work.runSync(rankedNames(Work.runSync(gatherEvidence(entries)), (name) => wanted.includes(name)))
    assert.deepStrictEqual(items(focused), wanted)
    assert.include(names, "render_all")
    assert.notInclude(names, "turn_aborted")
    const namesOf = (words: string) =>
      Work.runSync(
        rankedNames(Work.runSync(gatherEvidence([entryOf(1, user(text(words)), { author: "program" })])), () => false)
      )
    assert.deepStrictEqual(namesOf('<opened_file path="src/table.ts">\n'), ["src/table.ts"])
    assert.deepStrictEqual(namesOf('<teammate-message teammate_id="back">wrote src/table.ts'), ["src/table.ts"])
  })

  it("keeps a member that is an ordinary word, and what a variable of every program has", () => {
    const names = ranked(
      ...ran("read", { file_path: "log.go" }, "if entry.Type == x { self.renderRow(entry) }"),
      user(text("go on"))
    )
    assert.includeMembers([...names], ["entry.Type", "renderRow"])
  })

  it("has some of the files that a glob found in many folders, and all that were used", () => {
    const folders = [..."abcdefghij"].map((letter) => `deps/${letter}sh`)
    const files = folders.map((folder) => `${folder}/mix.exs`)
    const names = ranked(
      ...ran("glob", { pattern: "**/mix.exs" }, files.join("\n")),
      ...files.slice(0, 3).flatMap((path) => ran("read", { path }, "defmodule"))
    )
    assert.includeMembers([...names], files.slice(0, 3))
    assert.lengthOf(
      names.filter((name) => name.startsWith("deps/")),
      3 + 4
    )
  })
})

it.each([
  ["a longer path of a file that was written", "/root/acc/system.py", []],
  ["another file of that name", "/root/old/system.py", ["/root/old/system.py"]],
  ["a shorter path of it", "system.py", []],
  ["the same in a diff", "b/acc/system.py", []],
  ["another file in a folder of one letter", "b/acc/other.py", ["b/acc/other.py"]]
])("files that were named %s", (_, shown, seen) => {
  const evidence = Work.runSync(
    gatherEvidence(
      entriesOf([
        ...ran("write_file", { file_path: "acc/system.py", content: "" }, "ok"),
        ...ran("glob", { pattern: "*" }, shown)
      ])
    )
  )
  assert.deepStrictEqual(namedPaths(evidence, [shown]), seen)
})

it("the index has the paths, those of a folder side by side, then the other names", () => {
  assert.deepStrictEqual(indexItems([]), [])
  const [item] = indexItems(["lib/a.ts", "parseInput", "x:y/z", "src/b.ts", "Parser", "lib/c.ts"])
  assert.strictEqual(item?.text, "- names:\n    lib/a.ts lib/c.ts src/b.ts\n    parseInput x:y/z Parser")
})
