import { Effect, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { glob } from "../../../../src/services/tools/builtin/Glob.ts"
import { answerOf, refusalOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"
import { inMemory } from "../../../support/workspaces.ts"

const files = {
  "src/main.ts": "",
  "src/Main.test.ts": "",
  "src/.hidden/deep.ts": "",
  "app/[id]/page.tsx": "",
  "node_modules/x/index.ts": "",
  ".git/hook.ts": "",
  ".gitignore": "dist/\n",
  ".geminiignore": "private.ts\n",
  "dist/out.ts": "",
  "private.ts": ""
}

const found = (args: object) =>
  Effect.map(
    Effect.flatMap(glob, (tool) => answerOf(tool, args)),
    (answer) => answer.split("\n").slice(1)
  )

describe("glob", () => {
  const cases: ReadonlyArray<readonly [rule: string, args: object, found: ReadonlyArray<string>]> = [
    [
      "finds hidden files too, and not what is ignored",
      { pattern: "**/*.ts" },
      ["/work/src/.hidden/deep.ts", "/work/src/Main.test.ts", "/work/src/main.ts"]
    ],
    ["case does not count", { pattern: "SRC/MAIN*" }, ["/work/src/Main.test.ts", "/work/src/main.ts"]],
    ["case matters on request", { pattern: "src/main*", case_sensitive: true }, ["/work/src/main.ts"]],
    ["looks in a folder", { pattern: "*.ts", path: "src" }, ["/work/src/Main.test.ts", "/work/src/main.ts"]],
    ["takes an absolute pattern", { pattern: "/work/src/m*.ts", case_sensitive: true }, ["/work/src/main.ts"]],
    ["takes a name that looks like a pattern", { pattern: "app/[id]/page.tsx" }, ["/work/app/[id]/page.tsx"]],
    ["takes alternatives", { pattern: "{dist,app}/**" }, ["/work/app/[id]/page.tsx"]],
    [
      "takes ignored files when asked for",
      { pattern: "{dist,.}/*.ts", respect_git_ignore: false, respect_gemini_ignore: false },
      ["/work/dist/out.ts", "/work/private.ts"]
    ],
    [
      "finds what hardly anybody means in its own folder",
      { pattern: "**", dir_path: "node_modules" },
      ["/work/node_modules/x/index.ts"]
    ]
  ]
  it.effect.each(cases)("%s", ([, args, expected]) =>
    Effect.map(found(args), (given) => assert.deepStrictEqual(given, expected)).pipe(Effect.provide(inMemory(files)))
  )

  it.effect("answers as in recorded conversations", inMemory(files), function* () {
    const tool = yield* glob
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "**/main.ts" }),
      'Found 1 file(s) matching "**/main.ts" within /work, sorted by modification time (newest first):\n/work/src/main.ts'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "*.rs" }),
      'No files found matching pattern "*.rs" within /work (4 ignored)'
    )
  })

  it.effect("lists files changed within a day first, newest first; the rest by name", inMemory({}), function* () {
    const fs = yield* FileSystem.FileSystem
    yield* TestClock.adjust("10 days")
    const day = 86_400
    const changed = { "a.txt": 2, "b.txt": 0.5, "c.txt": 1, "d.txt": 0.1, "e.txt": 0.999, "f.txt": 9 }
    for (const [name, ago] of Object.entries(changed)) {
      yield* fs.writeFileString(`/work/${name}`, "")
      yield* fs.utimes(`/work/${name}`, 0, (10 - ago) * day)
    }
    assert.deepStrictEqual(
      (yield* found({ pattern: "*.txt" })).map((file) => file.slice(6, 7)),
      ["d", "b", "e", "a", "c", "f"]
    )
  })

  const refused: ReadonlyArray<readonly [rule: string, args: unknown, said: string]> = [
    ["a pattern that leads upwards", { pattern: "../*" }, "the pattern ../* leads upwards"],
    ["a folder that is not there", { pattern: "*", dir_path: "none" }, "there is no folder none"],
    ["a file for a folder", { pattern: "*", dir_path: "private.ts" }, "there is no folder private.ts"],
    ["a folder outside", { pattern: "*", dir_path: "/etc" }, "/etc is outside the workspace"],
    ["an empty pattern", { pattern: "" }, "glob was called wrongly: pattern:"],
    ["no pattern", {}, "glob was called wrongly: pattern:"]
  ]
  it.effect.each(refused)("%s is refused in one sentence", inMemory(files), function* ([, args, said]) {
    const message = yield* refusalOf(yield* glob, args)
    assert.isTrue(message.startsWith(said), message)
    assert.notInclude(message, "\n")
  })
})
