/**
 * Imports a user's Gemini CLI folder: settings, memory, agents and skills.
 *
 * One file: the steps share one report, and every entry of the folder must get exactly one row in it.
 */

import { ByteSize, Context, Effect, FileSystem, Layer, Option, Path, Result, Schema } from "effect"
import { parseDefinitions } from "../../domain/agent/AgentDefinition.ts"
import { parseSkill, skillFile } from "../../domain/agent/Skill.ts"
import { importTokens, isAddress } from "../../domain/memory/MemoryImports.ts"
import { type TranslatedKey, translateGeminiSettings } from "../../domain/settings/GeminiSettings.ts"
import { defaults } from "../../domain/settings/Settings.ts"
import { withSetting } from "../../domain/settings/SettingsEdits.ts"
import { dotted, valueAt } from "../../domain/settings/SettingsKey.ts"
import { jsonOf, parseSettings, type SettingsProblem } from "../../domain/settings/SettingsText.ts"
import { pathText } from "../../domain/settings/SkippedSetting.ts"
import { decode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import * as FileLock from "../platform/FileLock.ts"
import { inspect, read } from "../platform/RegularFile.ts"
import * as StaleFiles from "../platform/StaleFiles.ts"
import { type ImportKind, type ImportReport, neverReasons } from "./ImportReport.ts"

/** The folder cannot be imported. One line: what is wrong, and what to do. */
export class GeminiImportError extends Schema.TaggedError<GeminiImportError>()("GeminiImportError", {
  message: Schema.String,
  /** `NoFolder` and `Invalid` are wrong input; `NotWritten` is a failure to write. */
  reason: Schema.Literals(["NoFolder", "Invalid", "NotWritten"])
}) {}

/** What to import. */
export interface ImportOptions {
  /** The folder. Default: the user's own. */
  readonly from?: string | undefined
  /** Reports without writing. */
  readonly dryRun: boolean
}

/** Imports a Gemini CLI folder. */
export class GeminiImport extends Context.Service<
  GeminiImport,
  {
    /**
     * Imports everything that can be translated. Existing settings and files stay unchanged, nothing outside the folder
     * is read, and a second run imports nothing more.
     */
    readonly run: (options: ImportOptions) => Effect.Effect<ImportReport, GeminiImportError>
  }
>()("palimpsest/services/settings/GeminiImport") {
  /** The import between two folders. */
  static readonly layer = (places: ImportPlaces): Layer.Layer<GeminiImport, never, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      GeminiImport,
      Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (context) => ({
        run: Effect.fn("GeminiImport.run")((options: ImportOptions) =>
          Effect.provideContext(
            options.dryRun ? importFolder(places, options) : withLock(places, importFolder(places, options)),
            context
          )
        )
      }))
    )
}

/** The folders involved. */
export interface ImportPlaces {
  /** The home folder of this program. */
  readonly home: string
  /** The user's Gemini CLI folder. */
  readonly gemini: string
}

/** Largest text file imported. */
const maxFileSize = ByteSize.mebibytes(1)
/** Limits of a skill: total bytes, files and depth. */
const maxSkillSize = ByteSize.mebibytes(20)
const maxSkillFiles = 500
const maxSkillDepth = 8
/** Most files that memory may import. */
const maxImports = 1_000

/** Runs with the lock on the settings file. */
const withLock = Effect.fnUntraced(function* <A, R>(
  places: ImportPlaces,
  work: Effect.Effect<A, GeminiImportError, R>
) {
  const path = yield* Path.Path
  const file = path.resolve(places.home, "settings.json")
  yield* FileLock.acquire({ file, lock: FileLock.lockFileOf(path, file) }).pipe(
    Effect.mapError((error) => notDone(FileLock.lockErrorText(error)))
  )
  return yield* work
}, Effect.scoped)

const invalidInput = (message: string) => new GeminiImportError({ message, reason: "Invalid" })
const invalidSettings = (file: string, problem: SettingsProblem) => {
  const { key, text } = problem
  return invalidInput(`${quotedPath(file)}${key === undefined ? "" : `, ${key}`}: ${text}`)
}
const notDone = (message: string) => new GeminiImportError({ message, reason: "NotWritten" })

interface Copy {
  readonly target: string
  readonly bytes: Uint8Array
  readonly mode: number
}

/** One import: the folders, and what has been decided so far. */
interface ImportRun {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** The Gemini CLI folder, links resolved. */
  readonly folder: string
  /** This program's home folder, links resolved. */
  readonly home: string
  /** The names in the folder, sorted. */
  readonly entries: ReadonlyArray<string>
  readonly taken: Array<ImportReport["taken"][number]>
  readonly kept: Array<ImportReport["kept"][number]>
  readonly notTaken: Array<ImportReport["notTaken"][number]>
  readonly copies: Array<Copy>
}

const skip = ({ notTaken }: ImportRun, kind: ImportKind, from: string, why: string) =>
  void notTaken.push({ kind, from, why })

/** Keeps what is already here. */
const keep = ({ kept }: ImportRun, row: Omit<ImportReport["kept"][number], "why">, isSame: boolean) =>
  void kept.push({ ...row, why: isSame ? "already has this value" : "another value is set here and is kept" })

const leadsOut = "leads out of the folder"
const differs = (target: string) => `${quotedPath(target)} is there and differs`
const tooLarge = (limit: string) => `has more than ${limit}`

const joined = (...parts: ReadonlyArray<string>) => parts.join("/")

/** The result of a step; undefined, and a row that says why, where it fails. */
const orSkip = <A, R>(run: ImportRun, kind: ImportKind, from: string, step: Effect.Effect<A, string, R>) =>
  Effect.catch(step, (why) =>
    Effect.as(
      Effect.sync(() => skip(run, kind, from, why)),
      undefined
    )
  )

/** A file below the folder. Fails with the reason why it cannot be read. */
const readSource = Effect.fnUntraced(function* ({ folder, fs, path }: ImportRun, file: string, maxSize = maxFileSize) {
  const real = yield* Effect.mapError(fs.realPath(path.join(folder, file)), (error) =>
    isNotFound(error) ? "there is no such file" : diskErrorText(error)
  )
  if (!isWithin(folder, real, path.sep)) return yield* Effect.fail(leadsOut)
  const { mode, size } = yield* Effect.mapError(inspect(real, "it"), ({ message }) => message)
  if (ByteSize.isGreaterThan(size, maxSize)) return yield* Effect.fail(tooLarge(ByteSize.format(maxSize)))
  const bytes = yield* Effect.mapError(read(real, "it"), ({ message }) => message)
  return { bytes, mode }
})

/** The state of a file that would be written. */
const targetState = Effect.fnUntraced(function* ({ fs }: ImportRun, target: string, bytes: Uint8Array) {
  const there = yield* Effect.result(fs.lstat(target))
  if (Result.isFailure(there)) {
    return isNotFound(there.failure) ? ("missing" as const) : ("other" as const)
  }
  const existing = yield* fs.realPath(target).pipe(
    Effect.flatMap((real) => read(real, "it")),
    Effect.option
  )
  if (Option.isNone(existing) || existing.value.length !== bytes.length) return "other" as const
  return existing.value.every((byte, at) => byte === bytes[at]) ? ("same" as const) : ("other" as const)
})

const targetOf = ({ home, path }: ImportRun, file: string) => path.join(home, ...file.split("/"))

const addCopy = ({ copies }: ImportRun, target: string, bytes: Uint8Array, mode: number) => {
  if (!copies.some((copy) => copy.target === target)) copies.push({ target, bytes, mode })
}

/** Imports one file; returns whether it exists here afterwards. */
const importFile = Effect.fnUntraced(function* (run: ImportRun, kind: ImportKind, file: string, bytes: Uint8Array) {
  const target = targetOf(run, file)
  switch (yield* targetState(run, target, bytes)) {
    case "missing":
      addCopy(run, target, bytes, 0o600)
      run.taken.push({ kind, from: file, to: target, note: null })
      return true
    case "same":
      keep(run, { kind, from: file, to: target }, true)
      return true
    case "other":
      skip(run, kind, file, differs(target))
      return false
  }
})

/** Translates the settings. Returns the text of our settings file before and after. */
const importSettings = Effect.fnUntraced(function* (run: ImportRun) {
  const { entries, folder, fs, home, path } = run
  const homeFile = path.join(home, "settings.json")
  const before = yield* fs.realPath(homeFile).pipe(
    Effect.flatMap((real) => read(real, quotedPath(homeFile))),
    Effect.map((bytes) => decode(bytes).text),
    Effect.catchIf(
      (error) => error._tag === "PlatformError" && isNotFound(error),
      () => Effect.succeed("")
    ),
    Effect.mapError((error) => invalidInput(error._tag === "PlatformError" ? diskErrorText(error) : error.message))
  )
  const ours = before.trim() === "" ? Result.succeed({}) : Result.map(parseSettings(before), ({ written }) => written)
  if (Result.isFailure(ours)) {
    return yield* invalidSettings(homeFile, ours.failure)
  }
  let settings: ReadonlyArray<TranslatedKey> = []
  if (entries.includes("settings.json")) {
    const shown = quotedPath(path.join(folder, "settings.json"))
    const { bytes } = yield* Effect.mapError(readSource(run, "settings.json"), (why) =>
      invalidInput(`${shown}: ${why}`)
    )
    const json = jsonOf(decode(bytes).text)
    if (Result.isFailure(json)) return yield* invalidInput(`${shown}: ${json.failure.text}`)
    const rows = translateGeminiSettings(json.success, ours.success)
    settings = rows.taken
    for (const { from: key, note, to } of rows.taken) {
      run.taken.push({ kind: "setting", from: pathText(key), to: dotted(to), note: note ?? null })
    }
    for (const { from: key, isSame, to } of rows.kept)
      keep(run, { kind: "setting", from: pathText(key), to: dotted(to) }, isSame)
    for (const { from: key, why } of rows.left) skip(run, "setting", pathText(key), why)
  }
  const merged = settings.reduce<ReturnType<typeof withSetting>>(
    (text, { to, value }) => Result.flatMap(text, (so) => withSetting(so, to, value)),
    Result.succeed(before)
  )
  if (Result.isFailure(merged)) {
    return yield* invalidSettings(homeFile, merged.failure)
  }
  const names =
    settings.find(({ to }) => dotted(to) === "memory.fileNames")?.value ??
    valueAt(ours.success, ["memory", "fileNames"])
  return { file: homeFile, before, after: merged.success, memoryNames: isNames(names) ? names : [] }
})

const isNames = Schema.is(Schema.Array(Schema.String))

/** Imports memory files with their imports. Returns the paths examined. */
const importMemory = Effect.fnUntraced(function* (run: ImportRun, names: ReadonlySet<string>) {
  const { entries, folder, fs, path } = run
  const waiting = entries.filter((name) => names.has(name)).map((file) => ({ file, by: file }))
  const seen = new Set(waiting.map(({ file }) => file))
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { by, file } = next
    const source = yield* orSkip(run, "memory", by, readSource(run, file))
    if (source === undefined || !(yield* importFile(run, "memory", file, source.bytes))) continue
    for (const { path: importPath } of importTokens(decode(source.bytes).text)) {
      const what = `${file}: @${importPath}`
      const target = path.normalize(path.join(path.dirname(file), importPath)).replaceAll(path.sep, "/")
      if (seen.has(target)) continue
      seen.add(target)
      const isThere = yield* Effect.orElseSucceed(fs.exists(path.join(folder, target)), () => true)
      // A name without a dot or a slash is more likely a user name than a file.
      if (!isThere && !/[./]/.test(importPath)) continue
      if (isAddress(importPath)) skip(run, "memory", what, "is an address; only files are copied")
      else if (path.isAbsolute(importPath))
        skip(run, "memory", what, "is not below the file that names it; it is not copied")
      else if (target === ".." || target.startsWith("../")) skip(run, "memory", what, leadsOut)
      else if (!/\.(?:md|mdx|markdown|txt)$/i.test(target))
        skip(run, "memory", what, "only texts are copied: .md, .mdx, .markdown, .txt")
      else if (seen.size > maxImports) skip(run, "memory", what, `only ${maxImports} imports are followed`)
      else waiting.push({ file: target, by: what })
    }
  }
  return seen
})

/** The sorted names in a folder below the imported one. */
const namesIn = ({ folder, fs, path }: ImportRun, name: string) =>
  fs.readDirectory(path.join(folder, name)).pipe(
    Effect.map((names) => names.toSorted()),
    Effect.mapError(diskErrorText)
  )

/** The type of an entry below the folder, without following links. */
const typeOf = Effect.fnUntraced(function* ({ folder, fs, path }: ImportRun, file: string) {
  const info = yield* Effect.option(fs.lstat(path.join(folder, file)))
  return Option.getOrUndefined(info)?.type
})

/** Imports each agent, or each skill. */
const importEach = Effect.fnUntraced(function* <R>(
  run: ImportRun,
  kind: "agent" | "skill",
  importOne: (run: ImportRun, entry: string) => Effect.Effect<void, string, R>
) {
  const folder = `${kind}s`
  if (!run.entries.includes(folder) || (yield* typeOf(run, folder)) !== "Directory") return
  for (const name of (yield* orSkip(run, kind, folder, namesIn(run, folder))) ?? []) {
    const entry = joined(folder, name)
    yield* orSkip(run, kind, entry, importOne(run, entry))
  }
})

const importAgent = Effect.fnUntraced(function* (run: ImportRun, file: string) {
  if (!file.endsWith(".md")) return yield* Effect.fail("is not an agent definition, which ends in .md")
  const { bytes } = yield* readSource(run, file)
  if (!run.path.basename(file).startsWith("_")) {
    yield* Effect.fromResult(parseDefinitions(decode(bytes).text))
  }
  yield* importFile(run, "agent", file, bytes)
})

/** All files of a skill. Anything else is skipped with a row. */
const skillFiles = Effect.fnUntraced(function* (run: ImportRun, skill: string) {
  const files: Array<string> = []
  let level: ReadonlyArray<string> = [skill]
  for (let depth = 0; depth < maxSkillDepth && level.length > 0; depth += 1) {
    const further: Array<string> = []
    for (const at of level) {
      for (const name of yield* Effect.mapError(namesIn(run, at), (why) => `${at}: ${why}`)) {
        const file = joined(at, name)
        const type = yield* typeOf(run, file)
        if (type === "File") files.push(file)
        else if (type === "Directory" && name !== ".git" && name !== "node_modules") further.push(file)
        else
          skip(
            run,
            "skill",
            file,
            type === "Directory" ? "is not part of a skill" : "is not a regular file; links are not followed"
          )
      }
    }
    if (files.length > maxSkillFiles) return yield* Effect.fail(tooLarge(`${maxSkillFiles} files`))
    level = further
  }
  return level.length > 0 ? yield* Effect.fail(`has folders more than ${maxSkillDepth} deep`) : files
})

/** Imports a skill with all its files, or nothing of it. */
const importSkill = Effect.fnUntraced(function* (run: ImportRun, skill: string) {
  if ((yield* typeOf(run, skill)) !== "Directory") {
    return yield* Effect.fail("is not the folder of a skill; links are not followed")
  }
  yield* readSource(run, joined(skill, skillFile)).pipe(
    Effect.flatMap(({ bytes }) => Effect.fromResult(parseSkill(decode(bytes).text))),
    Effect.mapError((why) => `${skillFile}: ${why}`)
  )
  const missing: Array<Copy> = []
  let total = 0
  for (const file of yield* skillFiles(run, skill)) {
    const { bytes, mode } = yield* Effect.mapError(readSource(run, file, maxSkillSize), (why) => `${file}: ${why}`)
    total += bytes.length
    if (total > ByteSize.toNumberUnsafe(maxSkillSize)) {
      return yield* Effect.fail(tooLarge(ByteSize.format(maxSkillSize)))
    }
    const target = targetOf(run, file)
    const state = yield* targetState(run, target, bytes)
    if (state === "other") return yield* Effect.fail(differs(target))
    // Scripts stay executable.
    if (state === "missing") missing.push({ target, bytes, mode: (mode & 0o100) === 0 ? 0o600 : 0o700 })
  }
  const to = targetOf(run, skill)
  if (missing.length === 0) return keep(run, { kind: "skill", from: skill, to }, true)
  for (const { bytes, mode, target } of missing) addCopy(run, target, bytes, mode)
  const count = missing.length
  run.taken.push({ kind: "skill", from: skill, to, note: `${count} ${count === 1 ? "file" : "files"}` })
})

/** Reports what is not imported. `examined` are paths that already have a row. */
const skipOthers = Effect.fnUntraced(function* (
  run: ImportRun,
  names: ReadonlySet<string>,
  examined: ReadonlySet<string>
) {
  for (const name of run.entries) {
    const isDone =
      name === "settings.json" ||
      names.has(name) ||
      ((name === "agents" || name === "skills") && (yield* typeOf(run, name)) === "Directory")
    if (isDone || examined.has(name)) continue
    const isPart = [...run.taken, ...run.kept].some(
      ({ from: file, kind }) => kind === "memory" && file.startsWith(`${name}/`)
    )
    const why = isPart ? "only the files that memory imports are copied" : "is not supported"
    skip(run, "file", name, (Object.hasOwn(neverReasons, name) ? neverReasons[name] : undefined) ?? why)
  }
})

const importFolder = Effect.fnUntraced(function* (
  places: ImportPlaces,
  { dryRun, from }: ImportOptions
): Effect.fn.Return<ImportReport, GeminiImportError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const requested = path.resolve(from ?? places.gemini)
  const folder = yield* fs
    .realPath(requested)
    .pipe(
      Effect.mapError((error) =>
        isNotFound(error)
          ? new GeminiImportError({ message: `there is no folder ${quotedPath(requested)}`, reason: "NoFolder" })
          : invalidInput(diskErrorText(error))
      )
    )
  const home = yield* Effect.orElseSucceed(fs.realPath(places.home), () => path.resolve(places.home))
  if (folder === home) return yield* invalidInput(`${quotedPath(folder)} is the home folder of this program itself`)
  const entries = yield* fs.readDirectory(folder).pipe(
    Effect.map((names) => names.toSorted()),
    Effect.mapError((error) => invalidInput(diskErrorText(error)))
  )

  const run: ImportRun = { fs, path, folder, home, entries, taken: [], kept: [], notTaken: [], copies: [] }
  const { memoryNames, ...settings } = yield* importSettings(run)
  const names = new Set([...memoryNames, "GEMINI.md", ...defaults.memory.fileNames])
  const examined = yield* importMemory(run, names)
  yield* importEach(run, "agent", importAgent)
  yield* importEach(run, "skill", importSkill)
  yield* skipOthers(run, names, examined)
  if (!dryRun) yield* commit(run.copies, settings).pipe(Effect.scoped)
  return { from: folder, home, dryRun, taken: run.taken, kept: run.kept, notTaken: run.notTaken }
})

/** Writes everything, each file atomically, the settings last. An interrupted import can be repeated. */
const commit = Effect.fnUntraced(function* (
  copies: ReadonlyArray<Copy>,
  settings: { readonly file: string; readonly before: string; readonly after: string }
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const written = Effect.fnUntraced(
    function* ({ bytes, mode, target }: Copy) {
      const parent = path.dirname(target)
      yield* fs.makeDirectory(parent, { recursive: true, mode: 0o700 })
      const temporary = yield* Effect.acquireRelease(AtomicFile.claim(target, 0o600), (file) =>
        fs.remove(file, { force: true }).pipe(Effect.retry({ times: 2 }), Effect.ignore)
      )
      yield* Effect.uninterruptible(AtomicFile.fill(temporary, bytes, mode & 0o777))
      return temporary
    },
    Effect.mapError((error) => notDone(`${diskErrorText(error)}; files imported so far stay; run the import again`))
  )
  const changed = (file: string) => notDone(`${quotedPath(file)} changed during the import; run it again`)
  const move = (temporary: string, target: string) =>
    Effect.mapError(fs.rename(temporary, target), (error) => notDone(`${diskErrorText(error)}; run the import again`))
  /** Creates the file without replacing one created meanwhile, where the file system has hard links. */
  const place = (temporary: string, target: string) =>
    Effect.catch(fs.link(temporary, target), ({ reason }) =>
      reason._tag === "AlreadyExists" ? changed(target) : move(temporary, target)
    )

  for (const copy of copies) {
    const temporary = yield* written(copy)
    // Files created while we read are preserved too.
    if (yield* Effect.orElseSucceed(fs.exists(copy.target), () => true)) return yield* changed(copy.target)
    yield* place(temporary, copy.target)
  }
  if (settings.after === settings.before) return
  const now = yield* fs.realPath(settings.file).pipe(
    Effect.flatMap((place) => read(place, "it")),
    Effect.map((bytes) => decode(bytes).text),
    Effect.orElseSucceed(() => "")
  )
  if (now !== settings.before) return yield* changed(settings.file)
  yield* Effect.mapError(AtomicFile.rewritePrivate(settings.file, settings.after), (error) =>
    notDone(`${diskErrorText(error)}; run the import again`)
  )
  yield* StaleFiles.sweepLock(FileLock.lockFileOf(path, path.resolve(settings.file)))
})
