import { Context, type Effect, type Scope } from "effect"
import type { SessionStore, SessionStoreError } from "./SessionStore.ts"

/** Opens a session store other than the one in use, by its address. */
export class StoreOpener extends Context.Service<
  StoreOpener,
  {
    /** Opens a store until the scope closes. Fails when the address is invalid, or when there is no store at it. */
    readonly open: (address: string) => Effect.Effect<SessionStore["Service"], SessionStoreError, Scope.Scope>
  }
>()("palimpsest/services/session/StoreOpener") {}
