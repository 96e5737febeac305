import { Config, Effect, FileSystem, Layer, Option, Path, type PlatformError, Result } from "effect"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { mergeSettings, parseSettings, type ReadSettings } from "../domain/Settings.ts"
import { Settings, SettingsError } from "../services/Settings.ts"

const isNotFound = (error: PlatformError.PlatformError) => error.reason._tag === "NotFound"
const nothing: ReadSettings = { settings: {}, unknown: [] }

/** What is blank counts as not set, as shells and env files leave it. */
const modelOfEnvironment = Config.option(Config.NonEmptyString("PALIMPSEST_MODEL")).pipe(
  Effect.orElseSucceed(Option.none<string>),
  Effect.map(Option.map((name) => name.trim())),
  Effect.map(Option.filter((name) => name !== ""))
)

/**
 * Settings from `settings.json` in this home folder, then `.palimpsest/settings.json` in the working folder, then the
 * environment, the later one winning (CLI contract, Environment). Files are read when they are asked for; none is made.
 */
export const layer = (home: string): Layer.Layer<Settings, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Settings,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path

      const readFile = Effect.fnUntraced(function* (file: string): Effect.fn.Return<ReadSettings, SettingsError> {
        const wrong = (key: string | undefined, message: string) =>
          new SettingsError({ file, key, message: `${file}${key === undefined ? "" : `, ${key}`}: ${message}` })
        const text = yield* fs.readFileString(file).pipe(
          Effect.catchIf(isNotFound, () => Effect.void),
          Effect.mapError((error) => wrong(undefined, `cannot be read: ${diskTrouble(error)}`))
        )
        if (text === undefined) return nothing
        const read = parseSettings(text)
        return Result.isFailure(read) ? yield* wrong(read.failure.key, read.failure.message) : read.success
      })

      const read = Effect.gen(function* () {
        const homeFile = path.resolve(home, "settings.json")
        const workspaceFile = path.resolve(".palimpsest", "settings.json")
        const own = yield* readFile(homeFile)
        const here = homeFile === workspaceFile ? nothing : yield* readFile(workspaceFile)
        const model = yield* modelOfEnvironment
        const without = (file: string, keys: ReadonlyArray<string>) =>
          keys.map((key) => `${file}: there is no setting ${key}; it was left out`)
        return {
          settings: {
            ...mergeSettings(own.settings, here.settings),
            ...Option.match(model, { onNone: () => ({}), onSome: (name) => ({ model: name }) })
          },
          notices: [
            ...without(homeFile, own.unknown),
            ...without(workspaceFile, here.unknown),
            ...(here.settings.sessionRetention === undefined
              ? []
              : [`${workspaceFile}: sessionRetention counts in ${homeFile} only; it was left out`])
          ]
        }
      })
      return { read: Effect.withSpan(read, "Settings.read") }
    })
  )
