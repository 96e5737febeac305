import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"

/** HTTP client on Node's `http` and `https`. Unlike fetch, they connect to the given address, whatever the `Host` header says. */
export const layer = NodeHttpClient.layerNodeHttp
