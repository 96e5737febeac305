/** Reads settings files, which are JSON with comments and trailing commas. */

import { Predicate, Result, Schema } from "effect"
import { faultIn } from "../text/JsonFault.ts"
import { isDeeper, parseJson } from "../text/JsonText.ts"
import { SettingsFile } from "./Settings.ts"
import {
  type SettingsPath,
  type UnknownKey,
  dotted,
  firstMismatch,
  keepsVariables,
  unknownKeys
} from "./SettingsKey.ts"

const variable = /\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})/g

/** The names of the variables in a text. */
const variableNamesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(variable)].map(([, bare, braced]) => bare ?? braced ?? "")

/** A text with its variables expanded. */
interface Expanded {
  readonly text: string
  /** Variables that are not set and have no default; they stay as written. */
  readonly missing: ReadonlyArray<string>
}

/**
 * Expands the variables of a text once; values are not scanned again. As in a shell, the default of `:-` also replaces
 * blank values.
 */
const expandVariables = (text: string, environment: Readonly<Record<string, string | undefined>>): Expanded => {
  const missing: Array<string> = []
  const filled = text.replace(
    variable,
    (whole: string, bare: string | undefined, braced: string | undefined, fallback: string | undefined) => {
      const name = bare ?? braced ?? ""
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined
      if (fallback !== undefined) return value === undefined || value === "" ? fallback : value
      if (value === undefined) missing.push(name)
      return value ?? whole
    }
  )
  return { text: filled, missing: [...new Set(missing)] }
}

/** Why a settings file cannot be used or changed, in words. */
export interface SettingsProblem {
  /** The dotted key. Undefined: the whole file is affected. */
  readonly key?: string | undefined
  readonly text: string
}

/** A parsed settings file. */
export interface ParsedSettings {
  /** With environment variables expanded. */
  readonly settings: SettingsFile
  /** As written in the file. */
  readonly written: Readonly<Record<string, unknown>>
  /** Unknown keys. */
  readonly unknown: ReadonlyArray<UnknownKey>
  /** Variables that are not set, with the keys that use them. */
  readonly missing: ReadonlyArray<{ readonly key: string; readonly name: string }>
}

/** The settings of an empty file. */
export const emptySettings: ParsedSettings = { settings: {}, written: {}, unknown: [], missing: [] }

/** A failure. */
export const wrong = (text: string, key?: string): Result.Result<never, SettingsProblem> => Result.fail({ key, text })

const noObject = wrong("expected an object of settings")

const blank = (text: string): string => text.replace(/[^\n]/g, " ")

// Unterminated strings and comments match to the end of the text, so that no part is scanned twice.

/** Replaces comments, and a byte order mark, by spaces. */
export const withoutComments = (text: string): string =>
  text
    .replace(/^\uFEFF/, " ")
    .replace(/"(?:[^"\\]|\\[^]?)*(?:"|$)|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g, (match) =>
      match.startsWith('"') ? match : blank(match)
    )

/**
 * Removes comments and trailing commas from JSON. They become spaces, so that offsets stay the same. Strings are
 * untouched.
 */
export const strictJson = (text: string): string =>
  withoutComments(text).replace(/"(?:[^"\\]|\\[^]?)*(?:"|$)|,(?=\s*[}\]])/g, (match) => (match === "," ? " " : match))

/** Deepest nesting accepted; no settings are deeper, and unbounded nesting would exhaust the stack. */
const deepest = 64

/** Parses the text of a settings file as an object, without checking its fields. */
export const jsonOf = (text: string): Result.Result<Readonly<Record<string, unknown>>, SettingsProblem> => {
  const strict = strictJson(text)
  if (isDeeper(strict, deepest)) {
    return wrong(`expected an object of settings, not one that is nested deeper than ${deepest} levels`)
  }
  const json = parseJson(strict)
  if (Result.isSuccess(json)) return Predicate.isObject(json.success) ? Result.succeed(json.success) : noObject
  const fault = faultIn(strict)
  return wrong(
    `expected JSON${fault === undefined ? "" : `; line ${fault.line}, column ${fault.column} should have ${fault.expected}`}`
  )
}

/** Maps all strings, except those that keep variables. */
const mapStrings = (value: unknown, path: SettingsPath, map: (text: string, path: SettingsPath) => string): unknown => {
  if (typeof value === "string") return map(value, path)
  if (keepsVariables(path)) return value
  if (Array.isArray(value)) return value.map((one) => mapStrings(one, path, map))
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapStrings(one, [...path, name], map)]))
}

/** The environment variables that settings use. */
export const environmentNames = (json: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const names = new Set<string>()
  mapStrings(json, [], (text, path) => {
    if (!keepsVariables(path)) for (const name of variableNamesIn(text)) names.add(name)
    return text
  })
  return [...names]
}

const decode = Schema.decodeUnknownResult(SettingsFile)

/** Decodes settings from JSON. An invalid value is a problem that names its key. */
export const settingsOf = (
  written: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>
): Result.Result<ParsedSettings, SettingsProblem> => {
  const missing: Array<{ readonly key: string; readonly name: string }> = []
  const filled = mapStrings(written, [], (value, path) => {
    if (keepsVariables(path)) return value
    const { missing: names, text } = expandVariables(value, environment)
    missing.push(...names.map((name) => ({ key: dotted(path), name })))
    return text
  })
  const mismatch = firstMismatch(filled)
  if (mismatch !== undefined) {
    const { expected, path } = mismatch
    return path.length === 0 ? noObject : wrong(`expected ${expected}`, dotted(path))
  }
  const settings = decode(filled)
  if (Result.isFailure(settings)) return noObject
  return Result.succeed({ settings: settings.success, written, unknown: unknownKeys(written), missing })
}

/** Parses a settings file with these environment variables. */
export const parseSettings = (
  text: string,
  environment: Readonly<Record<string, string | undefined>> = {}
): Result.Result<ParsedSettings, SettingsProblem> =>
  Result.flatMap(jsonOf(text), (json) => settingsOf(json, environment))
