import type { Layer } from "effect"
import type { KeyValueStore } from "effect/persistence"
import type { SessionStore } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "./BackedSessionStore.ts"
import * as KeyValueSessionBacking from "./KeyValueSessionBacking.ts"

/**
 * Sessions in the `KeyValueStore` of the context, as of `effect/persistence`: a folder, a browser's storage, Redis, or one of your
 * own with `get`, `set`, `remove` and `keys`. An append is one `set`, which a crash may cut short but not another process: such a store
 * cannot check and write atomically, so only one process at a time may write a session. A second one that opens it takes it over,
 * and the first one's next append fails with `SessionTaken`.
 *
 * **Example** (Keeping chats in any KeyValueStore)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { KeyValueStore } from "effect/persistence"
 * import { Chats, Palimpsest } from "palimpsest"
 * import { KeyValueSessionStore } from "palimpsest/node"
 *
 * const store = KeyValueSessionStore.layer().pipe(Layer.provide(KeyValueStore.layerMemory))
 * const opened = Effect.flatMap(Chats.open("bridge"), (chat) => chat.session).pipe(Effect.scoped)
 * const { started } = await Effect.runPromise(Effect.provide(opened, Palimpsest.layer({ store })))
 * console.log(started?.session) // => bridge
 * ```
 */
export const layer = (
  options?: KeyValueSessionBacking.KeyValueSessionOptions
): Layer.Layer<SessionStore, never, KeyValueStore.KeyValueStore> =>
  BackedSessionStore.over(KeyValueSessionBacking.make(options))
