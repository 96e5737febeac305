import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, PlatformError } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { defaults } from "../../../../src/domain/settings/Settings.ts"
import * as FileWorkspace from "../../../../src/layers/workspace/FileWorkspace.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import { searchFiles } from "../../../../src/services/tools/builtin/SearchFiles.ts"
import { FileLimits } from "../../../../src/services/workspace/FileLimits.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { answerOf, refusalOf } from "../../../support/callTool.ts"
import { needs } from "../../../support/machine.ts"
import { assert, describe, it, layer } from "../../../support/vitest.ts"
import { inMemory, onDisk, temporaryFolder, writeFiles } from "../../../support/workspaces.ts"

/** A machine on which nothing is installed. */
const nothingInstalled = Layer.succeed(
  ChildProcessSpawner.ChildProcessSpawner,
  ChildProcessSpawner.make(() =>
    Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" }))
  )
)

const around = Layer.succeed(Environment, { variables: Effect.succeed({ PATH: process.env["PATH"] ?? "" }) })

const byHand = searchFiles.pipe(Effect.provide(Layer.merge(around, nothingInstalled)))
const byRipgrep = searchFiles.pipe(Effect.provide(around))
const besideRipgrep = needs("ripgrep")

const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)

const files = {
  "README.md": "Welcome to the Gemini CLI!\nsecond\n",
  "src/a.ts": "const one = 1\nconst two = one + 1\n// ONE\n",
  "src/b.js": "one()\n",
  "src/crlf.txt": "one\r\ntwo\r\n",
  "src/bom.txt": bytes(0xef, 0xbb, 0xbf, 0x6f, 0x6e, 0x65, 0x0a),
  "src/wide.txt": `${"x".repeat(3_000)} one\n`,
  "src/utf16.txt": bytes(0xff, 0xfe, 0x6f, 0, 0x6e, 0, 0x65, 0, 0x0a, 0),
  "binary.bin": bytes(0x6f, 0x6e, 0x65, 0, 0x0a),
  "late.bin": `one\n${"x".repeat(70_000)}\n`,
  "latin1.txt": bytes(0x6f, 0x6e, 0x65, 0xe9, 0x0a),
  "latin1/b.txt": bytes(0x4d, 0xfc, 0x6c, 0x6c, 0x65, 0x72, 0x0a),
  "progress.txt": "10 %\r20 %\r100 % ready\n",
  "empty.txt": "",
  "last.txt": "no end one",
  ".hidden/one.txt": "one\n",
  ".git/one.txt": "one\n",
  ".gitignore": "*.log\nignored/\n",
  "a.log": "one\n",
  "ignored/b.txt": "one\n",
  "node_modules/x/index.js": "one\n",
  ".geminiignore": "secret.txt\n",
  "secret.txt": "one\n",
  "brackets.txt": 'f(x) { return [1] } // a.b "quoted" 1/2 \\d\nfoo{2}\nfoofoo\n',
  "unicode.txt": "Straße naïve 語 😀 É\nword word\n"
}

const here = (answer: string) => answer.replace(/\n---\n?/g, "\n").split("\n")

/** Patterns of every kind, and arguments. Both engines must say the same. */
const searches: ReadonlyArray<object> = [
  { pattern: "one" },
  { pattern: "(?i)ONE", case_sensitive: true },
  { pattern: "[\\d&]" },
  { pattern: "[^\\w\\s]{2}" },
  { pattern: "foo{2}" },
  { pattern: "foo{2}", fixed_strings: true },
  { pattern: '\\"quoted\\"' },
  { pattern: "(?<word>word) word" },
  { pattern: "語|😀" },
  { pattern: "\\u8a9e" },
  { pattern: "\\p{Lu}", case_sensitive: true },
  { pattern: "one", max_matches_per_file: 1 },
  { pattern: "one", total_max_matches: 2 },
  { pattern: "one", include_pattern: "*.ts" },
  { pattern: "one", include_pattern: "src/*.{ts,js}" },
  { pattern: "one", dir_path: "src" },
  { pattern: "one", dir_path: "ignored" },
  { pattern: "one", dir_path: "node_modules/x" },
  { pattern: "one", no_ignore: true },
  { pattern: "one", names_only: true },
  { pattern: "one", exclude_pattern: "const" },
  { pattern: "^(const|no)", exclude_pattern: "ONE$|one = " },
  { pattern: "two", context: 1 },
  { pattern: "-one" },
  { pattern: "M.ller" },
  { pattern: "M\\Wller" },
  { pattern: "M[^a]ller$" },
  { pattern: "M\ufffdller" },
  { pattern: "10 %.*ready" },
  { pattern: "%\\s+20" },
  { pattern: "^two$" },
  { pattern: "one\\n" },
  { pattern: "x*", dir_path: "src/a.ts" },
  { pattern: "nowhere to be found" }
]

describe("search_file_content", () => {
  it.effect("answers as in recorded conversations", inMemory(files), function* () {
    const tool = yield* byHand
    assert.strictEqual(tool.name, "search_file_content")
    assert.deepStrictEqual(tool.aliases, ["grep_search"])
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "Gemini CLI" }),
      'Found 1 match(es) for pattern "Gemini CLI" in path ".":\n---\nFile: README.md\nL1: Welcome to the Gemini CLI!\n---'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "two", path: "src", include: "*.ts" }),
      'Found 1 match(es) for pattern "two" in path "src" (filter: "*.ts"):\n---\nFile: src/a.ts\nL2: const two = one + 1\n---'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "nowhere" }),
      'No matches found for pattern "nowhere" in path ".".'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "const", names_only: true }),
      'Found 1 file(s) with matches for pattern "const" in path ".":\nsrc/a.ts'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "two", dir_path: "src/a.ts", context: 1 }),
      'Found 1 match(es) for pattern "two" in path "src/a.ts":\n---\nFile: src/a.ts\nL1- const one = 1\nL2: const two = one + 1\nL3- // ONE\n---'
    )
    assert.strictEqual(
      yield* answerOf(tool, { pattern: "const", total_max_matches: 1 }),
      'Found 1 match(es) for pattern "const" in path "." (only the first 1 are shown):\n---\nFile: src/a.ts\nL1: const one = 1\n---'
    )
  })

  it.effect("leaves out binary, ignored and rarely useful files", inMemory(files), function* () {
    const names = yield* answerOf(yield* byHand, { pattern: "one", names_only: true })
    assert.deepStrictEqual(names.split("\n").slice(1), [
      ".hidden/one.txt",
      "last.txt",
      "late.bin",
      "latin1.txt",
      "src/a.ts",
      "src/b.js",
      "src/bom.txt",
      "src/crlf.txt",
      "src/utf16.txt",
      "src/wide.txt"
    ])
  })

  for (const [git, own, expected] of [
    [true, true, []],
    [false, false, ["a.log", "ignored/b.txt", "secret.txt"]]
  ] as const) {
    for (const [engine, tool] of [
      ["its own engine", byHand],
      ["ripgrep, if installed", byRipgrep]
    ] as const) {
      const rules = `those of git ${git ? "count" : "do not"}, the workspace's own ${own ? "count" : "do not"}`
      it.effect(`applies ignore rules by settings, with ${engine}: ${rules}`, onDisk(files), function* () {
        const limits = { ...defaults.files, respectGitIgnore: git, respectGeminiIgnore: own }
        const made = yield* Effect.provideService(tool, FileLimits, limits)
        const names = (yield* answerOf(made, { pattern: "one", names_only: true })).split("\n")
        assert.deepStrictEqual(
          names.filter((name) => ["a.log", "ignored/b.txt", "secret.txt"].includes(name)),
          [...expected]
        )
        assert.notInclude(names, "node_modules/x/index.js")
      })
    }
  }

  it.effect("shows 2,000 characters of a long line, and searches all of it", inMemory(files), function* () {
    const answer = yield* answerOf(yield* byHand, { pattern: "one", dir_path: "src/wide.txt" })
    assert.strictEqual(here(answer)[2], `L1: ${"x".repeat(2_000)}... [truncated]`)
  })

  it.effect(
    "keeps line numbers across chunks, also within a line",
    inMemory({
      "big.txt": Array.from({ length: 100_000 }, (_, i) => `${"é".repeat(12)} line ${i + 1}\n`).join("")
    }),
    function* () {
      const answer = yield* answerOf(yield* byHand, { pattern: "line 39999$|line 100000$" })
      assert.deepStrictEqual(here(answer).slice(2, 4), [
        `L39999: ${"é".repeat(12)} line 39999`,
        `L100000: ${"é".repeat(12)} line 100000`
      ])
    }
  )

  const refused: ReadonlyArray<readonly [rule: string, args: unknown, said: string]> = [
    [
      "an invalid pattern",
      { pattern: "a(b" },
      "pattern is not a regular expression that can be used: missing closing )"
    ],
    [
      "a look-ahead",
      { pattern: "foo(?!foo)" },
      "pattern is not a regular expression that can be used: look-ahead and look-behind are not supported"
    ],
    ["a folder that is not there", { pattern: "a", dir_path: "none" }, "there is no file or folder none"],
    ["a folder outside", { pattern: "a", dir_path: ".." }, ".. is outside the workspace"],
    ["an empty pattern", { pattern: "" }, "search_file_content was called wrongly: pattern:"]
  ]
  it.effect.each(refused)("%s is refused in one sentence", inMemory(files), function* ([, args, said]) {
    const message = yield* refusalOf(yield* byHand, args)
    assert.isTrue(message.startsWith(said), message)
    assert.notInclude(message, "\n")
  })

  it.effect(
    "looks for a pattern that could be read in too many ways",
    inMemory({ "a.txt": `${"a".repeat(200_000)}!\n` }),
    function* () {
      const tool = yield* byHand
      assert.include(yield* answerOf(tool, { pattern: "^(a+)+$" }), "No matches found")
      assert.include(yield* answerOf(tool, { pattern: "(a|aa)+!", exclude_pattern: "(a*)*b" }), "Found 1 match")
    }
  )

  besideRipgrep("beside ripgrep", () => {
    it.effect(
      "shows only the beginning of one huge line with ripgrep, for any number of matches",
      onDisk({ "long.json": `one${"x".repeat(17 * 1_024 * 1_024)}`, "short.json": "x\n" }),
      function* () {
        const answer = yield* answerOf(yield* byRipgrep, { pattern: "x" })
        assert.strictEqual(
          answer,
          `Found 2 match(es) for pattern "x" in path ".":\n---\nFile: long.json\nL1: one${"x".repeat(1_997)}... [truncated]\n---\nFile: short.json\nL1: x\n---`
        )
      }
    )

    const cut = " [... omitted end of long line]"
    const oddly: Readonly<Record<string, string | Uint8Array>> = {
      "a\nb: 1:.txt": "one\n",
      'c: binary file matches (found "\\0" byte around offset 5)\nd': "one\n",
      "c-é.txt": `one${cut}\n`,
      "e.bin": `one\n${"x\n".repeat(50_000)}one\n\0`,
      'f\n: WARNING: stopped searching binary file after match (found "\\0" byte around offset 5)\n/g/h.bin': `one\n${"x\n".repeat(50_000)}\0`,
      "i.txt": `${"語".repeat(1_999)} one\r\n${"語".repeat(2_700)} one\r\n${"é".repeat(4_090)} one${cut}\none`
    }
    for (const args of [{}, { dir_path: "e.bin" }, { dir_path: "i.txt" }, { total_max_matches: 2 }]) {
      it.effect(
        `reads names that imitate ripgrep's output, binary files and wide lines alike: ${JSON.stringify(args)}`,
        onDisk(oddly),
        function* () {
          const answer = yield* answerOf(yield* byHand, { pattern: "one", ...args })
          assert.strictEqual(yield* answerOf(yield* byRipgrep, { pattern: "one", ...args }), answer)
        }
      )
    }
  })

  it.effect("neither searches nor waits for a named pipe", onDisk(files), function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const { root } = yield* Workspace
    yield* spawner.exitCode(ChildProcess.make("mkfifo", [`${root}/pipe`]))
    for (const make of [byHand, byRipgrep]) {
      const tool = yield* make
      assert.include(yield* answerOf(tool, { pattern: "one", names_only: true }), "last.txt")
      assert.strictEqual(
        yield* refusalOf(tool, { pattern: "one", dir_path: "pipe" }),
        "pipe is a named pipe; only regular files can be read"
      )
    }
  })
})

besideRipgrep("beside ripgrep", () =>
  layer(onDisk(files))("ripgrep and the search without it", (it) => {
    for (const args of searches) {
      it.effect(`both engines agree on ${JSON.stringify(args)}`, function* () {
        assert.strictEqual(yield* answerOf(yield* byRipgrep, args), yield* answerOf(yield* byHand, args))
      })
    }
  })
)

layer(
  onDisk(
    Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [
        `f${String(i).padStart(3, "0")}.txt`,
        "match\n".repeat(i % 3 === 0 ? 60 : 1)
      ])
    )
  )
)("a pattern that matches nearly everything", (it) => {
  const args = { pattern: "m", total_max_matches: 400, dir_path: "." }
  it.effect("returns the first matches by file", function* () {
    const answer = yield* answerOf(yield* byHand, args)
    assert.isTrue(answer.startsWith('Found 400 match(es) for pattern "m" in path "." (only the first 400 are shown):'))
    assert.deepStrictEqual(
      answer
        .split("\n")
        .filter((line) => line.startsWith("File: "))
        .slice(0, 3),
      ["File: f000.txt", "File: f001.txt", "File: f002.txt"]
    )
  })
  besideRipgrep("beside ripgrep", () => {
    it.effect("does the same with ripgrep", function* () {
      assert.strictEqual(yield* answerOf(yield* byRipgrep, args), yield* answerOf(yield* byHand, args))
    })
  })
})

describe("a workspace of two folders", () => {
  const folders = Effect.gen(function* () {
    const top = yield* temporaryFolder
    yield* writeFiles(top, {
      "work/a.txt": "one\n",
      "work/left-out.txt": "one\n",
      "work/.geminiignore": "left-out.txt\n",
      "added/b.txt": "one\n",
      "added/left-out.txt": "one\n"
    })
    return top
  })
  it.effect.each([
    ["with ripgrep", byRipgrep],
    ["without", byHand]
  ] as const)("is searched in both folders, each by its own rules, %s", NodeServices.layer, function* ([, make]) {
    const top = yield* folders
    const layer = FileWorkspace.layer({ root: `${top}/work`, added: [`${top}/added`] })
    const answer = yield* Effect.provide(
      Effect.flatMap(make, (tool) => answerOf(tool, { pattern: "one", names_only: true })),
      layer
    )
    assert.strictEqual(
      answer,
      `Found 3 file(s) with matches for pattern "one" in the 2 folders of the workspace:\na.txt\n${top}/added/b.txt\n${top}/added/left-out.txt`
    )
  })
})
