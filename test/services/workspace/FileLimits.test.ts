import { Effect, FileSystem } from "effect"
import { defaults } from "../../../src/domain/settings/Settings.ts"
import { glob } from "../../../src/services/tools/builtin/Glob.ts"
import { listDirectory } from "../../../src/services/tools/builtin/ListDirectory.ts"
import { readFile } from "../../../src/services/tools/builtin/ReadFile.ts"
import { readManyFiles } from "../../../src/services/tools/builtin/ReadManyFiles.ts"
import type { Tool } from "../../../src/services/tools/Tool.ts"
import { FileLimits, type FileSettings } from "../../../src/services/workspace/FileLimits.ts"
import { Workspace } from "../../../src/services/workspace/Workspace.ts"
import { answerOf, refusalOf } from "../../support/callTool.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { inMemory, onDisk } from "../../support/workspaces.ts"

/** A tool that was made where these settings hold. */
const having = <E, R>(settings: Partial<FileSettings>, tool: Effect.Effect<Tool, E, R>) =>
  Effect.provideService(tool, FileLimits, { ...defaults.files, ...settings })

const files = {
  "long.txt": "one\ntwo\nthree\nfour\n",
  "wide.txt": "0123456789\nshort\n",
  ".git/HEAD": "ref",
  ".gitignore": "by-git.txt\n",
  ".geminiignore": "by-own.txt\n",
  "by-git.txt": "git\n",
  "by-own.txt": "own\n"
}

describe("settings for reading files", () => {
  it.effect("the default settings equal the built-in defaults", function* () {
    assert.deepStrictEqual(yield* FileLimits, defaults.files)
  })

  const cases: ReadonlyArray<
    readonly [rule: string, settings: Partial<FileSettings>, args: Record<string, unknown>, answer: string]
  > = [
    [
      "so many lines are shown at once",
      { lines: 2 },
      { file_path: "long.txt" },
      "This is only part of long.txt: lines 1-2 of 4. To read on, call read_file with start_line 3.\n\n--- CONTENT ---\none\ntwo"
    ],
    [
      "so many from the first that is asked for",
      { lines: 2 },
      { file_path: "long.txt", start_line: 2 },
      "This is only part of long.txt: lines 2-3 of 4. To read on, call read_file with start_line 4.\n\n--- CONTENT ---\ntwo\nthree"
    ],
    [
      "more where the last one is named",
      { lines: 2 },
      { file_path: "long.txt", start_line: 1, end_line: 4 },
      files["long.txt"]
    ],
    [
      "so many characters of a line are shown",
      { lineLength: 4 },
      { file_path: "wide.txt" },
      "This is only part of wide.txt: lines 1-2 of 2. Lines of more than 4 characters are cut.\n\n--- CONTENT ---\n0123... [truncated]\nshor... [truncated]\n"
    ]
  ]
  it.effect.each(cases)("read_file: %s", inMemory(files), function* ([, settings, args, answer]) {
    assert.strictEqual(yield* answerOf(yield* having(settings, readFile), args), answer)
  })

  it.effect("read_file says how many lines it shows", inMemory(files), function* () {
    assert.include((yield* having({ lines: 7 }, readFile)).description, "up to 7 lines")
    assert.include((yield* readFile).description, "up to 2000 lines")
  })

  it.effect("read_many_files shows as many of each", inMemory(files), function* () {
    const answer = yield* answerOf(yield* having({ lines: 1, lineLength: 4 }, readManyFiles), { include: ["*.txt"] })
    assert.include(answer, "lines 1-1 of 4. To read on, call read_file with start_line 2.\n\n--- CONTENT ---\none\n")
    assert.include(answer, "--- CONTENT ---\n0123... [truncated]\n")
    assert.notInclude(answer, "two")
  })

  it.effect("refuses larger files", inMemory(files), function* () {
    const said = "long.txt has 19 bytes; files of more than 18 bytes cannot be read at once"
    assert.strictEqual(yield* refusalOf(yield* having({ bytes: 18 }, readFile), { file_path: "long.txt" }), said)
    assert.strictEqual(
      yield* answerOf(yield* having({ bytes: 19 }, readFile), { file_path: "long.txt" }),
      files["long.txt"]
    )
    const many = yield* answerOf(yield* having({ bytes: 18 }, readManyFiles), { include: ["*.txt"] })
    assert.include(many, `(skipped long.txt: ${said})`)
    assert.include(many, "short")
  })

  it.effect("a limit above 20 MiB can be set, up to a maximum", onDisk({}), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    yield* fs.writeFileString(`${root}/big.txt`, "")
    yield* fs.truncate(`${root}/big.txt`, 21 * 1_048_576)
    const large = yield* having({ bytes: 21 * 1_048_576 }, readFile)
    assert.include(yield* answerOf(large, { file_path: "big.txt" }), "is binary (22020096 bytes)")
    yield* fs.truncate(`${root}/big.txt`, 300 * 1_048_576)
    const endless = yield* having({ bytes: Number.MAX_SAFE_INTEGER }, readFile)
    assert.strictEqual(
      yield* refusalOf(endless, { file_path: "big.txt" }),
      "big.txt has 300.0 MiB; files of more than 256 MiB cannot be read at once"
    )
  })
})

describe("settings for ignored files", () => {
  const tools: ReadonlyArray<
    readonly [name: string, tool: typeof glob, args: object, asked: (git: boolean, own: boolean) => object]
  > = [
    ["glob", glob, { pattern: "by-*" }, (git, own) => ({ respect_git_ignore: git, respect_gemini_ignore: own })],
    ...(
      [
        ["list_directory", listDirectory, { dir_path: "." }],
        ["read_many_files", readManyFiles, { include: ["by-*"] }]
      ] as const
    ).map(
      ([name, tool, args]) =>
        [
          name,
          tool,
          args,
          (git: boolean, own: boolean) => ({
            file_filtering_options: { respect_git_ignore: git, respect_gemini_ignore: own }
          })
        ] as const
    )
  ]
  const shown = (answer: string) => ["by-git.txt", "by-own.txt"].filter((name) => answer.includes(name))

  for (const [name, tool, args, asked] of tools) {
    for (const [git, own, expected] of [
      [true, true, []],
      [false, true, ["by-git.txt"]],
      [true, false, ["by-own.txt"]],
      [false, false, ["by-git.txt", "by-own.txt"]]
    ] as const) {
      it.effect(
        `${name}: git's rules ${git ? "apply" : "do not apply"}, the workspace's own ${own ? "apply" : "do not apply"}`,
        inMemory(files),
        function* () {
          const made = yield* having({ respectGitIgnore: git, respectGeminiIgnore: own }, tool)
          assert.deepStrictEqual(shown(yield* answerOf(made, args)), [...expected])
          // A call has the last word.
          assert.deepStrictEqual(shown(yield* answerOf(made, { ...args, ...asked(true, true) })), [])
          assert.deepStrictEqual(shown(yield* answerOf(made, { ...args, ...asked(false, false) })).length, 2)
        }
      )
    }
  }
})
