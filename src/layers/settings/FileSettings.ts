/** Provides `Settings` from files and the environment: reads, merges and edits them. */

import { Effect, type FileSystem, Layer, Path, Predicate, Result } from "effect"
import { ignoredInWorkspace, isHomeOnly, type SettingsFile } from "../../domain/settings/Settings.ts"
import { withAllowed, withoutAllowed, withoutSetting, withSetting } from "../../domain/settings/SettingsEdits.ts"
import {
  dotted,
  isConcatenated,
  mergeSettings,
  mergeValues,
  setValues,
  unknownKeyText,
  valueAt
} from "../../domain/settings/SettingsKey.ts"
import { emptySettings, type ParsedSettings, type SettingsProblem } from "../../domain/settings/SettingsText.ts"
import { childEnvironment } from "../../domain/text/ChildEnvironment.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { EnvFiles } from "../../services/platform/Environment.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import * as Sha256 from "../../services/session/Sha256.ts"
import {
  type EffectiveSettings,
  Settings,
  SettingsError,
  type SettingsFileState,
  type SettingsNotice,
  type SettingsOrigin,
  type SettingsPlace,
  type SettingsSource,
  type SettingsStates
} from "../../services/settings/Settings.ts"
import type { TrustState } from "../../services/workspace/Trust.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"
import {
  diskError,
  invalid,
  invalidSettings,
  readEnvironment,
  type ReadFile,
  readFile,
  readGeminiFile,
  realPath,
  settingsFile,
  textOf,
  unknownVariables,
  type Variables
} from "./SettingsSources.ts"

/** The settings file of a place. */
export const fileOf = (path: Path.Path, home: string, place: SettingsPlace): string =>
  place === "home" ? settingsFile(path, home) : path.resolve(".palimpsest", "settings.json")

/** A working folder's lock is in the home folder, so that none appears among its files or in a clone. */
const lockFileOf = (path: Path.Path, home: string, place: SettingsPlace): string => {
  const file = fileOf(path, home, place)
  return place === "home" ? FileLock.lockFileOf(path, file) : path.join(home, "locks", `.${Sha256.hashSync(file)}.lock`)
}

/** The real path of a file to write. A working folder's file must not lead out of the folder. */
const writablePath = Effect.fnUntraced(function* (
  place: SettingsPlace,
  file: string
): Effect.fn.Return<string, SettingsError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  // A user who links to the file finds the change at its target.
  const real = (yield* realPath(file)) ?? file
  if (place === "workspace") {
    const root = (yield* realPath(path.resolve("."))) ?? path.resolve(".")
    const target = (yield* realPath(file)) ?? (yield* realPath(path.dirname(file))) ?? root
    if (!isWithin(root, target, path.sep)) {
      return yield* invalid(file, undefined, `it leads to ${quotedPath(target)}, out of the folder; change it there`)
    }
  }
  return real
})

/** Edits the text of a settings file under its lock and replaces it atomically. Undefined when the text stays the same. */
const editFile = Effect.fnUntraced(function* (
  home: string,
  place: SettingsPlace,
  edit: (text: string) => Result.Result<string, SettingsProblem>
): Effect.fn.Return<string | undefined, SettingsError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const file = fileOf(path, home, place)
  const lock = lockFileOf(path, home, place)
  const changed = Effect.gen(function* () {
    const text = (yield* textOf(file)) ?? ""
    const next = edit(text)
    if (Result.isFailure(next)) return yield* invalidSettings(file, next.failure)
    if (next.success === text) return undefined
    const real = yield* writablePath(place, file)
    yield* Effect.mapError(AtomicFile.rewritePrivate(real, next.success), diskError(real, "written"))
    yield* StaleFiles.sweep(path.dirname(real))
    yield* StaleFiles.sweepLock(lock)
    return file
  })
  return yield* FileLock.withLock({ file, lock }, changed).pipe(
    Effect.mapError((error) =>
      error._tag === "PlatformError"
        ? diskError(file, "written")(error)
        : error._tag === "FileLocked"
          ? new SettingsError({ file, key: undefined, isInput: false, message: error.message })
          : error
    ),
    ThisProcess.provide
  )
})

/** The dependencies of reading settings. */
interface Sources {
  readonly home: string
  /** Whether a folder is trusted. */
  readonly trust: (folder: string) => Effect.Effect<TrustState, { readonly message: string }>
  /** The variables that `.env` files set. */
  readonly dotEnv: Variables
}

type Files = FileSystem.FileSystem | Path.Path

/** A settings file and whether it counts. */
interface InspectedFile {
  readonly state: SettingsFileState
  readonly read: ParsedSettings
}

/** Merges the files of some places, or of all. Home-only settings count in the first file only. */
const mergedFiles = (files: ReadonlyArray<InspectedFile>, ...of: ReadonlyArray<SettingsOrigin>): SettingsFile => {
  const [first = {}, ...others] = files
    .filter(({ state: { place } }) => of.length === 0 || of.includes(place))
    .map(({ read: { settings } }) => settings)
  return others.reduce(mergeSettings, first)
}

const mergedWithEnvironment = (files: ReadonlyArray<InspectedFile>, set: unknown): SettingsFile =>
  mergeSettings(mergedFiles(files), mergeSettings({}, Predicate.isObject(set) ? set : {}))

/** The variables that a folder's file may see: those that commands see too, without keys and without `.env` files. */
const variablesForFolder =
  ({ dotEnv }: Sources) =>
  (values: Variables): Variables =>
    childEnvironment(Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== dotEnv[name])))

const homeOnly = (source: string, key: string, homeFile: string): SettingsNotice => ({
  text: `${quotedPath(source)}: ${key} counts in ${quotedPath(homeFile)} only; it is ignored`
})

const noticesOf = (
  file: string,
  { missing, unknown, withheld, written }: ReadFile,
  /** The home folder's file; undefined when this is it. */
  homeFile: string | undefined
): ReadonlyArray<SettingsNotice> => {
  const shown = quotedPath(file)
  return [
    ...unknown.map((key) => ({ text: `${shown}: ${unknownKeyText(key)}; it is ignored` })),
    ...missing.map(({ key, name }) => {
      const why = withheld.has(name) ? "is not available to the settings of a folder" : "is not set"
      return { text: `${shown}, ${key}: $${name} ${why}; it stays as it is written` }
    }),
    ...(homeFile === undefined ? [] : ignoredInWorkspace(written).map((key) => homeOnly(file, key, homeFile)))
  ]
}

/** Why a working folder's file is ignored: the folder is not trusted, or the one that a link leads to; or it is the home folder's file. */
const whyIgnored = Effect.fnUntraced(function* (
  { home, trust }: Sources,
  file: string
): Effect.fn.Return<SettingsNotice | "home file" | undefined, SettingsError, Files> {
  const path = yield* Path.Path
  const homeFile = settingsFile(path, home)
  const [homeReal, fileReal] = [yield* realPath(homeFile), yield* realPath(file)]
  if (homeFile === file || (fileReal !== undefined && homeReal === fileReal)) return "home file"
  const targets = fileReal === undefined ? [] : [path.dirname(fileReal)]
  for (const [index, folder] of [path.resolve("."), ...targets].entries()) {
    const state = yield* Effect.result(trust(folder))
    if (Result.isFailure(state)) {
      return { text: `could not find out whether the folder is trusted: ${state.failure.message}` }
    }
    if (state.success !== "trusted") {
      const text = index === 0 ? "the folder is not trusted" : `it is in ${quotedPath(folder)}, which is not trusted`
      return { text, isUntrusted: true }
    }
  }
  return undefined
})

/** Reads a file if it counts. Errors become part of its state. Undefined when it is the home folder's file once more. */
const inspect = Effect.fnUntraced(function* (
  sources: Sources,
  place: SettingsOrigin,
  file: string
): Effect.fn.Return<InspectedFile | undefined, never, Files> {
  const path = yield* Path.Path
  const result = (state: SettingsFileState["state"], read = emptySettings): InspectedFile => ({
    state: { place, file, state },
    read
  })
  return yield* Effect.gen(function* () {
    if ((yield* realPath(file)) === undefined) return result({ _tag: "Absent" })
    const why = place === "home" ? undefined : yield* whyIgnored(sources, file)
    if (why === "home file") return undefined
    if (why !== undefined) return result({ _tag: "LeftOut", why })
    const mayHave = place === "home" ? undefined : variablesForFolder(sources)
    const read = yield* place === "gemini" ? readGeminiFile(file, mayHave) : readFile(file, mayHave)
    if (read === undefined) return result({ _tag: "Absent" })
    const notices = noticesOf(file, read, place === "home" ? undefined : settingsFile(path, sources.home))
    const effective =
      place === "home"
        ? read
        : {
            ...read,
            settings: mergeSettings({}, read.settings),
            written: Object.fromEntries(Object.entries(read.written).filter(([name]) => !isHomeOnly(name)))
          }
    return result({ _tag: "Counts", settings: effective.settings, notices }, effective)
  }).pipe(Effect.catch((error) => Effect.succeed(result({ _tag: "Broken", error }))))
})

/** Reads all files and the environment. */
const inspectAll = Effect.fnUntraced(function* (sources: Sources) {
  const path = yield* Path.Path
  const homeFile = settingsFile(path, sources.home)
  const own = yield* inspect(sources, "home", homeFile)
  const gemini = yield* inspect(sources, "gemini", path.resolve(".gemini", "settings.json"))
  const folder = yield* inspect(sources, "workspace", fileOf(path, sources.home, "workspace"))
  const { ignored, ...environment } = yield* readEnvironment
  const ignoredVariables = ignored.map(({ name, path: [key = ""] }) => homeOnly(name, key, homeFile))
  // Most folders have no settings of Gemini CLI; a missing file is not listed.
  const files = [own, gemini?.state.state._tag === "Absent" ? undefined : gemini, folder].filter(
    (file) => file !== undefined
  )
  const notices = files.flatMap(({ state: { file, state } }): ReadonlyArray<SettingsNotice> =>
    state._tag === "Counts"
      ? state.notices
      : state._tag === "LeftOut"
        ? [{ ...state.why, text: `${quotedPath(file)} is ignored: ${state.why.text}` }]
        : []
  )
  return {
    files,
    environment: { ...environment, notices: ignoredVariables },
    notices: [...notices, ...ignoredVariables]
  }
})

const readStates = Effect.fnUntraced(function* (sources: Sources): Effect.fn.Return<SettingsStates, never, Files> {
  const { environment, files } = yield* inspectAll(sources)
  return {
    files: files.map(({ state }) => state),
    variables: environment.set,
    broken: environment.broken,
    notices: [...environment.notices, ...(yield* unknownVariables)],
    settings: mergedWithEnvironment(files, environment.settings)
  }
})

const readEffective = Effect.fnUntraced(function* (
  sources: Sources
): Effect.fn.Return<EffectiveSettings, SettingsError, Files> {
  const { environment, files, notices } = yield* inspectAll(sources)
  for (const { state } of files) if (state.state._tag === "Broken") return yield* state.state.error
  const [broken] = environment.broken
  if (broken !== undefined) return yield* broken
  const levels = [
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
  const written = levels.reduce<unknown>((weak, level) => mergeValues(weak, level.written), {})
  const sourcesByKey = setValues(written).map(({ path }) => {
    const key = dotted(path)
    const from = levels
      .filter((level) => valueAt(level.written, path) !== undefined)
      .map((level) => level.sourceOf(key))
    return [key, isConcatenated(path) ? from : from.slice(-1)] as const
  })
  return {
    settings: mergedWithEnvironment(files, environment.settings),
    notices,
    written,
    sources: new Map(sourcesByKey),
    files: { home: mergedFiles(files, "home"), workspace: mergedFiles(files, "gemini", "workspace") }
  }
})

/**
 * Settings from `settings.json` in the home folder, then, in a trusted working folder, from Gemini CLI's
 * `.gemini/settings.json` and from `.palimpsest/settings.json`, then from the environment; later sources win. Files are
 * read on each request, and none is created. The environment is the one at the time the layer is built, with the `.env`
 * files beneath it.
 */
export const layer = (
  home: string,
  trust: (folder: string) => Effect.Effect<TrustState, { readonly message: string }>
): Layer.Layer<Settings, never, EnvFiles | Files> =>
  Layer.effect(
    Settings,
    Effect.gen(function* () {
      const sources: Sources = { home, trust, dotEnv: (yield* EnvFiles).variables }
      const path = yield* Path.Path
      const context = yield* Effect.context<Files>()
      const edit = (place: SettingsPlace, change: (text: string) => Result.Result<string, SettingsProblem>) =>
        Effect.provideContext(editFile(home, place, change), context)
      /** Edits a file, and returns its path. */
      const edited = (place: SettingsPlace, change: (text: string) => Result.Result<string, SettingsProblem>) =>
        Effect.as(edit(place, change), fileOf(path, home, place))
      return {
        read: Effect.provideContext(readEffective(sources), context).pipe(Effect.withSpan("Settings.read")),
        states: Effect.provideContext(readStates(sources), context).pipe(Effect.withSpan("Settings.states")),
        allow: Effect.fn("Settings.allow")((grants) => edited("home", (text) => withAllowed(text, grants))),
        disallow: Effect.fn("Settings.disallow")((grants) => edited("home", (text) => withoutAllowed(text, grants))),
        set: Effect.fn("Settings.set")((place, key, value) => edited(place, (text) => withSetting(text, key, value))),
        unset: Effect.fn("Settings.unset")((place, key) => edit(place, (text) => withoutSetting(text, key)))
      }
    })
  )
