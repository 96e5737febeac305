/** The contract of the gateway's store of texts by name. */

import { Context, type Effect, Schema } from "effect"

/** Data of the gateway could not be read or written. */
export class GatewayStoreError extends Schema.TaggedError<GatewayStoreError>()("GatewayStoreError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * The kinds of stored data: `view`, the replacement for the beginning of a conversation; `original`, the messages
 * that a view replaces; `hidden`, exchanges that the client did not see; `item`, items of answers that clients refer to by id.
 */
const kinds = ["view", "original", "hidden", "item"] as const
export type Kind = (typeof kinds)[number]

/**
 * Stores texts under names derived from the messages of a conversation, separately for each owner. Texts with the
 * same name are equivalent, so several processes may write them.
 */
export class GatewayStore extends Context.Service<
  GatewayStore,
  {
    /** Returns the names of all texts of a kind. */
    readonly names: (owner: string, kind: Kind) => Effect.Effect<ReadonlyArray<string>, GatewayStoreError>
    /** Returns a text. Undefined when there is none. */
    readonly get: (owner: string, kind: Kind, name: string) => Effect.Effect<string | undefined, GatewayStoreError>
    /** Stores a text. Replaces an earlier one of the same name. */
    readonly put: (owner: string, kind: Kind, name: string, text: string) => Effect.Effect<void, GatewayStoreError>
  }
>()("palimpsest/services/gateway/GatewayStore") {}
