import { Clock, Context, Effect, Layer, Predicate, RcMap, Scope } from "effect"
import { InvalidOption, valueCheck } from "../../domain/compression/InvalidOption.ts"
import { afterReopening } from "../../domain/conversation/FailureMemory.ts"
import { emptySession, applyEvent, startedWith } from "../../domain/session/Session.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import type { Model } from "../model/Model.ts"
import { allOrNothing, sessionIdOf, SessionStore, type SessionStoreError } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Chat, checkSettings } from "./Chat.ts"
import { ChatDefaults } from "./ChatSettings.ts"

/**
 * Opens conversations by id. All callers that open the same id share one `Chat`. Its session stays open, and locked against other processes, until
 * the last scope closes. An unknown id begins a new session.
 */
export class Chats extends Context.Service<
  Chats,
  {
    /**
     * Opens the conversation of this key for as long as the scope is open. Any text is a key. One of 1 to 64 letters, digits, hyphens or underscores is the
     * id of the session; another one has an id made of it. Fails with `InvalidOption` if the settings have a value that no conversation can have.
     */
    readonly open: (key: string) => Effect.Effect<Chat["Service"], InvalidOption | SessionStoreError, Scope.Scope>
  }
>()("palimpsest/services/chat/Chats") {
  /** Conversations in the `SessionStore`, with the settings of `ChatDefaults`. */
  static readonly layer = Layer.effect(
    Chats,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const settings = yield* ChatDefaults
      // Each session lives in the scope of its callers, not in the layer's.
      const context = Context.omit(Scope.Scope)(
        yield* Effect.context<Calibrations | Compression | HookSystem | Model | TokenCounter | TempStore>()
      )

      const begin = Effect.fnUntraced(function* (id: string) {
        const started = startedWith(settings, id, yield* Clock.currentTimeMillis)
        return { log: yield* store.create(started), session: applyEvent(emptySession, started), complete: true }
      })

      const chats = yield* RcMap.make({
        lookup: (id: string) =>
          checkSettings(settings).pipe(
            Effect.andThen(store.open(id)),
            Effect.catchReason("SessionStoreError", "SessionNotFound", () => begin(id)),
            Effect.tap((opened) =>
              "torn" in opened && opened.torn > 0
                ? Effect.logWarning(
                    `session ${id} ends in an incomplete line, as after a crash; its last ${opened.torn} bytes were removed, everything before them is intact`
                  )
                : Effect.void
            ),
            Effect.flatMap(({ session, ...opened }) =>
              Chat.make({ ...opened, session: { ...session, memory: afterReopening(session.memory) }, settings })
            ),
            Effect.provideContext(context)
          )
      })
      return {
        // A failure must not stay cached in the caller's scope: every caller would receive it until that scope
        // closes.
        open: Effect.fnUntraced(function* (key) {
          const problem = valueCheck(Predicate.isString, "a text")("the key", key)
          if (problem !== undefined) return yield* new InvalidOption({ message: problem })
          return yield* RcMap.get(chats, sessionIdOf(key))
        }, allOrNothing)
      }
    })
  )
}
