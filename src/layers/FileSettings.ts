import {
  ByteSize,
  Config,
  ConfigProvider,
  Effect,
  FileSystem,
  Layer,
  Option,
  Path,
  type PlatformError,
  Predicate,
  Result,
  Semaphore
} from "effect"
import { decode } from "../domain/Bytes.ts"
import { childEnvironment } from "../domain/ChildEnvironment.ts"
import { diskTrouble, isNotThere } from "../domain/DiskTrouble.ts"
import { nearest } from "../domain/Nearest.ts"
import { pathText, translated } from "../domain/GeminiSettings.ts"
import { isHomeOnly, notHeeded, type SettingsFile } from "../domain/Settings.ts"
import {
  dotted,
  isCombined,
  keyOf,
  leaves,
  mergeSettings,
  mergeValues,
  unheeded,
  unknownText,
  valueAt,
  valueOf,
  variables,
  withValue
} from "../domain/SettingsKey.ts"
import {
  environmentNames,
  jsonOf,
  nothingRead,
  type ReadSettings,
  settingsOf,
  type SettingsProblem,
  withAllowed,
  withoutSetting,
  withSetting
} from "../domain/SettingsText.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { EnvFiles } from "../services/EnvFiles.ts"
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import { read as readWhole } from "../services/RegularFile.ts"
import {
  type FileState,
  Settings,
  SettingsError,
  type SettingsOrigin,
  type SettingsPlace,
  type SettingsSource
} from "../services/Settings.ts"
import type { Standing } from "../services/Trust.ts"
import * as WholeFile from "../services/WholeFile.ts"
import * as Sha256 from "./Sha256.ts"
import * as ThisProcess from "./ThisProcess.ts"

/** No settings are that long. */
const mostBytes = ByteSize.mebibytes(1)

const wrong = (file: string, key: string | undefined, message: string) =>
  new SettingsError({
    file,
    key,
    isInput: true,
    message: `${quoted(file)}${key === undefined ? "" : `, ${key}`}: ${message}`
  })

const trouble = (file: string, what: "read" | "written") => (error: PlatformError.PlatformError) =>
  new SettingsError({
    file,
    key: undefined,
    isInput: false,
    message: `${quoted(file)}: cannot be ${what}: ${diskTrouble(error)}`
  })

/** No variable has so many words in its name. */
const mostWords = 12

/** Where a file really is; undefined: there is none. */
const realOf = (file: string): Effect.Effect<string | undefined, SettingsError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) => fs.realPath(file)).pipe(
    Effect.catchIf(isNotThere, () => Effect.undefined),
    Effect.mapError(trouble(file, "read"))
  )

/** The text of a regular file of bounded size; undefined: there is none. */
const textOf = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<string | undefined, SettingsError, FileSystem.FileSystem> {
  const place = yield* realOf(file)
  if (place === undefined) return undefined
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(place).pipe(Effect.mapError(trouble(file, "read")))
  if (type !== "File") return yield* wrong(file, undefined, "expected a regular file of settings; it is none")
  if (ByteSize.isGreaterThan(size, mostBytes)) {
    return yield* wrong(file, undefined, "expected settings; it has more than 1 MiB")
  }
  const bytes = yield* readWhole(place, quoted(file)).pipe(
    Effect.mapError(({ message }) => new SettingsError({ file, key: undefined, isInput: true, message }))
  )
  const { text, valid } = decode(bytes)
  return valid ? text : yield* wrong(file, undefined, "expected text in UTF-8")
})

/** A variable of the environment; what is blank counts as not set, as shells and env files leave it. */
const variable = (name: string): Effect.Effect<string | undefined> =>
  Config.option(Config.String(name)).pipe(
    Effect.orElseSucceed(Option.none<string>),
    Effect.map(Option.filter((value) => value.trim() !== "")),
    Effect.map(Option.getOrUndefined)
  )

type Variables = Readonly<Record<string, string | undefined>>

/** What a file says, and which variables that it names it may not have. */
interface ReadFile extends ReadSettings {
  readonly withheld: ReadonlySet<string>
}

/** What a file says, with those variables filled in that it may have. */
const readFile = Effect.fnUntraced(function* (
  file: string,
  mayHave: (values: Variables) => Variables = (values) => values
): Effect.fn.Return<ReadFile | undefined, SettingsError, FileSystem.FileSystem> {
  const text = yield* textOf(file)
  if (text === undefined) return undefined
  const json = jsonOf(text)
  if (Result.isFailure(json)) return yield* wrong(file, json.failure.key, json.failure.message)
  return yield* filledIn(file, json.success, mayHave)
})

/** Settings of a file with the variables that they name. */
const filledIn = Effect.fnUntraced(function* (
  file: string,
  written: Readonly<Record<string, unknown>>,
  mayHave: (values: Variables) => Variables
): Effect.fn.Return<ReadFile, SettingsError> {
  const names = environmentNames(written)
  const values = yield* Effect.forEach(names, (name) => Effect.map(variable(name), (value) => [name, value] as const))
  const given = mayHave(Object.fromEntries(values))
  const withheld = values.flatMap(([name, value]) => (value === undefined || given[name] !== undefined ? [] : [name]))
  const read = settingsOf(written, given)
  return Result.isFailure(read)
    ? yield* wrong(file, read.failure.key, read.failure.message)
    : { ...read.success, withheld: new Set(withheld) }
})

/**
 * What Gemini CLI's settings of a folder say here: the keys that `config import gemini` takes, and a line for each value that
 * cannot be what it should be. All else in it is for Gemini CLI alone.
 */
const readGeminiFile = Effect.fnUntraced(function* (
  file: string,
  mayHave: (values: Variables) => Variables
): Effect.fn.Return<ReadFile | undefined, SettingsError, FileSystem.FileSystem> {
  const text = yield* textOf(file)
  if (text === undefined) return undefined
  const json = jsonOf(text)
  if (Result.isFailure(json)) return yield* wrong(file, json.failure.key, json.failure.message)
  const { left, taken } = translated(json.success, {})
  const unfit = left.find(({ why }) => why.startsWith("expected "))
  if (unfit !== undefined) return yield* wrong(file, pathText(unfit.from), unfit.why)
  const own = taken.reduce<unknown>((whole, { to, value }) => withValue(whole, to, value), {})
  return yield* filledIn(file, Predicate.isObject(own) ? { ...own } : {}, mayHave)
})

const settingsFile = (path: Path.Path, home: string): string => path.resolve(home, "settings.json")

/**
 * Whether the person wants no questions about folders: `folderTrust` is false in the home folder's file. A file that is broken
 * says nothing of that kind.
 */
export const isTrustOff = (home: string): Effect.Effect<boolean, never, FileSystem.FileSystem | Path.Path> =>
  Path.Path.use((path) => readFile(settingsFile(path, home))).pipe(
    Effect.map((read) => read?.settings.folderTrust === false),
    Effect.orElseSucceed(() => false)
  )

/** What variables of the environment set. */
const readEnvironment = Effect.gen(function* () {
  let settings: unknown = {}
  const set: Array<{ readonly name: string; readonly key: string }> = []
  const broken: Array<SettingsError> = []
  for (const { name, path } of variables) {
    const isModel = path.length === 1 && path[0] === "model"
    // Gemini CLI's own name for it counts where ours is not set.
    const [used, text] =
      isModel && (yield* variable(name)) === undefined
        ? (["GEMINI_MODEL", yield* variable("GEMINI_MODEL")] as const)
        : ([name, yield* variable(name)] as const)
    const key = text === undefined ? undefined : keyOf(dotted(path))
    if (text === undefined || key === undefined || !("accepts" in key)) continue
    const found = valueOf(key, text.trim())
    if (found === undefined) {
      broken.push(
        new SettingsError({
          file: used,
          key: dotted(path),
          isInput: true,
          message: `${used}: expected ${key.expected}`
        })
      )
      continue
    }
    settings = withValue(settings, path, found.value)
    set.push({ name: used, key: dotted(path) })
  }
  const silent = yield* Effect.filter(unheeded, ({ name }) =>
    Effect.map(variable(name), (value) => value !== undefined)
  )
  return { settings, set, broken, silent }
})

/** Names of this program's that are no settings. */
const otherNames = ["PALIMPSEST_HOME"]

/** Variables of this program's kind that mean nothing. */
const strayVariables = Effect.gen(function* () {
  const provider = yield* ConfigProvider.ConfigProvider
  const stray: Array<string> = []
  const known = new Set([...[...variables, ...unheeded].map(({ name }) => name), ...otherNames])
  const walk = Effect.fnUntraced(function* (place: ReadonlyArray<string>): Effect.fn.Return<void> {
    const node = yield* Effect.orElseSucceed(provider.load(place), () => undefined)
    if (node === undefined) return
    const name = place.join("_")
    if (node.value !== undefined && place.length > 1 && !known.has(name)) stray.push(name)
    if (node._tag === "Record" && place.length < mostWords) {
      for (const word of node.keys) yield* walk([...place, word])
    }
  })
  yield* walk(["PALIMPSEST"])
  return stray.map((name) => {
    const meant = nearest(name, [...known], 3)
    return `${name} is no variable of this program${meant === undefined ? "" : ` (did you mean ${meant}?)`}`
  })
})

/** What variables set, as settings. */
const fromEnvironment = (set: unknown): SettingsFile => mergeSettings({}, Predicate.isObject(set) ? set : {})

/** What a file says, and whether it counts. */
interface Looked {
  readonly state: FileState
  readonly read: ReadSettings
}

/** What the files of some places, or of all, say together: only the first has a say in what counts at home alone. */
const merged = (files: ReadonlyArray<Looked>, ...of: ReadonlyArray<SettingsOrigin>): SettingsFile => {
  const [first = {}, ...others] = files
    .filter(({ state: { place } }) => of.length === 0 || of.includes(place))
    .map(({ read: { settings } }) => settings)
  return others.reduce(mergeSettings, first)
}

/**
 * Settings from `settings.json` in this home folder, then, in the working folder where that is trusted, from Gemini CLI's
 * `.gemini/settings.json` and from `.palimpsest/settings.json`, then the environment, the later one winning. Files are read when they are asked for;
 * none is made. The environment is that of the time when the layer is built, with the `.env` files beneath it.
 */
export const layer = (
  home: string,
  trust: (folder: string) => Effect.Effect<Standing, { readonly message: string }>
): Layer.Layer<Settings, never, EnvFiles | FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Settings,
    Effect.gen(function* () {
      const { variables: beneath } = yield* EnvFiles
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const provider = yield* ConfigProvider.ConfigProvider
      const here = <A, E>(work: Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>): Effect.Effect<A, E> =>
        work.pipe(
          Effect.provideService(FileSystem.FileSystem, fs),
          Effect.provideService(Path.Path, path),
          Effect.provideService(ConfigProvider.ConfigProvider, provider)
        )

      const homeFile = settingsFile(path, home)
      const fileOf = (place: SettingsPlace) =>
        place === "home" ? homeFile : path.resolve(".palimpsest", "settings.json")

      /** A working folder's lock lies at home: nobody finds it among their files, and none comes along with a clone. */
      const lockOf = (place: SettingsPlace) =>
        place === "home"
          ? FileLock.besides(path, homeFile)
          : path.join(home, "locks", `.${Sha256.hashSync(fileOf(place))}.lock`)

      /** Of variables a folder's file has what commands see too: no keys, and nothing of `.env` files. */
      const commands = (values: Variables): Variables =>
        childEnvironment(Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== beneath[name])))

      const noticesOf = (file: string, { missing, unknown, withheld, written }: ReadFile, isHome: boolean) => [
        ...unknown.map((key) => `${quoted(file)}: ${unknownText(key)}; it was left out`),
        ...missing.map(({ key, name }) => {
          const why = withheld.has(name) ? "is for no folder's settings, as no command sees it" : "is not set"
          return `${quoted(file)}, ${key}: $${name} ${why}; it stays as it is written`
        }),
        ...(isHome ? [] : notHeeded(written)).map(
          (key) => `${quoted(file)}: ${key} counts in ${quoted(homeFile)} only; it was left out`
        )
      ]

      const lookAt = Effect.fnUntraced(function* (
        place: SettingsOrigin,
        file: string,
        why: Effect.Effect<string | undefined, SettingsError>
      ): Effect.fn.Return<Looked> {
        const of = (state: FileState["state"], read = nothingRead): Looked => ({ state: { place, file, state }, read })
        return yield* Effect.gen(function* () {
          if ((yield* here(realOf(file))) === undefined) return of({ _tag: "Absent" })
          const left = yield* why
          if (left !== undefined) return of({ _tag: "LeftOut", why: left })
          const isHome = place === "home"
          const read = yield* here(
            place === "gemini" ? readGeminiFile(file, commands) : readFile(file, isHome ? undefined : commands)
          )
          if (read === undefined) return of({ _tag: "Absent" })
          const notices = noticesOf(file, read, isHome)
          const heeded = isHome
            ? read
            : {
                ...read,
                settings: mergeSettings({}, read.settings),
                written: Object.fromEntries(Object.entries(read.written).filter(([name]) => !isHomeOnly(name)))
              }
          return of({ _tag: "Counts", settings: heeded.settings, notices }, heeded)
        }).pipe(Effect.catch((error) => Effect.succeed(of({ _tag: "Broken", error }))))
      })

      /** Why nothing is taken of a file of the working folder: the folder is not trusted, or the one that a link leads to. */
      const whyNot = Effect.fnUntraced(function* (file: string): Effect.fn.Return<string | undefined, SettingsError> {
        const [homeReal, hereReal] = [yield* here(realOf(homeFile)), yield* here(realOf(file))]
        if (homeFile === file || (hereReal !== undefined && homeReal === hereReal)) return "same"
        const leads = hereReal === undefined ? [] : [path.dirname(hereReal)]
        for (const [index, folder] of [path.resolve("."), ...leads].entries()) {
          const standing = yield* Effect.result(trust(folder))
          if (Result.isFailure(standing)) {
            return `it is not known whether the folder is trusted: ${standing.failure.message}`
          }
          if (standing.success !== "trusted") {
            return index === 0
              ? `the folder is not trusted; "palimpsest trust" says that it is`
              : `it lies in ${quoted(folder)}, which is not trusted; "palimpsest trust" says that it is`
          }
        }
        return undefined
      })

      const all = Effect.gen(function* () {
        const folderFile = fileOf("workspace")
        const geminiFile = path.resolve(".gemini", "settings.json")
        const own = yield* lookAt("home", homeFile, Effect.undefined)
        const beneath = yield* lookAt("gemini", geminiFile, whyNot(geminiFile))
        const theirs = yield* lookAt("workspace", folderFile, whyNot(folderFile))
        const { silent, ...said } = yield* Effect.provideService(
          readEnvironment,
          ConfigProvider.ConfigProvider,
          provider
        )
        const environment = {
          ...said,
          notices: silent.map(
            ({ name, path: key }) => `${name}: ${key[0] ?? ""} counts in ${quoted(homeFile)} only; it was left out`
          )
        }
        // Most folders have no settings of Gemini CLI: of those that are not there nobody is told.
        const isTold = ({ state: { state } }: Looked) => !(state._tag === "LeftOut" && state.why === "same")
        const files = [own, ...(beneath.state.state._tag === "Absent" ? [] : [beneath]), theirs].filter(isTold)
        const notices = [
          ...files.flatMap(({ state: { file, state: how } }) =>
            how._tag === "Counts"
              ? how.notices
              : how._tag === "LeftOut"
                ? [`${quoted(file)} was left out: ${how.why}`]
                : []
          ),
          ...environment.notices
        ]
        return { files, environment, notices }
      })

      const states = Effect.gen(function* () {
        const { environment, files } = yield* all
        const stray = yield* Effect.provideService(strayVariables, ConfigProvider.ConfigProvider, provider)
        return {
          files: files.map(({ state }) => state),
          variables: environment.set,
          broken: environment.broken,
          notices: [...environment.notices, ...stray],
          settings: mergeSettings(merged(files), fromEnvironment(environment.settings))
        }
      })

      const read = Effect.gen(function* () {
        const { environment, files, notices } = yield* all
        for (const { state } of files) if (state.state._tag === "Broken") return yield* state.state.error
        const [first] = environment.broken
        if (first !== undefined) return yield* first
        const settings = mergeSettings(merged(files), fromEnvironment(environment.settings))
        const layers = [
          ...files.map(({ read: { written }, state: { file, place } }) => ({
            written,
            sourceOf: (): SettingsSource => ({ place, name: file })
          })),
          {
            written: environment.settings,
            sourceOf: (key: string): SettingsSource => ({
              place: "environment",
              name: environment.set.find((one) => one.key === key)?.name ?? key
            })
          }
        ]
        const written = layers.reduce<unknown>((weak, one) => mergeValues(weak, one.written), {})
        const sources = leaves(written).map(({ path: at }) => {
          const key = dotted(at)
          const from = layers.filter((one) => valueAt(one.written, at) !== undefined).map((one) => one.sourceOf(key))
          return [key, isCombined(at) ? from : from.slice(-1)] as const
        })
        return {
          settings,
          notices,
          written,
          sources: new Map(sources),
          files: { home: merged(files, "home"), workspace: merged(files, "gemini", "workspace") }
        }
      })

      const one = yield* Semaphore.make(1)

      /** Where a file really is that is written to; a working folder's may not lead out of it. */
      const writtenPlace = Effect.fnUntraced(function* (
        place: SettingsPlace,
        named: string
      ): Effect.fn.Return<string, SettingsError> {
        // Who keeps the file elsewhere and links to it finds it changed there.
        const file = (yield* here(realOf(named))) ?? named
        if (place === "workspace") {
          const root = (yield* here(realOf(path.resolve(".")))) ?? path.resolve(".")
          const there = (yield* here(realOf(named))) ?? (yield* here(realOf(path.dirname(named)))) ?? root
          const way = path.relative(root, there)
          if (way.startsWith("..") || path.isAbsolute(way)) {
            return yield* wrong(named, undefined, `it leads to ${quoted(there)}, out of the folder; change it there`)
          }
        }
        return file
      })

      /** The text of a file changed by a function of what it is then, all of it at once; undefined: it stays as it is. */
      const change = Effect.fnUntraced(
        function* (
          place: SettingsPlace,
          edit: (text: string) => Result.Result<string, SettingsProblem>
        ): Effect.fn.Return<string | undefined, SettingsError> {
          const named = fileOf(place)
          const changed = Effect.gen(function* () {
            const text = yield* here(textOf(named))
            const next = edit(text ?? "")
            if (Result.isFailure(next)) return yield* wrong(named, next.failure.key, next.failure.message)
            if (next.success === (text ?? "")) return undefined
            const file = yield* writtenPlace(place, named)
            yield* Effect.mapError(here(WholeFile.writePrivate(file, next.success)), trouble(file, "written"))
            yield* here(Leftovers.sweep(path.dirname(file)))
            yield* here(Leftovers.sweepLock(lockOf(place)))
            return named
          })
          return yield* here(FileLock.locked({ file: named, lock: lockOf(place) }, changed)).pipe(
            Effect.mapError((error) =>
              error._tag === "PlatformError"
                ? trouble(named, "written")(error)
                : error._tag === "FileLocked"
                  ? new SettingsError({ file: named, key: undefined, isInput: false, message: error.message })
                  : error
            )
          )
        },
        ThisProcess.provide,
        one.withPermit
      )

      return {
        read: Effect.withSpan(read, "Settings.read"),
        states: Effect.withSpan(states, "Settings.states"),
        allow: Effect.fn("Settings.allow")((grants: ReadonlyArray<string>) =>
          Effect.asVoid(change("home", (text) => withAllowed(text, grants)))
        ),
        set: Effect.fn("Settings.set")((place: SettingsPlace, key: ReadonlyArray<string>, value: unknown) =>
          Effect.map(
            change(place, (text) => withSetting(text, key, value)),
            () => fileOf(place)
          )
        ),
        unset: Effect.fn("Settings.unset")((place: SettingsPlace, key: ReadonlyArray<string>) =>
          change(place, (text) => withoutSetting(text, key))
        )
      }
    })
  )
