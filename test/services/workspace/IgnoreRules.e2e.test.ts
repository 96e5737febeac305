import { Effect, Fiber, FileSystem, Layer, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { type IgnoreChoice, isIgnored, rulesOf, walk } from "../../../src/services/workspace/IgnoreRules.ts"
import { Workspace } from "../../../src/services/workspace/Workspace.ts"
import { needs } from "../../support/machine.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"
import { inMemory, onDisk, temporaryFolder, writeFiles } from "../../support/workspaces.ts"

const all: IgnoreChoice = { git: true, own: true, vendored: true }

const files = (folder: string, choice = all) =>
  walk(folder, choice).pipe(
    Stream.runCollect,
    Effect.map((found) => found.flatMap((each) => [...each.files]).sort())
  )

const walked = (choice = all) => Effect.flatMap(Workspace, ({ root }) => files(root, choice))

describe("ignored files of a walk", () => {
  const tree = {
    ".git/HEAD": "ref",
    ".git/info/exclude": "excluded.txt\n",
    ".gitignore": "*.log\nbuild/\n!keep.log\n",
    "a.log": "",
    "keep.log": "",
    "excluded.txt": "",
    "build/out.js": "",
    "node_modules/x/index.js": "",
    "src/.gitignore": "!a.log\nlocal\n/here\n",
    "src/a.log": "",
    "src/b.log": "",
    "src/local": "",
    "src/here": "",
    "src/deep/here": "",
    "src/deep/local": "",
    "secret.txt": "",
    "own.txt": ""
  }
  const always = [".geminiignore", ".gitignore", ".palimpsestignore"]
  const cases: ReadonlyArray<
    readonly [rule: string, choice: IgnoreChoice, more: Record<string, string>, left: ReadonlyArray<string>]
  > = [
    [
      "rules of git at all levels, the nearer ones deciding",
      { git: true, own: false, vendored: true },
      {},
      ["keep.log", "own.txt", "secret.txt", "src/.gitignore", "src/a.log", "src/deep/here"]
    ],
    [
      "the workspace's own rules at its root, which decide over those of git",
      all,
      { ".geminiignore": "secret.txt\nown.txt\n!excluded.txt\n", ".palimpsestignore": "!own.txt\n" },
      ["excluded.txt", "keep.log", "own.txt", "src/.gitignore", "src/a.log", "src/deep/here"]
    ],
    [
      "own rules below the root count for nothing",
      all,
      { "src/.geminiignore": "a.log" },
      ["keep.log", "own.txt", "secret.txt", "src/.geminiignore", "src/.gitignore", "src/a.log", "src/deep/here"]
    ],
    [
      "a folder that is taken in again is walked through",
      all,
      { ".palimpsestignore": "!build/\n!node_modules/\n" },
      [
        "build/out.js",
        "keep.log",
        "node_modules/x/index.js",
        "own.txt",
        "secret.txt",
        "src/.gitignore",
        "src/a.log",
        "src/deep/here"
      ]
    ],
    [
      "what lies in a folder that is left out cannot be taken in",
      all,
      { ".geminiignore": "!build/out.js\n" },
      ["keep.log", "own.txt", "secret.txt", "src/.gitignore", "src/a.log", "src/deep/here"]
    ],
    [
      "a repository in the repository has rules of its own",
      all,
      { "sub/.git/HEAD": "ref", "sub/a.log": "", "sub/.gitignore": "b.txt", "sub/b.txt": "" },
      [
        "keep.log",
        "own.txt",
        "secret.txt",
        "src/.gitignore",
        "src/a.log",
        "src/deep/here",
        "sub/.gitignore",
        "sub/a.log"
      ]
    ]
  ]
  it.effect.each(cases)("%s", ([, choice, more, left]) =>
    Effect.map(walked(choice), (found) =>
      assert.deepStrictEqual(
        found.filter((file) => !always.includes(file)),
        left
      )
    ).pipe(Effect.provide(inMemory({ ...tree, ...more })))
  )

  it.effect("git's rules apply in a repository only", () =>
    Effect.map(walked(), (found) => assert.deepStrictEqual(found, [".gitignore", "a.log"])).pipe(
      Effect.provide(inMemory({ ".gitignore": "*.log", "a.log": "" }))
    )
  )

  it.effect(".git is always ignored", () =>
    Effect.map(walked({ git: false, own: false, vendored: false }), (found) =>
      assert.deepStrictEqual(found, [".geminiignore", "node_modules/a"])
    ).pipe(Effect.provide(inMemory({ ".git/HEAD": "", ".geminiignore": "!.git", "node_modules/a": "" })))
  )

  it.effect("rules of parent folders apply", inMemory(tree), function* () {
    const { root } = yield* Workspace
    assert.deepStrictEqual(yield* files(`${root}/src`), [".gitignore", "a.log", "deep/here"])
    const rules = yield* rulesOf(root, all)
    assert.isTrue(yield* isIgnored(rules, "build/out.js"))
    assert.isTrue(yield* isIgnored(rules, "src/deep/local"))
    assert.isFalse(yield* isIgnored(rules, "src/deep/here"))
  })

  it.effect("ignored folders are not opened, and each rule file is read once", inMemory(tree), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    const opened: Array<string> = []
    const note = (place: string) => opened.push(place.slice(root.length))
    const watching = FileSystem.FileSystem.of({
      ...fs,
      readDirectoryEntries: (place) => {
        note(place)
        return fs.readDirectoryEntries(place)
      },
      readFileString: (place) => {
        note(place)
        return fs.readFileString(place)
      }
    })
    yield* files(root).pipe(Effect.provideService(FileSystem.FileSystem, watching))
    assert.deepStrictEqual(opened.sort(), [
      "",
      "/.git/info/exclude",
      "/.gitignore",
      "/src/",
      "/src/.gitignore",
      "/src/deep/"
    ])
  })

  it.effect("links are not followed, not even cyclic ones", onDisk({ "a/b": "" }), function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    const outside = yield* temporaryFolder
    yield* writeFiles(outside, { "x.txt": "" })
    yield* fs.symlink(root, `${root}/a/round`)
    yield* fs.symlink(outside, `${root}/a/out`)
    assert.deepStrictEqual(yield* files(root), ["a/b"])
  })
})

const paths =
  "b.c b c #a a/a/b a/b/x a/b.c a/x/y/b.c a/c x/a x/b/b.c x/y/a/b x/c.c bb/a d/a/b d/b d/a.c/b.c e/a/x/b".split(" ")

describe("a folder with very many rules", () => {
  const tree = {
    ".gitignore": Array.from({ length: 5_000 }, (_, i) => `*a${i}*b`).join("\n"),
    ".git/HEAD": "ref",
    ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`f${i}.txt`, ""]))
  }
  it.live("does not block others while it is walked or its rules are read", inMemory(tree), function* () {
    let turns = 0
    const other = yield* Effect.forkChild(
      Effect.forever(
        Effect.andThen(
          Effect.sync(() => (turns += 1)),
          Effect.yieldNow
        )
      ),
      { startImmediately: true }
    )
    const { root } = yield* Workspace
    yield* rulesOf(root, all)
    const reading = turns
    assert.strictEqual((yield* walked()).length, 101)
    yield* Fiber.interrupt(other)
    assert.isAtLeast(reading, 2)
    assert.isAtLeast(turns - reading, 20)
  })
})

/** A repository that git made, with these files. */
const repository = Layer.effectDiscard(
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const { root } = yield* Workspace
    assert.strictEqual(yield* spawner.exitCode(ChildProcess.make("git", ["init", "-q", root])), 0)
  })
).pipe(Layer.provideMerge(onDisk(Object.fromEntries(paths.map((path) => [path, ""])))))

needs("git")("beside git", () =>
  layer(repository)("git", (it) => {
    const Line = Schema.Literals([
      "a",
      "/a",
      "a/",
      "a/b",
      "!a",
      "!a/",
      "!/a/b",
      "*",
      "!*/",
      "*.c",
      "!b.c",
      "a/*",
      "a/**",
      "**/b",
      "a/**/b.c",
      "[ab]",
      "?.c",
      "# a",
      "\\#a",
      "b*",
      "/*/b"
    ])
    const Rules = Schema.Array(Line).check(Schema.isMaxLength(4))

    it.effect.prop(
      "ignores the same files",
      [Rules, Rules, Rules],
      ([top, nested, exclude]) =>
        Effect.gen(function* () {
          const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
          const { root } = yield* Workspace
          yield* writeFiles(root, {
            ".gitignore": top.join("\n"),
            "a/.gitignore": nested.join("\n"),
            ".git/info/exclude": exclude.join("\n")
          })
          const options = ["-c", "core.excludesFile=/dev/null"]
          const listed = yield* spawner.string(
            ChildProcess.make("git", [...options, "ls-files", "-z", "--others", "--exclude-standard"], { cwd: root })
          )
          assert.deepStrictEqual(
            yield* walked(),
            listed
              .split("\0")
              .filter((name) => name !== "")
              .sort()
          )
        }),
      { arbitrary: { runs: runsOf(150) } }
    )
  })
)
