import { Effect } from "effect"
import * as Base64 from "effect/encoding/Base64"

/** Copies a text to the user's clipboard by asking the terminal (OSC 52), which also works over a connection. */
export const copy = (text: string, write: (sequence: string) => void): Effect.Effect<boolean> =>
  Effect.sync(() => {
    write(`\u001b]52;c;${Base64.encode(new TextEncoder().encode(text))}\u0007`)
    return true
  })
