/** Adds this program to the settings of other agents, and removes it: plans the changes of their files, and writes them. */

import { Effect, FileSystem, Path, type PlatformError, Result, Schema } from "effect"
import type { AgentFile } from "../../domain/settings/AgentFiles.ts"
import { type FilePlan, planInstall, planUninstall, InstallRecord } from "../../domain/settings/InstalledFile.ts"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import * as FileLock from "../platform/FileLock.ts"
import * as RegularFile from "../platform/RegularFile.ts"
import * as StaleFiles from "../platform/StaleFiles.ts"

/** A file cannot be installed into, or the records cannot be used. The message is one sentence that names the file. */
export class InstallError extends Schema.TaggedError<InstallError>()("InstallError", { message: Schema.String }) {}

/** The records by the path of the file, with links followed. */
type InstallRecords = ReadonlyMap<string, InstallRecord>

const Stored = fromJson(
  Schema.Struct({ version: Schema.Literal(1), files: Schema.Record(Schema.String, InstallRecord) })
)
const decodeStored = Schema.decodeEffect(Stored)
const encodeStored = Schema.encodeEffect(Stored)

/** Reads the records; none when there is no file. */
const readRecords = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* fs.realPath(file).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError((error) => new InstallError({ message: diskErrorText(error) }))
  )
  if (place === undefined) return new Map()
  const bytes = yield* Effect.mapError(
    RegularFile.read(place, quotedPath(file)),
    ({ message }) => new InstallError({ message })
  )
  const stored = yield* Effect.mapError(
    decodeStored(decode(bytes).text),
    () =>
      new InstallError({
        message: `${quotedPath(file)} is damaged; delete it, and run uninstall again`
      })
  )
  return new Map(Object.entries(stored.files))
})

/** Writes the records. The lock on them is held. */
const writeRecords = Effect.fnUntraced(function* (file: string, records: InstallRecords, lock: string) {
  const text = yield* Effect.orDie(encodeStored({ version: 1, files: Object.fromEntries(records) }))
  yield* Effect.mapError(
    AtomicFile.writePrivate(file, `${text}\n`),
    (error) => new InstallError({ message: diskErrorText(error) })
  )
  yield* StaleFiles.sweepLock(lock)
})

/** Where the files of agents are. */
export interface InstallPlaces {
  /** The working folder, absolute. */
  readonly folder: string
  /** The folder of Codex's settings, absolute. */
  readonly codex: string
  /** The file of the records, in this program's home folder. */
  readonly records: string
}

/** A file that would be changed, which has not been read yet. */
export interface LocatedFile {
  readonly edits: AgentFile["edits"]
  /** The path at which the agent looks for it. */
  readonly expectedPath: string
  /** That path with links followed. */
  readonly file: string
  /** Whether a link leads out of the folder in which the agent looks. */
  readonly isOutside: boolean
}

/** A planned change of a file. */
export interface PlannedFile extends FilePlan, LocatedFile {
  /** The text now; undefined: there is no file. */
  readonly before: string | undefined
  /** Whether there is a record of it now. */
  readonly isRecorded: boolean
}

/** Whether a planned change changes the file. */
export const isChange = ({ after, before }: PlannedFile): boolean => after !== before

/** Largest file that is changed. Settings are much smaller. */
const maxFileBytes = 1_024 * 1_024

const failure = (message: string) => new InstallError({ message: `${message}; nothing was changed` })

/** The text of a file; undefined when there is none. Anything but a regular file of UTF-8 is refused without being opened. */
const textOf = Effect.fnUntraced(function* ({ expectedPath, file }: Pick<PlannedFile, "expectedPath" | "file">) {
  const shown = file === expectedPath ? quotedPath(file) : `${quotedPath(expectedPath)} (${quotedPath(file)})`
  const bytes = yield* RegularFile.read(file, shown, maxFileBytes).pipe(
    Effect.catchIf(
      ({ type }) => type === "file_not_found",
      () => Effect.undefined
    ),
    Effect.mapError(({ message, type }) => failure(type === "target_is_directory" ? `${shown} is a folder` : message))
  )
  if (bytes === undefined) return undefined
  const { text, valid } = decode(bytes)
  return valid ? text : yield* failure(`${shown} is not text in UTF-8`)
})

const onDisk = Effect.mapError((error: PlatformError.PlatformError) => failure(diskErrorText(error)))

/** Finds the files of an agent. Reads none of them: ask the user first where a link leads out of the folder. */
export const locateFiles = (files: ReadonlyArray<AgentFile>, places: InstallPlaces) =>
  Effect.forEach(files, ({ base, edits, path: name }) =>
    Effect.gen(function* () {
      const path = yield* Path.Path
      const folder = base === "codex" ? places.codex : places.folder
      const expectedPath = path.join(folder, name)
      const file = yield* AtomicFile.leadsTo(expectedPath)
      const isOutside = !isWithin(yield* AtomicFile.leadsTo(folder), file, path.sep)
      return { edits, expectedPath, file, isOutside }
    }).pipe(onDisk)
  )

const planFile = Effect.fnUntraced(function* (located: LocatedFile, isAdded: boolean, records: InstallRecords) {
  const fs = yield* FileSystem.FileSystem
  const { edits, file } = located
  const before = yield* textOf(located)
  const record = records.get(file)
  const absent: FilePlan = { after: undefined, record: undefined, foreign: [], stays: false }
  const plan = isAdded
    ? planInstall(before, record, edits)
    : before === undefined
      ? Result.succeed(absent)
      : planUninstall(before, record, edits)
  if (Result.isFailure(plan)) return yield* failure(`${quotedPath(file)}: ${plan.failure}`)
  const planned: PlannedFile = { ...plan.success, ...located, before, isRecorded: record !== undefined }
  if (before !== undefined && isChange(planned)) yield* onDisk(fs.access(file, { writable: true }))
  return planned
})

/** Plans an installation, or with `isAdded` false its removal. Changes nothing. */
export const planFiles = Effect.fn("AgentInstall.planFiles")(function* (
  files: ReadonlyArray<LocatedFile>,
  isAdded: boolean,
  places: InstallPlaces
) {
  const records = yield* readRecords(places.records)
  return yield* Effect.forEach(files, (file) => planFile(file, isAdded, records))
})

const writeFile = Effect.fnUntraced(
  function* ({ after, file }: PlannedFile) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    if (after === undefined) return yield* fs.remove(file)
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    // Tokens are added to such files.
    yield* AtomicFile.rewrite(file, encode(after), 0o600)
  },
  Effect.mapError((error) => new InstallError({ message: diskErrorText(error) }))
)

const isSame = (one: InstallRecords, other: InstallRecords): boolean =>
  JSON.stringify([...one]) === JSON.stringify([...other])

/** Writes planned changes, unless one of the files has changed since. A change is recorded before it is made. */
export const applyPlan = Effect.fn("AgentInstall.applyPlan")(function* (
  planned: ReadonlyArray<PlannedFile>,
  { records: file }: InstallPlaces
) {
  const changes = planned.filter(isChange)
  // The home folder is not created for nothing.
  if (changes.length === 0 && planned.every(({ isRecorded, record }) => !isRecorded && record === undefined)) return
  const lock = FileLock.lockFileOf(yield* Path.Path, file)
  const change = Effect.gen(function* () {
    const stored = yield* readRecords(file)
    for (const planned of changes) {
      if ((yield* textOf(planned)) !== planned.before) {
        return yield* failure(`${quotedPath(planned.file)} was changed meanwhile`)
      }
    }
    const added = new Map(stored)
    for (const { file, record } of planned) if (record !== undefined) added.set(file, record)
    if (!isSame(stored, added)) yield* writeRecords(file, added, lock)
    yield* Effect.forEach(changes, writeFile, { discard: true })
    const rest = new Map(added)
    for (const { file, record } of planned) if (record === undefined) rest.delete(file)
    if (!isSame(added, rest)) yield* writeRecords(file, rest, lock)
  })
  yield* Effect.mapError(FileLock.withLock({ file, lock }, change), (error) =>
    error._tag === "InstallError" ? error : new InstallError({ message: FileLock.lockErrorText(error) })
  )
})
