import { Schema } from "effect"
import { Hash } from "../content/Handle.ts"

/** What the tools changed in files, and which files a rewind puts back. */

/** A version of a file. Its bytes are in the blob store under its hash. */
export const FileVersion = Schema.Struct({
  hash: Hash,
  /** Bytes. */
  size: Schema.Natural,
  /** The permission bits. */
  mode: Schema.Natural,
  /** Its bytes were too many to keep, or could not be stored. */
  lost: Schema.optionalKey(Schema.Literal(true))
})
export type FileVersion = typeof FileVersion.Type

/** A tool or a rewind changed a file. It changes nothing in the conversation; programs that do not know it skip it. */
export const FileChanged = Schema.TaggedStruct("FileChanged", {
  /** Milliseconds since 1970. */
  at: Schema.Finite,
  /** Absolute, links followed. */
  path: Schema.String,
  /** The file before; null when there was none. */
  before: Schema.NullOr(FileVersion),
  /** The hash of the file afterwards; null when it was removed. */
  after: Schema.NullOr(Hash),
  by: Schema.Literals(["tool", "rewind"]),
  ignorable: Schema.Literal(true)
})
export type FileChanged = typeof FileChanged.Type

/** A change in a session: where the conversation stood, as the number of the entry that came next. */
export interface RecordedChange extends Pick<FileChanged, "after" | "before" | "by" | "path"> {
  readonly position: number
}

/** A file of at most this many bytes is kept before it is changed. */
export const maxKeptFileBytes = 5 * 1_024 * 1_024
/** Most bytes of earlier versions that a session keeps. */
const maxKeptSessionBytes = 100 * 1_024 * 1_024

/** Whether a version of a file is kept, given the changes so far. */
export const isVersionKept = (changes: ReadonlyArray<RecordedChange>, size: number): boolean => {
  if (size > maxKeptFileBytes) return false
  const kept = new Map(
    changes.flatMap(({ before }) => (before === null || before.lost === true ? [] : [[before.hash, before.size]]))
  )
  return [...kept.values()].reduce((sum, bytes) => sum + bytes, 0) + size <= maxKeptSessionBytes
}

/** The moment to which files go back: just before an entry was added, or before the last rewind. */
export type RewindTarget = { readonly _tag: "Before"; readonly sequence: number } | { readonly _tag: "LastRewind" }

/** A file that was changed since the moment. */
export interface ChangedFile {
  readonly path: string
  /** What it was at the moment; null: there was none. */
  readonly target: FileVersion | null
  /** What the last change left; null: it removed the file. */
  readonly left: Hash | null
}

const firstAfter = (changes: ReadonlyArray<RecordedChange>, target: RewindTarget): number => {
  if (target._tag === "Before") {
    const index = changes.findIndex(({ position }) => position > target.sequence)
    return index < 0 ? changes.length : index
  }
  const last = changes.findLastIndex(({ by }) => by === "rewind")
  return last < 0 ? changes.length : changes.findLastIndex(({ by }, index) => index < last && by === "tool") + 1
}

/** Returns the files that were changed since the moment, each once. `changes` are all of the session, oldest first. */
export const changedSince = (
  changes: ReadonlyArray<RecordedChange>,
  target: RewindTarget
): ReadonlyArray<ChangedFile> => {
  const files = new Map<string, ChangedFile>()
  for (const { after, before, path } of changes.slice(firstAfter(changes, target))) {
    files.set(path, { path, target: files.has(path) ? (files.get(path)?.target ?? null) : before, left: after })
  }
  return [...files.values()]
}

/**
 * What a rewind finds: the file is as it was (`same`), as our last change left it (`ours`), changed by others (`changed`), or its
 * earlier version is not kept (`lost`).
 */
export type FileState = "same" | "ours" | "changed" | "lost"

/** Compares a file with what was recorded. `current` is the hash of its bytes now; null: there is no file. */
export const fileState = ({ left, target }: ChangedFile, current: Hash | null): FileState => {
  if (current === (target?.hash ?? null)) return "same"
  if (target?.lost === true) return "lost"
  return current === left ? "ours" : "changed"
}
