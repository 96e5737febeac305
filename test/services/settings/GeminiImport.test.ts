import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, FileSystem, Path, Result } from "effect"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { parseSettings } from "../../../src/domain/settings/SettingsText.ts"
import { GeminiImport, type ImportOptions } from "../../../src/services/settings/GeminiImport.ts"
import { type ImportReport } from "../../../src/services/settings/ImportReport.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { strideOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const fixture = fileURLToPath(new URL("../../fixtures/gemini-home/home", import.meta.url))

/** A person's folder of Gemini CLI with these files, and a home of this program with those. */
const ground = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>> = {}
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  yield* fs.makeDirectory(at("me/.gemini"), { recursive: true })
  const all = [
    ...Object.entries(files).map(([file, text]) => [at("me/.gemini", file), text] as const),
    ...Object.entries(ours).map(([file, text]) => [at("kept", file), text] as const)
  ]
  for (const [file, text] of all) {
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* fs.writeFileString(file, text)
  }
  const run = (options: Partial<ImportOptions> = {}) =>
    GeminiImport.use((service) => service.run({ dryRun: false, ...options })).pipe(
      Effect.provide(GeminiImport.layer({ home: at("kept"), gemini: at("me/.gemini") }))
    )
  /** All files below a folder of this test, with what is in them. */
  const filesIn = Effect.fnUntraced(function* (folder: string) {
    const names = yield* Effect.orElseSucceed(fs.readDirectory(at(folder), { recursive: true }), () => [])
    const found: Array<readonly [string, string]> = []
    for (const name of names.toSorted()) {
      const { type } = yield* fs.stat(at(folder, name))
      if (type === "File") found.push([name, yield* fs.readFileString(at(folder, name))])
    }
    return Object.fromEntries(found)
  })
  return { at, run, filesIn }
})

const rowsOf = (rows: ReadonlyArray<{ readonly kind: string; readonly from: string }>) =>
  rows.map(({ from, kind }) => `${kind} ${from}`)

const whys = (rows: ImportReport["notTaken"]) => rows.map(({ from, why }) => `${from}: ${why}`)

const agent = "---\nname: a\ndescription: does a\n---\nDo it.\n"
const skill = "---\nname: s\ndescription: how s is done\n---\nSo.\n"

it.effect("the fixture folder is imported, and a second run imports nothing more", NodeServices.layer, function* () {
  const fs = yield* FileSystem.FileSystem
  const { at, filesIn, run } = yield* ground({})
  const from = `${fixture}/.gemini`
  const dry = yield* run({ from, dryRun: true })
  assert.isFalse(yield* fs.exists(at("kept")))
  const report = yield* run({ from })
  assert.deepStrictEqual({ ...dry, dryRun: false }, report)
  assert.deepStrictEqual(rowsOf(report.taken.filter(({ kind }) => kind !== "setting")), [
    "memory GEMINI.md",
    "memory notes/style.md",
    "memory notes/commits.md",
    "agent agents/changelog_writer.md",
    "agent agents/reviewer.md",
    "skill skills/release-notes"
  ])
  assert.deepStrictEqual(report.kept, [])
  const others = report.notTaken.filter(({ kind }) => kind !== "setting")
  assert.deepStrictEqual(whys(others), [
    "GEMINI.md: @../outside.md: leads out of the folder",
    "commands: custom commands are not supported; a skill can do the same",
    "notes: only the files that memory imports are copied"
  ])

  const { "settings.json": settings = "", ...files } = yield* filesIn("kept")
  assert.deepStrictEqual(Object.keys(files), [
    "GEMINI.md",
    "agents/changelog_writer.md",
    "agents/reviewer.md",
    "notes/commits.md",
    "notes/style.md",
    "skills/release-notes/SKILL.md",
    "skills/release-notes/scripts/since-last-tag.sh",
    "skills/release-notes/template.md"
  ])
  for (const [file, text] of Object.entries(files)) {
    assert.strictEqual(text, yield* fs.readFileString(`${from}/${file}`))
  }
  const read = Result.getOrThrow(parseSettings(settings))
  assert.deepStrictEqual(read.unknown, [])
  assert.strictEqual(read.settings.model, "gemini-2.5-pro")
  assert.deepStrictEqual(read.settings.memory?.fileNames, ["GEMINI.md", "CONTEXT.md"])
  assert.lengthOf(Object.keys(read.settings.hooks ?? {}), 11)
  assert.deepStrictEqual(Object.keys(read.settings.mcpServers ?? {}), ["weather", "docs"])
  const modes = yield* Effect.forEach(
    ["settings.json", "GEMINI.md", "skills/release-notes/scripts/since-last-tag.sh"],
    (file) => Effect.map(fs.stat(at("kept", file)), ({ mode }) => mode & 0o777)
  )
  assert.deepStrictEqual(modes, [0o600, 0o600, 0o700])

  const again = yield* run({ from })
  assert.deepStrictEqual(again.taken, [])
  assert.deepStrictEqual(rowsOf(again.kept).toSorted(), rowsOf(report.taken).toSorted())
  assert.isTrue(again.kept.every(({ why }) => why === "already has this value"))
  assert.deepStrictEqual(again.notTaken, report.notTaken)
  assert.deepStrictEqual(yield* filesIn("kept"), { ...files, "settings.json": settings })
})

it.effect("existing files stay: settings with their comments, and files that differ", NodeServices.layer, function* () {
  const { at, filesIn, run } = yield* ground(
    {
      "settings.json": `{"model": {"name": "gemini-2.5-pro"}, "context": {"discoveryMaxDirs": 9}}`,
      "GEMINI.md": "theirs @./more.md",
      "more.md": "more",
      "agents/a.md": agent,
      "skills/s/SKILL.md": skill,
      "skills/s/more.md": "theirs"
    },
    {
      "settings.json": `{\n  // mine\n  "model": "gemini-2.5-flash"\n}\n`,
      "GEMINI.md": "mine",
      "agents/a.md": agent,
      "skills/s/more.md": "mine"
    }
  )
  const fs = yield* FileSystem.FileSystem
  yield* fs.chmod(at("kept", "settings.json"), 0o640)
  const report = yield* run()
  assert.strictEqual((yield* fs.stat(at("kept", "settings.json"))).mode & 0o777, 0o640)
  assert.deepStrictEqual(yield* filesIn("kept"), {
    "settings.json": `{\n  // mine\n  "model": "gemini-2.5-flash",\n  "memory": {"maxDirs": 9}\n}\n`,
    "GEMINI.md": "mine",
    "agents/a.md": agent,
    "skills/s/more.md": "mine"
  })
  assert.deepStrictEqual(rowsOf(report.taken), ["setting context.discoveryMaxDirs"])
  assert.deepStrictEqual(
    report.kept.map(({ from, why }) => [from, why]),
    [
      ["model.name", "another value is set here and is kept"],
      ["agents/a.md", "already has this value"]
    ]
  )
  assert.deepStrictEqual(whys(report.notTaken), [
    `GEMINI.md: ${at("kept/GEMINI.md")} is there and differs`,
    `skills/s: ${at("kept/skills/s/more.md")} is there and differs`,
    "more.md: is not supported"
  ])
})

describe("memory", () => {
  const cases: ReadonlyArray<
    readonly [
      rule: string,
      files: Readonly<Record<string, string>>,
      taken: ReadonlyArray<string>,
      left: ReadonlyArray<string>
    ]
  > = [
    [
      "a circle",
      { "GEMINI.md": "@./a.md", "a.md": "@./b.md", "b.md": "@./a.md @./GEMINI.md" },
      ["GEMINI.md", "a.md", "b.md"],
      []
    ],
    [
      "code, addresses of people and names are none",
      { "GEMINI.md": "`@./a.md` me@b.c @alice\n```\n@./a.md\n```" },
      ["GEMINI.md"],
      []
    ],
    [
      "out of the folder",
      { "GEMINI.md": "@../x.md @a/../../x.md" },
      ["GEMINI.md"],
      ["GEMINI.md: @../x.md: leads out of the folder"]
    ],
    [
      "absolute",
      { "GEMINI.md": "@/etc/passwd" },
      ["GEMINI.md"],
      ["GEMINI.md: @/etc/passwd: is not below the file that names it; it is not copied"]
    ],
    [
      "no text",
      { "GEMINI.md": "@./oauth_creds.json" },
      ["GEMINI.md"],
      ["GEMINI.md: @./oauth_creds.json: only texts are copied: .md, .mdx, .markdown, .txt"]
    ]
  ]
  it.effect.each(cases)("%s", NodeServices.layer, function* ([, files, taken, left]) {
    const { run } = yield* ground(files)
    const report = yield* run()
    assert.deepStrictEqual(
      report.taken.filter(({ kind }) => kind === "memory").map(({ from }) => from),
      taken
    )
    assert.deepStrictEqual(whys(report.notTaken.filter(({ kind }) => kind === "memory")), left)
  })
})

describe("nothing outside of the folder is read", () => {
  it.effect("neither through links, nor from a pipe or a device", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, filesIn, run } = yield* ground({
      "GEMINI.md": "@./link.md @./pipe.md @./zero.md",
      "skills/s/SKILL.md": skill
    })
    yield* fs.writeFileString(at("me/secret.md"), "secret")
    yield* fs.makeDirectory(at("me/agents"))
    yield* fs.writeFileString(at("me/agents/x.md"), agent)
    yield* fs.symlink(at("me/secret.md"), at("me/.gemini/link.md"))
    yield* fs.symlink(at("me/secret.md"), at("me/.gemini/skills/s/link.md"))
    yield* fs.symlink("/dev/zero", at("me/.gemini/zero.md"))
    yield* fs.symlink(at("me/agents"), at("me/.gemini/agents"))
    yield* fs.symlink(at("me/agents"), at("me/.gemini/skills/t"))
    execFileSync("mkfifo", [at("me/.gemini/pipe.md"), at("me/.gemini/AGENTS.md"), at("me/.gemini/skills/s/pipe")])
    const report = yield* run()
    assert.sameMembers(Object.keys(yield* filesIn("kept")), ["GEMINI.md", "skills/s/SKILL.md"])
    assert.deepStrictEqual(whys(report.notTaken), [
      "AGENTS.md: it is a named pipe; only regular files can be read",
      "GEMINI.md: @./link.md: leads out of the folder",
      "GEMINI.md: @./pipe.md: it is a named pipe; only regular files can be read",
      "GEMINI.md: @./zero.md: leads out of the folder",
      "skills/s/link.md: is not a regular file; links are not followed",
      "skills/s/pipe: is not a regular file; links are not followed",
      "skills/t: is not the folder of a skill; links are not followed",
      "agents: is not supported"
    ])
  })
})

describe("skipped files", () => {
  it.effect("agents and skills that cannot be used, with the reason", NodeServices.layer, function* () {
    const { run } = yield* ground({
      "agents/a.md": "no front matter",
      "agents/notes.txt": "x",
      "agents/_draft.md": "anything",
      "skills/empty/readme.md": "x",
      "skills/file": "x"
    })
    const report = yield* run()
    assert.deepStrictEqual(rowsOf(report.taken), ["agent agents/_draft.md"])
    assert.deepStrictEqual(whys(report.notTaken), [
      "agents/a.md: expected front matter: a line ---, fields in YAML, a line ---",
      "agents/notes.txt: is not an agent definition, which ends in .md",
      "skills/empty: SKILL.md: there is no such file",
      "skills/file: is not the folder of a skill; links are not followed"
    ])
  })

  it.effect("everything else in the folder, by name; keys are not read", NodeServices.layer, function* () {
    const { run } = yield* ground({
      ".env": "GEMINI_API_KEY=AIza-not-told",
      "oauth_creds.json": "{}",
      "tmp/x/logs.json": "[]",
      "extensions/e/gemini-extension.json": "{}",
      installation_id: "1"
    })
    const report = yield* run()
    assert.deepStrictEqual([report.taken, report.kept], [[], []])
    assert.deepStrictEqual(
      report.notTaken.map(({ from }) => from),
      [".env", "extensions", "installation_id", "oauth_creds.json", "tmp"]
    )
    assert.notInclude(JSON.stringify(report), "AIza")
  })
})

describe("inputs that cannot be imported", () => {
  const cases: ReadonlyArray<
    readonly [
      rule: string,
      files: Readonly<Record<string, string>>,
      ours: Readonly<Record<string, string>>,
      told: RegExp
    ]
  > = [
    [
      "half a document",
      { "settings.json": `{\n"apiKey": "AIza-x",\n"a" 1}` },
      {},
      /settings\.json: expected JSON; line 3, column 5 should have ":"$/
    ],
    [
      "words",
      { "settings.json": "AIza-x" },
      {},
      /settings\.json: expected JSON; line 1, column 1 should have a value$/
    ],
    ["a list", { "settings.json": "[]" }, {}, /settings\.json: expected an object of settings$/],
    ["a folder", { "settings.json/x": "" }, {}, /settings\.json: it is a folder/],
    [
      "our own are broken",
      { "settings.json": "{}" },
      { "settings.json": `{"model": 1}` },
      /kept\/settings\.json, model: expected the name of a model/
    ]
  ]
  it.effect.each(cases)("settings: %s. Nothing is written", NodeServices.layer, function* ([, files, ours, told]) {
    const { filesIn, run } = yield* ground({ ...files, "GEMINI.md": "x" }, ours)
    const error = yield* Effect.flip(run())
    assert.strictEqual(error.reason, "Invalid")
    assert.match(error.message, told)
    assert.notMatch(error.message, /AIza|\n/)
    assert.deepStrictEqual(yield* filesIn("kept"), ours)
  })

  it.effect("a missing folder, a file, and our own home", NodeServices.layer, function* () {
    const { at, run } = yield* ground({}, { "settings.json": "{}" })
    const told = (from: string) => Effect.map(Effect.flip(run({ from })), ({ message }) => message)
    assert.strictEqual(yield* told(at("none")), `there is no folder ${at("none")}`)
    assert.match(yield* told(at("kept/settings.json")), /settings\.json/)
    assert.strictEqual(yield* told(at("kept")), `${at("kept")} is the home folder of this program itself`)
  })
})

const small = {
  "settings.json": `{"model": {"name": "gemini-2.5-pro"}}`,
  "GEMINI.md": "theirs @./more.md",
  "more.md": "more",
  "skills/s/SKILL.md": skill
}
const smallTaken = {
  "GEMINI.md": "theirs @./more.md",
  "more.md": "more",
  "settings.json": `{\n  // mine\n  "titles": false,\n  "model": "gemini-2.5-pro"\n}\n`,
  "skills/s/SKILL.md": skill
}
const mine = { "settings.json": `{\n  // mine\n  "titles": false\n}\n` }

/** Whether what is there is old or new, file by file, and nothing else. */
const isOldOrNew = (files: Readonly<Record<string, string>>): boolean =>
  Object.entries(files).every(
    ([file, text]) =>
      Object.entries(smallTaken).some(([name, next]) => name === file && next === text) ||
      (file === "settings.json" && text === mine["settings.json"])
  ) && Object.hasOwn(files, "settings.json")

describe("failures while writing", () => {
  it.effect.each(["half"] as const)(
    "leave each file old or new, and a second run ends it: %s",
    NodeServices.layer,
    function* (verdict) {
      let broken = 0
      for (let n = 1; ; n += strideOf(3)) {
        const { filesIn, run } = yield* ground(small, mine)
        const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, verdict))
        const exit = yield* Effect.exit(Effect.provide(run(), faulty.layer))
        const calls = yield* faulty.calls
        assert.isTrue(isOldOrNew(yield* filesIn("kept")), `call ${n}`)
        if (Exit.isFailure(exit)) {
          broken += 1
          const error = yield* Effect.flip(exit)
          assert.strictEqual(error._tag, "GeminiImportError")
          assert.notInclude(error.message, "\n")
        }
        yield* run()
        assert.deepStrictEqual(yield* filesIn("kept"), smallTaken)
        if (calls.every(({ mutating = 0 }) => mutating < n)) break
      }
      assert.isAbove(broken, 5)
    }
  )

  it.effect("interruption anywhere leaves no temporary files", NodeServices.layer, function* () {
    const grounds = new Map<number, Effect.Success<ReturnType<typeof ground>>>()
    const points = yield* interruptSweep(
      Effect.fnUntraced(function* (k: number) {
        const made = yield* Effect.uninterruptible(ground(small, mine))
        grounds.set(k, made)
        return yield* made.run()
      }),
      Effect.fnUntraced(function* (_exit, k) {
        const made = grounds.get(k)
        if (made === undefined) return
        assert.isTrue(isOldOrNew(yield* made.filesIn("kept")), `point ${k}`)
        yield* made.run()
        assert.deepStrictEqual(yield* made.filesIn("kept"), smallTaken)
      }),
      120
    )
    assert.isAbove(points, 10)
  })

  it.effect("a pipe in place of our settings is not opened", NodeServices.layer, function* () {
    const { at, run } = yield* ground(small, { "other.md": "x" })
    execFileSync("mkfifo", [at("kept/settings.json")])
    const error = yield* Effect.flip(run())
    assert.match(error.message, /kept\/settings\.json is a named pipe/)
  })
})
