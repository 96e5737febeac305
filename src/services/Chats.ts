import { Clock, Context, Effect, Exit, Layer, RcMap, Scope } from "effect"
import { emptySession, step } from "../domain/Session.ts"
import type { Calibrations } from "./Calibrations.ts"
import { Chat } from "./Chat.ts"
import { ChatDefaults, startedWith } from "./ChatSettings.ts"
import type { Compression } from "./Compression.ts"
import type { HookSystem } from "./HookSystem.ts"
import type { Model } from "./Model.ts"
import { SessionStore, type SessionStoreError } from "./SessionStore.ts"
import type { TempStore } from "./TempStore.ts"
import type { TokenCounter } from "./TokenCounter.ts"

/**
 * Conversations by id. All who open the same id share one `Chat`; its session stays open, and locked against other
 * processes, until the last of them closes their scope. An id that is not known yet begins a new session.
 */
export class Chats extends Context.Service<
  Chats,
  {
    /** The conversation with this id: 1 to 64 letters, digits, hyphens or underscores. It is kept as long as the scope is open. */
    readonly open: (id: string) => Effect.Effect<Chat["Service"], SessionStoreError, Scope.Scope>
  }
>()("palimpsest/services/Chats") {
  /** Sessions from the store, each with the runtime this layer was built with, held as `ChatDefaults` say. */
  static readonly layer = Layer.effect(
    Chats,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const settings = yield* ChatDefaults
      // Without the layer's scope: each session has the scope of those who opened it.
      const context = Context.omit(Scope.Scope)(
        yield* Effect.context<Calibrations | Compression | HookSystem | Model | TokenCounter | TempStore>()
      )

      const begin = Effect.fnUntraced(function* (id: string) {
        const started = startedWith(settings, id, yield* Clock.currentTimeMillis)
        return { log: yield* store.create(started), session: step(emptySession, started), complete: true }
      })

      const chats = yield* RcMap.make({
        lookup: (id: string) =>
          store.open(id).pipe(
            Effect.catchReason("SessionStoreError", "SessionNotFound", () => begin(id)),
            Effect.tap((opened) =>
              "torn" in opened && opened.torn > 0
                ? Effect.logWarning(
                    `session ${id} ended in half a line, as after a crash: its last ${opened.torn} bytes were cut off, all before them is there`
                  )
                : Effect.void
            ),
            Effect.flatMap((opened) => Chat.make({ ...opened, settings })),
            Effect.provideContext(context)
          )
      })
      return {
        // A failure is this caller's alone: kept in their scope, it would be everybody's until that closes.
        open: (id) =>
          Effect.uninterruptibleMask((restore) =>
            Effect.gen(function* () {
              const inner = yield* Scope.fork(yield* Scope.Scope)
              return yield* restore(Scope.provide(RcMap.get(chats, id), inner)).pipe(
                Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(inner, exit) : Effect.void))
              )
            })
          )
      }
    })
  )
}
