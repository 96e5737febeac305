import { Context, type Effect, Schema } from "effect"
import type { HashText } from "../../domain/gateway/MessageChain.ts"

/** What the gateway keeps could not be read or written. */
export class GatewayStoreError extends Schema.TaggedError<GatewayStoreError>()("GatewayStoreError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * What is kept of a conversation: `view`, what is sent in place of its beginning; `original`, the messages that such a view
 * stands for; `hidden`, exchanges that the client did not see.
 */
const kinds = ["view", "original", "hidden"] as const
export type Kind = (typeof kinds)[number]

/**
 * Keeps texts under names that follow from the messages of a conversation, apart for each owner. The same name always has a text
 * of the same meaning, so that several processes may write it.
 */
export class GatewayStore extends Context.Service<
  GatewayStore,
  {
    readonly hash: HashText
    /** Returns the names of all texts of a kind. */
    readonly names: (owner: string, kind: Kind) => Effect.Effect<ReadonlyArray<string>, GatewayStoreError>
    /** Returns a text; undefined when there is none. */
    readonly get: (owner: string, kind: Kind, name: string) => Effect.Effect<string | undefined, GatewayStoreError>
    /** Keeps a text, in place of an earlier one of the same name. */
    readonly put: (owner: string, kind: Kind, name: string, text: string) => Effect.Effect<void, GatewayStoreError>
  }
>()("palimpsest/services/gateway/GatewayStore") {}
