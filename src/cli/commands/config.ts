import { Config, Effect, FileSystem, Option, Path, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { hooksOf } from "../../domain/HookSettings.ts"
import { printable } from "../../domain/Inspection.ts"
import { isHomeOnly, type SettingsFile, withDefaults } from "../../domain/Settings.ts"
import {
  dotted,
  keyOf,
  leaves,
  type SettingsKey,
  type SettingsPath,
  unknownText,
  valueAt,
  valueOf,
  withValue
} from "../../domain/SettingsKey.ts"
import { settingsSchema } from "../../domain/SettingsSchema.ts"
import { shownValue } from "../../domain/SettingsSecrets.ts"
import { quoted, spelledOut } from "../../domain/WorkspacePath.ts"
import { EnvFiles } from "../../services/EnvFiles.ts"
import {
  type FileState,
  type Found,
  Settings,
  type SettingsError,
  type SettingsPlace
} from "../../services/Settings.ts"
import * as ModelWindows from "../../services/ModelWindows.ts"
import { Trust } from "../../services/Trust.ts"
import { cut } from "../Columns.ts"
import { badInput, type ExitError, failed } from "../ExitError.ts"
import * as Input from "../Input.ts"
import { keyVariable } from "../Key.ts"
import * as Output from "../Output.ts"
import { configImport } from "./configImport.ts"

/** One value, and where it comes from: `--json` of `list` and `get`. */
const Row = Schema.Struct({
  key: Schema.String,
  /** Null: set nowhere, and there is none that usually holds. */
  value: Schema.Json,
  /** Empty: what usually holds. */
  from: Schema.Array(Schema.String)
})
type Row = typeof Row.Type

/** What `list --json` prints. */
const Rows = Schema.Struct({ settings: Schema.Array(Row) })

/** What `path --json` prints. */
const Files = Schema.Struct({
  files: Schema.Array(
    Schema.Struct({ place: Schema.String, file: Schema.String, exists: Schema.Boolean, counts: Schema.Boolean })
  )
})

const CheckStatus = Schema.Literals(["ok", "warning", "problem"])

/** One thing that was looked at, and what to do about it. */
const Check = Schema.Struct({ check: Schema.String, status: CheckStatus, message: Schema.String })
type Check = typeof Check.Type

/** What `doctor --json` prints. */
const Checks = Schema.Struct({ checks: Schema.Array(Check) })

const refused = ({ isInput, message }: SettingsError): ExitError => (isInput ? badInput : failed)(printable(message))

/** Variables that have the value that the `.env` file gives them, and that file. */
const fromDotEnv = Effect.gen(function* () {
  const { file, variables } = yield* EnvFiles
  const same = yield* Effect.filter(Object.entries(variables), ([name, value]) =>
    Config.option(Config.String(name)).pipe(
      Effect.map((found) => Option.getOrUndefined(found) === value),
      Effect.orElseSucceed(() => false)
    )
  )
  return new Map(same.map(([name]) => [name, `${name} in ${file ?? ".env"}`]))
})

/** What is set, and one line a notice on stderr. */
const found = Effect.gen(function* () {
  const { read } = yield* Settings
  const all = yield* Effect.mapError(read, refused)
  yield* Effect.forEach(all.notices, Output.notice, { discard: true })
  return { ...all, dotEnv: yield* fromDotEnv }
})

/** What is set, and which variables a `.env` file sets. */
interface Given extends Found {
  readonly dotEnv: ReadonlyMap<string, string>
}

const asJson = Schema.decodeUnknownOption(Schema.Json)

const jsonOf = (path: SettingsPath, value: unknown): Schema.Json =>
  Option.getOrElse(asJson(shownValue(path, value)), () => null)

const rowOf = ({ dotEnv, sources }: Given, path: SettingsPath, value: unknown): Row => {
  const key = dotted(path)
  const from = [...sources].flatMap(([name, places]) =>
    name === key || name.startsWith(`${key}.`) ? places.map((place) => dotEnv.get(place.name) ?? place.name) : []
  )
  return { key, value: jsonOf(path, value), from: [...new Set(from)] }
}

/** All that holds: what is set as it is written, and the rest as it usually is. */
const effective = ({ settings, written }: Found): unknown =>
  leaves(written).reduce<unknown>((all, { path, value }) => withValue(all, path, value), withDefaults(settings))

const key = Argument.String("key").pipe(Argument.withDescription("A setting, such as window or memory.maxDirs"))

const keyNamed = (name: string): Effect.Effect<SettingsKey, ExitError> => {
  const known = keyOf(name)
  return "accepts" in known
    ? Effect.succeed(known)
    : Effect.fail(badInput(printable(`${unknownText(known)}; "palimpsest config list --all" shows what there is`)))
}

/** A value in one line that no terminal acts on, and that can be given back. */
const textOf = (value: Schema.Json): string =>
  typeof value === "string" ? quoted(value) : spelledOut(JSON.stringify(value))

/** Columns of a value in the list. */
const valueWidth = 60

const list = Command.make(
  "list",
  {
    all: Flag.Boolean("all").pipe(
      Flag.withAlias("a"),
      Flag.withDescription("Also what nobody set, with what usually holds"),
      Flag.withDefault(false)
    ),
    json: Input.json
  },
  Effect.fn("cli.config.list")(function* ({ all, json }) {
    const set = yield* found
    const rows = leaves(all ? effective(set) : set.written).map(({ path, value }) => rowOf(set, path, value))
    if (json) return yield* Output.json(Rows, { settings: rows })
    if (rows.length === 0) return yield* Output.notice("nothing is set; --all shows what usually holds")
    const { bold, dim } = yield* Output.style
    yield* Output.text(
      Output.table([
        ["KEY", "VALUE", "FROM"],
        ...rows.map(({ from, key: name, value }) => [
          from.length === 0 ? printable(name) : bold(printable(name)),
          cut(textOf(value), valueWidth),
          dim(from.length === 0 ? "default" : printable(from.join(", ")))
        ])
      ])
    )
  })
).pipe(Command.withDescription("List what is set, and where"))

const get = Command.make(
  "get",
  { key, json: Input.json },
  Effect.fn("cli.config.get")(function* ({ json, key: name }) {
    const { path } = yield* keyNamed(name)
    const set = yield* found
    const row = rowOf(set, path, valueAt(effective(set), path))
    if (json) return yield* Output.json(Row, row)
    if (row.value === null) return yield* failed(`${printable(row.key)} is not set`)
    yield* Output.exact(textOf(row.value))
  })
).pipe(Command.withDescription("Print the value that a setting has"))

const workspace = Flag.Boolean("workspace").pipe(
  Flag.withAlias("w"),
  Flag.withDescription("In the working folder's file instead of your own"),
  Flag.withDefault(false)
)

const placeOf = (isWorkspace: boolean): SettingsPlace => (isWorkspace ? "workspace" : "home")

/** What keeps a value that was written from counting. */
const tellHindrance = Effect.fnUntraced(function* (path: SettingsPath, place: SettingsPlace) {
  const { read, states } = yield* Settings
  const { files } = yield* states
  const own = files.find((file) => file.place === place)
  if (own?.state._tag === "LeftOut") return yield* Output.notice(`it does not count yet: ${own.state.why}`)
  const set = yield* Effect.option(read)
  const stronger = Option.isNone(set) ? undefined : set.value.sources.get(dotted(path))?.at(-1)
  if (stronger === undefined || stronger.place === place || own === undefined) return
  yield* Output.notice(`${stronger.name} sets it too, and wins`)
})

const set = Command.make(
  "set",
  {
    key,
    value: Argument.String("value").pipe(
      Argument.withDescription("As JSON or as it is; also 64k, 50%, on, or a list with commas")
    ),
    workspace
  },
  Effect.fn("cli.config.set")(function* ({ key: name, value: text, workspace: isWorkspace }) {
    const known = yield* keyNamed(name)
    const { expected, path } = known
    if (isWorkspace && isHomeOnly(path[0] ?? "")) {
      return yield* badInput(`${path[0] ?? ""} counts in your own settings only; leave --workspace out`)
    }
    const given = valueOf(known, text)
    if (given === undefined) return yield* badInput(printable(`${dotted(path)}: expected ${expected}`))
    const { set: write } = yield* Settings
    const place = placeOf(isWorkspace)
    const file = yield* Effect.mapError(write(place, path, given.value), refused)
    yield* Output.notice(`${dotted(path)} is ${textOf(jsonOf(path, given.value))} in ${file}`)
    yield* tellHindrance(path, place)
  })
).pipe(
  Command.withDescription("Set a value; all else in the file stays as it is"),
  Command.withExamples([
    { command: "palimpsest config set compressionThreshold 70%", description: "Compress later" },
    { command: "palimpsest config set memory.fileNames GEMINI.md,AGENTS.md --workspace", description: "In this folder" }
  ])
)

const unset = Command.make(
  "unset",
  { key, workspace },
  Effect.fn("cli.config.unset")(function* ({ key: name, workspace: isWorkspace }) {
    // What means nothing may be taken out too: it is told of, and this is how it goes.
    const known = keyOf(name)
    const path = "accepts" in known ? known.path : name.split(".")
    const { states, unset: write } = yield* Settings
    const file = yield* Effect.mapError(write(placeOf(isWorkspace), path), refused)
    if (file !== undefined) return yield* Output.notice(`${dotted(path)} is no longer set in ${file}`)
    if (!("accepts" in known)) yield* keyNamed(name)
    const { files } = yield* states
    const there = files.find(({ place }) => place === placeOf(isWorkspace))?.file ?? "the file"
    yield* Output.notice(`${dotted(path)} was not set in ${there}`)
  })
).pipe(Command.withDescription("Take a value out of the file"))

/** How it stands with a file, in a few words. */
const stateText = ({ state }: FileState): string => {
  switch (state._tag) {
    case "Absent":
      return "not there"
    case "Counts":
      return "counts"
    case "LeftOut":
      return `left out: ${state.why}`
    case "Broken":
      return "cannot be used"
  }
}

const pathCommand = Command.make(
  "path",
  { json: Input.json },
  Effect.fn("cli.config.path")(function* ({ json }) {
    const { states } = yield* Settings
    const { file: envFile, untrusted } = yield* EnvFiles
    const { files } = yield* states
    if (json) {
      return yield* Output.json(Files, {
        files: [
          ...files.map(({ file, place, state }) => ({
            place,
            file,
            exists: state._tag !== "Absent",
            counts: state._tag === "Counts"
          })),
          ...(envFile === undefined ? [] : [{ place: ".env", file: envFile, exists: true, counts: true }]),
          ...untrusted.map((file) => ({ place: ".env", file, exists: true, counts: false }))
        ]
      })
    }
    yield* Output.text(
      Output.table([
        ...files.map((file) => [file.place, printable(file.file), printable(stateText(file))]),
        ...(envFile === undefined ? [] : [[".env", printable(envFile), "counts"]]),
        ...untrusted.map((file) => [".env", printable(file), "left out: the folder is not trusted"])
      ])
    )
  })
).pipe(Command.withDescription("Show the files that settings are read from, the weaker first"))

const schema = Command.make(
  "schema",
  {},
  Effect.fn("cli.config.schema")(() => Output.text(JSON.stringify(settingsSchema(), undefined, 2)))
).pipe(
  Command.withDescription("Print the JSON Schema of settings files, for editors"),
  Command.withExamples([
    {
      command: "palimpsest config schema > settings.schema.json",
      description: `Name it as "$schema" in a settings file`
    }
  ])
)

const ok = (check: string, message: string): Check => ({ check, status: "ok", message })
const warning = (check: string, message: string): Check => ({ check, status: "warning", message })
const problem = (check: string, message: string): Check => ({ check, status: "problem", message })

const checkFile = ({ file, place, state }: FileState): ReadonlyArray<Check> => {
  const name = place === "gemini" ? "Gemini CLI's settings" : `${place} settings`
  switch (state._tag) {
    case "Absent":
      return [ok(name, `${file} is not there; nothing is set in it`)]
    case "LeftOut":
      return [warning(name, `${file} was left out: ${state.why}`)]
    case "Broken":
      return [problem(name, state.error.message)]
    case "Counts":
      return state.notices.length === 0 ? [ok(name, file)] : state.notices.map((notice) => warning(name, notice))
  }
}

/** Whether the home folder can be written to; one that is not there yet is made in the nearest that is. */
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
          ? `${at} cannot be written to; change its rights, or set PALIMPSEST_HOME to another folder`
          : `${at} is no folder; move it away, or set PALIMPSEST_HOME to another folder`
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
              ? `${folder} is not trusted: nothing is taken from it; "palimpsest trust" changes that`
              : `nobody said whether ${folder} is trusted, so nothing is taken from it; "palimpsest trust" says so`
          )
  })
})

const checkKey = Effect.map(keyVariable, (name) =>
  name === undefined
    ? warning("key", "there is none for the model: get one at https://aistudio.google.com/apikey, set GEMINI_API_KEY")
    : ok("key", `${name} is set`)
)

const checkHooks = (files: ReadonlyArray<FileState>): ReadonlyArray<Check> => {
  const read = files.flatMap(({ file, place, state }) =>
    state._tag === "Counts"
      ? [{ file, ...hooksOf(state.settings.hooks ?? {}, place === "home" ? "home" : "workspace") }]
      : []
  )
  const warnings = read.flatMap(({ file, warnings: all }) => all.map((text) => warning("hooks", `${file}: ${text}`)))
  const count = read.reduce((sum, { hooks }) => sum + hooks.length, 0)
  return warnings.length > 0 ? warnings : [ok("hooks", count === 0 ? "there are none" : Output.plural(count, "hook"))]
}

/** What the Gemini API takes as the name of a model. */
const modelName = /^(?:models\/|tunedModels\/)?[A-Za-z0-9][\w.-]*$/

const checkModel = (settings: SettingsFile): Check => {
  const { model } = withDefaults(settings)
  const { source, window } = ModelWindows.offline(model, settings.models)
  return modelName.test(model)
    ? source === "assumed"
      ? warning("model", ModelWindows.unknownText(model, settings.window ?? window))
      : ok("model", model)
    : problem("model", `${JSON.stringify(model)} is no name of a model; try palimpsest config set model gemini-2.5-pro`)
}

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
      ...env.untrusted.map((file) => warning(".env", `${file} was left out: its folder is not trusted`))
    ]
    const names = Object.keys(env.variables)
    const checks: ReadonlyArray<Check> = [
      ...(homeFile === undefined ? [] : [yield* checkHome(path.dirname(homeFile))]),
      yield* checkTrust,
      ...files.flatMap(checkFile),
      ...envChecks,
      ...(env.file === undefined
        ? envChecks.length === 0
          ? [ok(".env", "there is none")]
          : []
        : [ok(".env", `${env.file} sets ${names.join(", ")}`)]),
      ...broken.map(({ message }) => problem("environment", message)),
      ...notices.map((notice) => warning("environment", notice)),
      ...(fromEnvironment.length === 0 && broken.length + notices.length > 0
        ? []
        : [
            ok(
              "environment",
              fromEnvironment.length === 0
                ? "no setting comes from it"
                : `${fromEnvironment.map(({ key: name, name: variable }) => `${variable} sets ${name}`).join(", ")}`
            )
          ]),
      checkModel(settings),
      yield* checkKey,
      ...checkHooks(files)
    ]
    const problems = checks.filter(({ status }) => status === "problem").length
    if (json) yield* Output.json(Checks, { checks })
    else {
      const { bad, good, warn } = yield* Output.style
      const shown = { ok: good("OK"), warning: warn("warning"), problem: bad("problem") }
      yield* Output.text(
        Output.table(checks.map(({ check, message, status }) => [shown[status], check, printable(message)]))
      )
    }
    if (problems > 0) return yield* failed(json ? "" : `${Output.plural(problems, "problem")} to be solved`)
  })
).pipe(Command.withDescription("Look all places of settings through, and say what to do about what is wrong"))

/** `palimpsest config …` */
export const config = Command.make("config").pipe(
  Command.withDescription("What is set, and where"),
  Command.withSubcommands([list, get, set, unset, pathCommand, schema, doctor, configImport])
)
