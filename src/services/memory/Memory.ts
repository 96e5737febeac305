/** The contract of memory: its texts, planned changes, saved facts, and what fails. */

import { Context, type Effect, Schema } from "effect"
import type { LoadedMemory, MemoryScope } from "../../domain/memory/MemoryText.ts"
import type { FileDiff } from "../../domain/tools/FileDiff.ts"

/** A fact could not be remembered. The message says why in one line. */
export class MemoryError extends Schema.TaggedError<MemoryError>()("MemoryError", {
  /** `Untrusted`: the project's folder is not trusted. */
  kind: Schema.Literals(["Untrusted", "Unusable"]),
  message: Schema.String
}) {}

/** A planned change of a memory file, as shown to the user. */
export interface MemoryChange {
  /** The line added. */
  readonly fact: string
  readonly scope: MemoryScope
  /** Absolute, links resolved. */
  readonly file: string
  /** The path as shown to the user. */
  readonly shown: string
  /** Undefined when the file does not exist yet. */
  readonly before: string | undefined
  readonly after: string
  /** From `before` to `after`; empty when the fact is already there. */
  readonly diff: FileDiff
}

/** The change that was written. */
export interface SavedFact {
  readonly file: string
  readonly shown: string
  readonly diff: FileDiff
}

/** Loads memory files of the user, extensions and the workspace, and adds facts to them. */
export class Memory extends Context.Service<
  Memory,
  {
    /** All memory, read once and cached until `refresh`. Never fails: unreadable files are among the problems. */
    readonly load: Effect.Effect<LoadedMemory>
    /** Reads all memory again. Includes what `touched` returned before. */
    readonly refresh: Effect.Effect<LoadedMemory>
    /** Increases with each refresh that changed something, so that holders of an older text can tell. */
    readonly version: Effect.Effect<number>
    /**
     * Memory of the folders between a path that a tool touched and the workspace, as text for the model. Undefined when
     * nothing is new: neither `load` nor an earlier call returned it. A folder is looked at once until memory is read again.
     * The path is absolute.
     */
    readonly touched: (place: string) => Effect.Effect<string | undefined>
    /** Plans the change that remembers a fact. Writes nothing. */
    readonly plan: (fact: string, scope: MemoryScope) => Effect.Effect<MemoryChange, MemoryError>
    /**
     * Writes a planned change atomically and reloads memory. When the file changed meanwhile, for example by another
     * agent, the fact is added to the new content. Fails when the path leads to a different file by now.
     */
    readonly save: (change: MemoryChange) => Effect.Effect<SavedFact, MemoryError>
  }
>()("palimpsest/services/memory/Memory") {}
