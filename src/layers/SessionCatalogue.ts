import { Clock, Context, Effect, FileSystem, Option, Path, Semaphore } from "effect"
import { statSync } from "node:fs"
import * as Bytes from "../domain/Bytes.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { parsedOrUndefined } from "../domain/JsonText.ts"
import type { SessionHead } from "../domain/SessionHead.ts"
import * as WholeFile from "../services/WholeFile.ts"
import { hash } from "./Sha256.ts"
import * as ThisProcess from "./ThisProcess.ts"

/**
 * The catalogue of a folder of sessions: what their list shows, so that listing thousands does not open each log again. It is
 * derived: a row counts only while the log and the title are the files it was made of, and a catalogue that is missing,
 * damaged or of another version is made anew. Several programs may list at once; each replaces the file as a whole.
 */

/** One state of a file. */
export interface Stamp {
  /** Differs when the file does. */
  readonly mark: string
  readonly isFile: boolean
  readonly bytes: number
  /** Milliseconds since 1970; `changedAt` also moves when a file got its times or its name from something else. */
  readonly updatedAt: number
  readonly changedAt: number
  /** Why it could not be looked at. */
  readonly problem?: string
}

/** The states of many files; undefined for one that could not be looked at this way. */
export type Look = (files: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Stamp | undefined>>

/** Files looked at between two chances for an interruption: some 2 ms. */
const lookSlice = 500

const stampAt = (file: string): Stamp | undefined => {
  const info = statSync(file, { throwIfNoEntry: false })
  if (info === undefined) return undefined
  return {
    mark: `${info.dev} ${info.ino} ${info.size} ${info.mtimeMs} ${info.ctimeMs}`,
    isFile: info.isFile(),
    bytes: info.size,
    updatedAt: Math.floor(info.mtimeMs),
    changedAt: info.ctimeMs
  }
}

/**
 * Looks at files of the real disk, in slices, without a call of the thread pool for each: thousands take a tenth of the time
 * that they take through `FileSystem`. Marks hold the time of the last change, which nothing but the system can set.
 */
export const nodeLook: Look = Effect.fnUntraced(function* (files) {
  const stamps: Array<Stamp | undefined> = []
  for (let from = 0; from < files.length; from += lookSlice) {
    const some = files.slice(from, from + lookSlice)
    const found = yield* Effect.option(Effect.try(() => some.map(stampAt)))
    stamps.push(...Option.getOrElse(found, () => some.map(() => undefined)))
    yield* Effect.yieldNow
  }
  return stamps
})

/** How the states of files are looked up; by default one by one, with what `FileSystem` tells of a file. */
export const FileLook = Context.Reference<Look>("palimpsest/layers/SessionCatalogue/FileLook", {
  defaultValue: () => (files) => Effect.succeed(files.map(() => undefined))
})

/** What is listed of a log. */
export interface LogRow extends SessionHead {
  /** Why it cannot be opened. Such a row is not kept: it may be well tomorrow, or with another version. */
  readonly problem: string | undefined
}

/** One session of the list. */
export interface Listed extends LogRow {
  readonly id: string
  readonly title: string | undefined
  readonly bytes: number
  readonly updatedAt: number
}

/** How rows are made of files. */
export interface Source {
  /** Undefined: the log is gone. */
  readonly log: (id: string, stamp: Stamp) => Effect.Effect<LogRow | undefined>
  /** What a session is called; undefined: nothing. */
  readonly title: (id: string) => Effect.Effect<string | undefined>
}

interface Kept {
  readonly id: string
  readonly log: LogRow
  /** The mark of the log, and of the title where there is one. */
  readonly mark: string
  readonly titleMark: string | undefined
  readonly title: string | undefined
}

/** The version of the catalogue; one more whenever the same log or title gives another row. */
const version = 2
const fileName = ".catalogue"
/** A larger file is none of ours. */
const maxFileBytes = 128 * 1024 * 1024
/** Rows that have to differ before the file is written again: so few cost less to read from their logs. */
const rewriteFrom = 32
/** A file that changed within this many milliseconds may change again without another mark: disks count in ticks. */
const settleTime = 2_500
const readConcurrency = 16
const lookConcurrency = 64

const isText = (value: unknown): value is string | null => value === null || typeof value === "string"

const keptOf = (value: unknown): Kept | undefined => {
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

const rowText = ({ id, log, mark, title, titleMark }: Kept): string =>
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

/** The catalogue of `directory`. Nothing is read or written before the first list. */
export const make = Effect.fnUntraced(function* (directory: string, source: Source) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const look = yield* FileLook
  const folder = `${directory}${path.sep}`
  const file = `${folder}${fileName}`

  /** By the file system; undefined where there is no such file any more. */
  const stampOf = (place: string) =>
    fs.stat(place).pipe(
      Effect.map(({ dev, ino, mtime, size, type }): Stamp => {
        const updatedAt = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
        const mark = [dev, Option.getOrElse(ino, () => 0n), size, updatedAt].join(" ")
        return { mark, isFile: type === "File", bytes: Number(size), updatedAt, changedAt: updatedAt }
      }),
      Effect.catchIf(isNotFound, () => Effect.undefined),
      // One odd file is one odd row.
      Effect.catch((error) =>
        Effect.succeed<Stamp>({
          mark: "",
          isFile: false,
          bytes: 0,
          updatedAt: 0,
          changedAt: Number.POSITIVE_INFINITY,
          problem: diskTrouble(error)
        })
      )
    )

  const stampsOf = Effect.fnUntraced(function* (places: ReadonlyArray<string>) {
    const found = Array.from(yield* look(places))
    const rest = places.flatMap((place, index) => (found[index] === undefined ? [{ place, index }] : []))
    const others = yield* Effect.forEach(rest, ({ place }) => stampOf(place), { concurrency: lookConcurrency })
    rest.forEach(({ index }, at) => (found[index] = others[at]))
    return found
  })

  /** What was kept, as far as it can be used. */
  const read = Effect.gen(function* () {
    const { size, type } = yield* fs.stat(file)
    if (type !== "File" || Number(size) > maxFileBytes) return new Map<string, Kept>()
    const text = Bytes.decode(yield* fs.readFile(file)).text
    const end = text.indexOf("\n")
    const body = text.slice(end + 1)
    if (end < 0 || text.slice(0, end) !== `${version} ${yield* hash(body)}`) return new Map<string, Kept>()
    const rows = parsedOrUndefined(body)
    const kept = new Map<string, Kept>()
    for (const value of Array.isArray(rows) ? rows : []) {
      const row = keptOf(value)
      if (row !== undefined) kept.set(row.id, row)
    }
    return kept
  }).pipe(Effect.orElseSucceed(() => new Map<string, Kept>()))

  const write = Effect.fnUntraced(function* (rows: ReadonlyArray<Kept>) {
    const body = `[${rows.map(rowText).join(",\n")}]`
    const bytes = Bytes.encode(`${version} ${yield* hash(body)}\n${body}`)
    yield* WholeFile.write(file, bytes, 0o600).pipe(Effect.provideContext(files), ThisProcess.provide)
  })

  const one = yield* Semaphore.make(1)

  /** Forgets what is kept of a session that is gone or called otherwise: at once, as it may be private. */
  const forget = Effect.fnUntraced(function* (id: string) {
    if (!(yield* Effect.orElseSucceed(fs.exists(file), () => true))) return
    const kept = yield* read
    if (kept.size > 0 && !kept.has(id)) return
    kept.delete(id)
    yield* write([...kept.values()]).pipe(Effect.catch(() => Effect.ignore(fs.remove(file, { force: true }))))
  }, one.withPermit)

  /** The sessions of these ids, without those that are gone by now. `names` is what the folder holds. */
  const list = Effect.fnUntraced(function* (
    ids: ReadonlyArray<string>,
    names: ReadonlySet<string>
  ): Effect.fn.Return<ReadonlyArray<Listed>> {
    const now = yield* Clock.currentTimeMillis
    const kept = names.has(fileName) ? yield* read : new Map<string, Kept>()
    const titled = ids.filter((id) => names.has(`${id}.title`))
    // Looked at before they are read: what changes in between has another mark the next time.
    const stamps = yield* stampsOf(ids.map((id) => `${folder}${id}.jsonl`))
    const ofTitles = yield* stampsOf(titled.map((id) => `${folder}${id}.title`))
    const titles = new Map(titled.map((id, index) => [id, ofTitles[index]]))
    const isSettled = (stamp: Stamp | undefined) => stamp === undefined || now - stamp.changedAt > settleTime
    const rows: Array<Kept> = []
    let differing = 0
    let obsolete = 0

    const listed = ({ id, log, title }: Kept, { bytes, updatedAt }: Stamp) => ({ ...log, id, title, bytes, updatedAt })
    const readAgain = Effect.fnUntraced(function* (id: string, stamp: Stamp, before: Kept | undefined) {
      const titleStamp = titles.get(id)
      const log = before?.mark === stamp.mark ? before.log : yield* source.log(id, stamp)
      if (log === undefined) return []
      const title = titleStamp?.isFile === true ? yield* source.title(id) : undefined
      const row = { id, log, mark: stamp.mark, titleMark: titleStamp?.mark, title }
      if (before !== undefined && (before.title !== title || before.log.firstPrompt !== log.firstPrompt)) obsolete += 1
      if (log.problem === undefined && isSettled(stamp) && isSettled(titleStamp)) {
        rows.push(row)
        differing += 1
      }
      return [listed(row, stamp)]
    })

    const found: Array<Listed> = []
    const stale: Array<Effect.Effect<ReadonlyArray<Listed>>> = []
    for (const [index, id] of ids.entries()) {
      const stamp = stamps[index]
      if (stamp === undefined) continue
      const before = kept.get(id)
      if (before === undefined || before.mark !== stamp.mark || before.titleMark !== titles.get(id)?.mark) {
        stale.push(readAgain(id, stamp, before))
        continue
      }
      rows.push(before)
      found.push(listed(before, stamp))
    }
    found.push(...(yield* Effect.all(stale, { concurrency: readConcurrency })).flat())
    const gone = kept.size === 0 ? 0 : [...kept.keys()].filter((id) => !names.has(`${id}.jsonl`)).length
    // A folder that may not be written to is listed from its logs.
    if (gone + obsolete > 0 || differing > rewriteFrom) yield* Effect.ignore(one.withPermit(write(rows)))
    return found
  })

  return { forget, list }
})
