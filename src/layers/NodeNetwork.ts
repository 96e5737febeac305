import * as NodeDns from "@effect/platform-node/NodeDns"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Layer } from "effect"

/**
 * Names and requests by Node's own means. Not by fetch: a page is fetched from the very address that was checked
 * (services/tools/WebFetch.ts).
 */
export const layer = Layer.mergeAll(NodeDns.layer, NodeHttpClient.layerNodeHttp)
