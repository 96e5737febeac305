import { Result, Schema } from "effect"
import { retentionOf } from "./SessionRetention.ts"

/** What a person may set in a settings file (CLI contract, Environment), and how such a file is read. */

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** How long sessions are kept, and how many: see SessionRetention.ts for what counts. */
const Retention = Schema.Struct({
  maxAge: Schema.optionalKey(Schema.String),
  maxCount: Schema.optionalKey(Schema.Finite)
})

/** What stands in a settings file. What is absent was left to somebody else. */
export const SettingsFile = Schema.Struct({
  /** The model of conversations that begin. */
  model: Schema.optionalKey(Schema.NonEmptyString),
  /** Share of the window that triggers a compression; 0 counts as not set, 1 leaves it to the guard (spec 15). */
  compressionThreshold: Schema.optionalKey(Share),
  /** The most that a message may take of what is left (spec 4: 1; seed 002: 0.95). */
  overflowFactor: Schema.optionalKey(Share.check(Schema.isGreaterThan(0))),
  /** The model's window in tokens, where it is not the known one. */
  window: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  /** Which sessions are deleted by themselves. Absent: none. */
  sessionRetention: Schema.optionalKey(Retention),
  /** Whether the small model gives sessions a title. */
  titles: Schema.optionalKey(Schema.Boolean)
})
export type SettingsFile = typeof SettingsFile.Type

type Key = keyof typeof SettingsFile.fields

const expected: Readonly<Record<Key, string>> = {
  model: "the name of a model, such as gemini-2.5-pro",
  compressionThreshold: "a share from 0 to 1, such as 0.5",
  overflowFactor: "a share above 0, at most 1",
  window: "a whole number of tokens, such as 200000",
  sessionRetention: `an object such as {"maxAge": "30d", "maxCount": 100}`,
  titles: "true or false"
}

const isKey = (name: string): name is Key => Object.hasOwn(SettingsFile.fields, name)

/** Why a file of settings cannot be used. */
export interface SettingsProblem {
  /** Undefined when it is about the whole file. */
  readonly key: string | undefined
  readonly message: string
}

/** What a file of settings says. */
export interface ReadSettings {
  readonly settings: SettingsFile
  /** Keys that mean nothing here, as they would be written: `sessionRetention.maxage`. */
  readonly unknown: ReadonlyArray<string>
}

const blank = (text: string): string => text.replace(/[^\n]/g, " ")

/**
 * JSON without its comments and without commas before a closing bracket (spec 15: settings are JSON with comments). What
 * is taken out leaves blanks, so that places in the text stay what they were. What stands in strings is left alone.
 */
export const strictJson = (text: string): string =>
  text
    .replace(/^\uFEFF/, " ")
    .replace(/"(?:[^"\\]|\\[^])*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (found) => (found.startsWith('"') ? found : blank(found)))
    .replace(/"(?:[^"\\]|\\[^])*"|,(?=\s*[}\]])/g, (found) => (found === "," ? " " : found))

const decodeFile = Schema.decodeUnknownResult(SettingsFile)
const isObject = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

const wrong = (key: string | undefined, message: string): Result.Result<never, SettingsProblem> =>
  Result.fail({ key, message })

const unknownIn = (value: unknown, known: object, prefix: string): ReadonlyArray<string> =>
  isObject(value) ? Object.keys(value).flatMap((name) => (Object.hasOwn(known, name) ? [] : [`${prefix}${name}`])) : []

/** Reads the text of a settings file. One wrong value is a problem that names its key. */
export const parseSettings = (text: string): Result.Result<ReadSettings, SettingsProblem> => {
  const json = Result.try({
    try: (): unknown => JSON.parse(strictJson(text)),
    catch: (error) => (error instanceof Error ? error.message : String(error))
  })
  if (Result.isFailure(json)) return wrong(undefined, `expected JSON; ${json.failure}`)
  const value = json.success
  if (!isObject(value)) return wrong(undefined, "expected an object of settings")
  for (const [name, one] of Object.entries(value)) {
    if (isKey(name) && Result.isFailure(decodeFile({ [name]: one }))) return wrong(name, `expected ${expected[name]}`)
  }
  const settings = decodeFile(value)
  if (Result.isFailure(settings)) return wrong(undefined, "expected an object of settings")
  const retention = retentionOf(settings.success.sessionRetention ?? {})
  if (Result.isFailure(retention)) return wrong("sessionRetention", retention.failure)
  return Result.succeed({
    settings: settings.success,
    unknown: [
      ...unknownIn(value, SettingsFile.fields, ""),
      ...unknownIn(value["sessionRetention"], Retention.fields, "sessionRetention.")
    ]
  })
}

/**
 * What holds where both the home folder and the working folder set something: the working folder wins. What deletes
 * sessions is left to the home folder: a folder that somebody else made must not delete a person's conversations.
 */
export const mergeSettings = (home: SettingsFile, workspace: SettingsFile): SettingsFile => {
  const { sessionRetention: _left, ...rest } = workspace
  return { ...home, ...rest }
}
