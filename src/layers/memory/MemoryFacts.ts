/** Adds facts to memory files. */

import { Effect, FileSystem, Path } from "effect"
import { importTokens } from "../../domain/memory/MemoryImports.ts"
import { factLine, hasFact, maxFactChars, type MemoryScope, withFact } from "../../domain/memory/MemoryText.ts"
import { decode, encode } from "../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { fileDiff } from "../../domain/tools/FileDiff.ts"
import { isBinary } from "../../domain/workspace/FileKind.ts"
import { encodingOf } from "../../domain/workspace/FileText.ts"
import { type MemoryChange, MemoryError } from "../../services/memory/Memory.ts"
import * as MemoryFiles from "../../services/memory/MemoryFiles.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as RegularFile from "../../services/platform/RegularFile.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import * as Sha256 from "../../services/session/Sha256.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"
import { currentPlaces, locate, type LocatedMemory, type MemoryContext } from "./MemoryContext.ts"

const fail = (message: string, kind: MemoryError["kind"] = "Unusable") => new MemoryError({ kind, message })

/** Project files are opened where they were checked to be; the user's own files may be behind links. */
const filesOf = ({ files, fs }: MemoryContext, scope: MemoryScope): FileSystem.FileSystem =>
  scope === "project" ? files(fs) : fs

/** The file for facts of a scope: the first existing one of its names, else the first name. */
const targetFile = Effect.fnUntraced(function* (
  { choices, fs, home, isTrusted, options, ownFileNames, path, root, shown }: LocatedMemory,
  scope: MemoryScope
) {
  const folder = scope === "project" ? root : path.resolve(options.home)
  const names = scope === "project" ? choices.fileNames : ownFileNames
  const first = names[0]
  if (first === undefined) return yield* fail("memory has no file: the setting memory.fileNames is empty")
  if (scope === "project" && root === home) {
    return yield* fail(`${shown(folder)} is the home folder and no project; remember it as global instead`)
  }
  if (scope === "project" && !(yield* isTrusted(folder))) {
    return yield* fail(`${quotedPath(folder)} is not trusted; remember it as global instead`, "Untrusted")
  }
  for (const name of names) {
    const place = path.join(folder, name)
    const type = yield* Effect.orElseSucceed(
      Effect.map(fs.stat(place), (info) => info.type),
      () => undefined
    )
    if (type === "File") return place
  }
  return path.join(folder, first)
})

/** The current content of a memory file, with its real path. The text is undefined when there is no file. */
const currentFile = Effect.fnUntraced(function* (memory: LocatedMemory, place: string, scope: MemoryScope) {
  const { fs, isTrusted, path, root } = memory
  const shown = memory.shown(place)
  const file = yield* fs.realPath(place).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError((error) => fail(`${shown} cannot be used: ${diskErrorText(error)}`))
  )
  if (file === undefined) {
    const isLink = yield* Effect.orElseSucceed(Effect.as(fs.readLink(place), true), () => false)
    return isLink ? yield* fail(`${shown} is a broken link; repair or remove it`) : { file: place, text: undefined }
  }
  if (scope === "project" && !isWithin(root, file, path.sep)) {
    return yield* fail(`${shown} leads out of the workspace through a link, so it is not written`)
  }
  if (scope === "project" && !(yield* isTrusted(path.dirname(file)))) {
    return yield* fail(`${shown} leads into a folder that is not trusted, so it is not written`)
  }
  const bytes = yield* RegularFile.read(file, shown).pipe(
    Effect.provideService(FileSystem.FileSystem, filesOf(memory, scope)),
    Effect.mapError(({ message }) => fail(message))
  )
  const encoding = encodingOf(bytes)?.encoding
  if (isBinary(bytes) || (encoding !== undefined && encoding !== "utf-8")) {
    return yield* fail(`${shown} is not UTF-8 text, so nothing is added to it`)
  }
  return { file, text: decode(bytes).text }
})

const importsOf = (text: string): string =>
  importTokens(text)
    .map((token) => token.path)
    .join("\n")

/** The change that adds a line to a memory file. */
const planLine = Effect.fnUntraced(function* (memory: LocatedMemory, place: string, line: string, scope: MemoryScope) {
  const { file, text: before } = yield* currentFile(memory, place, scope)
  const shown = memory.shown(file)
  const after = before !== undefined && hasFact(before, line) ? before : withFact(before ?? "", line)
  if (encode(after).length > MemoryFiles.maxFileBytes) {
    return yield* fail(`${shown} would have more than 1 MiB and no longer be read; shorten it first`)
  }
  // A backtick in a fact may pair with one elsewhere in the file, and what was code would then be read as imports.
  if (importsOf(after) !== importsOf(before ?? "")) {
    return yield* fail("with this fact the file would import different files; write it without @ and backticks")
  }
  const diff = fileDiff(memory.path.basename(file), before ?? "", after)
  return { fact: line, scope, file, shown, before, after, diff }
})

/** Plans the change that remembers a fact. Writes nothing. */
export const planFact = Effect.fnUntraced(function* (context: MemoryContext, fact: string, scope: MemoryScope) {
  const line = factLine(fact)
  if (line === undefined) return yield* fail("the fact is empty; give it in one sentence")
  if (line.length > maxFactChars) {
    return yield* fail(
      `a fact of ${line.length} characters is too long to be part of every request; use at most ${maxFactChars}`
    )
  }
  const memory = locate(context, yield* currentPlaces(context))
  return yield* planLine(memory, yield* targetFile(memory, scope), line, scope)
})

/** Plans a change again with the file as it is now. Fails when it may no longer be written. */
export const replanFact = Effect.fnUntraced(function* (
  context: MemoryContext,
  { fact, file, scope, shown }: MemoryChange
) {
  const memory = locate(context, yield* currentPlaces(context))
  if (scope === "project" && !(yield* memory.isTrusted(memory.root))) {
    return yield* fail(`${shown} is not written: its folder is no longer trusted`)
  }
  const change = yield* planLine(memory, file, fact, scope)
  return change.file === file
    ? change
    : yield* fail(`${shown} was replaced by another file, so it was not written; try again`)
})

const write = Effect.fnUntraced(function* (memory: MemoryContext, { after, before, file, scope }: MemoryChange) {
  const { locks, path } = memory
  const fs = filesOf(memory, scope)
  const folder = path.dirname(file)
  if (before === undefined) {
    yield* fs.makeDirectory(folder, { recursive: true, ...(scope === "global" ? { mode: 0o700 } : {}) })
  }
  yield* AtomicFile.rewrite(file, encode(after), scope === "project" ? undefined : 0o600).pipe(
    Effect.andThen(StaleFiles.sweep(folder)),
    Effect.provideService(FileSystem.FileSystem, fs)
  )
  yield* StaleFiles.sweep(locks, { lock: (name) => /^\.[0-9a-f]{64}\.lock/.exec(name)?.[0] })
})

/** Writes a planned change atomically. */
export const writeFact = (memory: MemoryContext, change: MemoryChange): Effect.Effect<void, MemoryError> =>
  write(memory, change).pipe(
    Effect.provideService(FileSystem.FileSystem, memory.fs),
    Effect.provideService(Path.Path, memory.path),
    ThisProcess.provide,
    Effect.mapError((error) => fail(`${change.shown} was not written: ${diskErrorText(error)}`))
  )

/** Locks a memory file until the scope closes. Without write access to the home folder there is no lock. */
export const lockFile = ({ fs, locks, path }: MemoryContext, file: string) =>
  FileLock.acquire({ file, lock: path.join(locks, `.${Sha256.hashSync(file)}.lock`) }).pipe(
    Effect.catch((error) => (error._tag === "FileLocked" ? Effect.fail(fail(error.message)) : Effect.void)),
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.provideService(Path.Path, path),
    ThisProcess.provide
  )
