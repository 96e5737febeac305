import { Config, Effect, FileSystem, Layer, Option, Path, type PlatformError, Result, Semaphore } from "effect"
import { pid } from "node:process"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { mergeSettings, notHeeded, parseSettings, type ReadSettings, withAllowed } from "../domain/Settings.ts"
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

      const homeFile = path.resolve(home, "settings.json")
      const wrong = (file: string, key: string | undefined, message: string) =>
        new SettingsError({ file, key, message: `${file}${key === undefined ? "" : `, ${key}`}: ${message}` })

      const textOf = (file: string) =>
        fs.readFileString(file).pipe(
          Effect.catchIf(isNotFound, () => Effect.void),
          Effect.mapError((error) => wrong(file, undefined, `cannot be read: ${diskTrouble(error)}`))
        )

      const readFile = Effect.fnUntraced(function* (file: string): Effect.fn.Return<ReadSettings, SettingsError> {
        const text = yield* textOf(file)
        if (text === undefined) return nothing
        const read = parseSettings(text)
        return Result.isFailure(read) ? yield* wrong(file, read.failure.key, read.failure.message) : read.success
      })

      const one = yield* Semaphore.make(1)
      const allow = Effect.fn("Settings.allow")(
        function* (grants: ReadonlyArray<string>): Effect.fn.Return<void, SettingsError> {
          const text = yield* textOf(homeFile)
          const next = withAllowed(text ?? "", grants)
          if (Result.isFailure(next)) return yield* wrong(homeFile, next.failure.key, next.failure.message)
          if (next.success === text) return
          // Who keeps the file elsewhere and links to it finds it changed there.
          const file = yield* Effect.orElseSucceed(fs.realPath(homeFile), () => homeFile)
          const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${pid}.tmp`)
          yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 }).pipe(
            Effect.andThen(fs.remove(temporary, { force: true })),
            Effect.andThen(fs.writeFileString(temporary, next.success, { flag: "wx", mode: 0o600 })),
            Effect.andThen(fs.rename(temporary, file)),
            Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true }))),
            Effect.mapError((error) => wrong(file, undefined, `cannot be written: ${diskTrouble(error)}`))
          )
        },
        Effect.uninterruptible,
        one.withPermit
      )

      const read = Effect.gen(function* () {
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
            ...notHeeded(here.settings).map(
              (key) => `${workspaceFile}: ${key} counts in ${homeFile} only; it was left out`
            )
          ]
        }
      })
      return { read: Effect.withSpan(read, "Settings.read"), allow }
    })
  )
