import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, layer } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Layer, Logger, Path } from "effect"
import * as FileExperiments from "../../src/layers/FileExperiments.ts"
import * as FileSettings from "../../src/layers/FileSettings.ts"
import { Experiments } from "../../src/services/Experiments.ts"
import { Settings } from "../../src/services/Settings.ts"

interface Files {
  readonly home?: string
  readonly here?: string
  readonly env?: Readonly<Record<string, string>>
}

/** What is read where these files lie in the home folder and the working folder. */
const reading = Effect.fnUntraced(function* ({ env = {}, here, home }: Files) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped()
  const folders = { home: path.join(root, "home"), here: path.join(root, "here") }
  yield* fs.makeDirectory(path.join(folders.here, ".palimpsest"), { recursive: true })
  yield* fs.makeDirectory(folders.home)
  if (home !== undefined) yield* fs.writeFileString(path.join(folders.home, "settings.json"), home)
  if (here !== undefined) yield* fs.writeFileString(path.join(folders.here, ".palimpsest", "settings.json"), here)
  const inFolder = Layer.succeed(Path.Path, { ...path, resolve: (...parts) => path.resolve(folders.here, ...parts) })
  const result = yield* Settings.use(({ read }) => read).pipe(
    Effect.provide(
      FileSettings.layer(folders.home).pipe(
        Layer.provide(inFolder),
        Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
      )
    ),
    Effect.result
  )
  return { result, root }
})

const settingsOf = (files: Files) =>
  Effect.map(reading(files), ({ result }) => (result._tag === "Success" ? { ...result.success.settings } : undefined))

layer(NodeServices.layer)("FileSettings", (it) => {
  it.effect("no files, no settings", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* settingsOf({}), {})
    })
  )

  it.effect("the later place wins: home, working folder, environment", () =>
    Effect.gen(function* () {
      const home = `{"model": "of-home", "window": 1000, "titles": false}`
      const here = `{"model": "of-here", "window": 2000}`
      assert.deepStrictEqual(yield* settingsOf({ home }), { model: "of-home", window: 1000, titles: false })
      assert.deepStrictEqual(yield* settingsOf({ home, here }), { model: "of-here", window: 2000, titles: false })
      const env = { PALIMPSEST_MODEL: "of-env" }
      assert.deepStrictEqual(yield* settingsOf({ home, here, env }), { model: "of-env", window: 2000, titles: false })
      const blank = { PALIMPSEST_MODEL: "  " }
      assert.deepStrictEqual(yield* settingsOf({ home, env: blank }), { model: "of-home", window: 1000, titles: false })
    })
  )

  for (const [rule, files, place] of [
    ["the home folder", { home: `{"window": "big"}` }, "home/settings.json, window: expected a whole number"],
    [
      "the working folder",
      { here: `{"window": 0}` },
      "here/.palimpsest/settings.json, window: expected a whole number"
    ],
    ["a file that is no JSON", { home: `{` }, "home/settings.json: expected JSON"]
  ] as const) {
    it.effect(`what is wrong names the file, the key and what was expected: ${rule}`, () =>
      Effect.gen(function* () {
        const { result, root } = yield* reading(files)
        assert.strictEqual(result._tag, "Failure")
        const message = result._tag === "Failure" ? result.failure.message : ""
        assert.isTrue(message.startsWith(`${root}/${place}`), message)
        assert.notInclude(message, "\n")
      })
    )
  }

  it.effect("keys that mean nothing are told with their file, and so is what only counts at home", () =>
    Effect.gen(function* () {
      const { result, root } = yield* reading({
        home: `{"modle": "m"}`,
        here: `{"sessionRetention": {"maxCount": 1}, "theme": "dark", "approve": "all"}`
      })
      assert.deepStrictEqual(result._tag === "Success" ? result.success : undefined, {
        settings: {},
        notices: [
          `${root}/home/settings.json: there is no setting modle; it was left out`,
          `${root}/here/.palimpsest/settings.json: there is no setting theme; it was left out`,
          `${root}/here/.palimpsest/settings.json: sessionRetention counts in ${root}/home/settings.json only; it was left out`,
          `${root}/here/.palimpsest/settings.json: approve counts in ${root}/home/settings.json only; it was left out`
        ]
      })
    })
  )
})

layer(NodeServices.layer)("what was allowed for always", (it) => {
  const allowing = Effect.fnUntraced(function* (home: string, ...grants: ReadonlyArray<string>) {
    yield* Effect.forEach(grants, (grant) => Settings.use(({ allow }) => allow([grant])), {
      concurrency: "unbounded"
    }).pipe(Effect.provide(FileSettings.layer(home)))
  })

  it.effect("is kept in the home folder's file, for nobody else to read, also by two at once", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const home = `${yield* fs.makeTempDirectoryScoped()}/home`
      yield* allowing(home, "edit", "shell:git")
      const text = yield* fs.readFileString(`${home}/settings.json`)
      assert.strictEqual(text, `{\n  "allowed": ["edit", "shell:git"]\n}\n`)
      assert.strictEqual((yield* fs.stat(`${home}/settings.json`)).mode & 0o777, 0o600)
      assert.deepStrictEqual(yield* fs.readDirectory(home), ["settings.json"])
    })
  )

  it.effect("is kept where a link leads", () =>
    Effect.gen(function* () {
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
  )

  it.effect("does not touch a file that is wrong, and says what is", () =>
    Effect.gen(function* () {
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
  )
})

describe("FileExperiments", () => {
  layer(NodeServices.layer)((it) => {
    const asked = Effect.fnUntraced(function* (content: string | undefined, env?: (file: string) => object) {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      const file = path.join(folder, "experiments.json")
      if (content !== undefined) yield* fs.writeFileString(file, content)
      const warnings: Array<unknown> = []
      const numbers = yield* Effect.gen(function* () {
        const { number } = yield* Experiments
        return yield* Effect.forEach(["compressionThreshold", "compressionThreshold", "toString"], number)
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

    for (const [rule, content, number, warnings] of [
      ["a number by its name", `{"compressionThreshold": 0.6, "other": 1}`, 0.6, 0],
      ["none where there is no file", undefined, undefined, 0],
      ["none where the file is broken, with one warning", `{"compressionThreshold":`, undefined, 1],
      ["none where a value is no number, with one warning", `{"compressionThreshold": "0.6"}`, undefined, 1]
    ] as const) {
      it.effect(rule, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* asked(content), { numbers: [number, number, undefined], warnings })
        })
      )
    }

    it.effect("spec 15: GEMINI_EXP names another file", () =>
      Effect.gen(function* () {
        const { numbers } = yield* asked(`{"compressionThreshold": 0.3}`, (file) => ({ GEMINI_EXP: file }))
        assert.strictEqual(numbers[0], 0.3)
      })
    )
  })
})
