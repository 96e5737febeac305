import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path } from "effect"
import { Command } from "effect/cli"
import { fileURLToPath } from "node:url"
import { configImport } from "../../src/cli/commands/configImport.ts"
import { trust } from "../../src/cli/commands/trust.ts"
import { ExitError } from "../../src/cli/output/ExitError.ts"
import * as FileTrust from "../../src/layers/workspace/FileTrust.ts"
import { GeminiImport } from "../../src/services/settings/GeminiImport.ts"
import { Settings } from "../../src/services/settings/Settings.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { recordedStdio } from "./recordedStdio.ts"

/** A person's home with a project, and this program's commands in it. */
const ground = Effect.fnUntraced(function* (files: Readonly<Record<string, string>> = {}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  yield* fs.makeDirectory(at("me/work"), { recursive: true })
  for (const [file, text] of Object.entries(files)) {
    yield* fs.makeDirectory(path.dirname(at(file)), { recursive: true })
    yield* fs.writeFileString(at(file), text)
  }
  const own = { memory: { fileNames: ["GEMINI.md", "HOUSE.md"] } }
  const services = Layer.mergeAll(
    Layer.mock(Settings, {
      read: Effect.succeed({
        settings: own,
        notices: [],
        written: {},
        sources: new Map(),
        files: { home: own, workspace: {} }
      })
    }),
    FileTrust.layer(at("kept/trusted-folders.json"), { user: at("me"), environment: {} }),
    GeminiImport.layer({ home: at("kept"), gemini: at("me/.gemini") })
  )
  const run = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
    const { layer: stdio, texts } = recordedStdio()
    const program = Command.make("palimpsest").pipe(Command.withSubcommands([trust, configImport]))
    const status = yield* Command.runWith(program, { version: "0" })(args).pipe(
      Effect.as(0),
      Effect.catchIf(
        (error) => error instanceof ExitError,
        ({ message, status }) =>
          Effect.sync(() => {
            texts.err += message
            return status
          })
      ),
      Effect.provide(Layer.merge(services, stdio))
    )
    return { ...texts, status }
  })
  return { at, run }
})

const project = {
  "me/work/.palimpsest/settings.json": `{"hooks": {"AfterTool": [{"matcher": "edit", "hooks": [{"type": "command", "command": "touch x"}]}], "PreCompress": []}}`,
  "me/work/.env": "A=1",
  "me/work/GEMINI.md": "Do this.",
  "me/work/HOUSE.md": "Do that.",
  "me/work/.gemini/agents/a.md": "x",
  "me/work/.gemini/agents/a.txt": "x",
  "me/work/.palimpsest/skills/s/SKILL.md": "x",
  "me/work/.palimpsest/skills/none/readme.md": "x"
}

describe("trust", () => {
  it.effect("lists what a trusted folder provides", NodeServices.layer, function* () {
    const { at, run } = yield* ground(project)
    const { err, out, status } = yield* run("trust", at("me/work"))
    assert.deepStrictEqual([status, err], [0, ""])
    assert.strictEqual(
      out,
      [
        `Trusted with everything below it: ${at("me/work")}`,
        "Loaded from it:",
        "  settings: .palimpsest/settings.json",
        '  hooks, which run commands: .palimpsest/settings.json (AfterTool on "edit": "touch x")',
        "  variables, such as the address of the model: .env",
        "  memory, which tells the model what to do: GEMINI.md",
        "  memory, which tells the model what to do: HOUSE.md",
        "  skills: .palimpsest/skills (s)",
        "  agents: .gemini/agents (a.md)",
        ""
      ].join("\n")
    )
  })

  it.effect("supports --no, --forget and --list", NodeServices.layer, function* () {
    const { at, run } = yield* ground(project)
    assert.match((yield* run("trust", "--list")).err, /no folders trusted or refused yet/)
    assert.match(
      (yield* run("trust", at("me/work"), "--no")).out,
      /^Not trusted, nor anything below it: [^\n]*\nIgnored there:\n {2}settings:/
    )
    assert.strictEqual((yield* run("trust", "--list")).out, `untrusted  ${at("me/work")}\n`)
    assert.match((yield* run("trust", at("me/work"), "--forget")).out, /^Forgotten; you will be asked again: /)
    assert.strictEqual((yield* run("trust", "--list", "--json")).out, `{"folders":[]}\n`)
  })

  it.effect("--json prints one document", NodeServices.layer, function* () {
    const { at, run } = yield* ground({ "me/work/HOUSE.md": "" })
    const document: unknown = JSON.parse((yield* run("trust", at("me/work"), "--json")).out)
    assert.deepStrictEqual(document, {
      folder: at("me/work"),
      standing: "trusted",
      wide: false,
      offers: [{ kind: "memory", file: "HOUSE.md", names: [] }]
    })
  })

  it.effect("trusts the user's home when it is named, and says so", NodeServices.layer, function* () {
    const { at, run } = yield* ground()
    const { err, out, status } = yield* run("trust", at("me"))
    assert.strictEqual(status, 0)
    assert.match(err, /this folder is or contains your home folder/)
    assert.match(out, /It has nothing to load yet/)
  })

  const wrong: ReadonlyArray<readonly [rule: string, args: ReadonlyArray<string>, told: RegExp]> = [
    ["two wishes", ["--no", "--forget"], /use one of --no, --forget and --list/],
    ["a list of one", ["--list", "."], /--list takes no folder/],
    ["a missing folder", ["none-such"], /no such folder: \S+none-such$/]
  ]
  it.effect.each(wrong)("bad usage: %s", NodeServices.layer, function* ([, args, told]) {
    const { run } = yield* ground()
    const { err, status } = yield* run("trust", ...args)
    assert.strictEqual(status, 2)
    assert.match(err, told)
  })

  it.effect("reports a broken trust file in one line", NodeServices.layer, function* () {
    const { at, run } = yield* ground({ "kept/trusted-folders.json": "{" })
    const { err, status } = yield* run("trust", at("me/work"))
    assert.strictEqual(status, 1)
    assert.match(err, /trusted-folders\.json: expected [^\n]*$/)
  })
})

describe("config import gemini", () => {
  const fixture = fileURLToPath(new URL("../fixtures/gemini-home/home/.gemini", import.meta.url))

  it.effect("prints what was imported, what was kept, and what was skipped and why", NodeServices.layer, function* () {
    const { at, run } = yield* ground({ "kept/settings.json": `{"model": "mine"}` })
    const { err, out, status } = yield* run("import", "gemini", "--from", fixture)
    assert.deepStrictEqual([status, err], [0, ""])
    const lines = out.split("\n")
    assert.strictEqual(lines[0], `Imported from ${fixture}:`)
    assert.include(out, `→ ${at("kept/GEMINI.md")}`)
    assert.match(out, /\n {2}setting +general\.maxAttempts +→ attempts\.calls\n/)
    assert.match(out, /\nUnchanged here:\n {2}setting +model\.name +another value is set here and is kept\n/)
    assert.match(out, /\nNot imported:\n(?: {2}\S+ +\S.*\n)+$/)
    assert.match(
      (yield* run("import", "gemini", "--from", fixture)).out,
      /^Nothing new to import from \S+\.\n\nUnchanged/
    )
  })

  it.effect("--dry-run --json prints one document and writes nothing", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { at, run } = yield* ground()
    const { out } = yield* run("import", "gemini", "--from", fixture, "--dry-run", "--json")
    const report: { readonly dryRun: boolean; readonly taken: ReadonlyArray<unknown> } = JSON.parse(out)
    assert.isTrue(report.dryRun)
    assert.isAbove(report.taken.length, 30)
    assert.isFalse(yield* fs.exists(at("kept")))
  })

  it.effect("rejects a missing folder", NodeServices.layer, function* () {
    const { at, run } = yield* ground()
    const { err, status } = yield* run("import", "gemini")
    assert.deepStrictEqual(
      [status, err],
      [2, `there is no folder ${at("me/.gemini")}; name Gemini CLI's folder with --from`]
    )
  })
})
