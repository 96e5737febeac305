import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, FileSystem, Layer, Logger, Option, Path } from "effect"
import { execFileSync } from "node:child_process"
import * as FileExperiments from "../../../src/layers/settings/FileExperiments.ts"
import * as FileSettings from "../../../src/layers/settings/FileSettings.ts"
import * as SettingsSources from "../../../src/layers/settings/SettingsSources.ts"
import * as FileTrust from "../../../src/layers/workspace/FileTrust.ts"
import { EnvFiles } from "../../../src/services/platform/Environment.ts"
import { compressionThreshold, Experiments } from "../../../src/services/settings/Experiments.ts"
import { Settings } from "../../../src/services/settings/Settings.ts"
import { Trust, type TrustState } from "../../../src/services/workspace/Trust.ts"
import { assert, describe, layer } from "../../support/vitest.ts"

interface Files {
  readonly home?: string
  readonly here?: string
  /** Gemini CLI's settings of the working folder. */
  readonly gemini?: string
  readonly env?: Readonly<Record<string, string>>
  /** What an `.env` file says beneath that. */
  readonly dotEnv?: Readonly<Record<string, string>>
  /** How it stands with the working folder; else it is trusted. */
  readonly standing?: TrustState
}

const envFiles = (variables: Readonly<Record<string, string>> = {}) =>
  Layer.succeed(EnvFiles, { file: undefined, variables, hidden: [], untrusted: [], notices: [] })

const trusted = () => Effect.succeed("trusted" as const)

/** What is read where these files lie in the home folder and the working folder. */
const laid = Effect.fnUntraced(function* (
  { dotEnv = {}, env = {}, gemini, here, home, standing = "trusted" }: Files,
  trust: (folder: string) => Effect.Effect<TrustState> = () => Effect.succeed(standing)
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped()
  const folders = { home: path.join(root, "home"), here: path.join(root, "here") }
  yield* fs.makeDirectory(path.join(folders.here, ".palimpsest"), { recursive: true })
  yield* fs.makeDirectory(folders.home)
  if (home !== undefined) yield* fs.writeFileString(path.join(folders.home, "settings.json"), home)
  if (here !== undefined) yield* fs.writeFileString(path.join(folders.here, ".palimpsest", "settings.json"), here)
  if (gemini !== undefined) {
    yield* fs.makeDirectory(path.join(folders.here, ".gemini"))
    yield* fs.writeFileString(path.join(folders.here, ".gemini", "settings.json"), gemini)
  }
  const inFolder = Layer.succeed(Path.Path, { ...path, resolve: (...parts) => path.resolve(folders.here, ...parts) })
  const settings = FileSettings.layer(folders.home, trust).pipe(
    Layer.provide(Layer.merge(inFolder, envFiles(dotEnv))),
    Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ ...dotEnv, ...env })))
  )
  return { settings, root }
})

const failing = Effect.fnUntraced(function* (files: Files) {
  const { root, settings } = yield* laid(files)
  const { message } = yield* Effect.flip(Settings.use(({ read }) => read).pipe(Effect.provide(settings)))
  return { message, root }
})

const reading = Effect.fnUntraced(function* (files: Files) {
  const { root, settings } = yield* laid(files)
  const { notices, ...found } = yield* Settings.use(({ read }) => read).pipe(Effect.provide(settings))
  return { ...found, settings: { ...found.settings }, notices: notices.map(({ text }) => text), root }
})

const settingsOf = (files: Files) => Effect.map(reading(files), ({ settings }) => settings)

layer(NodeServices.layer)("FileSettings", (it) => {
  it.effect("the later source overrides: home, working folder, environment", function* () {
    const home = `{"model": "of-home", "window": 1000, "titles": false}`
    const here = `{"model": "of-here", "window": 2000}`
    assert.deepStrictEqual(yield* settingsOf({ home }), { model: "of-home", window: 1000, titles: false })
    assert.deepStrictEqual(yield* settingsOf({ home, here }), { model: "of-here", window: 2000, titles: false })
    const env = { PALIMPSEST_MODEL: "of-env" }
    assert.deepStrictEqual(yield* settingsOf({ home, here, env }), { model: "of-env", window: 2000, titles: false })
    const blank = { PALIMPSEST_MODEL: "  " }
    assert.deepStrictEqual(yield* settingsOf({ home, env: blank }), { model: "of-home", window: 1000, titles: false })
  })

  it.effect("Gemini CLI's settings of a trusted folder override the home folder's; ours theirs", function* () {
    const gemini = `{
        // as Gemini CLI has it
        "model": { "name": "of-gemini", "compressionThreshold": 0.7 },
        "context": { "fileName": "NOTES.md" }, "ui": { "theme": "dark" },
        "hooks": { "PreCompress": [{ "hooks": [{ "type": "command", "command": "note" }] }] },
        "mcpServers": { "files": { "command": "files-server" } }
      }`
    const home = `{"model": "of-home", "compressionThreshold": 0.2, "titles": false}`
    const read = yield* reading({ gemini, home, here: `{"model": "of-here"}` })
    const { files, notices, root, settings, sources } = read
    assert.strictEqual(settings.model, "of-here")
    assert.strictEqual(settings.compressionThreshold, 0.7)
    assert.deepStrictEqual(settings.memory?.fileNames, ["NOTES.md"])
    assert.strictEqual(settings.titles, false)
    assert.isUndefined(settings.mcpServers)
    const file = `${root}/here/.gemini/settings.json`
    assert.deepStrictEqual(sources.get("compressionThreshold"), [{ place: "gemini", name: file }])
    assert.deepStrictEqual(notices, [`${file}: mcpServers counts in ${root}/home/settings.json only; it is ignored`])
    assert.deepStrictEqual(Object.keys(files.workspace.hooks ?? {}), ["PreCompress"])
  })

  it.effect("ignores Gemini CLI's settings of an untrusted folder, with one line about it", function* () {
    const gemini = `{"model": {"compressionThreshold": 0.7}}`
    const { notices, root, settings } = yield* reading({ gemini, standing: "unknown" })
    assert.deepStrictEqual(settings, {})
    assert.deepStrictEqual(notices, [`${root}/here/.gemini/settings.json is ignored: the folder is not trusted`])
  })

  it.effect.each([
    [
      "Gemini CLI's of the working folder",
      { gemini: `{"model": {"compressionThreshold": 7}}` },
      "here/.gemini/settings.json, model.compressionThreshold: expected a fraction"
    ],
    [
      "the working folder",
      { here: `{"window": 0}` },
      "here/.palimpsest/settings.json, window: expected a whole number"
    ],
    ["a file that is no JSON", { home: `{` }, "home/settings.json: expected JSON"]
  ] as const)("an error names the file, the key and what was expected: %s", function* ([, files, place]) {
    const { message, root } = yield* failing(files)
    assert.isTrue(message.startsWith(`${root}/${place}`), message)
    assert.notInclude(message, "\n")
  })

  it.effect("reports unknown keys, and keys allowed only at home, with their file", function* () {
    const { notices, root, settings } = yield* reading({
      home: `{"modle": "m"}`,
      here: `{"sessionRetention": {"maxCount": 1}, "theme": "dark", "approve": "all"}`
    })
    assert.deepStrictEqual(settings, {})
    assert.deepStrictEqual(notices, [
      `${root}/home/settings.json: there is no setting modle (did you mean model?); it is ignored`,
      `${root}/here/.palimpsest/settings.json: there is no setting theme (did you mean terminal.theme?); it is ignored`,
      `${root}/here/.palimpsest/settings.json: sessionRetention counts in ${root}/home/settings.json only; it is ignored`,
      `${root}/here/.palimpsest/settings.json: approve counts in ${root}/home/settings.json only; it is ignored`
    ])
  })

  it.effect.each(["untrusted", "unknown"] as const)(
    "does not even read the file of a folder that is %s",
    function* (standing) {
      const { notices, root, settings } = yield* reading({ home: `{"window": 5}`, here: `{"window": }`, standing })
      assert.deepStrictEqual(settings, { window: 5 })
      assert.deepStrictEqual(notices, [`${root}/here/.palimpsest/settings.json is ignored: the folder is not trusted`])
    }
  )

  it.effect("does not follow a link into an untrusted folder", function* () {
    const fs = yield* FileSystem.FileSystem
    const { root, settings } = yield* laid({}, (folder) =>
      Effect.succeed(folder.includes("/bad") ? "untrusted" : "trusted")
    )
    yield* fs.makeDirectory(`${root}/bad/.palimpsest`, { recursive: true })
    yield* fs.writeFileString(`${root}/bad/.palimpsest/settings.json`, `{"window": 5}`)
    yield* fs.remove(`${root}/here/.palimpsest`, { recursive: true })
    yield* fs.symlink("../bad/.palimpsest", `${root}/here/.palimpsest`)
    const found = yield* Settings.use(({ read }) => read).pipe(Effect.provide(settings))
    assert.deepStrictEqual({ ...found.settings }, {})
    const bad = yield* fs.realPath(`${root}/bad/.palimpsest`)
    assert.deepStrictEqual(
      found.notices.map(({ text }) => text),
      [`${root}/here/.palimpsest/settings.json is ignored: it is in ${bad}, which is not trusted`]
    )
  })

  it.effect("a folder cannot name files outside of it, nor what is read there", function* () {
    const { notices, root, settings } = yield* reading({
      here: `{"includeDirectories": [".."], "loadMemoryFromIncludeDirectories": true, "ide": {"file": "../ide.json"}, "window": 5}`
    })
    assert.deepStrictEqual(settings, { window: 5 })
    assert.deepStrictEqual(
      notices,
      ["includeDirectories", "loadMemoryFromIncludeDirectories", "ide"].map(
        (key) =>
          `${root}/here/.palimpsest/settings.json: ${key} counts in ${root}/home/settings.json only; it is ignored`
      )
    )
  })

  it.effect.each([".env", "../x.md"])("a memory file needs a plain name that is not hidden: not %s", function* (name) {
    const { message } = yield* failing({ home: `{"memory": {"fileNames": ["A.md", "${name}"]}}` })
    assert.include(message, "expected a list of names without folders that do not begin with a dot")
  })

  it.effect("with trust checks disabled at home, a declined folder stays declined", function* () {
    const fs = yield* FileSystem.FileSystem
    const kept = yield* fs.makeTempDirectoryScoped()
    const answers = { environment: {}, user: kept, isOff: Effect.succeed(true) }
    const trust = yield* Effect.provide(Trust, FileTrust.layer(`${kept}/trusted-folders.json`, answers))
    const off = { home: `{"folderTrust": false}`, here: `{"window": 5}` }
    const { root, settings } = yield* laid(off, (folder) => Effect.orDie(trust.of(folder)))
    const read = Settings.use((service) => service.read).pipe(Effect.provide(settings))
    assert.deepStrictEqual({ ...(yield* read).settings }, { folderTrust: false, window: 5 })
    yield* trust.set(`${root}/here`, "untrusted")
    assert.deepStrictEqual({ ...(yield* read).settings }, { folderTrust: false })
    assert.isTrue(yield* SettingsSources.isTrustOff(`${root}/home`))
    const { root: other } = yield* laid({ home: `{"folderTrust": fals}`, here: `{"folderTrust": false}` })
    assert.isFalse(yield* SettingsSources.isTrustOff(`${other}/home`))
    assert.isFalse(yield* SettingsSources.isTrustOff(`${other}/none`))
  })

  it.effect("reports the source of each value, and the values of each file", function* () {
    const { root, settings, ...read } = yield* reading({
      home: `{"model": "a", "window": 1, "hooks": {"AfterTool": [1]}, "memory": {"maxDirs": 1}}`,
      here: `{"window": 2, "hooks": {"AfterTool": [2]}, "approve": "all"}`,
      env: { PALIMPSEST_MODEL: "b", PALIMPSEST_MEMORY_ON_TOUCH: "off" }
    })
    const home = { place: "home" as const, name: `${root}/home/settings.json` }
    const here = { place: "workspace" as const, name: `${root}/here/.palimpsest/settings.json` }
    assert.deepStrictEqual(Object.fromEntries(read.sources), {
      model: [{ place: "environment", name: "PALIMPSEST_MODEL" }],
      window: [here],
      "hooks.AfterTool": [home, here],
      "memory.maxDirs": [home],
      "memory.onTouch": [{ place: "environment", name: "PALIMPSEST_MEMORY_ON_TOUCH" }]
    })
    assert.deepStrictEqual(settings, {
      model: "b",
      window: 2,
      hooks: { AfterTool: [1, 2] },
      memory: { maxDirs: 1, onTouch: false }
    })
    assert.deepStrictEqual({ ...read.files.workspace }, { window: 2, hooks: { AfterTool: [2] } })
  })

  it.effect.each([
    ["a number", { PALIMPSEST_WINDOW: "64k" }, { window: 64_000 }],
    ["a switch in place of an object", { PALIMPSEST_LOOP_DETECTION: "off" }, { loopDetection: false }],
    ["Gemini CLI's own name", { GEMINI_MODEL: "g" }, { model: "g" }],
    ["ours, which is the stronger", { GEMINI_MODEL: "g", PALIMPSEST_MODEL: "p" }, { model: "p" }],
    ["what is blank, which is nothing", { PALIMPSEST_WINDOW: " ", GEMINI_MODEL: "" }, {}]
  ] as const)("the environment sets %s", function* ([, env, settings]) {
    assert.deepStrictEqual(yield* settingsOf({ env }), settings)
  })

  it.effect("an invalid variable is an error that names it and what was expected", function* () {
    const { message } = yield* failing({ env: { PALIMPSEST_MEMORY_MAX_DIRS: "many" } })
    assert.strictEqual(message, "PALIMPSEST_MEMORY_MAX_DIRS: expected a whole number of folders above 0, such as 200")
  })

  it.effect("variables cannot set home settings, so that no .env file of a folder can; this is reported", function* () {
    const { notices, root, settings } = yield* reading({ env: { PALIMPSEST_APPROVE: "all" } })
    assert.deepStrictEqual(settings, {})
    assert.deepStrictEqual(notices, [
      `PALIMPSEST_APPROVE: approve counts in ${root}/home/settings.json only; it is ignored`
    ])
  })

  it.effect("expands variables, except where settings are displayed", function* () {
    const { notices, root, settings, ...read } = yield* reading({
      home: `{"model": "$NAME", "ide": {"file": "$NONE"}}`,
      env: { NAME: "secret-model" }
    })
    assert.strictEqual(settings.model, "secret-model")
    assert.deepStrictEqual(read.written, { model: "$NAME", ide: { file: "$NONE" } })
    assert.deepStrictEqual(notices, [
      `${root}/home/settings.json, ide.file: $NONE is not set; it stays as it is written`
    ])
  })

  it.effect("expands a folder's settings with what commands see: no keys, nothing from .env files", function* () {
    const text = `{"model": "$PLACE", "memory": {"fileNames": ["\${MY_KEY:-usual}"], "boundaries": ["$GITHUB_TOKEN", "\${DSN}", "$ODD", "$GEMINI_MODEL", "$NONE"]}}`
    const env = {
      PLACE: "here",
      GITHUB_TOKEN: "hidden-one",
      DSN: "hidden-two",
      ODD: `AIza${"x".repeat(35)}`,
      MY_KEY: "hidden-three"
    }
    const dotEnv = { GEMINI_MODEL: "hidden-four" }
    const { notices, root, settings, ...read } = yield* reading({ here: text, env, dotEnv })
    const { memory } = settings
    assert.deepStrictEqual(memory?.boundaries, ["$GITHUB_TOKEN", "${DSN}", "$ODD", "$GEMINI_MODEL", "$NONE"])
    assert.deepStrictEqual(memory?.fileNames, ["usual"])
    assert.strictEqual(read.files.workspace.model, "here")
    const at = `${root}/here/.palimpsest/settings.json, memory.boundaries`
    const kept = (name: string) =>
      `${at}: $${name} is not available to the settings of a folder; it stays as it is written`
    assert.deepStrictEqual(notices, [
      ...["GITHUB_TOKEN", "DSN", "ODD", "GEMINI_MODEL"].map(kept),
      `${at}: $NONE is not set; it stays as it is written`
    ])
    const own = yield* settingsOf({ home: text, env, dotEnv })
    assert.deepStrictEqual(own?.memory?.boundaries, ["hidden-one", "hidden-two", env.ODD, "hidden-four", "$NONE"])
  })

  it.effect.each([
    ["a pipe, which is never opened", (file: string) => ["mkfifo", file], "expected a regular file"],
    ["a gigantic file", (file: string) => ["truncate", "-s", "2M", file], "expected settings; it has more than 1 MiB"],
    ["no text", (file: string) => ["cp", "/bin/true", file], "expected text in UTF-8"]
  ] as const)(
    "%s in place of the file is reported in one line, also for the working folder",
    function* ([, make, message]) {
      for (const place of ["home/settings.json", "here/.palimpsest/settings.json"]) {
        const { root, settings } = yield* laid({})
        const [command = "", ...args] = make(`${root}/${place}`)
        execFileSync(command, args)
        const error = yield* Effect.flip(Settings.use(({ read }) => read).pipe(Effect.provide(settings)))
        assert.isTrue(error.message.startsWith(`${root}/${place}: ${message}`), error.message)
        assert.notInclude(error.message, "\n")
      }
    }
  )

  it.effect("reports the state of each source even when one is broken", function* () {
    const { settings } = yield* laid({
      home: `{"window": 0}`,
      here: `{"maxTurns": 5}`,
      env: {
        PALIMPSEST_MODLE: "x",
        PALIMPSEST_TITLES: "perhaps",
        PALIMPSEST_SHELL_IDLE: "5",
        PALIMPSEST_CODE_CACHE: "/c",
        PALIMPSEST_MCP_TOKEN: "t"
      }
    })
    const states = yield* Settings.use((service) => service.states).pipe(Effect.provide(settings))
    assert.deepStrictEqual(
      states.files.map(({ place, state }) => [place, state._tag]),
      [
        ["home", "Broken"],
        ["workspace", "Counts"]
      ]
    )
    assert.deepStrictEqual(states.variables, [{ name: "PALIMPSEST_SHELL_IDLE", key: "shellIdle" }])
    assert.deepStrictEqual(
      states.broken.map(({ file }) => file),
      ["PALIMPSEST_TITLES"]
    )
    assert.deepStrictEqual(
      states.notices.map(({ text }) => text),
      ["PALIMPSEST_MODLE is no variable of this program (did you mean PALIMPSEST_MODEL?)"]
    )
    assert.deepStrictEqual({ ...states.settings }, { maxTurns: 5, shellIdle: 5 })
  })

  it.effect("reads a working folder that is the home folder once", function* () {
    const fs = yield* FileSystem.FileSystem
    const { root, settings } = yield* laid({ home: `{"hooks": {"AfterTool": [1]}, "approve": "all"}` })
    yield* fs.remove(`${root}/here/.palimpsest`, { recursive: true })
    yield* fs.symlink(`${root}/home`, `${root}/here/.palimpsest`)
    const found = yield* Settings.use(({ read }) => read).pipe(Effect.provide(settings))
    assert.deepStrictEqual({ ...found.settings }, { hooks: { AfterTool: [1] }, approve: "all" })
    assert.deepStrictEqual(
      found.notices.map(({ text }) => text),
      []
    )
  })
})

layer(NodeServices.layer)("a value written to a file", (it) => {
  it.effect("leaves the file's mode, or makes a private one, and can be removed", function* () {
    const fs = yield* FileSystem.FileSystem
    const { root, settings } = yield* laid({ home: `{"model": "m"} // mine\n` })
    yield* fs.chmod(`${root}/home/settings.json`, 0o640)
    const done = yield* Settings.use(
      Effect.fnUntraced(function* ({ set, unset }) {
        const files = [yield* set("home", ["window"], 5), yield* set("workspace", ["memory", "maxDirs"], 5)]
        const texts = [yield* fs.readFileString(files[0] ?? ""), yield* fs.readFileString(files[1] ?? "")]
        return { files, texts, gone: [yield* unset("home", ["window"]), yield* unset("home", ["titles"])] }
      })
    ).pipe(Effect.provide(settings))
    const files = [`${root}/home/settings.json`, `${root}/here/.palimpsest/settings.json`]
    assert.deepStrictEqual(done.files, files)
    assert.deepStrictEqual(done.texts, [
      `{"model": "m",\n  "window": 5\n} // mine\n`,
      `{\n  "memory": {"maxDirs": 5}\n}\n`
    ])
    assert.deepStrictEqual(done.gone, [files[0], undefined])
    const modes = yield* Effect.forEach(files, (file) => Effect.map(fs.stat(file), ({ mode }) => mode & 0o777))
    assert.deepStrictEqual(modes, [0o640, 0o600])
    for (const file of files) {
      // Where the working folder's file is locked.
      const names = (yield* fs.readDirectory(file.replace("/settings.json", ""))).filter((name) => name !== "locks")
      assert.deepStrictEqual(names, ["settings.json"])
    }
    assert.deepStrictEqual(yield* fs.readDirectory(`${root}/home/locks`), [])
  })

  it.effect("is refused where the working folder's file leads out of it", function* () {
    const fs = yield* FileSystem.FileSystem
    for (const link of ["settings.json", ".palimpsest"]) {
      const { root, settings } = yield* laid({})
      yield* fs.makeDirectory(`${root}/elsewhere`)
      yield* fs.writeFileString(`${root}/elsewhere/settings.json`, "{}")
      if (link === ".palimpsest") {
        yield* fs.remove(`${root}/here/.palimpsest`, { recursive: true })
        yield* fs.remove(`${root}/elsewhere/settings.json`)
        yield* fs.symlink(`${root}/elsewhere`, `${root}/here/.palimpsest`)
      } else yield* fs.symlink(`${root}/elsewhere/settings.json`, `${root}/here/.palimpsest/settings.json`)
      const error = yield* Effect.flip(
        Settings.use(({ set }) => set("workspace", ["window"], 5)).pipe(Effect.provide(settings))
      )
      assert.include(error.message, "out of the folder", link)
      const after = yield* Effect.option(fs.readFileString(`${root}/elsewhere/settings.json`))
      assert.strictEqual(
        Option.getOrElse(after, () => "{}"),
        "{}"
      )
    }
  })

  it.effect(
    "go through a link to another folder in the working folder, also one whose name begins with dots",
    function* () {
      const fs = yield* FileSystem.FileSystem
      const { root, settings } = yield* laid({})
      yield* fs.makeDirectory(`${root}/here/..shared`)
      yield* fs.remove(`${root}/here/.palimpsest`, { recursive: true })
      yield* fs.symlink("..shared", `${root}/here/.palimpsest`)
      yield* Settings.use(({ set }) => set("workspace", ["window"], 5_000)).pipe(Effect.provide(settings))
      assert.deepStrictEqual(JSON.parse(yield* fs.readFileString(`${root}/here/..shared/settings.json`)), {
        window: 5_000
      })
    }
  )
})

layer(NodeServices.layer)("permanent permissions", (it) => {
  const allowing = Effect.fnUntraced(function* (home: string, ...grants: ReadonlyArray<string>) {
    yield* Effect.forEach(grants, (grant) => Settings.use(({ allow }) => allow([grant])), {
      concurrency: "unbounded"
    }).pipe(Effect.provide(Layer.provide(FileSettings.layer(home, trusted), envFiles())))
  })

  it.effect("are stored privately in the home folder's file, also concurrently", function* () {
    const fs = yield* FileSystem.FileSystem
    const home = `${yield* fs.makeTempDirectoryScoped()}/home`
    yield* allowing(home, "edit", "shell:git")
    const text = yield* fs.readFileString(`${home}/settings.json`)
    // Which of them comes first is open.
    assert.match(text, /^\{\n {2}"allowed": \["(?:edit", "shell:git|shell:git", "edit)"\]\n\}\n$/)
    assert.strictEqual((yield* fs.stat(`${home}/settings.json`)).mode & 0o777, 0o600)
    assert.deepStrictEqual(yield* fs.readDirectory(home), ["settings.json"])
  })

  it.effect("are taken back one by one", function* () {
    const fs = yield* FileSystem.FileSystem
    const home = `${yield* fs.makeTempDirectoryScoped()}/home`
    yield* allowing(home, "edit in /a", "shell:git")
    const files = Layer.provide(FileSettings.layer(home, trusted), envFiles())
    const file = yield* Effect.provide(
      Settings.use(({ disallow }) => disallow(["edit in /a", "none"])),
      files
    )
    assert.strictEqual(yield* fs.readFileString(file), `{\n  "allowed": ["shell:git"]\n}\n`)
  })

  it.effect("are stored through a link", function* () {
    const fs = yield* FileSystem.FileSystem
    const root = yield* fs.makeTempDirectoryScoped()
    yield* fs.makeDirectory(`${root}/home`)
    yield* fs.writeFileString(`${root}/mine.json`, `{"window": 5} // mine\n`)
    yield* fs.symlink(`${root}/mine.json`, `${root}/home/settings.json`)
    yield* allowing(`${root}/home`, "edit")
    assert.strictEqual(
      yield* fs.readFileString(`${root}/mine.json`),
      `{"window": 5,\n  "allowed": ["edit"]\n} // mine\n`
    )
  })

  it.effect("do not touch an invalid file, and report it", function* () {
    const fs = yield* FileSystem.FileSystem
    const home = yield* fs.makeTempDirectoryScoped()
    yield* fs.writeFileString(`${home}/settings.json`, `{"window": "big"}`)
    const error = yield* Effect.flip(allowing(home, "edit"))
    assert.strictEqual(
      error.message,
      `${home}/settings.json, window: expected a whole number of tokens, such as 200000`
    )
    assert.strictEqual(yield* fs.readFileString(`${home}/settings.json`), `{"window": "big"}`)
  })
})

describe("FileExperiments", () => {
  layer(NodeServices.layer)((it) => {
    const asked = Effect.fnUntraced(function* (
      content: string | undefined,
      env?: (file: string) => object,
      make: (file: string) => void = () => undefined
    ) {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = path.join(folder, "experiments.json")
      if (content !== undefined) yield* fs.writeFileString(file, content)
      make(file)
      const warnings: Array<unknown> = []
      const numbers = yield* Effect.gen(function* () {
        const { number } = yield* Experiments
        return yield* Effect.forEach([compressionThreshold, compressionThreshold, "toString"], number)
      }).pipe(
        Effect.provide(
          FileExperiments.layer(env === undefined ? file : path.join(folder, "none.json")).pipe(
            Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromUnknown(env?.(file) ?? {}))),
            Layer.provideMerge(Logger.layer([Logger.make(({ message }) => void warnings.push(message))]))
          )
        )
      )
      return { numbers, warnings: warnings.length }
    })

    it.effect.each([
      ["a number by its name", `{"CONTEXT_COMPRESSION_THRESHOLD": 0.6, "other": 1}`, 0.6, 0],
      ["a number by Gemini CLI's number", `{"45740197": 0.6}`, 0.6, 0],
      ["a number by the name it had before", `{"compressionThreshold": 0.6}`, 0.6, 0],
      [
        "a flag as Gemini CLI reads it",
        `{"flags": [{"flagId": 1, "boolValue": true}, {"flagId": 45740197, "floatValue": 0.6}], "experimentIds": [9]}`,
        0.6,
        0
      ],
      ["none where flags are no list, with one warning", `{"flags": {"45740197": 0.6}}`, undefined, 1],
      ["none where the file is broken, with one warning", `{"compressionThreshold":`, undefined, 1],
      ["none where a value is no number, with one warning", `{"compressionThreshold": "0.6"}`, undefined, 1]
    ] as const)("%s", function* ([, content, number, warnings]) {
      assert.deepStrictEqual(yield* asked(content), { numbers: [number, number, undefined], warnings })
    })

    it.effect.each([
      ["a pipe, which is not opened", (file: string) => ["mkfifo", file]],
      ["more than memory holds", (file: string) => ["truncate", "-s", "1T", file]],
      ["no text", (file: string) => ["sh", "-c", `printf '{"compressionThreshold": 0.6, "\\377": 1}' > '${file}'`]]
    ] as const)("are empty where the file is %s, with one warning", function* ([, make]) {
      const { numbers, warnings } = yield* asked(undefined, undefined, (file) => {
        const [command = "", ...args] = make(file)
        execFileSync(command, args)
      })
      assert.deepStrictEqual({ numbers, warnings }, { numbers: [undefined, undefined, undefined], warnings: 1 })
    })

    it.effect("read exactly 1 MiB", function* () {
      const { numbers, warnings } = yield* asked(`{"compressionThreshold": 0.6}`.padEnd(1_048_576))
      assert.deepStrictEqual({ number: numbers[0], warnings }, { number: 0.6, warnings: 0 })
    })

    it.effect("can be in another file named by GEMINI_EXP", function* () {
      const { numbers } = yield* asked(`{"compressionThreshold": 0.3}`, (file) => ({ GEMINI_EXP: file }))
      assert.strictEqual(numbers[0], 0.3)
    })
  })
})
