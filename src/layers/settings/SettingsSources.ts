/** Reads the sources of settings: files and environment variables. */

import {
  ByteSize,
  Config,
  ConfigProvider,
  Effect,
  FileSystem,
  Option,
  Path,
  type PlatformError,
  Predicate,
  Result
} from "effect"
import { placeVariable } from "../../domain/agent/AgentPlace.ts"
import { translateGeminiSettings } from "../../domain/settings/GeminiSettings.ts"
import {
  dotted,
  homeOnlyVariables,
  keyOf,
  parseValue,
  settingVariables,
  withValue
} from "../../domain/settings/SettingsKey.ts"
import {
  environmentNames,
  jsonOf,
  type ParsedSettings,
  settingsOf,
  type SettingsProblem
} from "../../domain/settings/SettingsText.ts"
import { pathText } from "../../domain/settings/SkippedSetting.ts"
import { decode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import { closestName } from "../../domain/text/SpellingSuggestion.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as FileVersion from "../../services/platform/FileVersion.ts"
import { read as readWhole } from "../../services/platform/RegularFile.ts"
import { SettingsError, type SettingsNotice } from "../../services/settings/Settings.ts"

/** Largest settings file. */
const maxFileSize = ByteSize.mebibytes(1)

/** The content of a source is invalid. */
export const invalid = (file: string, key: string | undefined, message: string) =>
  new SettingsError({
    file,
    key,
    isInput: true,
    message: `${quotedPath(file)}${key === undefined ? "" : `, ${key}`}: ${message}`
  })

/** A problem of a settings file. */
export const invalidSettings = (file: string, problem: SettingsProblem) => invalid(file, problem.key, problem.text)

/** The disk refused to read or write a file. */
export const diskError = (file: string, what: "read" | "written") => (error: PlatformError.PlatformError) =>
  new SettingsError({
    file,
    key: undefined,
    isInput: false,
    message: `${quotedPath(file)}: cannot be ${what}: ${diskErrorText(error)}`
  })

const maxNameWords = 12

/** The path of a file with links resolved; undefined when there is no file. */
export const realPath = (file: string): Effect.Effect<string | undefined, SettingsError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) => fs.realPath(file)).pipe(
    Effect.catchIf(isMissingPath, () => Effect.undefined),
    Effect.mapError(diskError(file, "read"))
  )

/** The text of a settings file; undefined when there is no file. It must be a regular file of at most 1 MiB. */
export const textOf = Effect.fnUntraced(function* (file: string) {
  const place = yield* realPath(file)
  if (place === undefined) return undefined
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(place).pipe(Effect.mapError(diskError(file, "read")))
  if (type !== "File") return yield* invalid(file, undefined, "expected a regular file")
  if (ByteSize.isGreaterThan(size, maxFileSize)) {
    return yield* invalid(file, undefined, "expected settings; it has more than 1 MiB")
  }
  const bytes = yield* readWhole(place, quotedPath(file)).pipe(
    Effect.mapError(({ message }) => new SettingsError({ file, key: undefined, isInput: true, message }))
  )
  const { text, valid } = decode(bytes)
  return valid ? text : yield* invalid(file, undefined, "expected text in UTF-8")
})

/** An environment variable. A blank value counts as not set, since shells and env files leave such values. */
const variable = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Effect.orElseSucceed(Option.none<string>),
    Effect.map(Option.filter((value) => value.trim() !== "")),
    Effect.map(Option.getOrUndefined)
  )

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>

/** A parsed settings file, with the variables it uses but must not see. */
export interface ReadFile extends ParsedSettings {
  readonly withheld: ReadonlySet<string>
}

/** Reads a settings file and expands the variables it may see. Undefined when there is no file. */
export const readFile = Effect.fnUntraced(function* (
  file: string,
  mayHave: (values: Variables) => Variables = (values) => values
) {
  const written = yield* jsonIn(file)
  return written && (yield* filledIn(file, written, mayHave))
})

/** The object in a settings file. Undefined when there is no file. */
const jsonIn = Effect.fnUntraced(function* (file: string) {
  const text = yield* textOf(file)
  if (text === undefined) return undefined
  const json = jsonOf(text)
  return Result.isFailure(json) ? yield* invalidSettings(file, json.failure) : json.success
})

/** Expands the variables of a file's settings. */
const filledIn = Effect.fnUntraced(function* (
  file: string,
  written: Readonly<Record<string, unknown>>,
  mayHave: (values: Variables) => Variables
) {
  const names = environmentNames(written)
  const values = yield* Effect.forEach(names, (name) => Effect.map(variable(name), (value) => [name, value] as const))
  const visible = mayHave(Object.fromEntries(values))
  const withheld = values.flatMap(([name, value]) => (value === undefined || visible[name] !== undefined ? [] : [name]))
  const read = settingsOf(written, visible)
  return Result.isFailure(read)
    ? yield* invalidSettings(file, read.failure)
    : { ...read.success, withheld: new Set(withheld) }
})

/**
 * Reads Gemini CLI's settings of a folder: the keys that `config import gemini` translates. Values that cannot be
 * converted are errors; all other keys are for Gemini CLI alone.
 */
export const readGeminiFile = Effect.fnUntraced(function* (
  file: string,
  mayHave: (values: Variables) => Variables = (values) => values
) {
  const written = yield* jsonIn(file)
  if (written === undefined) return undefined
  const { left, taken } = translateGeminiSettings(written, {})
  const unsupported = left.find(({ isUnfit }) => isUnfit)
  if (unsupported !== undefined) return yield* invalid(file, pathText(unsupported.from), unsupported.why)
  const own = taken.reduce<unknown>((whole, { to, value }) => withValue(whole, to, value), {})
  return yield* filledIn(file, Predicate.isObject(own) ? { ...own } : {}, mayHave)
})

/** The settings file of a home folder. */
export const settingsFile = (path: Path.Path, home: string): string => path.resolve(home, "settings.json")

/**
 * Whether folder trust is disabled: `folderTrust` is false in the home folder's file. An invalid file does not disable it. The file is looked
 * at each time and read when it has changed.
 */
export const isTrustOff = (home: string) => {
  let isOff: Effect.Effect<boolean, never, FileSystem.FileSystem> | undefined
  const inFile = (file: string) =>
    readFile(file).pipe(
      Effect.map((read) => read?.settings.folderTrust === false),
      Effect.orElseSucceed(() => false)
    )
  return Path.Path.use((path) => {
    const file = settingsFile(path, home)
    isOff ??= FileVersion.whileSame(file, inFile(file))
    return isOff
  })
}

/** The settings from environment variables. */
export const readEnvironment = Effect.gen(function* () {
  let settings: unknown = {}
  const set: Array<{ readonly name: string; readonly key: string }> = []
  const broken: Array<SettingsError> = []
  for (const { name, path } of settingVariables) {
    const isModel = path.length === 1 && path[0] === "model"
    // Gemini CLI's own variable counts when ours is not set.
    const [used, text] =
      isModel && (yield* variable(name)) === undefined
        ? (["GEMINI_MODEL", yield* variable("GEMINI_MODEL")] as const)
        : ([name, yield* variable(name)] as const)
    const key = text === undefined ? undefined : keyOf(dotted(path))
    if (text === undefined || key === undefined || !("accepts" in key)) continue
    const parsed = parseValue(key, text.trim())
    if (parsed === undefined) {
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
    settings = withValue(settings, path, parsed.value)
    set.push({ name: used, key: dotted(path) })
  }
  const ignored = yield* Effect.filter(homeOnlyVariables, ({ name }) =>
    Effect.map(variable(name), (value) => value !== undefined)
  )
  return { settings, set, broken, ignored }
})

/** Variables of this program that are not settings. */
const nonSettingVariables = [
  "PALIMPSEST_CODE_CACHE",
  "PALIMPSEST_HOME",
  "PALIMPSEST_MCP_TOKEN",
  "PALIMPSEST_STORE",
  placeVariable
]

/** Notices about variables that look like ours but are unknown. */
export const unknownVariables = Effect.gen(function* () {
  const provider = yield* ConfigProvider.ConfigProvider
  const unknownNames: Array<string> = []
  const knownVariables = new Set([
    ...[...settingVariables, ...homeOnlyVariables].map(({ name }) => name),
    ...nonSettingVariables
  ])
  const walk = Effect.fnUntraced(function* (place: ReadonlyArray<string>): Effect.fn.Return<void> {
    const node = yield* Effect.orElseSucceed(provider.load(place), () => undefined)
    if (node === undefined) return
    const name = place.join("_")
    if (node.value !== undefined && place.length > 1 && !knownVariables.has(name)) unknownNames.push(name)
    if (node._tag === "Record" && place.length < maxNameWords) {
      for (const word of node.keys) yield* walk([...place, word])
    }
  })
  yield* walk(["PALIMPSEST"])
  return unknownNames.map((name): SettingsNotice => {
    const nearest = closestName(name, [...knownVariables], 3)
    const suggestion = nearest === undefined ? "" : ` (did you mean ${nearest}?)`
    return { text: `${quotedPath(name)} is no variable of this program${suggestion}` }
  })
})
