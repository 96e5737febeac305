import { Effect } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"

/** Makes an id that nothing else has: of a session, a message, a request or a process. Later ids sort after earlier ones. */
export const newId = SecureRandom.SecureRandom.use((random) => random.uuidV7()).pipe(
  Effect.provide(SecureRandom.layerWebCrypto)
)
