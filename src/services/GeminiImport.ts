import { ByteSize, Context, Effect, FileSystem, Layer, Option, Path, Result, Schema } from "effect"
import { parseDefinitions } from "../domain/AgentDefinition.ts"
import { decode, encode } from "../domain/Bytes.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { pathText, type TakenKey, translated } from "../domain/GeminiSettings.ts"
import { importTokens, isAddress } from "../domain/MemoryImports.ts"
import { defaults } from "../domain/Settings.ts"
import { dotted, valueAt } from "../domain/SettingsKey.ts"
import { jsonOf, parseSettings, withSetting } from "../domain/SettingsText.ts"
import { parseSkill, skillFile } from "../domain/Skill.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import * as FileLock from "./FileLock.ts"
import * as Leftovers from "./Leftovers.ts"
import { look, read } from "./RegularFile.ts"
import * as WholeFile from "./WholeFile.ts"

/** Takes over what a person set up for Gemini CLI: settings, memory, agents and skills of its folder. */

/** What a row of the report is about. */
export const ImportKind = Schema.Literals(["setting", "memory", "agent", "skill", "file"])
export type ImportKind = typeof ImportKind.Type

/** What became of everything that was found. `from` is a key of the settings, or a path below the folder. */
export const ImportReport = Schema.Struct({
  /** The folder, links followed. */
  from: Schema.String,
  /** The home folder of this program. */
  home: Schema.String,
  /** Nothing was written. */
  dryRun: Schema.Boolean,
  /** `to` is a key of the settings here, or a file. */
  taken: Schema.Array(
    Schema.Struct({ kind: ImportKind, from: Schema.String, to: Schema.String, note: Schema.NullOr(Schema.String) })
  ),
  /** There was something here already, which stays. */
  kept: Schema.Array(Schema.Struct({ kind: ImportKind, from: Schema.String, to: Schema.String, why: Schema.String })),
  notTaken: Schema.Array(Schema.Struct({ kind: ImportKind, from: Schema.String, why: Schema.String }))
})
export type ImportReport = typeof ImportReport.Type

/** The folder cannot be taken over as a whole. One line: what is wrong, and what to do. */
export class GeminiImportError extends Schema.TaggedError<GeminiImportError>()("GeminiImportError", {
  message: Schema.String,
  /** Something that was given is wrong; else something went wrong while it was written. */
  isInput: Schema.Boolean
}) {}

/** What is taken over, and how. */
export interface ImportOptions {
  /** The folder; absent: the person's own. */
  readonly from?: string | undefined
  /** Only says what would be done. */
  readonly dryRun: boolean
}

/** Takes over the folder of Gemini CLI. */
export class GeminiImport extends Context.Service<
  GeminiImport,
  {
    /**
     * Takes over what can be. Nothing that is here already is changed, nothing outside the folder is read, and doing it again
     * takes nothing more.
     */
    readonly run: (options: ImportOptions) => Effect.Effect<ImportReport, GeminiImportError>
  }
>()("palimpsest/services/GeminiImport") {
  /** The import between these two folders. */
  static readonly layer = (places: ImportPlaces): Layer.Layer<GeminiImport, never, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      GeminiImport,
      Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (context) => ({
        run: Effect.fn("GeminiImport.run")((options: ImportOptions) =>
          Effect.provideContext(options.dryRun ? run(places, options) : alone(places, run(places, options)), context)
        )
      }))
    )
}

/** Where things lie. */
export interface ImportPlaces {
  /** The home folder of this program. */
  readonly home: string
  /** The person's folder of Gemini CLI. */
  readonly gemini: string
}

/** No text that is meant to be taken over is longer. */
const mostBytes = ByteSize.mebibytes(1)
/** A skill has no more bytes in all, no more files, and none that lie deeper. */
const mostOfSkill = ByteSize.mebibytes(20)
const mostFiles = 500
const deepest = 8
/** Files that memory may bring along. */
const mostImports = 1_000

/** Does what changes the settings while nobody else does. */
const alone = Effect.fnUntraced(function* <A, R>(places: ImportPlaces, work: Effect.Effect<A, GeminiImportError, R>) {
  const path = yield* Path.Path
  const file = path.resolve(places.home, "settings.json")
  yield* FileLock.hold({ file, lock: FileLock.besides(path, file) }).pipe(
    Effect.mapError((error) => undone(error._tag === "FileLocked" ? error.message : diskTrouble(error)))
  )
  return yield* work
}, Effect.scoped)

const unusable = (message: string) => new GeminiImportError({ message, isInput: true })
const undone = (message: string) => new GeminiImportError({ message, isInput: false })

/** A file that is to be written. */
interface Copy {
  readonly target: string
  readonly bytes: Uint8Array
  readonly mode: number
}

/** Why what lies in the folder beside all that is not taken over. */
const reasons: Readonly<Record<string, string>> = {
  commands: "commands of one's own are not known here; a skill can say the same",
  extensions: "extensions are not taken over; memory, skills and servers that they bring can be copied one by one",
  tmp: "sessions stay where they are; palimpsest reads them there",
  history: "what Gemini CLI keeps to put files back means nothing here",
  "trustedFolders.json": "folders are trusted here by palimpsest trust",
  "oauth_creds.json": "how to sign in is not taken over; a key comes from GEMINI_API_KEY",
  "google_accounts.json": "how to sign in is not taken over; a key comes from GEMINI_API_KEY",
  "mcp-oauth-tokens.json": "how to sign in is not taken over",
  "mcp-oauth-tokens-v2.json": "how to sign in is not taken over",
  policies: "what may run unasked is not taken over; approve and allowed say it here",
  ".env": "may hold keys and is not copied; the one in your own .gemini folder is read where it is"
}

const run = Effect.fnUntraced(function* (
  places: ImportPlaces,
  { dryRun, from }: ImportOptions
): Effect.fn.Return<ImportReport, GeminiImportError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const given = path.resolve(from ?? places.gemini)
  const folder = yield* fs
    .realPath(given)
    .pipe(
      Effect.mapError((error) =>
        unusable(
          isNotFound(error)
            ? `there is no folder ${quoted(given)}; name the one of Gemini CLI with --from`
            : diskTrouble(error)
        )
      )
    )
  const home = yield* Effect.orElseSucceed(fs.realPath(places.home), () => path.resolve(places.home))
  if (folder === home) return yield* unusable(`${quoted(folder)} is the home folder of this program itself`)
  const entries = yield* fs.readDirectory(folder).pipe(
    Effect.map((names) => names.toSorted()),
    Effect.mapError((error) => unusable(diskTrouble(error)))
  )

  const taken: Array<ImportReport["taken"][number]> = []
  const kept: Array<ImportReport["kept"][number]> = []
  const notTaken: Array<ImportReport["notTaken"][number]> = []
  const leave = (kind: ImportKind, what: string, why: string) => void notTaken.push({ kind, from: what, why })
  const copies: Array<Copy> = []
  const shared = (...parts: ReadonlyArray<string>) => parts.join("/")

  /** The bytes of a file below the folder, or why they cannot be had. */
  const source = Effect.fnUntraced(function* (file: string, most = mostBytes) {
    const found = yield* Effect.result(fs.realPath(path.join(folder, file)))
    if (Result.isFailure(found)) {
      return Result.fail(isNotFound(found.failure) ? "there is no such file" : diskTrouble(found.failure))
    }
    const inside = path.relative(folder, found.success)
    if (inside === ".." || inside.startsWith(`..${path.sep}`) || path.isAbsolute(inside)) {
      return Result.fail("leads out of the folder")
    }
    return yield* Effect.gen(function* () {
      const info = yield* look(found.success, "it")
      if (ByteSize.isGreaterThan(info.size, most)) return Result.fail(`has more than ${ByteSize.format(most)}`)
      return Result.succeed({ bytes: yield* read(found.success, "it"), mode: info.mode })
    }).pipe(Effect.catch(({ message }) => Effect.succeed(Result.fail(message))))
  })

  /** How it stands with a file that would be written. */
  const standing = Effect.fnUntraced(function* (target: string, bytes: Uint8Array) {
    const there = yield* Effect.result(fs.lstat(target))
    if (Result.isFailure(there)) {
      return isNotFound(there.failure) ? ("missing" as const) : ("other" as const)
    }
    const known = yield* fs.realPath(target).pipe(
      Effect.flatMap((real) => read(real, "it")),
      Effect.option
    )
    if (Option.isNone(known) || known.value.length !== bytes.length) return "other" as const
    return known.value.every((byte, at) => byte === bytes[at]) ? ("same" as const) : ("other" as const)
  })

  const targetOf = (file: string) => path.join(home, ...file.split("/"))

  const write = (target: string, bytes: Uint8Array, mode: number) => {
    if (!copies.some((copy) => copy.target === target)) copies.push({ target, bytes, mode })
  }

  /** Takes one file over; whether it is here then. */
  const take = Effect.fnUntraced(function* (kind: ImportKind, file: string, bytes: Uint8Array) {
    const target = targetOf(file)
    switch (yield* standing(target, bytes)) {
      case "missing":
        write(target, bytes, 0o600)
        taken.push({ kind, from: file, to: target, note: null })
        return true
      case "same":
        kept.push({ kind, from: file, to: target, why: "is so here already" })
        return true
      case "other":
        leave(kind, file, `${quoted(target)} is there and differs`)
        return false
    }
  })

  // Settings

  const homeFile = path.join(home, "settings.json")
  const before = yield* fs.realPath(homeFile).pipe(
    Effect.flatMap((real) => read(real, quoted(homeFile))),
    Effect.map((bytes) => decode(bytes).text),
    Effect.catchIf(
      (error) => error._tag === "PlatformError" && isNotFound(error),
      () => Effect.succeed("")
    ),
    Effect.mapError((error) => unusable(error._tag === "PlatformError" ? diskTrouble(error) : error.message))
  )
  const ours = before.trim() === "" ? Result.succeed({}) : Result.map(parseSettings(before), ({ written }) => written)
  if (Result.isFailure(ours)) {
    const { key, message } = ours.failure
    return yield* unusable(`${quoted(homeFile)}${key === undefined ? "" : `, ${key}`}: ${message}`)
  }
  let settings: ReadonlyArray<TakenKey> = []
  if (entries.includes("settings.json")) {
    const shown = quoted(path.join(folder, "settings.json"))
    const found = yield* source("settings.json")
    if (Result.isFailure(found)) return yield* unusable(`${shown}: ${found.failure}`)
    const json = jsonOf(decode(found.success.bytes).text)
    if (Result.isFailure(json)) return yield* unusable(`${shown}: ${json.failure.message}`)
    const rows = translated(json.success, ours.success)
    settings = rows.taken
    for (const { from: key, note, to } of rows.taken) {
      taken.push({ kind: "setting", from: pathText(key), to: dotted(to), note: note ?? null })
    }
    for (const { from: key, to, why } of rows.kept)
      kept.push({ kind: "setting", from: pathText(key), to: dotted(to), why })
    for (const { from: key, why } of rows.left) leave("setting", pathText(key), why)
  }
  const merged = settings.reduce<ReturnType<typeof withSetting>>(
    (text, { to, value }) => Result.flatMap(text, (so) => withSetting(so, to, value)),
    Result.succeed(before)
  )
  if (Result.isFailure(merged)) {
    return yield* unusable(`${quoted(homeFile)}, ${merged.failure.key ?? ""}: ${merged.failure.message}`)
  }

  // Memory, with what it imports

  const named =
    settings.find(({ to }) => dotted(to) === "memory.fileNames")?.value ??
    valueAt(ours.success, ["memory", "fileNames"])
  const isNames = Schema.is(Schema.Array(Schema.String))
  const names = new Set([...(isNames(named) ? named : []), "GEMINI.md", ...defaults.memory.fileNames])
  const waiting = entries.filter((name) => names.has(name)).map((file) => ({ file, by: file }))
  const seen = new Set(waiting.map(({ file }) => file))
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { by, file } = next
    const found = yield* source(file)
    if (Result.isFailure(found)) {
      leave("memory", by, found.failure)
      continue
    }
    if (!(yield* take("memory", file, found.success.bytes))) continue
    for (const { path: wanted } of importTokens(decode(found.success.bytes).text)) {
      const what = `${file}: @${wanted}`
      const target = path.normalize(path.join(path.dirname(file), wanted)).replaceAll(path.sep, "/")
      if (seen.has(target)) continue
      seen.add(target)
      const isThere = yield* Effect.orElseSucceed(fs.exists(path.join(folder, target)), () => true)
      // A name without a dot or a slash is rather somebody's than a file's.
      if (!isThere && !/[./]/.test(wanted)) continue
      if (isAddress(wanted)) leave("memory", what, "is an address; only files are copied")
      else if (path.isAbsolute(wanted))
        leave("memory", what, "is no path below the file that names it; it is not copied")
      else if (target === ".." || target.startsWith("../")) leave("memory", what, "leads out of the folder")
      else if (!/\.(?:md|mdx|markdown|txt)$/i.test(target))
        leave("memory", what, "only texts are copied: .md, .mdx, .markdown, .txt")
      else if (seen.size > mostImports) leave("memory", what, `only ${mostImports} imports are followed`)
      else waiting.push({ file: target, by: what })
    }
  }

  // Agents and skills

  const below = (name: string) =>
    Effect.map(
      Effect.orElseSucceed(fs.readDirectory(path.join(folder, name)), (): ReadonlyArray<string> => []),
      (found) => found.toSorted()
    )

  /** Whether a path below the folder is a folder that lies in it. */
  const kindOf = Effect.fnUntraced(function* (file: string) {
    const info = yield* Effect.option(fs.lstat(path.join(folder, file)))
    return Option.getOrUndefined(info)?.type
  })

  if (entries.includes("agents") && (yield* kindOf("agents")) === "Directory") {
    for (const name of yield* below("agents")) {
      const file = shared("agents", name)
      if (!name.endsWith(".md")) {
        leave("agent", file, "is no definition of an agent, which ends in .md")
        continue
      }
      const found = yield* source(file)
      const parsed = Result.isFailure(found)
        ? Result.fail(found.failure)
        : name.startsWith("_")
          ? Result.succeed([])
          : parseDefinitions(decode(found.success.bytes).text)
      if (Result.isFailure(parsed)) leave("agent", file, parsed.failure)
      else if (Result.isSuccess(found)) yield* take("agent", file, found.success.bytes)
    }
  }

  /** All files of a skill; what is none is left, with a row. */
  const filesOf = Effect.fnUntraced(function* (skill: string) {
    const files: Array<string> = []
    let level: ReadonlyArray<string> = [skill]
    for (let depth = 0; depth < deepest && level.length > 0; depth += 1) {
      const further: Array<string> = []
      for (const at of level) {
        for (const name of yield* below(at)) {
          const file = shared(at, name)
          const type = yield* kindOf(file)
          if (type === "File") files.push(file)
          else if (type === "Directory" && name !== ".git" && name !== "node_modules") further.push(file)
          else
            leave(
              "skill",
              file,
              type === "Directory" ? "is not part of a skill" : "is no regular file; links are not followed"
            )
        }
      }
      if (files.length > mostFiles) return Result.fail(`has more than ${mostFiles} files`)
      level = further
    }
    return level.length > 0 ? Result.fail(`has folders more than ${deepest} deep`) : Result.succeed(files)
  })

  const takeSkill = Effect.fnUntraced(function* (skill: string) {
    const main = yield* source(shared(skill, skillFile))
    const parsed = Result.flatMap(main, ({ bytes }) => parseSkill(decode(bytes).text))
    if (Result.isFailure(parsed)) return leave("skill", skill, `${skillFile}: ${parsed.failure}`)
    const files = yield* filesOf(skill)
    if (Result.isFailure(files)) return leave("skill", skill, files.failure)
    const missing: Array<Copy> = []
    let size = 0
    for (const file of files.success) {
      const found = yield* source(file, mostOfSkill)
      if (Result.isFailure(found)) return leave("skill", skill, `${file}: ${found.failure}`)
      const { bytes, mode } = found.success
      size += bytes.length
      if (size > ByteSize.toNumberUnsafe(mostOfSkill)) {
        return leave("skill", skill, `has more than ${ByteSize.format(mostOfSkill)}`)
      }
      const target = targetOf(file)
      const state = yield* standing(target, bytes)
      if (state === "other") return leave("skill", skill, `${quoted(target)} is there and differs`)
      // A script of the person's stays one that can be run.
      if (state === "missing") missing.push({ target, bytes, mode: (mode & 0o100) === 0 ? 0o600 : 0o700 })
    }
    const to = targetOf(skill)
    if (missing.length === 0) return void kept.push({ kind: "skill", from: skill, to, why: "is so here already" })
    for (const { bytes, mode, target } of missing) write(target, bytes, mode)
    const count = missing.length
    taken.push({ kind: "skill", from: skill, to, note: `${count} ${count === 1 ? "file" : "files"}` })
  })

  if (entries.includes("skills") && (yield* kindOf("skills")) === "Directory") {
    for (const name of yield* below("skills")) {
      const skill = shared("skills", name)
      if ((yield* kindOf(skill)) === "Directory") yield* takeSkill(skill)
      else leave("skill", skill, "is no folder of a skill; links are not followed")
    }
  }

  // All else

  for (const name of entries) {
    const isDone =
      name === "settings.json" ||
      names.has(name) ||
      ((name === "agents" || name === "skills") && (yield* kindOf(name)) === "Directory")
    if (isDone || seen.has(name)) continue
    const isPart = [...taken, ...kept].some(({ from: file, kind }) => kind === "memory" && file.startsWith(`${name}/`))
    leave(
      "file",
      name,
      reasons[name] ?? (isPart ? "beside what memory imports nothing of it is taken" : "means nothing here")
    )
  }

  if (!dryRun) {
    yield* commit(copies, { file: homeFile, before, after: merged.success }).pipe(Effect.scoped)
  }
  return { from: folder, home, dryRun, taken, kept, notTaken }
})

/** Writes all that is to be written, each file whole or not at all; the settings last. What is interrupted can be done again. */
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
      const temporary = yield* Effect.acquireRelease(WholeFile.claim(target, 0o600), (file) =>
        fs.remove(file, { force: true }).pipe(Effect.retry({ times: 2 }), Effect.ignore)
      )
      yield* Effect.uninterruptible(WholeFile.fill(temporary, bytes, mode & 0o777))
      return temporary
    },
    Effect.mapError((error) => undone(`${diskTrouble(error)}; what was taken over so far stays, do it again then`))
  )
  const changed = (file: string) => undone(`${quoted(file)} was changed meanwhile; do it again`)
  const move = (temporary: string, target: string) =>
    Effect.mapError(fs.rename(temporary, target), (error) => undone(`${diskTrouble(error)}; do it again then`))
  /** A name that is free is taken by nobody else meanwhile, where the file system has links. */
  const place = (temporary: string, target: string) =>
    Effect.catch(fs.link(temporary, target), ({ reason }) =>
      reason._tag === "AlreadyExists" ? changed(target) : move(temporary, target)
    )

  for (const copy of copies) {
    const temporary = yield* written(copy)
    // What came while we read is somebody's too.
    if (yield* Effect.orElseSucceed(fs.exists(copy.target), () => true)) return yield* changed(copy.target)
    yield* place(temporary, copy.target)
  }
  if (settings.after === settings.before) return
  // Who keeps the file elsewhere and links to it finds it changed there.
  const target = yield* Effect.orElseSucceed(fs.realPath(settings.file), () => settings.file)
  const temporary = yield* written({ target, bytes: encode(settings.after), mode: 0o600 })
  const now = yield* Effect.orElseSucceed(
    Effect.map(fs.readFile(target), (bytes) => decode(bytes).text),
    () => ""
  )
  if (now !== settings.before) return yield* changed(target)
  yield* move(temporary, target)
  yield* Leftovers.sweepLock(FileLock.besides(path, path.resolve(settings.file)))
})
