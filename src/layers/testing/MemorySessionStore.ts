/** A session store in memory, for tests. */

import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { SessionBacking } from "../../services/session/SessionBacking.ts"
import type { SessionStore } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "../session/BackedSessionStore.ts"
import * as KeyValueSessionBacking from "../session/KeyValueSessionBacking.ts"

/** Sessions in memory are read whole. */
const whole = Effect.map(SessionBacking, (all) => ({ ...all, lastCheckpoint: () => Effect.undefined }))

/**
 * Sessions in memory, for the lifetime of the layer: the behaviour of every other store, without a disk. Events are kept as encoded lines,
 * and large parts as blobs of their session, so whatever does not survive the codec shows here too.
 */
export const layer: Layer.Layer<SessionStore> = Layer.effect(SessionBacking, whole).pipe(
  Layer.provide(KeyValueSessionBacking.make()),
  Layer.provide(Layer.fresh(KeyValueStore.layerMemory)),
  BackedSessionStore.over
)
