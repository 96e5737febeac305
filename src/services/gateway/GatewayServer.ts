import { Context } from "effect"

/** The server of the gateway, available once it listens. */
export class GatewayServer extends Context.Service<GatewayServer, { readonly port: number }>()(
  "palimpsest/services/gateway/GatewayServer"
) {}
