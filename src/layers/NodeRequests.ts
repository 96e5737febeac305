import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"

/** Requests by Node's `http` and `https`: unlike fetch they go to the address they are given, whatever the `Host` header says. */
export const layer = NodeHttpClient.layerNodeHttp
