/**
 * Settings keys as paths through the schema: which exist, what each accepts, and what does not fit.
 *
 * One file: everything here walks the same schema with the same cached shapes.
 */

import { Predicate, Schema, SchemaAST } from "effect"
import { fromJson } from "../text/JsonText.ts"
import { closestName } from "../text/SpellingSuggestion.ts"
import { isHomeOnly, SettingsFile } from "./Settings.ts"

/** The names that lead to a value, outermost first. Names of models and servers may contain dots. */
export type SettingsPath = ReadonlyArray<string>

/** A path as written: `memory.maxDirs`. */
export const dotted = (path: SettingsPath): string => path.join(".")

/** A place in the schema. */
export interface SettingsKey {
  readonly path: SettingsPath
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** Whether a value is valid here. */
  readonly accepts: (value: unknown) => boolean
}

const root: SchemaAST.AST = SettingsFile.ast

const accepts = (node: SchemaAST.AST, value: unknown): boolean =>
  Schema.is(Schema.make<Schema.Codec<unknown>>(node))(value)

const expectedAt = (node: SchemaAST.AST): string | undefined => {
  // Built-in checks have an `expected` of their own; only ours, which have a description, count.
  const annotations = SchemaAST.resolve(node)
  const expected = annotations?.["description"] === undefined ? undefined : annotations["expected"]
  return typeof expected === "string" ? expected : undefined
}

/** The members of a union, or the node itself. */
const unionMembers = (node: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(node) ? node.types.flatMap(unionMembers) : [node]

const objectForms = (node: SchemaAST.AST): ReadonlyArray<SchemaAST.Objects> =>
  unionMembers(node).filter(SchemaAST.isObjects)

interface ObjectShape {
  readonly properties: ReadonlyMap<string, SchemaAST.AST>
  /** The schema for any other name; undefined when only known names are allowed. */
  readonly any: SchemaAST.AST | undefined
  readonly names: ReadonlyArray<string>
}

const shapeOf = (node: SchemaAST.AST): ObjectShape => {
  const properties = new Map<string, SchemaAST.AST>()
  let any: SchemaAST.AST | undefined
  for (const { indexSignatures, propertySignatures } of objectForms(node)) {
    for (const { name, type } of propertySignatures) {
      if (typeof name === "string" && !properties.has(name)) properties.set(name, type)
    }
    any ??= indexSignatures[0]?.type
  }
  return { properties, any, names: [...properties.keys()] }
}

const namesOf = (node: SchemaAST.AST): ReadonlyArray<string> => shapeOf(node).names

const child = (node: SchemaAST.AST, name: string): SchemaAST.AST | undefined => {
  const { any, properties } = shapeOf(node)
  return properties.get(name) ?? any
}

/** The schema at a path, and what is expected there or in the nearest place above it. */
const schemaAt = (path: SettingsPath) => {
  let node = root
  let expected = "an object of settings"
  for (const name of path) {
    const next = child(node, name)
    if (next === undefined) return undefined
    node = next
    expected = expectedAt(node) ?? expected
  }
  return { node, expected }
}

/** The path that a dotted text means below a node. Where any name is allowed, the shortest one wins. */
const pathsFrom = (node: SchemaAST.AST, parts: ReadonlyArray<string>): SettingsPath | undefined => {
  const [first, ...rest] = parts
  if (first === undefined) return []
  const { any: value, properties } = shapeOf(node)
  const property = properties.get(first)
  if (property !== undefined) {
    const further = pathsFrom(property, rest)
    return further === undefined ? undefined : [first, ...further]
  }
  if (value === undefined) return undefined
  for (let length = 1; length < parts.length; length += 1) {
    const further = pathsFrom(value, parts.slice(length))
    if (further !== undefined) return [parts.slice(0, length).join("."), ...further]
  }
  return [parts.join(".")]
}

const isTextual = (node: SchemaAST.AST): boolean =>
  SchemaAST.isString(node) ||
  SchemaAST.isNumber(node) ||
  SchemaAST.isBoolean(node) ||
  SchemaAST.isLiteral(node) ||
  (SchemaAST.isArrays(node) && node.elements.length === 0 && node.rest.every(SchemaAST.isString)) ||
  (SchemaAST.isUnion(node) && node.types.some(isTextual))

const textualPaths = (node: SchemaAST.AST, path: SettingsPath): ReadonlyArray<SettingsPath> =>
  isTextual(node)
    ? [path]
    : SchemaAST.isObjects(node)
      ? [...shapeOf(node).properties].flatMap(([name, type]) => textualPaths(type, [...path, name]))
      : []

/** Settings whose value can be written as text, outermost first. */
const textualSettings = textualPaths(root, [])

/** Largest edit distance for a suggestion: smaller for short names. */
const maxDistance = (name: string): number => (name.length < 4 ? 1 : name.length < 9 ? 2 : 3)

/** A path that does not exist, with a suggestion. */
export interface UnknownKey {
  /** The path as written. */
  readonly key: string
  readonly nearest: string | undefined
}

/** Ignores case and word separators. */
const normalizedName = (text: string): string => text.replace(/[-_\s]/g, "").toLowerCase()

/** An unknown name with a suggestion from its own level, else from another. */
const unknownAt = (
  above: SettingsPath,
  name: string,
  knownNames: ReadonlyArray<string>,
  rest: ReadonlyArray<string> = []
): UnknownKey => {
  const key = dotted([...above, name, ...rest])
  const closest =
    knownNames.find((one) => normalizedName(one) === normalizedName(name)) ??
    closestName(name, knownNames, maxDistance(name))
  if (closest === undefined) {
    const elsewhere = textualSettings.find((path) => path.length > 1 && path.at(-1) === (rest.at(-1) ?? name))
    return { key, nearest: elsewhere === undefined ? undefined : dotted(elsewhere) }
  }
  const path = [...above, closest]
  const whole = [...path, ...rest]
  return { key, nearest: dotted(schemaAt(whole) === undefined ? path : whole) }
}

/** One line about an unknown key. */
export const unknownKeyText = ({ key, nearest: suggestion }: UnknownKey): string =>
  `there is no setting ${key}${suggestion === undefined ? "" : ` (did you mean ${suggestion}?)`}`

/** The key that a text such as `memory.maxDirs` names, or the unknown key. */
export const keyOf = (text: string): SettingsKey | UnknownKey => {
  const parts = text.split(".")
  const path = pathsFrom(root, parts)
  const place = path === undefined ? undefined : schemaAt(path)
  if (path !== undefined && place !== undefined) {
    return { path, expected: place.expected, accepts: (value) => accepts(place.node, value) }
  }
  let node = root
  for (const [index, name] of parts.entries()) {
    const next = child(node, name)
    if (next === undefined) return unknownAt(parts.slice(0, index), name, namesOf(node), parts.slice(index + 1))
    node = next
  }
  return { key: text, nearest: undefined }
}

/** The object form that fits a value, else the one with the most matching names. */
const bestObjectForm = (node: SchemaAST.AST, value: object): SchemaAST.Objects | undefined => {
  const all = objectForms(node)
  const count = (form: SchemaAST.Objects) => namesOf(form).filter((name) => Object.hasOwn(value, name)).length
  return all.find((form) => accepts(form, value)) ?? all.toSorted((one, other) => count(other) - count(one))[0]
}

/** A value that does not fit: its path and what was expected. */
interface TypeMismatch {
  readonly path: SettingsPath
  readonly expected: string
}

const mismatchIn = (
  node: SchemaAST.AST,
  value: unknown,
  path: SettingsPath,
  above: string
): TypeMismatch | undefined => {
  if (accepts(node, value)) return undefined
  const expected = expectedAt(node) ?? above
  const form = Predicate.isObject(value) ? bestObjectForm(node, value) : undefined
  if (Predicate.isObject(value) && form !== undefined) {
    for (const [name, one] of Object.entries(value)) {
      const next = child(form, name)
      const firstMismatch = next === undefined ? undefined : mismatchIn(next, one, [...path, name], expected)
      if (firstMismatch !== undefined) return firstMismatch
    }
  }
  return { path, expected }
}

/** The first value that does not fit the schema; undefined when all fit. */
export const firstMismatch = (value: unknown): TypeMismatch | undefined =>
  mismatchIn(root, value, [], "an object of settings")

/** A value that is set, with its path. */
interface SetValue {
  readonly path: SettingsPath
  readonly value: unknown
  /** Its unknown key. */
  readonly unknown?: UnknownKey
}

const valuesIn = (node: SchemaAST.AST, value: unknown, path: SettingsPath): ReadonlyArray<SetValue> => {
  const form = Predicate.isObject(value) && Object.keys(value).length > 0 ? bestObjectForm(node, value) : undefined
  if (!Predicate.isObject(value) || form === undefined) return path.length === 0 ? [] : [{ path, value }]
  return Object.entries(value).flatMap(([name, one]) => {
    const next = child(form, name)
    const below = [...path, name]
    return next === undefined
      ? [{ path: below, value: one, unknown: unknownAt(path, name, namesOf(form)) }]
      : valuesIn(next, one, below)
  })
}

/** All values that are set, without unknown keys. */
export const setValues = (settings: unknown): ReadonlyArray<SetValue> =>
  valuesIn(root, settings, []).filter(({ unknown }) => unknown === undefined)

/** The unknown keys of a settings object. `$schema` is for editors and is not reported. */
export const unknownKeys = (settings: unknown): ReadonlyArray<UnknownKey> =>
  valuesIn(root, settings, []).flatMap(({ unknown }) =>
    unknown === undefined || unknown.key === "$schema" ? [] : [unknown]
  )

/** Whether `$NAME` stays unexpanded in the strings at a path. */
export const keepsVariables = (path: SettingsPath): boolean => {
  let node = root
  for (const name of path) {
    const next = child(node, name)
    if (next === undefined) return false
    node = next
    if (SchemaAST.resolve(node)?.["asIs"] === true) return true
  }
  return false
}

/** The value at a path; undefined when absent. */
export const valueAt = (settings: unknown, path: SettingsPath): unknown => {
  let value = settings
  for (const name of path) {
    if (!Predicate.isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** Settings with a value at a path. A non-object in the way is replaced. */
export const withValue = (settings: unknown, path: SettingsPath, value: unknown): unknown => {
  const [name, ...rest] = path
  if (name === undefined) return value
  const object = Predicate.isObject(settings) ? settings : {}
  const below = Object.hasOwn(object, name) ? object[name] : undefined
  return { ...object, [name]: withValue(below, rest, value) }
}

/** Lists that are concatenated across files: the hooks of an event, and the disabled hooks. */
export const isConcatenated = ([first, second, ...rest]: SettingsPath): boolean =>
  rest.length === 0 && second !== undefined && (first === "hooks" || (first === "hooksConfig" && second === "disabled"))

/** Whether a value is a list. */
export const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const concatenated = (first: string | undefined, one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>) =>
  first === "hooks" ? [...one, ...other] : [...new Set([...one, ...other])]

const mergeAt = (weak: unknown, strong: unknown, path: SettingsPath): unknown => {
  if (isConcatenated(path) && isList(weak) && isList(strong)) return concatenated(path[0], weak, strong)
  if (!Predicate.isObject(weak) || !Predicate.isObject(strong)) return strong
  const added = Object.entries(strong).map(
    ([name, value]) => [name, Object.hasOwn(weak, name) ? mergeAt(weak[name], value, [...path, name]) : value] as const
  )
  return Object.fromEntries([...Object.entries(weak), ...added])
}

/** Merges two levels of settings. The stronger wins key by key; lists are replaced, except concatenated ones. */
export const mergeValues = (weak: unknown, strong: unknown): unknown => mergeAt(weak, strong, [])

const decodeMerged = Schema.decodeUnknownSync(SettingsFile)

/** Merges the home folder's settings with the workspace's. The workspace wins, except for home-only settings. */
export const mergeSettings = (home: SettingsFile, workspace: SettingsFile): SettingsFile =>
  decodeMerged(mergeValues(home, Object.fromEntries(Object.entries(workspace).filter(([name]) => !isHomeOnly(name)))))

/** The environment variable of a setting: `PALIMPSEST_MEMORY_MAX_DIRS` for `memory.maxDirs`. */
const variableName = (path: SettingsPath): string =>
  `PALIMPSEST_${path.map((name) => name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toUpperCase()).join("_")}`

/** An environment variable that sets a setting. */
export interface SettingVariable {
  readonly name: string
  readonly path: SettingsPath
}

const variablesOf = (paths: ReadonlyArray<SettingsPath>): ReadonlyArray<SettingVariable> =>
  paths.map((path) => ({ name: variableName(path), path }))

/**
 * The variables that set a setting: one for each setting that is a string, number, boolean, enumeration or list of
 * strings. A setting that is a boolean or an object accepts a boolean.
 */
export const settingVariables = variablesOf(textualSettings.filter(([name = ""]) => !isHomeOnly(name)))

/**
 * Variables of home-only settings. They are ignored: a working folder's `.env` file is part of the environment and must
 * not set them. `PALIMPSEST_STORE` is read without the settings, and from no file.
 */
export const homeOnlyVariables = variablesOf(
  textualSettings.filter(([name = ""]) => isHomeOnly(name) && name !== "store")
)

const parseNumber = (text: string): ReadonlyArray<unknown> => {
  const [, digits, unit = ""] = /^(\d[\d_]*(?:\.\d+)?|\.\d+)\s*(%|[km]i?)?$/i.exec(text) ?? []
  if (digits === undefined) return []
  const number = Number(digits.replaceAll("_", ""))
  if (unit === "%") return [number / 100]
  const factors: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, ki: 1_024, mi: 1_048_576 }
  const value = number * (factors[unit.toLowerCase()] ?? Number.NaN)
  // 1.1k is 1100, despite binary fractions.
  return [Math.abs(value - Math.round(value)) < 1e-6 ? Math.round(value) : value]
}

const parseBoolean = (text: string): ReadonlyArray<unknown> =>
  /^(?:true|yes|on|1)$/i.test(text) ? [true] : /^(?:false|no|off|0)$/i.test(text) ? [false] : []

const parseJsonValue = (text: string): ReadonlyArray<unknown> => {
  const read = Schema.decodeOption(fromJson(Schema.Unknown))(text)
  return read._tag === "Some" ? [read.value] : []
}

/**
 * Parses a setting's value from text, for the command line and the environment: as JSON, else as plain text, a number
 * such as `64k` or `50%`, a boolean such as `on`, or a comma-separated list. Undefined when none fits.
 */
export const parseValue = (key: SettingsKey, text: string): { readonly value: unknown } | undefined => {
  const trimmed = text.trim()
  const list = trimmed.split(",").map((one) => one.trim())
  const values = [
    ...parseJsonValue(trimmed),
    text,
    trimmed,
    ...parseNumber(trimmed),
    ...parseBoolean(trimmed),
    list.filter((one) => one !== "")
  ]
  const index = values.findIndex((value) => key.accepts(value))
  return index < 0 ? undefined : { value: values[index] }
}
