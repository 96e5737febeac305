import { Predicate, Schema, SchemaAST } from "effect"
import { fromJson } from "./JsonText.ts"
import { nearest } from "./Nearest.ts"
import { isHomeOnly, SettingsFile } from "./Settings.ts"

/** The keys of the settings as paths through their schema: which there are, what each takes, and what does not fit. */

/** The names that lead to a value, the outermost first. Names of models and servers may have dots in them. */
export type SettingsPath = ReadonlyArray<string>

/** A path as it is written: `memory.maxDirs`. */
export const dotted = (path: SettingsPath): string => path.join(".")

/** A place in the schema. */
export interface SettingsKey {
  readonly path: SettingsPath
  readonly description: string
  /** Ends the sentence "expected …". */
  readonly expected: string
  /** The names within it, where it has names of its own and not any. */
  readonly names: ReadonlyArray<string>
  /** Whether this value may stand there. */
  readonly accepts: (value: unknown) => boolean
}

const root: SchemaAST.AST = SettingsFile.ast

/** What was made for a place in the schema is kept: there are few, and each is asked often. */
const judges = new WeakMap<SchemaAST.AST, (value: unknown) => boolean>()

const accepts = (node: SchemaAST.AST, value: unknown): boolean => {
  const judge = judges.get(node) ?? Schema.is(Schema.make<Schema.Codec<unknown>>(node))
  judges.set(node, judge)
  return judge(value)
}

const annotation = (node: SchemaAST.AST, name: "description" | "expected"): string | undefined => {
  // What is not ours says nothing of its own: checks have an `expected` too.
  const said = SchemaAST.resolve(node)
  const value = said?.["description"] === undefined ? undefined : said[name]
  return typeof value === "string" ? value : undefined
}

/** The forms a value may take: the members of a union, or the one there is. */
const forms = (node: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(node) ? node.types.flatMap(forms) : [node]

const objectForms = (node: SchemaAST.AST): ReadonlyArray<SchemaAST.Objects> => forms(node).filter(SchemaAST.isObjects)

/** What may stand in an object. */
interface Inside {
  readonly properties: ReadonlyMap<string, SchemaAST.AST>
  /** What any name leads to; undefined where names have to be known ones. */
  readonly any: SchemaAST.AST | undefined
  readonly names: ReadonlyArray<string>
}

const insides = new WeakMap<SchemaAST.AST, Inside>()

const insideOf = (node: SchemaAST.AST): Inside => {
  const made = insides.get(node)
  if (made !== undefined) return made
  const properties = new Map<string, SchemaAST.AST>()
  let any: SchemaAST.AST | undefined
  for (const { indexSignatures, propertySignatures } of objectForms(node)) {
    for (const { name, type } of propertySignatures) {
      if (typeof name === "string" && !properties.has(name)) properties.set(name, type)
    }
    any ??= indexSignatures[0]?.type
  }
  const inside = { properties, any, names: [...properties.keys()] }
  insides.set(node, inside)
  return inside
}

const namesOf = (node: SchemaAST.AST): ReadonlyArray<string> => insideOf(node).names

const anyOf = (node: SchemaAST.AST): SchemaAST.AST | undefined => insideOf(node).any

const child = (node: SchemaAST.AST, name: string): SchemaAST.AST | undefined => {
  const { any, properties } = insideOf(node)
  return properties.get(name) ?? any
}

/** The schema at a path, and the words nearest above it. */
const at = (path: SettingsPath) => {
  let node = root
  let description = ""
  let expected = "an object of settings"
  for (const name of path) {
    const next = child(node, name)
    if (next === undefined) return undefined
    node = next
    description = annotation(node, "description") ?? description
    expected = annotation(node, "expected") ?? expected
  }
  return { node, description, expected }
}

const keyAt = (path: SettingsPath): SettingsKey | undefined => {
  const found = at(path)
  if (found === undefined) return undefined
  const { description, expected, node } = found
  return {
    path,
    description,
    expected,
    names: namesOf(node),
    accepts: (value) => accepts(node, value)
  }
}

/** The path that a text means, seen from a node; the shortest name is taken where any name will do. */
const pathsFrom = (node: SchemaAST.AST, parts: ReadonlyArray<string>): SettingsPath | undefined => {
  const [first, ...rest] = parts
  if (first === undefined) return []
  const property = insideOf(node).properties.get(first)
  if (property !== undefined) {
    const further = pathsFrom(property, rest)
    return further === undefined ? undefined : [first, ...further]
  }
  const value = anyOf(node)
  if (value === undefined) return undefined
  for (let length = 1; length < parts.length; length += 1) {
    const further = pathsFrom(value, parts.slice(length))
    if (further !== undefined) return [parts.slice(0, length).join("."), ...further]
  }
  return [parts.join(".")]
}

const isPlain = (node: SchemaAST.AST): boolean =>
  SchemaAST.isString(node) ||
  SchemaAST.isNumber(node) ||
  SchemaAST.isBoolean(node) ||
  SchemaAST.isLiteral(node) ||
  (SchemaAST.isArrays(node) && node.elements.length === 0 && node.rest.every(SchemaAST.isString)) ||
  (SchemaAST.isUnion(node) && node.types.some(isPlain))

const plainIn = (node: SchemaAST.AST, path: SettingsPath): ReadonlyArray<SettingsPath> =>
  isPlain(node)
    ? [path]
    : SchemaAST.isObjects(node)
      ? [...insideOf(node).properties].flatMap(([name, type]) => plainIn(type, [...path, name]))
      : []

/** Settings whose value can be written as a text, outermost first. */
const plain = plainIn(root, [])

/** How far off a name may be: little in short ones. */
const farOf = (name: string): number => (name.length < 4 ? 1 : name.length < 9 ? 2 : 3)

/** A path that means nothing, and the one that may have been meant. */
export interface UnknownKey {
  /** As it would be written. */
  readonly key: string
  readonly nearest: string | undefined
}

/** What only differs in case, or in how words are parted, is the same. */
const bare = (text: string): string => text.replace(/[-_\s]/g, "").toLowerCase()

/** A name that is not known where it stands. One that is known elsewhere may have been meant for there. */
const unknownAt = (
  above: SettingsPath,
  name: string,
  known: ReadonlyArray<string>,
  rest: ReadonlyArray<string> = []
): UnknownKey => {
  const key = dotted([...above, name, ...rest])
  const meant = known.find((one) => bare(one) === bare(name)) ?? nearest(name, known, farOf(name))
  if (meant === undefined) {
    const elsewhere = plain.find((path) => path.length > 1 && path.at(-1) === (rest.at(-1) ?? name))
    return { key, nearest: elsewhere === undefined ? undefined : dotted(elsewhere) }
  }
  const path = [...above, meant]
  const whole = [...path, ...rest]
  return { key, nearest: dotted(at(whole) === undefined ? path : whole) }
}

/** One line about a key that means nothing. */
export const unknownText = ({ key, nearest: meant }: UnknownKey): string =>
  `there is no setting ${key}${meant === undefined ? "" : ` (did you mean ${meant}?)`}`

/** The key that a text such as `memory.maxDirs` names, or that there is none. */
export const keyOf = (text: string): SettingsKey | UnknownKey => {
  const parts = text.split(".")
  const path = pathsFrom(root, parts)
  const key = path === undefined || path.length === 0 ? undefined : keyAt(path)
  if (key !== undefined) return key
  let node = root
  for (const [index, name] of parts.entries()) {
    const next = child(node, name)
    if (next === undefined) return unknownAt(parts.slice(0, index), name, namesOf(node), parts.slice(index + 1))
    node = next
  }
  return { key: text, nearest: undefined }
}

/** Of the forms a value may take the one it seems to have: with as many of its names as possible. */
const formOf = (node: SchemaAST.AST, value: object): SchemaAST.Objects | undefined => {
  const all = objectForms(node)
  const count = (form: SchemaAST.Objects) => namesOf(form).filter((name) => Object.hasOwn(value, name)).length
  return all.find((form) => accepts(form, value)) ?? all.toSorted((one, other) => count(other) - count(one))[0]
}

/** What of a value does not fit, the first of it: where, and what was expected there. */
export interface Misfit {
  readonly path: SettingsPath
  readonly expected: string
}

const misfitIn = (node: SchemaAST.AST, value: unknown, path: SettingsPath, above: string): Misfit | undefined => {
  if (accepts(node, value)) return undefined
  const expected = annotation(node, "expected") ?? above
  const form = Predicate.isObject(value) ? formOf(node, value) : undefined
  if (Predicate.isObject(value) && form !== undefined) {
    for (const [name, one] of Object.entries(value)) {
      const next = child(form, name)
      const misfit = next === undefined ? undefined : misfitIn(next, one, [...path, name], expected)
      if (misfit !== undefined) return misfit
    }
  }
  return { path, expected }
}

/** What of an object of settings does not fit, the first of it. */
export const misfit = (value: unknown): Misfit | undefined => misfitIn(root, value, [], "an object of settings")

const unknownIn = (node: SchemaAST.AST, value: unknown, path: SettingsPath): ReadonlyArray<UnknownKey> => {
  if (!Predicate.isObject(value)) return []
  const form = formOf(node, value)
  if (form === undefined) return []
  return Object.entries(value).flatMap(([name, one]) => {
    const next = child(form, name)
    return next === undefined ? [unknownAt(path, name, namesOf(form))] : unknownIn(next, one, [...path, name])
  })
}

/** The keys of an object of settings that mean nothing. `$schema` is for editors. */
export const unknownKeys = (value: unknown): ReadonlyArray<UnknownKey> =>
  unknownIn(root, value, []).filter(({ key }) => key !== "$schema")

/** Whether `$NAME` in strings at a path is left to whoever uses them. */
export const isAsIs = (path: SettingsPath): boolean => {
  let node = root
  for (const name of path) {
    const next = child(node, name)
    if (next === undefined) return false
    node = next
    if (SchemaAST.resolve(node)?.["asIs"] === true) return true
  }
  return false
}

/** One value that is set, and where it stands. */
export interface Leaf {
  readonly path: SettingsPath
  readonly value: unknown
}

const leavesIn = (node: SchemaAST.AST, value: unknown, path: SettingsPath): ReadonlyArray<Leaf> => {
  const form = Predicate.isObject(value) && Object.keys(value).length > 0 ? formOf(node, value) : undefined
  if (!Predicate.isObject(value) || form === undefined) return path.length === 0 ? [] : [{ path, value }]
  return Object.entries(value).flatMap(([name, one]) => {
    const next = child(form, name)
    return next === undefined ? [] : leavesIn(next, one, [...path, name])
  })
}

/** All values that are set, one by one, without what means nothing. */
export const leaves = (settings: unknown): ReadonlyArray<Leaf> => leavesIn(root, settings, [])

/** The value at a path; undefined where there is none. */
export const valueAt = (settings: unknown, path: SettingsPath): unknown => {
  let value = settings
  for (const name of path) {
    if (!Predicate.isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** Settings with a value at a path too; what stands in the way is replaced. */
export const withValue = (settings: unknown, path: SettingsPath, value: unknown): unknown => {
  const [name, ...rest] = path
  if (name === undefined) return value
  const object = Predicate.isObject(settings) ? settings : {}
  const below = Object.hasOwn(object, name) ? object[name] : undefined
  return { ...object, [name]: withValue(below, rest, value) }
}

/** Lists that grow where two places say something (spec 8, 15): the hooks of an event, and the hooks that are off. */
export const isCombined = ([first, second, ...rest]: SettingsPath): boolean =>
  rest.length === 0 && second !== undefined && (first === "hooks" || (first === "hooksConfig" && second === "disabled"))

const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const combined = (first: string | undefined, one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>) =>
  first === "hooks" ? [...one, ...other] : [...new Set([...one, ...other])]

const mergeAt = (weak: unknown, strong: unknown, path: SettingsPath): unknown => {
  if (isCombined(path) && isList(weak) && isList(strong)) return combined(path[0], weak, strong)
  if (!Predicate.isObject(weak) || !Predicate.isObject(strong)) return strong
  const added = Object.entries(strong).map(
    ([name, value]) => [name, Object.hasOwn(weak, name) ? mergeAt(weak[name], value, [...path, name]) : value] as const
  )
  return Object.fromEntries([...Object.entries(weak), ...added])
}

/** What holds where two places set something: the stronger wins, key by key; lists are replaced, save the combined ones. */
export const mergeValues = (weak: unknown, strong: unknown): unknown => mergeAt(weak, strong, [])

const decodeMerged = Schema.decodeUnknownSync(SettingsFile)

/** What holds where both the home folder and the working folder set something: the working folder wins, where it may. */
export const mergeSettings = (home: SettingsFile, workspace: SettingsFile): SettingsFile =>
  decodeMerged(mergeValues(home, Object.fromEntries(Object.entries(workspace).filter(([name]) => !isHomeOnly(name)))))

/** The environment's name of a setting: `PALIMPSEST_MEMORY_MAX_DIRS` for `memory.maxDirs`. */
const variableOf = (path: SettingsPath): string =>
  `PALIMPSEST_${path.map((name) => name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toUpperCase()).join("_")}`

/** A variable of the environment that sets something. */
export interface Variable {
  readonly name: string
  readonly path: SettingsPath
}

const named = (paths: ReadonlyArray<SettingsPath>): ReadonlyArray<Variable> =>
  paths.map((path) => ({ name: variableOf(path), path }))

/**
 * The variables that set something: one for each setting whose value is a text, a number, a switch, one of some words or a
 * list of texts; what is a switch or an object can be switched.
 */
export const variables = named(plain.filter(([name = ""]) => !isHomeOnly(name)))

/**
 * Variables that would set what is the home folder's alone, and that are not heeded: a `.env` file of a working folder stands
 * beneath the environment, and must not say it either.
 */
export const unheeded = named(plain.filter(([name = ""]) => isHomeOnly(name)))

const numberIn = (text: string): ReadonlyArray<unknown> => {
  const [, digits, unit = ""] = /^(\d[\d_]*(?:\.\d+)?|\.\d+)\s*(%|[km]i?)?$/i.exec(text) ?? []
  if (digits === undefined) return []
  const number = Number(digits.replaceAll("_", ""))
  if (unit === "%") return [number / 100]
  const factors: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, ki: 1_024, mi: 1_048_576 }
  const value = number * (factors[unit.toLowerCase()] ?? Number.NaN)
  // 1.1k is 1100, whatever binary fractions make of it.
  return [Math.abs(value - Math.round(value)) < 1e-6 ? Math.round(value) : value]
}

const switchIn = (text: string): ReadonlyArray<unknown> =>
  /^(?:true|yes|on|1)$/i.test(text) ? [true] : /^(?:false|no|off|0)$/i.test(text) ? [false] : []

const jsonIn = (text: string): ReadonlyArray<unknown> => {
  const read = Schema.decodeOption(fromJson(Schema.Unknown))(text)
  return read._tag === "Some" ? [read.value] : []
}

/**
 * The value that a text gives to a setting, on the command line or in the environment: as JSON, else as the text itself, a
 * number such as `64k` or `50%`, a switch such as `on`, or a list with commas. Undefined: it fits in no way.
 */
export const valueOf = (key: SettingsKey, text: string): { readonly value: unknown } | undefined => {
  const given = text.trim()
  const list = given.split(",").map((one) => one.trim())
  const values = [
    ...jsonIn(given),
    text,
    given,
    ...numberIn(given),
    ...switchIn(given),
    list.filter((one) => one !== "")
  ]
  const index = values.findIndex((value) => key.accepts(value))
  return index < 0 ? undefined : { value: values[index] }
}
