import { Context, type Effect, type Scope } from "effect"
import type { SessionStore, SessionStoreError } from "./SessionStore.ts"

/** Opens other session stores than the one in use, by their address. */
export class StoreOpener extends Context.Service<
  StoreOpener,
  {
    /** Opens a store for as long as the scope is open. Fails when the text is no address, or nothing answers there. */
    readonly open: (address: string) => Effect.Effect<SessionStore["Service"], SessionStoreError, Scope.Scope>
  }
>()("palimpsest/services/session/StoreOpener") {}
