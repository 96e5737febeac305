/** The layer of the network, whose HTTP client is loaded with the first request. */

import * as NodeDns from "@effect/platform-node/NodeDns"
import { Context, Effect, Layer } from "effect"
import * as HttpClient from "effect/http/HttpClient"

/** The HTTP client, loaded with the first request: most conversations make none. */
const requests = Layer.effect(
  HttpClient.HttpClient,
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const loaded = yield* Effect.cached(
      Effect.promise(() => import("../platform/NodeRequests.ts")).pipe(
        Effect.flatMap(({ layer }) => Layer.buildWithScope(layer, scope)),
        Effect.map(Context.get(HttpClient.HttpClient))
      )
    )
    return HttpClient.make((request) => Effect.flatMap(loaded, (client) => client.execute(request)))
  })
)

/** DNS and HTTP of Node. */
export const layer = Layer.merge(NodeDns.layer, requests)
