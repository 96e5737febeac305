/**
 * The `config` command: lists, changes and checks the settings. One file: the subcommands share how keys, values and sources
 * are read and printed.
 */

import { Config, Effect, FileSystem, Option, Path, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { hookProblemText, hooksOf } from "../../domain/hooks/HookSettings.ts"
import { accessOf, askableModel } from "../../domain/model/ModelRoute.ts"
import { isHomeOnly, type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import {
  dotted,
  keyOf,
  parseValue,
  type SettingsPath,
  setValues,
  unknownKeyText,
  valueAt,
  withValue
} from "../../domain/settings/SettingsKey.ts"
import { settingsSchema } from "../../domain/settings/SettingsSchema.ts"
import { shownValue } from "../../domain/settings/SettingsSecrets.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { escapeUnprintable, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { configuredProviders } from "../../services/model/ModelKeys.ts"
import * as ModelWindows from "../../services/model/ModelWindows.ts"
import { EnvFiles } from "../../services/platform/Environment.ts"
import {
  type EffectiveSettings,
  Settings,
  type SettingsError,
  type SettingsFileState,
  type SettingsNotice,
  type SettingsPlace
} from "../../services/settings/Settings.ts"
import { Trust } from "../../services/workspace/Trust.ts"
import { keyNames, noKeyText } from "../flags/ApiKey.ts"
import * as Input from "../flags/SharedFlags.ts"
import { truncate } from "../output/Columns.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { leftOutLine, noticeLine } from "../output/RuntimeText.ts"
import { configImport } from "./configImport.ts"

/** A setting, its value and its sources: the output of `list --json` and `get --json`. */
const Row = Schema.Struct({
  key: Schema.String,
  /** The effective value; null when the setting is unset and has no default. */
  value: Schema.Json,
  /** The places that set it; empty for a default. */
  from: Schema.Array(Schema.String)
})
type Row = typeof Row.Type

/** The output of `list --json`. */
const Rows = Schema.Struct({ settings: Schema.Array(Row) })

/** The output of `path --json`. */
const Files = Schema.Struct({
  files: Schema.Array(
    Schema.Struct({ place: Schema.String, file: Schema.String, exists: Schema.Boolean, counts: Schema.Boolean })
  )
})

const CheckStatus = Schema.Literals(["ok", "warning", "problem"])

/** A check of `doctor` and its advice. */
const Check = Schema.Struct({ check: Schema.String, status: CheckStatus, message: Schema.String })
type Check = typeof Check.Type

/** The output of `doctor --json`. */
const Checks = Schema.Struct({ checks: Schema.Array(Check) })

const exitError = ({ isInput, message }: SettingsError): ExitError =>
  (isInput ? badInput : failed)(printableLine(message))

/** Returns the variables whose value comes from the `.env` file, with the name of that file. */
const fromDotEnv = Effect.gen(function* () {
  const { file, variables } = yield* EnvFiles
  const same = yield* Effect.filter(Object.entries(variables), ([name, value]) =>
    Config.option(Config.String(name)).pipe(
      Effect.map((current) => Option.getOrUndefined(current) === value),
      Effect.orElseSucceed(() => false)
    )
  )
  return new Map(same.map(([name]) => [name, `${name} in ${file ?? ".env"}`]))
})

const settingsLine = (notice: SettingsNotice): string => noticeLine({ _tag: "Settings", notice })

/** Reads the settings and prints their notices on stderr. */
const readSettings = Effect.gen(function* () {
  const { read } = yield* Settings
  const all = yield* Effect.mapError(read, exitError)
  yield* Effect.forEach(all.notices, (notice) => Output.notice(settingsLine(notice)), { discard: true })
  return { ...all, dotEnv: yield* fromDotEnv }
})

/** The settings, and the variables that a `.env` file sets. */
interface SettingsWithDotEnv extends EffectiveSettings {
  readonly dotEnv: ReadonlyMap<string, string>
}

const asJson = Schema.decodeUnknownOption(Schema.Json)

const jsonOf = (path: SettingsPath, value: unknown): Schema.Json =>
  Option.getOrElse(asJson(shownValue(path, value)), () => null)

const rowOf = ({ dotEnv, sources }: SettingsWithDotEnv, path: SettingsPath, value: unknown): Row => {
  const key = dotted(path)
  const from = [...sources].flatMap(([name, places]) =>
    name === key || name.startsWith(`${key}.`) ? places.map((place) => dotEnv.get(place.name) ?? place.name) : []
  )
  return { key, value: jsonOf(path, value), from: [...new Set(from)] }
}

/** The effective settings: set values as written, defaults for the rest. */
const effective = ({ settings, written }: SettingsWithDotEnv): unknown =>
  setValues(written).reduce<unknown>((all, { path, value }) => withValue(all, path, value), withDefaults(settings))

const key = Input.argument("key", "Setting, such as window or memory.maxDirs")

const keyNamed = (name: string) => {
  const settingsKey = keyOf(name)
  return "accepts" in settingsKey
    ? Effect.succeed(settingsKey)
    : Effect.fail(
        badInput(printableLine(`${unknownKeyText(settingsKey)}; "palimpsest config list --all" lists all settings`))
      )
}

/** A value in one line without control characters, in a form that `config set` accepts. */
const textOf = (value: Schema.Json): string =>
  typeof value === "string" ? quotedPath(value) : escapeUnprintable(JSON.stringify(value))

const maxValueColumns = 60

const list = Command.make(
  "list",
  {
    all: Input.flag("all", "Include settings at their defaults").pipe(Flag.withAlias("a")),
    json: Input.json
  },
  Effect.fn("cli.config.list")(function* ({ all, json }) {
    const set = yield* readSettings
    const rows = setValues(all ? effective(set) : set.written).map(({ path, value }) => rowOf(set, path, value))
    if (json) return yield* Output.json(Rows, { settings: rows })
    if (rows.length === 0) return yield* Output.notice("nothing is set; use --all to include defaults")
    const { bold, dim } = yield* Output.style
    yield* Output.text(
      Output.table([
        ["KEY", "VALUE", "FROM"],
        ...rows.map(({ from, key: name, value }) => [
          from.length === 0 ? printableLine(name) : bold(printableLine(name)),
          truncate(textOf(value), maxValueColumns),
          dim(from.length === 0 ? "default" : printableLine(from.join(", ")))
        ])
      ])
    )
  })
).pipe(Command.withDescription("List settings and where each is set"))

const get = Command.make(
  "get",
  { key, json: Input.json },
  Effect.fn("cli.config.get")(function* ({ json, key: name }) {
    const { path } = yield* keyNamed(name)
    const set = yield* readSettings
    const row = rowOf(set, path, valueAt(effective(set), path))
    if (json) return yield* Output.json(Row, row)
    if (row.value === null) return yield* failed(`${printableLine(row.key)} is not set`)
    yield* Output.exact(textOf(row.value))
  })
).pipe(Command.withDescription("Print the value of a setting"))

const place = Input.flag("workspace", "Use the working folder's settings file instead of yours").pipe(
  Flag.withAlias("w"),
  Flag.map((isWorkspace): SettingsPlace => (isWorkspace ? "workspace" : "home"))
)

/** Prints a notice when another place overrides the value just written. */
const noticeIfOverridden = Effect.fnUntraced(function* (path: SettingsPath, place: SettingsPlace) {
  const { read, states } = yield* Settings
  const { files } = yield* states
  const own = files.find((file) => file.place === place)
  if (own?.state._tag === "LeftOut") return yield* Output.notice(`it has no effect yet: ${leftOutLine(own.state.why)}`)
  const set = yield* Effect.option(read)
  const stronger = Option.isNone(set) ? undefined : set.value.sources.get(dotted(path))?.at(-1)
  if (stronger === undefined || stronger.place === place || own === undefined) return
  yield* Output.notice(`${stronger.name} also sets it and takes precedence`)
})

const set = Command.make(
  "set",
  {
    key,
    value: Input.argument("value", "Plain text or JSON; also 64k, 50%, on, or a list with commas"),
    place
  },
  Effect.fn("cli.config.set")(function* ({ key: name, place, value: text }) {
    const settingsKey = yield* keyNamed(name)
    const { expected, path } = settingsKey
    if (place === "workspace" && isHomeOnly(path[0] ?? "")) {
      return yield* badInput(`${path[0] ?? ""} works in your own settings only; omit --workspace`)
    }
    const parsed = parseValue(settingsKey, text)
    if (parsed === undefined) return yield* badInput(printableLine(`${dotted(path)}: expected ${expected}`))
    const { set: write } = yield* Settings
    const file = yield* Effect.mapError(write(place, path, parsed.value), exitError)
    yield* Output.notice(`${dotted(path)} is ${textOf(jsonOf(path, parsed.value))} in ${file}`)
    yield* noticeIfOverridden(path, place)
  })
).pipe(
  Command.withDescription("Set a value and keep the rest of the file unchanged"),
  Input.withExamples({
    "palimpsest config set compressionThreshold 70%": "Compress later",
    "palimpsest config set memory.fileNames GEMINI.md,AGENTS.md --workspace": "Set it for this folder only"
  })
)

const unset = Command.make(
  "unset",
  { key, place },
  Effect.fn("cli.config.unset")(function* ({ key: name, place }) {
    // Unknown keys can be removed too: notices report them, and this is how to remove them.
    const settingsKey = keyOf(name)
    const path = "accepts" in settingsKey ? settingsKey.path : name.split(".")
    const { states, unset: write } = yield* Settings
    const file = yield* Effect.mapError(write(place, path), exitError)
    if (file !== undefined) return yield* Output.notice(`${dotted(path)} is no longer set in ${file}`)
    if (!("accepts" in settingsKey)) yield* keyNamed(name)
    const { files } = yield* states
    const there = files.find((one) => one.place === place)?.file ?? "the file"
    yield* Output.notice(`${dotted(path)} was not set in ${there}`)
  })
).pipe(Command.withDescription("Remove a setting from the file"))

/** The state of a settings file in a few words. */
const stateText = (state: SettingsFileState["state"]): string => {
  switch (state._tag) {
    case "Absent":
      return "missing"
    case "Counts":
      return "in use"
    case "LeftOut":
      return `ignored: ${leftOutLine(state.why)}`
    case "Broken":
      return "invalid"
  }
}

const pathCommand = Command.make(
  "path",
  { json: Input.json },
  Effect.fn("cli.config.path")(function* ({ json }) {
    const { states } = yield* Settings
    const { file: envFile, untrusted } = yield* EnvFiles
    const { files } = yield* states
    const env = { place: ".env", exists: true }
    const all = [
      ...files.map(({ file, place, state }) => ({
        place,
        file,
        exists: state._tag !== "Absent",
        counts: state._tag === "Counts",
        text: stateText(state)
      })),
      ...(envFile === undefined ? [] : [{ ...env, file: envFile, counts: true, text: "in use" }]),
      ...untrusted.map((file) => ({ ...env, file, counts: false, text: "ignored: the folder is not trusted" }))
    ]
    if (json) return yield* Output.json(Files, { files: all })
    yield* Output.text(
      Output.table(all.map(({ file, place, text }) => [place, printableLine(file), printableLine(text)]))
    )
  })
).pipe(Command.withDescription("Show settings files, from lowest to highest precedence"))

const schema = Command.make(
  "schema",
  {},
  Effect.fn("cli.config.schema")(() => Output.text(JSON.stringify(settingsSchema(), undefined, 2)))
).pipe(
  Command.withDescription("Print the JSON Schema of settings files for your editor"),
  Input.withExamples({
    "palimpsest config schema > settings.schema.json": `Save the schema; refer to it as "$schema" in a settings file`
  })
)

const ok = (check: string, message: string): Check => ({ check, status: "ok", message })
const warning = (check: string, message: string): Check => ({ check, status: "warning", message })
const problem = (check: string, message: string): Check => ({ check, status: "problem", message })

const checkFile = ({ file, place, state }: SettingsFileState): ReadonlyArray<Check> => {
  const name = place === "gemini" ? "Gemini CLI's settings" : `${place} settings`
  switch (state._tag) {
    case "Absent":
      return [ok(name, `${file} does not exist; nothing is set there`)]
    case "LeftOut":
      return [warning(name, `${file} is ignored: ${leftOutLine(state.why)}`)]
    case "Broken":
      return [problem(name, state.error.message)]
    case "Counts":
      return state.notices.length === 0
        ? [ok(name, file)]
        : state.notices.map((notice) => warning(name, settingsLine(notice)))
  }
}

/** Checks that the home folder is writable. For a missing folder, checks the nearest existing parent. */
const checkHome = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  let at = folder
  while (!(yield* Effect.orElseSucceed(fs.exists(at), () => false)) && path.dirname(at) !== at) at = path.dirname(at)
  const info = yield* Effect.option(fs.stat(at))
  const isFolder = Option.getOrUndefined(info)?.type === "Directory"
  const isWritable = isFolder && (yield* Effect.isSuccess(fs.access(at, { writable: true })))
  return isWritable
    ? ok("home folder", folder)
    : problem(
        "home folder",
        isFolder
          ? `${at} is not writable; change its permissions, or set PALIMPSEST_HOME to another folder`
          : `${at} is not a folder; move it away, or set PALIMPSEST_HOME to another folder`
      )
})

const checkTrust = Effect.gen(function* () {
  const trust = yield* Trust
  const path = yield* Path.Path
  const folder = path.resolve(".")
  return yield* Effect.match(trust.of(folder), {
    onFailure: ({ message }) => problem("trust", message),
    onSuccess: (standing) =>
      standing === "trusted"
        ? ok("trust", `${folder} is trusted`)
        : warning(
            "trust",
            standing === "untrusted"
              ? `${folder} is not trusted: nothing is loaded from it; run "palimpsest trust" to trust it`
              : `${folder} is not trusted yet, so nothing is loaded from it; run "palimpsest trust" to trust it`
          )
  })
})

const checkKey = Effect.map(keyNames, (names) =>
  names.length === 0
    ? warning("key", noKeyText)
    : ok("key", `${names.join(", ")} ${names.length === 1 ? "is" : "are"} set`)
)

const checkHooks = (files: ReadonlyArray<SettingsFileState>): ReadonlyArray<Check> => {
  const read = files.flatMap(({ file, place, state }) =>
    state._tag === "Counts"
      ? [{ file, ...hooksOf(state.settings.hooks ?? {}, place === "home" ? "home" : "workspace") }]
      : []
  )
  const warnings = read.flatMap(({ file, problems }) =>
    problems.map((one) => warning("hooks", `${file}: ${hookProblemText(one)}`))
  )
  const count = read.reduce((sum, { hooks }) => sum + hooks.length, 0)
  return warnings.length > 0 ? warnings : [ok("hooks", count === 0 ? "none" : Output.plural(count, "hook"))]
}

/** Model names that providers accept. */
const modelName = /^[A-Za-z0-9][\w.:/@+-]*$/

const checkModel = Effect.fnUntraced(function* (settings: SettingsFile) {
  const access = accessOf(yield* configuredProviders)
  const model = settings.model ?? askableModel(withDefaults(settings).model, access)
  if (!modelName.test(model)) {
    return problem(
      "model",
      `${JSON.stringify(model)} is not a model name; try palimpsest config set model gemini-2.5-pro`
    )
  }
  const reached = access.reach(model)
  if (reached._tag === "NoModel") return problem("model", `${model}: ${reached.text}`)
  if (reached._tag === "NoKey" && access.first !== undefined) {
    return warning(
      "model",
      `${model} needs ${reached.variable}; with the key that is set: palimpsest config set model ${access.first}`
    )
  }
  const { source, window } = ModelWindows.resolveOffline(model, settings.models)
  return source === "assumed"
    ? warning("model", noticeLine({ _tag: "UnknownModel", model, window: settings.window ?? window }))
    : ok("model", model)
})

const doctor = Command.make(
  "doctor",
  { json: Input.json },
  Effect.fn("cli.config.doctor")(function* ({ json }) {
    const path = yield* Path.Path
    const env = yield* EnvFiles
    const { states } = yield* Settings
    const { broken, files, notices, settings, variables: fromEnvironment } = yield* states
    const homeFile = files.find(({ place }) => place === "home")?.file
    const envChecks = [
      ...env.notices.map((notice) => warning(".env", notice)),
      ...env.untrusted.map((file) => warning(".env", `${file} is ignored: its folder is not trusted`))
    ]
    const names = Object.keys(env.variables)
    const checks: ReadonlyArray<Check> = [
      ...(homeFile === undefined ? [] : [yield* checkHome(path.dirname(homeFile))]),
      yield* checkTrust,
      ...files.flatMap(checkFile),
      ...envChecks,
      ...(env.file === undefined
        ? envChecks.length === 0
          ? [ok(".env", "none")]
          : []
        : [ok(".env", `${env.file} sets ${names.join(", ")}`)]),
      ...broken.map(({ message }) => problem("environment", message)),
      ...notices.map((notice) => warning("environment", settingsLine(notice))),
      ...(fromEnvironment.length === 0 && broken.length + notices.length > 0
        ? []
        : [
            ok(
              "environment",
              fromEnvironment.length === 0
                ? "sets nothing"
                : `${fromEnvironment.map(({ key: name, name: variable }) => `${variable} sets ${name}`).join(", ")}`
            )
          ]),
      yield* checkModel(settings),
      yield* checkKey,
      ...checkHooks(files)
    ]
    const problems = checks.filter(({ status }) => status === "problem").length
    if (json) yield* Output.json(Checks, { checks })
    else {
      const { bad, good, warn } = yield* Output.style
      const shown = { ok: good("OK"), warning: warn("warning"), problem: bad("problem") }
      yield* Output.text(
        Output.table(checks.map(({ check, message, status }) => [shown[status], check, printableLine(message)]))
      )
    }
    if (problems > 0) return yield* failed(json ? "" : `${Output.plural(problems, "problem")} found`)
  })
).pipe(Command.withDescription("Check the configuration and say how to fix problems"))

/** The command `palimpsest config …`. */
export const config = Command.make("config").pipe(
  Command.withSubcommands([list, get, set, unset, pathCommand, schema, doctor, configImport])
)
