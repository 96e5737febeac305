/**
 * The catalogue of a folder of sessions: a cache of the rows of their list, so that listing thousands does not open every
 * log. A row is valid only while the log and the title are the files it was made from. A catalogue that is missing, damaged
 * or of another version is rebuilt from the logs. Several programs may list at once; each replaces the file as a whole.
 */

import { Clock, Context, Effect, FileSystem, Option, Path, Semaphore } from "effect"
import { statSync } from "node:fs"
import type { SessionHead } from "../../domain/session/SessionHead.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import { hash } from "../../services/session/Sha256.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** The state of a file at one time. */
export interface FileStamp {
  /** Changes whenever the file does. */
  readonly mark: string
  readonly inode: number
  readonly isFile: boolean
  readonly bytes: number
  /** Milliseconds since 1970. `changedAt` also moves when the times or the name of a file are set. */
  readonly updatedAt: number
  readonly changedAt: number
  /** Why its state could not be read. */
  readonly problem?: string
}

/** A file, and its state at an earlier time. */
interface AskedFile {
  readonly file: string
  readonly before: FileStamp | undefined
}

/** Reads the states of many files; undefined for a file whose state could not be read this way. */
type StatFiles = (files: ReadonlyArray<AskedFile>) => Effect.Effect<ReadonlyArray<FileStamp | undefined>>

/** Files between two points where the fiber can be interrupted: about 2 ms. */
const statSliceFiles = 500

/** Returns the same object for a file that has not changed: making the marks of thousands takes longer than asking for their states. */
const stampAt = ({ before, file }: AskedFile): FileStamp | undefined => {
  const info = statSync(file, { throwIfNoEntry: false })
  if (info === undefined) return undefined
  if (before?.inode === info.ino && before.changedAt === info.ctimeMs && before.bytes === info.size) return before
  return {
    inode: info.ino,
    mark: `${info.dev} ${info.ino} ${info.size} ${info.mtimeMs} ${info.ctimeMs}`,
    isFile: info.isFile(),
    bytes: info.size,
    updatedAt: Math.floor(info.mtimeMs),
    changedAt: info.ctimeMs
  }
}

/**
 * Reads the states of files of the real disk synchronously, in slices: thousands take a tenth of the time they take through
 * `FileSystem`, which uses the thread pool for each. Marks hold the time of the last change, which only the system can set.
 */
export const statFiles: StatFiles = Effect.fnUntraced(function* (files) {
  const stamps: Array<FileStamp | undefined> = []
  for (let from = 0; from < files.length; from += statSliceFiles) {
    const some = files.slice(from, from + statSliceFiles)
    const read = yield* Effect.option(Effect.try(() => some.map(stampAt)))
    stamps.push(...Option.getOrElse(read, () => some.map(() => undefined)))
    yield* Effect.yieldNow
  }
  return stamps
})

/** Reads the states of files for the catalogue. The default reads them one by one through `FileSystem`. */
export const FileStats = Context.Reference<StatFiles>("palimpsest/layers/SessionCatalogue/FileLook", {
  defaultValue: () => (files) => Effect.succeed(files.map(() => undefined))
})

/** The list's data about a log. */
export interface LogRow extends SessionHead {
  /** Why it cannot be opened. Such a row is not cached: the log may open later, or with another version. */
  readonly problem: string | undefined
}

/** One session of the list: what its files hold, and the state of its log. */
interface ListedSession {
  readonly row: CachedRow
  readonly stamp: FileStamp
}

/** Reads rows that the catalogue does not hold. */
interface RowSource {
  /** Returns the row of a log; undefined when the log is gone. */
  readonly log: (id: string, stamp: FileStamp) => Effect.Effect<LogRow | undefined>
  /** Returns the title of a session; undefined when it has none. */
  readonly title: (id: string) => Effect.Effect<string | undefined>
}

interface CachedRow {
  readonly id: string
  readonly log: LogRow
  /** The mark of the log, and of the title where there is one. */
  readonly mark: string
  readonly titleMark: string | undefined
  readonly title: string | undefined
}

/** The version of the catalogue. Increase it whenever the same log or title gives another row. */
const version = 2
const fileName = ".catalogue"
/** A larger file is not a catalogue. */
const maxFileBytes = 128 * 1024 * 1024
/** The file is written again only after more changed rows than this: reading a few from their logs costs less. */
const minRowsToRewrite = 32
/** A file that changed this recently may change again and keep its mark, as file systems count time in ticks. */
const settleMillis = 2_500
const readConcurrency = 16
const statConcurrency = 64

const isText = (value: unknown): value is string | null => value === null || typeof value === "string"

const cachedRow = (value: unknown): CachedRow | undefined => {
  if (!Array.isArray(value)) return undefined
  const [id, mark, firstPrompt, model, cwd, parent, startedAt, titleMark, title]: ReadonlyArray<unknown> = value
  if (typeof id !== "string" || typeof mark !== "string") return undefined
  if (!isText(firstPrompt) || !isText(model) || !isText(cwd) || !isText(parent)) return undefined
  if (!isText(titleMark) || !isText(title) || (startedAt !== null && typeof startedAt !== "number")) return undefined
  const log = {
    firstPrompt: firstPrompt ?? undefined,
    model: model ?? undefined,
    cwd: cwd ?? undefined,
    parent: parent ?? undefined,
    startedAt: startedAt ?? undefined,
    problem: undefined
  }
  return { id, log, mark, titleMark: titleMark ?? undefined, title: title ?? undefined }
}

const rowText = ({ id, log, mark, title, titleMark }: CachedRow): string =>
  JSON.stringify([
    id,
    mark,
    log.firstPrompt ?? null,
    log.model ?? null,
    log.cwd ?? null,
    log.parent ?? null,
    log.startedAt ?? null,
    titleMark ?? null,
    title ?? null
  ])

/** The catalogue of a folder of sessions. */
export interface Catalogue {
  readonly directory: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly stat: StatFiles
  readonly source: RowSource
  /** Held while the file is written. */
  readonly mutex: Semaphore.Semaphore
  /** The rows of the file at this mark. */
  rows: Kept<CachedRow>
  /** The states of files when the folder had this mark. */
  states: Kept<FileStamp>
}

/** What was read at a mark, as long as nothing else needs the memory. */
type Kept<A> = { readonly mark: string | undefined; readonly read: WeakRef<Map<string, A>> } | undefined

const keptAt = <A>(kept: Kept<A>, mark: string): Map<string, A> | undefined =>
  kept?.mark === mark ? kept.read.deref() : undefined

/** Makes the catalogue of a folder. It reads and writes nothing before the first list. */
export const makeCatalogue = Effect.fnUntraced(function* (directory: string, source: RowSource) {
  const catalogue: Catalogue = {
    directory,
    fs: yield* FileSystem.FileSystem,
    path: yield* Path.Path,
    stat: yield* FileStats,
    source,
    mutex: yield* Semaphore.make(1),
    rows: undefined,
    states: undefined
  }
  return catalogue
})

const fileOf = ({ directory, path }: Catalogue, name: string): string => `${directory}${path.sep}${name}`

/** Returns the state of a file through `FileSystem`; undefined when the file is gone. */
const stampOf = (fs: FileSystem.FileSystem, file: string) =>
  fs.stat(file).pipe(
    Effect.map(({ dev, ino, mtime, size, type }): FileStamp => {
      const updatedAt = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
      const inode = Number(Option.getOrElse(ino, () => 0n))
      const mark = [dev, inode, size, updatedAt].join(" ")
      return { inode, mark, isFile: type === "File", bytes: Number(size), updatedAt, changedAt: updatedAt }
    }),
    Effect.catchIf(isNotFound, () => Effect.undefined),
    // One file that cannot be read is one row with a problem.
    Effect.catch((error) =>
      Effect.succeed<FileStamp>({
        inode: 0,
        mark: "",
        isFile: false,
        bytes: 0,
        updatedAt: 0,
        changedAt: Number.POSITIVE_INFINITY,
        problem: diskErrorText(error)
      })
    )
  )

/** Returns the states of files: the fast way, then through `FileSystem` for those that it did not return. */
const stampsOf = Effect.fnUntraced(function* ({ fs, stat }: Catalogue, files: ReadonlyArray<AskedFile>) {
  const stamps = Array.from(yield* stat(files))
  const missing = files.flatMap(({ file }, index) => (stamps[index] === undefined ? [{ file, index }] : []))
  const others = yield* Effect.forEach(missing, ({ file }) => stampOf(fs, file), { concurrency: statConcurrency })
  missing.forEach(({ index }, at) => (stamps[index] = others[at]))
  return stamps
})

/** The cached rows by session. Empty when the file is missing, damaged or of another version. */
const readRows = Effect.fnUntraced(
  function* (catalogue: Catalogue) {
    const { fs } = catalogue
    const rows = new Map<string, CachedRow>()
    const file = fileOf(catalogue, fileName)
    const [stamp] = yield* stampsOf(catalogue, [{ file, before: undefined }])
    if (stamp?.isFile !== true || stamp.bytes > maxFileBytes) return rows
    // An older content would do, too: each row is compared with its files.
    const kept = keptAt(catalogue.rows, stamp.mark)
    if (kept !== undefined) return kept
    const text = Bytes.decode(yield* fs.readFile(file)).text
    const end = text.indexOf("\n")
    const body = text.slice(end + 1)
    if (end < 0 || text.slice(0, end) !== `${version} ${yield* hash(body)}`) return rows
    const values = parsedOrUndefined(body)
    for (const value of Array.isArray(values) ? values : []) {
      const row = cachedRow(value)
      if (row !== undefined) rows.set(row.id, row)
    }
    catalogue.rows = { mark: stamp.mark, read: new WeakRef(rows) }
    return rows
  },
  Effect.orElseSucceed(() => new Map<string, CachedRow>())
)

const writeRows = Effect.fnUntraced(function* (catalogue: Catalogue, rows: ReadonlyArray<CachedRow>) {
  const body = `[${rows.map(rowText).join(",\n")}]`
  const bytes = Bytes.encode(`${version} ${yield* hash(body)}\n${body}`)
  yield* AtomicFile.write(fileOf(catalogue, fileName), bytes, 0o600).pipe(
    Effect.provideService(FileSystem.FileSystem, catalogue.fs),
    Effect.provideService(Path.Path, catalogue.path),
    ThisProcess.provide
  )
})

/** Removes the row of a deleted or renamed session at once, because it may be private. */
export const forgetSession = (catalogue: Catalogue, id: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { fs } = catalogue
    const file = fileOf(catalogue, fileName)
    if (!(yield* Effect.orElseSucceed(fs.exists(file), () => true))) return
    const rows = yield* readRows(catalogue)
    if (rows.size > 0 && !rows.has(id)) return
    rows.delete(id)
    yield* writeRows(catalogue, [...rows.values()]).pipe(
      Effect.catch(() => Effect.ignore(fs.remove(file, { force: true }), { log: "Warn" }))
    )
  }).pipe(catalogue.mutex.withPermit)

/** A session whose row has to be read again, with the states of its files. */
interface StaleSession {
  readonly id: string
  readonly log: FileStamp
  readonly title: FileStamp | undefined
  readonly cached: CachedRow | undefined
}

/** Reads the row of a session from its files; undefined when the log is gone. */
const readRow = Effect.fnUntraced(function* ({ source }: Catalogue, { cached, id, log, title }: StaleSession) {
  const row = cached?.mark === log.mark ? cached.log : yield* source.log(id, log)
  if (row === undefined) return undefined
  const name = title?.isFile === true ? yield* source.title(id) : undefined
  return { id, log: row, mark: log.mark, titleMark: title?.mark, title: name } satisfies CachedRow
})

const isSettled = (stamp: FileStamp | undefined, now: number): boolean =>
  stamp === undefined || now - stamp.changedAt > settleMillis

/** Whether the cached row is out of date. */
const isObsolete = ({ log, title }: CachedRow, cached: CachedRow | undefined): boolean =>
  cached !== undefined && (cached.title !== title || cached.log.firstPrompt !== log.firstPrompt)

/** The beginnings of the names with this ending. A folder has many logs, and few other files. */
export const withEnding = (names: ReadonlySet<string>, ending: string): ReadonlyArray<string> =>
  [...names].flatMap((name) => (name.endsWith(ending) ? [name.slice(0, -ending.length)] : []))

/**
 * Returns the states of these files of the folder. As long as nothing comes, goes or is replaced in the folder, only the logs that have a lock
 * may change: the others are not asked for again. `names` are those from before.
 */
const statesOf = Effect.fnUntraced(function* (
  catalogue: Catalogue,
  files: ReadonlyArray<string>,
  names: ReadonlySet<string>,
  now: number
) {
  const { directory } = catalogue
  const [folder] = yield* stampsOf(catalogue, [{ file: directory, before: undefined }])
  const before = catalogue.states?.read.deref()
  const kept = keptAt(catalogue.states, folder?.mark ?? "")
  const open = new Set(withEnding(names, ".lock").map((id) => `${id}.jsonl`))
  const asked = kept === undefined ? files : files.filter((file) => open.has(file) || !kept.has(file))
  const stamps = yield* stampsOf(
    catalogue,
    asked.map((file) => ({ file: fileOf(catalogue, file), before: before?.get(file) }))
  )
  const states = new Map(kept)
  for (const [index, file] of asked.entries()) {
    const stamp = stamps[index]
    if (stamp === undefined) states.delete(file)
    else states.set(file, stamp)
  }
  // States of a folder that may change again are compared with the next ones only.
  const mark = folder !== undefined && isSettled(folder, now) ? folder.mark : undefined
  catalogue.states = { mark, read: new WeakRef(states) }
  return states
})

/**
 * Lists the sessions with these ids, without those that are gone by now. `names` are the names in the folder. Reads rows
 * that are missing or changed, and writes the catalogue again when enough of them changed.
 */
export const listSessions = Effect.fnUntraced(function* (
  catalogue: Catalogue,
  ids: ReadonlyArray<string>,
  names: ReadonlySet<string>
) {
  const now = yield* Clock.currentTimeMillis
  const cache = names.has(fileName) ? yield* readRows(catalogue) : new Map<string, CachedRow>()
  const titled = new Set(withEnding(names, ".title"))
  const logs = ids.map((id) => `${id}.jsonl`)
  // The states are read before the files, so a file that changes in between has another mark next time.
  const states = yield* statesOf(catalogue, [...logs, ...[...titled].map((id) => `${id}.title`)], names, now)
  const sessions: Array<ListedSession> = []
  const rows: Array<CachedRow> = []
  const stale: Array<StaleSession> = []
  let gone = cache.size
  for (const [index, id] of ids.entries()) {
    const cached = cache.get(id)
    if (cached !== undefined) gone -= 1
    const log = states.get(logs[index] ?? "")
    if (log === undefined) continue
    const title = titled.has(id) ? states.get(`${id}.title`) : undefined
    if (cached === undefined || cached.mark !== log.mark || cached.titleMark !== title?.mark) {
      stale.push({ id, log, title, cached })
      continue
    }
    rows.push(cached)
    sessions.push({ row: cached, stamp: log })
  }
  let changed = 0
  let obsolete = 0
  const readAgain = yield* Effect.forEach(stale, (session) => readRow(catalogue, session), {
    concurrency: readConcurrency
  })
  for (const [index, row] of readAgain.entries()) {
    const session = stale[index]
    if (row === undefined || session === undefined) continue
    sessions.push({ row, stamp: session.log })
    if (isObsolete(row, session.cached)) obsolete += 1
    if (row.log.problem !== undefined || !isSettled(session.log, now) || !isSettled(session.title, now)) continue
    rows.push(row)
    changed += 1
  }
  // A folder that is not writable is listed from its logs every time.
  if (gone + obsolete > 0 || changed > minRowsToRewrite) {
    yield* Effect.ignore(catalogue.mutex.withPermit(writeRows(catalogue, rows)))
  }
  return sessions
})
