/** Provides `Memory` from files, which it reads once and caches. */

import { Effect, type FileSystem, Layer, type Path, Ref, type Scope, Semaphore } from "effect"
import type { MemoryScope } from "../../domain/memory/MemoryText.ts"
import { Memory, type MemoryChange, type MemoryError, type SavedFact } from "../../services/memory/Memory.ts"
import * as MemoryContext from "./MemoryContext.ts"
import { lockFile, planFact, replanFact, writeFact } from "./MemoryFacts.ts"
import { emptyState, loadAll, loadTouched, type MemoryState } from "./MemoryLoading.ts"

/**
 * Memory in files. Nothing is read before it is needed.
 *
 * A project file counts only if the folder it really is in is trusted, by its own answer or that of the nearest folder
 * above; the same holds for its imports. Gemini CLI also takes files from above the project: here they count only
 * where they are trusted too, since anyone may have put them there.
 */
export const layer = (
  options: MemoryContext.FileMemoryOptions
): Layer.Layer<Memory, never, FileSystem.FileSystem | Path.Path> => Layer.effect(Memory, make(options))

/** `layer`, as a value. */
export const make = Effect.fnUntraced(function* (
  options: MemoryContext.FileMemoryOptions
): Effect.fn.Return<Memory["Service"], never, FileSystem.FileSystem | Path.Path> {
  const memory = yield* MemoryContext.make(options)
  const state = yield* Ref.make<MemoryState>(emptyState)
  const gate = yield* Semaphore.make(1)

  const loadCached = Effect.gen(function* () {
    const before = yield* Ref.get(state)
    if (before.loaded !== undefined) return before.loaded
    const { loaded, state: after } = yield* loadAll(memory, before)
    yield* Ref.set(state, after)
    return loaded
  })
  const invalidate = Ref.update(state, (now): MemoryState => ({ ...now, loaded: undefined }))

  return {
    load: gate.withPermit(loadCached).pipe(Effect.withSpan("Memory.load")),
    refresh: gate.withPermit(Effect.andThen(invalidate, loadCached)).pipe(Effect.withSpan("Memory.refresh")),
    version: gate.withPermit(
      Effect.andThen(
        loadCached,
        Effect.map(Ref.get(state), ({ version }) => version)
      )
    ),
    touched: Effect.fn("Memory.touched")(function* (place: string): Effect.fn.Return<string | undefined> {
      if (!memory.choices.onTouch) return undefined
      yield* loadCached
      const touched = yield* loadTouched(memory, yield* Ref.get(state), place)
      // Logged once, and not sent to the model: it cannot repair the file.
      for (const problem of touched.problems) yield* Effect.logWarning(problem)
      yield* Ref.set(state, touched.state)
      return touched.text
    }, gate.withPermit),
    plan: Effect.fn("Memory.plan")((fact: string, scope: MemoryScope) => planFact(memory, fact, scope)),
    save: Effect.fn("Memory.save")(function* (
      change: MemoryChange
    ): Effect.fn.Return<SavedFact, MemoryError, Scope.Scope> {
      yield* lockFile(memory, change.file)
      return yield* Effect.gen(function* () {
        const current = yield* replanFact(memory, change)
        if (current.after !== current.before) {
          yield* Effect.uninterruptible(Effect.andThen(writeFact(memory, current), invalidate))
        }
        return { file: change.file, shown: change.shown, diff: current.diff }
      }).pipe(gate.withPermit)
    }, Effect.scoped)
  }
})
