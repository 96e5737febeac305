/** Requests to the gateway, and what it decides to send. */

import type { Effect } from "effect"
import type { CompressedView } from "../../domain/gateway/CompressedView.ts"
import type { GatewayWindows } from "../../domain/gateway/GatewayLimits.ts"
import type { RecallDeclaration } from "../../domain/gateway/RecallDeclaration.ts"
import type { RequestBody } from "../../domain/gateway/RequestBody.ts"
import type { Route } from "../../domain/gateway/Route.ts"
import type { Prices } from "../../domain/tokens/Prices.ts"
import type { ReadAnswer } from "../../domain/wire/RelayedAnswer.ts"
import type { TokenCountError } from "../tokens/TokenCounter.ts"
import type { CountedMessage } from "./ConversationLog.ts"
import type { GatewayStoreError } from "./GatewayStore.ts"
import type { RequestTokens } from "./MessageCounts.ts"

/** How the gateway handles conversations. */
export interface GatewayOptions extends GatewayWindows {
  /** Whether the gateway's tool is declared. Default: true. */
  readonly recall?: boolean | undefined
  /** Whether answers show calls of our tool. Default: false. */
  readonly showRecalls?: boolean | undefined
  /** Who writes snapshots: code, or the client's own model, in the background and with the client's key. Default: code. */
  readonly snapshots?: "code" | "model" | undefined
  /** The prices by which the cost of answers is counted. Default: the built-in ones. */
  readonly prices?: Prices | undefined
}

/** A request of a client. */
export interface GatewayRequest {
  /** The owner of the conversations: a hash of the tenant, the key, and the client's name for the conversation. */
  readonly owner: string
  readonly route: Route
  readonly text: string
  /** Compress although the estimate says that the request fits, because the provider rejected it as too long. */
  readonly isTooLong?: boolean | undefined
}

/** A conversation as it is in a request: it can be compressed. */
export interface Preparable {
  readonly owner: string
  /** Names the conversation since its last compression. */
  readonly place: string
  readonly body: RequestBody
  /** The names of all prefixes of the client's messages. */
  readonly names: ReadonlyArray<string>
  /** What is sent in place of its longest beginning that was compressed before. */
  readonly view: CompressedView | undefined
  /** The messages after the view. */
  readonly rest: ReadonlyArray<CountedMessage>
  readonly declaration: RecallDeclaration | undefined
  /** Tokens besides the messages. */
  readonly overhead: RequestTokens
  /** The maximum number of tokens of a request, those from which it is compressed, and the tokens of this one. */
  readonly limit: number
  readonly trigger: number
  readonly tokens: RequestTokens
}

/** A request that goes out with other messages than the client sent. */
export interface SentView extends Preparable {
  readonly view: CompressedView
  readonly messages: ReadonlyArray<string>
}

/** The decision for a request. Token counts are estimates. */
export type GatewayPlan =
  /** It goes out unchanged. */
  | {
      readonly _tag: "Unchanged"
      readonly model: string
      readonly tokens: RequestTokens | undefined
      /** Set when the conversation is near the threshold. */
      readonly next?: Preparable | undefined
    }
  | {
      readonly _tag: "Changed"
      readonly model: string
      readonly text: string
      readonly sent: SentView
      /** Tokens of the client's request. */
      readonly before: RequestTokens
      /** Whether this request caused the compression, and who wrote the snapshot. */
      readonly isNew: boolean
      readonly by: "code" | "model"
      readonly next?: Preparable | undefined
    }

/**
 * Sends a request in the client's name, with its key, and reads the answer. Undefined when there is no readable
 * answer.
 */
export type AskUpstream = (text: string) => Effect.Effect<ReadAnswer | undefined>

/** Why a request could not be read. It goes out unchanged. */
export type GatewayError = GatewayStoreError | TokenCountError
