import { Context, type Effect, Schema } from "effect"
import type { FileDiff } from "../domain/FileDiff.ts"
import type { Loaded, MemoryScope } from "../domain/MemoryText.ts"

/** Something could not be remembered. The message says in one line why, and what to do. */
export class MemoryError extends Schema.TaggedError<MemoryError>()("MemoryError", {
  message: Schema.String
}) {}

/** A fact as it would be written: what a person is shown. */
export interface MemoryChange {
  /** The line that is added. */
  readonly fact: string
  readonly scope: MemoryScope
  /** Absolute, links followed. */
  readonly file: string
  /** The file as a person is shown it. */
  readonly shown: string
  /** Undefined: there is no such file yet. */
  readonly before: string | undefined
  readonly after: string
  /** From `before` to `after`; nothing where the fact stands there already. */
  readonly diff: FileDiff
}

/** What was written. */
export interface Saved {
  readonly file: string
  readonly shown: string
  readonly diff: FileDiff
}

/** What an agent is told in every request: the memory files of the person, their extensions and the workspace. */
export class Memory extends Context.Service<
  Memory,
  {
    /** All of it. Read once and kept until `refresh`; never fails: what could not be read is among the problems. */
    readonly load: Effect.Effect<Loaded>
    /** Reads all of it anew. What `touched` found becomes part of it. */
    readonly refresh: Effect.Effect<Loaded>
    /** Grows with each refresh that found something else than there was, so that who keeps a text of it knows that it is old. */
    readonly version: Effect.Effect<number>
    /**
     * Memory of the folders between a place that a tool touched and the workspace (spec 7.3), which `load` did not find and no
     * call before told: a text for the model; undefined where there is nothing new. The place is absolute.
     */
    readonly touched: (place: string) => Effect.Effect<string | undefined>
    /** What remembering a fact would write. Nothing is written. */
    readonly plan: (fact: string, scope: MemoryScope) => Effect.Effect<MemoryChange, MemoryError>
    /**
     * Writes what was planned, whole or not at all, and loads anew. Where the file says something else by now, as another agent
     * remembered something, the fact is added to that. Refused where it is another file by now.
     */
    readonly save: (change: MemoryChange) => Effect.Effect<Saved, MemoryError>
  }
>()("palimpsest/services/Memory") {}
