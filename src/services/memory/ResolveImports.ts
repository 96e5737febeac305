/** Inserts the imports of memory files, and compares files with all that they import. */

import { Effect, Option } from "effect"
import {
  beginsWith,
  findImports,
  flatBlock,
  importedBlock,
  importedText,
  isPath,
  skippedImport,
  withoutPunctuation
} from "../../domain/memory/MemoryImports.ts"
import type { MemoryProblem } from "../../domain/memory/MemoryProblem.ts"
import * as SlicedWork from "../../domain/text/SlicedWork.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import {
  findImport,
  type Imported,
  maxFileBytes,
  type MemoryFiles,
  noFile,
  type Origin,
  textOf
} from "./MemoryFiles.ts"

/** A memory file with its imports. */
interface Resolved {
  readonly text: string
  /** Files whose text is included. Absolute, links resolved. */
  readonly imports: ReadonlyArray<string>
  readonly problems: ReadonlyArray<MemoryProblem>
}

/** One file whose imports are inserted, and what was inserted so far. */
interface Inclusion {
  readonly files: MemoryFiles
  readonly root: Origin
  /** Files with their own blocks, by key, with their shown names: other files do not include them. */
  readonly own: ReadonlyMap<string, string>
  readonly imports: Set<string>
  readonly problems: Array<MemoryProblem>
  /** Characters of all included files. */
  size: number
}

/** The imports in the text of a file. Punctuation after a path is part of it only where such a file exists. */
const importsIn = Effect.fnUntraced(function* (files: MemoryFiles, text: string, from: string, origin: Origin) {
  return yield* Effect.forEach(yield* SlicedWork.run(findImports(text)), (token) => {
    const shorter = withoutPunctuation(token)
    if (shorter.end === token.end) return Effect.succeed(token)
    return Effect.match(findImport(files, token.path, from, origin), {
      onSuccess: () => token,
      onFailure: (why) => (why === noFile ? shorter : token)
    })
  })
})

/** Why an import fails. */
interface ImportFailure extends Pick<MemoryProblem, "circle"> {
  readonly why: string
}

const report = (
  { files, problems }: Inclusion,
  place: string,
  importPath: string,
  { why, ...circle }: ImportFailure
): void =>
  void problems.push({
    text: `${files.shown(place)}: @${quotedPath(importPath)} was not imported: ${why}`,
    ...circle
  })

/** Whether a failed import is not an import at all, such as `@scope/package`. */
const isNoImport = (importPath: string, why: string) => why === noFile && !isPath(importPath)

const isImport = ({ files, root }: Inclusion, importPath: string, from: string) =>
  isPath(importPath)
    ? Effect.succeed(true)
    : Effect.match(findImport(files, importPath, from, root), {
        onSuccess: () => true,
        onFailure: (why) => !isNoImport(importPath, why)
      })

/** The imported file, and the name of its block when it has its own; else why it fails. */
const importFile = Effect.fnUntraced(function* (
  { files, own, root, size }: Inclusion,
  importPath: string,
  from: string,
  chain: ReadonlyArray<string>
) {
  const file = yield* Effect.mapError(findImport(files, importPath, from, root), (why): ImportFailure => ({ why }))
  const before = chain.indexOf(file.real)
  if (before >= 0) {
    const why = "it is already being imported, so it imports itself"
    return yield* Effect.fail<ImportFailure>({ why, circle: chain.slice(before) })
  }
  const block = own.get(file.key)
  // An empty file has no block.
  if (block !== undefined && file.text.trim() !== "") return { file, block }
  if (size + file.text.length > maxFileBytes) {
    const why = `${files.shown(root.place)} with its imports would have more than 1 MiB`
    return yield* Effect.fail<ImportFailure>({ why })
  }
  return { file, block: undefined }
})

const tree: (
  inclusion: Inclusion,
  file: Imported,
  chain: ReadonlyArray<string>,
  depth: number
) => Effect.Effect<string> = Effect.fnUntraced(function* (inclusion, { place, text }, chain, depth) {
  const maxDepth = inclusion.files.depth
  const tokens = yield* importsIn(inclusion.files, text, place, inclusion.root)
  if (tokens.length === 0) return text
  if (depth >= maxDepth) {
    for (const { path: importPath } of tokens) {
      if (!(yield* isImport(inclusion, importPath, place))) continue
      inclusion.problems.push({
        text: `${inclusion.files.shown(place)}: its imports were left out: more than ${maxDepth} files import one another`
      })
      break
    }
    return text
  }
  const pieces: Array<string> = []
  let from = 0
  for (const { end, path: importPath, start } of tokens) {
    pieces.push(text.slice(from, start))
    from = end
    const result = yield* Effect.result(importFile(inclusion, importPath, place, chain))
    if (result._tag === "Failure") {
      if (isNoImport(importPath, result.failure.why)) {
        pieces.push(text.slice(start, end))
      } else {
        report(inclusion, place, importPath, result.failure)
        pieces.push(skippedImport(quotedPath(importPath), result.failure.why))
      }
      continue
    }
    const { block, file } = result.success
    if (block !== undefined) {
      pieces.push(importedBlock(quotedPath(importPath), block))
      continue
    }
    inclusion.imports.add(file.real)
    // The frame counts too: empty files that import one another must not grow without end.
    inclusion.size += file.text.length + 2 * importPath.length + 60
    const inserted = yield* tree(inclusion, file, [...chain, file.real], depth + 1)
    pieces.push(importedText(quotedPath(importPath), inserted))
  }
  pieces.push(text.slice(from))
  return pieces.join("")
})

/** Adds the block of a file and those of all files that it imports, in Gemini CLI's order (March 2026). */
const addBlocks: (
  inclusion: Inclusion,
  blocks: Array<string>,
  file: Imported,
  chain: ReadonlyArray<string>
) => Effect.Effect<void> = Effect.fnUntraced(function* (inclusion, blocks, { place, text }, chain) {
  const { files, imports } = inclusion
  inclusion.size += text.length
  blocks.push(flatBlock(files.shown(place), text))
  for (const { path: importPath } of (yield* importsIn(files, text, place, inclusion.root)).toReversed()) {
    const result = yield* Effect.result(importFile(inclusion, importPath, place, chain))
    if (result._tag === "Failure") {
      if (!isNoImport(importPath, result.failure.why)) report(inclusion, place, importPath, result.failure)
      continue
    }
    const { block, file } = result.success
    if (block !== undefined || imports.has(file.real)) continue
    imports.add(file.real)
    yield* addBlocks(inclusion, blocks, file, [...chain, file.real])
  }
})

const flat = Effect.fnUntraced(function* (inclusion: Inclusion, file: Imported) {
  const blocks: Array<string> = []
  yield* addBlocks(inclusion, blocks, file, [file.real])
  return blocks.length === 1 ? file.text : blocks.join("\n\n")
})

/** Reads a file with its imports. Files with their own blocks (`own`: shown names by key) are not included. */
export const resolve = Effect.fnUntraced(function* (
  files: MemoryFiles,
  root: Origin,
  own: ReadonlyMap<string, string>
): Effect.fn.Return<Resolved, string> {
  const inclusion: Inclusion = { files, root, own, imports: new Set(), problems: [], size: 0 }
  const first = { ...root, text: yield* textOf(files, root) }
  const text = yield* files.format === "flat" ? flat(inclusion, first) : tree(inclusion, first, [root.real], 0)
  return { text, imports: [...inclusion.imports], problems: inclusion.problems }
})

/**
 * Whether one file contains everything of another: the same text from the beginning, and the same imports. Failed
 * imports of the other file do not count.
 */
export const covers = Effect.fnUntraced(function* (files: MemoryFiles, one: Origin, other: Origin) {
  const both = yield* Effect.option(Effect.all([textOf(files, one), textOf(files, other)]))
  if (Option.isNone(both)) return false
  const [text, otherText] = both.value
  const open: Array<readonly [Imported, Imported]> = [
    [
      { ...one, text },
      { ...other, text: otherText }
    ]
  ]
  const seen = new Set<string>()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [whole, part] = next
    const pair = `${whole.real}\0${part.real}`
    if (seen.has(pair)) continue
    seen.add(pair)
    if (!beginsWith(whole.text, part.text)) return false
    const tokensOfWhole = yield* importsIn(files, whole.text, whole.place, one)
    for (const [i, { path: importPath }] of (yield* importsIn(files, part.text, part.place, other)).entries()) {
      // What follows in the longer text may turn this into code.
      if (tokensOfWhole[i]?.path !== importPath) return false
      const result = yield* Effect.option(findImport(files, importPath, part.place, other))
      if (Option.isNone(result)) continue
      const held = yield* Effect.option(findImport(files, importPath, whole.place, one))
      if (Option.isNone(held)) return false
      open.push([held.value, result.value])
    }
  }
  return true
})
