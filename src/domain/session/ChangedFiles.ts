/** Records which files tools changed, and determines which files a rewind restores. */

import { Schema } from "effect"
import { Hash } from "../content/Handle.ts"

/** A version of a file. Its bytes are in the blob store under its hash. */
export const FileVersion = Schema.Struct({
  hash: Hash,
  /** Bytes. */
  size: Schema.Natural,
  /** The permission bits. */
  mode: Schema.Natural,
  /** The bytes were too large to keep, or could not be stored. */
  lost: Schema.optionalKey(Schema.Literal(true))
})
export type FileVersion = typeof FileVersion.Type

/**
 * A tool or a rewind changed a file. The event does not change the conversation; programs that do not know it skip
 * it.
 */
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

/** A change and its position in the conversation, as the number of the next entry. */
export interface RecordedChange extends Pick<FileChanged, "after" | "before" | "by" | "path"> {
  readonly position: number
}

/** Maximum size of a file that is kept before it is changed, in bytes. */
export const maxKeptFileBytes = 5 * 1_024 * 1_024
/** Maximum bytes of earlier versions that a session keeps. */
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
  /** The version at that moment. Null when the file did not exist. */
  readonly target: FileVersion | null
  /** The hash after the last change. Null when the change removed the file. */
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
 * The state of a file before a rewind: unchanged since the moment (`same`), as the last recorded change left it
 * (`ours`), changed by another program (`changed`), or without a kept version (`lost`).
 */
export type FileState = "same" | "ours" | "changed" | "lost"

/** Compares a file with the recorded change. `current` is the hash of its bytes now. Null when there is no file. */
export const fileState = ({ left, target }: ChangedFile, current: Hash | null): FileState => {
  if (current === (target?.hash ?? null)) return "same"
  if (target?.lost === true) return "lost"
  return current === left ? "ours" : "changed"
}
