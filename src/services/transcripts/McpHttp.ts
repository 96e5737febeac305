/** The contract of serving MCP over HTTP. */

import type { Effect, Layer, Redacted } from "effect"
import type { McpProtocol, McpServer } from "effect/ai"
import type { ListenError } from "../platform/ListenError.ts"

/** An MCP server over HTTP, for programs of this machine. */
export interface McpHttpOptions {
  readonly name: string
  readonly version: string
  readonly instructions: string
  readonly protocols: readonly [McpProtocol.ProtocolAdapter, ...ReadonlyArray<McpProtocol.ProtocolAdapter>]
  /** 0 chooses a free one. */
  readonly port: number
  /** What every request has to bring. */
  readonly token: Redacted.Redacted
}

/** Serves tools until it is interrupted. `started` runs with the address when requests are answered. */
export type ServeMcp = (
  options: McpHttpOptions,
  registrations: Layer.Layer<never, never, McpServer.McpServer>,
  started: (url: string) => Effect.Effect<void>
) => Effect.Effect<never, ListenError>
