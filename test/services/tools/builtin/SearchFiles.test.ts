import { Effect, FileSystem, Layer } from "effect"
import type { ChildProcess } from "effect/process"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import { searchFiles } from "../../../../src/services/tools/builtin/SearchFiles.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { answerOf } from "../../../support/callTool.ts"
import * as Processes from "../../../support/processes.ts"
import { assert, describe, it } from "../../../support/vitest.ts"
import { inMemory } from "../../../support/workspaces.ts"

const environment = (variables: Record<string, string>) =>
  Layer.succeed(Environment, { variables: Effect.succeed(variables) })

/** The answer of a machine with this ripgrep, if any, in a workspace of these files, and what ripgrep was started with. */
const searched = (
  files: Readonly<Record<string, string>>,
  args: object,
  play?: (command: ChildProcess.StandardCommand) => Processes.Played
) => {
  const started: Array<ReadonlyArray<string>> = []
  const processes = Processes.layer((command) => {
    assert.deepStrictEqual(
      [command.command, command.options.cwd, command.options.env],
      ["/bin/rg", "/work", { PATH: "/bin", PLAIN: "1" }]
    )
    started.push(command.args.map(String))
    return play?.(command)
  })
  return Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (play !== undefined) yield* fs.makeDirectory("/bin")
    if (play !== undefined) yield* fs.writeFileString("/bin/rg", "", { mode: 0o755 })
    return { answer: yield* answerOf(yield* searchFiles, args), started }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(inMemory(files), processes, environment({ PATH: "/bin", PLAIN: "1", MY_API_KEY: "secret-1" }))
    )
  )
}

/** Ripgrep without ignore rules: the files that it lists. */
const ripgrep =
  (files: Readonly<Record<string, string>>) =>
  ({ args: words }: ChildProcess.StandardCommand): Processes.Played => {
    const args = words.map(String)
    const pattern = args.find((arg) => arg.startsWith("--regexp="))?.slice("--regexp=".length) ?? ""
    const place = (args.at(-1) ?? "").replace(/^\.\//, "")
    const expression = new RegExp(pattern, args.includes("--ignore-case") ? "im" : "m")
    const out = Object.entries(files).flatMap(([name, content]) =>
      !name.startsWith(".git/") &&
      (place === "" || name === place || name.startsWith(`${place}/`)) &&
      expression.test(content)
        ? [`${name}\0`]
        : []
    )
    return { out: out.join(""), ends: out.length === 0 ? 1 : 0 }
  }

const files = {
  "z.txt": "one\ntwo\nOne and one\n",
  "src/a.ts": "const one = 1\nconst two = one + 1\nx",
  "src/deep/b.ts": "// one\r\n// two\r\n",
  "src/c.js": "one",
  "log/d.txt": "one\n",
  "own/e.txt": "one\n",
  "node_modules/f.txt": "one\n",
  ".git/HEAD": "one\n",
  ".gitignore": "log/\n",
  "src/.gitignore": "/d.js\n",
  "src/d.js": "one",
  ".geminiignore": "own/\n"
}

describe("a search with ripgrep", () => {
  const common = (...more: ReadonlyArray<string>) => [
    "--files-with-matches --null --no-config --hidden --no-mmap --no-messages",
    ...more
  ]
  const rules = [
    "--ignore-file=/work/.geminiignore --glob=!**/.git --glob=!node_modules --glob=!bower_components --glob=!.svn --glob=!.hg"
  ]
  const rows: ReadonlyArray<readonly [args: object, started: ReadonlyArray<string>]> = [
    [{ pattern: "one" }, common("--ignore-case --no-ignore-dot --no-ignore-global", ...rules, "--regexp=one -- ./")],
    [
      { pattern: "one", case_sensitive: true, no_ignore: true, max_matches_per_file: 1 },
      common(
        "--case-sensitive --no-ignore-dot --no-ignore-global --no-ignore-vcs --no-ignore-exclude --glob=!**/.git",
        "--regexp=one -- ./"
      )
    ],
    [
      { pattern: "one", dir_path: "src", include_pattern: "*.ts", total_max_matches: 2 },
      common("--ignore-case --no-ignore-dot --no-ignore-global", ...rules, "--glob=*.ts --regexp=one -- ./src")
    ],
    [
      { pattern: "two", include_pattern: "src/**", context: 1 },
      common("--ignore-case --no-ignore-dot --no-ignore-global", ...rules, "--regexp=two -- ./")
    ],
    [
      { pattern: "one", dir_path: "log/d.txt", names_only: true },
      common("--ignore-case --no-ignore-dot --no-ignore-global", ...rules, "--regexp=one -- ./log/d.txt")
    ],
    [
      { pattern: "one", exclude_pattern: "two" },
      common("--ignore-case --no-ignore-dot --no-ignore-global", ...rules, "--regexp=one -- ./")
    ]
  ]
  it.effect.each(rows)("answers as one without it: %j", function* ([args, started]) {
    const own = yield* searched(files, args)
    const found = yield* searched(files, args, ripgrep(files))
    assert.strictEqual(found.answer, own.answer)
    assert.deepStrictEqual(
      found.started.map((each) => each.join(" ")),
      [started.join(" ")]
    )
  })

  it.effect("reads only the files that ripgrep lists", function* () {
    const { answer } = yield* searched(files, { pattern: "one", names_only: true }, () => ({ out: "src/c.js\0" }))
    assert.deepStrictEqual(answer.split("\n").slice(1), ["src/c.js"])
  })

  const first = "src/a.ts\0"
  it.effect.each<readonly [rule: string, played: Processes.Played, shown: "all" | "none" | "src/a.ts"]>([
    ["failed with a complaint", { out: first, err: "regex parse error", ends: 2 }, "all"],
    ["failed in another way", { out: first, ends: 3 }, "all"],
    ["was killed", { out: first, ends: "SIGKILL" }, "all"],
    ["found nothing, with a remark", { err: "a remark", ends: 1 }, "none"],
    ["could not read some file", { out: first, ends: 2 }, "src/a.ts"],
    ["prints half a name at its end", { out: `${first}src` }, "src/a.ts"],
    ["lists a file without matches, and one that is not there", { out: `x.txt\0${first}.gitignore\0` }, "src/a.ts"]
  ])("that %s shows only what the files have", function* ([, played, shown]) {
    const args = { pattern: "one", names_only: true }
    const own = yield* searched(files, args)
    const { answer } = yield* searched(files, args, () => played)
    const names = (text: string) => text.split("\n").slice(1)
    assert.deepStrictEqual(names(answer), shown === "all" ? names(own.answer) : shown === "none" ? [] : [shown])
  })

  it.effect("is not made where its rules could not be those of the workspace", function* () {
    const negated = { ...files, ".geminiignore": "own/*\n!own/e.txt\n" }
    const { answer, started } = yield* searched(negated, { pattern: "one", names_only: true }, ripgrep(negated))
    assert.deepStrictEqual(started, [])
    assert.include(answer, "own/e.txt")
  })
})

it.effect.each<readonly [args: object, count: string, lines: ReadonlyArray<string>]>([
  [{ context: 1 }, "4", ["L1- a", "L2: one 1", "L3- b", "L4: one 2", "L5- c", "L6- d", "L7: one 3", "L8: one 4"]],
  [{ before: 1 }, "4", ["L1- a", "L2: one 1", "L3- b", "L4: one 2", "L6- d", "L7: one 3", "L8: one 4"]],
  [{ after: 1 }, "4", ["L2: one 1", "L3- b", "L4: one 2", "L5- c", "L7: one 3", "L8: one 4"]],
  [{ context: 1, before: 0, exclude_pattern: "[23]" }, "2", ["L2: one 1", "L3- b", "L8: one 4"]],
  [{ total_max_matches: 4 }, "4", ["L2: one 1", "L4: one 2", "L7: one 3", "L8: one 4"]],
  [{ total_max_matches: 3 }, "3, only 3", ["L2: one 1", "L4: one 2", "L7: one 3"]],
  [{ max_matches_per_file: 1 }, "1", ["L2: one 1"]]
])("a search with %j shows these lines", function* ([args, count, lines]) {
  const text = "a\none 1\nb\none 2\nc\nd\none 3\none 4\n"
  const { answer } = yield* searched({ "f.txt": text }, { pattern: "one", ...args })
  const [head = "", ...rest] = answer.split("\n")
  assert.strictEqual((head.match(/\d+|only/g) ?? []).join(" ").replace(" only", ", only"), count)
  assert.deepStrictEqual(rest, ["---", "File: f.txt", ...lines, "---"])
})

/** A workspace of these folders, on a machine without ripgrep. */
const within = (folders: ReadonlyArray<string>) =>
  Layer.mergeAll(
    inMemory({ "a.txt": "one\n", "sub/b.txt": "one\n", "../workshop/c.txt": "one\n" }),
    environment({}),
    Processes.layer(() => undefined),
    Layer.mock(Workspace, {
      root: folders[0] ?? "/",
      folders,
      path: (given) => Effect.succeed(given),
      shown: (given) => given,
      files: (all) => all,
      held: (folder) => Effect.succeed(folder)
    })
  )

it.effect.each([
  [
    ["/work", "/work/sub"],
    ["/work/a.txt", "/work/sub/b.txt"]
  ],
  [
    ["/work/sub", "/work", "/workshop"],
    ["/work/a.txt", "/work/sub/b.txt", "/workshop/c.txt"]
  ],
  [["/work/sub"], ["/work/sub/b.txt"]]
] as const)("a search of the folders %j looks at each file once", function* ([folders, expected]) {
  const answer = yield* Effect.flatMap(searchFiles, (tool) =>
    answerOf(tool, { pattern: "one", names_only: true })
  ).pipe(Effect.provide(within(folders)))
  assert.deepStrictEqual([...(answer.match(/\/work\S*\.txt/g) ?? [])].sort(), [...expected])
})
