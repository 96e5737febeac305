import type { Layer } from "effect"
import type { SessionStore } from "../../services/session/SessionStore.ts"
import * as BackedSessionStore from "../session/BackedSessionStore.ts"
import * as MemorySessionBacking from "../session/MemorySessionBacking.ts"

/**
 * Sessions in memory, for the lifetime of the layer: the behaviour of every other store, without a disk. Events are kept as encoded lines,
 * and large parts as blobs of their session, so whatever does not survive the codec shows here too.
 */
export const layer: Layer.Layer<SessionStore> = BackedSessionStore.over(MemorySessionBacking.make)
