import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdir, mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { mentions, paths } from "../../../src/cli/chat/PathCompletion.ts"

const folder = Effect.promise(async () => {
  const made = await mkdtemp(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "paths-"))
  await mkdir(path.join(made, "src", "cli"), { recursive: true })
  for (const name of ["src/a.ts", "src/b.ts", "script.sh", ".hidden"]) await writeFile(path.join(made, name), "")
  return made
})

layer(NodeServices.layer)("paths", (it) => {
  const cases: ReadonlyArray<readonly [rule: string, fragment: string, candidates: ReadonlyArray<string>]> = [
    ["files and folders, no hidden ones", "", ["script.sh", "src/"]],
    ["by their beginning", "sr", ["src/"]],
    ["within a folder", "src/", ["src/a.ts", "src/b.ts", "src/cli/"]],
    ["hidden ones when asked for", ".", [".hidden"]],
    ["up and down", "src/../src/a", ["src/../src/a.ts"]],
    ["nothing in what is no folder", "none/", []]
  ]
  for (const [rule, fragment, candidates] of cases) {
    it.effect(rule, () =>
      Effect.gen(function* () {
        const from = yield* folder
        assert.deepStrictEqual(yield* paths(fragment, from), { candidates, replaced: fragment })
        assert.deepStrictEqual(yield* mentions(`look at @${fragment}`, from), { candidates, replaced: fragment })
        assert.deepStrictEqual(yield* mentions(`↵@${fragment}`, from), { candidates, replaced: fragment })
      })
    )
  }

  it.effect("an address is no mention", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* mentions("me@src", yield* folder), { candidates: [], replaced: "" })
    })
  )
})
